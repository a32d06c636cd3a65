# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 900 COST 180
"""Quantised backends: built on a CPU, run without Python, chosen only where a loss is allowed."""

import json
import zipfile

import pytest
import torch

import hasten.torch as ait
from hasten.torch.backend import (TorchAOBackend, TorchAOBackendConfig, TorchInductorAotBackend,
                                  TorchInductorAotBackendConfig)

SAMPLES = [torch.randn(64, generator=torch.Generator().manual_seed(i)) for i in range(4)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(),
                                       torch.nn.Linear(256, 64), torch.nn.LayerNorm(64))
        self.last = torch.nn.Linear(64, 10)

    def forward(self, x):
        return {"logits": self.last(x + self.mlp(torch.relu(self.first(x))))}


def net():
    torch.manual_seed(0)
    return Net().eval()


def quantised(kind, **settings):
    return TorchAOBackend(TorchAOBackendConfig(quantization=kind, mode=None, **settings))


def tuned(strategy):
    model = ait.Module(net(), "net", strategy=strategy.enable_performance_validation(False))
    ait.tune(model, SAMPLES)
    return model


def difference(model):
    """The largest, relative to the largest value, at a size that was not recorded."""
    x = torch.randn(7, 64, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        found, expected = model(x)["logits"], net()(x)["logits"]
    assert model.unseen_calls == 0
    return ((found - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("kind", ["int8wo", "int8dq"])
def test_it_wins_within_the_tolerance_that_was_stated(kind, tmp_path):
    strategy = ait.MaxThroughputStrategy(backends=[quantised(kind)]).allow_lossy(0.1)
    model = tuned(strategy)
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"] == f"TorchAOBackend(quantization={kind},mode=None)"
    assert 1e-4 < difference(model) < 0.1
    ait.save(model, tmp_path / "net.hasten")
    assert difference(ait.load(Net(), tmp_path / "net.hasten")) == difference(model)
    with zipfile.ZipFile(tmp_path / "net.hasten") as archive:
        (backend,) = [g["backend"] for g in json.loads(archive.read("module.json"))["modules"][0]["graphs"]]
    assert backend["type"] == "TorchAOBackend" and backend["artifact"]


def test_it_is_not_chosen_where_no_loss_is_allowed():
    strategy = ait.FirstWinsStrategy(backends=[
        quantised("int8wo"), TorchInductorAotBackend(TorchInductorAotBackendConfig(
            options={"threads": 1}))])
    model = tuned(strategy)
    (graph,) = model.tuning_report["graphs"]
    assert graph["winner"].startswith("TorchInductorAotBackend(")
    refused = graph["trials"][0]
    assert refused["status"] == "rejected"
    assert "is off by" in refused["message"] and "allow_lossy(0.02)" in refused["message"]
    assert difference(model) < 1e-5


def test_nor_where_it_loses_more_than_is_allowed():
    strategy = ait.MaxThroughputStrategy(backends=[quantised("int8dq")]).allow_lossy(1e-4)
    model = tuned(strategy)
    assert model.tuning_state is ait.State.PASSTHROUGH and difference(model) == 0
    assert "is off by" in model.tuning_report["error"]
    assert "allow_lossy(" not in model.tuning_report["error"]


@pytest.mark.parametrize("kind, need", [("fp8wo", "8.9"), ("fp8dq", "8.9"), ("mxfp8dq", "10.0"),
                                        ("nvfp4dq", "10.0")])
def test_what_needs_a_gpu_says_which(kind, need):
    backend = quantised(kind)
    with pytest.raises(ait.HastenError, match=f"needs an NVIDIA GPU of compute capability {need}"):
        backend.check_available()
    assert backend.describe() == f"TorchAOBackend(quantization={kind},mode=None)"


@pytest.mark.parametrize("settings, sentence", [
    ({}, "exactly one"), ({"quantization": "int8wo", "quantization_config": object()}, "exactly one"),
    ({"quantization": "int4wo"}, "one of int8wo, int8dq"),
    ({"quantization": "int8wo", "mode": "fast"}, "mode has to be one of"),
    ({"quantization": "int8wo", "fullgraph": 1}, "has to be a bool"),
    ({"quantization": "int8wo", "filter_fn": "linear"}, "has to be a function")])
def test_settings_that_cannot_be(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        TorchAOBackendConfig(**settings)


def test_settings_of_pythons_world_name_the_way_round():
    for settings in ({"quantization_config": object()},
                     {"quantization": "int8wo", "filter_fn": lambda module, name: True}):
        with pytest.raises(ait.HastenError, match="Python object") as caught:
            TorchAOBackend(TorchAOBackendConfig(**settings)).check_available()
        assert "int8wo" in caught.value.hint


def test_without_settings_it_is_what_a_cpu_can_run():
    assert TorchAOBackend().describe() == "TorchAOBackend(quantization=int8wo)"
    assert TorchAOBackend().candidate() == "inductor:max_autotune=true,quantization=int8wo"


def test_a_setting_is_known_again_however_it_is_written():
    backend = TorchInductorAotBackend(TorchInductorAotBackendConfig(
        options={"threads": 1, "freezing": True}))
    assert backend.explains("inductor", {"threads": "1", "freezing": "true"})
    assert backend.explains("inductor", {"threads": 1, "freezing": True, "max_autotune": False})
    assert not backend.explains("inductor", {"threads": 2, "freezing": True})
    assert not backend.explains("onnxruntime", {"threads": 1, "freezing": True})


@pytest.mark.parametrize("tolerance", [0, -1, float("nan"), float("inf")])
def test_tolerances_that_cannot_be(tolerance):
    with pytest.raises(ValueError, match="above 0"):
        ait.MaxThroughputStrategy().allow_lossy(tolerance)
