# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 LABELS e2e
"""Artifacts on real engines: what running one loads, what damage does, and what happens where the
first payload cannot run."""
import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from conftest import hasten_path

DATA = Path(__file__).resolve().parents[1] / "data"
BUILD = Path(os.environ.get("HASTEN_BUILD", hasten_path().parent))
X = np.arange(15, dtype=np.float32).reshape(5, 3)
FOREIGN = ("libtorch", "libc10", "libpython")


def tuned(folder: Path, backend: str, model: str, *inputs: str) -> Path:
    artifact = folder / f"{backend.partition(':')[0]}.hasten"
    given = [word for spec in inputs for word in ("--input", spec)]
    subprocess.run([hasten_path(), "tune", DATA / model, *given, "--backend", backend, "--quiet",
                    "--batch-sizes", "1,2", "--no-performance-validation", "-o", artifact],
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return artifact


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """2 x + 1. What ONNX Runtime runs was a TorchScript file, so libtorch is the second choice."""
    folder = tmp_path_factory.mktemp("artifacts")
    np.savez(folder / "x.npz", x=X)
    return {"onnxruntime": tuned(folder, "onnxruntime:threads=1", "torchscript/affine.pt",
                                 "x=float32[B,3]"),
            "openvino": tuned(folder, "openvino:threads=1", "onnx/affine.onnx", "x=float32[B,3]")}


@pytest.fixture
def artifact(artifacts, tmp_path):
    """A copy to damage."""
    return Path(shutil.copy(artifacts["onnxruntime"], tmp_path / "copy.hasten"))


@pytest.fixture
def answer(hasten, artifacts, tmp_path):
    """answer(ARTIFACT) runs it on X, and returns what came out and what was said."""
    def run(path, **options):
        done = hasten("run", path, "--input", artifacts["onnxruntime"].with_name("x.npz"), "-o",
                      tmp_path / "y.npz", "--json", "-", **options)
        with np.load(tmp_path / "y.npz") as outputs:
            values = outputs[outputs.files[0]]
        return values, json.loads(done.stdout)["backend"], done.stderr
    return run


def rewrite(path: Path, edit) -> None:
    """edit(manifest, entries) changes them; hashes and the zip are made to match."""
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    manifest = json.loads(entries.pop("manifest.json"))
    edit(manifest, entries)
    manifest["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [("manifest.json", json.dumps(manifest).encode()), *entries.items()]:
            archive.writestr(name, data)


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_running_an_artifact_loads_neither_pytorch_nor_python(hasten, artifacts, tmp_path, backend):
    traced = os.environ | {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loader")}
    hasten("run", artifacts[backend], "--input", artifacts[backend].with_name("x.npz"), env=traced)
    loaded = "".join(file.read_text(errors="replace") for file in tmp_path.glob("loader.*"))
    assert f"lib{backend}" in loaded, "the loader did not tell what it loads"
    assert not [name for name in FOREIGN if name in loaded]


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_eight_threads_share_a_session_that_maps_neither_pytorch_nor_python(artifacts, backend):
    done = subprocess.run([BUILD / "tests/runtime/session_probe", artifacts[backend], "8"],
                          text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    label, *mapped = done.stdout.splitlines()
    assert label == f"{backend}:threads=1: 0 calls differ"
    assert any(f"lib{backend}" in file for file in mapped)
    assert not [file for file in mapped if any(name in file for name in FOREIGN)]


def test_a_moved_and_renamed_artifact_runs_without_the_files_it_was_made_from(
        artifacts, answer, tmp_path):
    folder = tmp_path / "it's a $new 模型 folder"
    folder.mkdir()
    moved = Path(shutil.copy(artifacts["openvino"], folder / "other name"))
    values, backend, _ = answer(moved)
    assert backend == "openvino:threads=1"
    np.testing.assert_array_equal(values, 2 * X + 1)


def entries_of(path: Path) -> dict[str, tuple[int, int]]:
    """Where the content of each entry lies in the file."""
    places = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
            places[info.filename] = (info.header_offset + 30 + name + extra, info.file_size)
    return places


def test_a_flipped_byte_in_any_entry_is_found_and_the_entry_named(hasten, artifact):
    whole = artifact.read_bytes()
    places = {name: place for name, place in entries_of(artifact).items() if place[1]}
    assert {"manifest.json", "payload/0/model.onnx", "proofs/0/inputs.npz"} <= set(places)
    for name, (begin, size) in places.items():
        damaged = bytearray(whole)
        damaged[begin + size // 2] ^= 0x20
        artifact.write_bytes(damaged)
        done = hasten("verify", artifact, status=None)
        assert done.returncode in (1, 2), f"{name}: {done.returncode} {done.stdout}{done.stderr}"
        assert name in done.stderr, f"{name}: {done.stderr}"


def test_a_damaged_payload_never_runs(hasten, artifact, tmp_path):
    begin, size = entries_of(artifact)["payload/0/model.onnx"]
    damaged = bytearray(artifact.read_bytes())
    damaged[begin + size - 2] ^= 1
    artifact.write_bytes(damaged)
    np.savez(tmp_path / "x.npz", x=X)
    done = hasten("run", artifact, "--input", tmp_path / "x.npz", status=None)
    assert done.returncode in (1, 2)
    assert "payload/0/model.onnx" in done.stderr


def test_a_truncated_artifact_is_refused_by_name_at_every_length(hasten, artifact):
    whole = artifact.read_bytes()
    for tenth in range(10):
        artifact.write_bytes(whole[:len(whole) * tenth // 10])
        for command in (["verify"], ["inspect"]):
            done = hasten(*command, artifact, status=None)
            assert done.returncode in (1, 2), f"{tenth}: {done.stdout}{done.stderr}"
            assert "copy.hasten" in done.stderr


def test_a_payload_that_answers_wrongly_does_not_verify(hasten, artifact):
    def edit(manifest, entries):
        name = "payload/0/model.onnx"
        assert entries[name].count(np.float32(2).tobytes()) >= 1
        entries[name] = entries[name].replace(np.float32(2).tobytes(), np.float32(3).tobytes())
    rewrite(artifact, edit)
    done = hasten("verify", artifact, status=1)
    assert "DIFFERS" in done.stdout and "NOT verified" in done.stdout


def test_an_artifact_of_a_later_schema_is_refused(hasten, artifact):
    rewrite(artifact, lambda manifest, _: manifest.update(schema=manifest["schema"] + 1))
    for command in ("verify", "inspect"):
        done = hasten(command, artifact, status=1)
        assert "has schema 2, this hasten reads schema 1" in done.stderr


@pytest.mark.parametrize("change, told", [
    ({"backend": "nobody"}, "nobody"),
    ({"instruction_sets": ["avx2", "avx1024_of_tomorrow"]}, "avx1024_of_tomorrow"),
])
def test_a_payload_that_cannot_run_here_gives_way_and_that_is_said(artifact, answer, change, told):
    rewrite(artifact, lambda manifest, _: manifest["payloads"][0].update(change))
    values, backend, stderr = answer(artifact)
    assert backend == "torchscript:mode=eager"
    assert "warning: " in stderr and told in stderr
    np.testing.assert_array_equal(values, 2 * X + 1)


def test_an_unavailable_engine_gives_way_and_that_is_said(artifact, answer):
    values, backend, stderr = answer(
        artifact, env=os.environ | {"HASTEN_ONNXRUNTIME_LIBRARY": "/nonexistent"})
    assert backend == "torchscript:mode=eager"
    assert "warning: " in stderr and "/nonexistent" in stderr
    np.testing.assert_array_equal(values, 2 * X + 1)


def test_another_version_of_the_library_is_told_and_used(artifact, answer):
    rewrite(artifact, lambda manifest, _: manifest["payloads"][0].update(library_version="0.0.1"))
    values, backend, stderr = answer(artifact)
    assert backend == "onnxruntime:threads=1"
    assert "warning: " in stderr and "0.0.1" in stderr
    np.testing.assert_array_equal(values, 2 * X + 1)


def test_where_nothing_in_the_artifact_can_run_each_reason_is_told(hasten, artifact, tmp_path):
    def edit(manifest, _):
        for payload in manifest["payloads"]:
            payload["backend"] = f"no{payload['backend']}"
    rewrite(artifact, edit)
    np.savez(tmp_path / "x.npz", x=X)
    done = hasten("run", artifact, "--input", tmp_path / "x.npz", status=3)
    assert "noonnxruntime" in done.stderr and "notorchscript" in done.stderr


@pytest.mark.parametrize("name", ["../outside", "payload/0/../../outside", "/tmp/hasten-outside"])
def test_an_entry_that_leads_out_of_the_archive_is_refused(hasten, artifact, tmp_path, name):
    rewrite(artifact, lambda _, entries: entries.update({name: b"x"}))
    before = sorted(tmp_path.rglob("*"))
    done = hasten("verify", artifact, status=None)
    assert done.returncode in (1, 2)
    assert "outside" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/hasten-outside").exists()
