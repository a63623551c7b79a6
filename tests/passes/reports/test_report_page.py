"""The page of the report in a real browser: it sorts, filters, unfolds, and leads to the lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphir.passes import CastReport, cast_report
from graphir.passes.reports import phrases
from graphir.passes.reports.html import report_html
from tests.benchmarks.compile import mixed as long_graph
from tests.passes.reports.browser import CHROMIUM, Browser, Page, browser
from tests.passes.reports.hostile_reports import HOSTILE, name_rules, report_of
from tests.support.loading import example
from tests.support.reports import audited, mixed
from tests.support.tables import quick

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

SHOWN = "[...document.querySelectorAll('#table tbody')].filter(one => !one.hidden)"
IDS = f"{SHOWN}.map(one => one.id)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


class Opener:
    """Opens reports as pages; each must have loaded nothing else and complained of nothing."""

    def __init__(self, running: Browser, folder: Path) -> None:
        self._running, self._folder = running, folder
        self.pages: list[Page] = []

    def __call__(self, report: CastReport, width: int = 1400, dark: bool = False) -> Page:
        self._running.events.clear()
        file = self._folder / "report.html"
        file.write_text(report_html(report), encoding="utf-8")
        page = Page(self._running, file.as_uri(), width, dark)
        self.pages.append(page)
        return page


@pytest.fixture
def opened(running: Browser, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(running, tmp_path)
    yield opener
    for page in opener.pages:
        assert page.complaints() == []
        assert {url.partition("#")[0] for url in page.requests()} == {
            (tmp_path / "report.html").as_uri()
        }


def image() -> CastReport:
    return cast_report(example("image_pipeline").pipeline("tensor_float32"))


def ids(*rows: int) -> list[str]:
    return [f"c{row}" for row in rows]


def ordered(report: CastReport, key: Any, reverse: bool = False) -> list[str]:
    return ids(*sorted(range(len(report)), key=lambda i: key(report[i]), reverse=reverse))


def head(title: str) -> str:
    at = ["Where", "Operand", "Cast", "Loss", "Bytes", "Damage"].index(title) + 2
    return f"#table th:nth-child({at})"


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(opened: Opener) -> None:
    report = image()
    page = opened(report)
    assert page.value(IDS) == ids(*range(len(report)))
    page.click(f"{head('Where')} button")
    by_line = ordered(report, lambda row: row.location.line)
    assert page.value(IDS) == by_line != ids(*range(len(report)))
    assert page.value(f"document.querySelector('{head('Where')}').ariaSort") == "ascending"
    page.click(f"{head('Where')} button")
    assert page.value(IDS) == by_line[::-1]
    assert page.value(f"document.querySelector('{head('Where')}').ariaSort") == "descending"
    page.click(f"{head('Damage')} button")  # numbers: the greatest first
    assert page.value(IDS) == ordered(report, lambda row: row.damage, reverse=True)
    sorts = "[...document.querySelectorAll('#table th[aria-sort]')].map(one => one.ariaSort)"
    assert page.value(sorts) == ["none"] * 5 + ["descending"]


def test_sorting_by_number_is_by_number(opened: Opener) -> None:
    report = mixed()
    page = opened(report)
    page.click(f"{head('Bytes')} button")
    keys = page.value(f"{SHOWN}.map(one => +one.rows[0].cells[5].dataset.key)")
    assert keys == sorted(keys, reverse=True) and len(set(keys)) > 2


def test_the_keyboard_will_do(opened: Opener) -> None:
    report = image()
    page = opened(report)
    page.value(f"document.querySelector('{head('Where')} button').focus()")
    page.press("Enter", 13)
    assert page.value(IDS) == ordered(report, lambda row: row.location.line)
    page.value("document.querySelector('.toggle').focus()")
    page.press(" ", 32)
    assert page.value("document.querySelector('.toggle').ariaExpanded") == "true"
    page.press("Tab", 9)
    assert page.value("document.activeElement.className") == "where"
    page.press("Enter", 13)
    page.until("location.hash.startsWith('#l0-')")


def test_a_click_on_a_row_follows_to_its_line_and_the_chip_leads_back(opened: Opener) -> None:
    report = image()
    page = opened(report)
    at = next(i for i, row in enumerate(report) if row.text == "GAMMA")
    line = report[at].location.line
    page.click(f"#c{at} tr.cast td:nth-child(5)")
    page.until(f"location.hash === '#l0-{line}'")
    target = "document.querySelector('li:target')"
    assert page.value(f"{target}.querySelector('.number').textContent") == str(line)
    assert page.value(f"{target}.querySelector('mark').textContent") == "GAMMA"
    assert page.value("document.activeElement === document.querySelector('li:target')")
    page.until(f"(r => r.top >= 0 && r.bottom <= innerHeight)({target}.getBoundingClientRect())")
    page.click(f"#l0-{line} a.chip")
    page.until(f"location.hash === '#c{at}'")
    row = "document.querySelector('tbody:target')"
    assert page.value(f"{row}.id") == f"c{at}"
    page.until(f"getComputedStyle({row}.rows[1]).display === 'table-row'")


def test_details_unfold_and_fold(opened: Opener) -> None:
    report = image()
    page = opened(report)
    at = next(i for i, row in enumerate(report) if row.text == "x")
    more = f"document.querySelector('#c{at}-more')"
    seen = f"getComputedStyle({more}).display !== 'none'"
    assert not page.value(seen)
    page.click(f"#c{at} .toggle")
    assert page.value(seen) and page.value("location.hash") == ""
    assert "lhs of multiply" in page.value(f"{more}.innerText")
    page.click(f"#c{at} .toggle")
    assert not page.value(seen)


def test_filters_by_text_and_by_loss(opened: Opener) -> None:
    report = image()
    page = opened(report)
    page.click("#filter")
    page.write("NORMALISE")
    layer = ids(*(i for i, row in enumerate(report) if row.layer == "normalise"))
    assert page.value(IDS) == layer and len(layer) == 2
    assert page.value("document.querySelector('#count').textContent") == "2 of 5 rows"
    page.click(".loss.exact")
    assert page.value(IDS) == [
        one for one in layer if phrases.level(report[int(one[1:])]) != "exact"
    ]
    hidden = next(i for i, row in enumerate(report) if row.exact)
    page.click(f"#l0-{report[hidden].location.line} a.chip")  # a hidden row shows itself again
    page.until(f"!document.querySelector('#c{hidden}').hidden")
    assert len(page.value(IDS)) == len(report)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_sticks_out_and_everything_can_be_read(
    opened: Opener, width: int, dark: bool
) -> None:
    for report in (image(), audited(), cast_report(long_graph(900))):
        page = opened(report, width, dark)
        assert page.value("document.documentElement.scrollWidth") <= width
        wide = "document.querySelector('#casts .scroll')"
        assert width == 400 or page.value(f"{wide}.scrollWidth <= {wide}.clientWidth")
        assert page.value(CONTRASTS) == []


CONTRASTS = """
(() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = (one) => {
    for (; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  for (const one of document.querySelectorAll("body :not(script, svg, svg *)")) {
    if (![...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    if (one.matches(".number") && one.closest(".lines")) continue;
    const [a, b] = [parse(getComputedStyle(one).color), paper(one)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`);
  }
  return [...bad];
})()
"""


@pytest.mark.parametrize(
    "name", quick(["script", "end of a script", "attribute", "entity", "long"], 5)
)
def test_hostile_names_run_nothing(
    opened: Opener, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_rules(HOSTILE[name], monkeypatch)
    page = opened(report_of(HOSTILE[name]))
    assert page.value("document.scripts.length") == 1
    assert page.value("document.querySelectorAll('[onmouseover]').length") == 0
    page.click(f"{head('Cast')} button")
    page.click(".toggle")
    assert page.value("document.documentElement.scrollWidth") <= 1400
