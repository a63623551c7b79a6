"""Control flow in graphs: functions that make an op of control flow of Python functions.

`cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map` have the arguments of the functions of
these names in jax.lax. A body is called with symbols of a graph of its own, once or a few times,
while the graph is built. It may use symbols of the graphs around it: they become operands of the
op. Values are symbols, arrays, Python numbers, and nested tuples, lists and dicts of these.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.errors import GraphError, ShapeError
from graphir.ir.graph import Graph
from graphir.ir.literals import is_literal
from graphir.ir.operands import own, symbols_of
from graphir.ir.serialization import TraceState
from graphir.ir.symbol import Symbol
from graphir.location import placing
from graphir.numpy_api.argument_trees import Slot, Static, children, filled, mapped
from graphir.numpy_api.arrays.memory import ArrayValue, active_memory
from graphir.numpy_api.trace import name_of
from graphir.ops.control import bodies, with_bodies
from graphir.ops.dims import DimLike
from graphir.ops.op import CURRENT, GraphValue, Op
from graphir.ops.types import TensorType


@placing
def cond(
    pred: Any, on_true: Callable[..., Any], on_false: Callable[..., Any], *operands: Any
) -> Any:
    """Return `on_true(*operands)` if a 0-d value is true, else `on_false(*operands)`.

    Only one of them runs. Both give values of one structure and of equal shapes; their dtypes meet
    by the graph's rules. Raises PromotionError where the dtypes do not meet, ShapeError where the
    shapes differ, GraphError where the structures do.
    """
    graph = _graph_of("cond", pred, operands)
    choice = _truth(graph, _entered(graph, pred), ops.control.cond)
    return _branches(graph, choice, (on_false, on_true), operands)


@placing
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)` for a 0-d integer, clamped to the first and last branch.

    Only one branch runs. The branches must agree, and errors are raised, as for `cond`.
    """
    graph = _graph_of("switch", index, operands)
    if not branches:
        raise GraphError("at least one branch is needed", op="switch")
    return _branches(graph, _entered(graph, index), branches, operands)


@placing
def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Return the value that `value = body(value)` gives from `init` on while `condition(value)`.

    The body must keep structure, shapes and dtypes of the value. A weak dtype of the initial value
    is promoted to what the body makes of it. Raises PromotionError, which names the op in the body
    that changes a dtype, ShapeError and GraphError.
    """
    graph = _graph_of("while_loop", init)
    values = _Values(graph, (init,))
    loop, types = _settled(graph, "while_loop", body, values, len(values.symbols))
    verdict = _Body(graph, condition, values, types)
    results = verdict.results.symbols
    if len(results) != 1:
        got = f"{len(results)} values"
        raise GraphError("the condition must give one 0-d value", got=got, op="while_loop")
    results[0] = _truth(verdict, results[0], ops.control.while_loop)
    attrs = {"condition": verdict, "body": loop}
    results = _emitted(graph, ops.control.while_loop, values.symbols, attrs)
    return values.like(graph, results)[0]


@placing
def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Return the value that `value = body(i, value)` gives from `init` on for i in lower..upper-1.

    The bounds are 0-d integers; two Python ints have the rules' dtype of positions. The body must
    keep the value's types, as that of `while_loop`.
    """
    graph = _graph_of("fori_loop", lower, upper, init)
    if is_literal(lower) and is_literal(upper):
        position = graph.rules.position("argmax")
        lower = graph.scalar(lower, position)
    start, stop = symbols_of(graph, ops.less, (lower, upper))

    def advanced(state: Any) -> Any:
        i, value = state
        return i + 1, body(i, value)

    return while_loop(lambda state: state[0] < stop, advanced, (start, init))[1]


@placing
def scan(
    function: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: DimLike | None = None,
    reverse: bool = False,
) -> Any:
    """Return (carry, ys) after `carry, y = function(carry, x)` for each row x of the arrays xs.

    The rows are those of the first axis, from the last one on if `reverse`. `ys` are the values y,
    stacked in the order of the rows. Without `xs`, `length` is the number of calls, and x is None.
    The function must keep the types of the carry, as that of `while_loop`.
    """
    graph = _graph_of("scan", init, xs)
    values = _Values(graph, (init, xs))
    carries = _slots(values.tree[0])
    loop, _ = _settled(graph, "scan", function, values, carries)
    counts = {"carries": carries, "scanned": len(values.symbols) - carries}
    attrs = {"body": loop, **counts, "length": length, "reverse": reverse}
    results = _emitted(graph, ops.control.scan, values.symbols, attrs)
    return loop.results.like(graph, results)


@placing
def map(function: Callable[[Any], Any], xs: Any) -> Any:  # noqa: A001 -- the field's own word
    """Return `function(x)` for each row x of the arrays xs, stacked."""
    return scan(lambda _, x: ((), function(x)), (), xs)[1]


# -- values


def _graph_of(op: str, *values: Any) -> Graph:
    """Return the innermost graph that is being built, of the symbols among nested values."""
    graphs: list[Graph] = []

    def look(leaf: Any, _: str) -> None:
        if isinstance(leaf, GraphValue):
            graphs.append(leaf.graph)

    mapped(look, values, "")
    graphs = graphs or list(CURRENT.get()[-1:])
    if not graphs:
        raise GraphError(
            "no operand is a symbol, and no graph is being built",
            fix="call it in a function under runtime.jit or trace, or inside `with g:`; on arrays, "
            "write Python's own if, for and while",
            op=op,
        )
    return graphs[0].innermost


def _entered(graph: Graph, value: Any) -> Symbol:
    """Return the symbol of a value in a graph."""
    if isinstance(value, GraphValue):
        symbol = value if isinstance(value, Symbol) else value.read()
        return own(graph, symbol, "control flow")
    return graph.scalar(value) if is_literal(value) else graph.entering(value)


def _slots(tree: Any) -> int:
    """Return the number of symbols in a tree."""
    items = children(tree)
    return int(type(tree) is Slot) if items is None else sum(_slots(item) for _, item in items)


class _Values:
    """Nested values as symbols of a graph: `tree` has a Slot for each, and None as it is.

    In a function that computes on symbolic arrays, bodies do so too. `are_arrays` says which values
    are 0-d arrays: other 0-d values, such as the elements that a scan takes, are NumPy scalars.
    """

    def __init__(self, graph: Graph, values: Any) -> None:
        self.symbols: list[Symbol] = []
        self.are_arrays: list[bool] = []

        def slot(leaf: Any, _: str) -> Slot | Static:
            if leaf is None:
                return Static(None)
            self.symbols.append(_entered(graph, leaf))
            is_array = isinstance(leaf, (ArrayValue, np.ndarray))
            self.are_arrays.append(is_array and not self.symbols[-1].rank)
            return Slot(len(self.symbols) - 1)

        self.tree = mapped(slot, values, "")

    def like(self, graph: Graph, symbols: Sequence[Symbol]) -> Any:
        """Return symbols of a graph, or symbolic arrays of them, in the structure of the values."""
        memory, values = active_memory(), list[Any](symbols)
        if memory is not None and memory.graph.innermost is graph:
            for i, (x, is_array) in enumerate(zip(symbols, self.are_arrays, strict=True)):
                if not x.dtype.weak:
                    values[i] = memory.value_of(x, scalar=None if is_array else True)
        return filled(self.tree, values)


def _truth(graph: Graph, x: Symbol, op: Op) -> Symbol:
    """Return a condition as a truth value."""
    return graph.implied_cast(x, graph.rules.family_dtype("truth", x.dtype, op.name), op)


# -- bodies


class _Body(Graph):
    """The graph of a function, traced by a call on symbols. Outer symbols become its inputs.

    The function gets values of the types, in the structure of `arguments`. `captures` are the
    inputs for symbols of the graph outside, by their index there. `results` are the values that the
    function returns.
    """

    is_body = True

    def __init__(
        self,
        outer: Graph,
        function: Callable[..., Any],
        arguments: _Values,
        types: Sequence[TensorType],
    ) -> None:
        super().__init__(
            name_of(function), rules=outer.rules, tf32=outer.tf32, functions=outer.functions
        )
        around = outer.trace_state
        self.trace_state = TraceState(around.is_tracing, around.numbers)
        self.outer, self.captures = outer, dict[int, Symbol]()
        self._arguments = [self.input(type_) for type_ in types]
        around.body = self
        try:
            with self:
                self.results = _Values(self, function(*arguments.like(self, self._arguments)))
        finally:
            around.body = None

    def captured(self, symbol: Symbol) -> Symbol | None:
        """Return the input for a symbol of a graph outside; a 0-d constant is a constant here."""
        value = symbol if symbol.graph is self.outer else self.outer.captured(symbol)
        if value is None:
            return None
        inner = self.captures.get(value.index)
        if inner is None:
            innermost, self.trace_state.body = (
                self.trace_state.body,
                None,
            )  # the new symbol stands here, not in a body
            with self.at(value.location):
                if value.op is ops.constant and not value.rank:
                    inner = self.emit(ops.constant, (), value.attrs)
                else:
                    inner = self.input(value.type)
            self.trace_state.body, self.captures[value.index] = innermost, inner
        return inner

    def entering(self, array: Any) -> Symbol:
        """Return the symbol of an array operand, which is a symbol of the graph outside."""
        self.outer.trace_state.body = None  # the outer graph takes the symbol itself
        try:
            symbol = self.captured(self.outer.entering(array))
        finally:
            self.outer.trace_state.body = self
        assert symbol is not None
        return symbol

    def withdraw(self, before: int) -> None:
        """Remove the symbols from an index on, and what they capture."""
        super().withdraw(before)
        self.captures = {k: each for k, each in self.captures.items() if each.index < before}

    def closed(self, captures: Iterable[int]) -> Graph:
        """Return a plain graph whose inputs are the arguments, and then one for each capture."""
        new = self.like()
        values: dict[int, Symbol] = {}
        for symbol in self._arguments:
            with new.at(symbol.location):
                values[symbol.index] = new.input(symbol.type)
        for index in captures:
            outside = self.outer.symbols[index]
            with new.at(outside.location):
                symbol = new.input(outside.type)
            if index in self.captures:
                values[self.captures[index].index] = symbol
        for symbol in self.symbols:
            if symbol.op is not ops.input:
                args = tuple([values[arg.index] for arg in symbol.args])
                values[symbol.index] = new.append(
                    symbol.op, args, symbol.attrs, symbol.type, symbol.source
                )
        new.output(*[values[symbol.index] for symbol in self.results.symbols])
        return new


def _settled(
    graph: Graph, op: str, function: Callable[..., Any], values: _Values, carries: int
) -> tuple[_Body, list[TensorType]]:
    """Return the body of a loop, and the types of its arguments.

    The function is traced again as long as it promotes a carry of a weak dtype. The first values
    are the carries; of the others, the body of `scan` takes rows.
    """
    types = [
        symbol.type if i < carries else _row(symbol.type) for i, symbol in enumerate(values.symbols)
    ]
    while True:
        body = _Body(graph, function, values, types)
        tree, carry_tree = body.results.tree, values.tree[0]
        if len(values.tree) > 1:
            items = children(tree)
            if items is None or len(items) != 2:
                got = _text(tree)
                raise GraphError("the function must return a pair (carry, y)", got=got, op=op)
            tree = items[0][1]
        if tree != carry_tree:
            got, fix = _text(tree), f"return a value like {_text(carry_tree)}"
            raise GraphError("the body must keep the carry's structure", got=got, fix=fix, op=op)
        outputs = body.results.symbols
        promoted = [
            _promoted(graph, type_, outputs[i]) if i < carries else type_
            for i, type_ in enumerate(types)
        ]
        if promoted == types:
            return body, types
        types = promoted


def _row(type_: TensorType) -> TensorType:
    if not type_.rank:
        raise ShapeError("what it scans must have an axis", got=str(type_), op="scan")
    return TensorType(type_.dtype, type_.shape[1:])


def _promoted(graph: Graph, carry: TensorType, output: Symbol) -> TensorType:
    """Return the type with which a carry enters the body again; the op refuses other changes.

    The promoted dtype is a strong one, as in jax.lax.
    """
    if carry is output.type or not carry.dtype.weak or carry.shape != output.shape:
        return carry
    common = graph.rules.common((carry, output.type))
    return carry if common is carry.dtype else carry.cast(graph.concrete_dtype(common))


def _branches(
    graph: Graph, choice: Symbol, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    values = _Values(graph, operands)
    types = [symbol.type for symbol in values.symbols]
    branches = [_Body(graph, function, values, types) for function in functions]
    first = branches[0].results
    for branch in branches:
        if branch.results.tree != first.tree:
            got = f"{_text(first.tree)} and {_text(branch.results.tree)}"
            raise GraphError("the branches must return values of one structure", got=got, op="cond")
    attrs = {"branches": tuple(branches)}
    results = _emitted(graph, ops.control.cond, [choice, *values.symbols], attrs)
    kinds = zip(*[branch.results.are_arrays for branch in branches], strict=True)
    first.are_arrays = [*builtins.map(any, kinds)]
    return first.like(graph, results)


def _emitted(
    graph: Graph, op: Op, operands: Sequence[Symbol], attrs: dict[str, Any]
) -> list[Symbol]:
    """Add an op of control flow; return its results."""
    own_bodies = cast("list[_Body]", [*bodies(attrs)])
    captures = dict.fromkeys(
        index
        for body in own_bodies
        for index, symbol in body.captures.items()
        if symbol.op is ops.input
    )
    captured = [graph.symbols[index] for index in captures]
    closed = [body.closed(captures) for body in own_bodies]
    return ops.control.parts(graph.emit(op, (*operands, *captured), with_bodies(attrs, closed)))


def _text(tree: Any) -> str:
    """Format the structure of nested values, with a star for each symbol."""
    return repr(mapped(lambda leaf, _: _STAR if type(leaf) is Slot else None, tree, ""))


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()
