# SPDX-License-Identifier: Apache-2.0
"""Writes an exported program as TorchScript source, operator by operator.

Tracing would fix every size that the program computes with; here sizes stay variables.
"""

import math
import operator
from typing import List, Optional  # noqa: F401  (the source that is compiled names them)

import torch
from torch import Tensor  # noqa: F401

from hasten.compilers._request import CompileError
from hasten.flat import FlatProgram

INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.eq: "==",
    operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
    operator.and_: "and", operator.or_: "or",
}
CALLS = {
    torch.sym_int: "int", torch.sym_float: "float", torch.sym_max: "max", torch.sym_min: "min",
    operator.neg: "-", operator.not_: "not ", math.ceil: "math.ceil", math.floor: "math.floor",
    math.trunc: "int", round: "round",
}
METHODS = {"aten.sym_size.int": "size", "aten.sym_numel.default": "numel",
           "aten.sym_stride.int": "stride"}
# What the exporter adds to check its own assumptions; the core checks sizes.
CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range",
          "sym_constrain_range_for_size", "_assert_async")


def to_script(flat: FlatProgram) -> torch.jit.ScriptModule:
    class Program(torch.nn.Module):
        """A class of its own: TorchScript gives modules of one class one forward()."""

    tensors = Program()
    source = _Writer(flat, tensors).source()
    result = torch.jit.script(tensors.eval())
    result.define(source)
    return result


class _Writer:
    def __init__(self, flat: FlatProgram, target: torch.nn.Module):
        self.module, self.target, self.flat = flat.program.module(check_guards=False), target, flat
        self.lines: list[str] = []
        self.names: dict = {}      # fx node -> variable
        self.attributes: dict = {}  # tensor's path -> attribute of the target

    def source(self) -> str:
        arguments = self._arguments()
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                self.names[node] = f"self.{self._attribute(str(node.target))}"
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._return(node)
            elif node.op != "placeholder":
                raise self._unsupported(f"{node.op} {node.target}")
        head = f"def forward(self, {', '.join(f'{name}: Tensor' for name in arguments)}):"
        return "\n".join([head, *(f"    {line}" for line in self.lines)]) + "\n"

    def _arguments(self) -> list[str]:
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        taken: list[str] = []
        for position, node in enumerate(placeholders):
            if position in self.flat.constants:
                self.names[node] = self._value(self.flat.constants[position])
            else:
                self.names[node] = f"input_{len(taken)}"
                taken.append(self.names[node])
        return taken

    def _attribute(self, path: str) -> str:
        if path not in self.attributes:
            value = operator.attrgetter(path)(self.module)
            if not isinstance(value, torch.Tensor):
                raise self._unsupported(f"a {type(value).__name__} as an attribute")
            name = f"tensor_{len(self.attributes)}"
            self.target.register_buffer(name, value.detach())
            self.attributes[path] = name
        return self.attributes[path]

    def _call(self, node) -> None:
        name = str(node.target)
        if any(check in name for check in CHECKS):
            return
        text = self._expression(node, name)
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and name.startswith("aten"):
            text = f"int({text})"
        elif isinstance(value, torch.SymFloat) and name.startswith("aten"):
            text = f"float({text})"
        variable = f"v{len(self.names)}"
        self.names[node] = variable
        self.lines.append(f"{variable} = {text}")

    def _expression(self, node, name: str) -> str:
        if node.target is operator.getitem:
            return f"{self._value(node.args[0])}[{node.args[1]}]"
        if node.target in INFIX:
            return f"({self._value(node.args[0])} {INFIX[node.target]} " \
                   f"{self._value(node.args[1])})"
        if node.target in CALLS:
            return f"{CALLS[node.target]}({', '.join(map(self._value, node.args))})"
        if name in METHODS:
            rest = ", ".join(self._value(argument) for argument in node.args[1:])
            return f"{self._value(node.args[0])}.{METHODS[name]}({rest})"
        if not isinstance(node.target, torch._ops.OpOverload):
            raise self._unsupported(name)
        return self._operator(node)

    def _operator(self, node) -> str:
        schema = node.target._schema
        types = {argument.name: argument.type.annotation_str for argument in schema.arguments}
        positional = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        parts = [self._argument(value, types[name])
                 for value, name in zip(node.args, positional)]
        # Where tensors are kept in memory is the business of whoever runs the script.
        parts += [f"{key}={self._argument(value, types[key])}"
                  for key, value in node.kwargs.items() if key not in ("layout", "pin_memory")]
        space, packet = schema.name.split("::")
        return f"torch.ops.{space}.{packet}({', '.join(parts)})"

    def _argument(self, value, annotation: str) -> str:
        text = self._value(value)
        if isinstance(value, (list, tuple)):
            element = annotation.replace("SymInt", "int").replace("number", "float")
            if element.startswith("Optional[List["):
                element = element[len("Optional["):-1]
            return f"torch.jit.annotate({element}, {text})"
        return text

    def _value(self, value) -> str:
        if isinstance(value, torch.fx.Node):
            return self.names[value]
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._value, value))}]"
        if isinstance(value, torch.device):
            return f"torch.device({str(value)!r})"
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        if isinstance(value, (bool, int, float, complex, str, type(None), torch.dtype,
                              torch.memory_format)):
            return str(value) if isinstance(value, (torch.dtype, torch.memory_format)) \
                else repr(value)
        raise self._unsupported(f"an argument of type {type(value).__name__}")

    def _return(self, node) -> None:
        leaves = torch.utils._pytree.tree_leaves(node.args[0])
        texts = []
        for position, leaf in ((p, leaves[p]) for p in self.flat.output_positions):
            text = self._value(leaf)
            value = leaf.meta.get("val") if isinstance(leaf, torch.fx.Node) else leaf
            for kinds, dtype in (((bool, torch.SymBool), "torch.bool"),
                                 ((int, torch.SymInt), "torch.int64"),
                                 ((float, torch.SymFloat), "torch.float64")):
                if isinstance(value, kinds):
                    text = f"torch.scalar_tensor({text}, dtype={dtype})"
                    break
            texts.append(text)
        single = len(texts) == 1
        self.lines.append(f"return {texts[0] if single else ', '.join(texts)}")

    def _unsupported(self, what: str) -> CompileError:
        return CompileError("unsupported", f"TorchScript has no counterpart for {what}")
