"""Serialization and display methods of Graph: its text, its files, its picture in a notebook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from graphir.ir.graph import Graph


class Written:
    """The methods of a graph that write it down and read it back; each loads what it needs."""

    def __str__(self) -> str:
        from graphir.text.printer import graph_text

        return graph_text(cast("Graph", self))

    def _repr_html_(self) -> str:
        """The picture that a notebook shows, with the text to unfold."""
        from graphir.drawing.graphs import graph_html

        return graph_html(cast("Graph", self))

    @staticmethod
    def parse(
        text: str,
        constants: Mapping[str, Any] | None = None,
        *,
        sources: str | os.PathLike[str] | None = None,
    ) -> Graph:
        """The graph that a text describes; ParseError says where it is malformed.

        `constants` holds the arrays of constants too large for text, by the names used there.
        Reports show lines of the source files that the text names only where these files lie inside
        the directory `sources`; without it no such file is opened.
        """
        from graphir.text.parser import parse

        return parse(text, constants, sources)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text to `path`, and constants too large for it beside it, with suffix .npz.

        Old files are replaced once the new ones are whole on the disk; OSError leaves the old ones.
        """
        from graphir.text.files import save

        save(cast("Graph", self), path)

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, sources: str | os.PathLike[str] | None = None
    ) -> Graph:
        """The graph that `save` wrote; ParseError names the file and the place of what is wrong.

        `sources` is as for `parse`.
        """
        from graphir.text.files import load

        return load(path, sources)
