# SPDX-License-Identifier: Apache-2.0
"""What every compiler shares: the request, its samples, and one way to answer."""

import json
import os
import re
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import torch

from hasten.flat import UnsupportedModel


class CompileError(Exception):
    """A failure with a code of the worker protocol. The texts are for the user."""

    def __init__(self, code: str, message: str, hint: str = ""):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass
class Request:
    model: Path
    format: str
    graph: dict
    samples: Path | None
    options: dict
    output_dir: Path
    steps: list = field(default_factory=list)  # What was tried, for the report.

    def option(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        value = str(self.options.get(name, default)) or default
        if value not in choices:
            raise CompileError("invalid_argument",
                               f"option '{name}' wants one of {', '.join(choices)}, not '{value}'")
        return value

    def flag(self, name: str) -> bool:
        return self.option(name, "false", ("true", "false")) == "true"

    def attempt(self, step: str, action: Callable):
        """Runs one step and keeps how it went; the exception goes on."""
        start = time.monotonic()
        entry = {"step": step, "ok": False}
        self.steps.append(entry)
        try:
            result = action()
        except Exception as error:
            entry["reason"] = first_lines(error)
            traceback.print_exc()  # stderr is the compiler's log.
            raise
        finally:
            entry["seconds"] = round(time.monotonic() - start, 3)
        entry["ok"] = True
        return result

    def read_samples(self) -> list[list[torch.Tensor]]:
        """The recorded calls, inputs in the order of the graph."""
        files = sorted(self.samples.glob("sample-*.npz") if self.samples else [],
                       key=lambda path: int(path.stem.split("-")[1]))
        if not files:
            raise CompileError("invalid_argument", "sample inputs are needed, none were recorded")
        return [self._read_sample(path) for path in files]

    def _read_sample(self, path: Path) -> list[torch.Tensor]:
        with np.load(path, allow_pickle=False) as archive:
            arrays = [archive[f"arr_{i}"] for i in range(len(archive.files))]
        specs = self.graph.get("inputs") or [{}] * len(arrays)
        if len(specs) != len(arrays):
            raise CompileError("invalid_argument", f"{path.name} has {len(arrays)} arrays, but the "
                                                   f"graph has {len(specs)} inputs")
        return [to_tensor(array, spec.get("dtype", "")) for array, spec in zip(arrays, specs)]


def to_tensor(array: np.ndarray, dtype: str) -> torch.Tensor:
    """Writable and compact. bfloat16, which NumPy does not know, is stored as two raw bytes."""
    array = np.array(array, copy=True, order="C")
    if dtype == "bfloat16" or array.dtype.kind == "V":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def first_lines(error: BaseException, limit: int = 400) -> str:
    """The sentence of an exception, without the pages that torch puts around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    text = " ".join(lines[:3]) or type(error).__name__
    return f"{type(error).__name__}: {text}"[:limit]


def reasons(steps: list) -> str:
    return "; ".join(f"{step['step']}: {step['reason']}" for step in steps if not step["ok"])


def main(compile_model: Callable[[Request], dict]) -> int:
    """Answers the request named on the command line; the exit code is 0 for every answer."""
    request = read_request(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    request.output_dir.mkdir(parents=True, exist_ok=True)
    result = answer(compile_model, request)
    # Renamed when complete: a reader never sees half an answer.
    partial = request.output_dir / "result.json.partial"
    partial.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    os.replace(partial, request.output_dir / "result.json")
    return 0


def read_request(raw: dict) -> Request:
    return Request(Path(raw["model"]), raw["format"], raw.get("graph") or {},
                   Path(raw["samples"]) if raw.get("samples") else None,
                   raw.get("options") or {}, Path(raw["output_dir"]))


def answer(compile_model: Callable[[Request], dict], request: Request) -> dict:
    def failure(code: str, message: str, hint: str = "") -> dict:
        return {"ok": False, "code": code, "message": message, "hint": hint,
                "facts": {"steps": request.steps}}
    try:
        result = compile_model(request)
        path = Path(result["path"])
        if not path.is_file() or path.stat().st_size == 0:
            return failure("build_failed", f"{path.name} came out empty")
        facts = {"torch": torch.__version__, "steps": request.steps, **result["facts"]}
        return {"ok": True, "path": str(path), "facts": facts}
    except CompileError as error:
        return failure(error.code, error.message, error.hint)
    except UnsupportedModel as error:
        return failure("unsupported", str(error))
    except (MemoryError, torch.OutOfMemoryError) as error:
        return failure("out_of_memory", first_lines(error))
    except Exception as error:
        traceback.print_exc()
        text = first_lines(error)
        # torch reports a refused host allocation as a plain RuntimeError.
        code = "out_of_memory" if "can't allocate memory" in text else "build_failed"
        return failure(code, text)
