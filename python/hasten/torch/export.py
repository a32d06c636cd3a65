# SPDX-License-Identifier: Apache-2.0
"""A live module as a file that every compiler can read, with its dynamic axes kept."""

from pathlib import Path
from typing import Callable

import numpy as np
import torch

from hasten.compilers import _export
from hasten.compilers._request import CompileError, Request
from hasten.errors import HastenError
from hasten.torch import tree
from hasten.torch.call import Call, Signature
from hasten.torch.recording import Graph


class FlatModule(torch.nn.Module):
    """The module for one structure: tensors in, tensors out. The user's hooks stay outside."""

    def __init__(self, module: torch.nn.Module, forward: Callable, signature: Signature,
                 structure: tree.Structure):
        super().__init__()
        self.module = module  # So that its weights are found.
        self._forward, self._signature, self._structure = forward, signature, structure

    def forward(self, *tensors):
        args, kwargs = self._signature.arguments(Call(list(tensors), self._structure))
        return tuple(tree.flatten(self._forward(*args, **kwargs))[0])


def export(flat: FlatModule, graph: Graph, folder: Path) -> tuple[Path, list[dict]]:
    """Writes model.pt2 into `folder`; says which ways were tried and how they went.

    Raises HastenError when every way failed; its message has the reason of each.
    """
    request = Request(Path(), "module", graph.spec, None, {}, folder)
    samples = [[tensor.cpu() for tensor in sample.tensors] for sample in graph.samples]
    try:
        program = _export.export_flat(flat, request, samples, strict=False)
        path = folder / "model.pt2"
        torch.export.save(program, path)
    except CompileError as error:
        raise HastenError(error.message, error.code, error.hint) from None
    return path, request.steps


def write_samples(graph: Graph, folder: Path) -> list[Path]:
    """One .npz per recorded call, arrays in the order of the inputs."""
    files = []
    for number, sample in enumerate(graph.samples):
        path = folder / f"sample-{number}.npz"
        np.savez(path, *[_to_numpy(tensor) for tensor in sample.tensors])
        files.append(path)
    return files


def _to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:  # NumPy has no name for it: two raw bytes.
        return tensor.contiguous().view(torch.int16).numpy().view("V2")
    return tensor.numpy()
