# SPDX-License-Identifier: Apache-2.0
"""An exported program seen as hasten sees every model: named tensors in, named tensors out.

Nested arguments and results are flattened in pytree order under names that depend on the
structure only, so that every backend agrees on them: `output`, `output_0`, `output_key`.
"""

import re
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

DTYPE_NAMES = {
    torch.bool: "bool", torch.uint8: "uint8", torch.int8: "int8", torch.uint16: "uint16",
    torch.int16: "int16", torch.uint32: "uint32", torch.int32: "int32", torch.uint64: "uint64",
    torch.int64: "int64", torch.float16: "float16", torch.bfloat16: "bfloat16",
    torch.float32: "float32", torch.float64: "float64", torch.complex64: "complex64",
    torch.complex128: "complex128",
}
DTYPES = {name: dtype for dtype, name in DTYPE_NAMES.items()}


class UnsupportedModel(Exception):
    """The model is outside what hasten can carry; the text is for the user."""


@dataclass
class Leaf:
    name: str
    dtype: str
    shape: list  # int, or the text of a symbolic size.


def path_name(prefix: str, path) -> str:
    """`output` and (1, "k.v") make `output_1_k_v`."""
    parts = [prefix] if prefix else []
    for key in path:
        for field in ("idx", "key", "name"):
            if hasattr(key, field):
                parts.append(str(getattr(key, field)))
                break
    return "_".join(re.sub(r"\W+", "_", part).strip("_") or "x" for part in parts)


def unique(names: list[str]) -> list[str]:
    """Appends _2, _3 to names that are taken: {"x.y", "x_y"} both read x_y."""
    seen: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 1
        while candidate in seen:
            number += 1
            candidate = f"{name}_{number}"
        seen.add(candidate)
        result.append(candidate)
    return result


def flatten_outputs(value) -> tuple[list[str], list]:
    """Names and leaves of a result, leaving out what is no tensor and no number."""
    named, _ = pytree.tree_flatten_with_path(value)
    kept = [(path_name("output", path), leaf) for path, leaf in named
            if leaf is not None and not isinstance(leaf, str)]
    return unique([name for name, _ in kept]), [leaf for _, leaf in kept]


def as_tensor(leaf):
    """Numbers become tensors without axes, in the dtype that NumPy would give them."""
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, (bool, torch.SymBool)):
        return torch.scalar_tensor(leaf, dtype=torch.bool)  # type: ignore[arg-type]
    if isinstance(leaf, (int, torch.SymInt)):
        return torch.scalar_tensor(leaf, dtype=torch.int64)  # type: ignore[arg-type]
    if isinstance(leaf, (float, torch.SymFloat)):
        return torch.scalar_tensor(leaf, dtype=torch.float64)  # type: ignore[arg-type]
    raise UnsupportedModel(f"an output is a {type(leaf).__name__}, not a tensor or a number")


class FlatProgram:
    """The flat view of an exported program, without running or copying it."""

    def __init__(self, program: ExportedProgram):
        self.program = program
        self.inputs, self.constants = self._read_inputs()  # Constants by position.
        self.outputs, self.output_positions = self._read_outputs()
        self.ranges = {str(symbol): _bounds(limits)
                       for symbol, limits in program.range_constraints.items()}

    def bounds(self, size) -> tuple[int | None, int | None, int]:
        """Smallest, largest (None: unbounded) and step of a symbolic size.

        Sizes are linear in one symbol (2*s0), or not of a kind that can be bounded here.
        """
        expression = size.node.expr
        symbols = sorted(expression.free_symbols, key=str)
        limits = self.program.range_constraints.get(symbols[0]) if len(symbols) == 1 else None
        if limits is None:
            return None, None, 1
        low, high = _bounds(limits)
        at = lambda value: int(expression.subs({symbols[0]: value}))  # noqa: E731
        step = abs(at(3) - at(2)) or 1
        return (None if low is None else at(low)), (None if high is None else at(high)), step

    @property
    def already_flat(self) -> bool:
        """Positional tensors in, a tuple of tensors (or one) out: needs no wrapper."""
        specs = self.program.graph_signature.output_specs
        user = [s for s in specs if s.kind == OutputKind.USER_OUTPUT]
        args, kwargs = self.program.call_spec.in_spec.children()
        return (not self.constants and not kwargs.num_leaves
                and all(child.is_leaf() for child in args.children())
                and all(isinstance(s.arg, TensorArgument) for s in user))

    def bind(self, tensors) -> tuple[tuple, dict]:
        """args and kwargs of the original call."""
        given = iter(tensors)
        total = len(tensors) + len(self.constants)
        flat = [self.constants[index] if index in self.constants else next(given)
                for index in range(total)]
        return pytree.tree_unflatten(flat, self.program.call_spec.in_spec)

    def _read_inputs(self):
        names = self._input_names()
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes
                  if node.op == "placeholder"}
        leaves, constants = [], {}
        self.sizes = []  # Per input: int or SymInt.
        specs = [s for s in self.program.graph_signature.input_specs
                 if s.kind == InputKind.USER_INPUT]
        for index, (name, spec) in enumerate(zip(names, specs, strict=True)):
            if isinstance(spec.arg, ConstantArgument):
                constants[index] = spec.arg.value
            elif isinstance(spec.arg, TensorArgument):
                leaves.append(_leaf(name, values[spec.arg.name]))
                self.sizes.append([plain(size) for size in values[spec.arg.name].shape])
            else:
                raise UnsupportedModel(
                    f"input '{name}' is a number that varies ({type(spec.arg).__name__}), "
                    "not a tensor; pass it as a tensor, or export it as a constant")
        return leaves, constants

    def _input_names(self) -> list[str]:
        spec = self.program.call_spec.in_spec
        signature = self.program.module_call_graph[0].signature
        arg_names = list(getattr(signature, "forward_arg_names", None) or [])
        tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        names = []
        path: Any  # KeyEntry does not say what its kinds have.
        for path, _ in pytree.tree_flatten_with_path(tree)[0]:
            keyword = path[0].idx == 1
            if keyword:
                names.append(path_name("", path[1:]))
            else:
                position = path[1].idx
                first = arg_names[position] if position < len(arg_names) else f"input_{position}"
                names.append(path_name(first, path[2:]))
        return unique(names)

    def _read_outputs(self):
        spec = self.program.call_spec.out_spec
        tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes}
        specs = [s for s in self.program.graph_signature.output_specs
                 if s.kind == OutputKind.USER_OUTPUT]
        leaves, positions = [], []
        for index, (path, output) in enumerate(zip(paths, specs, strict=True)):
            value = output.arg.value if isinstance(output.arg, ConstantArgument) \
                else values[output.arg.name]
            if value is None or isinstance(value, str):
                continue
            leaves.append(_leaf(path_name("output", path), value))
            positions.append(index)
        for leaf, name in zip(leaves, unique([leaf.name for leaf in leaves]), strict=True):
            leaf.name = name
        return leaves, positions


class FlatModule(torch.nn.Module):
    """An exported program that is called with its tensors and returns a tuple of tensors."""

    def __init__(self, flat: FlatProgram, check_guards: bool = True):
        super().__init__()
        self.module = flat.program.module(check_guards=check_guards)
        self._flat = [flat]  # In a list: an nn.Module must not find it.

    def train(self, mode: bool = True):
        return self  # An exported program has the one mode it was exported in.

    def forward(self, *tensors):
        flat = self._flat[0]
        args, kwargs = flat.bind(tensors)
        leaves = pytree.tree_leaves(self.module(*args, **kwargs))
        return tuple(as_tensor(leaves[index]) for index in flat.output_positions)


def plain(size):
    """A size as an int where it is one: a symbol that was found to be constant is none."""
    if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
        return size
    return int(size)


def _leaf(name: str, value) -> Leaf:
    if isinstance(value, torch.Tensor):
        if value.dtype not in DTYPE_NAMES:
            raise UnsupportedModel(f"'{name}' is {value.dtype}, for which hasten has no name")
        shape = [size if isinstance(size, int) else str(size)
                 for size in map(plain, value.shape)]
        return Leaf(name, DTYPE_NAMES[value.dtype], shape)
    kinds = ((bool, torch.SymBool), "bool"), ((int, torch.SymInt), "int64"), \
        ((float, torch.SymFloat), "float64")
    for types, dtype in kinds:
        if isinstance(value, types):
            return Leaf(name, dtype, [])
    raise UnsupportedModel(f"'{name}' is a {type(value).__name__}, not a tensor or a number")


def _bounds(limits) -> list:
    return [int(value) if value.is_Integer else None for value in (limits.lower, limits.upper)]
