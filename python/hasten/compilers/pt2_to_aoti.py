# SPDX-License-Identifier: Apache-2.0
"""An exported program to an AOTInductor package, with a list of what its inputs must be.

A package does not check its inputs: given another size it answers wrongly without an error.
So the sizes that the program was exported for are written beside it, in PACKAGE.inputs, and
the backend refuses everything else.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import torch

from hasten.compilers import _export, _program, _quantise
from hasten.compilers._request import Request, main
from hasten.flat import FlatProgram

# The instruction sets that -march=native may have used, as Linux names them.
INSTRUCTION_SETS = ("avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "avx512f", "avx512dq",
                    "avx512bw", "avx512vl", "avx512cd", "avx512_vnni", "avx512_bf16",
                    "avx512vbmi", "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq",
                    "avx512ifma", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8",
                    "vaes", "vpclmulqdq", "gfni", "sha_ni", "sse4a", "clwb")


def compile_model(request: Request) -> dict:
    flat = _program.load_program(request)
    names = _program.names_for(flat, request)
    path = request.output_dir / "model.aoti.pt2"
    settings = _settings(request)
    _prepare_environment(request.output_dir)
    try:
        flat = _compile_some_way(request, settings, flat, path)
    finally:
        _clean_up(request.output_dir)
    _write_inputs(Path(f"{path}.inputs"), flat, names)
    facts = _program.with_names(_export.program_facts(flat.program, request.graph), names)
    return {"path": path, "facts": {**facts, "machine_specific": True}}


def _compile_some_way(request: Request, settings: dict, flat: FlatProgram, path: Path):
    """As it is, else exported again with example sizes. Returns what was compiled."""
    kind = request.option("quantization", "none", _quantise.KINDS)
    if kind != "none":
        flat = _program.export_again(flat, request, lambda module: _quantise.quantise(module, kind))
        _compile(request, settings, flat, path)
        return flat
    if flat.already_flat:
        try:
            _compile(request, settings, flat, path)
            return flat
        except Exception:  # The reason is in request.steps; the next way may work.
            pass
    flat = _program.export_again(flat, request)
    _compile(request, settings, flat, path)
    return flat


def _settings(request: Request) -> dict:
    return {
        "freezing": request.flag("freezing"), "max_autotune": request.flag("max_autotune"),
        # Made for every new cache, the precompiled headers cost 20 s and save 3.
        "aot_inductor.precompile_headers": False,
    }


def _clean_up(output_dir: Path) -> None:
    shutil.rmtree(output_dir / "cache", ignore_errors=True)
    (output_dir / "cache-torch").unlink(missing_ok=True)


def _prepare_environment(output_dir: Path) -> None:
    # One compiler process at a time: several builds share the machine.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # Inductor quotes no path on the compiler's command line. The working folder has a name
    # without special characters under /proc, whatever it is called.
    os.chdir(output_dir)
    here = str(output_dir) if _is_plain(str(output_dir)) else f"/proc/{os.getpid()}/cwd"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = \
        os.environ.get("HASTEN_COMPILE_CACHE") or os.path.join(here, "cache")
    os.environ["TMPDIR"] = here
    torch_folder = os.path.dirname(torch.__file__)
    if not _is_plain(torch_folder):
        from torch._inductor import cpp_builder
        from torch.utils import cpp_extension
        os.symlink(torch_folder, output_dir / "cache-torch")
        alias = f"/proc/{os.getpid()}/cwd/cache-torch"
        cpp_builder._TORCH_PATH = cpp_extension._TORCH_PATH = alias
        cpp_extension.TORCH_LIB_PATH = f"{alias}/lib"


def _is_plain(path: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_./+-]+", path) is not None


def _compile(request: Request, settings: dict, flat: FlatProgram, path: Path) -> None:
    import torch._inductor
    import torch._inductor.config as config

    def run(trust_cpu: bool):
        # Else Inductor compiles and loads test programs to see what the CPU can do, for 15 s.
        config.cpp.vec_isa_ok = True if trust_cpu and torch.cpu._is_avx2_supported() else None
        with torch.no_grad():
            torch._inductor.aoti_compile_and_package(flat.program, package_path=str(path),
                                                     inductor_configs=settings)
    try:
        request.attempt("AOTInductor", lambda: run(True))
    except torch._inductor.exc.CppCompileError:
        # A compiler too old for this CPU: find out what it can do.
        request.attempt("AOTInductor, instruction sets probed", lambda: run(False))


def _write_inputs(path: Path, flat: FlatProgram, names) -> None:
    """Lines of words, names percent-encoded; an axis is SIZE or SYMBOL:MIN:MAX:STEP."""
    lines = ["hasten-aoti 1", f"torch {torch.__version__}"]
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        flags = next((line for line in cpuinfo if line.startswith("flags")), "").split()
    lines.append(" ".join(["cpu", *(flag for flag in INSTRUCTION_SETS if flag in flags)]))
    for name, leaf, sizes in zip(names[0], flat.inputs, flat.sizes, strict=True):
        axes = [str(size) if isinstance(size, int) else _axis(flat, size) for size in sizes]
        lines.append(" ".join(["input", quote(name, safe=""), leaf.dtype, *axes]))
    lines += [f"output {quote(name, safe='')}" for name in names[1]]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def _axis(flat: FlatProgram, size) -> str:
    low, high, step = flat.bounds(size)
    symbol = quote(str(size).replace(" ", ""), safe="")
    return f"{symbol}:{low or 0}:{'' if high is None else high}:{step}"


if __name__ == "__main__":
    sys.exit(main(compile_model))
