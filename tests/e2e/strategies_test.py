# SPDX-License-Identifier: Apache-2.0
"""Each strategy on real runs whose candidates take as long as the test says."""
# ctest: TIMEOUT 2400 LABELS e2e PROCESSORS 2
import json
import subprocess

import pytest

from conftest import ROOT
from e2e.tuning import command, fake, fake_model, tune
from schema import validate

# The original takes 2 ms a call, whatever the batch size.
ORIGINAL = 2000
FAST_CALLS = fake(batch_latency_us=0, latency_us=1000)     # 1 ms at 1 row, 1 ms at 8 rows.
CHEAP_ROWS = fake(batch_latency_us=10, latency_us=400)     # 0.41 ms, 0.48 ms: best at both.
LOW_LATENCY = fake(batch_latency_us=250, latency_us=0)     # 0.25 ms, 2 ms: best at 1 row only.
SLOW = fake(batch_latency_us=0, latency_us=4000)
WRONG = fake(fault="zeros", latency_us=50)


@pytest.fixture
def model(tmp_path):
    return fake_model(tmp_path / "model.fake", latency_us=ORIGINAL)


def test_max_throughput_takes_the_one_with_the_most_rows_a_second(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "max-throughput", sizes="1,8",
                backends=[SLOW, FAST_CALLS, LOW_LATENCY, WRONG])
    winner = done.report["winner"]
    assert done.winner == FAST_CALLS
    assert winner["selected_batch_size"] == 8
    assert winner["throughput"] == pytest.approx(8000, rel=0.25)  # 8 rows in 1 ms.
    assert winner["latency_ms"] == pytest.approx(1, rel=0.25)
    assert winner["speedup"]["low"] > 1
    assert (winner["passed"], winner["fell_back"]) == (True, False)


def test_batch_sizes_beyond_the_declared_range_are_not_measured(tmp_path, model):
    for declared, measured in (("1..5", [1, 2, 4, 5]), ("4..8", [4, 8])):
        done = tune(tmp_path, model, inputs=[f"x=float32[B={declared},3]"], backends=[FAST_CALLS],
                    sizes=None)
        assert [point["batch_size"] for point in done.trials[FAST_CALLS]["points"]] == measured
        assert done.report["winner"]["selected_batch_size"] == measured[-1]
    only_latency = tune(tmp_path, model, "--strategy", "min-latency", sizes=None,
                        inputs=["x=float32[B=4..8,3]"], backends=[FAST_CALLS])
    assert only_latency.report["winner"]["selected_batch_size"] == 4


def test_the_sweep_ends_at_the_second_size_that_gains_nothing(tmp_path):
    by_rows = fake(batch_latency_us=500, latency_us=0)  # 2000 rows/s at every size.
    flat = fake_model(tmp_path / "flat.fake", latency_us=0, batch_latency_us=1000)
    done = tune(tmp_path, flat, sizes="", backends=[by_rows])
    assert [point["batch_size"] for point in done.trials[by_rows]["points"]] == [1, 2, 4]


def test_min_latency_takes_the_fastest_at_one_row(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "min-latency", sizes="1,8",
                backends=[SLOW, FAST_CALLS, LOW_LATENCY, WRONG])
    assert done.winner == LOW_LATENCY
    assert done.report["winner"]["selected_batch_size"] == 1
    assert done.report["winner"]["latency_ms"] == pytest.approx(0.25, rel=0.25)


def test_latency_budget_takes_the_most_rows_a_second_within_it(tmp_path, model):
    per_row = fake(batch_latency_us=100, latency_us=0)   # 0.1 ms, 0.8 ms: 10000 rows/s.
    by_call = fake(batch_latency_us=0, latency_us=700)   # 0.7 ms, 0.7 ms: 11429 rows/s at 8.
    done = tune(tmp_path, model, "--strategy", "latency-budget", "--latency-budget", "500us",
                sizes="1,8", backends=[by_call, per_row])
    assert done.winner == per_row
    assert done.report["winner"]["selected_batch_size"] == 1


def test_latency_budget_that_nobody_meets_is_an_error_that_names_the_nearest(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "latency-budget", "--latency-budget", "200us",
                sizes="1,8", backends=[FAST_CALLS, CHEAP_ROWS], status=1)
    assert done.report["winner"] is None
    for text in (done.report["error"], done.stderr):
        assert CHEAP_ROWS in text
        assert "batch size 1" in text
        assert "0.2 ms" in text


def test_first_wins_takes_the_first_good_one_and_tries_none_behind_it(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "first-wins", sizes="1",
                backends=[WRONG, SLOW, FAST_CALLS, CHEAP_ROWS])
    assert done.winner == FAST_CALLS
    states = {name: trial["status"] for name, trial in done.trials.items()}
    assert states == {WRONG: "rejected", SLOW: "ok", FAST_CALLS: "ok", CHEAP_ROWS: "dropped"}
    assert done.trials[CHEAP_ROWS]["build_s"] is None


def test_first_wins_goes_on_when_the_first_good_one_cannot_be_loaded_again(tmp_path, model):
    unloadable = fake(fault="load_fail", latency_us=100)
    done = tune(tmp_path, model, "--strategy", "first-wins", sizes="1",
                backends=[unloadable, FAST_CALLS])
    assert done.trials[unloadable]["stage"] == "confirm"
    assert done.winner == FAST_CALLS


def test_one_backend_takes_the_backend_that_was_named(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "one-backend", backends=[FAST_CALLS])
    assert done.winner == FAST_CALLS
    assert done.report["strategy"]["name"] == "one-backend"


@pytest.mark.parametrize("fault, words", [
    ("build_fail", "operator com.example::Foo is unknown"), ("build_crash", "SIGSEGV"),
    ("zeros", "output 'y' is off by"), ("run_fail", "it did not work")])
def test_one_backend_raises_the_error_of_its_candidate(tmp_path, model, fault, words):
    done = tune(tmp_path, model, "--strategy", "one-backend", status=1, sizes="1",
                backends=[fake(fault=fault, latency_us=100)])
    assert words in done.stderr
    assert words in done.report["error"]
    assert done.report["winner"] is None
    assert done.report["trials"][0]["message"] in done.report["error"]


def test_one_backend_wants_exactly_one_backend(tmp_path, model):
    done = tune(tmp_path, model, "--strategy", "one-backend", status=2)
    assert "exactly one backend" in done.stderr


@pytest.mark.parametrize("strategy", ["one-backend", "first-wins", "max-throughput", "min-latency"])
def test_the_original_is_kept_where_no_candidate_is_faster(tmp_path, model, strategy):
    done = tune(tmp_path, model, "--strategy", strategy, "-o", "kept.hasten", sizes="1",
                backends=[SLOW])
    winner = done.report["winner"]
    assert done.winner == "fake"
    assert (winner["passed"], winner["fell_back"]) == (False, True)
    assert "the original model is kept" in winner["why"]
    assert SLOW in winner["why"]
    assert "kept" in done.stdout
    assert (tmp_path / "kept.hasten").exists()


def test_without_performance_validation_the_best_candidate_wins_though_it_is_slower(tmp_path,
                                                                                    model):
    slower = fake(latency_us=6000)
    done = tune(tmp_path, model, "--no-performance-validation", sizes="1",
                backends=[slower, SLOW, WRONG])
    assert done.winner == SLOW
    assert done.report["winner"]["fell_back"] is False
    assert done.report["strategy"]["performance_validation"] is False


@pytest.mark.parametrize("strategy", ["first-wins", "max-throughput", "min-latency"])
def test_without_performance_validation_nobody_right_is_an_error(tmp_path, model, strategy):
    done = tune(tmp_path, model, "--strategy", strategy, "--no-performance-validation", status=1,
                sizes="1", backends=[WRONG])
    assert "off by" in done.stderr
    assert done.report["winner"] is None


@pytest.mark.parametrize("strategy", ["max-throughput", "min-latency", "first-wins", "one-backend"])
def test_two_per_cent_slower_keeps_the_original(tmp_path, model, strategy):
    done = tune(tmp_path, model, "--strategy", strategy, sizes="1",
                backends=[fake(latency_us=2040)])
    assert done.winner == "fake"
    assert done.report["winner"]["fell_back"] is True


def test_the_original_beside_itself_is_the_same_or_cannot_be_told(tmp_path, model):
    """Not faster: a difference that is not there must not be found."""
    done = tune(tmp_path, model, sizes="1", backends=[fake(latency_us=ORIGINAL)])
    verdicts = {point["verdict"] for point in done.report["trials"][0]["points"]}
    assert verdicts <= {"same", "cannot_tell"}
    assert done.winner == "fake"
    assert done.report["winner"]["fell_back"] is True


def test_of_two_equals_the_one_named_first_is_taken(tmp_path, model):
    twins = [fake(latency_us=1000, seed=seed) for seed in (2, 1)]
    done = tune(tmp_path, model, sizes="1", backends=twins)
    assert done.winner == twins[0]


def test_a_good_one_wins_though_a_far_faster_one_gives_way_at_the_end(tmp_path, model):
    """It left the race early, behind one that then could not be loaded from what it saved."""
    unloadable = fake(fault="load_fail", latency_us=50)
    done = tune(tmp_path, model, sizes="1", backends=[unloadable, FAST_CALLS])
    assert done.trials[unloadable]["stage"] == "confirm"
    assert done.winner == FAST_CALLS
    assert done.report["winner"]["passed"] is True


@pytest.mark.parametrize("backend, status, words", [
    ("nonesuch", 2, "there is no backend 'nonesuch'"),
    ("fake:speed=9", 2, "unknown option 'speed'"),
    ("fake:latency_us=soon", 2, "option 'latency_us' wants"),
    ("fake:fault=unknown", 2, "option 'fault' wants one of")])
def test_a_backend_that_cannot_be_meant_is_refused_before_any_work(tmp_path, model, backend,
                                                                   status, words):
    done = tune(tmp_path, model, backends=[backend], status=status)
    assert words in done.stderr
    assert "running the original" not in done.stderr


def test_a_named_backend_that_cannot_work_here_is_told_by_its_own_exit_code(tmp_path, model):
    done = tune(tmp_path, model, backends=["fake"], status=3,
                environment={"HASTEN_FAKE_PROBE": "unavailable"})
    assert "switched off by HASTEN_FAKE_PROBE" in done.stderr
    assert "hint: unset HASTEN_FAKE_PROBE" in done.stderr


def test_a_backend_that_crashes_while_it_looks_around_is_a_reason_like_any_other(
        tmp_path, require_backend):
    """The one beside it goes on."""
    require_backend("onnxruntime")
    model = ROOT / "tests" / "data" / "onnx" / "affine.onnx"
    crash = {"HASTEN_FAKE_PROBE": "crash"}
    done = tune(tmp_path, model, backends=["onnxruntime:threads=1"], sizes="1", environment=crash)
    assert done.report["baseline"]["backend"] == "onnxruntime"
    named = tune(tmp_path, model, backends=["fake:function=affine"], sizes="1", status=3,
                 environment=crash)
    assert "the backend 'fake' is unavailable" in named.stderr
    assert "SIGSEGV" in named.stderr


def test_json_on_stdout_is_the_whole_report_also_when_nothing_is_left(tmp_path, model):
    words = command(model, "--no-performance-validation", "--json", "-", backends=[WRONG])
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert validate.errors(report, "tune") == []
    assert report["error"] and report["trials"][0]["status"] == "rejected"
