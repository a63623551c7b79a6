"""The site: its pages and its reference are whole, and it is read without a network."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphir
from graphir import ops, passes, runtime
from graphir.runtime import array_api, targets, testing
from tests.pages import PAGES, ROOT

DOCS = ROOT / "docs"


def test_the_first_page_lists_every_page() -> None:
    lists = re.findall(r"^:::\{toctree\}\n(.*?)^:::$", (DOCS / "index.md").read_text(), re.M | re.S)
    listed = {DOCS / f"{name}.md" for name in re.findall(r"^[\w/-]+$", "\n".join(lists), re.M)}
    others = {ROOT / "README.md", DOCS / "index.md", *(DOCS / "promotion").iterdir()}
    assert {*PAGES} - others == listed - {DOCS / "promotion-tables.md", DOCS / "api" / "index.md"}


@pytest.mark.exhaustive
def test_the_site_is_built_without_a_warning_and_has_every_public_name(tmp_path: Path) -> None:
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package, reason=f"{package}, of the extra `docs`, is not installed")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(tmp_path)]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr
    pages = {path: path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    for path, page in pages.items():
        fetched = re.findall(
            r'<(?:script|img|iframe)[^>]* src="([^"]*)|<link[^>]* href="([^"]*)', page
        )
        for address in ("".join(pair) for pair in fetched):
            target = path.parent / address.partition("?")[0]
            assert address.startswith("#") or target.exists(), (path.name, address)
    text = html.unescape("".join(page for path, page in pages.items() if path.parent.name == "api"))
    anchors = {*re.findall(r'id="([\w.]+)"', text)}
    for module in (graphir, passes, runtime, array_api, targets, testing):
        names = [x for x in module.__all__ if callable(getattr(module, x)) and x[0] != "_"]
        lacking = {f"{module.__name__}.{name}" for name in names} - anchors
        assert not lacking
    assert not {f"graphir.ops.{name}" for name in (*ops.CATALOGUE, *ops.CONTROL)} - anchors
    for name in ("graphir.passes.rewriter.Rewriter", "graphir.ops.decompositions.softmax"):
        assert name in anchors
    for dtype in graphir.DType:
        assert f">{dtype}</span>" in text or f">{dtype}</code>" in text, dtype
