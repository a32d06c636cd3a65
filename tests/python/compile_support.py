# SPDX-License-Identifier: Apache-2.0
"""Requests to the compilers as the host makes them, answered in this process."""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from hasten.compilers import _request
from hasten.flat import DTYPE_NAMES

BATCH_SYMBOL = "B"


def graph_of(samples: list[dict], dynamic: dict) -> dict:
    """A GraphSpec of samples; `dynamic` is {input: {axis: symbol}}, `B` being the batch."""
    inputs = []
    for name, tensor in samples[0].items():
        axes = []
        for axis in range(tensor.dim()):
            sizes = [sample[name].shape[axis] for sample in samples]
            symbol = dynamic.get(name, {}).get(axis, "")
            kind = "static" if not symbol else "batch" if symbol == BATCH_SYMBOL else "dynamic"
            axes.append({"kind": kind, "min": min(sizes), "max": max(sizes), "multiplier": 1,
                         "symbol": symbol})
        inputs.append({"name": name, "dtype": DTYPE_NAMES[tensor.dtype], "axes": axes})
    return {"name": "0", "inputs": inputs, "outputs": []}


def write_request(folder: Path, model: Path, model_format: str, samples: list[dict],
                  dynamic: dict | None = None, options: dict | None = None) -> dict:
    folder = Path(tempfile.mkdtemp(dir=folder))
    (folder / "samples").mkdir()
    for number, sample in enumerate(samples):
        np.savez(folder / "samples" / f"sample-{number}.npz",
                 *(_to_numpy(tensor) for tensor in sample.values()))
    return {"model": str(model), "format": model_format, "graph": graph_of(samples, dynamic or {}),
            "samples": str(folder / "samples"), "options": options or {},
            "output_dir": str(folder / "out")}


def answer(module, request: dict) -> dict:
    """What `python -m hasten.compilers.MODULE` would write into result.json."""
    made = _request.read_request(request)
    made.output_dir.mkdir(parents=True, exist_ok=True)
    result = _request.answer(module.compile_model, made)
    json.dumps(result)
    return result


def save_script(folder: Path, module: torch.nn.Module, example=None) -> Path:
    """As TorchScript: traced on an example, or compiled from its source without one."""
    path = folder / "model.pt"
    module = module.eval()
    script = torch.jit.script(module) if example is None else torch.jit.trace(module, example)
    script.save(str(path))
    return path


def save_program(folder: Path, module, args, dynamic_shapes=None, kwargs=None) -> Path:
    path = folder / "model.pt2"
    program = torch.export.export(module.eval(), args, kwargs, dynamic_shapes=dynamic_shapes)
    torch.export.save(program, str(path))
    return path


def _to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.dtype("V2"))
    return tensor.numpy()
