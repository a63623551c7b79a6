"""Text for display on terminals and in HTML: text from outside made safe, long text shortened.

An HTML fragment for notebooks inherits the colours of its page, so that it is readable in the light
and in the dark theme of every notebook. Its marks have colours that stand out from both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TypeAlias


def printable(text: str, most: int | None = 200, keep: str = "") -> str:
    """Replace each unprintable character of a text by U+FFFD, and cut a text that is too long.

    A text of more than `most` characters is cut to `most` characters, the last of which is an
    ellipsis; None is no limit. The characters in `keep` stay.
    """
    too_long = most is not None and len(text) > most
    if not too_long and text.isprintable():
        return text
    characters = "".join(c if c.isprintable() or c in keep else "\ufffd" for c in text[:most])
    return f"{characters[:-1]}…" if too_long else characters


BRIEF = 20
"""The most lines of the `repr` of an object whose text is long."""


def brief(text: str, most: int = BRIEF) -> str:
    """Return the first `most` lines of a text, and a line with the number of the others."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    more = f"... and {len(lines) - most:,} more, which print() shows"
    return "\n".join([*lines[:most], more])


def count_text(count: int, unit: str) -> str:
    """Format a count with its unit: `1 pair`, `2 pairs`."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


# -- HTML, and the fragments that notebooks show

LARGEST = 50_000
"""The most characters of a fragment."""

ROWS = 50
"""The most rows of a table in a fragment."""

_ROOM = 30_000  # the most characters of one table


Attribute: TypeAlias = "str | float | None"
"""The value of an attribute of an element; a bool gives or omits the name alone."""


def tag(name: str, *content: str, **attributes: Attribute) -> str:
    """Return an element; its content is HTML, its attributes text: `class_="note"`, `data_at=3`.

    Omits attributes that are None or False. An attribute that is True has no value.
    """
    attributes_text = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    end = "" if name in _VOID else f"</{name}>"
    return f"<{name}{attributes_text}>{''.join(content)}{end}"


_VOID = {"br", "img", "input", "link", "meta", "wbr"}  # elements without content and end tag


def text(value: object, most: int = 500) -> str:
    """Escape a text from outside as HTML: one line, without control characters."""
    return escape(printable(str(value), most))


def code(value: object, most: int = 500) -> str:
    """Return source text as a `code` element."""
    return tag("code", text(value, most))


def entries(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a description list of (term, HTML description); omits terms without a description."""
    parts = [tag("dt", text(name)) + tag("dd", value) for name, value in pairs if value]
    return tag("dl", *parts)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    value_text = printable(str(value), 1000, keep="\n")
    return f" {name}" if value is True else f' {name}="{escape(value_text)}"'


# -- fragments


def fragment(*pieces: str) -> str:
    """Return the fragment of some elements, with the style that all fragments share.

    Leaves out the elements with which the fragment would exceed LARGEST, and says so.
    """
    content: list[str] = []
    room = LARGEST - len(_STYLE) - 200
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            content.append(tag("small", "The rest is too large for a notebook: print it."))
            break
        content.append(piece)
    return tag("div", tag("style", _STYLE), *content, class_="graphir-view")


def paragraphs(texts: Iterable[str]) -> str:
    """Return a `div` for each line of text."""
    return "".join(tag("div", text(line)) for line in texts)


def table(
    titles: Sequence[str], rows: Iterable[Iterable[str]], count: int, most: int = ROWS
) -> str:
    """Return a table of HTML cells: the first `most` of `count` rows, and how many are left out."""
    head = tag("thead", tag("tr", *(tag("th", text(title)) for title in titles)))
    body = list(_rows(rows, most))
    if not body:
        return ""
    more = tag("small", f"... and {count - len(body):,} more") if count > len(body) else ""
    return tag("div", tag("table", head, tag("tbody", *body)), more, class_="scroll")


def _rows(rows: Iterable[Iterable[str]], most: int) -> Iterator[str]:
    """Yield at most `most` rows, as long as they have room."""
    room = _ROOM
    for number, cells in enumerate(rows):
        row = tag("tr", *(tag("td", cell) for cell in cells))
        room -= len(row)
        if number >= most or room < 0:
            return
        yield row


def folded(title: str, *content: str) -> str:
    """Return a section that the reader opens; "" without content."""
    return tag("details", tag("summary", text(title)), *content) if any(content) else ""


def verbatim(texts: Iterable[str], most: int = ROWS) -> str:
    """Return the first `most` lines of a text as they are, and how many are left out."""
    texts = list(texts)
    first = [text(line, 300) for line in texts[:most]]
    if len(texts) > most:
        first.append(f"... and {len(texts) - most:,} more lines")
    return tag("pre", "\n".join(first))


_STYLE = re.sub(
    r"(?m)^&",
    ".graphir-view.graphir-view.graphir-view",  # stronger than the rules of a notebook's page
    """
&{color:inherit;font-size:13px;line-height:1.5;overflow-wrap:anywhere}
& .scroll{overflow-x:auto;max-width:100%}
& table{border-collapse:collapse;border:0;margin:.5em 0;font-size:inherit;color:inherit}
& tr{background:none}
& :is(th,td){text-align:left;padding:.25em .9em .25em 0;background:none;border:0;
border-bottom:1px solid rgba(128,128,128,.3);vertical-align:top;max-width:34em;white-space:normal;
overflow-wrap:break-word}
& th{white-space:nowrap;font-weight:600}
& :is(code,pre){color:inherit;font-size:12px;line-height:1.4;
font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace)}
& :is(code,.chip){background:rgba(128,128,128,.14);padding:0 .3em;border-radius:2px}
& pre{background:none;padding:0;overflow-x:auto;max-height:30em;margin:.5em 0;white-space:pre}
& :is(.where,.chip){white-space:nowrap}
& :is(.lossy,.precision){box-shadow:inset 0 -2px 0 #e8890c}
& :is(.value,.range){box-shadow:inset 0 -2px 0 #e03131}
& .grid :is(th,td){padding:1px 5px;text-align:center;white-space:nowrap;font-size:11px;
border:1px solid rgba(128,128,128,.3)}
& .grid .exact{background:rgba(47,158,68,.22)}
& .grid .loses{background:rgba(232,137,12,.32)}
& .grid .raises{opacity:.55}
& small{opacity:.75}
& summary{cursor:pointer}
:is([data-jp-theme-light="false"],.vscode-dark) .graphir-view .light>svg{
filter:invert(.92) hue-rotate(180deg)}
:is([data-jp-theme-light="true"],.vscode-light) .graphir-view .light>svg{filter:none}
@media(max-width:640px){
& :is(th,td){padding-right:.5em}
& .grid :is(th,td){padding:1px 2px;font-size:10px}
}
""",
)
# Text has the notebook's colours, light or dark; the marks are visible on both.
