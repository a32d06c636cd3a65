#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs text files that say what the command line prints. Standard library only.

    run_cli_tests.py --bin DIR [--regenerate] FILE.txt...

A file is a list of commands with what they print, stdout and stderr together, and their exit status:

    # A comment; also free text between the commands, as long as each line starts with #.
    $ hasten run missing.hasten --input x.npz
    error: missing.hasten: no such file
    ...
    ? 2

`$ ` starts a command for bash, continued on lines that start with `> `. `? N` is its exit status; without it 0.
In what is printed:
    [..]    stands for any text within a line
    ...     alone on a line stands for any number of lines, none included
    [CWD]   is the working folder, which is made for each file
Blank lines at the end of a block do not count. A printed line that starts with # is written [..].

The commands of a file run one after the other in one empty folder. There, `data` is tests/data, `hasten` is
the command under test, and $FAKE_PLUGINS is the folder of the backends that are made for tests
(use: HASTEN_PLUGIN_PATH=$FAKE_PLUGINS hasten backends).

--regenerate rewrites the blocks that no longer match with what was printed; blocks that match
keep their wildcards. Read the diff before you commit it."""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT_S = 120  # A command that hangs must not hang the tests; none takes a tenth of this.


@dataclass
class Block:
    """Lines before the command, the command, and what is expected of it."""
    before: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    status: int = 0

    def script(self) -> str:
        return "\n".join(line[2:] for line in self.command)


def parse(text: str) -> list[Block]:
    """The last block may have no command: it holds the lines at the end of the file."""
    blocks = [Block()]
    for line in text.splitlines():
        block = blocks[-1]
        if line.startswith("$ ") or (line.startswith("#") and block.command):
            if block.command:
                blocks.append(block := Block())
        if line.startswith("$ "):
            block.command.append(line)
        elif line.startswith("> ") and block.command and not block.expected:
            block.command.append(line)
        elif match := re.fullmatch(r"\? (\d+)", line):
            block.status = int(match[1])
        elif block.command:
            block.expected.append(line)
        else:
            block.before.append(line)
    return blocks


def strip_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def line_matches(pattern: str, line: str) -> bool:
    parts = (re.escape(part) for part in pattern.split("[..]"))
    return re.fullmatch(".*".join(parts), line) is not None


def matches(patterns: list[str], lines: list[str]) -> bool:
    """Whether the lines are what the patterns say; dynamic programming over `...`."""
    reachable = {0}  # Numbers of lines that the patterns so far can have taken.
    for pattern in patterns:
        if pattern == "...":
            reachable = set(range(min(reachable), len(lines) + 1)) if reachable else set()
        else:
            reachable = {n + 1 for n in reachable
                         if n < len(lines) and line_matches(pattern, lines[n])}
    return len(lines) in reachable


def run(script: str, folder: Path, environment: dict[str, str]) -> tuple[list[str], int]:
    try:
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, status = (late.stdout or b"") + b"(timed out)\n", 124
    text = output.decode("utf-8", "backslashreplace").replace(str(folder), "[CWD]")
    return strip_end([line.rstrip() for line in text.splitlines()]), status


def run_file(file: Path, bin_folder: Path, regenerate: bool) -> int:
    """The number of commands that failed."""
    blocks = parse(file.read_text(encoding="utf-8"))
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hasten-cli-") as name:
        folder = Path(name).resolve()
        (folder / "data").symlink_to(Path(__file__).resolve().parents[1] / "data")
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("HASTEN_")} | {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8", "FAKE_PLUGINS": str(bin_folder / "tests" / "plugins"),
            "TMPDIR": name}
        for block in blocks:
            if not block.command:
                continue
            lines, status = run(block.script(), folder, environment)
            expected = strip_end(block.expected)
            if matches(expected, lines) and status == block.status:
                continue
            failures += 1
            print(f"{file}: $ {block.script()}")
            print("\n".join(difflib.unified_diff(
                expected + [f"? {block.status}"], lines + [f"? {status}"], "expected", "printed",
                lineterm="")))
            blank = block.expected[len(expected):]
            block.expected, block.status = lines + blank, status
    if regenerate and failures:
        file.write_text(render(blocks), encoding="utf-8")
        print(f"{file}: {failures} blocks rewritten")
        return 0
    return failures


def render(blocks: list[Block]) -> str:
    lines = []
    for block in blocks:
        lines += block.before + block.command
        shown = strip_end(block.expected)
        lines += shown
        if block.status:
            lines.append(f"? {block.status}")
        lines += block.expected[len(shown):]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the command `hasten`")
    parser.add_argument("--regenerate", action="store_true")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.txt")
    arguments = parser.parse_args()
    if not (arguments.bin / "hasten").exists():
        parser.error(f"there is no {arguments.bin / 'hasten'}: build first")
    failed = sum(run_file(file, arguments.bin.resolve(), arguments.regenerate)
                 for file in arguments.files)
    print(f"{failed} commands failed" if failed else "every command printed what it should")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
