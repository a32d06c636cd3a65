# SPDX-License-Identifier: Apache-2.0
"""Recorded calls on disk: a module that records for hours takes no memory for it."""

import logging
import math
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

import torch

from hasten.errors import HastenError
from hasten.torch import tree
from hasten.torch.call import Call, Signature

logger = logging.getLogger("hasten.torch")


@dataclass(frozen=True)
class Sample:
    """One recorded call: as it was before the module ran, and what that answered. Its tensors
    are read anew whenever they are asked for, so whoever gets them may write to them."""
    store: "SampleStore"
    path: Path
    signature: Signature
    structure: tree.Structure
    output: tree.Structure
    batch_size: int | None
    shapes: tuple

    @property
    def args(self) -> tuple:
        return self._arguments()[0]

    @property
    def kwargs(self) -> dict:
        return self._arguments()[1]

    @property
    def tensors(self) -> list[torch.Tensor]:
        return self.store.read(self.path)[0]

    @property
    def output_tensors(self) -> list[torch.Tensor]:
        return self.store.read(self.path)[1]

    def _arguments(self) -> tuple[tuple, dict]:
        return self.signature.arguments(Call(self.tensors, self.structure))


class SampleStore:
    """The files of one recording, gone with the last sample that stands for one of them."""

    def __init__(self, most_bytes: float):
        self._most_bytes = most_bytes
        self._bytes = 0
        self._count = 0
        self._folder: Path | None = None
        self._told = False

    def write(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], needed: bool
              ) -> Path | None:
        """The file that has them; None where there is no room. What is `needed`, the first call
        of a graph, may be larger than the limit, but not than the disk."""
        size = sum(tensor.nbytes for tensor in (*inputs, *outputs))
        if self._bytes + size > self._most_bytes and not needed:
            self._tell(f"the recorded calls have {self._bytes >> 20} MiB, the limit is "
                       f"{math.floor(self._most_bytes) >> 20} MiB (config.max_sample_bytes)")
            return None
        try:
            path = self._home() / f"sample-{self._count:05}.pt"
            torch.save([inputs, outputs], path)
        except (OSError, RuntimeError) as error:  # torch's own writer: RuntimeError.
            self._tell(f"no file can be written in TMPDIR: {error}")
            return None
        self._bytes += size
        self._count += 1
        return path

    def read(self, path: Path) -> list[list[torch.Tensor]]:
        try:
            # A file of our own, in a folder of our own, of tensors of any class. Mapped, and
            # what is written to stays private: pages that nobody looks at take no memory.
            return torch.load(path, weights_only=False, mmap=True)
        except OSError as error:
            raise HastenError(f"{path}: a recorded call is gone: {error.strerror or error}", "io",
                              "record it again") from None

    def _home(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="hasten-samples-"))
            weakref.finalize(self, shutil.rmtree, self._folder, True)
        return self._folder

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            logger.warning("further calls are recorded by their shapes only (said once): %s", why)
