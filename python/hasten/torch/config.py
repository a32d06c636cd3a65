# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole process, as `hasten.torch.config`."""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from hasten.errors import InvalidArgument


def cache_dir() -> Path:
    """HASTEN_CACHE_DIR, else $XDG_CACHE_HOME/hasten, else ~/.cache/hasten."""
    given = os.environ.get("HASTEN_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hasten"


@dataclass
class Config:
    cache_dir: Path = field(default_factory=cache_dir)  # Artifacts of tuned modules.
    max_num_samples_stored: float = 2  # Of each batch size and shape; math.inf: all.
    max_sample_bytes: float = 1 << 30  # Of one module's recording, on disk in TMPDIR.
    build_timeout_s: float = 600.0   # Of one candidate.
    run_timeout_s: float = 60.0      # Of one call.

    def __setattr__(self, name: str, value) -> None:
        if name == "max_num_samples_stored" and not (value == math.inf or (
                isinstance(value, int) and not isinstance(value, bool) and value >= 1)):
            raise InvalidArgument("max_num_samples_stored has to be a whole number above 0, or "
                                  f"math.inf, not {value!r}")
        super().__setattr__(name, value)


config = Config()
