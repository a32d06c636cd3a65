# SPDX-License-Identifier: Apache-2.0
"""Declared axes: what cannot be is refused at once, with the place."""

import pytest
import torch

from hasten.torch import BatchDim, DynamicDim, InvalidArgument, Module
from hasten.torch.shapes import DeclaredShapes

BATCH, LENGTH = BatchDim("batch", 1, 8), DynamicDim("length", 4, 64, opt=16)


@pytest.mark.parametrize("make, message", [
    (lambda: DynamicDim("", 1, 2), "non-empty"),
    (lambda: DynamicDim("t", 0, 2), "min has to be above 0"),
    (lambda: DynamicDim("t", 2, 2), "min 2 is not below max 2"),
    (lambda: DynamicDim("t", True, 2), "min has to be an int"),
    (lambda: DynamicDim("t", 1, 8, opt=9), "opt 9 is not within 1 to 8"),
    (lambda: DeclaredShapes([]), "dictionary"),
    (lambda: DeclaredShapes({"": (1,)}), "no path"),
    (lambda: DeclaredShapes({("x",): (1,)}), "no path"),
    (lambda: DeclaredShapes({"x": [1]}), "tuple"),
    (lambda: DeclaredShapes({"x": (True,)}), "an axis is an int"),
    (lambda: DeclaredShapes({"x": (-1,)}), "cannot be -1"),
    (lambda: DeclaredShapes({"x": (BATCH,), "y": (BatchDim("batch", 1, 9),)}), "in two ways"),
])
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InvalidArgument, match=message) as raised:
        make()
    assert isinstance(raised.value, ValueError) and raised.value.code == "invalid_argument"


class Net(torch.nn.Module):
    def forward(self, x, options):
        return x.sum() + options["mask"].sum()


DECLARED = {"x": (BATCH, LENGTH), ("options", "mask"): (BATCH, 3)}


@pytest.mark.parametrize("x, mask, message", [
    ((2, 8), (2, 3), None),
    ((2, 8, 1), (2, 3), "declared with 2 axes, but has 3"),
    ((2, 3), (2, 3), "length from 4 to 64, but is 3"),
    ((9, 8), (9, 3), "batch from 1 to 8, but is 9"),
    ((2, 8), (2, 4), "declared 3, but is 4"),
    ((2, 8), (3, 3), "'batch' is 3 here and 2 elsewhere"),
])
def test_a_call_is_held_against_what_was_declared(x, mask, message):
    model = Module(Net(), "declared", dynamic_shapes=DECLARED)
    call = lambda: model(torch.zeros(x), options={"mask": torch.zeros(mask)})  # noqa: E731
    if message is None:
        assert call() == 0
    else:
        with pytest.raises(InvalidArgument, match=message):
            call()


def test_declared_axes_replace_what_one_sample_shows():
    model = Module(Net(), "declared", dynamic_shapes=DECLARED)
    model(torch.zeros(2, 8), options={"mask": torch.zeros(2, 3)})
    (graph,) = model.graph_specs
    x, mask = graph.spec["inputs"]
    assert [axis["kind"] for axis in x["axes"]] == ["batch", "dynamic"]
    assert (x["axes"][1]["min"], x["axes"][1]["max"]) == (4, 64)
    assert [axis["kind"] for axis in mask["axes"]] == ["batch", "static"]
