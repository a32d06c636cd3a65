# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: models of the fake backend, and `hasten tune` on them."""
import dataclasses
import json
import os
import subprocess
from pathlib import Path

from conftest import ROOT, hasten_path
from schema import validate

BUILD = Path(os.environ.get("HASTEN_BUILD", ROOT / "build"))
PLUGINS = BUILD / "tests" / "plugins"
AFFINE = ["x=float32[B,3]"]
PAIR = ["a=float32[B,3]", "b=float32[B,3]"]


def fake_model(path: Path, function="affine", dtype="float32", rows="B", **lines) -> Path:
    """A model file of the fake backend. swap2 takes and gives two tensors, the others one.
    `lines`: further ones of the file."""
    inputs, outputs = ("ab", "xy") if function == "swap2" else ("x", "y")
    text = ["hasten-model fake", f"function {function}"]
    text += [f"{key} {value}" for key, value in {"latency_us": 2000, **lines}.items()]
    text += [f"input {name} {dtype}[{rows},3]" for name in inputs]
    text += [f"output {name} {dtype}[{rows},3]" for name in outputs]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def fake(**config) -> str:
    """The candidate as --backend takes it and reports name it: keys in order."""
    settings = ",".join(f"{key}={value}" for key, value in sorted(config.items()))
    return f"fake:{settings}" if settings else "fake"


def label(trial: dict) -> str:
    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)
    settings = ",".join(f"{key}={text(value)}" for key, value in sorted(trial["config"].items()))
    return f"{trial['backend']}:{settings}" if settings else trial["backend"]


def command(model, *arguments, inputs=AFFINE, backends=(), sizes="1,2") -> list[str]:
    words = [hasten_path().resolve(), "tune", model, "--plugin", PLUGINS, *arguments]
    for spec in inputs:
        words += ["--input", spec]
    for backend in backends:
        words += ["--backend", backend]
    if sizes:
        words += ["--batch-sizes", sizes]
    return [str(word) for word in words]


@dataclasses.dataclass
class Tuned:
    status: int
    stdout: str
    stderr: str
    report: dict | None

    @property
    def trials(self) -> dict[str, dict]:
        return {label(trial): trial for trial in self.report["trials"]}

    @property
    def winner(self) -> str | None:
        winner = self.report["winner"]
        return winner and label(winner)


def read_report(path: Path) -> dict:
    """A report of --json, which has to fit its schema."""
    report = json.loads(path.read_text(encoding="utf-8"))
    assert validate.errors(report, "tune") == []
    return report


def tune(folder: Path, model, *arguments, status=0, timeout=300, environment=None, name="report",
         **options) -> Tuned:
    """`hasten tune` in `folder`. Any other exit status fails; status=None takes any."""
    path = folder / f"{name}.json"
    words = command(model, "--json", str(path), *arguments, **options)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    assert status in (None, done.returncode), f"{words}\n{done.stdout}\n{done.stderr}"
    report = read_report(path) if path.exists() else None
    return Tuned(done.returncode, done.stdout, done.stderr, report)
