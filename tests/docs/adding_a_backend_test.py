"""The code on docs/adding_a_backend.md is the template plugin's, word for word."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding_a_backend.md"
SOURCE = ROOT / "plugins" / "template" / "template.cc"


def blocks():
    return re.findall(r"^```cpp\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_block_stands_in_the_template():
    source = SOURCE.read_text()
    missing = [block for block in blocks() if block not in source]
    assert not missing, "not in template.cc:\n" + "\n---\n".join(missing)


def test_the_page_shows_each_function_that_a_newcomer_writes():
    code = "\n".join(blocks())
    for name in ["describe()", "probe(", "make_unique<TemplateExecutable>", "run(", "save(",
                 "HASTEN_EXPORT_BACKEND"]:
        assert name in code


def test_every_file_that_the_page_links_exists():
    for target in re.findall(r"\]\((\.\./[^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).resolve().exists(), target
