# SPDX-License-Identifier: Apache-2.0
"""Tunes a model, runs the artifact in new processes on inputs that the tune never saw, and compares
with what eager PyTorch says, or arithmetic done by hand."""
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

# One candidate of each backend that builds in a second; the compiled ones have tests of their own.
QUICK = ["torchscript:mode=frozen", "onnxruntime:threads=1", "openvino:hint=latency"]


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:  # As NumPy stores what it has no name for.
        return tensor.contiguous().view(torch.int16).numpy().view("V2")
    return tensor.numpy()


def from_numpy(array: np.ndarray) -> torch.Tensor:
    if array.dtype == np.dtype("V2"):
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array)


def save_npz(path: Path, inputs: dict[str, torch.Tensor]) -> Path:
    np.savez(path, **{name: to_numpy(tensor) for name, tensor in inputs.items()})
    return path


def load_npz(path: Path) -> dict[str, torch.Tensor]:
    with np.load(path) as archive:
        return {name: from_numpy(archive[name]) for name in archive.files}


def flatten(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [tensor for part in value for tensor in flatten(part)]


def assert_equal(actual: torch.Tensor, expected: torch.Tensor, what: str, rtol=1e-4, atol=1e-5):
    assert actual.dtype == expected.dtype, what
    assert tuple(actual.shape) == tuple(expected.shape), what
    exact = not (expected.is_floating_point() or expected.is_complex())
    torch.testing.assert_close(actual, expected.detach(), rtol=0 if exact else rtol,
                               atol=0 if exact else atol, equal_nan=True,
                               msg=lambda text: f"{what}: {text}")


@dataclass
class Tuned:
    """A finished tune."""
    hasten: object
    folder: Path
    report: dict
    stderr: str
    artifact: Path
    calls: int = field(default=0)

    @property
    def trials(self) -> dict[str, dict]:
        return {trial["backend"]: trial for trial in self.report["trials"]}

    def status(self, backend: str) -> str:
        return self.trials[backend]["status"]

    @property
    def warnings(self) -> str:
        return "\n".join(self.report["warnings"])

    def run(self, *calls: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
        """Each of the calls, all in one new process."""
        arguments, outputs = [], []
        for inputs in calls:
            self.calls += 1
            arguments += ["--input", save_npz(self.folder / f"fresh-{self.calls}.npz", inputs)]
        target = self.folder / f"answer-{self.calls}.npz"
        self.hasten("run", self.artifact, *arguments, "-o", target, "--quiet")
        for number in range(1, len(calls) + 1):
            suffix = f"-{number}" if len(calls) > 1 else ""
            outputs.append(load_npz(target.with_name(f"{target.stem}{suffix}.npz")))
        return outputs

    def agrees(self, eager, *calls: dict[str, torch.Tensor], **tolerance) -> None:
        """The artifact answers each call as `eager` does."""
        expected = [flatten(eager(**{k: v.clone() for k, v in call.items()})) for call in calls]
        for call, wanted, got in zip(calls, expected, self.run(*calls), strict=True):
            shapes = {name: tuple(tensor.shape) for name, tensor in call.items()}
            assert len(got) == len(wanted), f"{shapes}: {list(got)}"
            for (name, actual), value in zip(got.items(), wanted, strict=True):
                assert_equal(actual, value, f"{name} of {shapes}", **tolerance)


def tune(hasten, folder: Path, model: Path, samples=(), specs=(), backends=QUICK, options=(),
         any_backend=True) -> Tuned:
    """`any_backend`: the fastest proven candidate is taken even where the original is faster, so
    that what runs afterwards is a build of some backend and not the original."""
    arguments = []
    for number, sample in enumerate(samples):
        arguments += ["--input", save_npz(folder / f"sample-{number}.npz", sample)]
    for spec in specs:
        arguments += ["--input", spec]
    for backend in backends:
        arguments += ["--backend", backend]
    if any_backend:
        arguments.append("--no-performance-validation")
    artifact = folder / "tuned.hasten"
    # Of SPECs these are the sizes to record at; of samples, which have their own, to measure at.
    sizes = "1,2" if specs else "2"
    done = hasten("tune", model, *arguments, "--batch-sizes", sizes, "--max-time", "10m", "--json",
                  "-", "-o", artifact, *options)
    return Tuned(hasten, folder, json.loads(done.stdout), done.stderr, artifact)
