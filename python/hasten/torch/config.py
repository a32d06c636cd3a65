# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole process, as `hasten.torch.config`."""

import os
from dataclasses import dataclass, field
from pathlib import Path


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
    max_num_samples_stored: int = 2  # Of each batch size and shape, per graph.
    build_timeout_s: float = 600.0   # Of one candidate.
    run_timeout_s: float = 60.0      # Of one call.


config = Config()
