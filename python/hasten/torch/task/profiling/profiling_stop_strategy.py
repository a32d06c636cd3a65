# SPDX-License-Identifier: Apache-2.0
"""When a sweep over batch sizes ends."""

from dataclasses import dataclass


class ProfilingStopStrategy:
    """Base."""


class AllSamplesProfilingStopStrategy(ProfilingStopStrategy):
    """Every size is measured."""


@dataclass
class ThroughputSaturatedStopStrategy(ProfilingStopStrategy):
    """Larger sizes are left out once throughput stops to rise."""
    min_throughput_gain_ratio: float = 0.05
    throughput_backoff_limit: int = 2

    def __post_init__(self):
        if not 0 <= self.min_throughput_gain_ratio <= 1:
            raise ValueError("min_throughput_gain_ratio has to be between 0 and 1")
        if self.throughput_backoff_limit < 0:
            raise ValueError("throughput_backoff_limit cannot be below 0")
