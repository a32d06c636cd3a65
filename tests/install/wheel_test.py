# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 1500 COST 150
"""The installed package: `pip install .` into a fresh virtual environment gives a program that tunes."""
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
import torch
import hasten
import hasten.torch as ait
from hasten.torch.backend import ONNXRuntimeBackend

print(hasten.__file__)
model = ait.Module(torch.nn.Linear(4, 4).eval(), "tiny", strategy=ait.MaxThroughputStrategy(
    backends=[ONNXRuntimeBackend()]).enable_performance_validation(False))
ait.tune(model, [torch.ones(4), torch.zeros(4)])
x = torch.ones(3, 4)
with torch.no_grad():
    torch.testing.assert_close(model(x), torch.nn.functional.linear(x, model.weight, model.bias))
print(model.tuning_state.name, model.tuning_report["graphs"][0]["winner"], model.unseen_calls)
'''


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """An environment in which nothing leads back to the source or the build."""
    variables = {key: value for key, value in os.environ.items()
                 if not key.startswith("HASTEN") and key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**variables, "HASTEN_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def environment(tmp_path_factory, outside):
    """A virtual environment with hasten in it. It borrows the frameworks: they are gigabytes."""
    folder = tmp_path_factory.mktemp("it's an environment") / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "frameworks.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # Its build folder stays, so that only what changed is compiled again.
    call(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps",
         "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--no-cache-dir",
         "-C", f"build-dir={os.environ['HASTEN_BUILD']}/wheel", ROOT,
         env={**outside, "CCACHE_BASEDIR": str(ROOT)})
    return folder


def test_the_command_is_there_with_the_plugins_that_the_build_has(environment, outside, tmp_path):
    built = {p.stem for p in (Path(os.environ["HASTEN_BUILD"]) / "plugins").glob("hasten_*")}
    (installed,) = environment.glob("lib/python3*/site-packages/hasten/plugins")
    assert {p.stem for p in installed.iterdir()} == built
    printed = call(environment / "bin/hasten", "backends", cwd=tmp_path, env=outside)
    for name in built:
        assert name.removeprefix("hasten_") in printed
    assert "unavailable" not in printed.replace("tensorrt", "")


def test_the_package_tunes_a_module(environment, outside, tmp_path):
    printed = call(environment / "bin/python", "-c", PROGRAM, cwd=tmp_path, env=outside)
    where, *_, result = [line for line in printed.splitlines() if "hasten" in line or "TUNED" in line]
    assert Path(where).is_relative_to(environment)
    assert result.startswith("TUNED ONNXRuntimeBackend(") and result.endswith(" 0")


def test_type_checkers_find_its_types(environment):
    (package,) = environment.glob("lib/python3*/site-packages/hasten")
    assert (package / "py.typed").is_file() and (package / "_core.pyi").is_file()
