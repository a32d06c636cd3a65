# SPDX-License-Identifier: Apache-2.0
"""The `hasten` command of an installed package: the program itself lies beside this file."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = str(Path(__file__).parent / "hasten")
    os.environ.setdefault("HASTEN_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])
