"""SARIF: each result has a physical location, and logs keep within GitHub's limits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph, Location
from graphir.passes import cast_report
from graphir.passes.reports import sarif
from graphir.passes.reports.sarif import report_sarif
from tests.support.commands import cli
from tests.support.sarif import checked_results

SCRIPT = """
from graphir import Graph

g = Graph("built", rules="jax")
x, w = g.input("int32", (3,), name="x"), g.input("bfloat16", (3,), name="w")
y = x * w
for _ in range(300):
    y = y + x
g.output(y)
"""


def mixed(count: int = 1) -> Graph:
    """A graph of casts without lines."""
    graph = Graph("mixed", rules="jax")
    with graph.at(Location.at("", 1)):
        x = graph.input("int32", (3,), name="x")
        y = graph.input("bfloat16", (3,), name="y")
        for _ in range(count):
            y = y * x
        graph.output(y)
    return graph


def test_nodes_of_a_model_are_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    from onnx import parser, save

    from graphir.runtime.sources import from_onnx

    monkeypatch.chdir(tmp_path)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x, float[3] w) => (float16[3] y, float[3] z)
    { y = Cast<to=10>(x) s = SequenceConstruct(x, w)
      t = SequenceMap(s) <body = b (float[3] q) => (float[3] r)
        { u = Cast<to=10>(q) r = Cast<to=1>(u) }>
      i = Constant<value_int=0>() z = SequenceAt(t, i) }"""
    model = parser.parse_model(text)
    model.graph.node[0].name = "/encoder/Cast [0]"
    Path("models").mkdir()
    save(model, "models/net work.onnx")
    np.save("x.npy", np.full(3, 0.1, np.float32))
    inputs = ("--input", "x.npy", "--input", "x.npy")
    for argv in (("casts", "models/net work.onnx"), ("audit", "models/net work.onnx", *inputs)):
        results = checked_results(cli(*argv, "--format", "sarif")[1])
        assert {"cast/range", "audit/unseen"} <= {result["ruleId"] for result in results}
        for result in results:
            (place,) = result["locations"]
            physical = place["physicalLocation"]
            assert physical["artifactLocation"]["uri"] == "models/net%20work.onnx"
            assert physical["region"] == {"startLine": 1}
        names = [result["locations"][0]["logicalLocations"] for result in results]
        assert [{"fullyQualifiedName": "/encoder/Cast [0]"}] in names
    # A model in memory has no file: its graph has a name.
    (result, *_) = checked_results(report_sarif(cast_report(from_onnx(model))))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "g.gir"


def test_places_without_lines_are_in_the_file_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (result,) = checked_results(report_sarif(cast_report(mixed())))
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "mixed.gir"
    assert place["logicalLocations"] == [{"fullyQualifiedName": "mixed"}]
    mixed().save("saved.gir")
    (result,) = checked_results(cli("casts", "saved.gir", "--format", "sarif")[1])
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "saved.gir"
    imports = "from tests.passes.reports.test_sarif_places import mixed\n"
    Path("unplaced_of_tests.py").write_text(imports)
    (result,) = checked_results(cli("casts", "unplaced_of_tests.py:mixed", "--format", "sarif")[1])
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "unplaced_of_tests.py"


def test_results_are_within_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    Path("short_of_tests.py").write_text(
        SCRIPT.replace("y = y + x", "y = y + x.astype('int16') * 2 - x.astype('int8')")
    )
    full = len(
        json.loads(cli("casts", "short_of_tests.py:g", "--lossy", "--format", "json")[1])["casts"]
    )
    text = cli("casts", "short_of_tests.py:g", "--format", "sarif")[1]
    (run,) = json.loads(text)["runs"]
    assert len(checked_results(text)) == 2 < full
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith(f"{full - 2} further results are left out")
