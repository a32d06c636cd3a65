# SPDX-License-Identifier: Apache-2.0
"""Backends whose names exist and which cannot work here; each says what it needs."""

from dataclasses import dataclass, field
from typing import Any

from hasten.errors import HastenError
from hasten.torch.backend.base import Backend, BackendConfig, BuildMode


@dataclass
class OpenConfig(BackendConfig):
    """Takes any setting: what it would mean is known to the backend when it exists."""
    settings: dict[str, Any] = field(default_factory=dict)

    def __init__(self, **settings):
        self.settings = settings

    def describe(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.settings.items())

    @classmethod
    def from_dict(cls, data):
        return cls(**data.get("settings", data))


class UnavailableBackend(Backend):
    """Fails in build(), so that a strategy goes on with the next."""
    config_class = OpenConfig
    _build_mode = BuildMode.AHEAD_OF_TIME
    needs = ""

    def _build(self, module, graph_spec, data, device, cache_dir):
        raise HastenError(f"{type(self).__name__} is unavailable: {self.needs}", "unavailable",
                          "hasten backends shows what can run here")

    def _infer(self, *args, **kwargs):
        raise AssertionError("never built")


class TensorRTBackendConfig(OpenConfig):
    pass


class TensorRTBackend(UnavailableBackend):
    config_class = TensorRTBackendConfig
    needs = "it needs an NVIDIA GPU and TensorRT"


class TorchTensorRTConfig(OpenConfig):
    pass


class TorchTensorRTAotBackend(UnavailableBackend):
    needs = "it needs an NVIDIA GPU and torch_tensorrt"


class TorchTensorRTJitBackend(UnavailableBackend):
    needs = "it needs an NVIDIA GPU and torch_tensorrt"
