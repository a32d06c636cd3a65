# SPDX-License-Identifier: Apache-2.0
"""A program in double precision: the reference that errors are measured against."""

import torch

WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64,
         torch.float32: torch.float64, torch.complex64: torch.complex128,
         torch.complex32: torch.complex128}


def doubled(value):
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        return value.to(WIDER[value.dtype])
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def in_double(module: torch.fx.GraphModule) -> None:
    """Widens weights, constants and every dtype that the graph itself names."""
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None and tensor.dtype in WIDER:
                    wide = doubled(tensor.detach())
                    table[name] = torch.nn.Parameter(wide, requires_grad=False) \
                        if table is part._parameters else wide
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype in WIDER:
                setattr(part, name, doubled(value))
        if isinstance(part, torch.fx.GraphModule):
            _rewrite(part)


def _rewrite(part: torch.fx.GraphModule) -> None:
    for node in list(part.graph.nodes):
        if "_assert_tensor_metadata" in str(node.target):
            part.graph.erase_node(node)
            continue
        node.args = _widen(node.args)
        node.kwargs = {key: _widen(value) for key, value in node.kwargs.items()}
    part.recompile()


def _widen(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_widen, value))
    return doubled(value)
