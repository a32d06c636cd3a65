# SPDX-License-Identifier: Apache-2.0
"""Runs the graph of a TorchScript module node by node in Python.

torch.export takes no ScriptModule. Under this interpreter it sees ordinary operator calls,
sizes stay symbolic, and control flow that depends on shapes only is resolved as in eager
Python. What depends on values makes the export fail, with the reason.
"""

import operator
from collections.abc import Callable

import torch

from hasten.flat import UnsupportedModel, as_tensor, flatten_outputs

# What TorchScript calls by an operator's name but runs on numbers, lists and strings.
PYTHON_FUNCTIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "pow": operator.pow, "neg": operator.neg, "abs": abs,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "__not__": operator.not_,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor,
    "__is__": operator.is_, "__isnot__": operator.is_not,
    "__contains__": operator.contains, "len": len, "min": min, "max": max, "sum": sum,
    "floor": torch.sym_int, "round": round, "sqrt": torch.sym_sqrt,
    "Int": torch.sym_int, "Float": torch.sym_float, "Bool": bool, "IntImplicit": torch.sym_int,
    "FloatImplicit": torch.sym_float, "ScalarImplicit": lambda value: value, "str": str,
    "item": lambda value: value, "list": list, "copy": lambda value: value.copy(),
    "keys": lambda value: list(value.keys()), "values": lambda value: list(value.values()),
    "items": lambda value: list(value.items()),
    "append": lambda target, value: (target.append(value), target)[1],
    "extend": lambda target, value: target.extend(value),
    "insert": lambda target, index, value: target.insert(index, value),
    "pop": lambda target, *index: target.pop(*index), "reverse": lambda target: target.reverse(),
    "__getitem__": operator.getitem, "_set_item": operator.setitem,
    "slice": lambda value, start, end, step: value[start:end:step],
    "format": lambda text, *values: text.format(*values), "warn": lambda *_: None,
    "is_grad_enabled": lambda: False, "_unwrap_optional": lambda value: value,
    "ceil": lambda value: -torch.sym_int(-value) if not isinstance(value, int) else value,
}
# The same for the namespace of the language itself.
PRIM_FUNCTIONS: dict[str, Callable] = {
    "unchecked_cast": lambda value: value, "unchecked_unwrap_optional": lambda value: value,
    "Uninitialized": lambda: None, "NumToTensor": lambda value: value,
    "ListConstruct": lambda *items: list(items), "TupleConstruct": lambda *items: items,
    "DictConstruct": lambda *items: dict(zip(items[::2], items[1::2], strict=True)),
    "TupleIndex": operator.getitem, "min": min, "max": max, "Print": lambda *_: None,
    "device": lambda value: value.device, "dtype": lambda value: value.dtype,
    "layout": lambda value: value.layout, "is_cuda": lambda value: value.is_cuda,
    "requires_grad": lambda value: value.requires_grad, "data": lambda value: value.detach(),
    "shape": lambda value: list(value.shape), "annotate": lambda value: value,
}
# Operators that ask a tensor for something that is no tensor.
TENSOR_QUESTIONS: dict[str, Callable] = {
    "size": lambda value, axis=None: list(value.shape) if axis is None else value.shape[axis],
    "dim": lambda value: value.dim(), "len": lambda value: value.shape[0],
    "numel": lambda value: value.numel(), "Int": lambda value: value.item(),
    "Float": lambda value: torch.sym_float(value.item()), "Bool": lambda value: bool(value),
    "IntImplicit": lambda value: value.item(), "FloatImplicit": lambda value: value.item(),
    "ScalarImplicit": lambda value: value.item(), "item": lambda value: value.item(),
    "is_floating_point": lambda value: value.is_floating_point(),
    "is_complex": lambda value: value.is_complex(),
    "stride": lambda value, axis=None: list(value.stride()) if axis is None
    else value.stride(axis),
}
# What only traces hold: exporters and compilers know the operator behind it.
TRACED_FUNCTIONS = {
    "_convolution": lambda *inputs: torch.ops.aten.convolution.default(*inputs[:9]),
}


class ScriptGraph(torch.nn.Module):
    """A TorchScript module as an nn.Module: flat tensors in, a tuple of tensors out."""

    def __init__(self, script: torch.jit.ScriptModule, input_names: list[str]):
        super().__init__()
        graph = script._c._get_method("forward").graph.copy()
        torch._C._jit_pass_inline(graph)
        torch._C._jit_pass_constant_propagation(graph)
        torch._C._jit_pass_peephole(graph)
        torch._C._jit_pass_dce(graph)
        self.root = _Attributes(script)
        self._graph = graph
        self._parameters_of_forward = script._c._get_method("forward").schema.arguments[1:]
        self._positions = positions_of(self._parameters_of_forward, input_names)
        self._constants: dict = {}
        self._keep_constants(graph)

    def forward(self, *tensors):
        arguments = [argument.default_value for argument in self._parameters_of_forward]
        for position, tensor in zip(self._positions, tensors, strict=True):
            arguments[position] = tensor
        names = [value.debugName() for value in self._graph.inputs()]
        values = dict(zip(names, [self.root, *arguments], strict=True))
        self._run(self._graph, values)
        results = [values[output.debugName()] for output in self._graph.outputs()]
        _, leaves = flatten_outputs(results[0])
        return tuple(as_tensor(leaf) for leaf in leaves)

    def _keep_constants(self, block) -> None:
        # Buffers, so that an export sees them as it sees weights.
        for node in block.nodes():
            if node.kind() == "prim::Constant":
                output = node.output()
                value = output.toIValue() if node.hasAttribute("value") or \
                    output.type().kind() != "NoneType" else None
                if isinstance(value, torch.Tensor):
                    name = f"constant_{len(self._constants)}"
                    self.register_buffer(name, value.detach())
                    self._constants[output.debugName()] = (True, name)
                else:
                    self._constants[output.debugName()] = (False, value)
            for inner in node.blocks():
                self._keep_constants(inner)

    def _run(self, block, values: dict) -> None:
        for node in block.nodes():
            kind = node.kind()
            if kind == "prim::Constant":
                is_tensor, value = self._constants[node.output().debugName()]
                values[node.output().debugName()] = getattr(self, value) if is_tensor else value
                continue
            inputs = [values[value.debugName()] for value in node.inputs()]
            outputs = list(node.outputs())
            if kind == "prim::If":
                results = self._run_if(node, inputs, values)
            elif kind == "prim::Loop":
                results = self._run_loop(node, inputs, values)
            elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
                results = tuple(inputs[0])
            else:
                result = _run_node(node, kind, inputs)
                results = (result,) if len(outputs) == 1 else tuple(result) if outputs else ()
            for output, result in zip(outputs, results, strict=True):
                values[output.debugName()] = result

    def _run_if(self, node, inputs, values):
        block = list(node.blocks())[0 if bool(inputs[0]) else 1]
        self._run(block, values)
        return tuple(values[output.debugName()] for output in block.outputs())

    def _run_loop(self, node, inputs, values):
        block = next(iter(node.blocks()))
        trips, keep_going, *carried = inputs
        count = 0
        names = [value.debugName() for value in block.inputs()]
        while bool(keep_going) and count < trips:
            values.update(zip(names, [count, *carried], strict=True))
            self._run(block, values)
            keep_going, *carried = [values[output.debugName()] for output in block.outputs()]
            count += 1
        return tuple(carried)


class _Attributes(torch.nn.Module):
    """The tree of a ScriptModule with its tensors as real parameters and buffers."""

    def __init__(self, script):
        super().__init__()
        self._script = [script]  # In a list: an nn.Module must not find it.
        for name, parameter in script.named_parameters(recurse=False):
            self._parameters[name] = torch.nn.Parameter(parameter.detach(), requires_grad=False)
        for name, buffer in script.named_buffers(recurse=False):
            self._buffers[name] = buffer.detach()
        for name, child in script.named_children():
            self._modules[name] = _Attributes(child)

    def attribute(self, name: str):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                return table[name]
        return getattr(self._script[0], name)


def positions_of(arguments, input_names: list[str]) -> list[int]:
    """Where each input stands among the arguments of forward: by name, else by order."""
    known = [argument.name for argument in arguments]
    if all(name in known for name in input_names):
        return [known.index(name) for name in input_names]
    if len(input_names) > len(known):
        raise UnsupportedModel(f"{len(input_names)} inputs were recorded, forward takes "
                               f"{', '.join(known)}")
    return list(range(len(input_names)))


def _is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


def _run_node(node, kind: str, inputs: list):
    space, name = kind.split("::")
    if kind == "prim::GetAttr":
        owner = inputs[0]
        return owner.attribute(node.s("name")) if isinstance(owner, _Attributes) \
            else getattr(owner, node.s("name"))
    if kind == "prim::SetAttr":
        raise UnsupportedModel(f"the model keeps state in its attribute '{node.s('name')}'")
    if kind == "prim::RaiseException":
        raise RuntimeError(f"the model raises: {inputs[0]}")
    if space == "prim":
        if name not in PRIM_FUNCTIONS:
            raise UnsupportedModel(f"TorchScript's {kind} has no counterpart in torch.export")
        return PRIM_FUNCTIONS[name](*inputs)
    if space == "aten" and inputs and _is_tensor(inputs[0]) and name in TENSOR_QUESTIONS:
        return TENSOR_QUESTIONS[name](*inputs)
    if space == "aten" and name in TRACED_FUNCTIONS:
        return TRACED_FUNCTIONS[name](*inputs)
    on_container = bool(inputs) and isinstance(inputs[0], (list, dict, str))
    on_numbers = not any(map(_is_tensor, inputs))
    if space == "aten" and name in PYTHON_FUNCTIONS and \
            (on_numbers or on_container or name in ("__is__", "__isnot__", "_unwrap_optional")):
        return PYTHON_FUNCTIONS[name](*inputs)
    return _call_operator(node, space, name, inputs)


def _call_operator(node, space: str, name: str, inputs: list):
    packet = getattr(getattr(torch.ops, space), name, None)
    if packet is None or node.schema() == "(no schema)":
        raise UnsupportedModel(f"operator {node.kind()} is not known to torch.export")
    head = node.schema().split("(", 1)[0]
    overload = getattr(packet, head.split(".", 1)[1] if "." in head else "default")
    positional, keywords, mixed = [], {}, False
    for argument, value in zip(overload._schema.arguments, inputs, strict=True):
        # A number where a tensor is due comes from prim::NumToTensor; the packet finds the
        # overload that takes numbers.
        mixed |= str(argument.type) == "Tensor" and not _is_tensor(value)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    return (packet if mixed else overload)(*positional, **keywords)
