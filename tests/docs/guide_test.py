# SPDX-License-Identifier: Apache-2.0
# ctest: TIMEOUT 2400 COST 115
"""What README and the guide say is what the program does.

Each page is followed from top to bottom in a folder of its own that holds the models of guide_models.py:

    ```console      `$ command` with, where it stands below it, what it prints ([..] and ... as in tests/cli).
                    A command has to succeed, unless an "error:" is shown or `$ echo $?` comes next.
    <!-- file: NAME -->    before a block: the block is written to that file.
    ```cpp          without a file: compiled as the body of main() against the installed copy, and run."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")),
         *sorted((ROOT / "docs/reference").glob("*.md"))]
DOCUMENTS = PAGES + [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")),
                     *sorted((ROOT / "docs/design").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
MAIN = """#include <cstdio>
#include <cstdlib>
{includes}
int main() {{
{body}
}}
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(snippet CXX)
find_package(hasten REQUIRED)
add_executable(snippet snippet.cc)
target_link_libraries(snippet PRIVATE hasten::hasten)
"""


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cli = load(ROOT / "tests/cli/run_cli_tests.py")


def title(page):
    return str(page.relative_to(ROOT))


def hasten_folder():
    return Path(os.environ.get("HASTEN", ROOT / "build/hasten")).resolve().parent


def checked(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    load(Path(__file__).with_name("guide_models.py")).build(folder)
    return folder


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    checked("cmake", "--install", os.environ.get("HASTEN_BUILD", hasten_folder()), "--prefix", folder)
    return folder


class Reader:
    """Somebody who does what a page says."""

    def __init__(self, folder, prefix):
        self.folder, self.status = folder, 0
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("HASTEN") and key != "PYTHONPATH"} | {
            "PATH": f"{hasten_folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'python'}:{hasten_folder() / 'python'}", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
            "PREFIX": str(prefix), "PLUGINS": str(hasten_folder() / "plugins")}

    def console(self, text):
        blocks = [block for block in cli.parse(text) if block.command]
        for i, block in enumerate(blocks):
            asks = i + 1 < len(blocks) and blocks[i + 1].script() == "echo $?"
            lines, self.status = cli.run(f"(exit {self.status})\n{block.script()}", self.folder,
                                         self.environment)
            expected = cli.strip_end(block.expected)
            shown = f"$ {block.script()}\n" + "\n".join(lines) + f"\nexit status {self.status}"
            may_fail = asks or any(line.startswith("error:") for line in expected)
            assert self.status == 0 or may_fail, shown
            assert not expected or cli.matches(expected, lines), \
                f"{shown}\n--- the page says\n" + "\n".join(expected)

    def snippet(self, text):
        lines = text.splitlines()
        includes = [line for line in lines if line.startswith("#include")]
        body = [f"  {line}" for line in lines if line not in includes]
        source = self.folder / "snippet"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE)
        (source / "snippet.cc").write_text(
            MAIN.format(includes="\n".join(includes), body="\n".join(body)))
        checked("cmake", "-S", source, "-B", source / "build",
                f"-DCMAKE_PREFIX_PATH={self.environment['PREFIX']}", env=self.environment)
        checked("cmake", "--build", source / "build", env=self.environment)
        checked(source / "build/snippet", cwd=self.folder, env=self.environment)
        shutil.rmtree(source)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_what_the_page_says_is_what_happens(page, models, prefix, tmp_path):
    for file in models.iterdir():
        shutil.copy(file, tmp_path)
    reader = Reader(tmp_path, prefix)
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
        elif block["language"] == "console":
            reader.console(block["text"])
        elif block["language"] == "cpp":
            reader.snippet(block["text"])


@pytest.mark.parametrize("page", DOCUMENTS, ids=title)
def test_every_file_that_the_page_links_exists(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (page.parent / target).resolve().exists(), target


def test_every_make_target_of_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


REFERENCE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["tune", "run", "bench", "inspect", "verify", "backends", "plugin-test"])
def test_the_reference_lists_every_option_of_the_command(command, hasten):
    described = re.search(rf"^## hasten {command}\b[^\n]*\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert described, f"no section for {command}"
    options = set(re.findall(r"--[a-z][a-z-]+", hasten(command, "--help").stdout.split("Examples")[0]))
    listed = set(re.findall(r"--[a-z][a-z-]+", described[1] + REFERENCE.split("## Common options")[1]))
    assert options - {"--help"} <= listed


def test_the_reference_lists_every_variable_that_the_program_reads():
    read = set()
    for folder in ("src", "plugins", "python"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".cc", ".h", ".py") and "test" not in file.stem and "fake" not in file.parts:
                text = file.read_text(encoding="utf-8", errors="replace")
                read |= set(re.findall(r'(?:getenv\(|environ(?:\.get\(|\[))"(HASTEN_[A-Z_]+)"', text))
    assert read, "no variable was found: the pattern is out of date"
    # The host sets it for its own children.
    assert {name for name in read - {"HASTEN_THREADS"} if f"`{name}`" not in REFERENCE} == set()
