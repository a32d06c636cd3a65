#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the real models that tests and demo use.

    python tests/models/build.py --list
    python tests/models/build.py [NAME...] [--out DIR]      default: tests/models/out

Skips a model that was built by these very scripts and packages. Several may run at once."""
import argparse
import fcntl
import hashlib
import os
import shutil
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE.parents[1] / "requirements.txt"

# Read when the packages are imported: nothing of the zoo may ask a server.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import zoo  # noqa: E402


def key() -> str:
    """Changes with the scripts and with every pinned package."""
    digest = hashlib.sha256()
    for file in [*sorted(HERE.glob("*.py")), REQUIREMENTS]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def build(model: zoo.Model, out: Path, wanted: str) -> None:
    """Written beside and renamed: a folder that is there is complete."""
    folder = out / model.name
    stamp = folder / "stamp"
    out.mkdir(parents=True, exist_ok=True)
    with open(out / f".{model.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        started = time.monotonic()
        print(f"[models] building {model.name}: {model.origin}", file=sys.stderr, flush=True)
        from export import write  # Takes seconds: imports torch.
        work = out / f".{model.name}.work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write(model, work)
        (work / "stamp").write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
        print(f"[models] {model.name} took {time.monotonic() - started:.1f} s", file=sys.stderr,
              flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--list", action="store_true", help="what there is")
    arguments = parser.parse_args()
    if arguments.list:
        for model in zoo.MODELS.values():
            print(f"{model.name:12} {model.source:11} {model.note} ({model.origin})")
        return 0
    if unknown := set(arguments.names) - set(zoo.MODELS):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(zoo.MODELS)}")
    warnings.filterwarnings("ignore")
    wanted = key()
    for name in arguments.names or zoo.MODELS:
        build(zoo.MODELS[name], arguments.out, wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
