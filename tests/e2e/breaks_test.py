# SPDX-License-Identifier: Apache-2.0
"""What breaks at one size, after many calls or for want of memory and time costs no more than
that: not the figures of other sizes, not the other candidates, not the tune."""
# ctest: TIMEOUT 1200 LABELS e2e PROCESSORS 2
import json
import zipfile

from e2e.tuning import PLUGINS, fake, fake_model, tune

# Of models whose file names a fault, which is then that of the original alone.
SOUND = {"fault": "none"}
FAST = fake(latency_us=1000, **SOUND)
SLOW = fake(latency_us=3000, **SOUND)


def sizes_of(trial: dict) -> list[int]:
    return [point["batch_size"] for point in trial["points"]]


def test_an_original_that_crashes_at_a_size_is_measured_at_the_smaller_ones(tmp_path, hasten):
    """Each of the two candidates has its turn with it, one after the other."""
    model = fake_model(tmp_path / "model.fake", fault="run_crash", at_batch=4)
    done = tune(tmp_path, model, "--strategy", "first-wins", "-o", "model.hasten", sizes="",
                backends=[SLOW, FAST])
    assert done.winner == FAST
    assert sizes_of(done.report["baseline"]) == [1, 2]
    assert sizes_of(done.trials[SLOW]) == sizes_of(done.trials[FAST]) == [1, 2]
    assert "not measured from batch 4 on" in done.report["baseline"]["note"]
    assert done.stderr.count("the original fails at batch 4") == 1
    assert "SIGSEGV" in done.stderr
    # Its place behind the winner is kept for it.
    with zipfile.ZipFile(tmp_path / "model.hasten") as artifact:
        manifest = json.loads(artifact.read("manifest.json"))
    assert len(manifest["graphs"][0]["routes"]) == 2
    # The report inside is the finished one.
    assert 0 < manifest["report"]["total_s"] <= done.report["total_s"]
    assert 0 < manifest["report"]["harness_s"] < manifest["report"]["total_s"]
    hasten("verify", tmp_path / "model.hasten", "--plugin", PLUGINS)


def test_an_original_that_crashes_at_a_size_to_check_is_not_checked_there(tmp_path):
    model = fake_model(tmp_path / "model.fake", fault="run_crash", at_batch=3)
    done = tune(tmp_path, model, backends=[FAST])
    assert done.winner == FAST
    warning, = (text for text in done.report["warnings"] if "B = 3" in text)
    assert "SIGSEGV" in warning


def test_an_original_that_crashes_while_it_is_measured_is_told_of(tmp_path):
    # A turn is two calls. 18 at most are over before the race, which has at least 16.
    model = fake_model(tmp_path / "model.fake", latency_us=20_000, fault="run_crash",
                       after_calls=20)
    done = tune(tmp_path, model, "-o", "model.hasten", sizes="1", backends=[FAST])
    assert "the original fails at batch 1" in done.stderr
    assert "SIGSEGV" in done.stderr
    assert (tmp_path / "model.hasten").exists()


def test_an_original_that_cannot_be_saved_is_told_of_with_the_reason(tmp_path):
    model = fake_model(tmp_path / "model.fake", fault="save_fail")
    done = tune(tmp_path, model, "-o", "model.hasten", sizes="1", backends=[SLOW])
    assert done.winner == "fake"
    warning, = (text for text in done.report["warnings"] if SLOW in text)
    assert "could not be saved" in warning
    assert "nothing can be saved" in warning
    assert "Python" not in warning


def test_a_candidate_that_crashes_at_a_size_wins_at_a_smaller_one(tmp_path, hasten):
    """50000 rows/s at every size; of the original 32000 at batch 64, where it is best."""
    crashing = fake(at_batch=4, batch_latency_us=20, fault="run_crash", latency_us=0)
    model = fake_model(tmp_path / "model.fake")
    done = tune(tmp_path, model, "-o", "model.hasten", sizes="1,2,4,64", inputs=["x=float32[B,3]"],
                backends=[crashing])
    assert done.trials[crashing]["status"] == "failed"  # It was recorded at that size.
    done = tune(tmp_path, model, "-o", "model.hasten", sizes="", backends=[crashing])
    trial = done.trials[crashing]
    assert (trial["status"], sizes_of(trial)) == ("ok", [1, 2])
    assert "not measured from batch 4 on" in trial["note"]
    assert "SIGSEGV" in trial["note"]
    assert done.winner == crashing
    assert sizes_of(done.report["baseline"])[:3] == [1, 2, 4]
    hasten("verify", tmp_path / "model.hasten", "--plugin", PLUGINS)


def test_a_parked_candidate_that_gave_way_does_not_come_back(tmp_path):
    """Fast for its first calls: in the race, where each of its turns is in a new process."""
    tires = fake(after_calls=250, fault="slow", latency_us=1000)
    model = fake_model(tmp_path / "model.fake")
    done = tune(tmp_path, model, "--waiting-limit", "1", sizes="1", timeout=120,
                backends=[tires, fake(latency_us=5000)])
    assert done.winner == "fake"
    assert done.trials[tires]["status"] == "dropped"
    assert "not confirmed" in done.trials[tires]["note"]


def test_a_backend_within_the_budget_that_is_not_faster_after_all_leaves_the_original(tmp_path):
    """That nobody is faster than an original that keeps the budget itself is no error."""
    tires = fake(after_calls=250, fault="slow", latency_us=1000)
    model = fake_model(tmp_path / "model.fake")
    done = tune(tmp_path, model, "--waiting-limit", "1", "--strategy", "latency-budget",
                "--latency-budget", "10s", sizes="1", timeout=120, backends=[tires])
    assert done.winner == "fake" and done.report["winner"]["fell_back"]
    assert "measured again" in done.report["winner"]["why"]
    assert "not confirmed" in done.trials[tires]["note"]


def test_a_result_that_the_next_call_changes_is_found_in_a_model_without_a_batch(tmp_path):
    model = fake_model(tmp_path / "model.fake", rows="2")
    shared = fake(fault="alias_last", latency_us=100)
    done = tune(tmp_path, model, inputs=["x=float32[2,3]"], sizes="",
                backends=[shared, fake(latency_us=1000)])
    assert done.trials[shared]["status"] == "rejected"
    assert "the result of one call changed during the next" in done.trials[shared]["message"]
    assert len(done.trials[shared]["check"]["checked"]) == 2
    assert done.winner == fake(latency_us=1000)


def test_a_lossy_winner_is_verified_by_the_tolerance_that_was_allowed(tmp_path, hasten):
    model = fake_model(tmp_path / "model.fake")
    lossy = fake(fault="imprecise", latency_us=500)
    done = tune(tmp_path, model, "--allow-lossy", "0.05", "-o", "model.hasten", backends=[lossy])
    assert done.winner == lossy
    assert "0.05 x |expected|" in done.report["graphs"][0]["tolerances"][0]
    hasten("verify", tmp_path / "model.hasten", "--plugin", PLUGINS)


def test_a_backend_named_twice_stops_nobody_else(tmp_path, require_backend):
    """There is no way from this format to one that it takes."""
    require_backend("onnxruntime")
    model = fake_model(tmp_path / "model.fake")
    done = tune(tmp_path, model, sizes="1", backends=["onnxruntime", "fake", "onnxruntime"])
    assert {name: trial["status"] for name, trial in done.trials.items()} == {
        "onnxruntime": "unavailable", "fake:threads=1": "ok"}
    assert "it takes ONNX .onnx" in done.trials["onnxruntime"]["message"]


def test_whoever_was_built_is_measured_though_the_check_took_all_the_time(tmp_path):
    """Its eight calls to be checked take as long as everything may."""
    slow = fake(latency_us=600_000)
    model = fake_model(tmp_path / "model.fake")
    done = tune(tmp_path, model, "--max-time", "5s", "--no-performance-validation",
                sizes="1", backends=[slow])
    assert done.winner == slow
    assert sizes_of(done.trials[slow]) == [1]
