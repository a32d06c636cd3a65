# SPDX-License-Identifier: Apache-2.0
"""A module that can be tuned: a proxy that stands for the user's, and answers faster."""

import contextlib
import contextvars
import copy
import enum
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from hasten.errors import HastenError, InvalidArgument
from hasten.torch import tree
from hasten.torch.backend import Backend, CoreBackend
from hasten.torch.call import Signature, describe
from hasten.torch.config import config
from hasten.torch.recording import Graph, Recording, key_of
from hasten.torch.shapes import DeclaredShapes

logger = logging.getLogger("hasten.torch")


@dataclass
class RecordingPass:
    """While tune() calls the user's function: every wrapped module that is called records."""
    batch_size: int | None = None
    called: "list[Control]" = field(default_factory=list)


_pass: contextvars.ContextVar[RecordingPass | None] = contextvars.ContextVar("pass", default=None)
_passes = 0  # That go on in any thread: a tuned call pays for no look at the context.


@contextlib.contextmanager
def recording_pass() -> Iterator[RecordingPass]:
    global _passes
    now = RecordingPass()
    token = _pass.set(now)
    _passes += 1
    try:
        yield now
    finally:
        _passes -= 1
        _pass.reset(token)


class State(enum.Enum):
    INIT = "init"
    RECORDING = "recording"
    PASSTHROUGH = "passthrough"
    TUNED = "tuned"


class Forward:
    """Stands in for the forward of a module, which stays what it was for everybody else: a copy
    or a pickle of the module has the original again."""

    def __init__(self, module: torch.nn.Module):
        self.original = module.forward
        self._own = module.__dict__.get("forward")  # Of this instance alone.
        functools.update_wrapper(self, self.original)  # type: ignore[arg-type]
        module.__dict__["forward"] = self

    def remove(self, module: torch.nn.Module) -> None:
        if self._own is not None:
            module.__dict__["forward"] = self._own
        elif module.__dict__.get("forward") is self:
            del module.__dict__["forward"]

    def __getattr__(self, name: str):
        if name == "original":  # Not there yet: nobody to ask.
            raise AttributeError(name)
        return getattr(self.original, name)  # __code__, __self__: exporters look at them.

    def __deepcopy__(self, memo):
        return copy.deepcopy(self.original, memo)

    def __reduce__(self):
        return _same, (self.original,)


def _same(value: Any) -> Any:
    return value


class Answer(Forward):
    """The forward of a wrapped module."""

    def __init__(self, module: torch.nn.Module, control: "Control"):
        super().__init__(module)
        self.control = control

    def __call__(self, *args, **kwargs):
        return self.control.call(args, kwargs)


@dataclass
class TunedGraph:
    graph: Graph
    backend: Backend


class Control:
    """Everything about a wrapped module that is not the module."""

    def __init__(self, module: torch.nn.Module, name: str, strategy, strategies, declared,
                 unseen: str, stand_in: type[Answer] = Answer):
        self.module, self.name = module, name
        self.strategy, self.strategies = strategy, strategies
        self.declared, self.unseen = declared, unseen
        self.stand_in = stand_in(module, self)
        self.forward = self.stand_in.original  # As the user wrote it.
        self.signature = Signature.of(self.forward)
        self.state = State.INIT
        self.recording: Recording | None = None
        self.tuned: dict[Any, TunedGraph] = {}
        self.unseen_calls = 0
        self.report: dict = {}
        self._lock = threading.RLock()
        self._training = module.training
        # By number of positional tensors: the usual call, answered without looking closer.
        self._quick: dict[int, CoreBackend] = {}

    # -- Calls.

    def call(self, args: tuple, kwargs: dict):
        now = _pass.get() if _passes else None
        if now is not None:
            return self._recorded_call(args, kwargs, now)
        if self.state is State.TUNED:
            return self._tuned_call(args, kwargs)
        if self.state is State.PASSTHROUGH:
            return self.forward(*args, **kwargs)
        return self._recorded_call(args, kwargs, None)

    def _recorded_call(self, args: tuple, kwargs: dict, now: RecordingPass | None):
        with self._lock:
            if now is not None and self not in now.called:
                # A tuned module stays tuned until there is something better.
                if self.state is State.TUNED:
                    self.recording = None
                now.called.append(self)
            if self.recording is None:
                self.recording = Recording(self.signature, self.declared,
                                           config.max_num_samples_stored,
                                           config.max_sample_bytes)
                self._training = self.module.training
            if self.state is not State.TUNED:
                self.state = State.RECORDING
            recording = self.recording
            call = recording.copy_of(args, kwargs)
        output = self.forward(*args, **kwargs)
        if call is None:
            return output
        with self._lock:
            recording.keep(call, now.batch_size if now else None, output)
        return output

    def _tuned_call(self, args: tuple, kwargs: dict):
        if not kwargs:
            backend = self._quick.get(len(args))
            if backend is not None and self._as_tuned(args):
                try:
                    return backend.infer_tensors(list(args))
                except (TypeError, HastenError):
                    pass  # Something unusual: the long way finds out what.
        return self._careful_call(args, kwargs)

    def _as_tuned(self, tensors) -> bool:
        """Is eager's answer nothing but values, in the mode that was recorded?"""
        if self.module.training is not self._training or torch.is_autocast_enabled("cpu"):
            return False
        return not torch.is_grad_enabled() or not any(
            getattr(tensor, "requires_grad", False) for tensor in tensors)

    def _careful_call(self, args: tuple, kwargs: dict):
        call = self.signature.normalise(args, kwargs)
        tuned = self.tuned.get(key_of(call.structure, call.tensors))
        if tuned is None:
            return self._unseen(args, kwargs, describe(call.structure))
        if not self._as_tuned(call.tensors):
            return self.forward(*args, **kwargs)
        if not isinstance(tuned.backend, CoreBackend):
            return tuned.backend.infer(*args, **kwargs)
        try:
            return tuned.backend.infer_tensors([tensor.detach() for tensor in call.tensors])
        except HastenError as error:
            if error.code != "invalid_argument":
                raise
            return self._unseen(args, kwargs, error.message)

    def _unseen(self, args: tuple, kwargs: dict, what: str):
        """A call that nothing was proved for is the original's to answer."""
        if self.unseen == "raise":
            raise InvalidArgument(f"module '{self.name}' was not tuned for this call: {what}",
                                  hint="tune it with such a call among the samples, or wrap it "
                                       "with unseen=\"eager\"")
        self.unseen_calls += 1
        if self.unseen_calls == 1:
            logger.warning("module '%s' was not tuned for this call, so the original answers "
                           "(said once): %s", self.name, what)
        return self.forward(*args, **kwargs)

    # -- States.

    def graphs(self) -> list[Graph]:
        return self.recording.graphs() if self.recording else []

    def start_recording(self, force: bool = False) -> None:
        with self._lock:
            self._untune(force, "enable_recording")
            self.state = State.RECORDING

    def pass_through(self, force: bool = False) -> None:
        with self._lock:
            self._untune(force, "enable_passthrough")
            self.state = State.PASSTHROUGH

    def _untune(self, force: bool, request: str) -> None:
        """What was recorded and tuned is forgotten, if anything was and `force` says so."""
        if self.state is not State.TUNED:
            return
        if not force:
            raise HastenError(f"module '{self.name}' is tuned", "invalid_argument",
                              f"{request}(force=True) discards what was tuned")
        self.tuned, self._quick, self.recording = {}, {}, None

    def set_tuned(self, tuned: list[TunedGraph]) -> None:
        with self._lock:
            self.tuned, self._quick = {}, {}
            for one in tuned:
                self.tuned[one.graph.key] = one
                self._learn_quick(one)
            self.state = State.TUNED

    def _learn_quick(self, one: TunedGraph) -> None:
        count = _only_positional_tensors(self.signature, one.graph.structure)
        if count is None or not isinstance(one.backend, CoreBackend):
            return
        # Two graphs of as many tensors (other dtypes) take the careful way.
        if count in self._quick:
            del self._quick[count]
        else:
            self._quick[count] = one.backend

    def unwrap(self) -> torch.nn.Module:
        """The module as it was before it was wrapped."""
        self.stand_in.remove(self.module)
        return self.module


def _only_positional_tensors(signature: Signature, structure: tree.Structure) -> int | None:
    """The number of tensors of a call that is nothing but positional tensors."""
    if not isinstance(structure, tree.Node) or \
            not all(isinstance(child, tree.Leaf) for child in structure.children):
        return None
    names = list(signature.signature.parameters)[:len(structure.keys)]
    return len(names) if tuple(names) == structure.keys else None


class Module:
    """Stands for `module` wherever that was used, and can be tuned.

    It is an instance of the module's own class to isinstance(); attributes, state_dict(), .to(),
    hooks and iteration are the module's. `name` is for reports (default: the name of the class); `dynamic_shapes` declares axes, path -> tuple of int,
    DynamicDim and BatchDim; `unseen` says who answers a call that was never recorded: "eager"
    (default, with one warning) or "raise".
    """

    __slots__ = ("_hasten", "__weakref__")

    def __init__(self, module: torch.nn.Module, name: str | None = None, strategy=None,
                 strategies=None, dynamic_shapes: dict | None = None, unseen: str = "eager"):
        if not isinstance(module, torch.nn.Module) or isinstance(module, Module):
            raise InvalidArgument(f"a torch.nn.Module expected, not a {type(module).__name__}")
        if strategy is not None and strategies is not None:
            raise InvalidArgument("strategy and strategies exclude each other")
        if strategies is not None and not isinstance(strategies, (list, dict)):
            raise InvalidArgument("strategies has to be a list (one per graph) or a dictionary")
        if unseen not in ("eager", "raise"):
            raise InvalidArgument(f'unseen has to be "eager" or "raise", not {unseen!r}')
        cls = type(module)
        name = (name or f"{cls.__module__}.{cls.__qualname__}").replace("/", "_")
        declared = DeclaredShapes(dynamic_shapes) if dynamic_shapes is not None else None
        control = Control(module, name, strategy, strategies, declared, unseen)
        object.__setattr__(self, "_hasten", control)

    # -- What a user may ask of a wrapped module.

    def enable_recording(self, force: bool = False) -> None:
        self._hasten.start_recording(force)

    def enable_passthrough(self, force: bool = False) -> None:
        self._hasten.pass_through(force)

    @property
    def tuning_state(self) -> State:
        return self._hasten.state

    @property
    def tuning_report(self) -> dict:
        """What the last tune found: one entry per graph; empty before."""
        return self._hasten.report

    @property
    def unseen_calls(self) -> int:
        """Calls that the original answered because nothing was tuned for them."""
        return self._hasten.unseen_calls

    @property
    def graph_specs(self) -> list[Graph]:
        recording = self._hasten.recording
        if recording is None:
            raise ValueError(f"module '{self._hasten.name}' has no recording")
        return recording.graphs()

    # -- Being the module.

    @property  # type: ignore[misc]
    def __class__(self):
        return type(self._hasten.module)

    def __call__(self, *args, **kwargs):
        return self._hasten.module(*args, **kwargs)

    def __getattr__(self, name: str):
        return getattr(object.__getattribute__(self, "_hasten").module, name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._hasten.module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._hasten.module, name)

    def __dir__(self):
        return sorted({*dir(self._hasten.module), *Module.__dict__})

    def __repr__(self) -> str:
        return f"{self._hasten.state.name.lower()}: {self._hasten.module!r}"

    def __getitem__(self, key):
        return self._hasten.module[key]

    def __len__(self) -> int:
        return len(self._hasten.module)

    def __bool__(self) -> bool:
        return True

    def __iter__(self):
        return iter(self._hasten.module)

    def to(self, *args, **kwargs) -> "Module":
        self._hasten.module.to(*args, **kwargs)
        return self

    def eval(self) -> "Module":
        self._hasten.module.eval()
        return self

    def train(self, mode: bool = True) -> "Module":
        self._hasten.module.train(mode)
        return self

    def __deepcopy__(self, memo) -> "Module":
        """A copy that is not tuned, of the module as it was."""
        control = self._hasten
        return _wrap_again(copy.deepcopy(control.module, memo), control.name, copy.deepcopy(control.strategy, memo), control.unseen)

    def __reduce_ex__(self, protocol):
        control = self._hasten
        return _wrap_again, (control.module, control.name, control.strategy, control.unseen)


def _wrap_again(module: torch.nn.Module, name: str, strategy, unseen: str) -> Module:
    return Module(module, f"{name}-copy", strategy, unseen=unseen)


def original_forward(module: torch.nn.Module) -> Callable:
    """The forward as the user wrote it, whether something stands in for it or not."""
    forward = module.forward
    return forward.original if isinstance(forward, Forward) else forward


def control_of(module: Any) -> Control | None:
    return module._hasten if type(module) is Module else None
