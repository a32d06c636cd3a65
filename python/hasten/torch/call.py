# SPDX-License-Identifier: Apache-2.0
"""Calls of a module in one form: f(1, 2), f(1, y=2) and f(y=2, x=1) are the same call."""

import functools
import inspect
import re
from dataclasses import dataclass
from typing import Any, Callable

import torch

from hasten.torch import tree


@dataclass(frozen=True)
class Call:
    """A normalised call: its tensors and its structure."""
    tensors: list[torch.Tensor]
    structure: tree.Structure


class Signature:
    """How a forward function may be called."""

    def __init__(self, signature: inspect.Signature):
        self.signature = signature

    @classmethod
    def of(cls, function: Callable) -> "Signature":
        return cls(inspect.signature(function))

    def normalise(self, args: tuple, kwargs: dict) -> Call:
        """Binds without applying defaults: a default that is passed is another structure.

        Raises TypeError as the function itself would.
        """
        bound = self.signature.bind(*args, **kwargs)
        return Call(*tree.flatten(dict(bound.arguments)))

    def arguments(self, call: Call) -> tuple[tuple, dict]:
        """args and kwargs that make the call again."""
        bound = inspect.BoundArguments(self.signature, tree.build(call.structure, call.tensors))
        # BoundArguments reads them in the order of the signature, whatever theirs is.
        return bound.args, bound.kwargs


@functools.lru_cache(maxsize=1024)
def names_of(structure: tree.Structure, prefix: str = "") -> tuple[str, ...]:
    """A name for each tensor: `x`, `options_mask`, `values_3`; no two are equal."""
    names: list[str] = []
    for path in tree.paths(structure):
        words = ([prefix] if prefix else []) + [re.sub(r"\W+", "_", str(key)).strip("_") or "x"
                                                for key in path]
        name = candidate = "_".join(words) or "value"
        number = 1
        while candidate in names:
            number += 1
            candidate = f"{name}_{number}"
        names.append(candidate)
    return tuple(names)


def describe(structure: tree.Structure) -> str:
    """One line for messages: x: tensor, scale: 2.0."""
    if isinstance(structure, tree.Leaf):
        return "tensor"
    if isinstance(structure, tree.Constant):
        return _short(structure.value)
    inside = ", ".join(f"{key}: {describe(child)}" if structure.kind not in ("list", "tuple")
                       else describe(child)
                       for key, child in zip(structure.keys, structure.children))
    return f"{structure.type.__name__}({inside})"


def _short(value: Any, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most - 3] + "..."
