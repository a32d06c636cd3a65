# SPDX-License-Identifier: Apache-2.0
"""Value trees: what a module takes and returns, as a flat list of tensors and a structure.

The structure holds everything but the tensors, so that two calls with equal structures
differ in their tensors only. It can be hashed and compared; `build` puts tensors back into
a value of the same types.
"""

import collections
import copy
import dataclasses
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import torch

from hasten.errors import InvalidArgument


@dataclass(frozen=True)
class Leaf:
    """A tensor."""


@dataclass(frozen=True)
class Constant:
    """Anything that is no tensor and no container. 1, 1.0 and True are three constants."""
    value: Any

    def _key(self):
        return type(self.value), self.value

    def __eq__(self, other):
        if not isinstance(other, Constant) or type(self.value) is not type(other.value):
            return False
        try:
            # NaN equals itself here: the same call is the same call.
            return self.value is other.value or bool(self.value == other.value) or \
                (self.value != self.value and other.value != other.value)
        except Exception:  # Arrays and the like: only the very same object is equal.
            return False

    def __hash__(self):
        try:
            return hash(self._key())
        except TypeError:
            return hash(type(self.value))


@dataclass(frozen=True)
class Node:
    """A container: `keys` name its `children` (positions, dictionary keys or field names)."""
    type: type
    kind: str  # "list", "tuple", "namedtuple", "dict", "dataclass"
    keys: tuple
    children: tuple


Structure = Leaf | Constant | Node
LEAF = Leaf()


def flatten(value: Any) -> tuple[list[torch.Tensor], Structure]:
    """The tensors of `value` in order, and its structure.

    Raises InvalidArgument for a value that contains itself.
    """
    tensors: list[torch.Tensor] = []
    return tensors, _structure_of(value, tensors, set())


def build(structure: Structure, tensors: list | tuple) -> Any:
    """The inverse of flatten()."""
    return _build(structure, iter(tensors))


def paths(structure: Structure, prefix: tuple = ()) -> list[tuple]:
    """The path of each tensor: parameter names, positions, keys and fields."""
    if isinstance(structure, Leaf):
        return [prefix]
    if isinstance(structure, Constant):
        return []
    return [path for key, child in zip(structure.keys, structure.children)
            for path in paths(child, (*prefix, key))]


def opaque(structure: Structure, prefix: tuple = ()) -> list[str]:
    """The objects in it that equal nothing but themselves (a cache of `transformers`), as
    `path: type`: no other call has them, and what they hold cannot be followed."""
    if isinstance(structure, Leaf):
        return []
    if isinstance(structure, Constant):
        if Constant(copy.deepcopy(structure.value)) == structure:
            return []
        return [f"{'.'.join(map(str, prefix))}: {type(structure.value).__name__}"]
    return [word for key, child in zip(structure.keys, structure.children)
            for word in opaque(child, (*prefix, key))]


def _kind(value: Any) -> str | None:
    if isinstance(value, tuple):
        return "namedtuple" if hasattr(value, "_fields") else "tuple"
    if isinstance(value, list):
        return "list"
    # Before dict: a ModelOutput is both, and its fields rebuild it.
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "dataclass"
    if isinstance(value, (dict, collections.UserDict)):
        return "dict"
    return None


def _items(value: Any, kind: str) -> list[tuple[Any, Any]]:
    if kind in ("list", "tuple"):
        return list(enumerate(value))
    if kind == "namedtuple":
        return list(zip(value._fields, value))
    if kind == "dict":
        return list(value.items())  # In their order: a module may go through them in it.
    return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]


def _structure_of(value: Any, tensors: list, parents: set) -> Structure:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return LEAF
    kind = _kind(value)
    if kind is None:
        return Constant(value)
    if id(value) in parents:
        raise InvalidArgument("a value contains itself, so it cannot be flattened")
    parents.add(id(value))
    items = _items(value, kind)
    children = tuple(_structure_of(child, tensors, parents) for _, child in items)
    parents.discard(id(value))
    return Node(type(value), kind, tuple(key for key, _ in items), children)


def _build(structure: Structure, tensors: Iterator) -> Any:
    if isinstance(structure, Leaf):
        return next(tensors)
    if isinstance(structure, Constant):
        return structure.value
    values = [_build(child, tensors) for child in structure.children]
    return _BUILDERS[structure.kind](structure, values)


def _build_dict(node: Node, values: list) -> Any:
    if node.type is dict:
        return dict(zip(node.keys, values))
    if issubclass(node.type, collections.defaultdict):
        return collections.defaultdict(None, zip(node.keys, values))
    result: Any = node.type()
    for key, value in zip(node.keys, values):
        result[key] = value
    return result


def _build_dataclass(node: Node, values: list) -> Any:
    return node.type(**dict(zip(node.keys, values)))


_BUILDERS: dict[str, Callable[[Node, list], Any]] = {
    "list": lambda node, values: values if node.type is list else node.type(values),
    "tuple": lambda node, values: tuple(values) if node.type is tuple else node.type(values),
    "namedtuple": lambda node, values: node.type(*values),
    "dict": _build_dict,
    "dataclass": _build_dataclass,
}
