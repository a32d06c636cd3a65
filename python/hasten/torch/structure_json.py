# SPDX-License-Identifier: Apache-2.0
"""Structures and signatures as JSON. Reading runs no code and imports nothing: a container of a
class of the user's is rebuilt only where the program has imported that class itself."""

import dataclasses
import inspect
import sys
from typing import Any

from hasten.errors import HastenError, InvalidArgument
from hasten.torch import tree
from hasten.torch.call import Signature

_PLAIN = {cls.__name__: cls for cls in (list, tuple, dict)}
_SCALARS = (bool, int, float, str, type(None))


def write(structure: tree.Structure) -> Any:
    """Raises HastenError for a constant that is no number, text, bool or None."""
    if isinstance(structure, tree.Leaf):
        return {"leaf": True}
    if isinstance(structure, tree.Constant):
        if not isinstance(structure.value, _SCALARS):
            raise HastenError(f"a {type(structure.value).__name__} among the arguments or results "
                              "cannot be saved", "unsupported")
        if isinstance(structure.value, float):
            return {"float": structure.value.hex()}
        return {"value": structure.value}
    cls = structure.type
    name = cls.__name__ if _PLAIN.get(cls.__name__) is cls else f"{cls.__module__}:{cls.__qualname__}"
    return {"type": name, "kind": structure.kind, "keys": list(structure.keys),
            "children": [write(child) for child in structure.children]}


def read(data: Any) -> tree.Structure:
    if "leaf" in data:
        return tree.LEAF
    if "float" in data:
        return tree.Constant(float.fromhex(data["float"]))
    if "value" in data:
        return tree.Constant(data["value"])
    return tree.Node(_class(data["type"], data["kind"]), data["kind"], tuple(data["keys"]),
                     tuple(read(child) for child in data["children"]))


def _class(name: str, kind: str) -> type:
    if name in _PLAIN:
        return _PLAIN[name]
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    fits = isinstance(found, type) and {
        "dataclass": dataclasses.is_dataclass(found), "namedtuple": hasattr(found, "_fields"),
        "list": issubclass(found, list), "tuple": issubclass(found, tuple), "dict": True}.get(kind)
    if not fits:
        raise InvalidArgument(f"the module takes or returns a {name.replace(':', '.')}, which this "
                              "program has not imported", hint=f"import {module} first")
    return found


def write_signature(signature: Signature) -> list:
    return [[p.name, p.kind.name, p.default is not p.empty]
            for p in signature.signature.parameters.values()]


def read_signature(data: list) -> Signature:
    """Defaults are known to exist, not what they are: they are never applied."""
    parameters = [inspect.Parameter(name, inspect._ParameterKind[kind],
                                    default=None if has_default else inspect.Parameter.empty)
                  for name, kind, has_default in data]
    return Signature(inspect.Signature(parameters))
