# SPDX-License-Identifier: Apache-2.0
"""One module on its way from its first call to a tuned one, or back to what it was."""

import contextvars
import copy
import enum
import itertools
import logging
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from hasten.torch.backend import TorchEagerBackend
from hasten.torch.jit import background
from hasten.torch.jit.config import JitMode, jit_config
from hasten.torch.module import Answer, Control, Forward, State
from hasten.torch.tuning import tune_module

logger = logging.getLogger("hasten.torch.jit")


class Stage(enum.Enum):
    INIT = "init"            # Not called yet.
    RECORDING = "recording"
    TUNING = "tuning"        # In the background; the original answers.
    TUNED = "tuned"
    EAGER = "eager"          # As it was: nothing was faster, or it could not be tuned.
    SKIPPED = "skipped"      # As it was: the settings say so.
    DETACHED = "detached"    # As it was: a tuned module has it inside.


@dataclass
class Watched:
    name: str
    level: int
    parent: "Watched | None"
    stage: Stage = Stage.INIT
    why: str = ""
    armed: bool = False  # By tune.deferred().
    children: "list[Watched]" = field(default_factory=list)
    # The module owns it: being looked at keeps no module alive.
    control_ref: Callable[[], Control | None] = lambda: None

    @property
    def control(self) -> Control | None:
        return self.control_ref()

    def move_to(self, stage: Stage, why: str = "") -> None:
        self.stage, self.why = stage, why
        history.append((time.time(), self.name, stage, why))
        logger.debug("%s: %s%s", self.name, stage.value, f", {why}" if why else "")

    def release(self, stage: Stage, why: str = "") -> None:
        """The module is again what its owner made; nothing of ours stays in it."""
        control, self.control_ref = self.control, lambda: None
        if control is not None:
            control.unwrap()
        self.move_to(stage, why)

    def below(self) -> "list[Watched]":
        return [each for child in self.children for each in (child, *child.below())]


roots: list[Watched] = []
history: list[tuple[float, str, Stage, str]] = []
_lock = threading.RLock()
_numbers: dict[str, Any] = defaultdict(itertools.count)
_running: contextvars.ContextVar[Watched | None] = contextvars.ContextVar("running", default=None)


class FirstCall(Forward):
    """Stands in for forward until the module is called for the first time."""

    def __init__(self, module: torch.nn.Module):
        super().__init__(module)
        self._module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        module = self._module()
        if module is None or _is_traced() or module.training:
            return self.original(*args, **kwargs)  # Another call will be the first.
        self.remove(module)
        answer = _watch(module)
        if answer is None:
            return self.original(*args, **kwargs)
        return answer.watched_call(args, kwargs)


class WatchedAnswer(Answer):
    """The forward of a module that is recorded, or that was tuned."""
    watched: Watched

    def __call__(self, *args, **kwargs):
        if _is_traced():
            return self.original(*args, **kwargs)
        if self.watched.stage is Stage.TUNED:
            return self.control.call(args, kwargs)
        return self.watched_call(args, kwargs)

    def watched_call(self, args: tuple, kwargs: dict):
        token = _running.set(self.watched)
        try:
            output = self.control.call(args, kwargs)
        finally:
            _running.reset(token)
        if self.watched.stage is Stage.RECORDING:
            _tune_if_ready(self.watched)
        return output


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or background.is_tuning()


def _watch(module: torch.nn.Module) -> WatchedAnswer | None:
    """None: the module is left alone, now or for good."""
    parent = _running.get()
    level = parent.level + 1 if parent else 0
    cls = type(module)
    if level >= jit_config.max_depth_level:
        return None
    if parent is not None and parent.stage in (Stage.TUNED, Stage.SKIPPED):
        return None
    with _lock:
        number = next(_numbers[f"{cls.__module__}.{cls.__qualname__}"])
        name = f"{cls.__module__}.{cls.__qualname__}" + (f".{number}" if number else "")
        watched = Watched(name, level, parent)
        (parent.children if parent else roots).append(watched)
        if cls.__name__ in jit_config.skip_modules:
            watched.move_to(Stage.SKIPPED, "named in skip_modules")
            for part in module.modules():
                if isinstance(part.forward, FirstCall):
                    part.forward.remove(part)
        elif sum(p.numel() for p in module.parameters()) <= jit_config.min_parameters:
            watched.move_to(Stage.SKIPPED, "too few parameters")
        else:
            control = Control(module, name, jit_config.strategy, None, None, "eager", WatchedAnswer)
            answer = control.stand_in
            assert isinstance(answer, WatchedAnswer)
            answer.watched = watched
            watched.control_ref = weakref.ref(control)
            watched.move_to(Stage.RECORDING)
            return answer
        return None


def _tune_if_ready(watched: Watched) -> None:
    with _lock:
        allowed = watched.parent is None or watched.parent.stage is Stage.EAGER
        control = watched.control
        if watched.stage is not Stage.RECORDING or not allowed or control is None \
                or not _has_samples(watched, control):
            return
        watched.move_to(Stage.TUNING)
        control.state = State.PASSTHROUGH  # What was recorded is enough.
    if jit_config.background:
        background.run(lambda: _tune(watched, control))
    else:
        with background.tuning():
            _tune(watched, control)


def _has_samples(watched: Watched, control: Control) -> bool:
    recording = control.recording
    if recording is None:
        return False
    if jit_config.mode is JitMode.TUNE_DEFERRED:
        return watched.armed
    if jit_config.min_samples <= 1:
        return True
    if recording.calls < jit_config.min_samples:
        return False
    return not jit_config.batch_axis_required or any(
        axis["kind"] != "static" for graph in recording.graphs()
        for spec in graph.spec["inputs"] for axis in spec["axes"])


def _tune(watched: Watched, control: Control) -> None:
    """Whatever happens, the user's calls are answered, and nobody else's thread sees it."""
    module = control.module
    try:
        if jit_config.dry_run:
            for graph in control.graphs():
                logger.info("%s, %s", watched.name, graph.describe())
            watched.release(Stage.EAGER, "dry_run")
            return
        # Exporting exchanges the weights of a module for fakes: not of the one that answers.
        shadow = copy.deepcopy(module, {id(tensor): tensor for tensor in
                                        (*module.parameters(), *module.buffers())})
        tuned = tune_module(control, jit_config.device, shadow, logger.info, background.heartbeat)
    except background.Ended:
        watched.release(Stage.EAGER, "the program ended")
        return
    except Exception as error:
        logger.debug("%s cannot be tuned", watched.name, exc_info=True)
        return _give_up(watched, f"{type(error).__name__}: {error}")
    if all(type(one.backend) is TorchEagerBackend for one in tuned):
        return _give_up(watched, "nothing is faster")
    control.set_tuned(tuned)
    watched.move_to(Stage.TUNED, ", ".join(one.backend.describe() for one in tuned))
    for each in watched.below():
        each.release(Stage.DETACHED)


def _give_up(watched: Watched, why: str) -> None:
    """Those inside it may be tuned now."""
    watched.release(Stage.EAGER, why)
    for child in watched.children:
        _tune_if_ready(child)


def everything() -> list[Watched]:
    return [each for root in roots for each in (root, *root.below())]


def forget() -> None:
    """Every module is again what its owner made."""
    with _lock:
        for watched in everything():
            if watched.control is not None:
                watched.release(Stage.EAGER, "reset")
        roots.clear()
        history.clear()
        _numbers.clear()
