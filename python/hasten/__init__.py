# SPDX-License-Identifier: Apache-2.0
"""The parts of hasten that need Python. Importing this package imports no framework."""

__version__ = "0.1.0"
