"""Every document for programs carries the version of its format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphir import Graph
from tests.support.commands import cli


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    g = Graph("g")
    g.output(g.input("int8", ("n",), name="x") + g.input("float32", ("n",), name="y"))
    path = tmp_path / "saved.gir"
    g.save(path)
    return path


@pytest.mark.parametrize(
    ("argv", "version"),
    [
        (["table", "--rules", "max", "--format", "json"], 1),
        (["diff", "max", "jax", "--format", "json"], 1),
        (["diff", "SAVED", "jax", "--format", "json"], 1),
        (["casts", "SAVED", "--format", "json"], 3),
        (["casts", "SAVED", "--format", "sarif"], "2.1.0"),
    ],
)
def test_a_document_says_its_version(saved: Path, argv: list[str], version: int | str) -> None:
    document = json.loads(cli(*[str(saved) if word == "SAVED" else word for word in argv])[1])
    assert next(key for key in document if key != "$schema") == "version"
    assert document["version"] == version
    if "sarif" in argv:
        assert document["runs"][0]["tool"]["driver"]["properties"] == {"reportVersion": 3}
