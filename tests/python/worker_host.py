# SPDX-License-Identifier: Apache-2.0
"""The host's side of the worker protocol, for tests of the worker that is written in Python."""

import array
import json
import os
import socket
import subprocess
import sys

import torch

from hasten.flat import DTYPE_NAMES, DTYPES


class WorkerError(Exception):
    def __init__(self, error: dict):
        super().__init__(error["message"])
        self.code, self.hint = error["code"], error["hint"]


class Worker:
    def __init__(self, folder, environment=None):
        ours, theirs = socket.socketpair()
        self.line = ours
        self.inputs, self.outputs = os.memfd_create("in"), os.memfd_create("out")
        script = "import os, sys\n" \
                 "for target, fd in enumerate(map(int, sys.argv[1:4]), 3):\n" \
                 "    os.dup2(os.dup(fd), target + 100)\n" \
                 "for target in (3, 4, 5):\n" \
                 "    os.dup2(target + 100, target)\n" \
                 "os.execv(sys.executable, [sys.executable, '-m', 'hasten.worker'])\n"
        passed = (theirs.fileno(), self.inputs, self.outputs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, passed)], pass_fds=passed, cwd=folder,
            env={**os.environ, **(environment or {})}, stderr=open(folder / "worker.log", "w"))
        theirs.close()
        self.hello = self._receive()

    def ask(self, op: str, **fields) -> dict:
        text = json.dumps({"op": op, **fields}).encode()
        self.line.sendall(len(text).to_bytes(4, "little") + text)
        reply = self._receive()
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def set_inputs(self, slot: int, *tensors: torch.Tensor) -> None:
        """In the strides that they have."""
        layouts, offset = [], 0
        for tensor in tensors:
            strides, shape = list(tensor.stride()), list(tensor.shape)
            count = 0 if tensor.numel() == 0 else \
                1 + sum((n - 1) * s for n, s in zip(shape, strides))
            nbytes = count * tensor.element_size()
            os.ftruncate(self.inputs, max(os.fstat(self.inputs).st_size, offset + nbytes))
            whole = tensor.as_strided([count], [1]).contiguous().view(torch.uint8)
            os.pwrite(self.inputs, array.array("B", whole.tolist()).tobytes(), offset)
            layouts.append({"dtype": DTYPE_NAMES[tensor.dtype], "shape": shape,
                            "strides": strides, "offset": offset, "nbytes": nbytes})
            offset += -(-nbytes // 64) * 64
        self.ask("inputs", slot=slot, tensors=layouts)

    def run(self, slot: int) -> list[torch.Tensor]:
        reply = self.ask("run", slot=slot)
        assert reply["duration_ns"] > 0
        return [self._read(layout) for layout in reply["outputs"]]

    def close(self) -> int:
        self.line.close()
        os.close(self.inputs)
        os.close(self.outputs)
        return self.process.wait(timeout=30)

    def _read(self, layout: dict) -> torch.Tensor:
        assert layout["offset"] % 64 == 0
        data = bytearray(os.pread(self.outputs, layout["nbytes"], layout["offset"]))
        dtype = DTYPES[layout["dtype"]]
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.reshape(layout["shape"])

    def _receive(self) -> dict:
        head = self.line.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            raise EOFError("the worker ended")
        size = int.from_bytes(head, "little")
        return json.loads(self.line.recv(size, socket.MSG_WAITALL))
