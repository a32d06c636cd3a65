# SPDX-License-Identifier: Apache-2.0
"""Value trees: any value that a module takes or returns comes back as it was."""

import collections
from dataclasses import dataclass

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from hasten.errors import InvalidArgument
from hasten.torch import tree

Point = collections.namedtuple("Point", "x y")


@dataclass
class Boxes:
    corners: torch.Tensor
    label: str


A, B = torch.arange(3), torch.ones(2, 2)
VALUES = [
    A, [A, B], (A,), {"a": A, 3: B}, Point(A, 1), Boxes(A, "cat"), BaseModelOutput(A, (A, B)),
    collections.OrderedDict(b=A, a=B), None, 1, 1.5, True, "text", [], (), {},
    {"deep": [({"deeper": (A, None, [B, 2])},)]}, [A, [1, "x", None, False], {"k": 0.5}],
]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a is b
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Boxes):
        return same(a.corners, b.corners) and a.label == b.label
    return a == b


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_a_value_comes_back_as_it_was(value):
    tensors, structure = tree.flatten(value)
    assert same(value, tree.build(structure, tensors))


def test_structures_differ_in_everything_but_tensors():
    structures = [tree.flatten(value)[1] for value in
                  [A, [A], (A,), {"a": A}, {"b": A}, [A, 1], [A, 1.0], [A, True], [A, None],
                   [A, "1"], Point(A, 1), Boxes(A, "cat"), Boxes(A, "dog")]]
    assert len(set(structures)) == len(structures)
    for value in VALUES:
        assert tree.flatten(value)[1] == tree.flatten(value)[1]
        assert hash(tree.flatten(value)[1]) == hash(tree.flatten(value)[1])


def test_nan_is_the_same_constant_again():
    assert tree.flatten([float("nan")])[1] == tree.flatten([float("nan")])[1]


def test_the_order_of_a_dictionary_is_kept():
    assert tree.flatten({"a": A, "b": B})[1] != tree.flatten({"b": B, "a": A})[1]


def test_a_value_that_contains_itself_is_refused():
    loop = [A]
    loop.append(loop)
    with pytest.raises(InvalidArgument, match="contains itself"):
        tree.flatten(loop)


def test_a_value_that_stands_twice_is_no_loop():
    inner = [A]
    tensors, structure = tree.flatten([inner, inner])
    assert len(tensors) == 2 and same([[A], [A]], tree.build(structure, tensors))
