"""Sites: all formats merge the same rows, and count a cast once however many uses it has."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import CastReport, cast_report
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.html import report_fragment
from graphir.passes.reports.sarif import report_sarif
from graphir.runtime import audit
from tests.support.reports import REPORTS, Elements
from tests.support.scaling import PROGRAMS
from tests.support.tables import every, sampled


def rounded(n: int) -> Graph:
    """One cast of int32 to bfloat16 with n uses on one line."""
    graph = Graph("rounded", rules="max")
    x = graph.input("int32", (3,), name="x")
    total = graph.input("bfloat16", (3,), name="f")
    for _ in range(n):
        total = total + x
    graph.output(total)
    return graph


def run(graph: Graph, blame: bool = True) -> CastReport:
    """The audit of a graph that rounds two of three integers."""
    zeros = np.zeros(3, graph.inputs[1].dtype.to_numpy())
    return audit(graph, np.array([257, 1021, 3], np.int32), zeros, blame=blame)


def percents(written: str) -> set[int]:
    """The percentages that a text or a page shows."""
    text = " ".join(Elements(written).texts) if written.startswith("<") else written
    return {int(number) for number in re.findall(r"(\d+) %", text)}


@every("n", [1, 7, 300])
def test_a_cast_of_many_uses_has_its_share_once(n: int) -> None:
    report = run(rounded(n)).only(kind="implicit")  # 300 roundings in a row are a loss too
    share = report.outputs[0].shares
    assert share is not None
    (cast,) = {row.symbol.index for row in report}
    (site,) = report.sites
    assert (site.times, site.shares) == (n, (share[cast],))
    assert site.measured == report[0].measured and site.measured.changed == 2
    assert site.elements == 3
    expected = {round(100 * share[cast]), *percents(" ".join(report.sentences))}
    for name in ("text", "details", "markdown", "html"):
        assert percents(REPORT_FORMATS[name](report)) == expected, name
    assert percents(report_fragment(report)) == expected
    (entry,) = json.loads(report.to_json())["casts"]
    assert entry["shares"] == [share[cast]]
    assert (entry["times"], entry["casts"], entry["measured"]["changed"]) == (n, [cast], 2)
    *_, result = json.loads(report_sarif(report))["runs"][0]["results"]  # after its causes
    assert result.get("occurrenceCount", 1) == n
    assert "2 of 3 elements changed" in result["message"]["text"]


def test_a_cast_with_uses_at_two_places_has_one_row() -> None:
    graph = Graph("places", rules="max")
    x, f = graph.input("int32", (3,), name="x"), graph.input("bfloat16", (3,), name="f")
    total = f + x
    graph.output(total * x)
    report = run(graph)
    first, second = report.in_order()
    assert first.symbol is second.symbol and first.location.line < second.location.line
    for order in (report, report.in_order(), report.only(kind="implicit")):
        (site,) = order.sites
        assert site.row is first and site.times == 2 and site.shares == first.shares
        assert [x for x in order.sites if second in x.rows] == [site]
    last = str(report.only(kind="implicit")).splitlines()[-1]
    assert f":{first.location.line}:" in last and last.split()[-1] == "2"
    again = f"2, also at {second.location.layered}"
    assert f" = times     {again}\n" in REPORT_FORMATS["details"](report)
    assert f" = times     {again}\n" in REPORT_FORMATS["markdown"](report)
    page = REPORT_FORMATS["html"](report)
    assert f"<dd>{again}</dd>" in page
    marked = [int(x) for x in re.findall(r'<li id="l0-(\d+)" class="hit" tabindex', page)]
    assert marked == [first.location.line, second.location.line]
    (entry,) = json.loads(report.to_json())["casts"]
    assert entry["uses"] == [first.location.to_json(), second.location.to_json()]
    results = json.loads(report_sarif(report))["runs"][0]["results"]
    (result,) = [each for each in results if each["ruleId"].startswith("cast/")]
    assert f"uses: {again}".replace("[", "\\[").replace("]", "\\]") in result["message"]["text"]


def test_the_row_of_a_use_outside_a_filter_stands_at_the_first_use_inside() -> None:
    graph = Graph("layers", rules="max")
    x, f = graph.input("int32", (3,), name="x"), graph.input("bfloat16", (3,), name="f")
    with graph.layer("first"):
        total = f + x
    with graph.layer("second"):
        graph.output(total * x)
    (site,) = cast_report(graph).only(layer="second").sites
    assert (site.times, site.row.layer) == (1, "second")


def test_shares_without_blame_are_unknown() -> None:
    report = run(rounded(3), blame=False)
    (site,) = report.sites
    assert site.shares is site.share is report[0].shares is None
    for name in ("text", "details", "markdown", "html"):
        written = REPORT_FORMATS[name](report)
        assert not percents(written), name
        assert "unknown" in written, name
    assert "unknown" in report_fragment(report)
    (entry,) = json.loads(report.to_json())["casts"]
    assert entry["shares"] is None
    assert REPORT_FORMATS["text"](cast_report(rounded(3))).count("unknown") == 0


@sampled(2)
@every("name", [*REPORTS, *PROGRAMS])
def test_all_formats_merge_alike(name: str) -> None:
    report = REPORTS[name]() if name in REPORTS else cast_report(PROGRAMS[name](7))
    sites = report.sites
    assert sum(site.times for site in sites) == len(report)
    firsts = {row.symbol.index: row for row in sorted(report, key=lambda x: -x.place)}
    assert len({(row.conversion, row.location) for row in firsts.values()}) == len(sites)
    times = [site.times for site in sites]
    assert [entry["times"] for entry in json.loads(report.to_json())["casts"]] == times
    results = json.loads(report_sarif(report))["runs"][0]["results"]
    lossy = [site.times for site in sites if not site.row.exact]
    assert [result["occurrenceCount"] for result in results] == lossy
    assert sum(site.times for site in report.in_full().lines) == len(report)
    times = [site.times for site in report.lines]
    page = Elements(REPORT_FORMATS["html"](report))
    assert len([one for one in page.ids() if re.fullmatch(r"c\d+", one)]) == len(times)
    [cells, *_] = report_fragment(report).split("</table>")
    assert cells.count("<tr>") == len(times) + bool(times)
    if not times:
        return
    repeated = max(times) > 1
    text = str(report).splitlines()
    start = next(i for i, line in enumerate(text) if line.startswith("where"))
    table = text[start:][: len(times) + 1]
    assert table[0].endswith("times") == repeated
    if repeated:
        assert [int(line.split()[-1]) for line in table[1:]] == times
    markdown = REPORT_FORMATS["markdown"](report).splitlines()
    at = next(i for i, line in enumerate(markdown) if line.startswith("| where"))
    rows = markdown[at + 2 :][: len(times)]
    assert all(line.startswith("|") for line in rows) and not markdown[at + 2 + len(times)]
    if repeated:
        assert [int(line.split(" | ")[-1].strip(" |")) for line in rows] == times


def test_the_errors_of_merged_casts_are_summed() -> None:
    """Each step of a loop has a cast of its own: counts and shares add up, once for each."""
    graph = Graph("loop", rules="max")
    x, wide = graph.input("float16", (3,), name="x"), graph.input("float32", (3,), name="w")
    for _ in range(5):
        x = (x.cast("float32") + wide).cast("float16")
    graph.output(x)
    report = audit(graph, np.ones(3, np.float16), np.full(3, 0.0001, np.float32))
    site = next(site for site in report.sites if not site.row.exact)
    casts = [row.measured for row in site.casts]
    assert site.times == len(casts) == 5 and site.elements == 15
    assert site.measured is not None and site.shares is not None
    assert site.measured.changed == sum(one.changed for one in casts if one is not None)
    assert site.shares[0] == pytest.approx(1, abs=0.01)
