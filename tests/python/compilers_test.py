# SPDX-License-Identifier: Apache-2.0
"""The compilers: what they make computes what the original computes, at sizes that were never
recorded; what they cannot make has a reason."""
# ctest: TIMEOUT 900 COST 45

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from compile_support import answer, save_program, save_script, write_request
from hasten.compilers import (_export, pt2_to_onnx, pt2_to_torchscript, torchscript_to_onnx,
                              torchscript_to_pt2)
from hasten.flat import FlatModule, FlatProgram

torch.manual_seed(0)


def run_onnx(path, *tensors):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    feeds = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
    return session, [torch.from_numpy(np.asarray(a)) for a in session.run(None, feeds)]


def run_pt2(path, *tensors):
    return list(FlatModule(FlatProgram(torch.export.load(str(path))))(*tensors))


def run_script(path, *tensors):
    result = torch.jit.load(str(path))(*tensors)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def close(found, expected, tolerance=1e-5):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def made(module, request):
    result = answer(module, request)
    assert result["ok"], result
    return result["path"], result["facts"]


def test_examples_have_sizes_of_at_least_two_and_distinct_per_symbol():
    axes = [{"kind": "batch", "min": 1, "max": 1, "multiplier": 2, "symbol": "B"},
            {"kind": "dynamic", "min": 1, "max": 2, "multiplier": 1, "symbol": "T"},
            {"kind": "static", "min": 3, "max": 3, "multiplier": 1, "symbol": ""}]
    graph = {"inputs": [{"name": "x", "dtype": "float32", "axes": axes}]}
    sample = torch.arange(6.0).reshape(2, 1, 3)
    [example] = _export.choose_examples(graph, [[sample]])
    assert example.shape == (4, 3, 3)
    # The recorded rows in turn, never row 0 alone.
    assert example[:, 0].tolist() == [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 5)

    def forward(self, image):
        return self.linear(self.conv(image).flatten(1))


def test_a_batch_recorded_at_one_does_not_freeze(tmp_path):
    model = ConvNet().eval()
    image = torch.randn(1, 3, 8, 8)
    path = save_script(tmp_path, model, image)
    request = write_request(tmp_path, path, "torchscript", [{"image": image}],
                            {"image": {0: "B"}})
    pt2, facts = made(torchscript_to_pt2, request)
    assert facts["ranges"] == {"B": [1, 64]} and facts["static"] == []
    onnx, _ = made(torchscript_to_onnx, request)
    for batch in (1, 2, 7, 16):
        x = torch.randn(batch, 3, 8, 8)
        with torch.no_grad():
            close(run_pt2(pt2, x), [model(x)])
            session, found = run_onnx(onnx, x)
            close(found, [model(x)])
    assert [value.shape[0] for value in session.get_inputs() + session.get_outputs()] == ["B"] * 2
    assert session.get_inputs()[0].name == "image"


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 8)

    def forward(self, x, h0):
        return self.gru(x, h0)


@pytest.mark.parametrize("traced", [True, False])
def test_a_state_with_the_batch_at_axis_one_follows_it(tmp_path, traced):
    model = Gru().eval()
    samples = [{"x": torch.randn(t, b, 8), "h0": torch.randn(1, b, 8)}
               for t, b in ((5, 1), (5, 2), (7, 2))]
    path = save_script(tmp_path, model, tuple(samples[1].values()) if traced else None)
    dynamic = {"x": {0: "T", 1: "B"}, "h0": {1: "B"}}
    request = write_request(tmp_path, path, "torchscript", samples, dynamic)
    pt2, facts = made(torchscript_to_pt2, request)
    assert facts["static"] == [] or {s["symbol"] for s in facts["static"]} == {"T"}
    lengths = (4, 5, 9) if not facts["static"] else (facts["static"][0]["size"],)
    for length in lengths:
        for batch in (1, 2, 5):
            x, h0 = torch.randn(length, batch, 8), torch.randn(1, batch, 8)
            with torch.no_grad():
                close(run_pt2(pt2, x, h0), model(x, h0))


class CeilPool(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 2, ceil_mode=True) + x[:, :, ::2]


def test_a_constraint_between_sizes_is_taken_as_suggested_and_reported(tmp_path):
    model = CeilPool()
    samples = [{"x": torch.randn(2, 3, n)} for n in (8, 12)]
    path = save_script(tmp_path, model, samples[0]["x"])
    request = write_request(tmp_path, path, "torchscript", samples, {"x": {2: "T"}})
    result = answer(torchscript_to_pt2, request)
    assert result["ok"], result
    facts = result["facts"]
    step = facts.get("multiples", {}).get("T", 1)
    sizes = {entry["size"] for entry in facts["static"]} or {8, 12, 8 + 3 * step}
    for size in sizes:
        x = torch.randn(2, 3, size)
        close(run_pt2(result["path"], x), [model(x)])


class BakedLength(nn.Module):
    def forward(self, x):
        return x[:, : int(x.shape[1] * 0.75)] * 2


def test_a_length_that_python_computes_is_kept_or_reported_as_static(tmp_path):
    samples = [{"x": torch.randn(2, n)} for n in (8, 12)]
    path = save_script(tmp_path, BakedLength())
    request = write_request(tmp_path, path, "torchscript", samples, {"x": {1: "T"}})
    result = answer(torchscript_to_pt2, request)
    if not result["ok"]:
        assert result["code"] == "unsupported"
        return
    sizes = [s["size"] for s in result["facts"]["static"]] or [8, 12, 16]
    for size in sizes:
        x = torch.randn(2, size)
        close(run_pt2(result["path"], x), [BakedLength()(x)])


class ByValue(nn.Module):
    def forward(self, x):
        if float(x.sum()) > 0:
            return x * 2
        return x - 1


class ByShape(nn.Module):
    def forward(self, x):
        if x.dim() == 2:
            x = x.unsqueeze(1)
        total = torch.zeros_like(x[:, 0])
        for i in range(3):
            total = total + x.sum(1) * float(i)
        return total


def test_a_branch_that_depends_on_values_is_refused_with_the_reason(tmp_path):
    samples = [{"x": torch.ones(2, 3)}, {"x": torch.ones(3, 3)}]
    path = save_script(tmp_path, ByValue())
    request = write_request(tmp_path, path, "torchscript", samples, {"x": {0: "B"}})
    result = answer(torchscript_to_pt2, request)
    assert not result["ok"] and result["code"] == "unsupported"
    assert "torch.export failed" in result["message"] and result["hint"]
    assert [step["ok"] for step in result["facts"]["steps"]] == [False, False]
    # The older ONNX exporter keeps the branch.
    onnx, facts = made(torchscript_to_onnx, request)
    assert facts["exporter"] == "torchscript"
    for x in (torch.ones(5, 3), -torch.ones(5, 3)):
        close(run_onnx(onnx, x)[1], [ByValue()(x)])


def test_a_branch_and_a_loop_that_depend_on_shapes_are_resolved(tmp_path):
    samples = [{"x": torch.randn(2, 3)}, {"x": torch.randn(3, 3)}]
    path = save_script(tmp_path, ByShape())
    request = write_request(tmp_path, path, "torchscript", samples, {"x": {0: "B"}})
    pt2, facts = made(torchscript_to_pt2, request)
    assert facts["static"] == []
    x = torch.randn(6, 3)
    close(run_pt2(pt2, x), [ByShape()(x)])


class Structured(nn.Module):
    def forward(self, options, unused, pair):
        a, b = pair
        return {"k": [options["a2"] + a, 3.5], "n": a.shape[0]}, None, options["a1"] * b


def structured_program(folder):
    batch = Dim("batch", min=1, max=16)
    options = {"a2": torch.randn(4, 3), "a1": torch.randn(4, 3)}
    pair = (torch.randn(4, 3), torch.randn(3))
    args = (options, torch.randn(2), pair)
    shapes = ({"a2": {0: batch}, "a1": {0: batch}}, None, ({0: batch}, None))
    names = ["options_a2", "options_a1", "unused", "pair_0", "pair_1"]
    flat = dict(zip(names, [*options.values(), args[1], *pair], strict=True))
    dynamic = {name: {0: "B"} for name in ("options_a2", "options_a1", "pair_0")}
    return save_program(folder, Structured(), args, shapes), flat, dynamic


@pytest.mark.parametrize("compiler, run", [
    (pt2_to_onnx, lambda path, *x: run_onnx(path, *x)[1]), (pt2_to_torchscript, run_script)])
def test_nests_come_flat_in_order_and_numbers_follow_the_batch(tmp_path, compiler, run):
    path, sample, dynamic = structured_program(tmp_path)
    request = write_request(tmp_path, path, "pt2", [sample], dynamic)
    result, facts = made(compiler, request)
    assert [leaf["name"] for leaf in facts["inputs"]] == list(sample)
    assert [leaf["name"] for leaf in facts["outputs"]] == [
        "output_0_k_0", "output_0_k_1", "output_0_n", "output_2"]
    for batch in (2, 5):
        a2, a1, a, unused, b = (torch.randn(batch, 3), torch.randn(batch, 3),
                                torch.randn(batch, 3), torch.randn(2), torch.randn(3))
        found = run(result, a2, a1, unused, a, b)
        expected = [a2 + a, torch.tensor(3.5, dtype=torch.float64), torch.tensor(batch), a1 * b]
        assert [t.dtype for t in found] == [t.dtype for t in expected]
        close(found, expected)


class Unused(nn.Module):
    def forward(self, a, b, c, d):
        return a + d


def test_inputs_that_are_not_used_stay_in_their_place(tmp_path):
    sample = {name: torch.randn(2, 3) for name in "abcd"}
    path = save_script(tmp_path, Unused(), tuple(sample.values()))
    onnx, _ = made(torchscript_to_onnx, write_request(tmp_path, path, "torchscript", [sample]))
    session, found = run_onnx(onnx, *sample.values())
    assert [value.name for value in session.get_inputs()] == list("abcd")
    close(found, [sample["a"] + sample["d"]])


class Optional(nn.Module):
    def forward(self, x, scale: float = 2.0, y: torch.Tensor | None = None):
        return x * scale if y is None else x * scale + y


def test_arguments_with_defaults_may_be_left_out(tmp_path):
    path = save_script(tmp_path, Optional())
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for sample, expected in (({"x": x}, x * 2), ({"y": y, "x": x}, x * 2 + y)):
        pt2, _ = made(torchscript_to_pt2, write_request(tmp_path, path, "torchscript", [sample]))
        close(run_pt2(pt2, *sample.values()), [expected])


class Bytes(nn.Module):
    def forward(self, x, n):
        return (x + x).to(torch.int16), -x < 4, (x > 1) & (n > 1), x.min(), x.argmin(), n.cumsum(0)


@pytest.mark.parametrize("size", [15, 16, 17, 31, 64])
def test_integers_are_exact_through_torchscript(tmp_path, size):
    x = torch.randint(1, 255, (size,), dtype=torch.uint8)
    n = torch.arange(size) * 3_000_000_000
    x[0] = 128
    path = save_program(tmp_path, Bytes(), (x, n))
    script, _ = made(pt2_to_torchscript, write_request(tmp_path, path, "pt2", [{"x": x, "n": n}]))
    for a, b in zip(run_script(script, x, n), Bytes()(x, n), strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_float_types_stay_what_they_are(tmp_path, dtype):
    model = nn.Linear(4, 3).to(dtype).eval()
    samples = [{"x": torch.randn(n, 4, dtype=dtype)} for n in (1, 3)]
    path = save_script(tmp_path, model, samples[1]["x"])
    request = write_request(tmp_path, path, "torchscript", samples, {"x": {0: "B"}})
    pt2, facts = made(torchscript_to_pt2, request)
    assert facts["outputs"][0]["dtype"] == str(dtype).removeprefix("torch.")
    x = torch.randn(5, 4, dtype=dtype)
    with torch.no_grad():
        close(run_pt2(pt2, x), [model(x)], tolerance=1e-2)
        script, _ = made(pt2_to_torchscript, {**request, "model": pt2, "format": "pt2"})
        close(run_script(script, x), [model(x)], tolerance=1e-2)


class Complex(nn.Module):
    def forward(self, z, w):
        return z * w, z.conj()


def test_complex_numbers_stay_complex_or_are_refused_by_both_exporters(tmp_path):
    sample = {"z": torch.randn(3, dtype=torch.complex64), "w": torch.randn(3, dtype=torch.complex64)}
    path = save_program(tmp_path, Complex(), tuple(sample.values()))
    request = write_request(tmp_path, path, "pt2", [sample])
    script, _ = made(pt2_to_torchscript, request)
    found = [t.resolve_conj() for t in run_script(script, *sample.values())]
    close(found, [t.resolve_conj() for t in Complex()(*sample.values())])
    result = answer(pt2_to_onnx, request)
    if result["ok"]:
        graph = onnx.load(result["path"]).graph
        complex64 = onnx.TensorProto.COMPLEX64
        assert {value.type.tensor_type.elem_type for value in [*graph.input, *graph.output]} == \
            {complex64}
    else:
        assert "dynamo" in result["message"] and "TorchScript" in result["message"]


class Shapes(nn.Module):
    def forward(self, x):
        b, t = x.shape
        position = torch.arange(t, device=x.device).expand(b, t)
        mask = torch.full((t, t), float("-inf")).triu(1)
        return x.view(b * t, 1).repeat(1, 2), position, mask[:, None, :].sum(0), x[..., 1::2]


def test_sizes_stay_variables_in_the_written_source(tmp_path):
    shapes = ({0: Dim("b", min=1, max=64), 1: Dim("t", min=4, max=128)},)
    path = save_program(tmp_path, Shapes(), (torch.randn(3, 5),), shapes)
    samples = [{"x": torch.randn(2, 5)}, {"x": torch.randn(3, 7)}]
    request = write_request(tmp_path, path, "pt2", samples, {"x": {0: "B", 1: "T"}})
    script, facts = made(pt2_to_torchscript, request)
    assert facts["ranges"] == {"B": [1, 64], "T": [4, 128]}
    for b, t in ((1, 4), (4, 11), (64, 128)):
        x = torch.randn(b, t)
        close(run_script(script, x), list(Shapes()(x)))


def test_training_mode_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.script(nn.Dropout().train()).save(str(path))
    result = answer(torchscript_to_pt2,
                    write_request(tmp_path, path, "torchscript", [{"input": torch.ones(2)}]))
    assert result["code"] == "unsupported" and "eval()" in result["hint"]


@pytest.mark.parametrize("compiler, model_format, name", [
    (torchscript_to_pt2, "torchscript", "bad.pt"), (torchscript_to_onnx, "torchscript", "bad.pt"),
    (pt2_to_onnx, "pt2", "bad.pt2"), (pt2_to_torchscript, "pt2", "bad.pt2")])
def test_a_file_of_random_bytes_is_named(tmp_path, compiler, model_format, name):
    path = tmp_path / name
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    result = answer(compiler, write_request(tmp_path, path, model_format, [{"x": torch.ones(2)}]))
    assert result["code"] == "invalid_argument" and name in result["message"]


def test_samples_are_asked_for(tmp_path):
    path = save_script(tmp_path, Unused(), tuple(torch.ones(2) for _ in range(4)))
    request = {
        "model": str(path), "format": "torchscript", "graph": {}, "samples": "", "options": {},
        "output_dir": str(tmp_path / "out")}
    assert answer(torchscript_to_pt2, request)["code"] == "invalid_argument"


def test_the_child_works_in_a_folder_with_a_difficult_name(tmp_path):
    folder = tmp_path / "a b" / "c'd $x" / "模型-é"
    folder.mkdir(parents=True)
    x = torch.randn(2, 3)
    path = save_script(folder, Unused(), (x, x, x, x))
    request = write_request(folder, path, "torchscript", [dict.fromkeys("abcd", x)])
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "LANG"}
    done = subprocess.run([sys.executable, "-m", "hasten.compilers.torchscript_to_onnx",
                           str(folder / "request.json")],
                          env={**environment, "LC_ALL": "C"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads((Path(request["output_dir"]) / "result.json").read_text(encoding="utf-8"))
    assert result["ok"], result
    close(run_onnx(result["path"], x, x, x, x)[1], [x + x])


def test_the_list_of_compilers_names_modules_that_are_there():
    import hasten.compilers
    folder = os.path.dirname(hasten.compilers.__file__)
    with open(os.path.join(folder, "compilers.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            assert os.path.exists(os.path.join(folder, entry["module"] + ".py"))
            assert entry.keys() == {"name", "from", "to", "module", "cost"}
