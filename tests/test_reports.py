"""The forms of the report: what each must say, and that all say the same."""

from __future__ import annotations

import io
import json
import os
import pty
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest

from graphir import Graph
from passes import CastReport, CastRow, cast_report
from passes.casts.fixes import replacement
from passes.reports import REPORT_FORMATS, words
from passes.reports.html import report_html
from passes.reports.json_ import report_json, schema
from passes.reports.markdown import report_markdown
from passes.reports.notebook import report_fragment
from passes.reports.places import region
from passes.reports.sarif import LEVELS, report_sarif
from passes.reports.terminal import show
from passes.reports.text import report_details, report_text
from tests.benchmarks.compile import mixed as long_graph
from tests.reports import Elements, audited, example, mixed, program

GOLDEN = Path(__file__).parent / "golden"
REPORTS: dict[str, Callable[[], CastReport]] = {
    "mixed": mixed,
    "audited": audited,
    "none": lambda: cast_report(Graph("none")),
    "filtered": lambda: mixed().only(kind="legalization"),
    "parsed": lambda: cast_report(Graph.parse(str(mixed().graph))),
    "image": lambda: cast_report(example("image_pipeline").pipeline("tensor_float32")),
}


@pytest.fixture(params=list(REPORTS))
def report(request: pytest.FixtureRequest) -> CastReport:
    return REPORTS[request.param]()


def source_of(row: CastRow) -> list[str]:
    return Path(row.location.file).read_text(encoding="utf-8").splitlines()


# -- all forms


def test_the_formats() -> None:
    assert list(REPORT_FORMATS) == ["text", "details", "markdown", "html", "json", "sarif"]
    report = mixed()
    for name, write in REPORT_FORMATS.items():
        assert write(report) == write(mixed()), name  # the same each time
        assert "mixed" in write(report) or name == "sarif"
    assert str(report) == REPORT_FORMATS["text"](report)
    assert report.to_json() == REPORT_FORMATS["json"](report)


def test_each_form_names_each_lossy_cast(report: CastReport) -> None:
    lossy = report.only(exact=False)
    for name in ("text", "details", "markdown", "html", "sarif"):
        written = REPORT_FORMATS[name](report)
        for row in lossy:
            assert row.location.file.rpartition("/")[2] in written, (name, row)
            assert f"{row.location.line}" in written, (name, row)
        if lossy and name != "text":
            assert written.count("becomes") >= len({row.location.line for row in lossy}), name


# -- words


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("int16", "float32", "exact"),
        ("int16", "float16", "precision"),
        ("int64", "float16", "range"),
        ("float64", "float32", "range"),
        ("float32", "bfloat16", "precision"),  # the same exponents
        ("float32", "tensor_float32", "precision"),
        ("int32", "int8", "range"),
        ("int8", "uint8", "sign"),
        ("uint8", "int8", "range"),
        ("float64", "int64", "range"),
        ("float8_e4m3fn", "float8_e4m3fnuz", "special"),
    ],
)
def test_the_severity_of_a_cast(source: str, target: str, expected: str) -> None:
    graph = Graph("severity")
    graph.output(graph.input(source, "n").cast(target))
    (row,) = cast_report(graph)
    found = words.severity(row)
    assert found == expected or (found in row.loss.kinds and expected == "special")
    assert found == "exact" or found in row.loss.kinds


def test_cascades_tell_each_row_once(report: CastReport) -> None:
    told = [row for lead, following in words.cascades(report) for row in (lead, *following)]
    assert Counter(map(id, told)) == Counter(map(id, report))
    shown = set(map(id, report))
    for lead, following in words.cascades(report):
        assert lead.cause is None or id(lead.cause) not in shown
        assert all(row.cause is lead for row in following)


def test_the_bytes_of_a_cast_that_serves_two_uses_count_once() -> None:
    graph = Graph("shared")
    x, y = graph.input("int16", (10,)), graph.input("float32", (10,))
    graph.output(x + y, y * x)
    report = cast_report(graph)
    assert len(report) == 2 and words.added(report) == 40


def test_texts_are_cut_and_cleaned() -> None:
    assert words.printable("a\x1b[31m\nb\u202ec") == "a\ufffd[31m\ufffdb\ufffdc"
    assert words.printable("x" * 10_000, 20) == "x" * 19 + "…"
    assert words.percent(0.004) == "< 1 %" and words.percent(0.25) == "25 %"


# -- places


def test_the_region_is_the_text_of_the_operand() -> None:
    report = REPORTS["image"]()
    found: list[tuple[str, str]] = []
    for row in report:
        place = region(row)
        line = source_of(row)[place.line - 1]
        assert place.line == place.end_line
        found.append((line[place.column - 1 : place.end_column - 1], str(row.source)))
    assert sorted(found) == [
        ("(1 / GAMMA)", "weak_float"),
        ("GAMMA", "weak_float"),
        ("image", "uint8"),
        ("ops.round(x.clip(0, 255))", "tensor_float32"),
        ("x", "float32"),
    ]


def test_the_region_of_an_operand_on_another_line() -> None:
    (row,) = [row for row in mixed() if row.op == "maximum"]
    place = region(row)
    assert place.line == row.location.line + 1
    assert source_of(row)[place.line - 1][place.column - 1 : place.end_column - 1] == "big"


# -- text


def test_details_point_at_the_operand() -> None:
    report = REPORTS["image"]()
    lines = report_details(report).splitlines()
    at = next(i for i, line in enumerate(lines) if "x * g.scalar[dtype]" in line)
    start = lines[at].index("x * g.scalar")
    assert lines[at + 1][start:] == "^"
    assert lines[at - 3] == "precision: float32 -> tensor_float32 under max (f32 -> tf32)"
    assert lines[at - 2].endswith(":38:13 [normalise], lhs of multiply")


def test_details_are_limited_and_say_so() -> None:
    report = mixed()
    cascades = len(words.cascades(report))
    assert cascades > 2
    assert report_details(report, most=2).endswith(f"\n\n... and {cascades - 2} more")
    assert " more\n" not in report_details(report, most=cascades)


def test_what_a_run_saw_is_told_where_there_was_one() -> None:
    titles = report_text(audited()).splitlines()[4]
    assert titles.split()[-3:] == ["changed", "error", "share"]
    assert "changed" not in report_text(mixed())
    details = report_details(audited())
    assert "12 of 1000 elements changed, 3 overflowed, 4 underflowed, 1 made NaN" in details
    assert "at worst 2049 -> 2048.0" in details.replace("2048,", "2048.0,")
    assert "75 % of the error of total" in details
    assert "total: float16, 12 of 1000 differ from wide arithmetic" in details


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_goes_to_no_terminal_is_plain() -> None:
    stream = io.StringIO()
    show(mixed(), stream)
    assert stream.getvalue() == report_details(mixed()) + "\n"


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    show(mixed(), stream)
    assert stream.getvalue() == report_details(mixed()) + "\n"


def test_without_rich_a_terminal_gets_it_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("passes.reports.terminal.find_spec", lambda name: None)
    stream = Terminal()
    show(mixed(), stream)
    assert stream.getvalue() == report_details(mixed()) + "\n"


@contextmanager
def pseudo_terminal() -> Iterator[tuple[TextIO, Callable[[], str]]]:
    reader, writer = pty.openpty()
    stream = os.fdopen(writer, "w", encoding="utf-8")

    def read() -> str:
        print("END", file=stream, flush=True)
        found = b""
        while not found.endswith(b"END\r\n"):
            found += os.read(reader, 1 << 16)
        return found.removesuffix(b"END\r\n").decode()

    try:
        yield stream, read
    finally:
        stream.close()
        os.close(reader)


def test_with_rich_a_terminal_gets_the_same_text_in_colour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ansi = pytest.importorskip("rich.ansi", reason="rich is not installed")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    report = mixed()
    with pseudo_terminal() as (stream, read):
        show(report, stream, most=1)
        written = read().replace("\r\n", "\n")
    assert "\x1b[1;31mrange\x1b[0m" in written
    plain = "\n".join(line.plain for line in ansi.AnsiDecoder().decode(written))
    assert plain.rstrip("\n") == report_details(report, most=1)


# -- Markdown


def test_markdown_has_a_table_of_one_width(report: CastReport) -> None:
    written = report_markdown(report)
    assert written.startswith("### Casts of `")
    table = [line for line in written.splitlines() if line.startswith("|")]
    if report.rows:
        own = table[-len(report) - 2 :]
        assert len({line.replace("\\|", "").count("|") for line in own}) == 1
        assert len(own) == len(report) + 2


def test_markdown_is_limited_and_says_so() -> None:
    report = cast_report(long_graph(1000))
    written = report_markdown(report, most=5, details=2)
    assert f"... and {len(report) - 5} more" in written
    assert f"*... and {len(words.cascades(report)) - 2} more*" in written
    assert len(report_markdown(report)) < 65_000


# -- JSON


def walked(value: Any, described: Any, defs: Any, path: str = "") -> None:
    """A small reading of a schema: types, properties, consts, enums, references and items."""
    if "$ref" in described:
        described = defs[described["$ref"].rpartition("/")[2]]
    if "oneOf" in described:
        described = described["oneOf"][value is None]
        return walked(value, described, defs, path)
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    kinds |= {"number": (int, float), "null": type(None)}
    if "type" in described:
        named = described["type"]
        allowed = [named] if isinstance(named, str) else named
        assert any(isinstance(value, kinds[one]) for one in allowed), (path, value)
    assert "const" not in described or value == described["const"], path
    assert "enum" not in described or value in described["enum"], path
    if isinstance(value, dict) and "properties" in described:
        assert set(value) == set(described["properties"]) == set(described["required"]), path
        for name, one in value.items():
            walked(one, described["properties"][name], defs, f"{path}/{name}")
    for one in value if isinstance(value, list) else ():
        walked(one, described["items"], defs, f"{path}[]")
    return None


def test_json_is_as_its_schema_says(report: CastReport) -> None:
    document = json.loads(report_json(report))
    walked(document, schema(), schema()["$defs"])
    assert len(document["casts"]) == len(report)
    assert document["version"] == 1


def test_json_has_what_the_rows_have(report: CastReport) -> None:
    document = json.loads(report_json(report))
    assert document["casts"] == [json.loads(json.dumps(row.to_json())) for row in report]
    assert document["outputs"] == [json.loads(json.dumps(one.to_json())) for one in report.outputs]


def test_json_validates(report: CastReport) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    document = json.loads(report_json(report))
    assert not list(validator.iter_errors(document))
    if document["casts"]:
        document["casts"][0]["loss"]["kinds"] = ["everything"]
        assert list(validator.iter_errors(document))


def described(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.get("properties", {}).items():
            yield name, one
        for one in value.values():
            yield from described(one)


def test_every_field_of_the_schema_is_described() -> None:
    found = list(described(schema()))
    assert len(found) > 40
    for name, one in found:
        assert "$ref" in one or one["description"].endswith("."), name
    assert all("description" in one for one in schema()["$defs"].values())


# -- SARIF


def results(report: CastReport) -> list[Any]:
    return json.loads(report_sarif(report))["runs"][0]["results"]


def test_sarif_validates_against_the_official_schema(report: CastReport) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    official = json.loads((GOLDEN / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(official)
    log = json.loads(report_sarif(report))
    assert not [error.message for error in validator.iter_errors(log)]
    log["runs"][0]["results"] = [{"level": "bad"}]
    assert list(validator.iter_errors(log))


def test_sarif_has_a_result_for_each_row(report: CastReport) -> None:
    log = json.loads(report_sarif(report))
    (run,) = log["runs"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(report)
    for result, row in zip(run["results"], report, strict=True):
        assert ids[result["ruleIndex"]] == result["ruleId"] == f"cast/{words.severity(row)}"
        implicit = row.kind in ("implicit", "literal")
        assert result["level"] == (LEVELS[words.severity(row)] if implicit else "note")
        assert ("relatedLocations" in result) == (row.cause is not None)
    prints = [result["partialFingerprints"]["cast/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_marks_the_operand_and_replaces_the_expression() -> None:
    report = REPORTS["image"]()
    for result, row in zip(results(report), report, strict=True):
        lines = source_of(row)
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"] == {
            "uri": "examples/image_pipeline.py",
            "uriBaseId": "%SRCROOT%",
        }
        assert " ".join(cut(lines, physical["region"]).split()).strip("()") == row.text.strip("()")
        for fix in result.get("fixes", ()):
            (change,) = fix["artifactChanges"]
            (one,) = change["replacements"]
            assert row.expression is not None
            assert cut(lines, one["deletedRegion"]) == row.expression.text
            assert one["insertedContent"]["text"] == replacement(row) == row.fix
    assert sum("fixes" in result for result in results(report)) == 2


def cut(lines: list[str], place: dict[str, int]) -> str:
    assert place["startLine"] == place["endLine"]
    return lines[place["startLine"] - 1][place["startColumn"] - 1 : place["endColumn"] - 1]


def test_fingerprints_stay_while_lines_move() -> None:
    text = "def build(g, x, y):\n    g.output(x * y)\n"
    moved = "# a line more\n\n" + text
    found: list[str] = []
    for version in (text, moved):
        graph = Graph("moving")
        x, y = graph.input("int16", "n"), graph.input("float16", "n")
        program(version, "moving.py")["build"](graph, x, y)
        (result,) = results(cast_report(graph))
        found.append(result["partialFingerprints"]["cast/v1"])
        found.append(str(result["locations"][0]["physicalLocation"]["region"]["startLine"]))
    assert found[0] == found[2] and (found[1], found[3]) == ("2", "4")


# -- HTML


def test_the_page_is_whole_and_its_links_lead_somewhere(report: CastReport) -> None:
    page = Elements(report_html(report))
    ids = page.ids()
    assert len(set(ids)) == len(ids)
    assert all(link.startswith("#") and link[1:] in ids for link in page.links())
    assert sum(name == "tbody" for name in page.names) >= len(report)
    text = " ".join(page.texts)
    for row in report:
        assert f"{row.location.line}" in text


def test_the_page_marks_operands_in_their_lines() -> None:
    page = report_html(REPORTS["image"]())
    assert '">image</mark> * gains' in page
    assert '">GAMMA</mark></code>' in page
    assert '">(1 / GAMMA)</mark> * 255' in page


def test_a_huge_page_is_cut_and_says_so() -> None:
    report = cast_report(long_graph(3000))
    page = report_html(report, most=100)
    assert page.count("<tbody") == 100
    assert f"The 100 worst of {len(report):,} rows are here" in page
    assert f"&times; {len(report) // 4:,}" in page or "&times; " in page


def test_the_page_tells_what_a_run_saw() -> None:
    page = report_html(audited())
    for told in ("12 of 1,000", "75 %", "at worst 2049", "Beside the same program"):
        assert told in page, told
    assert "Share" not in report_html(mixed())


def test_a_notebook_shows_a_table(report: CastReport) -> None:
    fragment = report._repr_html_()
    page = Elements(fragment)
    assert page.names[:2] == ["div", "style"] and not page.links()
    assert page.names.count("tr") == (len(report) + 1 if report.rows else 0)
    assert report_fragment(report, most=1).count("<tr>") == (2 if report.rows else 0)


# -- large graphs


def test_rows_that_are_alike_are_told_once() -> None:
    """The same texts with and without what is shared, on a graph of many alike rows."""
    report = cast_report(long_graph(600))
    document = json.loads(report_json(report))["casts"]
    assert document == [json.loads(json.dumps(row.to_json())) for row in report]
    alone = [results(report.only()._with([row]))[0]["message"] for row in report[:50]]
    assert alone == [one["message"] for one in results(report)[:50]]
