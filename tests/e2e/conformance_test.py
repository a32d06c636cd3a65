# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 LABELS conformance
"""Every backend keeps the contract of hasten/plugin.h: the suite of `hasten plugin-test` over each real
plugin, with a model in the format that it takes and inputs both small and larger than what a plugin
copies for convenience."""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

DATA = Path(__file__).resolve().parents[1] / "data"
HASTEN = os.environ["HASTEN"]
PLUGINS = Path(os.environ["HASTEN_BUILD"]) / "plugins"


def check(plugin: str, *arguments) -> list[dict]:
    done = subprocess.run([HASTEN, "plugin-test", PLUGINS / plugin, *arguments, "--json", "-"],
                          capture_output=True, text=True)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    failed = [c for c in report["checks"] if not c["passed"] and not c["skipped"]]
    assert not failed and done.returncode == 0, failed
    return report["checks"]


def matrices(folder: Path, columns: int) -> list[str]:
    """Options that name samples of 1 and of 3000 rows."""
    options = []
    for rows in (1, 3000):
        values = np.linspace(-2, 2, rows * columns, dtype=np.float32).reshape(rows, columns)
        np.savez(folder / f"rows{rows}.npz", values)
        options += ["--input", str(folder / f"rows{rows}.npz")]
    return options


@pytest.mark.parametrize("plugin", ["hasten_onnxruntime.so", "hasten_openvino.so"])
def test_an_engine_for_onnx_keeps_the_contract(plugin, tmp_path):
    checks = check(plugin, "--model", DATA / "onnx/affine.onnx", *matrices(tmp_path, 3))
    assert any("transposed" in c["name"] and c["passed"] for c in checks)


class Product(torch.nn.Module):
    """Takes matrices only: a Linear would take any rank, so that a wrong one is no mistake."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4))

    def forward(self, x):
        return torch.mm(x, self.weight)


def test_torchscript_keeps_the_contract(tmp_path):
    torch.jit.trace(Product().eval(), torch.ones(2, 3)).save(tmp_path / "product.pt")
    check("hasten_torchscript.so", "--model", tmp_path / "product.pt", *matrices(tmp_path, 3))


def test_eager_pytorch_behind_the_worker_protocol_keeps_the_contract(tmp_path):
    rows = torch.export.Dim("rows", min=1, max=4096)
    program = torch.export.export(Product().eval(), (torch.ones(2, 3),),
                                  dynamic_shapes=({0: rows},))
    torch.export.save(program, tmp_path / "product.pt2")
    check("hasten_eager.json", "--model", tmp_path / "product.pt2", *matrices(tmp_path, 3))


def test_inductor_keeps_what_needs_no_model():
    """Its packages are made by a compiler, never brought by a user; tests/python runs one."""
    checks = check("hasten_inductor.so")
    assert any(c["name"] == "its description is legal" and c["passed"] for c in checks)
