# SPDX-License-Identifier: Apache-2.0
"""Opening an exported program, and exporting it again where a compiler needs that."""

from collections.abc import Callable

import torch

from hasten.compilers import _export
from hasten.compilers._request import CompileError, Request
from hasten.flat import FlatModule, FlatProgram


def load_program(request: Request) -> FlatProgram:
    try:
        program = torch.export.load(str(request.model))
    except Exception as error:
        raise CompileError("invalid_argument",
                           f"{request.model.name} is not a readable exported program: "
                           f"{str(error).splitlines()[0] if str(error) else error!r}") from error
    return FlatProgram(program)


def export_again(flat: FlatProgram, request: Request,
                 change: Callable[[torch.fx.GraphModule], None] | None = None) -> FlatProgram:
    """The same program with flat tensors in and out and with known example sizes.

    A program that was saved and loaded has lost its example sizes, and AOTInductor can fail
    on such a one. `change` may rewrite the graph in between.
    """
    axes = _export.describe_axes(flat.program, request.graph)
    known = {symbol: (low, high) for symbol, (low, high) in axes["ranges"].items()}
    graph = without_axes(request.graph, axes["static_symbols"])
    inner = Request(request.model, request.format, graph, request.samples, request.options,
                    request.output_dir, request.steps)
    module = FlatModule(flat)
    if change is not None:
        change(module.module)
    program = _export.export_flat(module, inner, request.read_samples(), known)
    return FlatProgram(program)


def without_axes(graph: dict, symbols: list[str]) -> dict:
    """The graph with these symbols' axes static: the program takes one size there."""
    inputs = [{**spec, "axes": [{**axis, "kind": "static"} if axis.get("symbol") in symbols
                                else axis for axis in spec.get("axes", [])]}
              for spec in graph.get("inputs", [])]
    return {**graph, "inputs": inputs}


def names_for(flat: FlatProgram, request: Request) -> tuple[list[str], list[str]]:
    """The names of the graph where it has them, else those of the program."""
    def pick(specs, leaves):
        names = [spec["name"] for spec in specs or []]
        return names if len(names) == len(leaves) else [leaf.name for leaf in leaves]
    return (pick(request.graph.get("inputs"), flat.inputs),
            pick(request.graph.get("outputs"), flat.outputs))


def with_names(facts: dict, names: tuple[list[str], list[str]]) -> dict:
    for key, group in zip(("inputs", "outputs"), names, strict=True):
        for leaf, name in zip(facts[key], group, strict=True):
            leaf["name"] = name
    return facts
