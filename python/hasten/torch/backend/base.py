# SPDX-License-Identifier: Apache-2.0
"""What a backend is: a state machine around something that answers calls."""

import copy
import dataclasses
import enum
import hashlib
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import torch

from hasten.errors import HastenError


class BackendState(enum.Enum):
    INIT = "init"
    ACTIVE = "active"
    INACTIVE = "inactive"
    CHECKPOINT_LOADED = "checkpoint_loaded"
    DEPLOYED = "deployed"


class BuildMode(enum.Enum):
    AHEAD_OF_TIME = "aot"   # Made once, in a child process; needs no Python to run.
    JUST_IN_TIME = "jit"    # Lives in the process that made it.


@dataclasses.dataclass
class BackendConfig:
    """Base of the configurations. Raises ValueError for values that cannot be."""

    def changed(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)
                if getattr(self, f.name) != _default_of(f)}

    def describe(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.changed().items())

    def to_dict(self) -> dict[str, Any]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "BackendConfig":
        return cls(**data)

    def key(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self, path: Path) -> None:
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, default=str), encoding="utf-8")


def _default_of(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, (torch.dtype, enum.Enum, Path)) else value


class Backend(ABC):
    """Subclass it to bring a backend of your own: implement `_build` and `_infer`.

    INIT --build--> ACTIVE <--activate/deactivate--> INACTIVE. What is not legal in a state
    raises RuntimeError. A backend written in Python lives in the user's process.
    """

    config_class: type[BackendConfig] = BackendConfig
    config: Any  # One of config_class.
    _build_mode = BuildMode.JUST_IN_TIME

    def __init__(self, config: BackendConfig | None = None):
        self.config = config if config is not None else self.config_class()
        self._state = BackendState.INIT
        self.device: torch.device | None = None

    @property
    def state(self) -> BackendState:
        return self._state

    @property
    def is_jit(self) -> bool:
        return self._build_mode is BuildMode.JUST_IN_TIME

    @property
    def lossy(self) -> bool:
        """Do its answers differ from the original's on purpose? It is then held to the tolerance
        that the strategy's allow_lossy() states, if to any other than the usual."""
        return False

    def describe(self) -> str:
        """The class with the settings that differ from the defaults."""
        return f"{type(self).__name__}({self.config.describe()})"

    def key(self) -> str:
        return f"{type(self).__name__}_{self.config.key()}"

    def clone(self) -> Self:
        """A copy in INIT: what a user gave is a blueprint."""
        return type(self)(copy.deepcopy(self.config))

    def build(self, module: torch.nn.Module, graph_spec, data, device, cache_dir) -> "Backend":
        """Makes it ready to answer: INIT -> ACTIVE; a failure leaves it in INIT."""
        self._expect("build", BackendState.INIT)
        self.device = torch.device(device) if device is not None else None
        self._build(module, graph_spec, data, self.device, Path(cache_dir))
        self._state = BackendState.ACTIVE
        return self

    def activate(self) -> None:
        if self._state is BackendState.ACTIVE:
            return
        self._expect("activate", BackendState.INACTIVE, BackendState.CHECKPOINT_LOADED)
        self._activate()
        self._state = BackendState.ACTIVE

    def deactivate(self) -> None:
        if self._state is BackendState.INACTIVE:
            return
        self._expect("deactivate", BackendState.ACTIVE)
        self._deactivate()
        self._state = BackendState.INACTIVE

    def deploy(self, device=None) -> None:
        self._expect("deploy", BackendState.CHECKPOINT_LOADED)
        if device is None and self.device is None:
            raise ValueError("no device was given and none is stored")
        self.device = torch.device(device) if device is not None else self.device
        self._activate()
        self._state = BackendState.DEPLOYED

    def infer(self, *args, **kwargs):
        """Answers one call; legal in ACTIVE and DEPLOYED."""
        if self._state is not BackendState.ACTIVE:
            self._expect("infer", BackendState.ACTIVE, BackendState.DEPLOYED)
        return self._infer(*args, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        return {"type": type(self).__name__, "config": self.config.to_dict()}

    @abstractmethod
    def _build(self, module, graph_spec, data, device, cache_dir: Path) -> None:
        """`module` answers calls as the user's module does. `data` are the recorded samples,
        with `args` and `kwargs`."""

    @abstractmethod
    def _infer(self, *args, **kwargs): ...

    def _activate(self) -> None: ...

    def _deactivate(self) -> None: ...

    def _expect(self, action: str, *states: BackendState) -> None:
        if self._state not in states:
            raise HastenError(
                f"{type(self).__name__} cannot {action} in the state {self._state.name}; it has to "
                f"be {' or '.join(state.name for state in states)}", "invalid_argument")
