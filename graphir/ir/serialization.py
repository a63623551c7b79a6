"""Serialization and display methods of Graph: its text, its files, its picture in a notebook."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from graphir.ir.graph_state import Provenance, TraceState
from graphir.promotion import rules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


class GraphFacade:
    """The serialization and display methods of a graph, and what it says of its program.

    Serialization and display import their implementation when they are called.
    """

    provenance: Provenance

    @property
    def notes(self) -> Sequence[str]:
        """Sentences of a source about the program that it made the graph of."""
        return self.provenance.notes

    @property
    def defaults(self) -> Mapping[str, NDArray[Any]]:
        """The values of inputs that a run may omit, by name."""
        return self.provenance.defaults

    def describe(self, **facts: Any) -> None:
        """State facts of the program of the graph: fields of Provenance, such as `notes`."""
        self.provenance = replace(self.provenance, **facts)

    def __str__(self) -> str:
        from graphir.text.printer import graph_text

        return graph_text(cast("Graph", self))

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a drawing of the graph, and its text in a folded section."""
        from graphir.drawing.formats import graph_html

        return graph_html(cast("Graph", self))

    @staticmethod
    def parse(
        text: str,
        constants: Mapping[str, Any] | None = None,
        *,
        sources: str | os.PathLike[str] | None = None,
    ) -> Graph:
        """Parse the text of a graph.

        `constants` maps names in the text to the arrays of constants that are too large for text.
        `sources` is a directory. Reports show lines of the source files that the text names only
        where these files lie inside this directory; without `sources` no such file is opened.
        Raises ParseError with the line and column of malformed text.
        """
        from graphir.text.parser import parse

        return parse(text, constants, sources)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph's text to `path`, and large constants to a file beside it, suffix .npz.

        The new files replace old files only once they are complete on disk. After an OSError the
        old files are unchanged.
        """
        from graphir.text.files import save

        save(cast("Graph", self), path)

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, sources: str | os.PathLike[str] | None = None
    ) -> Graph:
        """Read a graph that `save` wrote. `sources` is as for `parse`.

        Raises ParseError with the file, line and column of malformed text.
        """
        from graphir.text.files import load

        return load(path, sources)


# -- The state of a graph for pickle


def state_of(graph: Graph) -> dict[str, Any]:
    """Return the picklable state of a graph, without its caches.

    The state refers to symbols by place, so that pickle does not recurse along a chain of symbols.
    """
    places = {
        "symbols": [
            (s.op, [arg.index for arg in s.args], s.attrs, s.type, s.source) for s in graph.symbols
        ],
        "inputs": [symbol.index for symbol in graph.inputs],
        "outputs": [symbol.index for symbol in graph.outputs],
    }
    state: dict[str, Any] = {**graph.__dict__, **places, "_memo": {}, "rules": graph.rules.name}
    del state["builder"], state["trace_state"]
    return state


def restore(graph: Graph, state: dict[str, Any]) -> None:
    """Fill an empty graph from a state that `state_of` returned."""
    graph.rules, graph.trace_state = rules(state["rules"]), TraceState()
    graph.__dict__.update({name: state[name] for name in state if name != "rules"}, symbols=[])
    at: Callable[[int], Symbol] = graph.symbols.__getitem__
    for op, places, attrs, type_, source in state["symbols"]:
        graph.append(op, tuple(map(at, places)), attrs, type_, source)
    graph.inputs = list(map(at, state["inputs"]))
    graph.outputs = tuple(map(at, state["outputs"]))
