# SPDX-License-Identifier: Apache-2.0
"""Importing this turns JIT mode on."""

from hasten.torch.jit import patching

patching.install()
