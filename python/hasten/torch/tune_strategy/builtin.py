# SPDX-License-Identifier: Apache-2.0
"""The five strategies."""

import json
from typing import Any

from hasten import _core
from hasten.errors import HastenError, InvalidArgument
from hasten.torch.backend import Backend, CoreBackend
from hasten.torch.backend.core import label
from hasten.torch.tune_strategy.base import TuneStrategy
from hasten.torch.tune_strategy.mixin.backend_list_mixin import BackendListMixin
from hasten.torch.tune_strategy.mixin.performance_validation_mixin import PerformanceValidationMixin
from hasten.torch.tune_strategy.profiling_tune_strategy import (LatencyResult, ProfilingTuneStrategy,
                                                           ThroughputResult, _TuneCandidate)
from hasten.torch.workbench import Trial

# A turn of the last race is long against its own cost; more time than this a size is not worth.
RACE_SECONDS = 10.0


class OneBackendStrategy(PerformanceValidationMixin):
    """Exactly one backend. Its own error is raised when it cannot be built or answers wrongly;
    when it is correct but not faster, the original stays."""

    def __init__(self, backend: Backend, **kwargs: Any):
        super().__init__(**kwargs)
        self._backend = backend

    def _tune(self, module, name, graph_spec, data, device, cache_dir) -> Backend:
        built = self._build_validate_and_check_perf(self._backend, module, name, graph_spec, data,
                                                    device, cache_dir, raise_on_failure=True)
        return built or self._baseline_backend

    def _describe_parts(self) -> list[str]:
        return ["name: One Backend Strategy", "description: Use only one backend",
                f"backend: {self._backend.describe()}"]

    def to_json_dict(self) -> dict[str, Any]:
        return {"backend": self._backend.describe(),
                "performance_validation_mode": self._performance_validation_mode.value}


class FirstWinsStrategy(BackendListMixin, PerformanceValidationMixin):
    """The first backend in order that can be built, is correct and is faster than eager."""

    def _tune(self, module, name, graph_spec, data, device, cache_dir) -> Backend:
        for backend in self._backends:
            built = self._build_validate_and_check_perf(backend, module, name, graph_spec, data,
                                                        device, cache_dir)
            if built is not None:
                return built
        raise HastenError(f"module '{name}', graph {graph_spec.name}: no backend passed: "
                          f"{self._reasons()}", "unsupported")

    def _describe_parts(self) -> list[str]:
        return ["name: First Wins Strategy",
                "description: evaluate backends in order, return first working backend",
                "backends:", *(f"  {backend.describe()}" for backend in self._backends)]

    def to_json_dict(self) -> dict[str, Any]:
        return {"backends": [backend.describe() for backend in self._backends],
                "performance_validation_mode": self._performance_validation_mode.value}


class _RacingStrategy(ProfilingTuneStrategy):
    """All candidates in one race, unless a subclass brings hooks of its own."""

    _core_strategy = ""
    _hooks = ("_measure", "_is_better", "_speedup", "_run_backends", "_resolve_winner",
              "_get_profiling_config", "_record_perf_result")
    _latency_budget_ms: float | None = None

    def _own_hooks(self) -> bool:
        built_in = next(cls for cls in type(self).__mro__ if cls.__module__ == __name__)
        return any(getattr(type(self), hook) is not getattr(built_in, hook)
                   for hook in self._hooks)

    def _pre_tune(self, module, name, graph_spec, data, device, cache_dir):
        if self._own_hooks():
            super()._pre_tune(module, name, graph_spec, data, device, cache_dir)
            return
        TuneStrategy._pre_tune(self, module, name, graph_spec, data, device, cache_dir)
        self.perf_validation_results, self._baseline_result = [], None
        self._build_baseline(module, graph_spec, data, device, cache_dir)

    def _tune(self, module, name, graph_spec, data, device, cache_dir) -> Backend:
        if self._own_hooks():
            return super()._tune(module, name, graph_spec, data, device, cache_dir)
        sizes = self._sizes(graph_spec, data)
        entrants: list[tuple[Backend, Trial]] = []
        core = [backend for backend in self._backends
                if isinstance(backend, CoreBackend) and self._is_available(backend)]
        if core:
            entrants += self._best_of_children(core, graph_spec, sizes)
        for backend in self._backends:
            if isinstance(backend, CoreBackend):
                continue
            built = self._build_and_validate_backend(backend, module, name, graph_spec, data,
                                                     device, cache_dir)
            if built is not None:
                entrants.append((built, self.trials[-1]))
        return self._decide(entrants, sizes)

    def _is_available(self, backend: CoreBackend) -> bool:
        try:
            backend.check_available()
        except HastenError as error:
            self._out(backend, error)
            return False
        return True

    def _out(self, backend: Backend, error: HastenError) -> None:
        trial = Trial(backend.describe())
        trial.fail("build", error)
        self._explain_loss(backend, trial)
        self.trials.append(trial)
        self.backend_results.append({"backend": backend.describe(), "success": False})

    def _best_of_children(self, core: list[CoreBackend], graph_spec, sizes
                          ) -> list[tuple[Backend, Trial]]:
        options = self._core_options()
        if self._latency_budget_ms:
            options["latency_budget_ms"] = self._latency_budget_ms
        try:
            report, artifact = self.workbench.build_core(
                core, [size for size in sizes if size is not None], strategy=self._core_strategy,
                performance_validation=False, **options)
        except HastenError as error:
            for backend in core:
                self._out(backend, error)
            self.workbench.progress(f"build       {error.message}")
            return []
        winner = report["winner"]
        found: list[tuple[Backend, Trial]] = []
        for entry in report["trials"]:
            trial = Trial(label(entry["backend"], entry["config"]), entry["status"], entry["stage"],
                          entry["message"], entry["check"], entry["points"])
            self.trials.append(trial)
            self.backend_results.append({"backend": trial.backend,
                                         "success": entry["status"] == "ok"})
            # The one that says most: an Inductor without settings explains every TorchAO too.
            blueprint = max((b for b in core if b.explains(entry["backend"], entry["config"])),
                            key=lambda b: len(b.settings()))
            self._explain_loss(blueprint, trial)
            if (entry["backend"], entry["config"]) == (winner["backend"], winner["config"]):
                own = blueprint.clone()
                own.adopt(entry["config"])
                found.append((own.open(artifact, graph_spec.output), trial))
        return found

    def _decide(self, entrants: list[tuple[Backend, Trial]], sizes: list) -> Backend:
        """The last race, in this process; the core chooses."""
        if not entrants and not self._performance_validation_enabled:
            raise self._nothing_left()
        labels = {f"{number}": backend for number, (backend, _) in enumerate(entrants)}
        points: dict[str, list] = {label: [] for label in ("eager", *labels)}
        for size in sizes if entrants else []:
            arms = self.workbench.race({"eager": self._baseline_backend, **labels}, size,
                                       max_time_s=RACE_SECONDS)
            for arm in arms:
                if arm["point"]:
                    points[arm["label"]].append(arm["point"])
                elif arm["error"]:
                    entrants[int(arm["label"])][1].fail("measure", RuntimeError(arm["error"]))
        for number, (_, trial) in enumerate(entrants):
            trial.points = points[str(number)]
        choice = json.loads(_core.choose(
            self._core_strategy, self._performance_validation_enabled,
            [json.dumps(_for_choice(trial)) for _, trial in entrants],
            json.dumps(_baseline(points["eager"])), self._latency_budget_ms))
        self.workbench.choice = choice
        for number, (backend, _) in enumerate(entrants):
            if number != choice["trial"]:
                backend.deactivate()
        if choice["trial"] is None:
            return self._baseline_backend
        return entrants[choice["trial"]][0]

    def _sizes(self, graph_spec, data) -> list[int | None]:
        """What was recorded, unless the user asked for other sizes."""
        if not graph_spec.has_batch_axis():
            return [None]
        if self._profiling_config_given:
            return list(self._profiling_config.batch_sizes)
        return list(graph_spec.batch_sizes) or [1]

    def __init__(self, backends: list[Backend] | None = None, profiling_config=None, **kwargs):
        super().__init__(backends, profiling_config, **kwargs)
        self._profiling_config_given = profiling_config is not None

    # -- The hooks, for subclasses that replace some of them.

    def _measure(self, backend, name, graph_spec, data, profiling_cfg):
        results = []
        sizes = profiling_cfg.batch_sizes if graph_spec.has_batch_axis() else [None]
        for size in sizes:
            (arm,) = self.workbench.race({"own": backend}, size, max_time_s=RACE_SECONDS)
            if arm["point"] is None:
                break
            results.append(ThroughputResult(size or 1, arm["point"]["throughput"],
                                            arm["point"]["latency_ms"]["median"]))
        if not results:
            raise HastenError(f"{backend.describe()} could not be measured", "run_failed")
        return self._best_of(results)

    def _best_of(self, results: list[ThroughputResult]):
        return max(results, key=lambda result: result.throughput)

    def _is_better(self, result, other) -> bool:
        return result.metric > other.metric

    def _speedup(self, result, baseline_result) -> float:
        return result.metric / baseline_result.metric


def _for_choice(trial: Trial) -> dict:
    return {"backend": trial.backend.split(":")[0].split("(")[0], "config": {},
            "status": trial.status, "check": {"passed": True}, "points": trial.points}


def _baseline(points: list) -> dict | None:
    return {"backend": "eager", "config": {}, "status": "ok", "points": points} if points else None


class MaxThroughputStrategy(_RacingStrategy):
    """The highest throughput over the batch sizes, if it is higher than eager's."""
    _title = "Max Throughput Strategy"
    _description = "measure all backends, return the one with the highest throughput"
    _metric_label, _metric_unit, _value_fmt = "throughput", "samples/s", ".2f"
    _core_strategy = "max-throughput"


class MinLatencyStrategy(_RacingStrategy):
    """The lowest latency at batch size 1, if it is lower than eager's."""
    _title = "Min Latency Strategy"
    _description = "measure all backends at batch size 1, return the one with the lowest latency"
    _metric_label, _metric_unit, _value_fmt = "latency", "ms", ".3f"
    _core_strategy = "min-latency"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._find_max_batch_size = False

    def _sizes(self, graph_spec, data):
        return [1] if graph_spec.has_batch_axis() else [None]

    def _get_profiling_config(self, batching, max_batch_size):
        config = super()._get_profiling_config(batching, max_batch_size)
        config.batch_sizes = [1]
        return config

    def _best_of(self, results):
        best = min(results, key=lambda result: result.latency)
        return LatencyResult(best.selected_batch_size, best.latency)

    def _is_better(self, result, other) -> bool:
        return result.metric < other.metric

    def _speedup(self, result, baseline_result) -> float:
        return baseline_result.metric / result.metric


class LatencyBudgetStrategy(_RacingStrategy):
    """The highest throughput among the batch sizes whose latency is within `latency_budget_ms`.

    Raises ValueError for a budget of 0 or less, and fails the tune when no backend keeps it.
    """
    _title = "Latency Budget Strategy"
    _description = "measure all backends, return the highest throughput within the latency budget"
    _metric_label, _metric_unit, _value_fmt = "throughput", "samples/s", ".2f"
    _core_strategy = "latency-budget"

    def __init__(self, latency_budget_ms: float, *args, **kwargs):
        if not latency_budget_ms > 0:
            raise InvalidArgument(f"latency_budget_ms has to be above 0, not {latency_budget_ms}")
        super().__init__(*args, **kwargs)
        self._latency_budget_ms = float(latency_budget_ms)

    def _best_of(self, results):
        within = [result for result in results if result.latency <= self._latency_budget_ms]
        if not within:
            raise HastenError(f"no batch size keeps the budget of {self._latency_budget_ms:g} ms",
                              "unsupported")
        return max(within, key=lambda result: result.throughput)

    def _resolve_winner(self, best: _TuneCandidate | None) -> _TuneCandidate:
        if best is None:
            raise HastenError(f"no backend keeps the budget of {self._latency_budget_ms:g} ms",
                              "unsupported")
        return super()._resolve_winner(best)

    def _describe_parts(self) -> list[str]:
        return [*super()._describe_parts(), f"latency_budget_ms: {self._latency_budget_ms:g}"]

    def to_json_dict(self) -> dict[str, Any]:
        return {**super().to_json_dict(), "latency_budget_ms": self._latency_budget_ms}
