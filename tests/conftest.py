# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share. ctest runs each file of them; see tests/CMakeLists.txt.

HASTEN names the command under test (default: build/hasten)."""
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 77  # The exit status that ctest shows as "Skipped".


def hasten_path() -> Path:
    return Path(os.environ.get("HASTEN", ROOT / "build" / "hasten"))


@pytest.fixture
def hasten():
    """hasten(*arguments, status=0) runs the command and returns what it printed; any other exit
    status fails the test and shows both streams. status=None takes any."""
    def run(*arguments, status=0, timeout=600, **options):
        done = subprocess.run([hasten_path(), *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, **options)
        if status is not None and done.returncode != status:
            pytest.fail(f"hasten {' '.join(map(str, arguments))}\nexit status {done.returncode}, "
                        f"not {status}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")
        return done
    return run


@functools.cache
def model_folder(name: str) -> Path:
    """The folder of a real model (tests/models), built when it is not there."""
    subprocess.run([sys.executable, ROOT / "tests/models/build.py", name], check=True)
    return ROOT / "tests/models/out" / name


@pytest.fixture
def model():
    return model_folder


@pytest.fixture
def require_backend(hasten):
    """require_backend(name) skips where the backend can't run, with hasten's own reason; fails
    where HASTEN_REQUIRE_BACKENDS lists it, so that nothing is skipped unseen in CI."""
    def require(name):
        listed = json.loads(hasten("backends", "--json", "-").stdout)["backends"]
        backend = next((entry for entry in listed if entry["name"] == name), None)
        if backend and backend["available"]:
            return
        reason = f"{name}: {backend['reason']}" if backend else f"{name} is not built"
        required = os.environ.get("HASTEN_REQUIRE_BACKENDS", "").split(",")
        (pytest.fail if name in required else pytest.skip)(reason)
    return require


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("skipped", []):
        print(f"SKIPPED {report.nodeid}: {report.longrepr[2]}")


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and not reporter.stats.get("passed") and reporter.stats.get("skipped"):
        session.exitstatus = SKIPPED
