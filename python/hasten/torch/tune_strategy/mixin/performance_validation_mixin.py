# SPDX-License-Identifier: Apache-2.0
"""The gate of OneBackend and FirstWins: a backend has to be faster than eager."""

import enum
from dataclasses import dataclass
from typing import Any

from hasten.torch.backend import Backend, TorchEagerBackend
from hasten.torch.tune_strategy.base import TuneStrategy, logger


class PerformanceValidationMode(str, enum.Enum):
    ENABLED = "enabled"
    DIAGNOSTIC = "diagnostic"  # Measured and reported, without consequence.
    DISABLED = "disabled"


def mode_of(mode: "bool | str | PerformanceValidationMode") -> PerformanceValidationMode:
    if isinstance(mode, bool):
        return PerformanceValidationMode.ENABLED if mode else PerformanceValidationMode.DISABLED
    return PerformanceValidationMode(mode)


def fmt_speedup_msg_short(speedup: float, detail: str) -> str:
    """'1.52x faster than eager (12.0 -> 18.2 samples/s)'"""
    word = "faster" if speedup >= 1 else "slower"
    return f"{speedup:.2f}x {word} than eager ({detail})"


def fmt_speedup_msg(speedup: float, detail: str, name: str, backend_desc: str) -> str:
    return f"module {name}: {backend_desc}: {fmt_speedup_msg_short(speedup, detail)}"


@dataclass
class PerformanceValidationMixinResult:
    """Throughput in samples per second; `passed`: the gate let it through."""
    backend_description: str
    throughput: float
    baseline_throughput: float
    speedup: float
    passed: bool


class GatedStrategy(TuneStrategy):
    """What the strategies that compare with the original share: the switch, and the baseline."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._performance_validation_mode = PerformanceValidationMode.ENABLED
        self._baseline_backend: Any = None  # A Backend, once a tune has begun.

    def enable_performance_validation(self, enable=True):
        self._performance_validation_mode = mode_of(enable)
        return self

    @property
    def performance_validation_mode(self) -> PerformanceValidationMode:
        return self._performance_validation_mode

    @property
    def _performance_validation_enabled(self) -> bool:
        return self._performance_validation_mode is PerformanceValidationMode.ENABLED

    def _build_baseline(self, module, graph_spec, data, device, cache_dir) -> None:
        self._baseline_backend = TorchEagerBackend().build(module, graph_spec, data, device,
                                                           cache_dir)

    def _log_baseline_selected(self, backend: Backend) -> None:
        logger.info("the original was selected: no backend was faster")


class PerformanceValidationMixin(GatedStrategy):
    """Measures each backend against eager, in turns, at the largest recorded batch size."""

    def __init__(self, *args, min_speedup_threshold_percent: float = 1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self._min_speedup_threshold_percent = min_speedup_threshold_percent
        self._baseline_throughput: float | None = None
        self._resolved_batch_size: int | None = None
        self.perf_validation_results: list[PerformanceValidationMixinResult] = []

    def _pre_tune(self, module, name, graph_spec, data, device, cache_dir):
        super()._pre_tune(module, name, graph_spec, data, device, cache_dir)
        self.perf_validation_results = []
        self._baseline_throughput = None
        self._resolved_batch_size = largest_batch(data) if graph_spec.has_batch_axis() else None
        self._build_baseline(module, graph_spec, data, device, cache_dir)

    def _build_validate_and_check_perf(self, backend, module, name, graph_spec, data, device,
                                       cache_dir, raise_on_failure: bool = False):
        built = self._build_and_validate_backend(backend, module, name, graph_spec, data, device,
                                                 cache_dir, raise_on_failure)
        if built is None or self._performance_validation_mode is PerformanceValidationMode.DISABLED:
            return built
        eager, own = self.workbench.race({"eager": self._baseline_backend, "own": built},
                                         self._resolved_batch_size)
        if own["point"] is None or eager["point"] is None:
            self.trials[-1].fail("measure", RuntimeError(own["error"] or eager["error"] or
                                                         "it could not be measured"))
            return None
        self.trials[-1].points.append(own["point"])
        self._baseline_throughput = eager["point"]["throughput"]
        # The ratio of turns side by side; the figures of both apart would be noisier.
        speedup = own["point"]["speedup"]["estimate"]
        passed = speedup >= 1 + self._min_speedup_threshold_percent / 100 and \
            own["point"]["verdict"] not in ("slower", "cannot_tell")
        self.perf_validation_results.append(PerformanceValidationMixinResult(
            backend.describe(), own["point"]["throughput"], self._baseline_throughput, speedup,
            passed))
        if passed or self._performance_validation_mode is PerformanceValidationMode.DIAGNOSTIC:
            return built
        self.trials[-1].status = "dropped"
        self.trials[-1].message = f"{speedup:.2f} times as fast as eager: {own['point']['verdict']}"
        built.deactivate()
        return None

    def _post_tune(self, backend, name, graph_spec, data):
        super()._post_tune(backend, name, graph_spec, data)
        if backend is self._baseline_backend:
            self._log_baseline_selected(backend)
            return
        for result in self.perf_validation_results:
            if result.backend_description == backend.describe():
                detail = (f"{result.baseline_throughput:.2f} -> {result.throughput:.2f} samples/s")
                logger.info(fmt_speedup_msg(result.speedup, detail, name, backend.describe()))
                return


def largest_batch(data) -> int:
    return max((sample.batch_size or 1 for sample in data), default=1)
