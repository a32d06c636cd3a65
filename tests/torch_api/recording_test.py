# SPDX-License-Identifier: Apache-2.0
"""What a module was called with is kept on disk, within limits, and shapes of every call."""

import dataclasses
import gc
import math
import tempfile

import pytest
import torch

import hasten.torch as ait
from hasten.torch.backend import Backend


class Double(torch.nn.Module):
    def forward(self, x, factor=2):
        return x * factor


class Answering(Backend):
    """Keeps the module, and what it was shown."""
    shown: list = []

    def _build(self, module, graph_spec, data, device, cache_dir):
        self.module = module
        Answering.shown = [(sample.args[0].clone(), sample.output_tensors[0].clone())
                           for sample in data]

    def _infer(self, *args, **kwargs):
        return self.module(*args, **kwargs)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def settings(monkeypatch):
    """The settings of the process, put back afterwards."""
    for field in dataclasses.fields(ait.config):
        monkeypatch.setattr(ait.config, field.name, getattr(ait.config, field.name))
    return ait.config


def files(folder):
    return sorted(folder.glob("hasten-samples-*/*"))


def strategy():
    return ait.OneBackendStrategy(Answering()).enable_performance_validation(False)


def test_samples_come_back_as_they_were_before_the_call(folder):
    class Writing(torch.nn.Module):
        def forward(self, x):
            return x.add_(1)

    model = ait.Module(Writing(), "writing", strategy=strategy())
    given = [torch.arange(6.0).view(2, 3), torch.zeros(0, 3), torch.ones(3, 2).t()]
    expected = [(tensor.clone(), tensor + 1) for tensor in given]
    for tensor in given:
        model(tensor)
    assert len(files(folder)) == 3
    ait.tune(model, [((torch.full((4, 3), 7.0),), {})])
    expected.append((torch.full((4, 3), 7.0), torch.full((4, 3), 8.0)))
    for found, wanted in zip(Answering.shown, expected, strict=True):
        assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(found, wanted))


def test_no_more_of_a_kind_than_asked_for(folder, settings):
    settings.max_num_samples_stored = 1
    one, every = ait.Module(Double(), "one"), ait.Module(Double(), "every")
    for _ in range(3):
        one(torch.ones(2))
    assert len(files(folder)) == 1
    settings.max_num_samples_stored = math.inf
    for _ in range(5):
        every(torch.ones(2))
    assert len(files(folder)) == 6


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_numbers_of_samples_that_cannot_be(value, settings):
    with pytest.raises(ValueError, match="above 0"):
        settings.max_num_samples_stored = value


def test_beyond_the_limit_shapes_are_learnt_and_nothing_is_kept(folder, settings, caplog):
    settings.max_sample_bytes = 100_000
    model = ait.Module(Double(), "large")
    for rows in range(1, 200):
        model(torch.ones(rows, 100))
    size = sum(file.stat().st_size for file in files(folder))
    assert 10_000 < size < 150_000
    assert "1..199" in model.graph_specs[0].describe()
    assert caplog.text.count("config.max_sample_bytes") == 1


def test_the_first_call_of_a_graph_is_kept_whatever_its_size(folder, settings):
    settings.max_sample_bytes = 0
    model = ait.Module(Double(), "first")
    for rows in (1, 2):
        model(torch.ones(rows, 3))
        model(torch.ones(rows, 3), factor=3)
        model(torch.ones(rows, 3, dtype=torch.float64))
    assert len(files(folder)) == 3
    assert sorted(len(graph.samples) for graph in model.graph_specs) == [1, 1, 1]


def test_files_go_with_the_module(folder):
    model = ait.Module(Double(), "gone")
    model(torch.ones(2))
    assert len(files(folder)) == 1
    del model
    gc.collect()
    assert not list(folder.iterdir())


def test_a_full_disk_stops_no_call(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    model = ait.Module(Double(), "full")
    assert torch.equal(model(torch.ones(2)), torch.full((2,), 2.0))
    assert "TMPDIR" in caplog.text
    with pytest.raises(ait.HastenError, match="could be kept on disk"):
        ait.tune(model, [torch.ones(2)], ignore_failing_modules=False)
    assert torch.equal(model(torch.ones(2)), torch.full((2,), 2.0))


class Cache:
    """Equal to nothing but itself, as a key-value cache is."""

    def __init__(self):
        self.seen = []


class Cached(torch.nn.Module):
    def forward(self, x, cache=None):
        if cache is None:
            return {"y": x * 2}
        cache.seen.append(x)
        return {"y": sum(cache.seen)}


def test_a_call_with_an_object_that_nothing_equals_stays_the_originals(folder):
    model = ait.Module(Cached(), "cached", strategy=strategy())
    ait.tune(lambda x: model(x, cache=Cache()), [torch.ones(2)])
    assert model.tuning_state is ait.State.PASSTHROUGH and not files(folder)
    assert "cache: Cache" in model.tuning_report["error"]
    ait.tune(lambda x: (model(x), model(x, cache=Cache())), [torch.ones(2)])
    assert model.tuning_state is ait.State.TUNED
    cache = Cache()
    model(torch.ones(2), cache=cache)
    assert torch.equal(model(torch.ones(2), cache=cache)["y"], torch.full((2,), 2.0))
    assert len(cache.seen) == 2


def test_nor_is_such_an_object_handed_out_again(folder):
    class Making(torch.nn.Module):
        def forward(self, x):
            cache = Cache()
            cache.seen.append(x)
            return {"y": x * 2, "cache": cache}

    model = ait.Module(Making(), "making", strategy=ait.MaxThroughputStrategy(
        backends=[ait.backend.ONNXRuntimeBackend()]))
    ait.tune(model, [((torch.ones(2),), {})])
    assert model.tuning_state is ait.State.PASSTHROUGH
    x = torch.full((2,), 5.0)
    assert model(x)["cache"].seen[0] is x
