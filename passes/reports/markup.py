"""Elements of HTML reports: the chip of a cast, and the tooltip of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphir.escape import printable
from graphir.markup import tag, text
from graphir.passes.reports import words

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastRow
    from graphir.passes.analysis.casts.sites import CastSite


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
