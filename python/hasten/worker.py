# SPDX-License-Identifier: Apache-2.0
"""Serves eager PyTorch over the worker protocol (src/backend/protocol.md).

    python -m hasten.worker      with a socket at fd 3 and shared memory at fds 4 and 5

torch is imported by the first request that needs it: the answer to `probe` comes at once.
"""

import importlib.metadata
import json
import mmap
import os
import resource
import socket
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hasten

if TYPE_CHECKING:
    import torch

SOCKET, INPUTS, OUTPUTS = 3, 4, 5
ALIGNMENT = 64
MOST_CALLS = 1_000_000  # Of one turn: its reply stays within a message.
# What the host reads from plugins/eager/hasten_eager.json without starting a worker.
DESCRIPTION: dict[str, Any] = {
    "title": "PyTorch, as exported and not optimised", "formats": ["pt2"], "inspects": ["pt2"],
    "options": [
        {"name": "precision", "type": "enum", "default": "native",
         "choices": ["native", "float64"], "stage": "build",
         "help": "float64: every floating-point number in double, for reference"},
        {"name": "threads", "type": "int", "default": "0", "choices": [], "stage": "build",
         "help": "threads of one operator; 0: what the process may use"},
    ],
}
OPTIONS = {option["name"]: option for option in DESCRIPTION["options"]}


class Failure(Exception):
    """An answer that is no result; codes as in hasten/result.h."""

    def __init__(self, code: str, message: str, hint: str = ""):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


@dataclass
class Input:
    """One tensor of a slot: pristine bytes, and a view into the bytes the model is called with."""
    pristine: "torch.Tensor"
    working: "torch.Tensor"
    tensor: "torch.Tensor"


class Server:
    def __init__(self):
        self.program = None
        self.slots: dict[int, list[Input]] = {}
        self.outputs = Outputs()

    def answer(self, request: dict) -> dict:
        handler = getattr(self, f"op_{request.get('op')}", None)
        try:
            if handler is None:
                raise Failure("invalid_argument", f"no request '{request.get('op')}'")
            self.outputs.clear()  # The host has read the last results by now.
            return handler(request)
        except Failure as failure:
            return {"error": {"code": failure.code, "message": failure.message,
                              "hint": failure.hint}}
        except Exception as error:
            traceback.print_exc()
            return {"error": {"code": "internal", "hint": "",
                              "message": f"a bug in the worker: {error!r}"}}

    def op_describe(self, _) -> dict:
        return {"describe": DESCRIPTION}

    def op_probe(self, _) -> dict:
        try:
            version = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            raise Failure("unavailable", f"PyTorch is not installed for {sys.executable}",
                          "pip install torch==2.13.0, or set HASTEN_PYTHON") from None
        return {"facts": {"library_version": version, "python": sys.version.split()[0]}}

    def op_inspect(self, request) -> dict:
        with tempfile.TemporaryDirectory() as scratch:
            flat = open_program(request["model"], request["format"], scratch)
        return {"signature": {"inputs": [vars(leaf) for leaf in flat.inputs],
                              "outputs": [vars(leaf) for leaf in flat.outputs],
                              "ranges": flat.ranges}}

    def op_candidates(self, request) -> dict:
        if request["format"] != "pt2":
            return {"candidates": []}
        return {"candidates": [{"role": "baseline", "config": {}},
                               {"role": "oracle", "config": {"precision": "float64"}}]}

    def op_build(self, request) -> dict:
        self.program = None  # Two builds at once may not fit into memory.
        config = checked(request.get("config", {}))
        self.program = Program(request["model"], request["format"], config, request["work_dir"])
        return {"n_inputs": len(self.program.flat.inputs),
                "n_outputs": len(self.program.flat.outputs)}

    def op_save(self, _) -> dict:
        raise Failure("unsupported", "eager PyTorch needs Python and cannot be saved",
                      "an artifact falls back to the model's TorchScript instead")

    op_load = op_save

    def op_inputs(self, request) -> dict:
        self.slots[request["slot"]] = read_inputs(request["tensors"])
        return {}

    def op_run(self, request) -> dict:
        call = self.call_of(request["slot"])
        restore(call.inputs)
        results, duration = call.timed()
        return {"outputs": self.outputs.write(results), "duration_ns": duration}

    def op_audit(self, request) -> dict:
        first, second = self.call_of(request["slot"]), self.call_of(request["other"])
        restore(first.inputs)
        results, _ = first.timed()
        written = [index for index, item in enumerate(first.inputs)
                   if not item.working.equal(item.pristine)]
        aliases = [[o, i] for o, result in enumerate(results)
                   for i, item in enumerate(first.inputs) if overlap(result, item.working)]
        copies = [result.clone() for result in results]
        restore(second.inputs)
        second.timed()
        changed = any(not same_bytes(a, b) for a, b in zip(results, copies, strict=True))
        return {"written_inputs": written, "aliases": aliases, "first_result_changed": changed}

    def op_turn(self, request) -> dict:
        call = self.call_of(request["slot"])
        budget, fresh = request["budget_ns"], request.get("fresh_inputs", False)
        restore(call.inputs)
        durations, begin = [], time.perf_counter_ns()
        while True:
            if fresh:
                restore(call.inputs)
            durations.append(call.timed()[1])
            if time.perf_counter_ns() - begin >= budget or len(durations) >= MOST_CALLS:
                return {"durations_ns": durations}

    def op_memory(self, _) -> dict:
        return {"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    def call_of(self, slot: int) -> "Call":
        if self.program is None:
            raise Failure("invalid_argument", "nothing is built")
        if slot not in self.slots:
            raise Failure("invalid_argument", f"slot {slot} has no inputs")
        return Call(self.program, self.slots[slot])


class Program:
    """An exported program that is ready to be called."""

    def __init__(self, path: str, model_format: str, config: dict, work_dir: str):
        import torch

        torch.set_num_threads(int(config["threads"]) or
                              int(os.environ.get("HASTEN_THREADS") or 0) or
                              len(os.sched_getaffinity(0)))
        self.flat = open_program(path, model_format, work_dir)
        self.double = config["precision"] == "float64"
        try:
            self.module = self.flat.program.module(check_guards=not self.double)
            if self.double:
                from hasten.double import in_double
                in_double(self.module)
        except Exception as error:
            traceback.print_exc()
            raise Failure("build_failed", sentence(error)) from error
        for parameter in self.module.parameters():
            parameter.requires_grad_(False)


class Call:
    """One program with one slot's inputs."""

    def __init__(self, program: Program, inputs: list[Input]):
        leaves = program.flat.inputs
        if len(inputs) != len(leaves):
            raise Failure("invalid_argument", f"{len(inputs)} inputs given, the model takes "
                          f"{len(leaves)}: {', '.join(leaf.name for leaf in leaves)}")
        for item, leaf in zip(inputs, leaves, strict=True):
            check_input(item.tensor, leaf)
        self.program, self.inputs = program, inputs

    def timed(self):
        """The outputs, and the nanoseconds of the call alone."""
        import torch
        import torch.utils._pytree as pytree
        from hasten.double import doubled
        from hasten.flat import as_tensor

        flat, module = self.program.flat, self.program.module
        tensors = [item.tensor for item in self.inputs]
        if self.program.double:
            tensors = [doubled(tensor) for tensor in tensors]
        args, kwargs = flat.bind(tensors)
        try:
            with torch.no_grad():
                start = time.perf_counter_ns()
                result = module(*args, **kwargs)
                duration = time.perf_counter_ns() - start
        except AssertionError as error:  # The program's own guards on its inputs.
            raise Failure("invalid_argument", f"the model refuses its inputs: {sentence(error)}",
                          "give sizes within the ranges that `hasten inspect` shows") from error
        except MemoryError as error:
            raise Failure("out_of_memory", sentence(error)) from error
        except Exception as error:
            traceback.print_exc()
            text = sentence(error)
            # torch reports a refused host allocation as a plain RuntimeError.
            raise Failure("out_of_memory" if "can't allocate memory" in text else "run_failed",
                          text) from error
        leaves = pytree.tree_leaves(result)
        return [as_tensor(leaves[index]).resolve_conj().resolve_neg()
                for index in flat.output_positions], duration


class Outputs:
    """The memory that results are written to."""

    def clear(self) -> None:
        os.ftruncate(OUTPUTS, 0)

    def write(self, tensors: list) -> list[dict]:
        import torch

        from hasten.flat import DTYPE_NAMES

        layouts, offset = [], 0
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            if tensor.dtype not in DTYPE_NAMES:
                raise Failure("unsupported", f"an output is {tensor.dtype}")
            layouts.append({"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape),
                            "offset": offset, "nbytes": size})
            offset += -(-size // ALIGNMENT) * ALIGNMENT
        os.ftruncate(OUTPUTS, offset)
        if offset == 0:
            return layouts
        with mmap.mmap(OUTPUTS, offset) as memory:
            for tensor, layout in zip(tensors, layouts, strict=True):
                if layout["nbytes"]:
                    view = torch.frombuffer(memory, dtype=torch.uint8, count=layout["nbytes"],
                                            offset=layout["offset"])
                    view.copy_(raw_bytes(tensor))
                    del view  # An exported pointer keeps the map open.
        return layouts


def read_inputs(tensors: list[dict]) -> list[Input]:
    import torch

    from hasten.flat import DTYPES

    size = os.fstat(INPUTS).st_size
    result = []
    memory: Any = mmap.mmap(INPUTS, size) if size else b""
    for layout in tensors:
        nbytes, offset = layout["nbytes"], layout.get("offset", 0)
        if offset + nbytes > size:
            raise Failure("invalid_argument", "a tensor ends outside the shared memory")
        pristine = torch.empty(nbytes, dtype=torch.uint8)
        if nbytes:
            source = torch.frombuffer(memory, dtype=torch.uint8, count=nbytes, offset=offset)
            pristine.copy_(source)
            del source
        working = pristine.clone()
        flat = working.view(DTYPES[layout["dtype"]])
        strides = layout.get("strides")
        tensor = flat.as_strided(layout["shape"], strides) if strides is not None and nbytes \
            else flat.reshape(layout["shape"])
        result.append(Input(pristine, working, tensor))
    if size:
        memory.close()
    return result


def restore(inputs: list[Input]) -> None:
    for item in inputs:
        item.working.copy_(item.pristine)


def raw_bytes(tensor):
    import torch
    flat = tensor.detach().contiguous().reshape(-1)
    # One element is contiguous whatever its stride, and view() looks at the stride.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)


def same_bytes(a, b) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and raw_bytes(a).equal(raw_bytes(b))


def overlap(tensor, working) -> bool:
    """Do any bytes of the tensor lie in the memory of an input?"""
    if tensor.numel() == 0 or working.numel() == 0:
        return False
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    begin, end = tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
    start = working.data_ptr()
    return begin < start + working.numel() and start < end


def check_input(tensor, leaf) -> None:
    from hasten.flat import DTYPE_NAMES
    if DTYPE_NAMES[tensor.dtype] != leaf.dtype:
        raise Failure("invalid_argument", f"input '{leaf.name}' is {DTYPE_NAMES[tensor.dtype]}, "
                      f"the model takes {leaf.dtype}")
    if tensor.dim() != len(leaf.shape):
        raise Failure("invalid_argument", f"input '{leaf.name}' has {tensor.dim()} axes, the "
                      f"model takes {len(leaf.shape)}")


def open_program(path: str, model_format: str, scratch: str):
    import torch

    from hasten.flat import FlatProgram, UnsupportedModel

    if model_format != "pt2":
        raise Failure("unsupported", f"eager PyTorch reads pt2, not {model_format}")
    # torch makes this folder, even if nothing is compiled.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(scratch, "torch")
    try:
        program = torch.export.load(path)
    except Exception as error:
        traceback.print_exc()
        raise Failure("invalid_argument", f"{os.path.basename(path)} is not a readable exported "
                      f"program: {sentence(error)}",
                      "save it with torch.export.save of this PyTorch") from error
    try:
        return FlatProgram(program)
    except UnsupportedModel as error:
        raise Failure("unsupported", str(error)) from error


def checked(config: dict) -> dict:
    """The options with their defaults; an unknown one is an error that lists the known."""
    result = {name: option["default"] for name, option in OPTIONS.items()}
    for key, value in config.items():
        if key not in OPTIONS:
            raise Failure("invalid_argument", f"eager: unknown option '{key}'; known options: "
                          f"{', '.join(OPTIONS)}")
        choices = OPTIONS[key]["choices"]
        if choices and value not in choices:
            raise Failure("invalid_argument", f"eager: option '{key}' wants one of "
                          f"{', '.join(choices)}, not '{value}'")
        if not choices and not value.isdecimal():
            raise Failure("invalid_argument", f"eager: option '{key}' wants a whole number of at "
                          f"least 0, not '{value}'")
        result[key] = value
    return result


def sentence(error: BaseException) -> str:
    """The first line of what torch says; pages of traceback follow it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:500] if lines else type(error).__name__


def send(line: socket.socket, message: dict) -> None:
    text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    line.sendall(len(text).to_bytes(4, "little") + text)


def receive(line: socket.socket) -> dict | None:
    def exactly(count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = line.recv(count - len(parts))
            if not part:
                return b""
            parts += part
        return bytes(parts)

    head = exactly(4)
    text = exactly(int.from_bytes(head, "little")) if head else b""
    return json.loads(text) if text else None


def main() -> int:
    line = socket.socket(fileno=SOCKET)
    send(line, {"protocol": 1, "backend": "eager", "version": hasten.__version__,
                "pid": os.getpid()})
    server = Server()
    while (request := receive(line)) is not None:
        send(line, server.answer(request))
    return 0


if __name__ == "__main__":
    sys.exit(main())
