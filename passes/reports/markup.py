"""Pieces of HTML: everything from outside is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from graphir.escape import printable
from passes.reports import words

if TYPE_CHECKING:
    from passes.analysis.casts import CastRow
    from passes.analysis.casts.sites import CastSite


def tag(name: str, *content: str, **attributes: Any) -> str:
    """An element; its content is HTML, its attributes are text: `class_="note"`, `data_at=3`.

    Attributes that are None or False are left out, those that are True have no value.
    """
    attributes_text = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    end = "" if name in _VOID else f"</{name}>"
    return f"<{name}{attributes_text}>{''.join(content)}{end}"


_VOID = {"br", "img", "input", "link", "meta", "wbr"}  # elements without content and end


def text(value: object, most: int = 500) -> str:
    """A text from outside, as HTML: one line, without control characters."""
    return escape(printable(str(value), most))


def code(value: object, most: int = 500) -> str:
    """A piece of program."""
    return tag("code", text(value, most))


def chip(row: CastRow, times: int = 1, **attributes: Any) -> str:
    """A conversion, tinted by what it loses: a link where there is an href."""
    count = tag("b", f"&times; {times:,}") if times > 1 else ""
    name = "a" if attributes.get("href") else "span"
    label = f"{text(row.source)} &rarr; {text(row.target)}"
    return tag(name, label, count, class_=f"chip {words.level(row)} {row.kind}", **attributes)


def reason(site: CastSite) -> str:
    """Why the cast is there and what it does, in a few lines of plain text for who points at it."""
    row = site.row
    lines = [f"{words.conversion(row)} {words.why(row)}", words.what(row), str(row.loss)]
    lines += [", ".join(words.measured(site))] if site.measured else []
    lines += [f"write {row.fix}"] if row.fix else []
    return "\n".join(map(printable, lines))


def entries(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of terms, whose descriptions are HTML; those without one are left out."""
    parts = [tag("dt", text(name)) + tag("dd", value) for name, value in pairs if value]
    return tag("dl", *parts)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    value_text = printable(str(value), 1000, keep="\n")
    return f" {name}" if value is True else f' {name}="{escape(value_text)}"'
