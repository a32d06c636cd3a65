# SPDX-License-Identifier: Apache-2.0
"""Strategies that measure all backends and take the best.

Those that live in children are built and raced there together, in parallel and by turns, and
the best of them meets eager and the backends of this process in a last race here. A subclass
that brings its own `_measure`, `_is_better` or `_speedup` gets every backend built here, one
after the other, and its hooks asked.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from hasten.errors import HastenError
from hasten.torch.backend import Backend
from hasten.torch.tune_strategy.base import logger
from hasten.torch.tune_strategy.mixin.backend_list_mixin import BackendListMixin
from hasten.torch.tune_strategy.mixin.performance_validation_mixin import (
    GatedStrategy, PerformanceValidationMode, fmt_speedup_msg, largest_batch)
from hasten.torch.task.profiling import ProfilingConfig


@dataclass
class BackendPerfResult:
    """Metric and speed-up of one backend; the unit of the metric is the strategy's."""
    backend_description: str
    metric: float
    baseline_metric: float
    speedup: float
    passed: bool


@dataclass
class BackendProfilingResult:
    """What a strategy measured of one backend."""
    selected_batch_size: int

    @property
    @abstractmethod
    def metric(self) -> float:
        """The figure by which candidates are compared."""

    def to_json_dict(self, metric_label: str) -> dict[str, int | float]:
        return {metric_label: self.metric, "selected_batch_size": self.selected_batch_size}


@dataclass
class ThroughputResult(BackendProfilingResult):
    throughput: float
    latency: float

    @property
    def metric(self) -> float:
        return self.throughput


@dataclass
class LatencyResult(BackendProfilingResult):
    latency: float

    @property
    def metric(self) -> float:
        return self.latency


@dataclass
class _TuneCandidate:
    backend: Backend
    result: BackendProfilingResult


class ProfilingTuneStrategy(BackendListMixin, GatedStrategy):
    """Base: subclasses set the texts below and implement the hooks `_measure`, `_is_better` and
    `_speedup`."""

    _profiling_config: ProfilingConfig
    _title = ""
    _description = ""
    _metric_label = ""
    _metric_unit = ""
    _value_fmt = ".2f"

    def __init__(self, backends: list[Backend] | None = None,
                 profiling_config: ProfilingConfig | None = None, **kwargs: Any):
        super().__init__(backends, profiling_config=profiling_config or ProfilingConfig(), **kwargs)
        self._baseline_result: BackendProfilingResult | None = None
        self.perf_validation_results: list[BackendPerfResult] = []

    # -- Hooks.

    @abstractmethod
    def _measure(self, backend, name, graph_spec, data, profiling_cfg) -> BackendProfilingResult: ...

    @abstractmethod
    def _is_better(self, result, other) -> bool: ...

    @abstractmethod
    def _speedup(self, result, baseline_result) -> float: ...

    def _get_profiling_config(self, batching: bool, max_batch_size: int) -> ProfilingConfig:
        given = self._profiling_config
        sizes = sorted({size for size in given.batch_sizes if size <= max_batch_size})
        return ProfilingConfig(sizes or [max_batch_size], batching, given.measuring_strategy,
                               given.measurement_stop_strategy, given.profiling_stop_strategy)

    # -- The course of a tune.

    def _pre_tune(self, module, name, graph_spec, data, device, cache_dir):
        super()._pre_tune(module, name, graph_spec, data, device, cache_dir)
        self.perf_validation_results = []
        self._baseline_result = None
        self._build_baseline(module, graph_spec, data, device, cache_dir)
        if self._performance_validation_mode is not PerformanceValidationMode.DISABLED:
            try:
                self._baseline_result = self._measure(
                    self._baseline_backend, name, graph_spec, data,
                    self._config_for(graph_spec, data))
            except HastenError as error:
                logger.warning("the original could not be measured: %s", error.message)

    def _tune(self, module, name, graph_spec, data, device, cache_dir) -> Backend:
        best = self._run_backends(module, name, graph_spec, data, device, cache_dir,
                                  graph_spec.has_batch_axis(), largest_batch(data))
        winner = self._resolve_winner(best)
        winner.backend.activate()
        return winner.backend

    def _run_backends(self, module, name, graph_spec, data, device, cache_dir, batching,
                      max_batch_size) -> _TuneCandidate | None:
        best: _TuneCandidate | None = None
        profiling_cfg = self._config_for(graph_spec, data)
        for blueprint in self._backends:
            built = self._build_and_validate_backend(blueprint, module, name, graph_spec, data,
                                                     device, cache_dir)
            if built is None:
                continue
            try:
                result = self._measure(built, name, graph_spec, data, profiling_cfg)
            except Exception as error:
                self.trials[-1].fail("measure", error)
                built.deactivate()
                continue
            self.backend_results[-1].update(result.to_json_dict(self._metric_label))
            self._record_perf_result(built, result)
            if best is None or self._is_better(result, best.result):
                if best is not None:
                    best.backend.deactivate()
                best = _TuneCandidate(built, result)
            else:
                built.deactivate()
        return best

    def _record_perf_result(self, backend: Backend, result: BackendProfilingResult) -> None:
        baseline = self._baseline_result
        if baseline is None or result.metric <= 0 or baseline.metric <= 0:
            return
        speedup = self._speedup(result, baseline)
        self.perf_validation_results.append(BackendPerfResult(
            backend.describe(), result.metric, baseline.metric, speedup, speedup >= 1.0))

    def _resolve_winner(self, best: _TuneCandidate | None) -> _TuneCandidate:
        disabled = self._performance_validation_mode is PerformanceValidationMode.DISABLED
        baseline = None if disabled or self._baseline_result is None else \
            _TuneCandidate(self._baseline_backend, self._baseline_result)
        if baseline is not None and (best is None or (
                self._performance_validation_enabled
                and not self._is_better(best.result, baseline.result))):
            if best is not None:
                best.backend.deactivate()
            return baseline
        if best is None:
            raise self._nothing_left()
        return best

    def _nothing_left(self) -> HastenError:
        return HastenError(f"no correct backend is left: {self._reasons() or 'none was given'}",
                           "unsupported")

    def _post_tune(self, backend, name, graph_spec, data):
        super()._post_tune(backend, name, graph_spec, data)
        if backend is self._baseline_backend:
            self._log_baseline_selected(backend)
            return
        for result in self.perf_validation_results:
            if result.backend_description == backend.describe():
                detail = f"{self._fmt(result.baseline_metric)} -> {self._fmt(result.metric)}"
                logger.info(fmt_speedup_msg(result.speedup, detail, name, backend.describe()))

    def _fmt(self, value: float) -> str:
        return f"{value:{self._value_fmt}} {self._metric_unit}"

    def _config_for(self, graph_spec, data) -> ProfilingConfig:
        if not graph_spec.has_batch_axis():
            return self._get_profiling_config(False, 1)
        return self._get_profiling_config(True, max(largest_batch(data),
                                                    *self._profiling_config.batch_sizes))

    def _describe_parts(self) -> list[str]:
        return [f"name: {self._title}", f"description: {self._description}", "backends:",
                *(f"  {backend.describe()}" for backend in self._backends)]

    def to_json_dict(self) -> dict[str, Any]:
        return {"backends": [backend.describe() for backend in self._backends],
                "performance_validation_mode": self._performance_validation_mode.value,
                "profiling_config": self._profiling_config.to_json_dict()}
