# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 LABELS e2e COST 190
"""Batch and dynamic axes, empty and scalar tensors, memory layouts, many and nested values, files:
what is tuned with few sizes answers at the others as eager PyTorch does."""
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from e2e.support import QUICK, tune

torch.manual_seed(0)
ROOT = Path(__file__).resolve().parents[1] / "data"
ONNX_BACKENDS = ["onnxruntime:threads=1", "openvino:hint=latency"]


class Net(nn.Module):
    """Without the batch size in its code: flatten() is where exporters bake it in."""
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(1), nn.Linear(4 * 6 * 6, 5))

    def forward(self, x: Tensor):
        return self.layers(x)


class Gru(nn.Module):
    """The batch is at axis 1, of the input and of the state."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 8)

    def forward(self, x: Tensor, h0: Tensor):
        y, h = self.gru(x, h0)
        return y, h


class OneRow(nn.Module):
    def forward(self, x: Tensor):
        assert x.size(0) == 1
        return x * 2 + 1


class Pair(NamedTuple):
    low: Tensor
    high: Tensor


class Nested(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Dict[str, List[Tensor]], Pair, Tensor]:
        return {"z": [x + 1, x + 2], "a": [x + 3]}, Pair(x - 1, x - 2), x.sum()


def script(folder, module, name="model.pt"):
    path = folder / name
    torch.jit.script(module.eval()).save(str(path))
    return path


def test_a_model_seen_at_batch_1_only_answers_at_every_batch(hasten, tmp_path):
    net = Net().eval()
    tuned = tune(hasten, tmp_path, script(tmp_path, net), [{"x": torch.randn(1, 3, 8, 8)}])
    assert [tuned.status(name) for name in ("torchscript", "onnxruntime", "openvino")] == ["ok"] * 3
    tuned.agrees(net, *({"x": torch.randn(n, 3, 8, 8)} for n in (1, 2, 7, 16)))


def test_an_exported_program_seen_at_batch_1_only_answers_at_every_batch(hasten, tmp_path):
    net = Net().eval()
    dynamic = {"x": {0: torch.export.Dim("batch", min=1, max=16)}}
    program = torch.export.export(net, (torch.randn(2, 3, 8, 8),), dynamic_shapes=dynamic)
    torch.export.save(program, str(tmp_path / "model.pt2"))
    tuned = tune(hasten, tmp_path, tmp_path / "model.pt2", [{"x": torch.randn(1, 3, 8, 8)}],
                 backends=["inductor:threads=1", "onnxruntime:threads=1"])
    assert [tuned.status(name) for name in ("inductor", "onnxruntime")] == ["ok"] * 2
    tuned.agrees(net, *({"x": torch.randn(n, 3, 8, 8)} for n in (1, 2, 7, 16)))


def test_other_sizes_are_checked_though_the_first_axis_is_no_batch(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, script(tmp_path, OneRow()),
                 [{"x": torch.randn(1, length, 4)} for length in (5, 9)],
                 backends=["torchscript:mode=frozen"])
    assert "axis 0 is not a batch axis" in tuned.warnings
    checked = tuned.trials["torchscript"]["check"]["checked"]
    assert [text for text in checked if "(odd)" in text or "(not recorded)" in text] == [
        "dim1 = 7 (odd)", "dim1 = 8 (not recorded)"]


@pytest.mark.parametrize("given", ["samples", "specs"])
def test_a_recurrent_state_shares_the_batch_axis_of_its_input(hasten, tmp_path, given):
    gru = Gru().eval()
    inputs = [{"x": torch.randn(4, n, 8), "h0": torch.randn(1, n, 8)} for n in (1, 2, 5, 1)]
    specs = ["x=float32[T=2..9,B,8]", "h0=float32[1,B,8]"]
    tuned = tune(hasten, tmp_path, script(tmp_path, gru),
                 samples=inputs[:2] if given == "samples" else (),
                 specs=specs if given == "specs" else ())
    assert "ok" in [tuned.status(name) for name in ("torchscript", "onnxruntime", "openvino")]
    # The same call again: no state may stay behind from the one before.
    tuned.agrees(gru, *inputs)


def test_every_length_within_and_beyond_the_declared_range_is_right_or_refused(hasten, tmp_path):
    class Mean(nn.Module):
        def forward(self, x: Tensor):
            total = torch.zeros_like(x[:, 0])
            for i in range(x.shape[1]):
                total = total + x[:, i]
            return total / x.shape[1]
    tuned = tune(hasten, tmp_path, script(tmp_path, Mean()), specs=["x=float32[B,T=3..8]"])
    tuned.agrees(Mean(), *({"x": torch.randn(2, n)} for n in (3, 4, 7, 8, 1, 12)))


def test_nested_outputs_are_flat_under_names_that_stay(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, script(tmp_path, Nested()),
                 [{"x": torch.randn(n, 3)} for n in (1, 2)], backends=QUICK[:1])
    x = torch.randn(4, 3)
    assert list(tuned.run({"x": x})[0]) == [
        "output_0_z_0", "output_0_z_1", "output_0_a_0", "output_1_low", "output_1_high",
        "output_2"]
    tuned.agrees(Nested(), {"x": x})


@pytest.mark.parametrize("name", ["dictionary", "nested"])
def test_outputs_of_dictionaries_and_tuples_equal_eager(hasten, tmp_path, name):
    model = ROOT / "torchscript" / f"{name}.pt"
    eager = torch.jit.load(str(model))
    inputs = ["x", "y"] if name == "dictionary" else ["x"]
    samples = [{key: torch.randn(n, 3) for key in inputs} for n in (1, 2, 5)]

    def without_none(**arguments):
        value = eager(**arguments)
        return value if isinstance(value, dict) else [part for part in value if part is not None]
    tuned = tune(hasten, tmp_path, model, samples[:2], backends=QUICK[:1])
    tuned.agrees(without_none, samples[2])
    # Only a call tells what is in a dictionary: the model as it is has to be called, too.
    hasten("bench", tuned.artifact, "--against", model, "--rounds", "2")
    original = hasten("run", model, "--input", tmp_path / "sample-0.npz").stdout
    assert original == hasten("run", tuned.artifact, "--input", tmp_path / "sample-0.npz").stdout


def test_forty_inputs_and_outputs_keep_their_order(hasten, tmp_path):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 2])
    count = 40
    constants = [helper.make_tensor(f"c{i}", TensorProto.FLOAT, [], [float(i)])
                 for i in range(count)]
    # Output i is made out of input 39 - i, so that a wrong order shows.
    nodes = [helper.make_node("Add", [f"x{count - 1 - i}", f"c{i}"], [f"y{i}"])
             for i in range(count)]
    graph = helper.make_graph(nodes, "many", [value(f"x{i}") for i in range(count)],
                              [value(f"y{i}") for i in range(count)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              tmp_path / "many.onnx")

    def eager(**x):
        return [x[f"x{count - 1 - i}"] + i for i in range(count)]
    samples = [{f"x{i}": torch.randn(n, 2) for i in range(count)} for n in (1, 2, 3)]
    tuned = tune(hasten, tmp_path, tmp_path / "many.onnx", samples[:2], backends=ONNX_BACKENDS)
    assert [tuned.status(name) for name in ("onnxruntime", "openvino")] == ["ok"] * 2
    tuned.agrees(eager, samples[2])
    assert list(tuned.run(samples[2])[0]) == [f"y{i}" for i in range(count)]


def test_names_that_look_like_paths_are_names(hasten, tmp_path):
    # onnx.utils.extract_model makes the first; nothing forbids the others.
    names = ["/encoder/Relu_output_0", "."]
    results = ["a/../b", "/head/logits"]

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 2])
    graph = helper.make_graph([helper.make_node("Add", names, results[:1]),
                               helper.make_node("Sub", names, results[1:])],
                              "paths", [value(n) for n in names], [value(n) for n in results])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              tmp_path / "paths.onnx")

    def eager(**x):
        return [x[names[0]] + x[names[1]], x[names[0]] - x[names[1]]]
    samples = [{name: torch.randn(n, 2) for name in names} for n in (1, 2, 3)]
    tuned = tune(hasten, tmp_path, tmp_path / "paths.onnx", samples[:2], backends=ONNX_BACKENDS)
    assert [tuned.status(name) for name in ("onnxruntime", "openvino")] == ["ok"] * 2
    tuned.agrees(eager, samples[2])
    assert list(tuned.run(samples[2])[0]) == results


def test_inputs_without_use_keep_their_place(hasten, tmp_path):
    class Outer(nn.Module):
        def forward(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor):
            return a + d
    samples = [{name: torch.randn(n, 2) for name in "abcd"} for n in (1, 2, 4)]
    tuned = tune(hasten, tmp_path, script(tmp_path, Outer()), samples[:2])
    tuned.agrees(Outer(), samples[2])
    shown = hasten("inspect", tuned.artifact).stdout
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("    in ")] == [
        "a", "b", "c", "d"]


def test_a_scalar_goes_in_and_comes_out_without_axes(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, ROOT / "onnx" / "scalar.onnx",
                 [{"x": torch.tensor(3.0)}], backends=ONNX_BACKENDS)
    tuned.agrees(lambda x: x * x, {"x": torch.tensor(-1.5)})


def test_a_model_tuned_with_rows_takes_none(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, ROOT / "onnx" / "relu.onnx",
                 [{"x": torch.randn(n, 3)} for n in (1, 2)], backends=ONNX_BACKENDS)
    tuned.agrees(lambda x: torch.relu(x),
                 {"x": torch.empty(0, 3)}, {"x": torch.randn(7, 3)})


def test_a_sample_without_elements_can_be_tuned(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, ROOT / "onnx" / "relu.onnx", [{"x": torch.empty(0, 3)}],
                 backends=ONNX_BACKENDS)
    tuned.agrees(lambda x: torch.relu(x), {"x": torch.empty(0, 3)})


def test_weights_in_another_file_travel_with_the_artifact(hasten, tmp_path):
    for file in ("external.onnx", "weights/w.bin"):
        (tmp_path / "model" / file).parent.mkdir(exist_ok=True)
        (tmp_path / "model" / file).write_bytes((ROOT / "onnx" / file).read_bytes())
    tuned = tune(hasten, tmp_path, tmp_path / "model" / "external.onnx", [{"x": torch.ones(2)}],
                 backends=ONNX_BACKENDS)
    for file in ("weights/w.bin", "external.onnx"):
        (tmp_path / "model" / file).unlink()
    tuned.agrees(lambda x: x + torch.tensor([10.0, 20.0]), {"x": torch.tensor([1.0, -1.0])})


def test_transposed_inputs_are_read_as_they_lie(hasten, tmp_path):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    path = tmp_path / "model.pt"
    torch.jit.trace(layer, torch.randn(2, 8, 16), check_trace=False).save(str(path))
    turned = [torch.randn(n, 16, 8).permute(0, 2, 1) for n in (1, 2, 3)]
    name = "src"
    tuned = tune(hasten, tmp_path, path, [{name: x} for x in turned[:2]])
    assert tuned.status("torchscript") == "ok"
    tuned.agrees(layer, {name: turned[2]}, rtol=1e-3, atol=1e-4)
