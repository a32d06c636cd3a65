# SPDX-License-Identifier: Apache-2.0
"""TorchAO: linear layers in fewer bits, compiled by AOTInductor and run without Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hasten.errors import HastenError
from hasten.torch.backend.core import CoreBackend, CoreBackendConfig
from hasten.torch.backend.in_process import MODES

# What each kind needs; nothing: it is built here.
NEEDS = {
    "int8wo": "", "int8dq": "",
    "fp8wo": "an NVIDIA GPU of compute capability 8.9 (Ada, Hopper) or newer",
    "fp8dq": "an NVIDIA GPU of compute capability 8.9 (Ada, Hopper) or newer",
    "mxfp8dq": "an NVIDIA GPU of compute capability 10.0 (Blackwell) or newer",
    "nvfp4dq": "an NVIDIA GPU of compute capability 10.0 (Blackwell) or newer",
}


@dataclass
class TorchAOBackendConfig(CoreBackendConfig):
    """`quantization` names the kind: int8wo (weights), int8dq (weights, and activations as they
    come), fp8wo, fp8dq, mxfp8dq, nvfp4dq. Or `quantization_config` is one of TorchAO's own;
    exactly one of the two. `options` are those of `inductor` in `hasten backends`."""
    quantization: str | None = None
    quantization_config: Any = None
    filter_fn: Callable | None = None
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = "max-autotune"

    def __post_init__(self):
        if (self.quantization is None) == (self.quantization_config is None):
            raise ValueError("exactly one of quantization and quantization_config is needed")
        if self.quantization is not None and self.quantization not in NEEDS:
            raise ValueError(f"quantization has to be one of {', '.join(NEEDS)}, not "
                             f"{self.quantization!r}")
        if self.mode not in MODES:
            raise ValueError(f"mode has to be one of {', '.join(map(str, MODES))}, "
                             f"not {self.mode!r}")
        if not isinstance(self.fullgraph, bool) or self.dynamic not in (None, True, False):
            raise ValueError("fullgraph has to be a bool, dynamic a bool or None")
        if self.filter_fn is not None and not callable(self.filter_fn):
            raise ValueError("filter_fn has to be a function of a module and its name")


class TorchAOBackend(CoreBackend):
    """Counts only where the strategy's allow_lossy() states a tolerance that it meets."""
    config_class = TorchAOBackendConfig
    core_name = "inductor"

    def __init__(self, config: TorchAOBackendConfig | None = None):
        super().__init__(config or TorchAOBackendConfig(quantization="int8wo"))

    @property
    def lossy(self) -> bool:
        return True

    def settings(self) -> dict[str, object]:
        tuned = {"max_autotune": True} if "autotune" in (self.config.mode or "") else {}
        return {**self.config.options, **tuned, "quantization": self.config.quantization}

    def adopt(self, settings: dict[str, object]) -> None:
        mine = {**self.settings(), **settings}
        self.config.options = {key: value for key, value in mine.items()
                               if key not in ("max_autotune", "quantization")}

    def check_available(self) -> None:
        if self.config.quantization is None or self.config.filter_fn is not None:
            which = "filter_fn" if self.config.filter_fn is not None else "quantization_config"
            raise HastenError(f"{type(self).__name__}: {which} is a Python object, and the program "
                              "is quantised in a child process", "unsupported",
                              "name the kind: quantization=\"int8wo\" or \"int8dq\"")
        need = NEEDS[self.config.quantization]
        if need:
            raise HastenError(f"{type(self).__name__} is unavailable: {self.config.quantization} "
                              f"needs {need}", "unavailable", "int8wo and int8dq run on a CPU")
