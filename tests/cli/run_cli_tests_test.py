# SPDX-License-Identifier: Apache-2.0
"""The runner of the text files: a wrong line, a missing line and a wrong status all fail."""
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).with_name("run_cli_tests.py")


@pytest.fixture
def run_text(tmp_path):
    command = tmp_path / "bin" / "hasten"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho one; echo 'two 2.5 s' >&2; echo three; exit ${1:-0}\n")
    command.chmod(0o755)
    file = tmp_path / "case.txt"

    def run(text, *options):
        file.write_text(text)
        done = subprocess.run([sys.executable, RUNNER, "--bin", command.parent, *options, file],
                              capture_output=True, text=True)
        return done.returncode, done.stdout, file.read_text()
    return run


@pytest.mark.parametrize("text", [
    "$ hasten\none\ntwo 2.5 s\nthree\n",
    "# why\n$ hasten\none\ntwo [..] s\nthree\n\n$ hasten 3\n...\n? 3\n",
    "$ hasten\n...\nthree\n",
    "$ hasten\none\n...\nthree\n...\n",
    "$ hasten |\n> tail -n 1\n...\nthree\n",
    "$ pwd; ls\n[CWD]\ndata\n",
])
def test_what_is_printed_is_accepted(run_text, text):
    status, output, after = run_text(text)
    assert status == 0, output
    assert after == text


@pytest.mark.parametrize("text", [
    "$ hasten\none\ntwo 2.6 s\nthree\n",
    "$ hasten\none\nthree\n",
    "$ hasten\none\ntwo [..] s\nthree\nfour\n",
    "$ hasten\n...\ntwo\n",
    "$ hasten 1\n...\n",
    "$ hasten\n...\n? 1\n",
    "$ hasten\n",
])
def test_what_is_not_printed_fails(run_text, text):
    assert run_text(text)[0] == 1


def test_regenerate_keeps_the_blocks_that_match(run_text):
    text = "# why\n$ hasten\none\n[..]\nthree\n\n$ hasten 3\nold\n\n# end\n"
    status, _, after = run_text(text, "--regenerate")
    assert status == 0
    assert after == ("# why\n$ hasten\none\n[..]\nthree\n\n"
                     "$ hasten 3\none\ntwo 2.5 s\nthree\n? 3\n\n# end\n")
