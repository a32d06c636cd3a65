# SPDX-License-Identifier: Apache-2.0
"""The package's types: those of the compiled part are written down, and mypy agrees with all."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*words, **options):
    return subprocess.run([sys.executable, "-m", *map(str, words)], text=True, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def test_the_stub_is_that_of_the_compiled_module(tmp_path):
    stub = tmp_path / "_core.pyi"
    done = run("nanobind.stubgen", "-q", "-m", "hasten._core", "-o", stub)
    assert done.returncode == 0, done.stdout
    kept = ROOT / "python/hasten/_core.pyi"
    assert kept.read_text() == stub.read_text(), \
        f"{kept} is out of date: PYTHONPATH={os.environ['PYTHONPATH']} python " \
        f"-m nanobind.stubgen -m hasten._core -o {kept}"


def mypy(*words):
    """With the settings of pyproject.toml; what it learns of PyTorch in a minute is kept."""
    return run("mypy", "--cache-dir", Path(os.environ["HASTEN_BUILD"]) / "mypy", *words)


def test_mypy_finds_nothing():
    done = mypy()
    assert done.returncode == 0, done.stdout


def test_a_user_of_the_package_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import hasten.torch as ait\n\nait.BatchDim('batch', 'one', 2)\n")
    done = mypy(program)
    assert "expected \"int\"" in done.stdout and done.returncode == 1, done.stdout
