# SPDX-License-Identifier: Apache-2.0
"""tune(): records calls, then takes each module to its fastest correct form."""

import contextlib
import dataclasses
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from hasten.errors import HastenError, InvalidArgument
from hasten.torch import dataset as datasets
from hasten.torch.config import config
from hasten.torch.module import Control, TunedGraph, original_forward, recording_pass
from hasten.torch.tune_strategy import MaxThroughputStrategy, TuneStrategy
from hasten.torch.workbench import Workbench

logger = logging.getLogger("hasten.torch")


def tune(func: Callable, dataset: Any, batch_sizes: list[int] | None = None,
         max_num_batches_per_batch_size: int | None = None, device=None, dry_run: bool = False,
         disable_external_logging: bool = False, clear_cache: bool = False,
         ignore_failing_modules: bool = True) -> None:
    """Calls `func` with batches of `dataset`, then tunes every wrapped module that was called.

    `func` is a wrapped module or anything that calls some. `batch_sizes` (default 1 and 2) are
    those to record and measure at; see hasten.torch.dataset.calls_of for what a dataset may be.
    With `dry_run` the recorded graphs are described and nothing is built. A module that cannot
    be tuned answers as before; `ignore_failing_modules=False` raises instead.
    """
    sizes = _checked_sizes(batch_sizes)
    if clear_cache:
        shutil.rmtree(config.cache_dir / "torch", ignore_errors=True)
    with _as_before():
        controls = _record(func, dataset, sizes, max_num_batches_per_batch_size)
        if not controls:
            raise InvalidArgument("no wrapped module was called",
                                  hint="wrap one: model = hasten.torch.Module(model)")
        if dry_run:
            for control in controls:
                for graph in control.graphs():
                    _say(f"module {control.name}, {graph.describe()}")
            return
        for control in controls:
            try:
                control.set_tuned(tune_module(control, device, control.module, _say))
            except Exception as error:
                control.pass_through(force=True)
                control.report = {"module": control.name, "error": str(error)}
                _say(f"module {control.name}: not tuned, the original goes on: {error}")
                if not ignore_failing_modules:
                    raise


def _checked_sizes(batch_sizes: list[int] | None) -> list[int]:
    sizes = list(batch_sizes or datasets.DEFAULT_BATCH_SIZES)
    if any(not isinstance(size, int) or isinstance(size, bool) or size < 1 for size in sizes):
        raise InvalidArgument(f"batch sizes have to be whole numbers above 0: {sizes}")
    if len(set(sizes)) == 1:
        logger.warning("one batch size shows no batch axis: other sizes will go to the original")
    return sizes


def _record(func, dataset, sizes: list[int], most: int | None) -> list[Control]:
    with torch.no_grad(), recording_pass() as now:
        for now.batch_size, args, kwargs in datasets.calls_of(dataset, sizes, most):
            func(*args, **kwargs)
    return now.called


def tune_module(control: Control, device, module: torch.nn.Module, say: Callable[[str], None],
                heartbeat: Callable[[], None] | None = None) -> list[TunedGraph]:
    """The best form of each recorded graph, made from `module`: that of `control`, or a copy of
    it. `heartbeat` is called often and may raise to end the tune. Raises what strategies raise."""
    graphs = control.graphs()
    if not graphs and control.recording and control.recording.refused:
        raise HastenError("calls with these arguments cannot be told from others: "
                          f"{', '.join(control.recording.refused)}", "unsupported",
                          "tune the modules inside, or a call without them (use_cache=False)")
    if not graphs:
        raise HastenError("no recorded call could be kept on disk", "io",
                          "TMPDIR names a folder with room for them")
    strategies = _strategies_for(control, graphs)
    device = device or _device_of(control.module)
    tuned, reports = [], []
    for graph, strategy in zip(graphs, strategies, strict=True):
        folder = Path(tempfile.mkdtemp(prefix="hasten-torch-"))
        try:
            bench = Workbench(module, original_forward(module), control.signature, graph, folder,
                              lambda text: say(f"{control.name}: {text}"), heartbeat)
            backend = strategy.tune(bench.original, control.name, graph, graph.samples, device,
                                    folder, bench)
            _keep_artifact(control, graph, backend)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        tuned.append(TunedGraph(graph, backend))
        reports.append(_report(graph, strategy, backend, bench))
        say(f"{control.name}: graph {graph.name}: {backend.describe()}")
    control.report = {"schema": 1, "module": control.name, "graphs": reports}
    return tuned


def _keep_artifact(control: Control, graph, backend) -> None:
    """The artifact outlives the folder in which it was made."""
    if not hasattr(backend, "artifact"):
        return
    home = config.cache_dir / "torch" / str(os.getpid()) / control.name / graph.name
    home.mkdir(parents=True, exist_ok=True)
    kept = home / "tuned.hasten"
    shutil.move(backend.artifact, kept)
    backend.artifact = kept


def _strategies_for(control: Control, graphs: list) -> list[TuneStrategy]:
    given = control.strategies
    if given is None:
        blueprint = control.strategy or MaxThroughputStrategy()
        return [blueprint.clone() for _ in graphs]
    names = [graph.name for graph in graphs]
    if isinstance(given, dict):
        missing = [name for name in names if name not in given]
        if missing:
            raise InvalidArgument(f"strategies has none for graph {', '.join(missing)}",
                                  hint="\n".join(graph.describe() for graph in graphs))
        return [given[name].clone() for name in names]
    if len(given) != len(graphs):
        raise InvalidArgument(f"{len(given)} strategies for {len(graphs)} graphs",
                              hint="\n".join(graph.describe() for graph in graphs))
    return [strategy.clone() for strategy in given]


def _device_of(module: torch.nn.Module) -> torch.device:
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")


def _report(graph, strategy: TuneStrategy, backend, bench: Workbench) -> dict:
    return {
        "graph": graph.spec, "strategy": {"name": type(strategy).__name__,
                                          **strategy.to_json_dict()},
        "trials": [dataclasses.asdict(trial) for trial in strategy.trials],
        "winner": backend.describe(), "choice": bench.choice, "core": bench.core_report,
    }


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """What the tune must leave as it was: random states, thread counts, grad mode."""
    rng, threads, grad = torch.get_rng_state(), torch.get_num_threads(), torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_rng_state(rng)
        torch.set_grad_enabled(grad)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def _say(text: str) -> None:
    """Progress goes to stderr, and to the log for who listens."""
    logger.info(text)
    if not logger.handlers and sys.stderr is not None:
        print(text, file=sys.stderr)
