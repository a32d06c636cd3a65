# SPDX-License-Identifier: Apache-2.0
"""Tune the module you have, in the program you have.

    import hasten.torch as ait
    model = ait.Module(model, "my-model", strategy=ait.MaxThroughputStrategy())
    ait.tune(model, samples, batch_sizes=[1, 2, 4, 8])
    y = model(x)
"""

from hasten.errors import HastenError, InvalidArgument
from hasten.torch import backend
from hasten.torch.config import config
from hasten.torch.inspection import InspectedModulesInfo, ModuleInfo, inspect, wrap
from hasten.torch.module import Module, State
from hasten.torch.shapes import BatchDim, DynamicDim
from hasten.torch.storage import load, save
from hasten.torch.tune_strategy import (BackendPerfResult, BackendProfilingResult, FirstWinsStrategy,
                                   LatencyBudgetStrategy, MaxThroughputStrategy,
                                   MinLatencyStrategy, OneBackendStrategy,
                                   PerformanceValidationMixin, PerformanceValidationMixinResult,
                                   PerformanceValidationMode, ProfilingTuneStrategy, TuneStrategy,
                                   fmt_speedup_msg, fmt_speedup_msg_short)
from hasten.torch.tuning import tune

__all__ = [
    "BackendPerfResult", "BackendProfilingResult", "BatchDim", "DynamicDim", "FirstWinsStrategy",
    "HastenError", "InspectedModulesInfo", "InvalidArgument", "LatencyBudgetStrategy", "MaxThroughputStrategy",
    "MinLatencyStrategy", "Module", "ModuleInfo", "OneBackendStrategy", "PerformanceValidationMixin",
    "PerformanceValidationMixinResult", "PerformanceValidationMode", "ProfilingTuneStrategy",
    "State", "TuneStrategy", "backend", "config", "fmt_speedup_msg", "fmt_speedup_msg_short",
    "inspect", "load", "save", "tune", "wrap",
]
