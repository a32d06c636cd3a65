# SPDX-License-Identifier: Apache-2.0
"""Strategies over a list of backends, with a list of their own where the user gave none."""

from typing import Any

from hasten.torch.backend import (Backend, ONNXRuntimeBackend, OpenVINOBackend,
                                  TorchInductorAotBackend, TorchInductorJitBackend,
                                  TorchScriptBackend)


class BackendListMixin:
    """`backends=None`: the defaults. An empty list stays empty."""

    def __init__(self, backends: list[Backend] | None = None, **kwargs: Any):
        self._workflow = kwargs.pop("workflow", "aot")
        super().__init__(**kwargs)
        self._given_backends = list(backends) if backends is not None else None

    @classmethod
    def for_aot(cls, **kwargs):
        return cls(workflow="aot", **kwargs)

    @classmethod
    def for_jit(cls, **kwargs):
        return cls(workflow="jit", **kwargs)

    @property
    def _backends(self) -> list[Backend]:
        return self._default_backends() if self._given_backends is None else self._given_backends

    def _default_backends(self) -> list[Backend]:
        return [OpenVINOBackend(), ONNXRuntimeBackend(), TorchInductorAotBackend(),
                TorchScriptBackend(), TorchInductorJitBackend()]
