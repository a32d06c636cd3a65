# SPDX-License-Identifier: Apache-2.0
"""TorchScript to an exported program."""

import sys

import torch

from hasten.compilers import _export, _script
from hasten.compilers._request import CompileError, Request, main
from hasten.flat import flatten_outputs


def load_script(request: Request) -> torch.jit.ScriptModule:
    try:
        script = torch.jit.load(str(request.model), map_location="cpu")
    except RuntimeError as error:
        raise CompileError("invalid_argument",
                           f"{request.model.name} is not a readable TorchScript file: "
                           f"{str(error).splitlines()[0]}") from error
    if getattr(script, "training", False):  # A frozen one has no mode.
        raise CompileError("unsupported", "the model is in training mode",
                           "call model.eval() before saving it")
    return script


def input_names(request: Request, samples: list) -> list[str]:
    names = [spec["name"] for spec in request.graph.get("inputs", [])]
    return names or [f"input_{index}" for index in range(len(samples[0]))]


def call_script(script, request: Request, sample: list):
    """The original's result for one recorded call."""
    arguments = script._c._get_method("forward").schema.arguments[1:]
    positions = _script.positions_of(arguments, input_names(request, [sample]))
    values = {arguments[position].name: tensor
              for position, tensor in zip(positions, sample, strict=True)}
    with torch.no_grad():
        return script(**values)


def export_script(request: Request):
    """The exported program, and the names of its outputs."""
    script = load_script(request)
    samples = request.read_samples()
    names, _ = flatten_outputs(call_script(script, request, [t.clone() for t in samples[0]]))
    module = _script.ScriptGraph(script, input_names(request, samples)).eval()
    return _export.export_flat(module, request, samples, strict=False), names


def compile_model(request: Request) -> dict:
    program, names = export_script(request)
    path = request.output_dir / "model.pt2"
    request.attempt("torch.export.save", lambda: torch.export.save(program, str(path)))
    facts = _export.program_facts(program, request.graph)
    for leaf, name in zip(facts["outputs"], names, strict=True):
        leaf["name"] = name
    return {"path": path, "facts": facts}


if __name__ == "__main__":
    sys.exit(main(compile_model))
