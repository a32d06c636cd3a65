# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 900 COST 40
"""One tuned module, many threads; and a program that ends while tuned modules live."""

import subprocess
import sys
import threading

import pytest
import torch

import hasten.torch as ait
from hasten.torch.backend import ONNXRuntimeBackend, ONNXRuntimeBackendConfig

CALLERS, CALLS = 8, 50
ORT = ONNXRuntimeBackend(ONNXRuntimeBackendConfig(options={"threads": 1}))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(),
                                          torch.nn.Linear(32, 4))

    def forward(self, x, scale=1.0):
        return {"y": self.layers(x) * scale, "last": [x[:, -1]]}


@pytest.fixture(scope="module")
def model():
    strategy = ait.MaxThroughputStrategy(backends=[ORT]).enable_performance_validation(False)
    model = ait.Module(Net().eval(), "net", strategy=strategy)
    ait.tune(model, [torch.randn(8) for _ in range(4)])
    assert model.tuning_state is ait.State.TUNED
    return model


def test_eight_callers_get_their_own_answers(model):
    """Different sizes, and now and then a call that the original has to answer."""
    reference, wrong = Net().eval(), []
    before = model.unseen_calls
    start = threading.Barrier(CALLERS)

    def caller(number):
        generator = torch.Generator().manual_seed(number)
        start.wait()
        with torch.no_grad():
            for call in range(CALLS):
                x = torch.randn(number % 4 + 1, 8, generator=generator)
                arguments = {"scale": 3.0} if call % 10 == 9 else {}
                found, expected = model(x, **arguments), reference(x, **arguments)
                if not torch.allclose(found["y"], expected["y"], rtol=1e-4, atol=1e-5) or \
                        not torch.equal(found["last"][0], expected["last"][0]):
                    wrong.append((number, call))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert model.unseen_calls == before + CALLERS * CALLS // 10


@pytest.mark.parametrize("ending", ["pass", "del model", "raise SystemExit(0)",
                                    "torch.model = model; model.again = model",
                                    "threading.Thread(target=hold, daemon=True).start()"])
def test_a_program_ends_in_silence(model, ending, tmp_path):
    ait.save(model, tmp_path / "net.hasten")
    program = f"""
import threading, torch, hasten, hasten.torch as ait
model = hasten.load("net.hasten")
recording = ait.Module(torch.nn.Linear(8, 8), "recording")
recording(torch.ones(1, 8))
x = torch.ones(2, 8)
assert model(x)["y"].shape == (2, 4)
def hold(model=model):
    threading.Event().wait()
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, text=True, timeout=120,
                          capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
