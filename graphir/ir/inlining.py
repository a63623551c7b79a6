"""Inlining: a graph with control flow as one list of symbols, for analyses of dtypes and data flow.

The symbols of each graph of control flow stand once, at the place of their op, in a layer that
names it: `body of scan`. A value enters and leaves through a junction, a symbol whose op has the
name of the op of control flow, and whose operands are all values that it may take. So does each
result of a `call`; an opaque one counts as a bool, of which no analysis of dtypes says anything.
The result is a view: it keeps types, locations and origins, and has no values of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphir import ops
from graphir.dtypes import DType
from graphir.ir.graph import Graph
from graphir.ir.symbol import Symbol
from graphir.location import CompoundLocation, Location, Source
from graphir.ops import control
from graphir.ops.attribute_record import NO_ATTRIBUTES
from graphir.ops.dims import Dim, Size
from graphir.ops.op import Attributes, Inference, Op, Signature, Types
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules

_TRUTH = TensorType(DType.bool)


@dataclass(frozen=True, eq=False, slots=True)
class Junction(Op):
    """The op of a symbol through which values enter or leave the graphs of control flow.

    The operands at the promoted positions join with the types `beside`; the others are values on
    which the result depends. `enters` is true for an operand of the op of control flow, and
    `gathers` for the symbol on which all results of a loop depend. `place` is the number of the
    result that leaves.
    """

    result: TensorType = _TRUTH
    beside: tuple[TensorType, ...] = ()
    enters: bool = False
    gathers: bool = False
    place: int = 0

    def infer(self, rules: PromotionRules, types: Types, attributes: Attributes) -> Inference:
        """Return the result's type in the common dtype, to which the promoted operands convert."""
        together = range(len(types))[: len(self.signature.promoted or ())]
        distinct = {*self.beside, *(types[i] for i in together)}
        dtypes = {type_.dtype for type_ in distinct}
        dtype = rules.common(tuple(distinct)) if len(dtypes) > 1 else self.result.dtype
        dtype = dtypes.pop() if len(dtypes) == 1 else dtype
        operands = [dtype if i in together else type_.dtype for i, type_ in enumerate(types)]
        return Inference(self.result.cast(dtype), tuple(operands), NO_ATTRIBUTES)


class InlinedGraph(Graph):
    """The view of a graph: see the module. It is neither run nor printed.

    `runs` has, for each symbol, how often it runs in a run of the graph: a size with a name for
    each count that the graph does not say, such as `while_loop_runs`. `originals` has the symbol of
    which it is a copy; for a junction, the input or the op of control flow, or None.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name, (), graph.out_types, graph.rules, graph.tf32)
        self.inherit(graph)
        self.rules_before, self.has_bodies = graph.rules_before, False
        self.runs: list[Size] = []
        self.originals: list[Symbol | None] = []


def inlined(graph: Graph, outputs: Sequence[Symbol] = ()) -> Graph:
    """Return the view of a graph with its control flow inline; the graph itself if it has none.

    `outputs` are symbols of the graph in place of its outputs.
    """
    if not graph.has_bodies:
        return graph
    new = InlinedGraph(graph)
    inlining = _Inlining(new)
    values = inlining.symbols(graph, [], "", 1)
    inputs = (values[symbol.index] for symbol in graph.inputs)
    results = (values[symbol.index] for symbol in outputs or graph.outputs)
    new.set_interface(inputs, graph.input_names, results)
    return new


def runs_of(symbol: Symbol) -> Size:
    """Return how often a symbol runs in a run of its graph."""
    graph = symbol.graph
    return graph.runs[symbol.index] if type(graph) is InlinedGraph else 1


def original_of(symbol: Symbol) -> Symbol | None:
    """Return the symbol of which a symbol of a view is a copy; see InlinedGraph."""
    graph = symbol.graph
    return graph.originals[symbol.index] if type(graph) is InlinedGraph else symbol


def roles(symbol: Symbol) -> list[str]:
    """Return the names of the graphs of an op of control flow: `body of scan`."""
    op = symbol.op
    if op is control.while_loop:
        names = ["condition", "body"]
    elif op is control.scan:
        names = ["body"]
    else:
        count = len(symbol.attrs["branches"])
        is_truth = symbol.args[0].dtype is DType.bool and count == 2
        names = ["false branch", "true branch"] if is_truth else []
        names = names or [f"branch {i}" for i in range(count)]
    return [f"{name} of {op.name}" for name in names]


def inner_layer(layer: str, symbol: Symbol, role: str) -> str:
    """Return the layer of a graph of control flow, whose op stands in a graph in a layer."""
    return "/".join(filter(None, (layer, symbol.location.layer, role)))


class Relocation:
    """The locations of a graph's symbols inside the layer of their op of control flow.

    Equal locations stay one object.
    """

    def __init__(self) -> None:
        self._locations: dict[Any, tuple[Location, Location]] = {}

    def source(self, source: Source, layer: str, owner: tuple[Symbol, str] | None) -> Source:
        """Return the source of a symbol in a layer.

        `owner` is the op of control flow to which the symbol's graph belongs, with its layer: a
        cast that it demands of a result stands at the op.
        """
        if isinstance(source, Location):
            return self.location(source, layer)
        return tuple(
            origin._replace(
                location=self.location(origin.location, owner[1], True)
                if owner and (origin.op, origin.location) == (owner[0].op.name, owner[0].location)
                else self.location(origin.location, layer, origin.op in ops.CONTROL)
            )
            for origin in source
        )

    def location(self, location: Location, layer: str, compound: bool = False) -> Location:
        """Return a location in a layer; `compound` as in Location."""
        if not layer and not compound:
            return location
        key = id(location), layer, compound
        entry = self._locations.get(key)  # the entry keeps the location alive: its id stays unique
        if entry is None:
            kind = CompoundLocation if compound else type(location)
            new = kind.of(location)
            new.layer = "/".join(filter(None, (layer, location.layer)))
            entry = self._locations[key] = location, new
        return entry[1]


class _Inlining:
    """The state of one inlining: the view under construction."""

    def __init__(self, new: InlinedGraph) -> None:
        self.new, self.relocation = new, Relocation()
        self._counts: dict[str, int] = {}

    def symbols(
        self,
        graph: Graph,
        arguments: Sequence[Symbol],
        layer: str,
        runs: Size,
        owner: tuple[Symbol, str] | None = None,
    ) -> list[Any]:
        """Append a graph's symbols; return the new symbol of each, of control flow a tuple.

        `arguments` stand for the inputs; without them the inputs are copied.
        """
        values: list[Any] = [None] * len(graph.symbols)
        for symbol, argument in zip(graph.inputs, arguments, strict=False):
            values[symbol.index] = argument
        for symbol in graph.symbols:
            at = symbol.index
            if values[at] is not None:
                continue
            args = [values[arg.index] for arg in symbol.args]
            if symbol.op is control.part:
                values[at] = args[0][symbol.attrs["index"]]
            elif symbol.op.kind == "control":
                values[at] = tuple(self.control(symbol, args, layer, runs))
            else:
                source = self.relocation.source(symbol.source, layer, owner)
                new = Symbol(
                    self.new,
                    symbol.op,
                    tuple(args),
                    symbol.attrs,
                    symbol.type,
                    source,
                    len(self.new.symbols),
                    symbol.inference,
                )
                values[at] = self.append(new, symbol, runs)
        return values

    def append(self, new: Symbol, original: Symbol | None, runs: Size) -> Symbol:
        self.new.symbols.append(new)
        self.new.runs.append(runs)
        self.new.originals.append(original)
        return new

    def control(
        self, symbol: Symbol, args: Sequence[Symbol], layer: str, runs: Size
    ) -> Iterator[Symbol]:
        """Append the graphs of an op of control flow, and yield a junction for each result."""
        op, graphs = symbol.op, [cast(Graph, body) for body in control.bodies(symbol.attrs)]
        first = len(args) - len(graphs[0].inputs) if graphs else 0
        location = self.relocation.location(symbol.location, layer, True)

        def junction(
            names: Sequence[str],
            args: Sequence[Symbol],
            result: TensorType,
            original: Symbol | None,
            **facts: Any,
        ) -> Symbol:
            rest = [f"operands[{i}]" for i in range(len(args) - len(names))]
            result = result if type(result) is TensorType else _TRUTH
            junction_op = _junction(symbol, (*names, *rest), len(names), result, facts)
            new = Symbol(
                *(self.new, junction_op, tuple(args), NO_ATTRIBUTES, result),
                location,
                len(self.new.symbols),
            )
            return self.append(new, original, runs)

        parts = list(enumerate(symbol.type.parts))
        if not graphs:
            for i, type_ in parts:
                yield junction((), args, type_, symbol, place=i)
            return
        entering = [
            junction((op.operand(first + i),), (arg,), x.type, x, beside=(x.type,), enters=True)
            for i, (arg, x) in enumerate(zip(args[first:], graphs[0].inputs, strict=True))
        ]
        results: list[list[Symbol]] = []
        for body, role, count in zip(graphs, roles(symbol), self.counts(symbol), strict=True):
            inner = inner_layer(layer, symbol, role)
            owner = symbol, layer
            values = self.symbols(body, entering, inner, runs * count, owner)
            results.append([values[output.index] for output in body.outputs])
        if op is control.cond:
            for i, type_ in parts:
                branches = [outputs[i] for outputs in results]
                names = [f"result[{i}]"] * len(branches)
                yield junction(names, (*branches, args[0]), type_, symbol, place=i)
            return
        # Each result depends on all values that the body gives, which enter it again.
        values = [x for outputs in results for x in outputs]
        end = junction((), values, _TRUTH, None, gathers=True)
        verdict = results[0][:1] if op is control.while_loop else ()
        carries = symbol.attrs.get("carries", len(parts))
        for i, type_ in parts:
            candidates = (results[-1][i], *entering[i:][: i < carries])
            names = (f"result[{i}]", op.operand(i))[: len(candidates)]
            operands = (*candidates, *verdict, end)
            yield junction(names, operands, type_, symbol, beside=(type_,), place=i)

    def counts(self, symbol: Symbol) -> Iterator[Size]:
        """Yield how often each graph of an op of control flow runs."""
        if symbol.op is control.scan:
            attrs = symbol.attrs
            scanned = symbol.args[attrs["carries"] :][: attrs["scanned"]]
            yield scanned[0].shape[0] if scanned else attrs["length"]
            return
        is_loop = symbol.op is control.while_loop
        for _ in range(1) if is_loop else control.bodies(symbol.attrs):
            name = f"{symbol.op.name}_runs"
            number = self._counts[name] = self._counts.get(name, 0) + 1
            runs = Dim.of(f"{name}{number}" if number > 1 else name)
            yield from (runs + 1, runs) if is_loop else (runs,)


def _junction(
    symbol: Symbol, names: tuple[str, ...], together: int, result: TensorType, facts: dict[str, Any]
) -> Junction:
    op = symbol.op
    signature = Signature("junction", control.no_dtype, tuple(range(together)))
    name = symbol.attrs["callee"].name if op is control.call else op.name
    doc = "A value that enters or leaves."
    facts["result"] = result
    return Junction(name, names, signature, control.no_dims, doc, (), "control", **facts)
