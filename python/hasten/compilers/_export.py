# SPDX-License-Identifier: Apache-2.0
"""torch.export with the axes of a graph: what is dynamic stays dynamic, or is reported."""

import math
import re

import torch
from torch.export import Dim, ExportedProgram
from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

from hasten.compilers._request import CompileError, Request, reasons
from hasten.flat import FlatProgram

# An axis that was recorded at a few sizes is exported for at least this many, and for twice
# what was seen: a bound lets compilers use 32-bit indices, a tight one refuses real inputs.
GENEROUS_SIZE = 64
# torch.export asks for one refinement per round; more rounds than this do not converge.
MAX_REFINEMENTS = 6


def symbols_of(graph: dict) -> dict:
    """symbol -> [(input index, axis index, multiplier, axis)], in order of appearance."""
    found: dict[str, list] = {}
    for index, spec in enumerate(graph.get("inputs", [])):
        for position, axis in enumerate(spec.get("axes", [])):
            if axis.get("kind", "static") == "static":
                continue
            symbol = axis.get("symbol") or f"input{index}_axis{position}"
            found.setdefault(symbol, []).append((index, position, axis.get("multiplier", 1), axis))
    return found


def resize(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """Cycles the recorded rows: repeated row 0 would hide what differs between rows."""
    have = tensor.shape[axis]
    if have == size:
        return tensor
    if have == 0:
        return tensor.new_zeros([size if i == axis else n for i, n in enumerate(tensor.shape)])
    return tensor.index_select(axis, torch.arange(size, device=tensor.device) % have)


def choose_examples(graph: dict, samples: list, sizes: dict | None = None,
                    limits: dict | None = None) -> list[torch.Tensor]:
    """Inputs in which every symbol has a size of its own of at least 2.

    Sizes 0 and 1, and equal sizes of two symbols, would be taken for constants. `sizes` asks
    for other sizes; `limits` are (min, max) by symbol.
    """
    symbols = symbols_of(graph)

    def size_in(sample, symbol):
        index, axis, multiplier, _ = symbols[symbol][0]
        return sample[index].shape[axis] // multiplier

    sample = max(samples, key=lambda s: sum(size_in(s, symbol) >= 2 for symbol in symbols))
    result, used = list(sample), set()
    for symbol, places in symbols.items():
        low, high = (limits or {}).get(symbol) or (1, None)
        size = max(size_in(sample, symbol), 2, low or 1)
        while size in used and (high is None or size < high):
            size += 1
        if high is not None:
            size = min(size, high)
        size = (sizes or {}).get(symbol, size)
        used.add(size)
        for index, axis, multiplier, _ in places:
            result[index] = resize(result[index], axis, size * multiplier)
    return [tensor.contiguous() for tensor in result]


def named_shapes(graph: dict, limits: dict) -> list:
    """dynamic_shapes for export(): one Dim per symbol, multiples of it where batch is scaled."""
    shapes: list[dict] = [{} for _ in graph.get("inputs", [])]
    for number, (symbol, places) in enumerate(symbols_of(graph).items()):
        low, high = limits[symbol]
        name = re.sub(r"\W+", "_", symbol)
        dim = Dim(f"d{number}_{name}", min=max(low, 1), max=high)
        for index, axis, multiplier, _ in places:
            shapes[index][axis] = dim if multiplier == 1 else multiplier * dim
    return shapes


def automatic_shapes(graph: dict, limits: dict) -> list:
    shapes: list[dict] = [{} for _ in graph.get("inputs", [])]
    for symbol, places in symbols_of(graph).items():
        low, high = limits[symbol]
        for index, axis, multiplier, _ in places:
            shapes[index][axis] = Dim.AUTO(min=max(low, 1) * multiplier,
                                           max=None if high is None else high * multiplier)
    return shapes


def default_limits(graph: dict, known: dict | None = None) -> dict:
    """(min, max) by symbol: `known` where the model itself says so, else generous."""
    limits = {}
    for symbol, places in symbols_of(graph).items():
        seen = max(math.ceil(axis.get("max", 1) / multiplier) for _, _, multiplier, axis in places)
        limits[symbol] = (1, max(GENEROUS_SIZE, 2 * seen))
    for symbol, (low, high) in (known or {}).items():
        if symbol in limits:
            limits[symbol] = (low if low is not None else 1, high)
    return limits


def export_flat(module: torch.nn.Module, request: Request, samples: list,
                known_limits: dict | None = None, strict: bool = True) -> ExportedProgram:
    """Exports a module that takes the graph's inputs in order.

    Several ways are tried until one keeps every dynamic axis; else the one that keeps most.
    What was tried is in request.steps. `strict` allows the way through Dynamo.
    """
    graph = request.graph
    limits = default_limits(graph, known_limits)
    examples = tuple(choose_examples(graph, samples, limits=limits))
    wanted = len(symbols_of(graph))
    best, best_kept = None, -1
    ways = [("named axes", named_shapes, False), ("automatic axes", automatic_shapes, False)]
    if strict:
        ways.append(("named axes, strict", named_shapes, True))
    for name, shapes, through_dynamo in ways:
        try:
            program = request.attempt(
                f"torch.export ({name})",
                lambda shapes=shapes, strict=through_dynamo: _export_refined(
                    module, examples, shapes(graph, limits), strict))
        except Exception:  # The reason is in request.steps; the next way may work.
            continue
        kept = wanted - len(describe_axes(program, graph)["static_symbols"])
        if kept > best_kept:
            best, best_kept = program, kept
        if kept == wanted:
            break
    if best is None:
        raise CompileError("unsupported", f"torch.export failed: {reasons(request.steps)}",
                           "the model keeps running as it is; see the compiler's log for details")
    return best


def _export_refined(module, examples, shapes, strict: bool) -> ExportedProgram:
    shapes = [shape or None for shape in shapes]
    for attempt in range(MAX_REFINEMENTS):
        try:
            with torch.no_grad():
                return torch.export.export(module, examples, strict=strict,
                                           dynamic_shapes=_for(module, shapes))
        except torch._dynamo.exc.UserError as error:
            text = str(error)
            if "Suggested fixes" not in text or attempt + 1 == MAX_REFINEMENTS:
                raise
            # torch's own parser trips over the advice that follows the suggestions.
            suggestions = text.split("\n\n")[0]
            refined = refine_dynamic_shapes_from_suggested_fixes(suggestions, shapes)
            if str(refined) == str(shapes):
                raise
            shapes = refined
    raise AssertionError("the loop returns or raises")


def _for(module, shapes):
    # forward(self, *tensors) is one argument to torch.export.
    return (tuple(shapes),)


def describe_axes(program: ExportedProgram, graph: dict) -> dict:
    """What became of the graph's symbols: {"ranges", "multiples", "static", "static_symbols"}.

    Ranges are in units of the symbol: batch sizes where the axis is a multiple of the batch.
    """
    flat = FlatProgram(program)
    ranges: dict[str, list] = {}
    multiples, static = {}, []
    for symbol, places in symbols_of(graph).items():
        for index, axis, multiplier, _ in places:
            size = flat.sizes[index][axis]
            if isinstance(size, int):
                static.append({"input": flat.inputs[index].name, "axis": axis, "size": size,
                               "symbol": symbol})
                low = high = size // multiplier
                step = 1
            else:
                low, high, step = flat.bounds(size)
                low = None if low is None else math.ceil(low / multiplier)
                high = None if high is None else high // multiplier
                step = max(1, step // multiplier)
            before = ranges.get(symbol, [None, None])
            ranges[symbol] = [low if before[0] is None else max(low or 0, before[0]),
                              high if before[1] is None else
                              before[1] if high is None else min(high, before[1])]
            if step > 1:
                multiples[symbol] = step
    return {"ranges": ranges, "multiples": multiples, "static": static,
            "static_symbols": sorted({entry["symbol"] for entry in static})}


def program_facts(program: ExportedProgram, graph: dict) -> dict:
    flat = FlatProgram(program)
    axes = describe_axes(program, graph)
    facts = {
        "inputs": [vars(leaf) for leaf in flat.inputs],
        "outputs": [vars(leaf) for leaf in flat.outputs],
        "ranges": axes["ranges"], "static": axes["static"], "program_ranges": flat.ranges,
    }
    if axes["multiples"]:
        facts["multiples"] = axes["multiples"]
    return facts
