# SPDX-License-Identifier: Apache-2.0
"""An exported program to an AOTInductor package, with a list of what its inputs must be.

A package does not check its inputs: given another size it answers wrongly without an error.
So the sizes that the program was exported for are written beside it, in PACKAGE.inputs, and
the backend refuses everything else.
"""

import os
import sys
from pathlib import Path
from urllib.parse import quote

import torch

from hasten.compilers import _export, _program
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
    _prepare_environment(request.output_dir)
    again = not flat.already_flat
    if again:
        flat = _program.export_again(flat, request)
    try:
        _compile(request, flat, path)
    except Exception:
        if again:
            raise
        flat = _program.export_again(flat, request)
        _compile(request, flat, path)
    _write_inputs(Path(f"{path}.inputs"), flat, names)
    facts = _program.with_names(_export.program_facts(flat.program, request.graph), names)
    return {"path": path, "facts": {**facts, "sidecar": f"{path.name}.inputs"}}


def _prepare_environment(output_dir: Path) -> None:
    # One compiler process at a time: several builds share the machine.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    cache = os.environ.get("HASTEN_COMPILE_CACHE") or str(output_dir / "cache")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    os.environ["TMPDIR"] = str(output_dir)


def _compile(request: Request, flat: FlatProgram, path: Path) -> None:
    import torch._inductor
    import torch._inductor.config as config

    settings = {
        "freezing": request.flag("freezing"), "max_autotune": request.flag("max_autotune"),
        # Made for every new cache, the precompiled headers cost 20 s and save 3.
        "aot_inductor.precompile_headers": False,
    }

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
