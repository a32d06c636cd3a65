# SPDX-License-Identifier: Apache-2.0
"""The worker that runs eager PyTorch: what the protocol says, seen from the host's side."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

from compile_support import save_program
from worker_host import Worker, WorkerError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    started = Worker(tmp_path_factory.mktemp("worker"), {"HASTEN_THREADS": "1"})
    yield started
    assert started.close() == 0


def built(worker, path, **config):
    return worker.ask("build", model=str(path), format="pt2", graph={}, config=config,
                      work_dir=str(path.parent))


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        return x * self.weight, x.sum()


@pytest.fixture(scope="module")
def scale(tmp_path_factory):
    return save_program(tmp_path_factory.mktemp("scale"), Scale(), (torch.ones(4, 3),),
                        ({0: Dim("b", min=1, max=8)},))


def test_hello_comes_first_and_probe_needs_no_torch(tmp_path):
    worker = Worker(tmp_path)
    assert worker.hello["protocol"] == 1 and worker.hello["backend"] == "eager"
    assert worker.hello["pid"] == worker.process.pid
    facts = worker.ask("probe")["facts"]
    assert facts["library_version"].startswith("2.")
    with open(f"/proc/{worker.process.pid}/maps") as maps:
        assert "libtorch" not in maps.read()
    assert worker.close() == 0


def test_describe_says_what_the_descriptor_says(worker):
    descriptor = json.loads((ROOT / "plugins/eager/hasten_eager.json").read_text())
    described = worker.ask("describe")["describe"]
    assert described == descriptor["describe"]


def test_inspect_gives_names_dtypes_symbols_and_ranges(worker, scale):
    signature = worker.ask("inspect", model=str(scale), format="pt2")["signature"]
    [x] = signature["inputs"]
    symbol = x["shape"][0]
    assert x == {"name": "x", "dtype": "float32", "shape": [symbol, 3]}
    assert signature["ranges"] == {symbol: [1, 8]}
    assert [(o["name"], o["shape"]) for o in signature["outputs"]] == [
        ("output_0", [symbol, 3]), ("output_1", [])]


def test_candidates_are_the_baseline_and_the_oracle(worker):
    roles = {c["role"]: c["config"]
             for c in worker.ask("candidates", model="m", format="pt2")["candidates"]}
    assert roles == {"baseline": {}, "oracle": {"precision": "float64"}}
    assert worker.ask("candidates", model="m", format="onnx")["candidates"] == []


def test_run_gives_the_values_of_eager_in_any_strides(worker, scale):
    assert built(worker, scale) == {"n_inputs": 1, "n_outputs": 2}
    x = torch.randn(3, 5).t()
    worker.set_inputs(0, x)
    product, total = worker.run(0)
    assert torch.equal(product, x * torch.tensor([1.0, 2.0, 3.0]))
    assert total.shape == () and torch.allclose(total, x.sum())


def test_one_element_that_lies_far_from_the_next_is_an_output_like_others(worker, tmp_path):
    class Last(nn.Module):
        def forward(self, x):
            return x[:, -1]

    built(worker, save_program(tmp_path, Last(), (torch.ones(2, 8),), ({0: Dim("b", min=1)},)))
    for rows in (1, 3):
        x = torch.randn(rows, 8)
        worker.set_inputs(0, x)
        (last,) = worker.run(0)
        assert torch.equal(last, x[:, -1])


def test_turn_calls_at_least_once_and_about_as_long_as_asked(worker, scale):
    built(worker, scale)
    worker.set_inputs(0, torch.ones(2, 3))
    assert len(worker.ask("turn", slot=0, budget_ns=0, fresh_inputs=False)["durations_ns"]) == 1
    durations = worker.ask("turn", slot=0, budget_ns=20_000_000, fresh_inputs=True)["durations_ns"]
    assert len(durations) > 1 and min(durations) > 0
    assert worker.ask("memory")["peak_bytes"] > 50 << 20


def test_a_size_outside_the_range_another_dtype_and_another_count_are_refused(worker, scale):
    built(worker, scale)
    for tensors, words in (([torch.ones(9, 3)], "<= 8"), ([torch.ones(2, 4)], "== 3"),
                           ([torch.ones(2, 3).double()], "'x' is float64"),
                           ([torch.ones(3)], "1 axes"), ([], "0 inputs given")):
        worker.set_inputs(1, *tensors)
        with pytest.raises(WorkerError, match=words) as refusal:
            worker.run(1)
        assert refusal.value.code == "invalid_argument"
    worker.set_inputs(1, torch.ones(2, 3))
    worker.run(1)  # The worker goes on.


class Third(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("three", torch.tensor([3.0]))

    def forward(self, x):
        ones = torch.ones(1, dtype=torch.float32)
        return (x.to(torch.float32) * ones / self.three).to(torch.float32)


def test_precision_float64_computes_everything_in_double(worker, tmp_path):
    path = save_program(tmp_path, Third(), (torch.ones(2),))
    for precision, dtype in (("native", torch.float32), ("float64", torch.float64)):
        built(worker, path, precision=precision, threads="1")
        worker.set_inputs(0, torch.ones(2))
        [third] = worker.run(0)
        assert third.dtype == dtype
        assert torch.equal(third, torch.ones(2, dtype=dtype) / 3)


class Writes(nn.Module):
    def forward(self, x, y):
        x.mul_(2)
        return y.view(-1), x + 1


def test_audit_sees_written_inputs_and_aliases(worker, tmp_path):
    path = save_program(tmp_path, Writes(), (torch.ones(2, 2), torch.ones(2, 2)))
    built(worker, path)
    worker.set_inputs(0, torch.ones(2, 2), torch.ones(2, 2))
    worker.set_inputs(1, torch.zeros(2, 2), torch.zeros(2, 2))
    audit = worker.ask("audit", slot=0, other=1)
    assert audit == {"written_inputs": [0], "aliases": [[0, 1]], "first_result_changed": False}
    for _ in range(2):  # Each run starts from the pristine inputs.
        assert torch.equal(worker.run(0)[1], torch.full((2, 2), 3.0))


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


def test_state_is_kept_between_calls_as_eager_keeps_it(worker, tmp_path):
    built(worker, save_program(tmp_path, State(), (torch.zeros(1),)))
    worker.set_inputs(0, torch.zeros(1))
    assert [worker.run(0)[0].item() for _ in range(3)] == [1, 2, 3]


class Nested(nn.Module):
    def forward(self, options, z):
        return {"k": [options["a/b.c"] + options[1], 3.5], "n": z.shape[0]}, None, z.conj()


def test_nests_are_flattened_under_stable_names(worker, tmp_path):
    batch = Dim("batch", min=1, max=16)
    args = ({"a/b.c": torch.ones(2), 1: torch.ones(2)}, torch.ones(4, dtype=torch.complex64))
    path = save_program(tmp_path, Nested(), args, ({"a/b.c": None, 1: None}, {0: batch}))
    signature = worker.ask("inspect", model=str(path), format="pt2")["signature"]
    assert [i["name"] for i in signature["inputs"]] == ["options_a_b_c", "options_1", "z"]
    assert [(o["name"], o["dtype"]) for o in signature["outputs"]] == [
        ("output_0_k_0", "float32"), ("output_0_k_1", "float64"), ("output_0_n", "int64"),
        ("output_2", "complex64")]
    assert built(worker, path) == {"n_inputs": 3, "n_outputs": 4}
    z = torch.tensor([1 + 2j, 3 - 1j, 0j])
    worker.set_inputs(0, torch.ones(2), torch.full((2,), 2.0), z.to(torch.complex64))
    total, half, n, conjugate = worker.run(0)
    assert total.tolist() == [3, 3] and half.item() == 3.5 and n.item() == 3
    assert conjugate.tolist() == [1 - 2j, 3 + 1j, 0j]


class Same(nn.Module):
    def forward(self, x):
        return x.clone()


@pytest.mark.parametrize("tensor", [
    torch.tensor([True, False]), torch.tensor([200, 7], dtype=torch.uint8),
    torch.tensor([5_000_000_000]), torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    torch.tensor([6e4], dtype=torch.float16), torch.tensor(3.0), torch.empty(0, 3)])
def test_every_dtype_scalars_and_tensors_without_elements(worker, tmp_path, tensor):
    built(worker, save_program(tmp_path, Same(), (tensor,)))
    worker.set_inputs(0, tensor)
    [found] = worker.run(0)
    assert found.dtype == tensor.dtype and found.shape == tensor.shape
    assert torch.equal(found, tensor)


def test_bad_requests_are_answered_and_the_worker_goes_on(worker, scale, tmp_path):
    bad = tmp_path / "bad.pt2"
    bad.write_bytes(b"not a program" * 50)
    cases = [
        ({"op": "fly"}, "invalid_argument", "no request 'fly'"),
        ({"op": "inspect", "model": str(bad), "format": "pt2"}, "invalid_argument", "bad.pt2"),
        ({"op": "inspect", "model": str(scale), "format": "onnx"}, "unsupported", "onnx"),
        ({"op": "save", "dir": "d"}, "unsupported", "needs Python"),
        ({"op": "run", "slot": 77}, "invalid_argument", "slot 77"),
        ({"op": "build", "model": str(scale), "format": "pt2", "graph": {}, "work_dir": "",
          "config": {"speed": "1"}}, "invalid_argument", "known options: precision, threads"),
        ({"op": "build", "model": str(scale), "format": "pt2", "graph": {}, "work_dir": "",
          "config": {"threads": "many"}}, "invalid_argument", "whole number"),
    ]
    built(worker, scale)
    for request, code, words in cases:
        with pytest.raises(WorkerError, match=words) as failure:
            worker.ask(request.pop("op"), **request)
        assert failure.value.code == code, request
    built(worker, scale)
