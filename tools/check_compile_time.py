#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports what each public header costs a file that includes it, against its budget.

    check_compile_time.py [--core BUILD_FOLDER]

Seconds depend on the machine, so a header is measured in multiples of what `#include <string>` costs
here (0.44 s where the budgets were made). --core adds the dearest files of src/ out of a build's
.ninja_log. A report of `make bench`, not a test: it exits with 0."""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STRING_S = 0.44
HEADER_BUDGET_S = 1.4   # A public header.
FILE_BUDGET_S = 3.0     # A file of the core; its time here includes code generation.
CORE_BUDGET_S = 120     # The whole core with its tests, CPU seconds.
RUNS = 3


def seconds(include: str) -> float:
    """The median of a few runs of the front end alone."""
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(f"#include <{include}>\n")
        file.flush()
        command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}/include",
                   f"-isystem{ROOT}/.deps/dlpack/include", file.name]
        times = []
        for _ in range(RUNS):
            started = time.monotonic()
            subprocess.run(command, check=True)
            times.append(time.monotonic() - started)
    return statistics.median(times)


def headers() -> None:
    unit = seconds("string") / STRING_S
    print(f"public headers (budget {HEADER_BUDGET_S} s; this machine takes {unit:.2f} times as long)")
    for header in sorted((ROOT / "include/hasten").glob("*.h*")):
        cost = seconds(f"hasten/{header.name}") / unit
        print(f"  {cost:5.2f} s  {header.name}{'   over budget' if cost > HEADER_BUDGET_S else ''}")


def core(build: Path) -> None:
    """The last time of each output; a ninja log line is: start ms, end ms, mtime, output, hash."""
    last = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        last[output] = (int(end) - int(start)) / 1000
    last = {output: cost for output, cost in last.items() if output.endswith(".o")}
    files = {output: cost for output, cost in last.items() if output.startswith("src/")}
    print(f"core: {sum(files.values()):.0f} s in {len(files)} files (budget {CORE_BUDGET_S} s); "
          f"files over {FILE_BUDGET_S} s:")
    for output, cost in sorted(files.items(), key=lambda item: -item[1]):
        if cost > FILE_BUDGET_S:
            print(f"  {cost:5.1f} s  {output.replace('/CMakeFiles', '')}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=Path, metavar="BUILD_FOLDER")
    arguments = parser.parse_args()
    headers()
    if arguments.core:
        core(arguments.core)
    return 0


if __name__ == "__main__":
    sys.exit(main())
