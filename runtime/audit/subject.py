"""The subject of an audit: a program and options, its explicit graph, and sites that may lose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from graphir.dtypes import DTypeLike
from graphir.ir.liveness import last_uses
from graphir.ops.dims import Size, evaluate
from graphir.passes.analysis.casts import (
    CastReport,
    ProgramInterface,
    StepLoss,
    report_with_kernels,
)
from graphir.passes.analysis.rebuild import retyped
from graphir.passes.rewriter import is_conversion, origins_of
from graphir.public import DType, Graph, ShapeError, Symbol, TensorType, ops
from graphir.runtime.audit.library_calls import with_calls
from graphir.runtime.audit.opaque import NO_FACTS, RecordedFacts
from graphir.runtime.audit.wide_run import Array, RecordedRun, WideRun, refuted
from graphir.runtime.binding import bind


class AuditOptions(NamedTuple):
    """The options of an audit: see `audit`."""

    blame: bool = True
    memory: int = 1 << 30
    as_dtype: DTypeLike | None = None


class AuditedProgram(NamedTuple):
    """A program as an audit takes it: a graph and its inputs, and the facts from a recording.

    `facts` has the facts that the graph lacks. `outputs` are the results that NumPy computed in
    the recorded run; the report has their errors, under `names`, each with the number of rounds
    that it stacks. Without them, the outputs are those of the graph.
    """

    graph: Graph
    inputs: Sequence[Any]
    facts: RecordedFacts = NO_FACTS
    outputs: Sequence[Any] | None = None
    names: tuple[str, ...] = ()
    rounds: tuple[int, ...] = ()
    keywords: Mapping[str, Any] = MappingProxyType({})


def subject_of(program: AuditedProgram, as_dtype: DTypeLike | None) -> Subject:
    """Return the subject for a program, with measured calls as ops, in another dtype if asked."""
    outputs = program.outputs
    graph, inputs, facts = with_calls(program.graph, program.inputs, program.facts)
    if as_dtype is not None:
        facts = refuted(graph, inputs, facts)
        rebuilt = retyped(graph, as_dtype)
        graph, outputs = rebuilt.graph, None
        facts = facts.retyped(rebuilt.twins, DType(as_dtype))
    before = AuditedProgram(graph, inputs, facts, keywords=program.keywords)
    report, twins = report_with_kernels(graph, facts.symbols())
    facts = facts.remap(twins)
    interface = ProgramInterface(facts.arguments, facts.step_results, program.names)
    arrays, sizes = bind(report.explicit, inputs, program.keywords)
    subject = Subject(report.of_program(interface), arrays, sizes, facts, outputs, program.rounds)
    subject.program = None if as_dtype is not None else before
    return subject


class Subject:
    """The explicit graph of a report, its input arrays and the sizes of its dims.

    `facts`, `outputs` and `rounds` are as in AuditedProgram, in terms of the explicit graph.
    `live` are the symbols that an output or an opaque step depends on. `sites` are the live symbols
    that the audit measures: casts, and constants whose dtype rounds the program's Python number.
    """

    def __init__(
        self,
        report: CastReport,
        arrays: Sequence[Array],
        sizes: dict[str, int],
        facts: RecordedFacts,
        outputs: Sequence[Any] | None,
        rounds: tuple[int, ...],
    ) -> None:
        self.graph, self.arrays, self.sizes = report.explicit, arrays, sizes
        self.report, self.facts = report, facts
        self.outputs, self.rounds = outputs, rounds
        self.literals = _literals(report)
        self.last = last_uses(self.graph, facts.watched)
        self.live = [symbol for symbol in self.graph.symbols if self.last[symbol.index] >= 0]
        self.sites = [x for x in self.live if is_conversion(x) or x.index in self.literals]
        self.program: AuditedProgram | None = None
        """The program before its casts became explicit; None in another dtype."""
        self.kinds: dict[int, StepLoss] = {}
        """The kinds of the steps that lost values, by symbol index, as the audit finds them."""
        self._sizes_of: dict[TensorType, int] = {}
        self._users: list[list[int]] = [[] for _ in self.graph.symbols]
        for symbol in self.live:
            for arg in symbol.args:
                self._users[arg.index].append(symbol.index)
        self.masks = {**facts.masks, **self._masked_operands()}

    def run(self) -> WideRun:
        """Return a new wide run, with the run that it is in step with; neither has started."""
        actual_run = RecordedRun(self.graph, self.arrays, self.sizes, self.facts)
        return WideRun(actual_run, self.literals, self.masks, self.kinds)

    def _masked_operands(self) -> dict[Symbol, Symbol]:
        """Return the masks of the casts whose only user is a result under a mask."""
        return {
            x: mask
            for symbol, mask in self.facts.masks.items()
            for x in symbol.args
            if is_conversion(x) and x.shape == symbol.shape
            if self._users[x.index] == [symbol.index]
        }

    def may_lose(self, site: Symbol) -> bool:
        """Whether a site is inexact; a cast to bool loses only by intent and does not count."""
        storage = self.graph.storage_dtype
        exact = all(storage(x).exact_in(storage(site)) for x in site.args) and site.args
        return not exact and storage(site).family != "bool"

    @cached_property
    def widened_products(self) -> dict[int, Symbol]:
        """The products in narrow floats that the program widens as it is, by symbol index.

        A cast that widens says that more digits were wanted than the product stored.
        """
        products: dict[int, Symbol] = {}
        for cast in filter(_widens, self.sites):
            value = cast.args[0]
            while value.op.kind == "movement" and value.args:
                value = value.args[0]
            if value.op.kind == "contraction" and value.dtype is cast.args[0].dtype:
                products[value.index] = value
        return products

    def path(self, starts: Sequence[Symbol]) -> list[Symbol]:
        """Return symbols and all their live dependents, in the order of the graph."""
        waiting = [start.index for start in starts]
        reached_places = set(waiting)
        while waiting:
            new = [user for user in self._users[waiting.pop()] if user not in reached_places]
            reached_places.update(new)
            waiting += new
        return [self.graph.symbols[at] for at in sorted(reached_places)]

    def reaches(self, start: Symbol, end: Symbol) -> bool:
        """Whether a live symbol depends on another."""
        return any(symbol is end for symbol in self.path([start]))

    def together(self, sites: Sequence[Symbol]) -> list[list[Symbol]]:
        """Return groups of sites to blame together.

        The lossy steps of one place and kind are a group, and so are the casts of one place if
        there are many; other casts are groups of one.
        """
        groups: dict[Any, list[Symbol]] = {}
        are_few = sum(site.index not in self.kinds for site in sites) <= MANY
        for site in sites:
            dtypes = (site.dtype, *(x.dtype for x in site.args))
            kind = self.kinds.get(site.index)
            is_single = kind is None and are_few
            place = site.index if is_single else (site.location, site.op, kind, *dtypes)
            groups.setdefault(place, []).append(site)
        return list(groups.values())

    def bytes_of(self, symbol: Symbol) -> int:
        """Return the bytes of a symbol's values in both runs."""
        size = (16 if symbol.dtype.is_complex else 8) + symbol.dtype.storage.itemsize
        return size * self.size_of(symbol)

    def size_of(self, symbol: Symbol) -> int:
        """Return the number of elements of a symbol."""
        size = self._sizes_of.get(symbol.type)
        if size is None:
            size = self._sizes_of[symbol.type] = math.prod(self.shape_of(symbol))
        return size

    def shape_of(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of a symbol in this run."""
        return tuple(_size(dim, self.sizes) for dim in symbol.shape)


MANY = 100
"""The most sites that an audit blames one by one; more sites are grouped by location."""


def _widens(cast: Symbol) -> bool:
    """Whether the program writes a cast from floats narrower than float32 to wider ones."""
    if not is_conversion(cast) or not cast.args[0].dtype.is_float or not cast.dtype.is_float:
        return False
    precision, wanted = (x.part.precision for x in (cast.args[0].dtype, cast.dtype))
    is_wider = precision < DType.float32.part.precision <= wanted
    return is_wider and any(x.kind == "explicit" and not x.in_call for x in origins_of(cast))


def _literals(report: CastReport) -> dict[int, complex]:
    """Return the Python numbers of constants whose dtype rounds them, by symbol index."""
    rows = (x for x in report if x.kind == "literal" and x.symbol.op is ops.constant)
    return {x.symbol.index: x.witness for x in rows if x.witness is not None}


def _size(dim: Size, sizes: Mapping[str, int]) -> int:
    try:
        return evaluate(dim, sizes)
    except ShapeError:  # the run raises the same error at the op
        return 0
