#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the tiny input archives under tests/data/npz/, which are checked in.

Usage: make_npz.py [OUT_DIR]     (needs the package numpy)
"""
import pathlib
import sys

import numpy as np

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)

ARCHIVES = {
    "x": {"x": X},
    "x_one_row": {"x": X[:1]},
    "x_five_rows": {"x": np.arange(15, dtype=np.float32).reshape(5, 3)},
    "x_fortran": {"x": np.asfortranarray(X)},
    "x_float64": {"x": X.astype(np.float64)},
    "x_four_columns": {"x": np.ones((2, 4), np.float32)},
    "x_no_axes": {"x": np.float32(1)},
    "x_of_objects": {"x": np.array([{"a": 1}], object)},
    "x_and_more": {"x": X, "weights": X},
    "y": {"y": X},
    "nothing": {},
    "image": {"image": X},
    "imgae": {"imgae": X},
    "ab": {"a": np.array([1, 2], np.float32), "b": np.array([10, 20], np.float32)},
    "only_a": {"a": np.array([1, 2], np.float32)},
}


def main(out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, arrays in ARCHIVES.items():
        np.savez(out / f"{name}.npz", **arrays)
    np.savez(out / "x_by_order.npz", X)
    np.savez(out / "ab_by_order.npz", *ARCHIVES["ab"].values())


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "npz")
