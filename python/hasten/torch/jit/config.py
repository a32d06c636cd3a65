# SPDX-License-Identifier: Apache-2.0
"""Settings of the JIT mode, as `hasten.torch.jit.jit_config`. Read at each first call."""

import enum
from dataclasses import dataclass, field, fields
from typing import Any


class JitMode(enum.Enum):
    TUNE_EAGER = "tune_eager"        # As soon as there are samples enough.
    TUNE_DEFERRED = "tune_deferred"  # When hasten.torch.jit.tune.deferred() says so.


@dataclass
class JitConfig:
    mode: JitMode = JitMode.TUNE_EAGER
    strategy: Any = None               # None: MaxThroughputStrategy().
    device: Any = None                 # None: that of the module's weights.
    min_samples: int = 1               # Calls to record before a module is tuned.
    batch_axis_required: bool = True   # And until an axis has varied; not asked of one sample.
    max_depth_level: int = 1           # 1: modules that no other module calls.
    min_parameters: int = 0            # Modules with no more than these stay as they are.
    skip_modules: list[str] = field(default_factory=list)  # Names of classes; nor their children.
    patch_exclude: tuple[str, ...] = ()  # Packages, or classes by full name, never looked at.
    background: bool = True            # False: the call that completes the samples waits.
    dry_run: bool = False              # Graphs are described in the log, nothing is built.

    def reset_to_defaults(self) -> None:
        for setting in fields(self):
            setattr(self, setting.name, getattr(_DEFAULTS, setting.name))
        self.skip_modules = []


_DEFAULTS = JitConfig()
jit_config = JitConfig()
