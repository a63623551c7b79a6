"""Serialization and display methods of Graph, and the state that a graph keeps for front ends.

A graph has a text, files, a picture in a notebook, the provenance of its program, and the state of
a trace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from graphir.decorators import PublicNames
from graphir.errors import GraphirError
from graphir.location import Location, UnseenPart
from graphir.promotion import rules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.numpy_api.traced_numbers import NumberTrace


class GraphFacade(PublicNames):
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
    vars(graph).update({name: state[name] for name in state if name != "rules"}, symbols=[])
    at: Callable[[int], Symbol] = graph.symbols.__getitem__
    for op, places, attrs, type_, source in state["symbols"]:
        graph.append(op, tuple(map(at, places)), attrs, type_, source)
    graph.inputs = list(map(at, state["inputs"]))
    graph.outputs = tuple(map(at, state["outputs"]))


# -- what a graph keeps for front ends


@dataclass(frozen=True)
class Provenance:
    """The program that a source made a graph of, for reports and runs of the graph.

    `library` is the program's library. `file` is the file of the graph, for places without a line.
    `notes` are sentences about the program. `unseen` are parts of the program that the graph leaves
    out or folds. `defaults` are the values of inputs that a run may omit.
    """

    library: str = ""
    file: str = ""
    notes: Sequence[str] = ()
    unseen: Sequence[UnseenPart] = ()
    defaults: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])


class TraceState:
    """The state of a front end that traces a function into a graph.

    `is_tracing` holds while the function runs, whose arrays may have aliases. `refusal` is the
    first one that left for the function. `numbers` are the Python numbers of the call, and `body`
    is the graph of the body of control flow that is traced. `in_place_sites` has the location of
    each in-place operator, by the id of its Location, with that Location.
    """

    __slots__ = ("body", "in_place_sites", "is_tracing", "numbers", "refusal")

    def __init__(self, is_tracing: bool = False, numbers: NumberTrace | None = None) -> None:
        self.is_tracing, self.numbers = is_tracing, numbers
        self.refusal: GraphirError | None = None
        self.body: Graph | None = None
        self.in_place_sites: dict[int, tuple[Location, Location]] = {}
