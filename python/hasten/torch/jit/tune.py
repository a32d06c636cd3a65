# SPDX-License-Identifier: Apache-2.0
"""For JitMode.TUNE_DEFERRED: says when."""

from hasten.errors import InvalidArgument
from hasten.torch.jit import watched
from hasten.torch.jit.config import JitMode, jit_config


def deferred() -> None:
    """Every module that has been recorded so far is tuned at its next call.

    Raises InvalidArgument in another mode.
    """
    if jit_config.mode is not JitMode.TUNE_DEFERRED:
        raise InvalidArgument("tune.deferred() is for jit_config.mode = JitMode.TUNE_DEFERRED")
    for each in watched.everything():
        each.armed = True
