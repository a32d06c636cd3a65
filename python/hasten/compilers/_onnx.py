# SPDX-License-Identifier: Apache-2.0
"""Both exporters of torch.onnx, and what is checked of every file they write."""

import re
import warnings
from pathlib import Path

import onnx
import torch

from hasten.compilers import _export
from hasten.compilers._request import CompileError, Request, reasons
from hasten.flat import FlatProgram, UnsupportedModel, as_tensor, flatten_outputs

# Protobuf ends at 2 GiB; above this the weights go into a file beside the model.
EXTERNAL_DATA_BYTES = 1_500_000_000


def export_dynamo(request: Request, flat: FlatProgram, names) -> Path:
    def run():
        # The exporter would make pairs of floats of them, under the same name.
        for leaf in (*flat.inputs, *flat.outputs):
            if leaf.dtype.startswith("complex"):
                raise UnsupportedModel(f"'{leaf.name}' is {leaf.dtype}, which no ONNX operator "
                                       "takes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = torch.onnx.export(flat.program, (), dynamo=True, input_names=names[0],
                                       output_names=names[1], verbose=False)
        assert result is not None  # Of its options only `dynamo=False` answers so.
        _rename_symbols(result.model, _symbol_names(flat, request.graph))
        weights = (value.const_value for value in result.model.graph.initializers.values())
        size = sum(int(weight.nbytes) for weight in weights if weight is not None)
        path = request.output_dir / "model.onnx"
        result.save(str(path), external_data=size > EXTERNAL_DATA_BYTES)
        check_file(path)
        return path
    return request.attempt("torch.onnx.export (dynamo)", run)


def export_legacy(request: Request, module: torch.nn.Module, names, call=None) -> Path:
    """The exporter over TorchScript; `call` runs the module on a list of tensors."""
    call = call or (lambda tensors: module(*tensors))

    def run():
        samples = request.read_samples()
        examples = _export.choose_examples(request.graph, samples)
        axes: dict[str, dict] = {names[0][index]: {} for index in range(len(examples))}
        for symbol, places in _export.symbols_of(request.graph).items():
            for index, axis, _, _ in places:
                axes[names[0][index]][axis] = symbol
        axes.update(_varying_outputs(request.graph, samples, names[1], call))
        path = request.output_dir / "model.onnx"
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, tuple(examples), str(path), dynamo=False,
                              input_names=names[0], output_names=names[1],
                              dynamic_axes={name: value for name, value in axes.items() if value})
        check_file(path)
        return path
    return request.attempt("torch.onnx.export (TorchScript)", run)


def failed(request: Request) -> CompileError:
    return CompileError("build_failed", f"no ONNX exporter could: {reasons(request.steps)}",
                        "the compiler's log has the exporters' full reports")


def check_file(path: Path) -> None:
    if path.stat().st_size == 0:
        raise RuntimeError(f"the exporter left {path.name} empty")
    onnx.checker.check_model(str(path))


def _symbol_names(flat: FlatProgram, graph: dict) -> dict[str, str]:
    """torch's s18 -> the graph's B."""
    names: dict[str, str] = {}
    for symbol, places in _export.symbols_of(graph).items():
        for index, axis, multiplier, _ in places:
            size = str(flat.sizes[index][axis])
            if multiplier == 1 and re.fullmatch(r"[A-Za-z_]\w*", size):
                names.setdefault(size, symbol)
    return names


def _rename_symbols(model, names: dict[str, str]) -> None:
    import onnx_ir
    if not names:
        return
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    values = [*model.graph.inputs, *model.graph.outputs,
              *(output for node in model.graph.all_nodes() for output in node.outputs)]
    for value in {id(value): value for value in values}.values():
        if value.shape is None:
            continue
        value.shape = onnx_ir.Shape([
            dim if isinstance(dim, int) or dim.value is None
            else onnx_ir.SymbolicDim(pattern.sub(lambda m: names[m[1]], dim.value))
            for dim in value.shape])


def _varying_outputs(graph: dict, samples: list, names: list[str], call) -> dict:
    """Which axes of the outputs follow the inputs' sizes: seen from two calls."""
    def shapes(tensors):
        with torch.no_grad():
            _, leaves = flatten_outputs(call([tensor.clone() for tensor in tensors]))
        return [list(as_tensor(leaf).shape) for leaf in leaves]

    first = _export.choose_examples(graph, samples)
    symbols = _export.symbols_of(graph)
    sizes = {symbol: first[places[0][0]].shape[places[0][1]] // places[0][2] + 1
             for symbol, places in symbols.items()}
    if not sizes:
        return {}
    second = _export.choose_examples(graph, samples, sizes)
    return {name: {axis: f"{name}_axis{axis}" for axis, (a, b) in enumerate(zip(one, two))
                   if a != b}
            for name, one, two in zip(names, shapes(first), shapes(second), strict=True)}
