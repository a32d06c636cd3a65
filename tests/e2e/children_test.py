# SPDX-License-Identifier: Apache-2.0
"""Whatever ends the tuner, in whatever moment: no process of it is left, and what was finished is
in the journal."""
# ctest: TIMEOUT 2400 LABELS e2e PROCESSORS 2
import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from conftest import ROOT
from e2e.tuning import command, fake, fake_model, tune

MARK = "HASTEN_TEST_MARK"


def until(condition, timeout=60, what="the condition"):
    """The first true value of condition(), asked again and again."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {timeout} s"
        time.sleep(0.02)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # It ended meanwhile.
        return b""


class Tuner:
    """`hasten tune` with a mark in its environment, which all that descends from it carry."""

    def __init__(self, folder: Path, model, *arguments, **options):
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.mark = f"{MARK}={uuid.uuid4()}"
        self.errors = folder / "stderr.txt"
        words = command(model, "-o", "out.hasten", "--json", "report.json", *arguments, **options)
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=errors, env={**os.environ, "TMPDIR": str(self.temporary),
                                    MARK: self.mark.split("=")[1]})

    def processes(self) -> list[Path]:
        """Those that are alive, the tuner itself included."""
        return [path for path in Path("/proc").glob("[0-9]*")
                if self.mark.encode() in read(path / "environ").split(b"\0")]

    def worker_of(self, candidate: int) -> Path | None:
        """The worker that builds or runs the candidate of this number."""
        for path in self.processes():
            try:
                folder = os.readlink(path / "cwd")
            except OSError:
                continue
            if f"candidate-{candidate}/" in folder and b"hasten_fake" in read(path / "maps"):
                return path
        return None

    def says(self, text: str) -> bool:
        return text.encode() in read(self.errors)

    def end(self, number: int):
        self.process.send_signal(number)

    def assert_nothing_is_left(self):
        until(lambda: not self.processes(), 10, "the end of every process")

    def left_folders(self) -> list[str]:
        return sorted(path.name for path in self.temporary.iterdir())

    def journal(self) -> list[dict]:
        """Every line has to be one JSON object, also the last."""
        text = (self.folder / "out.hasten.journal.jsonl").read_text(encoding="utf-8")
        assert text == "" or text.endswith("\n")
        records = [json.loads(line) for line in text.splitlines()]
        assert all(isinstance(record, dict) and record["kind"] for record in records)
        return records


def ignored_signals(process: Path) -> set[int]:
    for line in read(process / "status").splitlines():
        if line.startswith(b"SigIgn:"):
            mask = int(line.split()[1], 16)
            return {number for number in range(1, 65) if mask >> (number - 1) & 1}
    return set()


def resident_kb(process: Path) -> int:
    for line in read(process / "status").splitlines():
        if line.startswith(b"VmRSS:"):
            return int(line.split()[1])
    return 0


GOOD = fake(latency_us=1000)


def until_the_first_candidate_is_kept(tuner: Tuner):
    """That it agrees is said a moment before it is written down."""
    until(lambda: tuner.says("agrees on"), what="the first candidate")
    until(lambda: any(record["kind"] == "trial" for record in tuner.journal()), what="its record")


def in_the_middle_of_a_build(folder: Path) -> Tuner:
    """The first candidate is done; the second takes memory, slowly, and then rests."""
    model = fake_model(folder / "model.fake")
    tuner = Tuner(folder, model, backends=[GOOD, fake(fault="build_grow")])
    until(lambda: (worker := tuner.worker_of(1)) and resident_kb(worker) > 64 << 10,
          what="the build")
    until_the_first_candidate_is_kept(tuner)
    return tuner


def in_a_hang_that_ignores_sigterm(folder: Path) -> Tuner:
    model = fake_model(folder / "model.fake")
    tuner = Tuner(folder, model, backends=[GOOD, fake(fault="run_hang_term")])
    until(lambda: (worker := tuner.worker_of(1)) and signal.SIGTERM in ignored_signals(worker),
          what="the hang")
    until_the_first_candidate_is_kept(tuner)
    return tuner


def while_it_measures(folder: Path) -> Tuner:
    """Between the first and the second batch size, when some children are stopped."""
    model = fake_model(folder / "model.fake", latency_us=40000)
    tuner = Tuner(folder, model, backends=[fake(latency_us=30000), fake(latency_us=35000)],
                  sizes="1,2,3,4,5,6,7,8")
    until(lambda: tuner.says("batch 1: "), what="the first batch size")
    return tuner


MOMENTS = [in_the_middle_of_a_build, in_a_hang_that_ignores_sigterm, while_it_measures]
moments = pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)


@moments
def test_ctrl_c_ends_it_within_two_seconds_and_keeps_what_was_finished(tmp_path, moment):
    tuner = moment(tmp_path)
    tuner.end(signal.SIGINT)
    assert tuner.process.wait(timeout=2) == 130
    tuner.assert_nothing_is_left()
    assert tuner.left_folders() == []
    finished = [record for record in tuner.journal() if record["kind"] == "trial"]
    assert any(record["check"] and record["check"]["passed"] for record in finished)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert "ended" in report["error"]
    assert report["winner"] is None
    assert not (tmp_path / "out.hasten").exists()


@moments
def test_sigterm_ends_it_and_all_that_descends_from_it(tmp_path, moment):
    tuner = moment(tmp_path)
    tuner.end(signal.SIGTERM)
    assert tuner.process.wait(timeout=10) == 130
    tuner.assert_nothing_is_left()
    assert tuner.left_folders() == []
    tuner.journal()


@moments
def test_sigkill_leaves_no_process_and_its_folder_goes_with_the_next_tune(tmp_path, moment):
    tuner = moment(tmp_path)
    tuner.end(signal.SIGKILL)
    assert tuner.process.wait(timeout=10) == -signal.SIGKILL
    tuner.assert_nothing_is_left()
    assert any(record["kind"] == "trial" for record in tuner.journal())
    assert tuner.left_folders(), "nothing was left, so nothing can be seen to go"
    tune(tmp_path, tmp_path / "model.fake", backends=[GOOD], sizes="1", name="next",
         environment={"TMPDIR": str(tuner.temporary)})
    assert tuner.left_folders() == []


def test_a_second_ctrl_c_ends_it_at_once_and_leaves_no_process(tmp_path):
    tuner = in_a_hang_that_ignores_sigterm(tmp_path)
    tuner.end(signal.SIGINT)
    tuner.end(signal.SIGINT)
    assert tuner.process.wait(timeout=10) in (130, -signal.SIGINT)
    tuner.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("children_too", [False, True], ids=["alone", "with its children"])
def test_an_end_while_the_original_runs_is_not_blamed_on_the_model(tmp_path, number, children_too):
    """Some who end a program end all its processes, the children first."""
    model = fake_model(tmp_path / "model.fake", fault="run_hang")
    tuner = Tuner(tmp_path, model, sizes="1")
    until(lambda: tuner.says("running the original") and len(tuner.processes()) > 1,
          what="the original")
    if children_too:
        for path in tuner.processes():
            if int(path.name) != tuner.process.pid:
                os.kill(int(path.name), number)
    tuner.end(number)
    assert tuner.process.wait(timeout=10) == 130
    errors = [line for line in tuner.errors.read_text().splitlines() if line.startswith("error")]
    assert errors == ["error: the tune was ended"]
    tuner.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
def test_a_compiler_and_what_it_started_end_with_the_tuner(tmp_path, number, require_backend):
    """A conversion runs in Python, in a child of its own that starts others."""
    require_backend("inductor")
    model = ROOT / "tests" / "data" / "torchscript" / "affine.pt"
    tuner = Tuner(tmp_path, model, backends=["inductor"])

    def compiling():
        return any(b"hasten.compilers" in read(path / "cmdline") for path in tuner.processes())
    until(compiling, 120, "the compiler")
    tuner.end(number)
    assert tuner.process.wait(timeout=2 if number == signal.SIGINT else 10) in (130, -number)
    tuner.assert_nothing_is_left()
    if number == signal.SIGINT:
        assert tuner.left_folders() == []


def test_a_finished_tune_leaves_no_process_and_no_folder(tmp_path):
    model = fake_model(tmp_path / "model.fake")
    tuner = Tuner(tmp_path, model, backends=[GOOD, fake(fault="build_crash"),
                                             fake(fault="run_hang_term")],
                  sizes="1")
    until(lambda: (worker := tuner.worker_of(2)) and signal.SIGTERM in ignored_signals(worker),
          what="the hang")
    # Somebody ends what hangs, from outside: the tune goes on.
    os.kill(int(tuner.worker_of(2).name), signal.SIGKILL)
    assert tuner.process.wait(timeout=120) == 0
    tuner.assert_nothing_is_left()
    assert tuner.left_folders() == []
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    hung = report["trials"][2]
    assert (hung["status"], hung["code"]) == ("failed", "crashed")
    assert "SIGKILL" in hung["message"]
    assert "memory" in hung["hint"]


def test_engines_write_nothing_into_the_home_or_the_temporary_folder(tmp_path, require_backend):
    """ONNX Runtime reports its use, and keeps an identifier of the machine for it, if it may."""
    require_backend("onnxruntime")
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    model = ROOT / "tests" / "data" / "onnx" / "affine.onnx"
    tune(tmp_path, model, "-o", "out.hasten", backends=["onnxruntime:threads=1"], sizes="1",
         environment={"HOME": str(home), "TMPDIR": str(temporary)})
    assert list(home.rglob("*")) == []
    assert list(temporary.rglob("*")) == []
