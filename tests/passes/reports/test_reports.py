"""The forms of the report: what each must say, and that all say the same."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from graphir import Graph
from graphir.display import printable
from graphir.passes import CastReport, cast_report
from graphir.passes.reports import REPORT_FORMATS, phrases
from graphir.passes.reports.html import report_fragment, report_html
from graphir.passes.reports.phrases import region
from graphir.passes.reports.text import report_details, report_markdown, report_text
from tests.support.reports import REPORTS, Elements, assigned, audited, mixed, source_of
from tests.support.scaling import layers, uses
from tests.support.tables import every


@pytest.fixture(params=list(REPORTS))
def report(request: pytest.FixtureRequest) -> CastReport:
    return REPORTS[request.param]()


# -- all forms


FORMS = ("text", "details", "markdown", "html", "json", "sarif")


def test_the_formats() -> None:
    assert list(REPORT_FORMATS) == [*FORMS, "concise", "github"]
    report = mixed()
    for name, write in REPORT_FORMATS.items():
        assert write(report) == write(mixed()), name  # the same each time
        assert "mixed" in write(report) or name not in FORMS[:-1]
    assert str(report) == REPORT_FORMATS["text"](report)
    assert report.to_json() == REPORT_FORMATS["json"](report)


def test_each_form_names_each_lossy_cast(report: CastReport) -> None:
    lossy = report.only(exact=False)
    for name in (*FORMS[:-2], "sarif"):
        written = REPORT_FORMATS[name](report)
        for row in (site.row for site in lossy.sites) if name == "text" else lossy:
            assert row.location.file.rpartition("/")[2] in written, (name, row)
            assert f"{row.location.line}" in written, (name, row)
        if lossy and name != "text":
            assert written.count("becomes") >= len({row.location.line for row in lossy}), name


# -- words


def test_cascades_tell_each_row_once(report: CastReport) -> None:
    told = [
        row
        for cascade in report.sites.cascades()
        for row in (*cascade.site.rows, *cascade.following)
    ]
    assert Counter(map(id, told)) == Counter(map(id, report))
    shown = set(map(id, report))
    for cascade in report.sites.cascades():
        lead = cascade.site.row
        first = lead.cause is None or id(lead.cause) not in shown
        assert first or (lead.cause.exact and not lead.exact)
        assert all(row.cause in cascade.site.rows for row in cascade.following)


def test_what_loses_leads_and_what_follows_exactly_is_folded() -> None:
    graph = Graph("leading")
    wide = graph.input("int8", (4,)) + graph.input("float16", (4,))  # exact
    total = wide * graph.input("int16", (4,))  # the first loss
    graph.output(total + graph.input("int16", (4,)), total - graph.input("int8", (4,)))
    report = cast_report(graph)
    exact, lossy, again, folded = report.in_order()
    assert lossy.cause is again.cause is folded.cause is exact
    leading = {id(site.row): following for site, following in report.sites.cascades()}
    assert set(leading) == {id(exact), id(lossy), id(again)}
    assert leading[id(exact)] == [folded]


def test_other_rule_sets_are_grouped_by_what_they_do() -> None:
    report = cast_report(Graph.parse(str(mixed().graph)))
    row = next(row for row in report if row.op == "multiply" and row.kind == "implicit")
    told = phrases.elsewhere(row).split("; ")
    assert told[-1].startswith("refuse: ") and len(told) > 1
    names = [name for part in told for name in part.partition(": ")[2].split(", ")]
    assert sorted(names) == sorted(row.others)
    for part in told[:-1]:
        answer, _, rest = part.partition(": ")
        assert all(str(row.others[name]) == answer for name in rest.split(", "))


def test_texts_are_cut_and_cleaned() -> None:
    assert printable("a\x1b[31m\nb\u202ec") == "a\ufffd[31m\ufffdb\ufffdc"
    assert printable("x" * 10_000, 20) == "x" * 19 + "…"
    assert printable("a\tb\n", None, keep="\t") == "a\tb\ufffd"
    assert phrases.percent(0.004) == "< 1 %" and phrases.percent(0.25) == "25 %"


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
    assert lines[at - 3] == "cast/precision: float32 -> tensor_float32 under max (f32 -> tf32)"
    assert lines[at - 2].endswith(":38:13 [normalise], lhs of multiply")


def test_details_are_limited_and_say_so() -> None:
    report = mixed()
    cascades = len(report.lines.cascades())
    assert cascades > 2
    assert report_details(report, most=2).endswith(f"\n\n... and {cascades - 2} more")
    assert " more\n" not in report_details(report, most=cascades)


def test_what_a_run_saw_is_told_where_there_was_one() -> None:
    titles = next(x for x in report_text(audited()).splitlines() if x.startswith("where"))
    assert titles.split()[-4:] == ["changed", "error", "share", "times"]
    assert "changed" not in report_text(mixed())
    details = report_details(audited())
    assert "12 of 1000 elements changed, 3 overflowed, 4 underflowed, 1 made NaN" in details
    assert "at worst 2049 -> 2048.0" in details.replace("2048,", "2048.0,")
    assert "75 % of the error of total" in details
    assert "total: float16, 12 of 1000 differ from wide arithmetic" in details


# -- Markdown


def test_markdown_has_a_table_of_one_width(report: CastReport) -> None:
    written = report_markdown(report)
    assert written.startswith("### Casts of `")
    table = [line for line in written.splitlines() if line.startswith("|")]
    if report.rows:
        own = table[-len(report.lines) - 2 :]
        assert len({line.replace("\\|", "").count("|") for line in own}) == 1
        assert len(own) == len(report.lines) + 2


def test_markdown_is_limited_and_says_so() -> None:
    report = cast_report(layers(500))
    written = report_markdown(report, most=5, details=2)
    assert f"... and {len(report) - 5} more" in written
    assert f"\n... and {len(report.lines.cascades()) - 2} more\n```" in written
    assert len(report_markdown(report)) < 65_000


# -- HTML


def test_the_page_is_whole_and_its_links_lead_somewhere(report: CastReport) -> None:
    page = Elements(report_html(report))
    ids = page.ids()
    assert len(set(ids)) == len(ids)
    assert all(link.startswith("#") and link[1:] in ids for link in page.links())
    assert sum(name == "tbody" for name in page.names) >= len(report.lines)
    text = " ".join(page.texts)
    for row in report:
        assert f"{row.location.line}" in text


def test_the_page_marks_operands_in_their_lines() -> None:
    page = report_html(REPORTS["image"]())
    marks = re.findall("<mark [^>]*>(.*?)</mark>", page)
    assert {"image", "x", "GAMMA", "1 / GAMMA", "ops.round("} <= {*marks}


def test_a_huge_page_is_cut_and_says_so() -> None:
    report = cast_report(layers(1000))
    page = report_html(report, most=100)
    assert page.count("<tbody") == 100
    assert f"The 100 worst of {len(report):,} rows are here" in page
    assert 'data-label="Times"' not in page
    assert "&times; 1,000" in report_html(cast_report(uses(1000)))


def test_the_page_tells_what_a_run_saw() -> None:
    page = report_html(audited())
    for told in ("12 of 1,000", "75 %", "at worst 2049", "total: float16, 12 of 1000 differ"):
        assert told in page, told
    assert "Share" not in report_html(mixed())


def test_a_notebook_shows_a_table(report: CastReport) -> None:
    fragment = report._repr_html_()
    page = Elements(fragment)
    assert page.names[:2] == ["div", "style"] and not page.links()
    tables = [fragment, report_fragment(report, most=1)]
    counts = [table.partition("</table>")[0].count("<tr>") for table in tables]
    assert counts == ([len(report.lines) + 1, 2] if report.rows else [0, 0])


WRITTEN = "written to an array of that dtype"


@every("name", REPORT_FORMATS)
def test_casts_of_assignments_are_of_that_kind(name: str) -> None:
    report = assigned().only("assignment")
    assert len(report) == 2
    document = REPORT_FORMATS[name](report)
    if name == "json":
        kinds = [(cast["kind"], cast["rule"]) for cast in json.loads(document)["casts"]]
        assert kinds == [("assignment", "assign")] * 2
    else:
        said = "result of add  float64  float32  assignment  assign: f64 -> f32"
        assert (" ".join(said.split()) if name == "text" else WRITTEN) in " ".join(document.split())
