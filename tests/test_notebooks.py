"""The notebooks of the documentation: a new run gives the outputs that are stored."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import graphir
from docs.run_notebooks import NOTEBOOKS, run
from graphir.display import LARGEST
from tests.pages import PAGES, links
from tests.support.notebooks import Outputs, notebook_shell
from tests.support.tables import every


def code_cells(text: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def unstyled(html: str) -> str:
    return re.sub(r"<style>.*?</style>", "", html, flags=re.S)


def stored(cell: dict[str, Any]) -> list[tuple[str, str]]:
    """The outputs of a cell: pairs of a kind and a text; HTML without its style sheets."""
    pairs: list[tuple[str, str]] = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            pairs.append((output["name"], "".join(output["text"])))
        else:
            data = {kind: "".join(lines) for kind, lines in output["data"].items()}
            data["text/html"] = unstyled(data.get("text/html", ""))
            pairs += [(kind, text) for kind, text in sorted(data.items()) if text]
    return pairs


def shown(outputs: Outputs) -> list[tuple[str, str]]:
    """The same of a cell that ran without IPython."""
    pairs = [("stdout", outputs.stdout), ("stderr", outputs.stderr)]
    for value in (*outputs.displays, outputs.result):
        if value is not None:
            html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
            pairs += [("text/html", unstyled(html)), ("text/plain", repr(value))]
    return [(kind, text) for kind, text in pairs if text]


def names(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_cells_give_the_stored_outputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = notebook_shell(monkeypatch)
    for number, cell in enumerate(code_cells(path.read_text(encoding="utf-8")), 1):
        assert cell["execution_count"] == number
        assert shown(shell.run("".join(cell["source"]))) == stored(cell), number
    graphir.unload_ipython_extension(shell)


MISSING = [name for name in ("nbclient", "nbformat", "ipykernel") if find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_kernel_gives_the_stored_outputs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    cells, new = code_cells(text), code_cells(run(path))
    assert [stored(cell) for cell in new] == [stored(cell) for cell in cells]


@every("path", NOTEBOOKS)
def test_stored_outputs_are_short_and_name_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|Users|work)/|ipykernel|ipython-input", text)
    html = [
        "".join(output["data"]["text/html"])
        for cell in code_cells(text)
        for output in cell["outputs"]
        if "text/html" in output.get("data", {})
    ]
    assert html and max(map(len, html)) <= LARGEST


def test_a_page_links_to_each_notebook() -> None:
    linked = {
        (page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)
    }
    assert NOTEBOOKS and linked.issuperset(NOTEBOOKS)
