# SPDX-License-Identifier: Apache-2.0
"""inspect() and wrap(): which modules of a pipeline spend the time, and tune those."""

import html
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from hasten.errors import InvalidArgument
from hasten.torch import dataset as datasets
from hasten.torch.module import Module

# Attributes that every module has are not parts of a pipeline.
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


@dataclass
class ModuleInfo:
    """A module and what it did; times in seconds, wall clock, children included."""
    module: torch.nn.Module
    name: str
    object_path: str          # ".unet.blocks[0]"; "" for the object itself.
    depth: int
    parent: Any = None        # Who holds it, and under which attribute, index or key.
    key: Any = None
    execution_count: int = 0
    total_execution_time: float = 0.0
    input_types: list[str] = field(default_factory=list)
    output_types: list[str] = field(default_factory=list)
    above: "ModuleInfo | None" = None

    @property
    def forward_called(self) -> bool:
        return self.execution_count > 0

    @property
    def average_execution_time(self) -> float:
        return self.total_execution_time / self.execution_count if self.execution_count else 0.0

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())


@dataclass
class InspectedModulesInfo:
    """The topmost modules that ran, in the order in which they were found."""
    modules: list[ModuleInfo]
    everything: list[ModuleInfo]
    total_execution_time: float
    iterations: int

    def get_modules(self, min_execution_ratio: float | None = None, limit: int | None = None
                    ) -> list[ModuleInfo]:
        """Filtered by their part of the time and sorted by it; as found without a filter.

        Raises ValueError for a ratio outside 0 to 1.
        """
        if min_execution_ratio is None and limit is None:
            return list(self.modules)
        ratio = min_execution_ratio or 0.0
        if not 0 <= ratio <= 1:
            raise InvalidArgument(f"min_execution_ratio has to be between 0 and 1, not {ratio}")
        found = [info for info in self.modules if self._part(info) >= ratio]
        found.sort(key=lambda info: (-info.total_execution_time, info.name))
        return found[:limit]

    def describe(self) -> str:
        """A table, a line per module."""
        rows = [("module", "calls", "total s", "average s", "part", "parameters", "precision")]
        for info in self.modules:
            rows.append((info.object_path or info.name, str(info.execution_count),
                         f"{info.total_execution_time:.4f}", f"{info.average_execution_time:.4f}",
                         f"{100 * self._part(info):.2f} %", str(info.parameters),
                         _precisions(info.module)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.ljust(width) if i in (0, 6) else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
                 for row in rows]
        return "\n".join([*lines, f"{self.total_execution_time:.4f} s in {self.iterations} iterations"])

    def to_html(self) -> str:
        """A tree of every module that ran, to be folded; one page without anything external."""
        roots = [info for info in self.everything if info.forward_called
                 and not _executed_above(info)]
        body = "".join(self._html(info) for info in roots)
        return ("<!doctype html><meta charset=utf-8><title>Where the time goes</title>"
                "<style>body{font:14px sans-serif}summary,li{padding:2px}"
                "meter{width:12em;vertical-align:middle}ul{list-style:none}</style>"
                f"<h1>{self.total_execution_time:.3f} s in {self.iterations} iterations</h1>"
                f"<ul>{body}</ul>\n")

    def _html(self, info: ModuleInfo) -> str:
        part = self._part(info)
        text = (f"<meter value={part:.4f}></meter> {100 * part:.1f} % "
                f"<b>{html.escape(info.object_path or info.name)}</b> "
                f"{html.escape(type(info.module).__name__)}, {info.execution_count} calls, "
                f"{info.parameters} parameters")
        below = [other for other in self.everything if other.above is info and other.forward_called]
        if not below:
            return f"<li>{text}</li>"
        inside = "".join(self._html(other) for other in below)
        return f"<li><details open><summary>{text}</summary><ul>{inside}</ul></details></li>"

    def _part(self, info: ModuleInfo) -> float:
        return info.total_execution_time / self.total_execution_time \
            if self.total_execution_time else 0.0


def inspect(obj: Any, dataset: Any, inference_function: Callable | None = None,
            number_of_iterations: int = 10, warmup_iterations: int = 5, min_depth: int = 0,
            max_depth: int = 5) -> InspectedModulesInfo:
    """Runs `obj` (or `inference_function`) on samples one by one and says which modules in it
    took how long. Nothing in `obj` is different afterwards."""
    infos = list(_walk(obj, max_depth))
    calls = list(itertools.islice(datasets.calls_of(dataset, [1]), number_of_iterations))
    run = inference_function or obj
    handles = [handle for info in infos for handle in _timed(info)]
    try:
        with torch.no_grad():
            for _, args, kwargs in itertools.islice(itertools.cycle(calls), warmup_iterations):
                run(*args, **kwargs)
            for info in infos:
                info.execution_count, info.total_execution_time = 0, 0.0
            begin = time.perf_counter()
            for _, args, kwargs in itertools.islice(itertools.cycle(calls), number_of_iterations):
                run(*args, **kwargs)
            total = time.perf_counter() - begin
    finally:
        for handle in handles:
            handle.remove()
    topmost = [info for info in infos if info.forward_called and info.depth >= min_depth
               and not _executed_above(info, min_depth)]
    return InspectedModulesInfo(topmost, infos, total, number_of_iterations)


def wrap(obj: Any, modules: list[ModuleInfo], strategy=None, strategies=None) -> Any:
    """Puts a wrapped module in the place of each; returns `obj`, or what replaces it."""
    for info in modules:
        wrapped = Module(info.module, info.name, strategy=strategy, strategies=strategies)
        if info.parent is None:
            return wrapped
        if isinstance(info.parent, (list, dict)):
            info.parent[info.key] = wrapped
        else:
            setattr(info.parent, info.key, wrapped)
    return obj


def _walk(root: Any, max_depth: int) -> Iterator[ModuleInfo]:
    """Depth first; each object once, under the first path that leads to it."""
    seen: set[int] = set()

    def visit(value, parent, key, path, depth, above):
        if id(value) in seen or depth > max_depth:
            return
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            name = str(key) if key is not None else type(value).__name__
            above = ModuleInfo(value, name, path, depth, parent, key, above=above)
            yield above
        for child_key, child, child_path in _children(value, path):
            yield from visit(child, value, child_key, child_path, depth + 1, above)

    yield from visit(root, None, None, "", 0, None)


def _children(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    if isinstance(value, dict):
        yield from ((key, child, f"{path}[{key!r}]") for key, child in list(value.items()))
    elif isinstance(value, list):
        yield from ((index, child, f"{path}[{index}]") for index, child in enumerate(value))
    elif isinstance(value, torch.nn.Module):
        yield from ((key, child, f"{path}.{key}") for key, child in value.named_children())
        yield from ((key, child, f"{path}.{key}") for key, child in vars(value).items()
                    if key not in _OF_EVERY_MODULE and _is_container(child))
    elif hasattr(value, "__dict__") and not isinstance(value, type) and \
            type(value).__module__ != "builtins":
        yield from ((key, child, f"{path}.{key}") for key, child in vars(value).items()
                    if not key.startswith("__") and _is_container(child))


def _is_container(value: Any) -> bool:
    return isinstance(value, (torch.nn.Module, dict, list)) or \
        (hasattr(value, "__dict__") and type(value).__module__ != "builtins"
         and not isinstance(value, type) and not callable(value))


def _timed(info: ModuleInfo) -> list:
    started: list[float] = []

    def before(module, args, kwargs):
        started.append(time.perf_counter())

    def after(module, args, kwargs, output):
        if not started:
            return
        info.total_execution_time += time.perf_counter() - started.pop()
        info.execution_count += 1
        if info.execution_count == 1:
            info.input_types = [type(value).__name__ for value in (*args, *kwargs.values())]
            info.output_types = [type(output).__name__]

    module = info.module
    return [module.register_forward_pre_hook(before, with_kwargs=True, prepend=True),
            module.register_forward_hook(after, with_kwargs=True)]


def _executed_above(info: ModuleInfo, min_depth: int = 0) -> bool:
    above = info.above
    while above is not None:
        if above.forward_called and above.depth >= min_depth:
            return True
        above = above.above
    return False


def _precisions(module: torch.nn.Module) -> str:
    return ",".join(sorted({str(p.dtype).removeprefix("torch.") for p in module.parameters()}))
