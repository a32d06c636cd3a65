# SPDX-License-Identifier: Apache-2.0
"""Backends by the names of the guide."""

from hasten.torch.backend.base import Backend, BackendConfig, BackendState, BuildMode
from hasten.torch.backend.core import (CoreBackend, ONNXRuntimeBackend, ONNXRuntimeBackendConfig,
                                       OpenVINOBackend, OpenVINOBackendConfig,
                                       TorchInductorAotBackend, TorchInductorAotBackendConfig,
                                       TorchScriptBackend, TorchScriptBackendConfig)
from hasten.torch.backend.in_process import (TorchEagerBackend, TorchEagerBackendConfig,
                                             TorchInductorJitBackend,
                                             TorchInductorJitBackendConfig)
from hasten.torch.backend.quantised import TorchAOBackend, TorchAOBackendConfig
from hasten.torch.backend.unavailable import (TensorRTBackend, TensorRTBackendConfig,
                                              TorchTensorRTAotBackend, TorchTensorRTConfig,
                                              TorchTensorRTJitBackend)

__all__ = [name for name in dir() if name[0].isupper()]
