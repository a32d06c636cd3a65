# SPDX-License-Identifier: Apache-2.0
"""The same values, however they are passed, are the same call."""

import functools

import pytest
import torch

from hasten.torch.call import Signature, names_of

X, Y = torch.zeros(1), torch.ones(1)


def forward(x, y, scale=1.0, *, mask=None, **more):
    return x, y, scale, mask, more


SIGNATURE = Signature.of(forward)


@pytest.mark.parametrize("args, kwargs", [((X, Y), {}), ((X,), {"y": Y}), ((), {"y": Y, "x": X})])
def test_positions_and_keywords_are_one_call(args, kwargs):
    call = SIGNATURE.normalise(args, kwargs)
    assert call.structure == SIGNATURE.normalise((X, Y), {}).structure
    assert call.tensors[0] is X and call.tensors[1] is Y
    again_args, again_kwargs = SIGNATURE.arguments(call)
    assert forward(*again_args, **again_kwargs) == forward(*args, **kwargs)


def test_a_default_that_is_passed_is_another_call():
    plain = SIGNATURE.normalise((X, Y), {}).structure
    assert SIGNATURE.normalise((X, Y, 1.0), {}).structure != plain
    assert SIGNATURE.normalise((X, Y), {"mask": None}).structure != plain
    assert SIGNATURE.normalise((X, Y, 2.0), {}).structure != \
        SIGNATURE.normalise((X, Y, 1.0), {}).structure


@pytest.mark.parametrize("args, kwargs", [((X,), {}), ((X, Y, 1, 2), {}), ((X, Y), {"x": X})])
def test_a_wrong_call_fails_as_the_function_does(args, kwargs):
    with pytest.raises(TypeError):
        SIGNATURE.normalise(args, kwargs)


def test_keywords_of_any_name_pass_through():
    call = SIGNATURE.normalise((X, Y), {"extra": {"deep": X}, "mask": Y})
    args, kwargs = SIGNATURE.arguments(call)
    assert forward(*args, **kwargs) == (X, Y, 1.0, Y, {"extra": {"deep": X}})


def test_a_partial_has_the_rest_of_the_signature():
    rest = Signature.of(functools.partial(forward, X))
    assert rest.normalise((Y,), {}).structure == rest.normalise((), {"y": Y}).structure


def test_names_say_where_a_tensor_is_and_never_collide():
    def many(x, options, values): ...
    call = Signature.of(many).normalise((X, {"mask": X, "a.b": X, "a b": X}, [X, X]), {})
    assert names_of(call.structure) == ("x", "options_mask", "options_a_b", "options_a_b_2",
                                        "values_0", "values_1")
