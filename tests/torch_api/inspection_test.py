# SPDX-License-Identifier: Apache-2.0
"""Where a pipeline spends its time, and what is wrapped there."""

import pytest
import torch

import hasten.torch as ait


class Slow(torch.nn.Module):
    def forward(self, x):
        for _ in range(200):
            x = torch.tanh(x)
        return x


class Pipeline:
    """No module itself: holds some in attributes, a list and a dictionary."""

    def __init__(self):
        self.slow = torch.nn.Sequential(Slow(), Slow())
        self.stages = [torch.nn.Identity()]
        self.heads = {"a": torch.nn.Linear(4, 4), "unused": torch.nn.Linear(4, 4)}
        self.name = "pipeline"

    def __call__(self, x):
        return self.heads["a"](self.stages[0](self.slow(x)))


SAMPLES = [torch.randn(4) for _ in range(3)]


def test_the_topmost_modules_that_ran():
    pipeline = Pipeline()
    info = ait.inspect(pipeline, SAMPLES, number_of_iterations=4, warmup_iterations=1)
    assert [m.object_path for m in info.get_modules()] == [".slow", ".stages[0]", ".heads['a']"]
    assert all(m.execution_count == 4 for m in info.get_modules())
    (slowest,) = info.get_modules(limit=1)
    assert slowest.object_path == ".slow" and slowest.input_types == ["Tensor"]
    assert info.get_modules(min_execution_ratio=1.0) == []
    with pytest.raises(ValueError):
        info.get_modules(min_execution_ratio=1.5)
    lines = info.describe().splitlines()
    assert len(lines) == 5 and lines[1].startswith(".slow")
    assert "in 4 iterations" in lines[-1]


def test_deeper_modules_when_asked_for():
    info = ait.inspect(Pipeline(), SAMPLES, number_of_iterations=1, min_depth=2)
    assert [m.object_path for m in info.get_modules()] == [
        ".slow.0", ".slow.1", ".stages[0]", ".heads['a']"]


def test_nothing_stays_behind():
    pipeline = Pipeline()
    before = [dict(m.__dict__) for m in pipeline.slow.modules()]
    ait.inspect(pipeline, SAMPLES, number_of_iterations=1)
    assert [dict(m.__dict__) for m in pipeline.slow.modules()] == before

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("no")
    module = Fails()
    with pytest.raises(RuntimeError, match="no"):
        ait.inspect(module, SAMPLES)
    assert not module._forward_hooks and not module._forward_pre_hooks


def test_the_tree_is_one_page():
    page = ait.inspect(Pipeline(), SAMPLES, number_of_iterations=1).to_html()
    assert page.count("<li>") == 5 and ".heads[&#x27;a&#x27;]" in page and "http" not in page


def test_wrapped_where_they_are():
    pipeline = Pipeline()
    x = torch.randn(2, 4)
    expected = pipeline(x)
    info = ait.inspect(pipeline, SAMPLES, number_of_iterations=1)
    assert ait.wrap(pipeline, info.get_modules()) is pipeline
    assert all(type(m) is ait.Module
               for m in (pipeline.slow, pipeline.stages[0], pipeline.heads["a"]))
    assert type(pipeline.heads["unused"]) is torch.nn.Linear
    assert torch.equal(pipeline(x), expected)


def test_a_module_itself_is_replaced_by_what_wraps_it():
    module = Slow()
    wrapped = ait.wrap(module, ait.inspect(module, SAMPLES, number_of_iterations=1).get_modules())
    assert type(wrapped) is ait.Module
