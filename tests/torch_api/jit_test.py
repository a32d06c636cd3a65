# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 900 COST 50
"""JIT mode: one import, and what a program answers stays the same."""

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest
import torch

import hasten.torch as ait
import hasten.torch.jit as jit
from hasten.torch.backend import Backend, ONNXRuntimeBackend, ONNXRuntimeBackendConfig
from hasten.torch.jit import JitMode, Stage, jit_config, watched
from hasten.torch.jit.tune import deferred

ORT = ONNXRuntimeBackend(ONNXRuntimeBackendConfig(options={"threads": 1}))
X = torch.arange(8.0).reshape(2, 4)


class Held(Backend):
    """The module itself, at once: what is tested is not what engines do."""

    def _build(self, module, graph_spec, data, device, cache_dir):
        self.function = module

    def _infer(self, *args, **kwargs):
        with torch.no_grad():
            return self.function(*args, **kwargs)


class Failing(Backend):
    """Cannot be built."""

    def _build(self, module, graph_spec, data, device, cache_dir):
        raise RuntimeError("never")

    def _infer(self, *args, **kwargs):
        raise NotImplementedError


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.blocks = torch.nn.Sequential(Inner(), Inner())

    def forward(self, x, scale: float = 1.0):
        return self.blocks(self.inner(x)) * scale


def keep(*backends):
    return ait.MaxThroughputStrategy(backends=list(backends)).enable_performance_validation(False)


@pytest.fixture(autouse=True)
def settings():
    jit_config.strategy = keep(Held())
    jit_config.background = False
    yield
    jit.jit_reset()


def created():
    """A module of JIT mode and one that never heard of it, of the same weights."""
    torch.manual_seed(0)
    with jit.prepare_for_jit_tuning():
        module = Net().eval()
    torch.manual_seed(0)
    return module, Net().eval()


def stages():
    return [(each.name.rsplit(".", 1)[-1], each.stage) for each in watched.everything()]


def untouched(module):
    return all("forward" not in vars(each) for each in module.modules())


def test_the_first_call_tunes_and_later_ones_answer_the_same():
    jit_config.strategy = keep(ORT)
    module, plain = created()
    assert torch.equal(module(X), plain(X))
    assert stages() == [("Net", Stage.TUNED)]
    torch.testing.assert_close(module(X), plain(X))
    assert module.forward.control.unseen_calls == 0
    # Nothing was tuned for these.
    assert torch.equal(module(X, 2.0), plain(X, 2.0))
    assert torch.equal(module(X.repeat(3, 1)), plain(X.repeat(3, 1)))
    assert module.forward.control.unseen_calls == 2
    assert jit.hierarchy().startswith(f"tuned: {__name__}.Net (ONNXRuntimeBackend")


def test_in_the_background_the_original_answers_meanwhile():
    jit_config.background = True
    held, asked = threading.Event(), threading.Event()

    class Slow(Failing):
        def _build(self, module, graph_spec, data, device, cache_dir):
            asked.set()
            held.wait()
            super()._build(module, graph_spec, data, device, cache_dir)

    jit_config.strategy = keep(Slow(), Held())
    module, plain = created()
    module(X)
    assert asked.wait(timeout=60)
    assert torch.equal(module(X), plain(X)) and stages() == [("Net", Stage.TUNING)]
    held.set()
    jit.wait()
    assert stages() == [("Net", Stage.TUNED)]
    torch.testing.assert_close(module(X), plain(X))


def test_nothing_is_left_of_a_tune_that_fails():
    jit_config.strategy = keep(Failing())
    module, plain = created()
    assert torch.equal(module(X), plain(X))
    assert stages() == [("Net", Stage.EAGER)] and untouched(module)
    assert "never" in watched.everything()[0].why


def test_hooks_fire_once_a_call():
    module, _ = created()
    calls = []
    module.register_forward_pre_hook(lambda *_: calls.append("before"))
    module.register_forward_hook(lambda *_: calls.append("after"))
    module(X)
    module(X)
    assert calls == ["before", "after"] * 2


def test_inside_a_module_that_cannot_be_tuned_its_parts_are():
    jit_config.max_depth_level = 2

    class Parts(ait.MaxThroughputStrategy):
        def tune(self, module, name, *rest):
            if name.endswith("Net"):
                raise RuntimeError("the whole cannot be tuned")
            return super().tune(module, name, *rest)

    jit_config.strategy = Parts(backends=[Held()]).enable_performance_validation(False)
    module, plain = created()
    module(X)
    torch.testing.assert_close(module(X), plain(X))
    assert stages() == [("Net", Stage.EAGER), ("Inner", Stage.TUNED), ("1", Stage.TUNED),
                        ("2", Stage.TUNED)]


def test_a_tuned_module_has_its_parts_to_itself():
    jit_config.max_depth_level = 2
    module, _ = created()
    module(X)
    assert [stage for _, stage in stages()] == [Stage.TUNED] + [Stage.DETACHED] * 3
    assert all("forward" not in vars(part) for part in module.modules() if part is not module)


def test_two_batch_sizes_are_waited_for_and_become_a_batch_axis():
    jit_config.min_samples = 2
    module, plain = created()
    for _ in range(2):
        module(X)
    assert stages() == [("Net", Stage.RECORDING)]
    module(X.repeat(2, 1))
    assert stages() == [("Net", Stage.TUNED)]
    torch.testing.assert_close(module(X.repeat(5, 1)), plain(X.repeat(5, 1)))
    assert module.forward.control.unseen_calls == 0


def test_deferred_means_when_it_is_said():
    jit_config.mode = JitMode.TUNE_DEFERRED
    module, _ = created()
    module(X)
    module(X)
    assert stages() == [("Net", Stage.RECORDING)]
    deferred()
    module(X)
    assert stages() == [("Net", Stage.TUNED)]
    jit_config.mode = JitMode.TUNE_EAGER
    with pytest.raises(ait.InvalidArgument):
        deferred()


@pytest.mark.parametrize("setting, value, expected", [
    ("skip_modules", ["Net"], {Stage.SKIPPED}), ("min_parameters", 10**6, {Stage.SKIPPED}),
    ("patch_exclude", (Net.__module__, "torch.nn"), set())])
def test_what_the_settings_leave_out_is_as_it_was(setting, value, expected):
    setattr(jit_config, setting, value)
    module, plain = created()
    assert torch.equal(module(X), plain(X))
    assert {stage for _, stage in stages()} == expected and untouched(module)


def test_training_is_left_alone_until_it_is_over():
    module, plain = created()
    module.train()
    module(X).sum().backward()
    assert module.inner.layer.weight.grad is not None and stages() == []
    module.eval()
    with torch.no_grad():
        module(X)
    assert stages() == [("Net", Stage.TUNED)]


def test_copies_and_pickles_are_the_module_alone():
    module, plain = created()
    before = copy.deepcopy(module)
    module(X)
    for other in (before, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert not isinstance(other.forward, type(module.forward))
        assert torch.equal(other(X), plain(X))
        other.inner.layer.weight.data.zero_()  # Its own.
    torch.testing.assert_close(module(X), plain(X))


def test_modules_are_not_kept_alive():
    module, _ = created()
    module(X)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_compiling_and_tracing_see_the_original():
    module, plain = created()
    traced = torch.jit.trace(module, X, check_trace=False)
    program = torch.export.export(module, (X,))
    assert stages() == []
    assert torch.equal(traced(X), plain(X)) and torch.equal(program.module()(X), plain(X))


def run(text):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True,
                          text=True, timeout=300)


def test_one_import_is_enough_and_a_program_that_ends_early_ends_quietly():
    done = run("""
        import torch
        import hasten.torch.jit.enable
        model = torch.nn.Sequential(torch.nn.Linear(4, 4))
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 4)
            def forward(self, x):
                return self.layer(x)
        net = Net().eval()
        x = torch.ones(1, 4)
        print(torch.equal(net(x), net.layer(x)))
        from hasten.torch.jit import watched
        print([each.stage.value for each in watched.everything()])
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n['tuning']\n"
    assert done.stderr == ""


def test_disable_leaves_new_modules_alone():
    import hasten.torch.jit.enable  # noqa: F401
    import hasten.torch.jit.disable  # noqa: F401
    assert "forward" not in vars(Net())
