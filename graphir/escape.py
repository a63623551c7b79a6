"""Text for display on a terminal: text from outside made safe, long text shortened."""

from __future__ import annotations


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
