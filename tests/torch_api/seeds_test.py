# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 1800 COST 60
"""The snippets of the strategy guide, with the package's name changed and nothing else."""

import torch
import pytest

SNIPPETS = {
    "one_backend": """
from hasten.torch.backend import TensorRTBackend, TensorRTBackendConfig
import hasten.torch as ait

config = TensorRTBackendConfig()
backend = TensorRTBackend(config)
strategy = ait.OneBackendStrategy(backend=backend)
model = ait.Module(model, "my-model", strategy=strategy)
ait.tune(model, input_data)
""",
    "first_wins": """
from hasten.torch.backend import (
    TensorRTBackend,
    TensorRTBackendConfig,
    TorchInductorJitBackend,
)
import hasten.torch as ait

backends = [
    TensorRTBackend(config=TensorRTBackendConfig()),  # Best performance, but may not support all models
    TorchInductorJitBackend(),                            # Good performance, broader compatibility
]
strategy = ait.FirstWinsStrategy(backends=backends)
model = ait.Module(model, "my-model", strategy=strategy)
ait.tune(model, input_data)
""",
    "max_throughput": """
from hasten.torch.backend import (
    TensorRTBackend,
    TensorRTBackendConfig,
    TorchInductorJitBackendConfig,
    TorchInductorJitBackend,
    TorchAOBackend,
    TorchAOBackendConfig
)
import hasten.torch as ait

backends = [
    TensorRTBackend(config=TensorRTBackendConfig()),
    TorchInductorJitBackend(config=TorchInductorJitBackendConfig(mode="max-autotune")),
    TorchAOBackend(config=TorchAOBackendConfig(quantization="fp8wo")),
]
strategy = ait.MaxThroughputStrategy(
    backends=backends,
)
model = ait.Module(model, "my-model", strategy=strategy)
ait.tune(model, input_data)
""",
    "min_latency": """
from hasten.torch.backend import TensorRTBackend, TorchInductorJitBackend
from hasten.torch.task.profiling import (
    ModelExecutionTimeMeasuringStrategy,
    NumStepsMeasuringStopStrategy,
    ProfilingConfig,
)
from hasten.torch.task.profiling.profiling_stop_strategy import AllSamplesProfilingStopStrategy
import hasten.torch as ait

backends = [
    TensorRTBackend(),
    TorchInductorJitBackend(),
]

strategy = ait.MinLatencyStrategy(
    backends=backends,
    profiling_config=ProfilingConfig(
        batch_sizes=[1],
        measuring_strategy=ModelExecutionTimeMeasuringStrategy(),
        measurement_stop_strategy=NumStepsMeasuringStopStrategy(num_steps=50),
        profiling_stop_strategy=AllSamplesProfilingStopStrategy(),
    ),
)

model = ait.Module(model, "my-model", strategy=strategy)
ait.tune(model, input_data)
""",
    "latency_budget": """
from hasten.torch.backend import TensorRTBackend, TorchInductorJitBackend
import hasten.torch as ait

strategy = ait.LatencyBudgetStrategy(
    latency_budget_ms=50.0,
    backends=[
        TensorRTBackend(),
        TorchInductorJitBackend(),
    ],
)

model = ait.Module(model, "my-model", strategy=strategy)
ait.tune(model, input_data, batch_sizes=[1, 2, 4, 8, 16])
""",
}


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_of_the_guide_runs(snippet):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).eval()
    names = {"model": plain, "input_data": [torch.randn(16) for _ in range(4)]}
    x = torch.randn(3, 16)
    with torch.no_grad():
        expected = plain(x)
    exec(SNIPPETS[snippet], names)
    model = names["model"]
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    # Of TensorRT alone nothing is left on a machine without a GPU, and nobody promises that the
    # compiler gains a hundredth on two small operators: then the original goes on, and says so.
    if model.tuning_state is model.tuning_state.PASSTHROUGH:
        assert snippet in ("one_backend", "first_wins"), model.tuning_report
        assert "needs an NVIDIA GPU" in model.tuning_report["error"]
    else:
        assert snippet != "one_backend"
