#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of BENCHMARKS.md that whole commands are measured for, each a ratio or a difference
within one run, taken in turns so that drift of the machine meets both sides.

    figures.py [backends|first-output|tune|choice]...     default: all; results go to bench-out/

    backends      how long `hasten backends` takes
    first-output  `hasten run` of an ONNX Runtime artifact against the same work by the engine's C API
    tune          what `hasten tune` spends outside builds and measured turns
    choice        the artifact chosen for each demo model against each single backend by hand
"""
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HASTEN = Path("build/hasten")
MODELS = Path("tests/models/out")
OUT = Path("bench-out")
DEMO = {"silero": "pt", "minilm": "pt2", "resnet18": "pt2"}
BACKENDS = ("torchscript", "inductor", "onnxruntime", "openvino")


def run(*command) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"figures: {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def seconds(*command) -> float:
    begin = time.monotonic()
    run(*command)
    return time.monotonic() - begin


def inputs(name: str, tag: str) -> Path:
    return MODELS / name / f"{name}.{tag}.inputs.npz"


def model(name: str, ending: str) -> Path:
    return MODELS / name / f"{name}.{ending}"


def report(figure: str, data: dict, line: str) -> None:
    (OUT / f"{figure}.json").write_text(json.dumps(data, indent=1) + "\n")
    print(f"{figure:13} {line}", flush=True)


def backends() -> None:
    times = [seconds(HASTEN, "backends") for _ in range(7)]
    report("backends", {"seconds": times},
           f"median {statistics.median(times):.2f} s, longest {max(times):.2f} s (aim: under 1 s)")


def first_output() -> None:
    artifact = OUT / "first-output.hasten"
    run(HASTEN, "tune", model("resnet18", "onnx"), "--input", inputs("resnet18", "b1"), "-q",
        "--strategy", "one-backend", "--backend", "onnxruntime", "--batch-sizes", "1",
        "--no-performance-validation", "-o", artifact)
    ours, raw = [], []
    for _ in range(11):
        ours.append(seconds(HASTEN, "run", artifact, "--input", inputs("resnet18", "b1")))
        raw.append(seconds("build/bench/bench_first_output", model("resnet18", "onnx")))
    more = [1e3 * (a - b) for a, b in zip(ours, raw)]
    report("first-output", {"hasten_s": ours, "raw_s": raw},
           f"hasten run {1e3 * statistics.median(ours):.0f} ms, C API "
           f"{1e3 * statistics.median(raw):.0f} ms, median of the differences "
           f"{statistics.median(more):.0f} ms (aim: at most 150 ms)")


def tune_file(name: str) -> Path:
    """Tunes a demo model over everything; the report is kept beside the artifact."""
    artifact = OUT / f"{name}.hasten"
    if not artifact.exists():
        run(HASTEN, "tune", model(name, DEMO[name]), "--input", inputs(name, "b1"), "--input",
            inputs(name, "b3"), "-q", "-o", artifact, "--json", OUT / f"{name}.tune.json")
    return artifact


def tune() -> None:
    for name in DEMO:
        tune_file(name)
        data = json.loads((OUT / f"{name}.tune.json").read_text())
        share = data["harness_s"] / data["total_s"]
        report(f"tune-{name}", {"harness_s": data["harness_s"], "total_s": data["total_s"]},
               f"{data['harness_s']:.1f} s of {data['total_s']:.1f} s outside builds and turns: "
               f"{100 * share:.0f} % (aim: at most 15 %)")


def choice() -> None:
    """By hand: one backend, its default settings, no look at the others."""
    for name in DEMO:
        chosen = tune_file(name)
        size = json.loads((OUT / f"{name}.tune.json").read_text())["winner"]["selected_batch_size"]
        figures = {}
        for backend in BACKENDS:
            single = OUT / f"{name}.{backend}.hasten"
            if not single.exists():
                run(HASTEN, "tune", model(name, DEMO[name]), "--input", inputs(name, "b1"), "-q",
                    "--input", inputs(name, "b3"), "--strategy", "one-backend", "--backend", backend,
                    "--batch-sizes", "1,2", "--no-performance-validation", "-o", single)
            point = json.loads(run(HASTEN, "bench", chosen, "--against", single, "--batch-sizes", size,
                                   "--input", inputs(name, "b8"), "--json", "-"))["points"][0]
            figures[backend] = point["speedup"] | {"verdict": point["verdict"]}
        lines = ", ".join(f"{b} {f['estimate']:.2f} ({f['verdict']})" for b, f in figures.items())
        report(f"choice-{name}", {"batch_size": size, "against": figures},
               f"at batch {size}, times as fast as {lines}")


def main() -> int:
    OUT.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "tests/models/build.py", *DEMO], check=True)
    parts = {"backends": backends, "first-output": first_output, "tune": tune, "choice": choice}
    for name in sys.argv[1:] or parts:
        if name not in parts:
            sys.exit(__doc__)
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
