# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 LABELS e2e COST 220
"""Values that some engine gets wrong or cannot hold: each build is right, or it is rejected and says so."""
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from e2e.support import QUICK, tune

torch.manual_seed(0)
DATA = Path(__file__).resolve().parents[1] / "data"
ONNX_BACKENDS = ["onnxruntime:threads=1", "openvino:hint=latency"]
NUMPY_KINDS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
               "float32", "float64", "bool"]


def script(folder, module, name="model.pt"):
    path = folder / name
    torch.jit.script(module.eval()).save(str(path))
    return path


class Extremes(nn.Module):
    def forward(self, x: Tensor, y: Tensor):
        return x.amin(1), x.amax(1), y.amin(1), y.amax(1)


class Wrap(nn.Module):
    """Arithmetic that wraps around, and comparisons of what has wrapped."""
    def forward(self, a: Tensor, b: Tensor):
        return (a + a).to(torch.int16), (-a) < 4, (a > 1) & (b > 1), a * a


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor):
        return self.conv(x.float() / 255)


class Integers(nn.Module):
    def forward(self, a: Tensor, b: Tensor):
        return a + b, torch.cumsum(a, 1), torch.div(a, 11, rounding_mode="floor")


def extremes(rows, length):
    return {"x": torch.randint(1, 255, (rows, length), dtype=torch.uint8),
            "y": torch.randint(-128, -1, (rows, length), dtype=torch.int8)}


def test_the_least_and_largest_of_small_integers_are_exact_at_every_length(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, script(tmp_path, Extremes()), [extremes(1, 18), extremes(2, 31)])
    tuned.agrees(Extremes(), *(extremes(3, n) for n in (15, 16, 17, 18, 31, 64)))


def test_a_compiler_that_pads_with_zeros_is_rejected(hasten, tmp_path):
    shape = {0: torch.export.Dim("B", min=1, max=64)}
    program = torch.export.export(Extremes(), tuple(extremes(2, 18).values()),
                                  dynamic_shapes={"x": shape, "y": shape})
    torch.export.save(program, str(tmp_path / "model.pt2"))
    tuned = tune(hasten, tmp_path, tmp_path / "model.pt2", [extremes(1, 18), extremes(2, 18)],
                 backends=["inductor:threads=1", "torchscript:mode=frozen"])
    if tuned.status("inductor") != "ok":  # A later PyTorch may have mended it.
        trial = tuned.trials["inductor"]
        assert (trial["status"], trial["stage"], trial["code"]) == (
            "rejected", "check", "wrong_result"), trial
    tuned.agrees(Extremes(), extremes(3, 18))


def test_small_integers_wrap_around_as_in_eager(hasten, tmp_path):
    def call(*a):
        a = torch.tensor([a], dtype=torch.uint8)
        return {"a": a, "b": a.to(torch.int64) - 1}
    tuned = tune(hasten, tmp_path, script(tmp_path, Wrap()), [call(1, 2, 3), call(128, 253, 0)])
    tuned.agrees(Wrap(), call(128, 255, 254), call(0, 1, 200))


def test_a_picture_of_bytes_becomes_numbers(hasten, tmp_path):
    picture = Picture().eval()

    def call(n):
        return {"x": torch.randint(0, 256, (n, 3, 8, 8), dtype=torch.uint8)}
    tuned = tune(hasten, tmp_path, script(tmp_path, picture), [call(1), call(2)])
    assert [tuned.status(name) for name in ("torchscript", "onnxruntime", "openvino")] == ["ok"] * 3
    tuned.agrees(picture, call(5))


def test_integers_beyond_32_bits_are_exact_though_the_samples_are_small(hasten, tmp_path):
    def call(a, b):
        return {"a": torch.tensor([a]), "b": torch.tensor([b])}
    tuned = tune(hasten, tmp_path, script(tmp_path, Integers()),
                 [call([1, 2], [2, 1]), call([2, 1], [1, 1])])
    tuned.agrees(Integers(), call([5_000_000_000, 7], [3_000_000_000, 1]),
                 call([2**31 - 1, 2**31], [1, 2**31]), call([-2**62, 2**61], [5, -2**61]))


def test_int64_sums_of_an_onnx_model_are_exact_though_the_samples_are_small(hasten, tmp_path):
    model = DATA / "onnx" / "add_int64.onnx"
    tuned = tune(hasten, tmp_path, model, [{"a": torch.tensor([1, 2]), "b": torch.tensor([2, 1])}],
                 backends=["openvino:hint=latency"], any_backend=False)
    assert tuned.status("openvino") != "ok", "it computes int64 in 32 bits"
    tuned.agrees(lambda a, b: a + b, {"a": torch.tensor([5_000_000_000]),
                                      "b": torch.tensor([3_000_000_000])})


def test_float32_is_computed_in_float32_unless_a_loss_is_allowed(hasten, tmp_path):
    linear = nn.Sequential(nn.Linear(256, 256)).eval()
    samples = [{"input": torch.randn(n, 256) * 50} for n in (1, 2, 7)]
    tuned = tune(hasten, tmp_path, script(tmp_path, linear), samples[:2],
                 backends=["openvino", "onnxruntime:threads=1"])
    openvino = [t for t in tuned.report["trials"] if t["backend"] == "openvino"]
    assert all(t["config"].get("precision", "f32") == "f32" for t in openvino), openvino
    assert all(t["status"] != "rejected" for t in tuned.report["trials"])
    tuned.agrees(linear, samples[2], rtol=1e-5, atol=2e-4)


def test_every_optimisation_level_is_proved_by_itself(hasten, tmp_path):
    class Pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))

        def forward(self, x: Tensor):
            return self.layers(x)
    pool = Pool().eval()
    levels = ["disable", "basic", "extended", "all"]
    tuned = tune(hasten, tmp_path, script(tmp_path, pool),
                 [{"x": torch.randn(n, 3, 7, 9)} for n in (1, 2)],
                 backends=[f"onnxruntime:graph={level}" for level in levels])
    assert {t["config"]["graph"]: t["status"] for t in tuned.report["trials"]} == {
        level: "ok" for level in levels}
    tuned.agrees(pool, {"x": torch.randn(3, 3, 7, 9)})


def test_infinities_where_eager_has_them_are_right(hasten, tmp_path):
    class Masked(nn.Module):
        def forward(self, x: Tensor, keep: Tensor):
            return x.masked_fill(~keep, float("-inf"))

    def call(n):
        return {"x": torch.randn(n, 6), "keep": torch.rand(n, 6) > 0.5}
    tuned = tune(hasten, tmp_path, script(tmp_path, Masked()), [call(1), call(2)])
    assert [tuned.status(name) for name in ("torchscript", "onnxruntime", "openvino")] == ["ok"] * 3
    tuned.agrees(Masked(), call(5))


def test_attention_with_a_row_masked_out_equals_eager(hasten, tmp_path):
    class Attention(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)

    def call(n):
        keep = torch.ones(n, 2, 4, 4, dtype=torch.bool)
        keep[:, :, 1] = False
        return {name: torch.randn(n, 2, 4, 8) for name in "qkv"} | {"keep": keep}
    # Traced: the exporters take no scripted attention.
    path = tmp_path / "model.pt"
    torch.jit.trace(Attention().eval(), tuple(call(2).values())).save(str(path))
    tuned = tune(hasten, tmp_path, path, [call(1), call(2)])
    tuned.agrees(Attention(), call(3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_linear_layer_keeps_its_dtype(hasten, tmp_path, dtype):
    linear = nn.Sequential(nn.Linear(8, 4)).to(dtype).eval()

    def call(n):
        return {"input": (torch.randn(n, 8) * 4).to(dtype)}
    tuned = tune(hasten, tmp_path, script(tmp_path, linear), [call(1), call(2)])
    assert tuned.status("torchscript") == "ok"
    loose = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float64: 1e-9}[dtype]
    tuned.agrees(linear, call(5), rtol=loose, atol=loose)
    for name in ("onnxruntime", "openvino"):
        trial = tuned.trials[name]
        assert trial["status"] == "ok" or trial["message"], trial


def test_half_precision_that_overflows_overflows_in_the_same_places(hasten, tmp_path):
    linear = nn.Sequential(nn.Linear(4, 3, bias=False)).half().eval()
    with torch.no_grad():
        linear[0].weight.fill_(1)

    def call(*values):
        return {"input": torch.tensor([values], dtype=torch.float16)}
    tuned = tune(hasten, tmp_path, script(tmp_path, linear),
                 [call(6e4, 6e4, 0, 0), call(1, 2, 3, 4)])
    tuned.agrees(linear, call(3e4, 3e4, 3e4, 0), call(-6e4, -6e4, 1, 1), rtol=2e-3)


def test_complex_numbers_inside_a_model_stay_inside(hasten, tmp_path):
    class Spectrum(nn.Module):
        def forward(self, x: Tensor):
            return torch.fft.rfft(x).abs()
    tuned = tune(hasten, tmp_path, script(tmp_path, Spectrum()),
                 [{"x": torch.randn(n, 16)} for n in (1, 2)])
    assert tuned.status("torchscript") == "ok"
    tuned.agrees(Spectrum(), {"x": torch.randn(5, 16)}, atol=1e-4)


def test_complex_inputs_and_outputs_stay_complex(hasten, tmp_path):
    class Product(nn.Module):
        def forward(self, z: Tensor, w: Tensor):
            return z * w, z.conj()

    def call(n):
        return {"z": torch.randn(n, 3, dtype=torch.complex64),
                "w": torch.randn(n, 3, dtype=torch.complex64)}
    tuned = tune(hasten, tmp_path, script(tmp_path, Product()), [call(1), call(2)])
    tuned.agrees(Product(), call(4))
    for name in ("onnxruntime", "openvino"):
        assert tuned.status(name) != "ok" or tuned.trials[name]["check"]["passed"]


def test_every_dtype_passes_through_an_onnx_model_bit_by_bit(hasten, tmp_path):
    def call(n):
        rng = np.random.default_rng(n)
        arrays = {}
        for kind in NUMPY_KINDS:
            raw = rng.integers(0, 2, n) if kind == "bool" else rng.integers(0, 100, n)
            typed = raw.astype(kind)
            if kind in ("int64", "uint64"):
                typed[0] = np.iinfo(kind).max - 1
            arrays[f"in_{kind}"] = torch.from_numpy(typed)
        arrays["in_bfloat16"] = torch.from_numpy(rng.standard_normal(n)).to(torch.bfloat16)
        return arrays
    order = NUMPY_KINDS[:9] + ["bfloat16"] + NUMPY_KINDS[9:]

    def eager(**arrays):
        return [arrays[f"in_{kind}"].reshape(-1, 1) for kind in order]
    tuned = tune(hasten, tmp_path, DATA / "onnx" / "dtypes.onnx", [call(2), call(3)],
                 backends=ONNX_BACKENDS)
    tuned.agrees(eager, call(5))


def test_booleans_stay_booleans(hasten, tmp_path):
    class Logic(nn.Module):
        def forward(self, a: Tensor, b: Tensor):
            return a & ~b, a ^ b, a.any()

    def call(n):
        return {name: torch.rand(n, 3) > 0.5 for name in "ab"}
    tuned = tune(hasten, tmp_path, script(tmp_path, Logic()), [call(1), call(2)], backends=QUICK)
    tuned.agrees(Logic(), call(5))
