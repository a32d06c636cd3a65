# SPDX-License-Identifier: Apache-2.0
"""TorchScript to ONNX: exported and through the dynamo exporter, then the older exporter."""

import sys

from hasten.compilers import _export, _onnx, _program
from hasten.compilers._request import Request, main
from hasten.compilers.torchscript_to_pt2 import (call_script, export_script, input_names,
                                                 load_script)
from hasten.flat import FlatProgram, as_tensor, flatten_outputs


def compile_model(request: Request) -> dict:
    try:
        program, output_names = export_script(request)
        flat = FlatProgram(program)
        names = input_names(request, request.read_samples()), output_names
        facts = _program.with_names(_export.program_facts(program, request.graph), names)
        path = _onnx.export_dynamo(request, flat, names)
        return {"path": path, "facts": {**facts, "exporter": "dynamo"}}
    except Exception as error:
        if getattr(error, "code", "") in ("invalid_argument",):
            raise
        return _through_torchscript(request)


def _through_torchscript(request: Request) -> dict:
    script = load_script(request)
    samples = request.read_samples()
    first = [tensor.clone() for tensor in samples[0]]
    output_names, leaves = flatten_outputs(call_script(script, request, first))
    names = input_names(request, samples), output_names
    try:
        path = _onnx.export_legacy(request, script, names,
                                   lambda tensors: call_script(script, request, tensors))
    except Exception as error:
        raise _onnx.failed(request) from error
    outputs = [{"name": name, "dtype": str(as_tensor(leaf).dtype).removeprefix("torch."),
                "shape": [""] * as_tensor(leaf).dim()}
               for name, leaf in zip(output_names, leaves, strict=True)]
    return {"path": path, "facts": {"exporter": "torchscript", "ranges": {}, "static": [],
                                    "inputs": request.graph.get("inputs", []),
                                    "outputs": outputs}}


if __name__ == "__main__":
    sys.exit(main(compile_model))
