# SPDX-License-Identifier: Apache-2.0
"""The parts of hasten that need Python. Importing this package imports no framework."""

import pkgutil

# A build folder on the path holds the compiled part, hasten/_core, and nothing else.
__path__ = pkgutil.extend_path(__path__, __name__)
__version__ = "0.1.0"


def load(path):
    """A module saved by hasten.torch.save(), without its class: callable, needs PyTorch."""
    from hasten.torch.storage import open_without_class
    return open_without_class(path)
