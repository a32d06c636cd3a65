# SPDX-License-Identifier: Apache-2.0
"""AOTInductor packages from the compiler to the plugin's C table. A package suits one machine,
so none is checked in: one program with many parts is compiled here, once."""
# ctest: TIMEOUT 900 COST 80 LABELS "python;backend:inductor"

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

from compile_support import answer, save_program, save_script, write_request
from hasten.compilers import pt2_to_aoti, torchscript_to_pt2
from plugin_table import Plugin, PluginError

PLUGIN = Path(os.environ.get("HASTEN_BUILD", "build")) / "plugins" / "hasten_inductor.so"


def require_plugin():
    required = os.environ.get("HASTEN_REQUIRE_BACKENDS", "").split(",")
    if not PLUGIN.exists():
        (pytest.fail if "inductor" in required else pytest.skip)(f"{PLUGIN} is not built")


class Many(nn.Module):
    """Several faults that users of compilers met, in one program."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.linear = nn.Conv1d(3, 4, 3, padding=1), nn.Linear(4, 2)
        self.register_buffer("table", torch.arange(6.0))

    def forward(self, x, small, big):
        features = torch.relu(self.conv(x)).mean(2)
        return (self.linear(features), x, self.table, (small + small).to(torch.int16),
                big.cumsum(1), (small > 1) & (big > 1),
                {"rows": x.shape[0], "masked": features.masked_fill(features > 0, -torch.inf)})


def inputs(batch, length):
    generator = torch.Generator().manual_seed(batch * 100 + length)
    return (torch.randn(batch, 3, length, generator=generator),
            torch.randint(100, 255, (batch, 18), generator=generator).to(torch.uint8),
            torch.full((batch, 18), 3_000_000_000))


def flat(results):
    *tensors, rest = results
    return [t.numpy() for t in tensors] + [np.asarray(rest["rows"]), rest["masked"].numpy()]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    require_plugin()
    folder = tmp_path_factory.mktemp("c'd $x 模型")
    model = Many().eval()
    batch, length = Dim("b", min=1, max=20), Dim("t", min=4, max=64)
    path = save_program(folder, model, inputs(3, 8),
                        ({0: batch, 2: length}, {0: batch}, {0: batch}))
    names = ("x", "small", "big")
    samples = [dict(zip(names, inputs(b, t), strict=True)) for b, t in ((1, 8), (2, 8), (2, 12))]
    request = write_request(folder, path, "pt2", samples,
                            {"x": {0: "B", 2: "T"}, "small": {0: "B"}, "big": {0: "B"}})
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "hasten.compilers.pt2_to_aoti",
                           str(folder / "request.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = Path(request["output_dir"])
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["ok"], (result, done.stderr[-3000:])
    assert result["facts"]["ranges"] == {"B": [1, 20], "T": [4, 64]}
    left = {entry.name for entry in out.iterdir()}
    assert left == {"model.aoti.pt2", "model.aoti.pt2.inputs", "result.json"}
    return Path(result["path"]), model


@pytest.fixture(scope="module")
def executable(package):
    return Plugin(PLUGIN).build(package[0], "aoti")


@pytest.mark.parametrize("batch, length", [(1, 4), (2, 8), (3, 9), (5, 12), (16, 33), (20, 64)])
def test_values_are_eagers_at_the_edges_and_between(package, executable, batch, length):
    tensors = inputs(batch, length)
    with torch.no_grad():
        expected = flat(package[1](*tensors))
    found = executable(*(t.numpy() for t in tensors))
    assert [a.dtype for a in found] == [a.dtype for a in expected]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("change, words", [
    (lambda x, s, b: (x[:, :, :3], s, b), "input 'x' is 4 to 64 at axis 2, not 3"),
    (lambda x, s, b: (x[:1], s, b), "input 'small' is 1 at axis 0"),
    (lambda x, s, b: (x[:, :2], s, b), "input 'x' is 3 at axis 1, not 2"),
    (lambda x, s, b: (x, s[:, :17], b), "input 'small' is 18 at axis 1, not 17"),
    (lambda x, s, b: (x.astype(np.float64), s, b), "input 'x' is float32, not float64"),
    (lambda x, s, b: (x[0], s, b), "input 'x' is of 3 axes, not 2"),
    (lambda x, s, b: (x, s), "takes 3 inputs and gives 8 outputs"),
    (lambda x, s, b: tuple(np.repeat(a, 11, 0) for a in (x, s, b)), "1 to 20 at axis 0, not 22"),
])
def test_what_the_program_was_not_exported_for_is_refused(executable, change, words):
    with pytest.raises(PluginError, match=words) as refusal:
        executable(*change(*(t.numpy() for t in inputs(2, 8))))
    assert refusal.value.code == "invalid_argument"


def test_strided_inputs_are_read_right_and_outputs_own_their_memory(package, executable):
    x, small, big = (t.numpy() for t in inputs(4, 8))
    strided = np.ascontiguousarray(x.transpose(2, 1, 0)).transpose(2, 1, 0)
    plain, turned = executable(x, small, big), executable(strided, small, big)
    for a, b in zip(plain, turned, strict=True):
        np.testing.assert_array_equal(a, b)
    again = Plugin(PLUGIN).build(package[0], "aoti")
    first = again(x, small, big)
    kept = [a.copy() for a in first]
    x[:] = 0  # One output is the input itself.
    again.close()
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def test_calls_from_several_threads_do_not_mix(executable):
    expected = {b: executable(*(t.numpy() for t in inputs(b, 8)))[0] for b in (1, 2, 3, 4)}
    wrong = []

    def call(batch):
        tensors = [t.numpy() for t in inputs(batch, 8)]
        for _ in range(50):
            if not np.array_equal(executable(*tensors)[0], expected[batch]):
                wrong.append(batch)
    threads = [threading.Thread(target=call, args=(b,)) for b in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_saved_and_loaded_it_is_the_same_and_leaves_nothing_behind(package, tmp_path, monkeypatch):
    saved, scratch = tmp_path / "saved", tmp_path / "tmp"
    saved.mkdir()
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    plugin = Plugin(PLUGIN)
    built = plugin.build(package[0], "aoti", {"threads": "1"})
    built.save(saved)
    tensors = [t.numpy() for t in inputs(2, 9)]
    expected = built(*tensors)
    built.close()
    loaded = plugin.load(saved)
    for a, b in zip(loaded(*tensors), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    loaded.close()
    assert list(scratch.iterdir()) == []
    (saved / "model.pt2.inputs").unlink()
    with pytest.raises(PluginError, match="model.pt2.inputs"):
        plugin.load(saved)


def test_an_option_that_is_none_is_refused_before_anything_is_compiled(tmp_path):
    path = save_program(tmp_path, nn.ReLU(), (torch.ones(2),))
    request = write_request(tmp_path, path, "pt2", [{"input": torch.ones(2)}],
                            options={"freezing": "maybe"})
    result = answer(pt2_to_aoti, request)
    assert result["code"] == "invalid_argument" and "true, false" in result["message"]


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x, state):
        h, c = self.cell(x, (state[0], state[1]))
        return h, torch.stack([h, c])


def test_a_torchscript_file_reaches_a_package_through_export(tmp_path):
    require_plugin()
    model = Rnn().eval()
    samples = [{"x": torch.randn(n, 3), "state": torch.randn(2, n, 4)} for n in (1, 2)]
    path = save_script(tmp_path, model)
    request = write_request(tmp_path, path, "torchscript", samples,
                            {"x": {0: "B"}, "state": {1: "B"}}, {"freezing": "true"})
    exported = answer(torchscript_to_pt2, request)
    assert exported["ok"], exported
    compiled = answer(pt2_to_aoti, {**request, "model": exported["path"], "format": "pt2"})
    assert compiled["ok"], compiled
    executable = Plugin(PLUGIN).build(compiled["path"], "aoti")
    for batch in (1, 2, 5):
        x, state = torch.randn(batch, 3), torch.randn(2, batch, 4)
        with torch.no_grad():
            expected = model(x, state)
        for a, b in zip(executable(x.numpy(), state.numpy()), expected, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6)


class Tied(nn.Module):
    """A table of words that is also the last layer's weight: it is quantised there only."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 64)
        self.inner = nn.Linear(64, 64)
        self.last = nn.Linear(64, 40, bias=False)
        self.last.weight = self.table.weight

    def forward(self, words):
        return self.last(torch.relu(self.inner(self.table(words))))


def in_8_bits(weight):
    """One scale for each row, as TorchAO's documentation has it."""
    scale = np.abs(weight).max(axis=1, keepdims=True) / 127.5
    return np.clip(np.round(weight / scale), -128, 127) * scale


@pytest.mark.parametrize("kind, tolerance", [("int8wo", 2e-3), ("int8dq", 3e-2)])
def test_linear_layers_are_quantised_and_nothing_else(kind, tolerance, tmp_path):
    require_plugin()
    torch.manual_seed(0)
    model = Tied().eval()
    words = torch.randint(0, 40, (3, 5))
    path = save_program(tmp_path, model, (words,), ({0: Dim("b", min=1, max=20)},))
    request = write_request(tmp_path, path, "pt2", [{"words": words}], {"words": {0: "B"}},
                            {"quantization": kind})
    compiled = answer(pt2_to_aoti, request)
    assert compiled["ok"], compiled
    executable = Plugin(PLUGIN).build(compiled["path"], "aoti")
    table, inner = model.table.weight.detach().numpy(), model.inner.weight.detach().numpy()
    for batch in (1, 4):
        words = torch.randint(0, 40, (batch, 5))
        (found,) = executable(words.numpy())
        hidden = table[words.numpy()] @ in_8_bits(inner).T + model.inner.bias.detach().numpy()
        expected = np.maximum(hidden, 0) @ in_8_bits(table).T
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found / scale, expected / scale, atol=tolerance)
        exact = model(words).detach().numpy()
        assert np.abs(found - exact).max() / scale > 1e-4  # It is no float in disguise.


def test_a_model_without_linear_layers_has_nothing_to_quantise(tmp_path):
    path = save_program(tmp_path, nn.ReLU(), (torch.ones(2),))
    request = write_request(tmp_path, path, "pt2", [{"input": torch.ones(2)}],
                            options={"quantization": "int8wo"})
    result = answer(pt2_to_aoti, request)
    assert result["code"] == "unsupported" and "no linear layer" in result["message"]
