#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: tunes three real pretrained models, runs what was chosen on inputs that the tune has not
seen, and says how far the answers are from the original's and how much faster they came.

    demo.py [NAME...]         default: silero minilm resnet18; results go to demo-out/

Run by .venv/bin/python: NumPy compares the answers; everything else is the command `hasten`."""
import argparse
import json
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Relative, so that the commands that are shown can be repeated from here as they stand.
MODELS = Path("tests/models/out")
OUT = Path("demo-out")
HASTEN = Path("build/hasten")
# One of each kind that every CPU backend can take part in: TorchScript and exported programs.
FORMATS = {"silero": "pt", "minilm": "pt2", "resnet18": "pt2", "bert_tiny": "pt2",
           "mobilenetv3": "pt2", "crepe_tiny": "pt2", "silero_ts": "pt", "ocr_cls": "onnx"}
DEFAULT = ("silero", "minilm", "resnet18")
UNSEEN = "b8"  # Tuned on the samples of batch 1 and 3.


@dataclass
class Outcome:
    name: str
    chosen: str
    difference: float
    magnitude: float  # Of the largest value, so that the difference can be judged.
    speedup: dict
    seconds: float


def say(text: str = "") -> None:
    print(text, flush=True)


def run(*command, quiet: bool = False) -> str:
    """Shows the command and what it prints; ends the demo when it fails."""
    words = [str(word) for word in command]
    say(f"$ {shlex.join(words)}")
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if not quiet or done.returncode:
        say(done.stdout.rstrip("\n"))
    if done.returncode:
        sys.exit(f"demo: the command above ended with status {done.returncode}")
    return done.stdout


def compare(answers: Path, expected: Path) -> tuple[float, float]:
    """Largest absolute difference over all outputs, and the largest value expected."""
    found, wanted = np.load(answers), np.load(expected)
    if len(found.files) != len(wanted.files):
        sys.exit(f"demo: {answers} has {found.files}, the original gave {wanted.files}")
    difference = magnitude = 0.0
    # By order: a trace does not keep the names of its outputs.
    for mine, original in zip(found.files, wanted.files):
        a, b = found[mine].astype(np.float64), wanted[original].astype(np.float64)
        if a.shape != b.shape:
            sys.exit(f"demo: output {mine} is {a.shape}, the original gave {b.shape}")
        difference = max(difference, float(np.max(np.abs(a - b), initial=0)))
        magnitude = max(magnitude, float(np.max(np.abs(b), initial=0)))
    return difference, magnitude


def label(winner: dict) -> str:
    config = ",".join(f"{key}={value}" for key, value in sorted((winner.get("config") or {}).items()))
    return winner["backend"] + (f":{config}" if config else "")


def demonstrate(name: str) -> Outcome:
    model = MODELS / name / f"{name}.{FORMATS.get(name, 'pt2')}"
    inputs = {tag: MODELS / name / f"{name}.{tag}.inputs.npz" for tag in ("b1", "b3", UNSEEN)}
    artifact, report, answers = (OUT / f"{name}{end}" for end in (".hasten", ".json", ".answers.npz"))
    say(f"\n== {name} ==\n")
    started = time.monotonic()
    run(HASTEN, "tune", model, "--input", inputs["b1"], "--input", inputs["b3"],
        "--strategy", "max-throughput", "-o", artifact, "--json", report)
    seconds = time.monotonic() - started
    run(HASTEN, "run", artifact, "--input", inputs[UNSEEN], "-o", answers, quiet=True)
    difference, magnitude = compare(answers, MODELS / name / f"{name}.{UNSEEN}.outputs.npz")
    say(f"largest difference from the original: {difference:.1e} "
        f"(values up to {magnitude:.3g}, batch of 8 that was not tuned with)")
    bench = json.loads(run(HASTEN, "bench", artifact, "--against", model, "--input", inputs[UNSEEN],
                           "--json", "-", quiet=True))
    speedup = bench["points"][0]["speedup"]
    say(f"times as fast as the original on that batch: {shown(speedup)}")
    winner = json.loads(report.read_text())["winner"]
    return Outcome(name, label(winner), difference, magnitude, speedup, seconds)


def shown(speedup: dict) -> str:
    return f"{speedup['estimate']:.2f} ({speedup['low']:.2f} to {speedup['high']:.2f})"


def summary(outcomes: list[Outcome]) -> str:
    rows = [("model", "chosen", "times as fast", "max difference", "largest value", "tuned in")]
    rows += [(o.name, o.chosen, shown(o.speedup), f"{o.difference:.1e}", f"{o.magnitude:.3g}",
              f"{o.seconds:.0f} s") for o in outcomes]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=DEFAULT, metavar="NAME")
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "tests/models/build.py", *arguments.names], check=True)
    outcomes = [demonstrate(name) for name in arguments.names]
    say(f"\n{summary(outcomes)}\n\nArtifacts and reports are in {OUT}/. Try:  "
        f"{HASTEN} inspect {OUT}/{outcomes[0].name}.hasten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
