# SPDX-License-Identifier: Apache-2.0
"""An exported program to ONNX: the dynamo exporter, then the one over TorchScript."""

import sys

from hasten.compilers import _export, _onnx, _program
from hasten.compilers._request import Request, main
from hasten.flat import FlatModule


def compile_model(request: Request) -> dict:
    flat = _program.load_program(request)
    names = _program.names_for(flat, request)
    if not flat.already_flat:
        flat = _program.export_again(flat, request)
    facts = _program.with_names(_export.program_facts(flat.program, request.graph), names)
    try:
        path = _onnx.export_dynamo(request, flat, names)
        facts["exporter"] = "dynamo"
    except Exception:  # The reason is kept; the older exporter takes other models.
        try:
            path = _onnx.export_legacy(request, FlatModule(flat, check_guards=False), names)
        except Exception as error:
            raise _onnx.failed(request) from error
        facts["exporter"] = "torchscript"
    return {"path": path, "facts": facts}


if __name__ == "__main__":
    sys.exit(main(compile_model))
