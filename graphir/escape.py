"""Texts from outside, fit to be shown."""

from __future__ import annotations


def printable(text: str, most: int | None = 200, keep: str = "") -> str:
    """A text with U+FFFD for each character that cannot be printed, cut where it is too long.

    `most` is how many characters it then has, None for all; those in `keep` stay what they are.
    """
    too_long = most is not None and len(text) > most
    if not too_long and text.isprintable():
        return text
    characters = "".join(c if c.isprintable() or c in keep else "\ufffd" for c in text[:most])
    return f"{characters[:-1]}…" if too_long else characters
