"""The line to type instead of the cast of a row."""

from __future__ import annotations

from graphir import fixes, rules
from graphir.fixes import Use
from passes.casts.rows import CastRow
from passes.rewriting import given


def fix(row: CastRow) -> str:
    """What to type instead (see graphir.fixes.fix).

    Empty for what needs nothing: the user's own casts, what only follows exactly, numbers rounded
    as usual.
    """
    user = row.user
    if user is None or row.kind not in ("implicit", "literal") or (row.exact and row.cause):
        return ""
    values, casts = [given(arg) for arg in user.args], {row.position: row.target}
    number = row.kind == "literal"
    use = Use(rules(row.rule), user.op, values, casts, row.position, row.loss, number)
    return fixes.fix(use, row.location)
