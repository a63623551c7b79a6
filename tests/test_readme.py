"""The README and the pages beside it: length, the two commands, the map, rule sets, pictures."""

from __future__ import annotations

import re
from pathlib import Path

from pytest import MonkeyPatch

from graphir import lattice, rule_sets
from graphir.drawing.formats import lattice_svg
from graphir.promotion.library import LibraryRules
from tests.pages import PAGES, ROOT, blocks, links
from tests.support.commands import cli
from tests.support.tables import every

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


@every(
    ("page", "file", "printed"),
    [
        ("README.md", "example.py", "loses 2049"),
        ("docs/recording.md", "scores.py", "999 of 1000 differ"),
        ("docs/run-fast.md", "native.py", "native for strides (1, 1)"),
        ("docs/policies.md", "strict.py", "257 becomes 256.0"),
        ("docs/functions.md", "norm.py", "%eps: weak_float[]) -> (float16[n, 3])"),
    ],
)
def test_pages_have_their_examples(page: str, file: str, printed: str) -> None:
    outputs = [block.output for block in blocks(ROOT / page) if block.file == file]
    assert len(outputs) == 1 and printed in outputs[0]


def test_most_blocks_print() -> None:
    shown = [block for page in PAGES for block in blocks(page) if block.output]
    assert len(shown) >= 40


def test_there_are_two_commands_each_on_a_line_of_its_own() -> None:
    install = "python3 -m venv .venv && .venv/bin/pip install"
    commands = re.findall(r"^    (python3 -m venv .*)$", README, re.M)
    assert commands == [
        f"{install} -q . && .venv/bin/graphir demo",
        f"{install} -q '.[test]' && .venv/bin/python -m pytest -q -n auto",
    ]


def test_every_rule_set_of_a_library_is_in_the_table() -> None:
    page = (ROOT / "docs" / "rule-sets.md").read_text(encoding="utf-8")
    for rule_set in rule_sets():
        if isinstance(rule_set, LibraryRules) and not rule_set.name.startswith("test"):
            assert f"`{rule_set.name}`" in page, rule_set.name


@every(("picture", "name"), [("max", "max"), ("jax", "jax_doc")])
def test_the_pictures_are_those_of_today(picture: str, name: str) -> None:
    assert f"../examples/{picture}.svg" in links(ROOT / "docs" / "rule-sets.md")
    drawn = (ROOT / "examples" / f"{picture}.svg").read_text()
    assert drawn.rstrip() == lattice_svg(lattice(name)).rstrip()


def test_the_annotated_program_is_that_of_today(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    [block] = [x for x in blocks(ROOT / "README.md") if x.file == "blend.py"]
    monkeypatch.chdir(tmp_path)
    Path(block.file).write_text(block.text, encoding="utf-8")
    inputs = ("--input", "float32[8]", "--input", "int32[8]")
    status, drawn, _ = cli("annotate", "blend.py:blend", *inputs, "--format", "svg")
    assert status == 0 and drawn == (ROOT / "examples" / "blend.svg").read_text(encoding="utf-8")
