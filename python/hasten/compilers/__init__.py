# SPDX-License-Identifier: Apache-2.0
"""Programs that turn one model format into another: python -m hasten.compilers.NAME REQUEST.json

compilers.json lists them. A request is {"model", "format", "graph", "samples", "options",
"output_dir"}; the answer is output_dir/result.json, {"ok": true, "path", "facts"} or
{"ok": false, "code", "message", "hint"}.
"""
