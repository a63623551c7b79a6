"""Builders of HTML: this module escapes all text from outside, and no other module does."""

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


def chip(row: CastRow, times: int = 1, **attributes: Any) -> str:
    """Return a conversion as an element coloured by its loss; a link if `href` is given."""
    count = tag("b", f"&times; {times:,}") if times > 1 else ""
    name = "a" if attributes.get("href") else "span"
    label = text(words.conversion(row)).replace("-&gt;", "&rarr;")
    return tag(name, label, count, class_=f"chip {words.level(row)} {row.kind}", **attributes)


def reason(site: CastSite) -> str:
    """Return the tooltip of a site: the cause and the effect of the cast, in plain text lines."""
    row = site.row
    lines = [f"{words.conversion(row)} {words.why(row)}", words.what(row), words.loss(site)]
    lines += [", ".join(words.measured(site))] if site.measured else []
    lines += [f"write {row.fix}"] if row.fix else []
    return "\n".join(map(printable, lines))


def entries(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a description list of (term, HTML description); omits terms without a description."""
    parts = [tag("dt", text(name)) + tag("dd", value) for name, value in pairs if value]
    return tag("dl", *parts)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    value_text = printable(str(value), 1000, keep="\n")
    return f" {name}" if value is True else f' {name}="{escape(value_text)}"'
