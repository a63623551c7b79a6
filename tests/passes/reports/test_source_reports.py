"""Reports of programs of other libraries: the user's casts and the library's apart, and layers."""

from __future__ import annotations

import html
import json
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, Location, Origin, ops
from graphir.location import AUTOCAST, INTERMEDIATE
from graphir.passes import CastReport, cast_report
from graphir.passes.reports import DTYPE_FORMATS, REPORT_FORMATS
from graphir.passes.reports.json_ import schema
from graphir.passes.reports.text import report_text
from graphir.runtime import audit
from tests.support.tables import every

jsonschema = pytest.importorskip("jsonschema")
X = np.array([1.0, 300.0, 70000.0], "float32")


def graph(library: str = "torch") -> Graph:
    g = Graph("net", rules="torch")
    g.describe(library=library)
    x, n = g.input("float32", (3,), name="x"), g.input("int32", (3,), name="n")
    with g.layer("encoder"):
        inner = g.emit(ops.cast, (x,), {"to": DType.float16})
        kept = Origin(INTERMEDIATE, "torch.norm", inner.location, "torch", x.dtype, inner.dtype)
        inner.source = (kept,)
        y = inner * 2
    with g.layer("head"):
        half = g.emit(ops.cast, (x,), {"to": DType.bfloat16})
        to = Origin("input", "torch.norm", half.location, AUTOCAST, x.dtype, half.dtype)
        half.source = (to,)
        y = y.cast("float32") * half + n
    g.output(y)
    return g


def test_casts_inside_of_library_functions_stand_apart() -> None:
    lines = str(cast_report(graph())).splitlines()
    place = lines.index("inside functions of libraries:")
    assert [i for i, line in enumerate(lines) if "intermediate" in line] == [place + 1]
    assert lines[place + 2] == ""
    markdown = REPORT_FORMATS["markdown"](cast_report(graph()))
    table = markdown.partition("*inside functions of libraries:*")
    assert "bfloat16" in table[0] and "float16" in table[2]
    details = REPORT_FORMATS["details"](cast_report(graph()))
    assert details.count("inside functions of libraries:") == 1
    page = REPORT_FORMATS["html"](cast_report(graph()))
    assert "<small>inside torch.norm</small>" in page and "<td>input of torch.norm</td>" in page
    casts = json.loads(REPORT_FORMATS["json"](cast_report(graph())))["casts"]
    assert [cast["operand"] for cast in casts if cast.get("in_library")] == ["intermediate"]


def test_graphs_of_the_user_have_one_table() -> None:
    for name, write in REPORT_FORMATS.items():
        text = write(cast_report(graph("")))
        assert "inside functions" not in text and "in_library" not in text, name
        assert "bytes_before -> " not in text and '"layers"' not in text, name


def test_layers_have_casts_kinds_and_bytes() -> None:
    layers = {each.layer: each for each in cast_report(graph()).layers}
    encoder, head = layers["encoder"], layers["head"]
    assert (encoder.casts, encoder.lossy) == (2, 1)
    assert dict(encoder.kinds) == {"implicit": 1, "literal": 1}
    assert dict(head.kinds) == {"autocast": 1, "explicit": 1, "implicit": 2}
    assert (head.bytes_before, head.bytes_after) == (3 * (4 + 2 + 2 + 4), 3 * (2 + 4 + 4 + 4))
    for name in ("text", "details", "markdown", "html"):
        text = html.unescape(REPORT_FORMATS[name](cast_report(graph())))
        assert all(word in text for word in ("encoder", "autocast", "can lose", "36 -> 42")), name


def audited(x: Any = X, **keywords: Any) -> CastReport:
    return audit(graph(), x, np.array([1, 2, 3], "int32"), **keywords)


def test_shares_of_layers_sum_to_the_error_and_overflow_is_counted() -> None:
    report = audited(X[:3] / 100)
    assert sum(each.share or 0.0 for each in report.layers) == pytest.approx(1.0, abs=0.01)
    first = audited().layers[0]
    assert (first.layer, first.overflowed) == ("encoder", 1)
    assert "overflowed  share" in str(audited())
    document = json.loads(REPORT_FORMATS["json"](audited()))
    jsonschema.validate(document, schema())
    assert document["layers"][0]["layer"] == "encoder"


def test_a_program_without_layers_has_its_functions() -> None:
    g = Graph("plain", rules="jax")
    g.describe(library="jax")
    x = g.input("int32", (3,), name="x")

    def scaled() -> Any:
        return x * 0.5

    g.output(scaled() + x)
    names = {each.layer.rpartition(".")[2] for each in cast_report(g).layers}
    assert names == {"scaled", "test_a_program_without_layers_has_its_functions"}
    assert Location.at("a.py", 3).function == ""


def test_the_first_op_that_overflows_is_named_with_the_limit() -> None:
    sentence = next(x for x in audited().sentences if "overflows first" in x)
    assert sentence.startswith("float16 overflows first in line ")
    assert (
        "[encoder]: intermediate of torch.norm reaches 70000, beyond 65504, in 1 of 3" in sentence
    )
    assert not any("overflows first" in x for x in audited(X / 1000).sentences)
    g = Graph("product", rules="torch")
    g.describe(library="torch")
    x = g.input("float16", (2,), name="x")
    g.output(x * x)
    (sentence,) = audit(g, X[:2].astype("float16")).sentences
    assert "300 * 300 = 90000 became inf" in sentence  # the cause of the error is the first
    h = Graph("hidden", rules="torch")
    h.describe(library="torch")
    x = h.input("float16", (2,), name="x")
    h.output(1 / (x * x))
    (sentence,) = [x for x in audit(h, X[:2].astype("float16")).sentences if "first" in x]
    assert sentence.endswith("`x * x` reaches 90000, beyond 65504, in 1 of 2 elements")


def test_several_dtypes_have_a_table_by_layer() -> None:
    reports = {name: audited(as_dtype=name) for name in ("float64", "float16")}
    lines = DTYPE_FORMATS["text"](reports).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("layer"))
    (head, output, *rows), answers = lines[start:], lines[:start]
    assert head.split() == ["layer", "float64", "float16"]
    assert output.split()[:2] == ["output0", "relative"] and "no longer finite" in output
    assert any(row.startswith("encoder") for row in rows)
    assert any("overflows in 1" in row for row in rows)
    assert any(row.startswith("float16: float16 overflows first in line") for row in answers)
    some = {name: report.only(layer="encoder") for name, report in reports.items()}
    text = DTYPE_FORMATS["text"](some)
    assert "\nencoder" in text and text.count("\nencoder") == text.count("of the error") // 2
    document = json.loads(DTYPE_FORMATS["json"](reports))
    assert set(document) == {"float64", "float16"}
    jsonschema.validate(document["float16"], schema())


@every("width", [60, 80, 132])
def test_the_tables_fit_a_terminal(width: int) -> None:
    lines = report_text(audited(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("layer") for line in lines)
