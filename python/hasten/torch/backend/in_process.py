# SPDX-License-Identifier: Apache-2.0
"""Backends that live in the user's process: eager PyTorch and torch.compile."""

from dataclasses import dataclass
from typing import Any

import torch

from hasten.torch.backend.base import Backend, BackendConfig, BuildMode


@dataclass
class TorchEagerBackendConfig(BackendConfig):
    autocast_enabled: bool = False
    autocast_dtype: torch.dtype | None = None


class TorchEagerBackend(Backend):
    """The module as it is."""
    config_class: type[BackendConfig] = TorchEagerBackendConfig
    _build_mode = BuildMode.JUST_IN_TIME

    def _build(self, module, graph_spec, data, device, cache_dir):
        self._function = module

    def _infer(self, *args, **kwargs):
        if not self.config.autocast_enabled:
            with torch.no_grad():
                return self._function(*args, **kwargs)
        device = self.device.type if self.device else "cpu"
        with torch.no_grad(), torch.autocast(device, dtype=self.config.autocast_dtype):
            return self._function(*args, **kwargs)


MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass
class TorchInductorJitBackendConfig(BackendConfig):
    fullgraph: bool = False
    dynamic: bool | None = None  # None: True when a recorded axis varies.
    mode: str | None = None
    options: dict[str, Any] | None = None
    autocast_enabled: bool = False
    autocast_dtype: torch.dtype | None = None

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"mode has to be one of {', '.join(map(str, MODES))}, "
                             f"not {self.mode!r}")
        if self.mode is not None and self.options is not None:
            raise ValueError("mode and options exclude each other")


class TorchInductorJitBackend(TorchEagerBackend):
    """torch.compile with Inductor."""
    config_class = TorchInductorJitBackendConfig

    def _build(self, module, graph_spec, data, device, cache_dir):
        self._original, self._samples = module, list(data)
        dynamic = self.config.dynamic
        if dynamic is None and any(axis["kind"] != "static" for spec in graph_spec.spec["inputs"]
                                   for axis in spec["axes"]):
            dynamic = True
        self._dynamic = dynamic
        self._activate()

    def _activate(self):
        self._function = torch.compile(self._original, fullgraph=self.config.fullgraph,
                                       dynamic=self._dynamic, mode=self.config.mode,
                                       options=self.config.options)
        for sample in self._samples:  # Compiles now rather than in front of a user.
            self._infer(*sample.args, **sample.kwargs)

    def _deactivate(self):
        self._function = None
