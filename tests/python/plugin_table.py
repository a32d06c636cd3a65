# SPDX-License-Identifier: Apache-2.0
"""Drives a backend library by its C table from Python, with NumPy arrays in and out."""

import ctypes
import json
import math
from ctypes import (CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

import numpy as np


class Sink(ctypes.Structure):
    pass


Write = CFUNCTYPE(None, POINTER(Sink), c_void_p, c_size_t)
Sink._fields_ = [("write", Write)]


class Device(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("device_type", c_int32), ("device_id", c_int32),
                ("threads", c_int32)]


class Option(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class Model(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("path", c_char_p), ("format", c_char_p),
                ("graph_json", c_char_p)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Managed(ctypes.Structure):
    pass


Managed._fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
                    ("deleter", CFUNCTYPE(None, POINTER(Managed))), ("flags", c_uint64),
                    ("tensor", DLTensor)]

Raw = c_void_p


class Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("traits", c_uint32), ("name", c_char_p), ("version", c_char_p),
        ("describe", CFUNCTYPE(c_int, POINTER(Sink))),
        ("probe", CFUNCTYPE(c_int, POINTER(Device), POINTER(Sink))),
        ("inspect", CFUNCTYPE(c_int, POINTER(Model), POINTER(Sink), POINTER(Sink))),
        ("candidates", CFUNCTYPE(c_int, POINTER(Model), POINTER(Device), POINTER(Sink),
                                 POINTER(Sink))),
        ("build", CFUNCTYPE(c_int, POINTER(Model), POINTER(Device), POINTER(Option), c_size_t,
                            c_char_p, POINTER(Raw), POINTER(Sink))),
        ("save", CFUNCTYPE(c_int, Raw, c_char_p, POINTER(Sink))),
        ("load", CFUNCTYPE(c_int, c_char_p, POINTER(Device), POINTER(Raw), POINTER(Sink))),
        ("arity", CFUNCTYPE(c_int, Raw, POINTER(c_size_t), POINTER(c_size_t))),
        ("run", CFUNCTYPE(c_int, Raw, POINTER(DLTensor), c_size_t, POINTER(POINTER(Managed)),
                          c_size_t, POINTER(Sink))),
        ("destroy", CFUNCTYPE(None, Raw)),
    ]


CODES = {1: "unavailable", 2: "unsupported", 3: "invalid_argument", 4: "build_failed",
         5: "run_failed", 6: "out_of_memory", 7: "internal"}
# dtype code of DLPack by NumPy's kind.
KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class PluginError(Exception):
    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = CODES[code]


class _Text:
    def __init__(self):
        self.parts: list[bytes] = []
        self.write = Write(lambda _, text, size: self.parts.append(ctypes.string_at(text, size)))
        self.sink = Sink(self.write)

    def __str__(self):
        return b"".join(self.parts).decode()


def _check(code: int, error: _Text) -> None:
    if code:
        raise PluginError(code, str(error))


class Plugin:
    def __init__(self, path, threads: int = 1):
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        entry = library.hasten_backend_entry
        entry.restype, entry.argtypes = POINTER(Api), [c_uint32, c_uint32]
        self.api = entry(0, 2).contents
        self.device = Device(ctypes.sizeof(Device), 1, 0, threads)

    def describe(self) -> dict:
        text = _Text()
        _check(self.api.describe(byref(text.sink)), text)
        return json.loads(str(text))

    def build(self, path, model_format: str, options=None, graph=None) -> "Executable":
        model = Model(ctypes.sizeof(Model), str(path).encode(), model_format.encode(),
                      json.dumps(graph or {}).encode())
        pairs = [(k.encode(), v.encode()) for k, v in (options or {}).items()]
        array = (Option * max(1, len(pairs)))(*pairs)
        raw, error = Raw(), _Text()
        _check(self.api.build(byref(model), byref(self.device), array, len(pairs), b"/nonexistent",
                              byref(raw), byref(error.sink)), error)
        return Executable(self.api, raw)

    def load(self, folder) -> "Executable":
        raw, error = Raw(), _Text()
        _check(self.api.load(str(folder).encode(), byref(self.device), byref(raw),
                             byref(error.sink)), error)
        return Executable(self.api, raw)


class Executable:
    def __init__(self, api: Api, raw: Raw):
        self.api, self.raw = api, raw
        n_inputs, n_outputs = c_size_t(), c_size_t()
        api.arity(raw, byref(n_inputs), byref(n_outputs))
        self.n_inputs, self.n_outputs = n_inputs.value, n_outputs.value

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        views = (DLTensor * max(1, len(arrays)))(*map(_view, arrays))
        results = (POINTER(Managed) * max(1, self.n_outputs))()
        error = _Text()
        _check(self.api.run(self.raw, views, len(arrays), results, self.n_outputs,
                            byref(error.sink)), error)
        return [_take(result) for result in results[:self.n_outputs]]

    def save(self, folder) -> None:
        error = _Text()
        _check(self.api.save(self.raw, str(folder).encode(), byref(error.sink)), error)

    def close(self) -> None:
        self.api.destroy(self.raw)
        self.raw = Raw()


def _view(array: np.ndarray) -> DLTensor:
    axes = c_int64 * max(1, array.ndim)
    strides = [stride // array.itemsize for stride in array.strides]
    return DLTensor(array.ctypes.data, 1, 0, array.ndim, KINDS[array.dtype.kind],
                    8 * array.itemsize, 1, axes(*array.shape), axes(*strides), 0)


def _take(result) -> np.ndarray:
    tensor = result.contents.tensor
    kind = next(kind for kind, code in KINDS.items() if code == tensor.code)
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = tensor.shape[:tensor.ndim]
    strides = [stride * dtype.itemsize for stride in tensor.strides[:tensor.ndim]]
    extent = 0 if math.prod(shape) == 0 else dtype.itemsize + sum(
        (size - 1) * stride for size, stride in zip(shape, strides))
    memory = ctypes.string_at(tensor.data + tensor.byte_offset, extent) if extent else b""
    array = np.ndarray(shape, dtype, memory, strides=strides) if extent else np.empty(shape, dtype)
    result.contents.deleter(result)
    return array.copy()
