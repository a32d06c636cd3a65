# SPDX-License-Identifier: Apache-2.0
"""Every fault that a candidate can commit is a trial with its reason, and a good one wins."""
# ctest: TIMEOUT 2400 LABELS e2e PROCESSORS 2
import dataclasses
import os
import subprocess

import pytest

from conftest import ROOT, hasten_path
from e2e.tuning import PAIR, PLUGINS, fake, fake_model, read_report, tune

LIMITS = ["--build-timeout", "3s", "--run-timeout", "2s", "--memory-limit", "150MB"]
GOOD = fake(latency_us=1000)  # Twice as fast as the original, ten times slower than the faulty.
GOOD_OF_WHOLE = fake(latency_us=1000, threads=1)


@dataclasses.dataclass
class Expected:
    status: str
    stage: str
    code: str
    words: list[str]  # Of the message.
    config: dict = dataclasses.field(default_factory=dict)


def failed(stage, code, *words, **config):
    return Expected("failed", stage, code, list(words), config)


def rejected(stage, *words, **config):
    return Expected("rejected", stage, "wrong_result", list(words), config)


# All in one tune, so that none of them may disturb another.
FAULTS = {
    "build_fail": failed("build", "build_failed", "operator com.example::Foo is unknown"),
    "bad_utf8": failed("build", "build_failed", "is no UTF-8"),
    "not_std_exception": failed("build", "build_failed", "no std::exception"),
    "build_crash": failed("build", "crashed", "SIGSEGV", "'build'"),
    "abort": failed("build", "crashed", "SIGABRT", "'build'"),
    "exit": failed("build", "crashed", "exit code 3", "'build'"),
    "build_hang": failed("build", "timed_out", "'build'", "time limit"),
    "build_hang_term": failed("build", "timed_out", "'build'", "time limit"),
    "build_grow": failed("build", "out_of_memory", "'build'", "limit of 150 MB"),
    "save_fail": failed("build", "build_failed", "saving the build", "nothing can be saved"),
    "run_fail": failed("check", "run_failed", "sample 0", "it did not work"),
    "run_crash": failed("check", "crashed", "SIGSEGV", "'run'"),
    "run_hang": failed("check", "timed_out", "'run'", "time limit"),
    "run_hang_term": failed("check", "timed_out", "'run'", "time limit"),
    "run_grow": failed("check", "out_of_memory", "'run'", "limit of 150 MB"),
    "zeros": rejected("check", "output 'x' is off by"),
    "wrong_row": rejected("check", "at batch 64", "output 'x'", "at [63,", at_batch=64),
    "swap_outputs": rejected("check", "output 'x' is off by"),
    "wrong_dtype": rejected("check", "output 'x' is int32, not float32"),
    "wrong_shape": rejected("check", "output 'x' is [1,1,3], not [1,3]"),
    "nan_at_batch": rejected("check", "at batch 64", "output 'x' is", "nan", at_batch=64),
    "freeze_batch": rejected("check", "output 'x' is [1,3], not [64,3]", baked_batch=1),
    "alias_input": rejected("check", "output 'x' lies in the memory of input 'a'"),
    "alias_last": rejected("check", "the result of one call changed during the next"),
    "write_input": rejected("check", "it writes into input 'a'"),
    "leak": failed("measure", "out_of_memory", "'turn'", "limit of 150 MB"),
    "load_fail": failed("confirm", "build_failed", "nothing can be loaded"),
    "stale_save": rejected("confirm", "saved and loaded again", "output 'x' is off by"),
}
# Faults that wait until the check is over, or strike at a size that was not recorded.
LATER = {
    "a crash while it is measured": failed("measure", "crashed", "SIGSEGV", "'turn'",
                                           fault="run_crash", after_calls=60),
    "a hang while it is measured": failed("measure", "timed_out", "'turn'",
                                          fault="run_hang_term", after_calls=60),
    "zeros while it is measured": rejected("measure", "output 'x' is off by", fault="zeros",
                                           after_calls=60),
    "a wrong row at an odd size": rejected("check", "(odd)", fault="wrong_row", at_batch=3),
    "NaN at a size nobody recorded": rejected("check", "(not recorded)", "nan",
                                              fault="nan_at_batch", at_batch=32),
    "a batch frozen at another size": rejected("check", "not [1,3]", fault="freeze_batch",
                                               baked_batch=64),
}
# What must not lead to a refusal: strange, but no fault of the values.
HARMLESS = ["print", "no_strides", "write_outside"]

CASES = {**{name: dataclasses.replace(case, config={"fault": name, **case.config})
            for name, case in FAULTS.items()}, **LATER}


def candidate(case: Expected) -> str:
    return fake(latency_us=100, **case.config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def tuned(folder):
    """One tune of everything that goes wrong, with one good candidate among it."""
    fake_model(folder / "pair.fake", function="swap2")
    candidates = [candidate(case) for case in CASES.values()]
    half = len(candidates) // 2
    return tune(folder, "pair.fake", *LIMITS, "-o", "pair.hasten", inputs=PAIR, sizes="1,64",
                backends=[*candidates[:half], GOOD, *candidates[half:]])


def expect(trial: dict, case: Expected):
    found = {key: trial[key] for key in ("status", "stage", "code", "message")}
    assert (trial["status"], trial["stage"], trial["code"]) == (
        case.status, case.stage, case.code), found
    for word in case.words:
        assert word in trial["message"], found


def test_the_good_one_wins_and_every_faster_faulty_one_is_left_out(tuned):
    assert tuned.winner == GOOD
    assert tuned.report["winner"]["fell_back"] is False
    assert tuned.report["winner"]["passed"] is True
    assert tuned.report["winner"]["speedup"]["low"] > 1
    ok = [name for name, trial in tuned.trials.items() if trial["status"] == "ok"]
    assert ok == [GOOD]


def test_the_artifact_of_a_tune_full_of_faults_answers_rightly(tuned, folder, hasten):
    hasten("verify", folder / "pair.hasten", "--plugin", PLUGINS)


@pytest.mark.parametrize("name", CASES)
def test_a_faulty_candidate_is_a_trial_that_says_what_went_wrong(tuned, name):
    trial = tuned.trials[candidate(CASES[name])]
    expect(trial, CASES[name])
    # A hint must not send anybody to a file that went away with the tune.
    assert "worker.log" not in (trial["hint"] or "")


@pytest.mark.parametrize("name", CASES)
def test_the_command_of_a_trial_repeats_its_failure(tuned, folder, name):
    case = CASES[name]
    command = tuned.trials[candidate(case)]["repeat_command"]
    path = folder / f"{list(CASES).index(name)}.json"
    environment = {**os.environ,
                   "PATH": f"{hasten_path().resolve().parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", f"{command} --json {path}"], cwd=folder, env=environment,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 1, done.stderr
    trial, = read_report(path)["trials"]
    expect(trial, case)
    # one-backend raises the error of its candidate as it is.
    for word in case.words:
        assert word in done.stderr


def test_strange_but_right_candidates_are_measured_like_others(tmp_path):
    model = fake_model(tmp_path / "pair.fake", function="swap2")
    done = tune(tmp_path, model, inputs=PAIR,
                backends=[fake(fault=fault, latency_us=1000) for fault in HARMLESS])
    assert {trial["status"] for trial in done.report["trials"]} == {"ok"}
    assert done.report["winner"]["fell_back"] is False


def test_answers_that_turn_wrong_after_many_calls_do_not_win(tmp_path):
    """The check is over by then, and a race looks at times only."""
    model = fake_model(tmp_path / "model.fake")
    late = fake(after_calls=200, fault="zeros", latency_us=100)
    done = tune(tmp_path, model, sizes="1", backends=[late, GOOD])
    expect(done.trials[late], rejected("confirm", "after the race", "output 'y' is off by"))
    assert done.winner == GOOD


def test_a_wrong_row_in_a_batch_that_nobody_measures_is_found(tmp_path):
    model = fake_model(tmp_path / "model.fake")
    wrong = fake(at_batch=64, fault="wrong_row", latency_us=100)
    done = tune(tmp_path, model, "--strategy", "min-latency", backends=[wrong, GOOD])
    expect(done.trials[wrong], rejected("check", "a batch of equal rows: output 'y' is", "at [63,"))
    assert done.trials[wrong]["check"]["rule"] == "equal rows"
    assert done.winner == GOOD


def test_rows_that_are_no_equals_in_the_original_are_no_fault_of_a_candidate(tmp_path):
    """The last of 64 rows is another function; the candidate names no fault and has the model's."""
    model = fake_model(tmp_path / "model.fake", fault="wrong_row", at_batch=64)
    done = tune(tmp_path, model, "--strategy", "min-latency", backends=[GOOD])
    assert done.winner == GOOD


@pytest.mark.parametrize("fault", ["zeros", "wrong_row", "nondeterministic", "wrong_dtype"])
def test_whole_numbers_have_to_be_exact(tmp_path, fault):
    model = fake_model(tmp_path / "whole.fake", dtype="int32")
    faulty = fake(fault=fault, latency_us=100)
    done = tune(tmp_path, model, inputs=["x=int32[B,3]"], backends=[faulty, GOOD_OF_WHOLE])
    assert done.trials[faulty]["status"] == "rejected"
    assert done.trials[faulty]["code"] == "wrong_result"
    assert done.winner == GOOD_OF_WHOLE


def test_the_original_is_kept_when_every_candidate_is_faulty(tmp_path):
    model = fake_model(tmp_path / "pair.fake", function="swap2")
    done = tune(tmp_path, model, "-o", "pair.hasten", inputs=PAIR,
                backends=[fake(fault=fault, latency_us=100)
                          for fault in ["build_crash", "zeros", "run_crash"]])
    assert done.winner == "fake"
    assert done.report["winner"]["fell_back"] is True
    assert done.report["winner"]["passed"] is False
    for reason in ["SIGSEGV", "off by"]:
        assert reason in done.report["winner"]["why"]


def test_without_the_original_it_is_an_error_that_names_every_reason(tmp_path):
    model = fake_model(tmp_path / "pair.fake", function="swap2")
    done = tune(tmp_path, model, "--no-performance-validation", "-o", "pair.hasten", inputs=PAIR,
                status=1, backends=[fake(fault=fault, latency_us=100)
                                    for fault in ["build_crash", "zeros"]])
    for reason in ["SIGSEGV", "off by"]:
        assert reason in done.report["error"]
        assert reason in done.stderr
    assert done.report["winner"] is None
    assert not (tmp_path / "pair.hasten").exists()


def test_a_fast_wrong_answer_does_not_win_over_a_real_engine(tmp_path, require_backend):
    """y = 2x + 1, by ONNX Runtime and by the fake backend, which is scripted to be faster."""
    require_backend("onnxruntime")
    model = ROOT / "tests" / "data" / "onnx" / "affine.onnx"
    wrong = [fake(function="affine", fault="zeros"), fake(function="affine", fault="run_crash"),
             fake(function="scale")]
    done = tune(tmp_path, model, backends=["onnxruntime", *wrong])
    assert [done.trials[name]["status"] for name in wrong] == ["rejected", "failed", "rejected"]
    assert done.report["winner"]["backend"] == "onnxruntime"
    real = [trial for trial in done.report["trials"] if trial["backend"] == "onnxruntime"]
    assert any(trial["status"] == "ok" for trial in real)
    assert all(trial["check"]["passed"] for trial in real)
