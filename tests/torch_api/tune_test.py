# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 1800 COST 120
"""A module is tuned in the program that owns it, and nobody else notices."""

import dataclasses
import signal

import pytest
import torch

import hasten
import hasten.torch as ait
from hasten.torch.backend import (Backend, ONNXRuntimeBackend, ONNXRuntimeBackendConfig,
                                  OpenVINOBackend, OpenVINOBackendConfig, TensorRTBackend,
                                  TorchInductorJitBackend)


@dataclasses.dataclass
class Answer:
    y: torch.Tensor
    parts: list


class Net(torch.nn.Module):
    """Heavy enough for an engine to gain on eager's many small operators."""

    def __init__(self, width=16, depth=30):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def forward(self, x, scale=1.0):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * 0.9 + x * 0.1
        return Answer(x * scale, [x.sum(-1), 7, "text"])


# One candidate each: what is tested is not the search.
ORT = ONNXRuntimeBackend(ONNXRuntimeBackendConfig(options={"threads": 1}))
OV = OpenVINOBackend(OpenVINOBackendConfig(options={"threads": 1}))
SAMPLES = [torch.randn(16, generator=torch.Generator().manual_seed(i)) for i in range(4)]


def net():
    torch.manual_seed(1)
    return Net().eval()


def tuned(strategy, samples=SAMPLES, name="net", **options):
    model = ait.Module(net(), name, strategy=strategy)
    ait.tune(model, samples, **options)
    return model


def keep(*backends):
    """A strategy whose choice does not hang on the noise of the machine."""
    return ait.MaxThroughputStrategy(backends=list(backends)).enable_performance_validation(False)


@pytest.fixture(scope="module")
def model():
    return tuned(keep(ORT))


def check(model, x, **kwargs):
    with torch.no_grad():
        actual, expected = model(x, **kwargs), net()(x, **kwargs)
    assert type(actual) is Answer and actual.parts[1:] == [7, "text"]
    torch.testing.assert_close(actual.y, expected.y, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(actual.parts[0], expected.parts[0], rtol=1e-4, atol=1e-5)


def test_the_answers_are_those_of_the_module_in_its_own_types(model):
    assert model.tuning_state is ait.State.TUNED
    for rows in (1, 2, 3, 17):
        check(model, torch.randn(rows, 16))
    assert model.unseen_calls == 0
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"].startswith("ONNXRuntimeBackend")
    assert any(trial["status"] == "ok" and trial["check"]["passed"] for trial in graph["trials"])


def test_inputs_in_any_layout(model):
    x = torch.randn(16, 4).t()
    check(model, x)
    check(model, torch.randn(1, 16).expand(3, 16))
    check(model, torch.randn(8, 16)[::2])
    check(model, torch.randn(4, 16).flip(0))


def test_what_was_never_tuned_goes_to_the_original(model):
    before = model.unseen_calls
    check(model, torch.randn(2, 16), scale=2.0)
    assert model.unseen_calls == before + 1
    assert model(torch.randn(2, 16).requires_grad_()).y.requires_grad


def test_refused_when_the_user_says_so():
    model = ait.Module(net(), "strict", strategy=keep(ORT), unseen="raise")
    ait.tune(model, SAMPLES)
    with pytest.raises(ait.InvalidArgument, match="was not tuned for this call"):
        model(torch.randn(2, 16), scale=2.0)


def test_saved_and_loaded_with_and_without_the_class(model, tmp_path):
    ait.save(model, tmp_path / "it's a 模型.hasten")
    (tmp_path / "it's a 模型.hasten").rename(tmp_path / "moved")
    loaded = ait.load(Net(), tmp_path / "moved")
    check(loaded, torch.randn(5, 16))
    assert loaded.tuning_state is ait.State.TUNED and loaded.unseen_calls == 0
    check(loaded, torch.randn(5, 16), scale=3.0)
    check(hasten.load(tmp_path / "moved"), torch.randn(5, 16))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no zip at all" * 99])
def test_a_damaged_file_is_told(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(hasten.errors.HastenError, match="is no file of hasten.torch.save"):
        ait.load(Net(), tmp_path / "x")
    with pytest.raises(hasten.errors.HastenError, match="does not exist"):
        ait.load(Net(), tmp_path / "y")


class Doubling(Backend):
    """A backend of the user's own: what it does with the module is its business."""
    wrong = False

    def _build(self, module, graph_spec, data, device, cache_dir):
        self.module = module

    def _infer(self, *args, **kwargs):
        answer = self.module(*args, **kwargs)
        return Answer(answer.y * 2, answer.parts) if self.wrong else answer


class Wrong(Doubling):
    wrong = True


def test_a_backend_written_in_python_can_win_and_a_wrong_one_cannot():
    model = tuned(keep(Wrong(), Doubling()))
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"] == "Doubling()"
    assert [trial["status"] for trial in graph["trials"]] == ["rejected", "ok"]
    assert "differs" in graph["trials"][0]["message"] or graph["trials"][0]["check"]["worst"]
    check(model, torch.randn(2, 16))


def test_one_backend_raises_its_own_error():
    model = ait.Module(net(), "one", strategy=ait.OneBackendStrategy(Wrong()))
    with pytest.raises(RuntimeError):
        ait.tune(model, SAMPLES, ignore_failing_modules=False)
    check(model, torch.randn(2, 16))
    assert model.tuning_state is ait.State.PASSTHROUGH


def test_first_wins_takes_the_first_that_is_right():
    strategy = ait.FirstWinsStrategy(backends=[TensorRTBackend(), Wrong(), Doubling()])
    model = tuned(strategy.enable_performance_validation(False))
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"] == "Doubling()"
    assert "NVIDIA GPU" in graph["trials"][0]["message"]


def test_a_strategy_of_the_users_own_hooks():
    asked = []

    @dataclasses.dataclass
    class Size(ait.BackendProfilingResult):
        value: float

        @property
        def metric(self):
            return self.value

    class Longest(ait.ProfilingTuneStrategy):
        """Prefers the backend with the longest name: no machine changes that."""
        _title, _metric_label = "Longest", "length"

        def _measure(self, backend, name, graph_spec, data, profiling_cfg):
            asked.append(backend.describe())
            return Size(1, len(type(backend).__name__))

        def _is_better(self, result, other):
            return result.metric > other.metric

        def _speedup(self, result, baseline_result):
            return result.metric / baseline_result.metric

    class AVeryLongNameForABackend(Doubling):
        pass

    strategy = Longest(backends=[Doubling(), AVeryLongNameForABackend(), Doubling()])
    model = tuned(strategy)
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"] == "AVeryLongNameForABackend()"
    assert asked == ["TorchEagerBackend()", "Doubling()", "AVeryLongNameForABackend()",
                     "Doubling()"]


def test_one_hook_of_a_built_in_strategy_is_enough():
    class Worst(ait.MaxThroughputStrategy):
        def _is_better(self, result, other):
            return False

    model = tuned(Worst(backends=[Doubling()]).enable_performance_validation(False))
    assert model.tuning_report["graphs"][0]["winner"] == "Doubling()"
    model = tuned(Worst(backends=[Doubling()]))  # Nothing is better than the original.
    assert model.tuning_report["graphs"][0]["winner"] == "TorchEagerBackend()"


def test_two_modules_of_a_pipeline_are_tuned_in_turn(tmp_path):
    class Pipeline:
        def __init__(self):
            self.first = ait.Module(net(), "first", strategy=keep(Doubling()))
            self.second = ait.Module(net(), "second", strategy=keep(OV))

        def __call__(self, x):
            return self.second(self.first(x).y)

    pipeline = Pipeline()
    ait.tune(pipeline, SAMPLES)
    assert pipeline.first.tuning_state is pipeline.second.tuning_state is ait.State.TUNED
    x = torch.randn(3, 16)
    with torch.no_grad():
        expected = net()(net()(x).y).y
        torch.testing.assert_close(pipeline(x).y, expected, rtol=1e-4, atol=1e-5)
        ait.save(pipeline, tmp_path / "p.hasten")
        other = Pipeline()
        ait.load(other, tmp_path / "p.hasten")
        torch.testing.assert_close(other(x).y, expected, rtol=1e-4, atol=1e-5)
    assert other.second.tuning_state is ait.State.TUNED


def test_tuning_again_tunes_again(model):
    again = tuned(keep(Doubling()))
    ait.tune(again, SAMPLES)
    assert again.tuning_state is ait.State.TUNED
    check(again, torch.randn(2, 16))


def test_a_dry_run_builds_nothing():
    model = tuned(keep(ORT), dry_run=True)
    assert model.tuning_state is ait.State.RECORDING and model.tuning_report == {}


def test_nothing_of_the_users_is_changed():
    def state():
        return (torch.get_rng_state().tolist(), torch.get_num_threads(), torch.is_grad_enabled(),
                torch.is_autocast_enabled("cpu"), signal.getsignal(signal.SIGINT),
                signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD),
                torch.finfo(torch.float32).tiny / 2 > 0)
    model = ait.Module(net(), "net", strategy=keep(OV, TorchInductorJitBackend()))
    torch.manual_seed(5)
    before = state()
    ait.tune(model, SAMPLES)
    assert state() == before
    assert not model.training


def test_the_answers_that_change_their_kind_keep_their_original():
    class Counts(torch.nn.Module):
        def forward(self, x):
            return {"y": x * 2, "rows": x.shape[0]}
    model = ait.Module(Counts(), "counts", strategy=keep(ORT))
    ait.tune(model, SAMPLES)
    assert model(torch.zeros(5, 16))["rows"] == 5
    assert "differ in more than their tensors" in str(model.tuning_report)


@pytest.mark.parametrize("sizes", [[0], [-1], [True], [1.5]])
def test_batch_sizes_that_cannot_be(sizes):
    with pytest.raises(ait.InvalidArgument, match="above 0"):
        ait.tune(ait.Module(net(), "sizes"), SAMPLES, batch_sizes=sizes)


def test_a_function_that_calls_no_wrapped_module():
    with pytest.raises(ait.InvalidArgument, match="no wrapped module was called"):
        ait.tune(lambda x: x, SAMPLES)
