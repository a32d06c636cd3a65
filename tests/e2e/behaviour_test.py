# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 LABELS e2e COST 60
"""Models that do more than compute: random ones, ones that branch on values, keep state, write
their inputs or were saved for training. The user is told, and the artifact does what eager does."""
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from e2e.support import QUICK, tune

torch.manual_seed(0)
DATA = Path(__file__).resolve().parents[1] / "data"


def script(folder, module, name="model.pt"):
    path = folder / name
    torch.jit.script(module).save(str(path))
    return path


class Block(nn.Module):
    def __init__(self, track=True):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=track),
                                    nn.Dropout(0.5))
        if track:
            self.layers[1].running_mean.uniform_(-1, 1)
            self.layers[1].running_var.uniform_(0.5, 2)

    def forward(self, x: Tensor):
        return self.layers(x)


@pytest.mark.parametrize("track", [True, False])
def test_a_batch_norm_keeps_the_statistics_that_it_was_saved_with(hasten, tmp_path, track):
    block = Block(track).eval()
    tuned = tune(hasten, tmp_path, script(tmp_path, block),
                 [{"x": torch.randn(n, 3, 6, 6)} for n in (1, 2)])
    assert tuned.status("torchscript") == "ok"
    tuned.agrees(block, {"x": torch.randn(5, 3, 6, 6)})


def test_a_model_saved_for_training_is_refused_with_the_remedy(hasten, tmp_path):
    model = script(tmp_path, Block().train())
    done = hasten("tune", model, "--input", "x=float32[B,3,6,6]", status=None)
    assert done.returncode in (1, 2), done.stderr
    assert "training" in done.stderr and "eval()" in done.stderr


class Noise(nn.Module):
    def forward(self, x: Tensor):
        return x + torch.rand_like(x)


class AlwaysDrops(nn.Module):
    def forward(self, x: Tensor):
        return F.dropout(x, 0.5, True)


@pytest.mark.parametrize("model", [Noise, AlwaysDrops])
def test_a_random_model_is_kept_as_it_is_and_that_is_said(hasten, tmp_path, model):
    tuned = tune(hasten, tmp_path, script(tmp_path, model().eval()),
                 [{"x": torch.ones(n, 50)} for n in (1, 2)], any_backend=False)
    assert tuned.report["winner"]["fell_back"]
    assert "random" in tuned.warnings and "random" in tuned.stderr
    x = torch.ones(4, 50)
    first, second = (list(answer.values())[0] for answer in tuned.run({"x": x}, {"x": x}))
    assert not torch.equal(first, second)


def test_a_model_with_state_is_kept_as_it_is_and_that_is_said(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, DATA / "torchscript" / "state.pt",
                 [{"x": torch.ones(n, 2)} for n in (1, 2)], any_backend=False)
    assert tuned.report["winner"]["fell_back"]
    assert "state" in tuned.warnings


class Branch(nn.Module):
    def forward(self, x: Tensor):
        if float(x.sum()) > 0:
            return x * 2
        return x - 1


def test_a_branch_on_values_is_taken_at_each_call(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, script(tmp_path, Branch().eval()),
                 [{"x": torch.rand(n, 3)} for n in (1, 2)])
    assert tuned.status("torchscript") == "ok"
    tuned.agrees(Branch(), {"x": torch.rand(3, 3)}, {"x": -torch.rand(3, 3)})


def test_a_branch_of_an_onnx_model_is_taken_at_each_call(hasten, tmp_path):
    tuned = tune(hasten, tmp_path, DATA / "onnx" / "branch.onnx",
                 [{"x": torch.rand(n)} for n in (2, 3)], backends=QUICK[1:])
    tuned.agrees(Branch(), {"x": torch.rand(4)}, {"x": -torch.rand(4)})


def test_an_input_that_the_model_writes_is_fresh_at_every_call(hasten, tmp_path):
    class Doubles(nn.Module):
        def forward(self, x: Tensor):
            x.mul_(2)
            return x + 1
    tuned = tune(hasten, tmp_path, script(tmp_path, Doubles().eval()),
                 [{"x": torch.ones(n, 2)} for n in (1, 2)], any_backend=False)
    assert "writes into its input 'x'" in tuned.warnings
    tuned.agrees(Doubles(), {"x": torch.ones(3, 2)}, {"x": torch.ones(3, 2)})
    # Had the samples been measured in place they would be infinite by now.
    proved = hasten("verify", tuned.artifact).stdout
    assert "verified" in proved and "DIFFERS" not in proved
