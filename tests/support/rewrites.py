"""What golden tests of passes say: one text becomes another, or stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

from graphir import Graph

Pass = Callable[[Graph], Graph]


def parse(text: str) -> Graph:
    return Graph.parse(dedent(text)).verify()


def becomes(after: Pass, before: str, expected: str) -> None:
    """The pass makes one text of the other, which it leaves as it is."""
    found = after(parse(before)).verify()
    assert str(found) == dedent(expected).strip()
    assert after(found) is found


def stays(after: Pass, text: str) -> None:
    graph = parse(text)
    assert after(graph) is graph
