# SPDX-License-Identifier: Apache-2.0
"""What a module was called with, and what it answered, before it is tuned."""

import copy
import json
from dataclasses import dataclass, field

import torch

from hasten import _core
from hasten.torch import tree
from hasten.torch.call import Call, Signature, names_of
from hasten.torch.shapes import DeclaredShapes


@dataclass
class Sample:
    """One recorded call: deep copies, made before the module ran."""
    args: tuple
    kwargs: dict
    tensors: list[torch.Tensor]
    batch_size: int | None
    output: tree.Structure
    output_tensors: list[torch.Tensor]


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

    @property
    def key(self) -> tuple:
        return self.structure, tuple(self.tensors)

    def output_varies(self) -> bool:
        """Does the answer differ between samples in more than its tensors' values?"""
        return any(sample.output != self.output for sample in self.samples)

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


class Recording:
    """Calls as they come, and the graphs that they show."""

    def __init__(self, signature: Signature, declared: DeclaredShapes | None, most_samples: int):
        self._signature = signature
        self._declared = declared
        self._most = most_samples
        self._samples: dict[tree.Structure, list[Sample]] = {}

    def copy_of(self, args: tuple, kwargs: dict) -> tuple[Call, tuple, dict]:
        """The call with deep copies of its arguments, to be kept when it has been answered.

        Raises InvalidArgument when it contradicts the declared shapes.
        """
        call = self._signature.normalise(args, kwargs)
        if self._declared:
            self._declared.check(tree.paths(call.structure), call.tensors)
        copies = [tensor.detach().clone() for tensor in call.tensors]
        own = Call(copies, _copied(call.structure))
        return own, *self._signature.arguments(own)

    def keep(self, call: Call, args: tuple, kwargs: dict, batch_size: int | None, output) -> None:
        """At most `most_samples` of one batch size are kept; sizes are learnt from those."""
        tensors, structure = tree.flatten(output)
        samples = self._samples.setdefault(call.structure, [])
        if sum(sample.batch_size == batch_size and _shapes(sample.tensors) == _shapes(call.tensors)
               for sample in samples) >= self._most:
            return
        samples.append(Sample(args, kwargs, call.tensors, batch_size, structure,
                              [tensor.detach().clone() for tensor in tensors]))

    def graphs(self) -> list[Graph]:
        """In the order of their first calls."""
        graphs: list[Graph] = []
        for structure, samples in self._samples.items():
            on_cpu = [[tensor.cpu() for tensor in sample.tensors] for sample in samples]
            found = json.loads(_core.graphs_of(list(names_of(structure)), on_cpu,
                                               [sample.batch_size for sample in samples]))
            for entry in found:
                spec = entry["graph"]
                if self._declared:
                    self._declared.apply(spec, tree.paths(structure))
                own = [samples[index] for index in entry["calls"]]
                graphs.append(Graph(str(len(graphs)), structure, spec,
                                    list(key_of(structure, own[0].tensors)[1]), own[0].output, own))
        return graphs


def _shapes(tensors: list[torch.Tensor]) -> list:
    return [(tensor.shape, tensor.dtype) for tensor in tensors]


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
