# SPDX-License-Identifier: Apache-2.0
"""Writes one model of the zoo in every format that it has, with inputs and eager's answers."""
import json
import shutil
from pathlib import Path

import numpy as np
import torch

import networks
import zoo


def write(model: zoo.Model, folder: Path) -> None:
    """Into `folder`: NAME.pt2, NAME.pt, NAME.onnx, NAME.TAG.inputs.npz, NAME.TAG.outputs.npz and
    NAME.meta.json. Raises where a format that the model has could not be made."""
    torch.manual_seed(0)
    made = getattr(networks, model.name)()
    stem = folder / model.name
    meta = {"name": model.name, "source": model.source, "origin": model.origin, "note": model.note,
            "dynamic": {name: {str(axis): symbol for axis, symbol in axes.items()}
                        for name, axes in model.dynamic.items()}}
    if model.source == "onnx":
        shutil.copyfile(made, f"{stem}.onnx")
        run = _onnx_runner(made)
    else:
        made.eval()
        for parameter in made.parameters():
            parameter.requires_grad = False
        meta["parameters"] = sum(p.numel() for p in made.parameters())
        run = _eager_runner(model, made)
    for tag, values in _cases(model):
        answers = run(values)
        np.savez(f"{stem}.{tag}.inputs.npz", **values)
        np.savez(f"{stem}.{tag}.outputs.npz", **answers)
        if tag == "b1":
            meta["inputs"], meta["outputs"] = _describe(values), _describe(answers)
    if model.source == "torchscript":
        made.save(f"{stem}.pt")
    elif model.source == "module":
        _export(model, made, stem)
    Path(f"{stem}.meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def _cases(model):
    for batch in zoo.BATCHES:
        yield f"b{batch}", model.inputs(batch, False)
    if model.has_other_length:
        yield "alt", model.inputs(2, True)


def _describe(arrays):
    return [{"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
            for name, array in arrays.items()]


def _tensors(values):
    return tuple(torch.from_numpy(np.array(value)) for value in values.values())


def _eager_runner(model, module):
    def run(values):
        with torch.no_grad():
            answer = module(*_tensors(values))
        answer = (answer,) if torch.is_tensor(answer) else answer
        return {name: tensor.numpy() for name, tensor in zip(model.outputs, answer, strict=True)}
    return run


def _onnx_runner(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    # The file as it stands: what an optimiser makes of it is what is to be tested.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda values: dict(zip(names, session.run(None, values), strict=True))


def _export(model, module, stem):
    # At batch 2: exporters take a 1 for a constant.
    example = _tensors(model.inputs(2, False))
    symbols = {zoo.BATCH: torch.export.Dim(zoo.BATCH, min=1, max=64)}
    symbols |= {name: torch.export.Dim(name, min=low, max=high)
                for name, (low, high) in model.ranges.items()}
    shapes = {name: {axis: symbols[symbol] for axis, symbol in axes.items()}
              for name, axes in model.dynamic.items()}
    with torch.no_grad():
        torch.jit.trace(module, example, check_trace=False).save(f"{stem}.pt")
        torch.export.save(torch.export.export(module, example, dynamic_shapes=shapes),
                          f"{stem}.pt2")
        torch.onnx.export(module, example, f"{stem}.onnx", dynamo=True, dynamic_shapes=shapes,
                          input_names=list(model.dynamic), output_names=list(model.outputs),
                          external_data=False, verbose=False)
