# SPDX-License-Identifier: Apache-2.0
"""Which modules are looked at: those that are created while JIT mode is on."""

import functools

import torch

from hasten.torch.jit import background
from hasten.torch.jit.config import jit_config
from hasten.torch.jit.watched import FirstCall

# What compilers create for themselves, and what is called by nobody.
_EXCLUDED = ("torch.jit", "torch._inductor", "torch._dynamo", "torch.fx", "torch.export",
             "torch_tensorrt", "hasten")
_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential,
               torch.nn.ParameterList, torch.nn.ParameterDict)

_original_init = None


def install() -> None:
    """Modules that exist already stay as they are. A second time does nothing."""
    global _original_init
    if _original_init is not None:
        return
    _original_init = original = torch.nn.Module.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        # A class that calls it twice, or a module that has a forward of its own, is left alone.
        if not background.is_tuning() and "forward" not in self.__dict__ and not _excluded(type(self)):
            FirstCall(self)
    torch.nn.Module.__init__ = init  # type: ignore[method-assign]


def uninstall() -> None:
    """New modules are left alone; those that are tuned stay so until reset()."""
    global _original_init
    if _original_init is not None:
        torch.nn.Module.__init__ = _original_init  # type: ignore[method-assign]
        _original_init = None


def _excluded(cls: type) -> bool:
    if cls in _CONTAINERS:
        return True
    full_name = f"{cls.__module__}.{cls.__qualname__}"
    return any(full_name == name or full_name.startswith(f"{name}.")
               for name in (*_EXCLUDED, *jit_config.patch_exclude))
