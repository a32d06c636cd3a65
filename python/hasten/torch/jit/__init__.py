# SPDX-License-Identifier: Apache-2.0
"""JIT mode: no line of a program changes but one, and its modules are tuned at their first calls.

    import hasten.torch.jit.enable

From then on every module that is created is recorded when it is called for inference, and tuned
in the background while the original goes on answering. One that cannot be tuned, or that nothing
makes faster, is left as it was. `jit_config` has the settings; they are read when a module is
called. What was tuned is not saved.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator

from hasten.torch.jit import background, patching, watched
from hasten.torch.jit.config import JitConfig, JitMode, jit_config
from hasten.torch.jit.watched import Stage

__all__ = ["JitConfig", "JitMode", "Stage", "hierarchy", "history", "jit_config", "jit_reset",
           "patch_for_jit_tuning", "prepare_for_jit_tuning", "print_hierarchy", "print_history",
           "wait"]


@contextlib.contextmanager
def prepare_for_jit_tuning() -> Iterator[None]:
    """JIT mode for the modules that are created inside the block."""
    was_on = patching._original_init is not None
    patching.install()
    try:
        yield
    finally:
        if not was_on:
            patching.uninstall()


def patch_for_jit_tuning(function: Callable) -> Callable:
    """The same for a function that creates modules."""
    @functools.wraps(function)
    def patched(*args, **kwargs):
        with prepare_for_jit_tuning():
            return function(*args, **kwargs)
    return patched


def wait() -> None:
    """Until every module whose tune has begun is tuned or left alone."""
    background.wait()


def jit_reset() -> None:
    """Waits, then takes every module back to what it was and the settings to their defaults."""
    background.wait()
    watched.forget()
    jit_config.reset_to_defaults()


def hierarchy() -> str:
    """A line for each module that was looked at: its stage, its name, and why."""
    return "\n".join(f"{'  ' * each.level}{each.stage.value}: {each.name}"
                     + (f" ({each.why})" if each.why else "") for each in watched.everything())


def history() -> str:
    """A line for each change of a stage; seconds since the first."""
    if not watched.history:
        return ""
    begin = watched.history[0][0]
    return "\n".join(f"{when - begin:8.2f} s  {stage.value}: {name}" + (f" ({why})" if why else "")
                     for when, name, stage, why in watched.history)


def print_hierarchy() -> None:
    print(hierarchy())


def print_history() -> None:
    print(history())
