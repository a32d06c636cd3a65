# SPDX-License-Identifier: Apache-2.0
"""The linear layers of an exported program in 8 bits, by TorchAO."""

import torch

from hasten.compilers._request import CompileError

KINDS = ("none", "int8wo", "int8dq")  # Weights alone; weights, and activations as they come.


def quantise(module: torch.fx.GraphModule, kind: str) -> None:
    """Gives every linear layer of `module` a quantised weight of its own.

    A weight may serve others too (an embedding that is tied to the last layer): they keep theirs.
    """
    quantised: dict[str, str] = {}
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default):
        weight = node.args[1]
        if weight.op != "get_attr":
            continue
        name = f"hasten_{kind}_{len(quantised)}"
        if weight.target not in quantised:
            module.register_parameter(name, _in_8_bits(_attribute(module, weight.target), kind))
            quantised[weight.target] = name
        with module.graph.inserting_before(node):
            own = module.graph.get_attr(quantised[weight.target])
        node.update_arg(1, own)
        node.target = torch.nn.functional.linear  # TorchAO overrides it above the dispatcher.
    if not quantised:
        raise CompileError("unsupported", "the model has no linear layer with a constant weight: "
                                          "there is nothing to quantise")
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()


def _attribute(module: torch.nn.Module, target: str) -> torch.Tensor:
    *path, name = target.split(".")
    for part in path:
        module = getattr(module, part)
    return getattr(module, name)


def _in_8_bits(weight: torch.Tensor, kind: str) -> torch.nn.Parameter:
    try:
        from torchao.quantization import (Int8DynamicActivationInt8WeightConfig,
                                          Int8WeightOnlyConfig, quantize_)
    except ImportError as error:
        raise CompileError("unavailable", f"TorchAO cannot be imported: {error}",
                           "pip install --no-deps torchao==0.18.0") from None
    config = {"int8wo": Int8WeightOnlyConfig, "int8dq": Int8DynamicActivationInt8WeightConfig}[kind]
    # It takes modules: a layer for each weight.
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(weight.detach(), requires_grad=False)
    layers = torch.nn.Sequential(layer)
    quantize_(layers, config())
    return torch.nn.Parameter(layer.weight.detach(), requires_grad=False)
