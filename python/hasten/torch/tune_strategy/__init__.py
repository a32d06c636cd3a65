# SPDX-License-Identifier: Apache-2.0
"""From a graph of a module to a backend."""

from hasten.torch.tune_strategy.base import TuneStrategy
from hasten.torch.tune_strategy.builtin import (FirstWinsStrategy, LatencyBudgetStrategy,
                                           MaxThroughputStrategy, MinLatencyStrategy,
                                           OneBackendStrategy)
from hasten.torch.tune_strategy.mixin.performance_validation_mixin import (PerformanceValidationMixin,
                                               PerformanceValidationMixinResult,
                                               PerformanceValidationMode, fmt_speedup_msg,
                                               fmt_speedup_msg_short)
from hasten.torch.tune_strategy.profiling_tune_strategy import (BackendPerfResult,
                                                           BackendProfilingResult,
                                                           ProfilingTuneStrategy)

__all__ = [name for name in dir() if name[0].isupper() or name.startswith("fmt_")]
