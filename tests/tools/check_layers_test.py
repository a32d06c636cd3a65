# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds a planted violation of each kind, and nothing in clean code."""
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
MACHINE_PATH = "/" + "home/somebody/x"  # In two parts: the checker reads this file, too.


def check(root, name, text):
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
    assert not done.stderr
    assert (done.returncode == 0) == (done.stdout == "layers: clean\n")
    return done.stdout


@pytest.mark.parametrize("name, text, fault", [
    ("src/stats/a.cc", '#include "tensor/npz.h"', "stats/ must not depend on tensor/"),
    ("src/base/a.h", '  #  include "cli/options.h"', "base/ must not depend on cli/"),
    ("src/runtime/a.cc", '#include "tune/tuner.h"', "runtime/ must not depend on tune/"),
    ("src/tune/a.cc", "#include <nlohmann/json.hpp>", "<nlohmann/json.hpp> is not allowed here"),
    ("src/tune/a.cc", "#include <regex>", "<regex> is not allowed here"),
    ("plugins/openvino/a.cc", "#include <torch/script.h>", "<torch/script.h> is not allowed here"),
    ("plugins/fake/a.cc", '#include "base/json.h"', "plugins/ includes hasten/ headers only"),
    ("include/hasten/a.h", '#include "base/json.h"', "include/ includes hasten/ headers only"),
    ("src/tune/a.cc", "try {} catch ( ... ) {}", "catch (...) stands in the guard"),
    ("src/tune/a.cc", 'if (name == "openvino") return;', "the core names no backend: openvino"),
    ("src/tune/a.cc", 'auto b = "eager";', 'the core names no backend: "eager"'),
    ("docs/a.md", f"see {MACHINE_PATH}", "a path of one machine: " + MACHINE_PATH),
])
def test_violation_is_found(tmp_path, name, text, fault):
    assert f"{name}:2: {fault}" in check(tmp_path, name, "// first line\n" + text + "\n")


@pytest.mark.parametrize("name, text", [
    ("src/tune/a.cc", '#include "base/json.h"\n#include "stats/stats.h"\n#include <vector>'),
    ("src/base/json.cc", "#include <nlohmann/json.hpp>"),
    ("plugins/inductor/a.cc", "#include <torch/csrc/inductor/x.h>\n#include <hasten/plugin.hpp>"),
    ("src/tune/a.cc", "// openvino is named in a comment\n/* and\n catch (...) too */"),
    ("src/tune/a.cc", 'auto url = "http://x"; // "eager"'),
    ("src/model/a.cc", 'if (format == "torchscript") return;'),
    ("src/tune/a_test.cc", 'CHECK(label == "openvino");'),
    ("include/hasten/plugin.hpp", "try {} catch (...) {}"),
    ("bench/a_bench.cc", '#include "base/json.h"\n#include <openvino/openvino.hpp>'),
    ("docs/a.md", "share/home/x and <prefix>/home/x"),
])
def test_clean_code_passes(tmp_path, name, text):
    assert check(tmp_path, name, text + "\n") == "layers: clean\n"
