# SPDX-License-Identifier: Apache-2.0
"""How to measure, in the types of the guide.

hasten measures in rounds of turns and stops when an interval says enough; what these types ask
for is a bound on that: which batch sizes, at most how many rounds, whether the sweep may stop.
"""

from dataclasses import dataclass, field
from typing import Iterable

from hasten.torch.task.profiling.profiling_stop_strategy import (AllSamplesProfilingStopStrategy,
                                                                 ProfilingStopStrategy,
                                                                 ThroughputSaturatedStopStrategy)


class MeasuringStrategy:
    """What one measurement is."""


class ModelExecutionTimeMeasuringStrategy(MeasuringStrategy):
    """The wall-clock time of a call."""


class MeasurementStopStrategy:
    """When a backend has been measured enough at one batch size."""


@dataclass
class NumStepsMeasuringStopStrategy(MeasurementStopStrategy):
    num_steps: int = 20
    warmup_samples: int = 10

    def __post_init__(self):
        if self.num_steps <= 0 or self.warmup_samples <= 0:
            raise ValueError("num_steps and warmup_samples have to be above 0")


@dataclass
class StableWindowMeasuringStopStrategy(MeasurementStopStrategy):
    window_size: int = 20
    max_cv_ratio: float = 0.10
    warmup_samples: int = 10
    max_samples: int = 100

    def __post_init__(self):
        if not 0 <= self.max_cv_ratio <= 1:
            raise ValueError("max_cv_ratio has to be between 0 and 1")
        if min(self.window_size, self.warmup_samples, self.max_samples) <= 0:
            raise ValueError("window_size, warmup_samples and max_samples have to be above 0")
        if self.max_samples < self.window_size:
            raise ValueError("max_samples is less than window_size")


@dataclass
class ProfilingConfig:
    """`batch_sizes` may be any iterable of sizes above 0; an empty one is a ValueError."""
    batch_sizes: Iterable[int] = field(default_factory=lambda: [2 ** n for n in range(7)])
    batching: bool = True
    measuring_strategy: MeasuringStrategy | None = None
    measurement_stop_strategy: MeasurementStopStrategy | None = None
    profiling_stop_strategy: ProfilingStopStrategy | None = None

    def __post_init__(self):
        self.batch_sizes = list(self.batch_sizes)
        if not self.batch_sizes:
            raise ValueError("batch_sizes is empty")
        if any(not isinstance(size, int) or size < 1 for size in self.batch_sizes):
            raise ValueError(f"batch sizes have to be whole numbers above 0: {self.batch_sizes}")
        self.measuring_strategy = self.measuring_strategy or ModelExecutionTimeMeasuringStrategy()
        self.measurement_stop_strategy = (self.measurement_stop_strategy
                                          or NumStepsMeasuringStopStrategy())
        self.profiling_stop_strategy = (self.profiling_stop_strategy
                                        or ThroughputSaturatedStopStrategy())

    def to_json_dict(self) -> dict:
        return {"batch_sizes": self.batch_sizes, "batching": self.batching,
                **{name: type(getattr(self, name)).__name__
                   for name in ("measuring_strategy", "measurement_stop_strategy",
                                "profiling_stop_strategy")}}
