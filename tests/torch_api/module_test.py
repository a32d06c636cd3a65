# SPDX-License-Identifier: Apache-2.0
"""A wrapped module is the module: nobody who uses it can tell."""

import copy
import inspect
import pickle
import threading

import pytest
import torch

import hasten.torch as ait


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
        self.scale = 2.0

    def forward(self, x: torch.Tensor, bias: float = 0.0) -> torch.Tensor:
        """Scales."""
        return self.layers[0](self.layer(x)) * self.scale + bias

    def helper(self):
        return self.scale


@pytest.fixture
def pair():
    module = Net().eval()
    plain = copy.deepcopy(module)
    return ait.Module(module, "net"), plain


X = torch.arange(8.0).reshape(2, 4)


def test_it_answers_and_looks_like_the_module(pair):
    wrapped, plain = pair
    assert torch.equal(wrapped(X), plain(X)) and torch.equal(wrapped(x=X, bias=1.0), plain(X, 1.0))
    assert isinstance(wrapped, Net) and isinstance(wrapped, torch.nn.Module)
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    assert [n for n, _ in wrapped.named_parameters()] == [n for n, _ in plain.named_parameters()]
    assert wrapped.helper() == 2.0
    wrapped.scale = 3.0
    assert wrapped.helper() == 3.0
    assert inspect.signature(wrapped.forward) == inspect.signature(plain.forward)
    assert wrapped.forward.__doc__ == "Scales."


def test_it_can_be_part_of_another_module(pair):
    wrapped, plain = pair
    whole = torch.nn.Sequential(torch.nn.Identity(), wrapped)
    assert torch.equal(whole(X), plain(X))
    assert [n for n, _ in whole.named_parameters()][0] == "1.layer.weight"
    assert whole.to(torch.float64)[1](X.double()).dtype == torch.float64


def test_to_train_and_eval_give_the_wrapped_module_back(pair):
    wrapped, _ = pair
    assert type(wrapped.to("cpu")) is ait.Module
    assert type(wrapped.eval()) is ait.Module and type(wrapped.train()) is ait.Module
    assert wrapped.training


def test_the_users_hooks_fire_once_a_call(pair):
    wrapped, _ = pair
    calls = []
    wrapped.register_forward_pre_hook(lambda module, args: calls.append("before"))
    wrapped.register_forward_hook(lambda module, args, output: calls.append("after"))
    wrapped(X)
    assert calls == ["before", "after"]


def test_copies_are_modules_of_their_own(pair):
    wrapped, plain = pair
    for copied in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert type(copied) is ait.Module and torch.equal(copied(X), plain(X))
        with torch.no_grad():
            copied.layer.weight.zero_()
        assert torch.equal(wrapped(X), plain(X))


def test_states_and_what_is_not_allowed(pair):
    wrapped, _ = pair
    assert wrapped.tuning_state is ait.State.INIT
    wrapped(X)
    assert wrapped.tuning_state is ait.State.RECORDING
    wrapped.enable_passthrough()
    wrapped(X)
    assert wrapped.tuning_state is ait.State.PASSTHROUGH
    assert len(wrapped.graph_specs) == 1
    with pytest.raises(ait.InvalidArgument, match="exclude each other"):
        ait.Module(Net(), strategy=ait.MaxThroughputStrategy(), strategies=[])
    with pytest.raises(ait.InvalidArgument, match="nn.Module expected, not a function"):
        ait.Module(lambda x: x)


def test_recorded_values_are_those_before_the_call():
    class Writes(torch.nn.Module):
        def forward(self, x):
            return x.add_(1)
    wrapped = ait.Module(Writes(), "writes")
    given = torch.zeros(2)
    wrapped(given)
    (graph,) = wrapped.graph_specs
    assert graph.samples[0].tensors[0].tolist() == [0, 0] and given.tolist() == [1, 1]


def test_calls_from_many_threads_are_all_answered(pair):
    wrapped, plain = pair
    expected, answers = plain(X), [None] * 8

    def call(i):
        for _ in range(20):
            answers[i] = wrapped(X)
    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(answer, expected) for answer in answers)


def test_another_structure_or_dtype_is_another_graph(pair):
    wrapped, _ = pair
    wrapped(X)
    wrapped(bias=0.0, x=X)
    wrapped(X, 0.0)
    assert [len(graph.samples) for graph in wrapped.graph_specs] == [1, 2]
