"""What a graph keeps for front ends: the program's provenance, and the state of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from graphir.errors import GraphirError
from graphir.location import Location, UnseenPart

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.numpy_api.traced_numbers import NumberTrace


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
