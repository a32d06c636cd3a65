#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a JSON document against a schema of docs/schema.

    validate.py SCHEMA FILE        SCHEMA is a name ("tune") or a path; FILE may be - for stdin

Prints each place that does not fit, as a JSON pointer, and exits with 1."""
import json
import sys
from pathlib import Path

import jsonschema

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"


def load_schema(name: str | Path) -> dict:
    path = Path(name)
    if path.suffix != ".json":
        path = SCHEMAS / f"{name}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def errors(document, schema: str | Path | dict) -> list[str]:
    """One line a fault; empty when the document fits."""
    schema = schema if isinstance(schema, dict) else load_schema(schema)
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return sorted("/" + "/".join(map(str, fault.absolute_path)) + ": " + fault.message[:300]
                  for fault in found)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    text = sys.stdin.read() if sys.argv[2] == "-" else Path(sys.argv[2]).read_text(encoding="utf-8")
    faults = errors(json.loads(text), sys.argv[1])
    print("\n".join(faults) or "valid")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
