# SPDX-License-Identifier: Apache-2.0
"""save() and load(): tuned modules in one file, without pickle.

The file is a zip, stored. `module.json` says what is in it; every tuned graph is an artifact of
its own (M/N.hasten, see hasten/runtime.h), with hashes of its own; the weights of the modules,
for the calls that the originals answer, are M/weights.safetensors.
"""

import json
import logging
import os
import shutil
import tempfile
import weakref
import zipfile
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from hasten import _core
from hasten.errors import HastenError, InvalidArgument
from hasten.torch import backend as backends
from hasten.torch import structure_json
from hasten.torch.backend import CoreBackend, TorchEagerBackend
from hasten.torch.call import Call, Signature
from hasten.torch.module import Control, Module, State, TunedGraph, control_of
from hasten.torch.recording import Graph
from hasten.torch.workbench import OriginalModule

logger = logging.getLogger("hasten.torch")

SCHEMA = 1
MOST_JSON_BYTES = 64 << 20


def save(obj: Any, path: str | Path, storage=None) -> None:
    """Writes a wrapped module, or the wrapped modules that are attributes of `obj`, to `path`.

    Old or new, never half. Raises InvalidArgument when there is none, or one that has not been
    tuned or passed through.
    """
    controls = _wrapped(obj)
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
            entries = [_save_module(archive, number, key, control)
                       for number, (key, control) in enumerate(controls.items())]
            archive.writestr("module.json", json.dumps({"schema": SCHEMA, "modules": entries}))
        os.replace(partial, path)
    except OSError as error:
        raise HastenError(f"{path}: {error.strerror or error}", "io") from None
    finally:
        partial.unlink(missing_ok=True)


def load(obj: Any, path: str | Path, storage=None, device_map=None):
    """Puts what was saved into `obj`: a module of the same class, or an object whose attributes
    are such modules. Returns the wrapped module, or `obj`."""
    file = _open(path)
    if len(file.modules) == 1 and file.modules[0]["key"] == "":
        return _restore(file, 0, _plain(obj))
    for number, entry in enumerate(file.modules):
        module = getattr(obj, entry["key"], None)
        if not isinstance(module, torch.nn.Module):
            raise InvalidArgument(f"{path} has a module for '{entry['key']}', which "
                                  f"{type(obj).__name__} has not")
        setattr(obj, entry["key"], _restore(file, number, _plain(module)))
    return obj


class LoadedModule:
    """A tuned module without its class: answers the calls that it was tuned for."""

    def __init__(self, name: str, signature: Signature, tuned: dict):
        self.name, self._signature, self._tuned = name, signature, tuned

    def __call__(self, *args, **kwargs):
        call = self._signature.normalise(args, kwargs)
        backend = self._tuned.get(call.structure)
        if backend is None:
            raise InvalidArgument(f"module '{self.name}' was not tuned for a call of this structure",
                                  hint="hasten.torch.load(module, path) lets the original answer it")
        return backend.infer_tensors([tensor.detach() for tensor in call.tensors])


def open_without_class(path: str | Path) -> LoadedModule:
    """The only module in the file; what the original would have to answer raises."""
    file = _open(path)
    if len(file.modules) != 1:
        names = ", ".join(entry["key"] for entry in file.modules)
        raise InvalidArgument(f"{path} has several modules ({names})",
                              hint="hasten.torch.load(pipeline, path) puts each where it belongs")
    entry = file.modules[0]
    tuned = {}
    for number, graph in enumerate(entry["graphs"]):
        if graph["backend"]["artifact"]:
            tuned[structure_json.read(graph["structure"])] = _open_backend(file, 0, number, graph)
    if not tuned:
        raise InvalidArgument(f"{path}: nothing in it runs without the module's class",
                              hint="hasten.torch.load(module, path)")
    return LoadedModule(entry["name"], structure_json.read_signature(entry["signature"]), tuned)


# -- Writing.

def _wrapped(obj: Any) -> dict[str, Control]:
    control = control_of(obj)
    if control is not None:
        controls = {"": control}
    else:
        values = {**vars(obj), **getattr(obj, "_modules", {})}
        controls = {key: control for key, value in values.items()
                    if (control := control_of(value)) is not None}
    if not controls:
        raise InvalidArgument(f"{type(obj).__name__} has no wrapped module to save")
    for key, control in controls.items():
        if control.state not in (State.TUNED, State.PASSTHROUGH):
            raise InvalidArgument(f"module '{control.name}' has not been tuned",
                                  hint="hasten.torch.tune(model, samples)")
    return controls


def _save_module(archive: zipfile.ZipFile, number: int, key: str, control: Control) -> dict:
    graphs = []
    for index, tuned in enumerate(control.tuned.values()):
        backend = tuned.backend
        if isinstance(backend, CoreBackend):
            archive.write(backend.artifact, f"{number}/{index}.hasten")
        graphs.append({
            "name": tuned.graph.name, "spec": tuned.graph.spec,
            "structure": structure_json.write(tuned.graph.structure),
            "output": structure_json.write(tuned.graph.output),
            "tensors": [[str(dtype).removeprefix("torch."), rank] for dtype, rank in tuned.graph.tensors],
            "backend": {"type": type(backend).__name__, "config": backend.config.to_dict(),
                        "artifact": isinstance(backend, CoreBackend)}})
    weights = {name: tensor.detach().contiguous().clone()
               for name, tensor in control.module.state_dict().items()
               if isinstance(tensor, torch.Tensor)}
    archive.writestr(f"{number}/weights.safetensors", safetensors.torch.save(weights))
    return {"key": key, "name": control.name, "training": control.module.training,
            "signature": structure_json.write_signature(control.signature), "graphs": graphs}


# -- Reading.

class _File:
    """An opened archive; its artifacts are unpacked one by one into a folder of its own."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, modules: list):
        self.path, self.archive, self.modules = path, archive, modules
        self.folder = Path(tempfile.mkdtemp(prefix="hasten-loaded-"))
        weakref.finalize(self, shutil.rmtree, self.folder, True)

    def unpack(self, entry: str) -> Path:
        target = self.folder / entry.replace("/", "-")
        with self.archive.open(entry) as source, open(target, "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
        return target


def _open(path: str | Path) -> _File:
    path = Path(path)
    try:
        archive = zipfile.ZipFile(path)
        info = archive.getinfo("module.json")
        if info.file_size > MOST_JSON_BYTES:
            raise InvalidArgument(f"{path}: module.json is larger than it can be")
        content = json.loads(archive.read("module.json"))
        schema, modules = content["schema"], content["modules"]
    except FileNotFoundError:
        raise HastenError(f"{path}: does not exist", "io") from None
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidArgument(f"{path} is no file of hasten.torch.save: {error}") from None
    if schema != SCHEMA:
        raise HastenError(f"{path} has the schema {schema}; this version reads {SCHEMA}",
                          "unsupported", "read it with the version that wrote it, or save it again")
    return _File(path, archive, modules)


def _restore(file: _File, number: int, module: torch.nn.Module) -> Module:
    entry = file.modules[number]
    weights = safetensors.torch.load_file(file.unpack(f"{number}/weights.safetensors"))
    missing, unexpected = module.load_state_dict(weights, strict=False)
    if missing or unexpected:
        raise InvalidArgument(f"{file.path}: the weights are those of another module: "
                              f"missing {missing[:3]}, not known {unexpected[:3]}")
    module.train(entry["training"])
    wrapped = Module(module, entry["name"])
    control = wrapped._hasten
    tuned = [_restore_graph(file, number, index, graph, control)
             for index, graph in enumerate(entry["graphs"])]
    if tuned:
        control.set_tuned(tuned)
    else:
        control.pass_through()
    return wrapped


def _restore_graph(file: _File, number: int, index: int, entry: dict, control: Control
                   ) -> TunedGraph:
    graph = Graph(entry["name"], structure_json.read(entry["structure"]), entry["spec"],
                  tensors=[(getattr(torch, dtype), rank) for dtype, rank in entry["tensors"]],
                  output=structure_json.read(entry["output"]))
    if entry["backend"]["artifact"]:
        return TunedGraph(graph, _open_backend(file, number, index, entry))
    cls = getattr(backends, entry["backend"]["type"], TorchEagerBackend)
    original = OriginalModule(control.module, control.forward)
    config = cls.config_class.from_dict(entry["backend"]["config"])
    return TunedGraph(graph, cls(config).build(original, graph, [], None, file.folder))


def _open_backend(file: _File, number: int, index: int, entry: dict) -> CoreBackend:
    cls = getattr(backends, entry["backend"]["type"], None)
    if cls is None or not issubclass(cls, CoreBackend):
        raise InvalidArgument(f"{file.path} names a backend that is not known: "
                              f"{entry['backend']['type']}")
    backend = cls(cls.config_class.from_dict(entry["backend"]["config"]))
    backend.open(file.unpack(f"{number}/{index}.hasten"), structure_json.read(entry["output"]))
    backend.file = file  # Its folder goes when nobody uses it any more.
    return backend


def _plain(module: Any) -> torch.nn.Module:
    control = control_of(module)
    return control.unwrap() if control is not None else module
