"""Every page of documentation: its blocks run and print what it shows; its links and paths lead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT, Block, blocks, links, outputs
from tests.support.packages import MODULES, PACKAGES
from tests.support.tables import every

RELEASE = re.compile(r"\b(jax\w*|torch)@[\d.]+")
RUN = [block for page in PAGES for block in blocks(page) if block.language in ("python", "console")]


@every("block", RUN)
def test_a_block_prints_what_its_page_shows(block: Block) -> None:
    if block.missing:
        pytest.skip(f"not installed: {', '.join(block.missing)}")
    printed, shown = outputs(block.page)[block.line], block.output
    if block.needs:  # a page shows the rules of the releases with which it was written
        printed, shown = (RELEASE.sub(r"\1@", text) for text in (printed, shown))
    assert printed == shown


@every("page", PAGES)
def test_no_block_escapes_the_test(page: Path) -> None:
    for block in blocks(page):
        assert block.language in ("python", "console") or block.file, block
        if block.language == "console":
            commands = re.findall(r"^\$ (.*)$", block.text, re.M)
            assert commands and block.text.startswith("$ "), block
            assert all(re.match(r"(python -m )?graphir\b", line) for line in commands), block
    fences = re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), re.M)
    shown = sum(1 + bool(b.output and b.language == "python") for b in blocks(page))
    assert len(fences) == 2 * shown


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", line).strip().lower().replace(" ", "-") for line in lines}


@every("page", PAGES)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in links(page):
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists() and target.is_relative_to(ROOT), link
        assert not heading or heading in headings(target), link


def test_each_page_is_two_clicks_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    for _ in range(2):
        reached |= {
            (page.parent / link.partition("#")[0]).resolve()
            for page in reached
            if page.suffix == ".md"
            for link in links(page)
        }
    assert reached.issuperset(PAGES)


@every("page", PAGES)
def test_paths_named_in_prose_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:graphir|passes|runtime|tests|docs|examples)/[\w./]*)`", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"python -m (tests\.[\w.]+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


@every("page", PAGES)
def test_names_stand_in_the_files_named_beside_them(page: Path) -> None:
    pairs = re.findall(r"`([\w.]+)`\s\(`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
    assert pairs or page.name != "architecture.md"
    for name, path in pairs:
        for part in name.split("."):
            defined = rf"^\s*(def|class) {part}\b|^\s*{part}\b.* = "
            assert re.search(defined, (ROOT / path).read_text(encoding="utf-8"), re.M), name


def test_the_mechanism_sees_what_a_page_does(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```text data.txt\nseven\n```\n"
        "```python\nx = 7\n```\n"
        "```python\nprint(x, open('data.txt').read(), end='')\n```\n```text\n8\n```\n"
        "```python\nx / 0\n```\n"
        "```python needs=no_such_package\nx\n```\n"
        "```console\n$ graphir promote int8\nother\n$ python -m graphir x || echo $?\n```\n"
    )
    data, before, second, raising, missing, console = blocks(page)
    assert (data.file, second.output, missing.missing) == ("data.txt", "8\n", ["no_such_package"])
    shown = outputs(page)
    assert shown.keys() == {before.line, second.line, raising.line, console.line}
    assert (shown[before.line], shown[second.line]) == ("", "7 seven\n")
    assert shown[raising.line].endswith("ZeroDivisionError: division by zero\n")
    first, other, *_, last = shown[console.line].splitlines()
    assert (first, last) == ("$ graphir promote int8", "2")
    assert other.startswith("int8 promote") and "no command is named 'x'" in shown[console.line]


def test_every_package_has_a_quick_tier_of_tests() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w/]+)` \| (`tests.*) \|$", page, re.M))
    packages = {
        str(MODULES[name].parent.relative_to(ROOT))
        for name in PACKAGES
        if MODULES[name].name == "__init__.py"
    }
    assert rows.keys() - {"passes"} == packages
    for tests in rows.values():
        for path in re.search("`(.*?)`", tests)[1].split():  # pyright: ignore
            assert (ROOT / path).exists(), path
