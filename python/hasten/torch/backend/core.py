# SPDX-License-Identifier: Apache-2.0
"""Backends of the C++ core: built and proved in child processes, run without Python."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from hasten import _core
from hasten.errors import HastenError
from hasten.torch import tree
from hasten.torch.backend.base import Backend, BackendConfig, BuildMode


@dataclass
class CoreBackendConfig(BackendConfig):
    """`options` are those that `hasten backends` lists, for example {"threads": 1}."""
    options: dict[str, object] = field(default_factory=dict)


class CoreBackend(Backend):
    """Answers through an artifact. Its name is that of `hasten backends`."""
    config_class: type[BackendConfig] = CoreBackendConfig
    _build_mode = BuildMode.AHEAD_OF_TIME
    core_name: ClassVar[str] = ""
    artifact: Path  # From open() on.
    file: object    # What keeps the artifact's folder, if anything does.

    def settings(self) -> dict[str, object]:
        """The options of the core's backend."""
        return self.config.options

    def adopt(self, settings: dict[str, object]) -> None:
        """Takes over what the core settled on: `settings()` and more."""
        self.config.options = dict(settings)

    def check_available(self) -> None:
        """Raises HastenError, which says what is needed, when it cannot be built here at all."""

    def candidate(self) -> str:
        """NAME or NAME:key=value,..., as `--backend` takes it."""
        return label(self.core_name, self.settings())

    def explains(self, name: str, settings: dict[str, object]) -> bool:
        """May this have become the core's candidate `name` with `settings`?"""
        mine = {key: _text(value) for key, value in self.settings().items()}
        theirs = {key: _text(value) for key, value in settings.items()}
        return name == self.core_name and mine.items() <= theirs.items()

    def _build(self, module, graph_spec, data, device, cache_dir):
        raise HastenError(f"{type(self).__name__} is built by a strategy, from the recorded graph",
                          "invalid_argument", "use it in a strategy, with hasten.torch.tune")

    def open(self, artifact: Path, output: tree.Structure) -> "CoreBackend":
        """Takes over what was built: the artifact, and the structure of the answers."""
        self.session = _core.Session.load(str(artifact))
        self.artifact, self._output = Path(artifact), output
        self._state = type(self._state).ACTIVE
        return self

    def _infer(self, *args, **kwargs):
        tensors, _ = tree.flatten((args, kwargs))
        return self.infer_tensors(tensors)

    def infer_tensors(self, tensors: list):
        """The same for a call whose tensors are at hand, in the order of the graph."""
        return tree.build(self._output, self.session.run(tensors, tensors[0]))


def label(name: str, settings: dict[str, object]) -> str:
    """NAME, or NAME:key=value,...: a candidate as the core writes it."""
    words = ",".join(f"{key}={_text(value)}" for key, value in settings.items())
    return f"{name}:{words}" if words else name


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class ONNXRuntimeBackendConfig(CoreBackendConfig):
    pass


class ONNXRuntimeBackend(CoreBackend):
    """ONNX Runtime on the CPU."""
    config_class = ONNXRuntimeBackendConfig
    core_name = "onnxruntime"


class OpenVINOBackendConfig(CoreBackendConfig):
    pass


class OpenVINOBackend(CoreBackend):
    """OpenVINO on the CPU."""
    config_class = OpenVINOBackendConfig
    core_name = "openvino"

    @property
    def lossy(self) -> bool:
        return self.config.options.get("precision", "f32") != "f32"


class TorchScriptBackendConfig(CoreBackendConfig):
    pass


class TorchScriptBackend(CoreBackend):
    """TorchScript by libtorch."""
    config_class = TorchScriptBackendConfig
    core_name = "torchscript"


class TorchInductorAotBackendConfig(CoreBackendConfig):
    pass


class TorchInductorAotBackend(CoreBackend):
    """An AOTInductor package, run by libtorch."""
    config_class = TorchInductorAotBackendConfig
    core_name = "inductor"
