# SPDX-License-Identifier: Apache-2.0
"""Importing this turns JIT mode off; what is tuned stays tuned."""

from hasten.torch.jit import patching

patching.uninstall()
