#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what people mistake for a model under tests/data/checkpoint/, which is checked in.

Usage: make_checkpoint.py [OUT_DIR]     (needs the package torch)
"""
import pathlib
import sys

import torch


def main(out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    state = torch.nn.Linear(1, 1).state_dict()
    state["weight"].fill_(2)
    state["bias"].fill_(1)
    torch.save(state, out / "checkpoint.pt")
    torch.save(state, out / "pickle.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "checkpoint")
