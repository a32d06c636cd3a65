# SPDX-License-Identifier: Apache-2.0
"""One graph of one module on its way to a backend: what strategies build, check and measure
with. The judgement is the core's; this file brings the module to it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import torch

from hasten import _core
from hasten.compilers._export import resize
from hasten.errors import HastenError
from hasten.torch import tree
from hasten.torch.backend import Backend, CoreBackend
from hasten.torch.call import Call, Signature, names_of
from hasten.torch.config import config
from hasten.torch.export import FlatModule, export, write_samples
from hasten.torch.recording import Graph


class OriginalModule(torch.nn.Module):
    """The user's module as it answered before it was wrapped, hooks left out."""

    def __init__(self, module: torch.nn.Module, forward: Callable):
        super().__init__()
        self.module = module
        self._forward = forward

    def forward(self, *args, **kwargs):
        return self._forward(*args, **kwargs)


@dataclass
class Trial:
    """What happened to one backend; the words are those of docs/schema/tune.schema.json."""
    backend: str
    status: str = "ok"
    stage: str | None = None
    message: str | None = None
    check: dict | None = None
    points: list[dict] = field(default_factory=list)

    def fail(self, stage: str, error: BaseException, status: str = "failed") -> None:
        self.status, self.stage = status, stage
        self.message = getattr(error, "message", None) or f"{type(error).__name__}: {error}"


class Workbench:
    def __init__(self, module: torch.nn.Module, forward: Callable, signature: Signature,
                 graph: Graph, folder: Path, progress: Callable[[str], None],
                 heartbeat: Callable[[], None] | None = None):
        self.graph, self.folder, self.progress = graph, folder, progress
        self.heartbeat = heartbeat
        self.original = OriginalModule(module, forward)
        self._signature = signature
        self._flat = FlatModule(module, forward, signature, graph.structure)
        self._exported: tuple[Path, list[Path]] | None = None  # The model and the samples.
        self.export_error: HastenError | None = None
        self.core_report: dict = {}
        self.choice: dict = {}
        self._judges: dict[float | None, Any] = {}

    # -- Exporting and building in children.

    def exported(self) -> tuple[Path, list[Path]]:
        """The module and its recorded calls as files, made once. Raises HastenError with the reasons."""
        if self.export_error:
            raise self.export_error
        if self._exported is None:
            try:
                if self.graph.output_varies():
                    raise HastenError("the module's answers differ in more than their tensors from "
                                      "call to call; an exported program cannot follow that",
                                      "unsupported")
                model, _ = export(self._flat, self.graph, self.folder)
                self._exported = model, write_samples(self.graph, self.folder)
            except HastenError as error:
                self.export_error = error
                raise
        return self._exported

    def build_core(self, backends: list[CoreBackend], batch_sizes: list[int], **options: Any
                   ) -> tuple[dict, Path]:
        """Tunes the exported module over `backends`; the report and the artifact.

        Raises HastenError when none of them can be used.
        """
        model, samples = self.exported()
        artifact = self.folder / "tuned.hasten"
        text, _ = _core.tune(
            str(model), [str(path) for path in samples],
            backends=[backend.candidate() for backend in backends], batch_sizes=batch_sizes,
            output=str(artifact), progress=self._say, build_timeout_s=config.build_timeout_s,
            run_timeout_s=config.run_timeout_s, heartbeat=self.heartbeat, **options)
        self.core_report = json.loads(text)
        return self.core_report, artifact

    def _say(self, stage: str, candidate: str, text: str) -> None:
        self.progress(f"{stage:<11} {candidate}  {text}" if candidate else f"{stage:<11} {text}")

    # -- Checking and measuring in this process.

    def check(self, backend: Backend, lossy: float | None = None) -> dict:
        """The answers of `backend` to every recorded call, against the original's. `lossy`: the
        relative difference that is allowed, where that is more than the usual tolerance."""
        worst: dict = {}
        for number, sample in enumerate(self.graph.samples):
            result = backend.infer(*_fresh(sample.args), **_fresh(sample.kwargs))
            tensors, structure = tree.flatten(result)
            if structure != sample.output:
                return {"passed": False, "worst": None, "rule": "structure",
                        "message": "the answer is not of the original's types"}
            record = json.loads(self._judged(lossy).check(number, [t.detach() for t in tensors]))
            if not record["passed"]:
                return record
            worst = record
        return worst

    def _judged(self, lossy: float | None):
        if lossy not in self._judges:
            judge = _core.Judge(list(names_of(self.graph.output, "output")), lossy=lossy)
            for number, sample in enumerate(self.graph.samples):
                judge.add(f"sample {number}", sample.output_tensors)
            self._judges[lossy] = judge
        return self._judges[lossy]

    def call_at(self, batch_size: int | None) -> tuple[tuple, dict]:
        """A recorded call with its rows cycled to `batch_size`; as recorded for None."""
        sample = self.graph.samples[0]
        if batch_size is None:
            return sample.args, sample.kwargs
        tensors = [_resized(tensor, spec["axes"], batch_size)
                   for tensor, spec in zip(sample.tensors, self.graph.spec["inputs"])]
        return self._signature.arguments(Call(tensors, self.graph.structure))

    def race(self, backends: dict[str, Backend], batch_size: int | None, **options: Any) -> list[dict]:
        """Measures them in turns; the first is what the others are compared with."""
        args, kwargs = self.call_at(batch_size)
        arms = [(label, self._callable(backend, args, kwargs), position == 0)
                for position, (label, backend) in enumerate(backends.items())]
        return json.loads(_core.race(arms, batch_size=batch_size or 1, heartbeat=self.heartbeat,
                                     **options))["arms"]

    def _callable(self, backend: Backend, args: tuple, kwargs: dict) -> Callable:
        infer = backend.infer

        def call():
            with torch.no_grad():
                infer(*args, **kwargs)
        return call


def _resized(tensor: torch.Tensor, axes: list[dict], batch_size: int) -> torch.Tensor:
    for position, axis in enumerate(axes):
        size = batch_size * axis.get("multiplier", 1)
        have = tensor.shape[position]
        if axis["kind"] == "batch" and have:
            tensor = resize(tensor, position, size)
    return tensor


def _fresh(value: Any) -> Any:
    """A copy whose tensors a backend may write to."""
    tensors, structure = tree.flatten(value)
    return tree.build(structure, [tensor.clone() for tensor in tensors])

