# SPDX-License-Identifier: Apache-2.0
"""An exported program to TorchScript, which is compared with it at a second size."""

import sys

import torch

from hasten.compilers import _export, _program, _torchscript
from hasten.compilers._request import CompileError, Request, main
from hasten.flat import FlatModule


def compile_model(request: Request) -> dict:
    flat = _program.load_program(request)
    names = _program.names_for(flat, request)
    axes = _export.describe_axes(flat.program, request.graph)
    graph = _program.without_axes(request.graph, axes["static_symbols"])
    limits = {symbol: tuple(bounds) for symbol, bounds in axes["ranges"].items()}
    samples = request.read_samples()
    examples = _export.choose_examples(graph, samples, limits=limits)
    script = request.attempt("write as TorchScript", lambda: _torchscript.to_script(flat))
    module = FlatModule(flat)
    request.attempt("compare at another size",
                    lambda: _compare(module, script, graph, samples, limits, examples))
    path = request.output_dir / "model.pt"
    script.save(str(path))
    facts = _program.with_names(_export.program_facts(flat.program, request.graph), names)
    return {"path": path, "facts": facts}


def _compare(module, script, graph: dict, samples: list, limits: dict, examples: list) -> None:
    """A size that the source fixes shows at another one."""
    sizes = {}
    for symbol, places in _export.symbols_of(graph).items():
        index, axis, multiplier, _ = places[0]
        now = examples[index].shape[axis] // multiplier
        low, high = limits.get(symbol, (1, None))
        other = now + 1 if high is None or now + 1 <= high else now - 1
        if other >= (low or 1):
            sizes[symbol] = other
    inputs = _export.choose_examples(graph, samples, sizes, limits)
    with torch.no_grad():
        expected = module(*(tensor.clone() for tensor in inputs))
        try:
            found = script(*(tensor.clone() for tensor in inputs))
        except RuntimeError as error:
            raise CompileError("unsupported", "the script fails "
                               f"at {sizes}: {str(error).splitlines()[-1]}") from error
    found = (found,) if isinstance(found, torch.Tensor) else found
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype or \
                not torch.allclose(a.to(torch.complex128), b.to(torch.complex128), rtol=1e-3,
                                   atol=1e-4, equal_nan=True):
            raise CompileError("unsupported", "the script computes other values: output "
                               f"{number} at {sizes}")


if __name__ == "__main__":
    sys.exit(main(compile_model))
