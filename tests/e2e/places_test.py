# SPDX-License-Identifier: Apache-2.0
"""Files where they are hard to write or oddly named: a full disk, a read-only folder, a path with
spaces, quotes, `$` and Chinese letters, paths relative to the working folder."""
# ctest: TIMEOUT 2400 LABELS e2e PROCESSORS 2
import contextlib
import ctypes
import functools
import os
import resource
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest

from conftest import ROOT, hasten_path
from e2e.tuning import AFFINE, PLUGINS, command, fake, fake_model, read_report, tune

ODD = "a b/c'd \"e\" $HOME `f`/模型-é"
GOOD = fake(latency_us=500)
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


def quick(folder: Path, model, *arguments, **options):
    return tune(folder, model, *arguments, sizes="1", backends=[GOOD], **options)


@functools.cache
def leave_the_mounts_of_others():
    """From here on what this process mounts is its own, and goes with it however it ends."""
    CLONE_NEWNS = 0x20000
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@contextlib.contextmanager
def mounted(folder: Path, *words):
    folder.mkdir()
    leave_the_mounts_of_others()
    done = subprocess.run(["mount", *words, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64k", "none") as folder:
        yield folder


@pytest.fixture
def read_only(tmp_path):
    """A read-only folder that holds an artifact already, for root as for anybody."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "out.hasten").write_bytes(b"what was there")
    with mounted(tmp_path / "read-only", "--bind", str(kept)) as folder:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield folder


def big_model(path: Path) -> Path:
    """Its samples make an artifact of some megabytes."""
    path.write_text("hasten-model fake\nfunction identity\nlatency_us 2000\n"
                    "input x float32[B,65536]\noutput y float32[B,65536]\n", encoding="utf-8")
    return path


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".hasten-")]


@ROOT_ONLY
def test_a_full_disk_is_told_and_the_artifact_that_was_there_stays(tmp_path, small_disk):
    fake_model(tmp_path / "small.fake")
    shutil.copy(first_artifact(tmp_path), small_disk / "out.hasten")
    before = (small_disk / "out.hasten").read_bytes()
    done = tune(tmp_path, big_model(tmp_path / "big.fake"), "-o", small_disk / "out.hasten",
                inputs=["x=float32[B,65536]"], sizes="1", backends=[GOOD], status=1)
    assert "No space left on device" in done.stderr
    assert str(small_disk / "out.hasten") in done.stderr
    assert "hint: free some space" in done.stderr
    assert "No space left on device" in done.report["error"]
    assert done.report["artifact"] is None
    assert done.winner == GOOD  # What was found out is in the report all the same.
    assert (small_disk / "out.hasten").read_bytes() == before
    assert leftovers(small_disk) == []


def first_artifact(folder: Path) -> Path:
    quick(folder, fake_model(folder / "first.fake"), "-o", "first.hasten", name="first")
    return folder / "first.hasten"


def test_a_file_that_may_not_grow_further_is_told_too(tmp_path):
    """A limit on the size of files, as a quota has it; works for everybody."""
    artifact = first_artifact(tmp_path)
    before = artifact.read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
    words = command(big_model(tmp_path / "big.fake"), "-o", artifact, "--json", "report.json",
                    inputs=["x=float32[B,65536]"], sizes="1", backends=[GOOD])
    done = subprocess.run(words, cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 1, done.stderr
    assert f"'{artifact}': File too large" in done.stderr
    assert artifact.read_bytes() == before
    assert leftovers(tmp_path) == []


@ROOT_ONLY
def test_a_read_only_folder_is_told_before_any_work_is_done(tmp_path, read_only):
    model = fake_model(tmp_path / "model.fake")
    done = quick(tmp_path, model, "-o", read_only / "out.hasten", status=None)
    assert done.status in (1, 2)
    assert "Read-only file system" in done.stderr
    assert str(read_only) in done.stderr
    assert "hint: " in done.stderr
    assert "running the original" not in done.stderr
    assert (read_only / "out.hasten").read_bytes() == b"what was there"


@pytest.mark.parametrize("place", ["/proc/out.hasten", "/proc/self/fd/none/out.hasten",
                                   "nowhere/out.hasten"])
def test_a_folder_that_takes_no_files_is_told_before_any_work_is_done(tmp_path, place):
    done = quick(tmp_path, fake_model(tmp_path / "model.fake"), "-o", place, status=None)
    assert done.status in (1, 2)
    assert str(Path(place).parent) in done.stderr
    assert "running the original" not in done.stderr


def test_a_folder_in_place_of_the_output_is_bad_usage(tmp_path):
    (tmp_path / "folder").mkdir()
    done = quick(tmp_path, fake_model(tmp_path / "model.fake"), "-o", "folder", status=2)
    assert "folder: is a folder" in done.stderr
    assert "hint: name a file in it" in done.stderr
    assert "running the original" not in done.stderr


def test_a_report_that_cannot_be_written_is_told_and_the_artifact_is_there(tmp_path):
    model = fake_model(tmp_path / "model.fake")
    words = command(model, "-o", "out.hasten", "--json", "/dev/full", sizes="1", backends=[GOOD])
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "/dev/full" in done.stderr
    assert "No space left on device" in done.stderr
    assert (tmp_path / "out.hasten").exists()
    assert Path("/dev/full").is_char_device(), "a device must not be replaced by a file"


def test_an_artifact_for_a_device_is_refused_or_written_and_the_device_stays(tmp_path):
    done = quick(tmp_path, fake_model(tmp_path / "model.fake"), "-o", "/dev/full", status=None)
    assert done.status in (1, 2)
    assert "/dev/full" in done.stderr
    assert Path("/dev/full").is_char_device()
    Path("/dev/full.journal.jsonl").unlink(missing_ok=True)


@ROOT_ONLY
def test_a_temporary_folder_that_is_full_is_told(tmp_path, small_disk):
    model = fake_model(tmp_path / "model.fake")
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    done = quick(tmp_path, model, "-o", "out.hasten", status=None,
                 environment={"TMPDIR": str(small_disk)})
    assert done.status == 1
    assert "No space left on device" in done.stderr
    assert not (tmp_path / "out.hasten").exists()


def test_everything_works_in_a_path_with_spaces_quotes_dollars_and_chinese(tmp_path, hasten):
    folder = tmp_path / ODD
    folder.mkdir(parents=True)
    (folder / "tmp $(g)").mkdir()
    model = fake_model(folder / "m o'del $1 模型.fake")
    sample = folder / "sam ple's $2 模型.npz"
    numpy.savez(sample, x=numpy.ones((1, 3), numpy.float32))
    artifact = folder / "out put's \"$3\" 模型.hasten"
    environment = {"TMPDIR": str(folder / "tmp $(g)"), "LC_ALL": "C"}
    crash = fake(fault="run_crash")
    done = tune(folder, model, "-o", artifact, inputs=[sample, *AFFINE], backends=[GOOD, crash],
                environment=environment)
    assert done.winner == GOOD
    assert done.report["artifact"] == str(artifact)
    assert str(artifact) in done.stdout

    output = folder / "y 模型.npz"
    hasten("run", artifact, "--plugin", PLUGINS, "--input", sample, "-o", output)
    numpy.testing.assert_array_equal(numpy.load(output)["y"], numpy.full((1, 3), 3, numpy.float32))
    hasten("verify", artifact, "--plugin", PLUGINS)
    hasten("inspect", artifact, "--plugin", PLUGINS)

    # The command that repeats a trial survives the shell, in another folder too.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = subprocess.run(
        ["sh", "-c", done.trials[crash]["repeat_command"] + " --json again.json"], cwd=elsewhere,
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
        env={**os.environ, **environment,
             "PATH": f"{hasten_path().resolve().parent}:{os.environ['PATH']}"})
    assert again.returncode == 1
    assert "SIGSEGV" in again.stderr
    assert read_report(elsewhere / "again.json")["trials"][0]["code"] == "crashed"


def test_real_engines_work_in_such_a_path(tmp_path, hasten, require_backend):
    require_backend("onnxruntime")
    require_backend("openvino")
    folder = tmp_path / ODD
    folder.mkdir(parents=True)
    data = ROOT / "tests" / "data" / "onnx"
    shutil.copytree(data / "weights", folder / "weights")
    shutil.copy(data / "external.onnx", folder / "模型 $x.onnx")
    done = tune(folder, "模型 $x.onnx", "-o", "模型 $x.hasten", inputs=[], sizes="1,2",
                backends=["onnxruntime:threads=1", "openvino:threads=1"])
    # "dropped": correct, and a busy machine did not confirm it.
    assert {trial["status"] for trial in done.report["trials"]} <= {"ok", "dropped"}
    hasten("verify", folder / "模型 $x.hasten")


def test_paths_are_relative_to_the_working_folder(tmp_path, hasten):
    (tmp_path / "models").mkdir()
    (tmp_path / "results").mkdir()
    fake_model(tmp_path / "models" / "model.fake")
    numpy.savez(tmp_path / "models" / "x.npz", x=numpy.zeros((1, 3), numpy.float32))
    shutil.copytree(PLUGINS, tmp_path / "plugins", ignore=shutil.ignore_patterns("[!h]*"))
    words = [str(hasten_path().resolve()), "tune", "../models/model.fake", "--plugin",
             "../plugins", "--input", "../models/x.npz", "--batch-sizes", "1", "--backend", GOOD,
             "-o", "out.hasten", "--json", "report.json"]
    done = subprocess.run(words, cwd=tmp_path / "results", capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "out.hasten", "out.hasten.journal.jsonl", "report.json"]
    hasten("run", "results/out.hasten", "--plugin", "plugins", "--input", "models/x.npz",
           "-o", "results/y.npz", cwd=tmp_path)
    assert numpy.load(tmp_path / "results" / "y.npz")["y"].tolist() == [[1, 1, 1]]


def test_a_link_to_an_artifact_stays_a_link(tmp_path):
    model = fake_model(tmp_path / "model.fake")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "v1.hasten").write_bytes(b"old")
    (tmp_path / "current.hasten").symlink_to("store/v1.hasten")
    quick(tmp_path, model, "-o", "current.hasten")
    assert (tmp_path / "current.hasten").is_symlink()
    assert (tmp_path / "store" / "v1.hasten").read_bytes()[:2] == b"PK"


def test_an_artifact_stays_when_the_tune_that_would_replace_it_fails(tmp_path):
    artifact = first_artifact(tmp_path)
    before = artifact.read_bytes()
    done = tune(tmp_path, fake_model(tmp_path / "model.fake"), "--no-performance-validation", "-o",
                artifact, sizes="1", backends=[fake(fault="zeros")], status=1)
    assert done.report["artifact"] is None
    assert artifact.read_bytes() == before
