"""Names and texts from outside are escaped in every form of the report."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import pytest

from graphir.passes.analysis.casts import CastRow
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.html import report_fragment, report_html
from graphir.passes.reports.sarif import report_sarif
from graphir.passes.reports.text import code
from tests.passes.reports.hostile_reports import HOSTILE, name_rules, report_of
from tests.support.reports import Elements
from tests.support.sarif import checked_results, concise_lines

FORMATS = [*REPORT_FORMATS, "notebook"]
WRITERS = {**REPORT_FORMATS, "notebook": report_fragment}
HARMLESS = "plain"


@pytest.fixture(params=list(HOSTILE))
def hostile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(CastRow, "others", {"<b>one</b>": "refuses: \x1b[31m<i>`|"})
    for text in (HOSTILE[request.param], HARMLESS):
        name_rules(text, monkeypatch)
    return HOSTILE[request.param]


@pytest.mark.parametrize("name", FORMATS)
def test_the_form_stays_whole(name: str, hostile: str) -> None:
    written = WRITERS[name](report_of(hostile))
    again = WRITERS[name](report_of(hostile))
    assert written == again
    assert all(c.isprintable() or c in "\n\t" for c in written), "control characters"
    written.encode()  # no lone surrogates


def test_pages_have_the_elements_that_harmless_names_give(hostile: str) -> None:
    for write in (report_html, report_fragment):
        page, harmless = Elements(write(report_of(hostile))), Elements(write(report_of(HARMLESS)))
        # A line break may stand after each slash of a path.
        assert set(page.names) <= {*harmless.names, "wbr", "small"}
        assert page.names.count("script") == harmless.names.count("script") <= 1
        assert {name for _, name, _ in page.attributes} <= {
            name for _, name, _ in harmless.attributes
        }
        assert all(link.startswith("#") for link in page.links())
        own = set(page.ids())
        assert all(re.fullmatch(r"[a-z0-9-]+", one) for one in own)


def test_pages_say_what_it_is(hostile: str) -> None:
    page = Elements(report_html(report_of(hostile)))
    shown = "".join(c if c.isprintable() else "\ufffd" for c in hostile)[:50]
    assert shown in "".join(page.texts)


@pytest.mark.parametrize("name", ["text", "details"])
def test_the_terminal_gets_a_line_for_a_line(name: str, hostile: str) -> None:
    lines, harmless = (
        REPORT_FORMATS[name](report_of(one)).splitlines() for one in (hostile, HARMLESS)
    )
    assert len(lines) == len(harmless)
    assert max(map(len, lines)) < 2000


def test_markdown_has_no_html_and_keeps_its_table(hostile: str) -> None:
    written, harmless = (REPORT_FORMATS["markdown"](report_of(one)) for one in (hostile, HARMLESS))
    assert len(written.splitlines()) == len(harmless.splitlines())
    bare = without_code(written)
    assert "<" not in bare and "@" not in bare and "](" not in bare and "`" not in bare
    own = [line.replace("\\|", "").count("|") for line in written.splitlines() if line[:1] == "|"]
    assert own == [line.count("|") for line in harmless.splitlines() if line[:1] == "|"]


def without_code(text: str) -> str:
    """Markdown without its code: each ends at the first run of as many backticks."""
    text = re.sub(r"^(`{3,})\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def test_inline_code_can_hold_anything() -> None:
    markdown = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    read = markdown.MarkdownIt("commonmark").enable("table")
    for text in ["a", "`", "``a`", "|", "a | `b` |", " ", "<script>", "`" * 30, " a ", "\\", "a\\"]:
        inline = read.parseInline(code(text))[0].children
        assert [one.type for one in inline] == ["code_inline"], text
        table = read.parse(f"| a | b |\n|---|---|\n| {code(text)} | c |")
        cells = [one.content for one in table if one.type == "inline"]
        assert len(cells) == 4 and cells[3] == "c", text


def test_a_reader_of_markdown_finds_no_html(hostile: str) -> None:
    markdown = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    read = markdown.MarkdownIt("commonmark").enable("table")
    tokens = read.parse(REPORT_FORMATS["markdown"](report_of(hostile)))
    inside = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in [*tokens, *inside]}
    assert not [kind for kind in kinds if "html" in kind or "link" in kind or "image" in kind]
    harmless = read.parse(REPORT_FORMATS["markdown"](report_of(HARMLESS)))
    assert [token.type for token in tokens] == [token.type for token in harmless]


def test_json_gives_the_very_names_back(hostile: str) -> None:
    document = json.loads(REPORT_FORMATS["json"](report_of(hostile)))
    assert document["graph"] == hostile
    for cast in document["casts"]:
        assert cast["location"]["layer"] == cast["rule"] == hostile
        assert cast["location"]["file"] == f"dir/{hostile}.py"


def test_editors_read_a_finding_a_line(hostile: str) -> None:
    lines, harmless = (
        concise_lines(REPORT_FORMATS["concise"](report_of(name))) for name in (hostile, HARMLESS)
    )
    assert [line[1:4] for line in lines] == [line[1:4] for line in harmless]


def test_sarif_has_relative_encoded_paths(hostile: str) -> None:
    log = json.loads(report_sarif(report_of(hostile)))
    checked_results(json.dumps(log))
    for result in log["runs"][0]["results"]:
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"dir/([\w.~/-]|%[0-9A-F]{2})*", uri, re.ASCII)
        assert unquote(uri) == f"dir/{hostile}.py".encode(errors="replace").decode()
        text = result["message"]["text"]
        assert "[" not in text.replace("\\[", "") and text.isprintable()
