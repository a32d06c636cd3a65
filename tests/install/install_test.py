# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 600 COST 35
"""The installed copy: a program that knows only find_package(hasten) tunes and runs a model with it.

Installed under a path that build systems like to get wrong."""
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "data" / "onnx" / "affine.onnx"


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install") / "it's a $prefix 模型"
    call("cmake", "--install", os.environ["HASTEN_BUILD"], "--prefix", folder)
    return folder


@pytest.fixture
def outside():
    """An environment in which nothing leads back to the source or the build."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith("HASTEN") and key != "PYTHONPATH"}


def test_installed_command_finds_its_plugins(prefix, outside):
    built = {p.stem for p in (Path(os.environ["HASTEN_BUILD"]) / "plugins").glob("hasten_*")}
    installed = {p.stem for p in (prefix / "lib/hasten/plugins").iterdir()}
    assert installed == built
    printed = call(prefix / "bin/hasten", "backends", env=outside)
    for name in built:
        assert name.removeprefix("hasten_") in printed


def test_installed_files_do_not_name_the_build_folder(prefix):
    for file in [prefix / "bin/hasten", *prefix.glob("lib/libhasten.so*")]:
        assert os.environ["HASTEN_BUILD"] not in call("readelf", "-d", file)
    for file in prefix.glob("lib/cmake/hasten/*"):
        assert os.environ["HASTEN_BUILD"] not in file.read_text()


def test_schemas_python_and_headers_are_installed(prefix):
    for name in ("include/hasten/plugin.h", "include/hasten/tensor.h", "share/hasten/LICENSE",
                 "include/hasten/third_party/dlpack/dlpack.h", "lib/hasten/python/hasten/__init__.py"):
        assert (prefix / name).is_file(), name
    assert list((prefix / "share/hasten/schema").glob("*.schema.json"))


def test_ten_line_program_tunes_and_runs_a_model(prefix, outside, tmp_path):
    build = tmp_path / "build"
    call("cmake", "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", env=outside)
    call("cmake", "--build", build, env=outside)
    artifact = tmp_path / "affine.hasten"
    printed = call(build / "consumer", MODEL, artifact, env=outside)
    assert printed.split() == ["3", "5", "7"]  # 2x + 1 of 1, 2, 3
    assert artifact.is_file()
