# SPDX-License-Identifier: Apache-2.0
"""What a module was called with, and what it answered, before it is tuned."""

import copy
import json
from dataclasses import dataclass, field

import torch

from hasten import _core
from hasten.torch import tree
from hasten.torch.call import Call, Signature, names_of
from hasten.torch.samples import Sample, SampleStore
from hasten.torch.shapes import DeclaredShapes


def key_of(structure: tree.Structure, tensors: list[torch.Tensor]) -> tuple:
    """What makes two calls calls of one graph."""
    return structure, tuple((tensor.dtype, tensor.dim()) for tensor in tensors)


@dataclass
class Graph:
    """The calls of one structure and of tensors of the same ranks and dtypes."""
    name: str
    structure: tree.Structure
    spec: dict                    # As hasten._core describes graphs; inputs only.
    tensors: list[tuple[torch.dtype, int]]  # dtype and rank of each.
    output: tree.Structure
    samples: list[Sample] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)  # Of all calls, in order of size.

    @property
    def key(self) -> tuple:
        return self.structure, tuple(self.tensors)

    def output_varies(self) -> bool:
        """Does the answer differ between samples in more than its tensors' values?"""
        return bool(tree.opaque(self.output)) or any(sample.output != self.output for sample in self.samples)

    def has_batch_axis(self) -> bool:
        return any(axis["kind"] == "batch" for spec in self.spec["inputs"] for axis in spec["axes"])

    def describe(self) -> str:
        lines = [f"graph {self.name}: {len(self.samples)} samples"]
        for spec in self.spec["inputs"]:
            axes = ",".join(_describe(axis) for axis in spec["axes"])
            lines.append(f"  {spec['name']}: {spec['dtype']}[{axes}]")
        return "\n".join(lines)


def _describe(axis: dict) -> str:
    if axis["kind"] == "static":
        return str(axis["min"])
    times = f"{axis['multiplier']}*" if axis.get("multiplier", 1) != 1 else ""
    return f"{times}{axis['symbol']}={axis['min']}..{axis['max']}"


@dataclass
class _Kind:
    """The calls of one structure, batch size and shape of every tensor."""
    shapes: tuple
    batch_size: int | None
    samples: list[Sample] = field(default_factory=list)


class Recording:
    """Calls as they come, and the graphs that they show."""

    def __init__(self, signature: Signature, declared: DeclaredShapes | None, most_samples: float,
                 most_bytes: float):
        self._signature = signature
        self._declared = declared
        self._most = most_samples
        self._store = SampleStore(most_bytes)
        self._kinds: dict[tree.Structure, dict[tuple, _Kind]] = {}
        self._stored: set[tuple] = set()  # Keys of the graphs that have a sample.
        self.calls = 0
        self.refused: list[str] = []      # Why the last call that was not recorded was not.

    def copy_of(self, args: tuple, kwargs: dict) -> Call | None:
        """The call with deep copies of its arguments, to be kept when it has been answered; None
        for one that could never be recognised again.

        Raises InvalidArgument when it contradicts the declared shapes.
        """
        call = self._signature.normalise(args, kwargs)
        if self._declared:
            self._declared.check(tree.paths(call.structure), call.tensors)
        opaque = tree.opaque(call.structure)
        if opaque:
            self.refused = opaque
            return None
        return Call([tensor.detach().clone() for tensor in call.tensors], _copied(call.structure))

    def keep(self, call: Call, batch_size: int | None, output) -> None:
        """Shapes are learnt from every call; at most `most_samples` of a kind are kept whole, as
        long as there is room."""
        self.calls += 1
        shapes = _shapes(call.tensors)
        kind = self._kinds.setdefault(call.structure, {}).setdefault(
            (batch_size, shapes), _Kind(shapes, batch_size))
        if len(kind.samples) >= self._most:
            return
        tensors, structure = tree.flatten(output)
        key = key_of(call.structure, call.tensors)
        path = self._store.write(call.tensors, [tensor.detach().clone() for tensor in tensors],
                                 needed=key not in self._stored)
        if path is not None:
            self._stored.add(key)
            kind.samples.append(Sample(self._store, path, self._signature, call.structure,
                                       structure, batch_size, shapes))

    def graphs(self) -> list[Graph]:
        """In the order of their first calls; without those of which no call could be kept."""
        graphs: list[Graph] = []
        for structure, by_shape in self._kinds.items():
            kinds = list(by_shape.values())
            found = json.loads(_core.graphs_of(
                list(names_of(structure)), [_stand_ins(kind.shapes) for kind in kinds],
                [kind.batch_size for kind in kinds]))
            for entry in found:
                spec = entry["graph"]
                if self._declared:
                    self._declared.apply(spec, tree.paths(structure))
                own = [kinds[index] for index in entry["calls"]]
                samples = sorted((sample for kind in own for sample in kind.samples),
                                 key=lambda sample: sample.path)  # In the order of the calls.
                if samples:
                    graphs.append(Graph(
                        str(len(graphs)), structure, spec,
                        [(dtype, len(shape)) for shape, dtype in own[0].shapes],
                        samples[0].output, samples,
                        sorted({kind.batch_size for kind in own if kind.batch_size})))
        return graphs


def _shapes(tensors: list[torch.Tensor]) -> tuple:
    return tuple((tensor.shape, tensor.dtype) for tensor in tensors)


def _stand_ins(shapes: tuple) -> list[torch.Tensor]:
    """Tensors of these shapes and of no size in memory."""
    return [torch.zeros((), dtype=dtype).expand(shape) for shape, dtype in shapes]


def _copied(structure: tree.Structure) -> tree.Structure:
    """Constants may be objects that the module changes."""
    if isinstance(structure, tree.Constant):
        if isinstance(structure.value, (int, float, bool, str, bytes, type(None))):
            return structure
        return tree.Constant(copy.deepcopy(structure.value))
    if isinstance(structure, tree.Node):
        return tree.Node(structure.type, structure.kind, structure.keys,
                         tuple(_copied(child) for child in structure.children))
    return structure
