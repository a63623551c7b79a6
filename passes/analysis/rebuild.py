"""Rebuild a graph under another rule set: replay its ops on the same inputs and literals.

The walk re-applies each op to the twins of its operands, so that the new rules infer the dtypes.
Literals enter the ops as Python numbers again. Where the new rules refuse an op, a stand-in of an
assumed type takes its place, so that the walk finds all refusals. The graphs of control flow are
rebuilt too; the weak carries of a loop are promoted to what its body makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from graphir.decorators import uncollected
from graphir.dtypes import DTypeLike
from graphir.errors import OperandInfo
from graphir.ir.inlining import inlined
from graphir.ir.literals import literal_array
from graphir.ir.operands import operand_infos, resolve_literal, symbols_of
from graphir.ir.operators.in_place import assigned
from graphir.location import ASSIGN, INTERMEDIATE
from graphir.ops.attribute_record import TO_DTYPE
from graphir.ops.control import with_bodies
from graphir.passes.rewriter import bodies_of
from graphir.promotion import RulesLike
from graphir.promotion import rules as rules_named
from graphir.public import (
    DType,
    Graph,
    GraphError,
    GraphirError,
    Location,
    PromotionError,
    PromotionRules,
    Symbol,
    TensorType,
    ops,
)

MAX_SHOWN = 100
"""The most refusals that one error lists."""


class Refusal(NamedTuple):
    """A symbol that the new rules refuse, and their error with the symbol's location.

    `follows` is True if the rules refused one of its operands too.
    """

    symbol: Symbol
    error: GraphirError
    follows: bool


class Rebuilt(NamedTuple):
    """A graph under other rules: `twins[i]` is the new symbol of the old symbol at index i.

    A literal in an expression has no twin, since each expression gives it a dtype. The twin of a
    refused symbol is a stand-in with an assumed type and no operands. `refusals` is keyed by the
    index of the old symbol. `broken` is the error of outputs that differ from `out_types`, or None.
    `bodies` has the graphs of control flow, by the index of the old symbol.
    """

    graph: Graph
    twins: list[Symbol | None]
    refusals: dict[int, Refusal]
    broken: GraphirError | None
    bodies: dict[int, list[Rebuilt]]

    def all_refusals(self) -> list[Refusal]:
        """Return the refusals in the graph and in those of its control flow."""
        inner = [body for bodies in self.bodies.values() for body in bodies]
        refusals = (refusal for body in inner for refusal in body.all_refusals())
        return [*self.refusals.values(), *refusals]


def rebuild(graph: Graph, rules: RulesLike) -> Graph:
    """Return the same program built under other rules; the graph itself under its own rules.

    Casts, constants and inputs keep their dtypes; the new rules give literals their dtypes. An
    in-place operator behaves as in the new rule set's library. An array of a recording keeps its
    dtype when the program writes to it. Raises one PromotionError that lists every symbol that the
    rules refuse, each with its line. Raises GraphError for an explicit graph, whose casts already
    contain the decisions of its former rules.
    """
    target = rules_named(rules)
    if target is graph.rules:
        return graph
    new = rebuilt(graph, target)
    if new.all_refusals() or new.broken:
        raise refusal_error(graph, new)
    return new.graph


@uncollected
def rebuilt(
    graph: Graph, rules: PromotionRules, assumed_types: Sequence[Symbol | None] | None = None
) -> Rebuilt:
    """Return the program built under other rules, with stand-ins for the symbols that they refuse.

    The stand-in of a refused symbol has the type of the symbol at its index in `assumed_types` (by
    default: its old type). A graph read from text has the start of each expression and lacks the
    end, so that `g.scalar(2) + x` counts as `2 + x` there. Raises GraphError for an explicit graph.
    """
    _require_implicit(graph, f"what {graph.rules_before!r} decided is in its casts already")
    assumed = graph.symbols if assumed_types is None else assumed_types
    return Rebuilding(graph, rules, assumed).run()


def _require_implicit(graph: Graph, problem: str) -> None:
    """Raise GraphError for an explicit graph."""
    if graph.rules_before is not None:
        fix = "take the graph as it was before implicit_cast"
        raise GraphError(f"graph {graph.name!r} is explicit: {problem}", fix=fix)


class Rebuilding:
    """The state of one rebuild: the new graph, the twins and the refusals."""

    def __init__(
        self,
        graph: Graph,
        rules: PromotionRules,
        assumed_types: Sequence[Symbol | None],
        name: str = "",
    ) -> None:
        self.old, self.assumed_types = graph, assumed_types
        out_types = None if name else graph.out_types  # another graph promises no types
        self.new = Graph(name or graph.name, (), out_types, rules, graph.tf32)
        self.new.inherit(graph)
        self.literals = Literals(graph)
        places = [symbol.index for symbol in graph.inputs]
        self.names = dict(zip(places, graph.input_names, strict=True))
        self.twins: list[Symbol | None] = []
        self.refusals: dict[int, Refusal] = {}
        self.bodies: dict[int, list[Rebuilt]] = {}
        self.input_types: Mapping[int, TensorType] = {}  # of the graph of control flow
        # Equal ops are refused alike, and raising an error costs more than this look-up.
        self._refusal_cache: dict[tuple[Any, ...] | None, GraphirError] = {}
        self._error_operands: Sequence[Any] = ()
        self._lone: dict[int, Symbol] = {}
        self._in_place_targets = {
            each.args[0].index for each in graph.symbols if _writes_in_place(each)
        }

    def run(self) -> Rebuilt:
        """Rebuild all symbols, then set the inputs and the outputs of the new graph.

        The twin of an input may be a cast of it.
        """
        new, old = self.new, self.old
        for symbol in old.symbols:
            self.add(symbol)
        inputs = [x.args[0] if x.op is ops.cast else x for x in self._map_all(old.inputs)]
        new.set_interface(inputs, old.input_names, self._map_all(old.outputs))
        return Rebuilt(new, self.twins, self.refusals, _broken_promise(new), self.bodies)

    def add(self, symbol: Symbol) -> None:
        """Append the twin of the next symbol; None for a literal in an expression."""
        self.twins.append(None if symbol.index in self.literals.inside else self._twin(symbol))

    def converted(self, value: Symbol, to: DType, location: Location) -> Symbol:
        """Return a cast of a new symbol that the old program does not have."""
        type_ = value.type.cast(to)
        return self.new.append(ops.cast, (value,), TO_DTYPE[to.code], type_, location)

    def _map_all(self, symbols: Iterable[Symbol]) -> list[Symbol]:
        """Return the twins of symbols; note a refusal for a literal that the rules refuse."""
        symbols_built: list[Symbol] = []
        for symbol in symbols:
            try:
                symbols_built.append(self._map(symbol))
            except GraphirError as error:
                symbols_built.append(self._note_refusal(symbol, error))
        return symbols_built

    def _map(self, symbol: Symbol) -> Symbol:
        """Return the twin of a symbol; build the twin of a literal at its first use as an array."""
        twin = self.twins[symbol.index]
        if twin is None:
            twin = self._lone.get(symbol.index)
        if twin is None:
            twin = self._lone[symbol.index] = self._alone(symbol)
        return twin

    def _twin(self, symbol: Symbol) -> Symbol:
        try:
            with self.new.attempt() as attempt:
                twin = self._alone(symbol) if is_literal(symbol) else self._reapply(symbol)
                return attempt.keep(twin)
        except GraphirError as error:
            return self._note_refusal(symbol, error)

    def _alone(self, symbol: Symbol) -> Symbol:
        """Emit a literal with the dtype that the new rules give a lone Python number."""
        new, value = self.new, symbol.attrs["literal"]
        if not self.literals.alone(symbol):  # not the rules' own dtype: keep it
            return new.append(symbol.op, (), symbol.attrs, symbol.type, symbol.source)
        dtype, array = literal_array(value, new.rules.literal(value), new.rules, new.tf32)
        attrs = {"dtype": dtype, "value": array, "literal": value}
        inference = new.infer(ops.constant, (), attrs)
        return new.append(ops.constant, (), inference.attrs, inference.type, symbol.source)

    def _reapply(self, symbol: Symbol) -> Symbol:
        self._error_operands = symbol.args
        if symbol.op is ops.cast and symbol.origins:
            return self._reinsert_cast(symbol, self._map(symbol.args[0]))
        if bodies_of(symbol):
            return self._reapply_control(symbol)
        operands, attrs = self._operands(symbol), self._attrs(symbol)
        self._error_operands = operands
        cacheable = not (self.new.rules.by_value or symbol.location.in_place)
        key = _key(symbol, operands) if cacheable else None
        if key in self._refusal_cache:
            raise self._refusal_cache[key]
        try:
            return self._emit(symbol, operands, attrs)
        except GraphirError as error:
            # Cache only errors about the operands themselves: an error about constants that
            # this call made of literals names their locations.
            if key is not None and self._error_operands is operands:
                self._refusal_cache[key] = error.having()
            raise

    def _reapply_control(self, symbol: Symbol) -> Symbol:
        """Return the twin of an op of control flow, whose graphs are rebuilt for its operands."""
        args = tuple(self._map_all(symbol.args))
        self._error_operands = args
        rebuilt_bodies = self.bodies[symbol.index] = self._bodies(symbol, args)
        attrs = with_bodies(symbol.attrs, [body.graph for body in rebuilt_bodies])
        inference = self.new.infer(symbol.op, args, attrs)
        return self.new.append(symbol.op, args, inference.attrs, inference.type, symbol.source)

    def _bodies(self, symbol: Symbol, args: Sequence[Symbol]) -> list[Rebuilt]:
        """Return the graphs of control flow on operands; weak carries are promoted."""
        bodies, loop = bodies_of(symbol), bodies_of(symbol)[-1]
        first = len(args) - len(loop.inputs)
        types = [
            _entering_type(*operands)
            for operands in zip(symbol.args[first:], args[first:], loop.inputs, strict=True)
        ]
        carries = symbol.attrs.get("carries", len(symbol.type.parts))
        while True:
            result = [self._body(body, types) for body in bodies]
            if symbol.op is ops.control.cond:
                return result
            results = [x.type for x in result[-1].graph.outputs[:carries]]
            promoted = [self._promoted(*both) for both in zip(types, results, strict=False)]
            if promoted == types[: len(promoted)]:
                return result
            types[: len(promoted)] = promoted

    def _body(self, body: Graph, types: Sequence[TensorType]) -> Rebuilt:
        rebuilding = Rebuilding(body, self.new.rules, body.symbols)
        places = [x.index for x in body.inputs]
        rebuilding.input_types = dict(zip(places, types, strict=True))
        return rebuilding.run()

    def _promoted(self, carry: TensorType, output: TensorType) -> TensorType:
        """Return the type with which a weak carry enters a loop's body again."""
        if carry is output or not carry.dtype.weak or carry.shape != output.shape:
            return carry
        return carry.cast(self.new.rules.common((carry, output)))

    def _emit(self, symbol: Symbol, operands: list[Any], attrs: Mapping[str, Any]) -> Symbol:
        new, op, before = self.new, symbol.op, len(self.new.symbols)
        args = symbols_of(new, op, operands)
        for constant in new.symbols[before:]:
            constant.source = symbol.source
            self._error_operands = args
        inference = new.infer(op, args, attrs)
        result = new.append(op, args, inference.attrs, inference.type, symbol.source)
        if symbol.location.in_place and symbol.index not in self._in_place_targets:
            return assigned(op, args[0], result)
        return result

    def _reinsert_cast(self, cast: Symbol, value: Symbol) -> Symbol:
        """Re-emit the cast that an in-place operator or a write to an array inserted.

        The cast of an in-place operator is the cast that the new rules insert, if they insert one.
        """
        new, before, origins = self.new, cast.args[0], cast.origins
        if _writes_in_place(cast):
            self._error_operands = before.args
            if not before.location.in_place:
                raise PromotionError(
                    f"{self.old.rules.name!r} makes an in-place {origins[0].op} of other ops, and "
                    f"{new.rules.name!r} may make it of yet others",
                    fix="write x = x ** y",
                )
            return assigned(before.op, self._map(before.args[0]), value)
        if value.dtype is cast.dtype and origins[0].rule == ASSIGN:
            return value
        source = tuple(origin._replace(source=value.dtype) for origin in origins)
        inference = new.infer(ops.cast, (value,), cast.attrs)
        return new.append(ops.cast, (value,), inference.attrs, inference.type, source)

    def _operands(self, symbol: Symbol) -> list[Any]:
        """Return the twins of the operands; a literal in the expression as a Python number.

        The user of a refused literal is inferred as if the literal stood in its expression.
        """
        return [
            arg.attrs["literal"]
            if is_literal(arg) and (arg.index in self.refusals or self.literals.within(symbol, i))
            else self._map(arg)
            for i, arg in enumerate(symbol.args)
        ]

    def _attrs(self, symbol: Symbol) -> Mapping[str, Any]:
        """Return the attributes; a `full` whose literal gave the dtype gets a new dtype."""
        attrs: Mapping[str, Any] = symbol.attrs
        if "loop" in attrs:  # which NumPy ran under the rules of the old graph
            attrs = {name: value for name, value in attrs.items() if name != "loop"}
        if symbol.index in self.input_types:
            return {**attrs, "dtype": self.input_types[symbol.index].dtype}
        number = attrs["literal"] if symbol.op is ops.full else None
        is_own = number is not None and own_dtype(self.old.rules, number) is symbol.dtype
        return {**attrs, "dtype": self.new.rules.literal(number)} if is_own else attrs

    def _note_refusal(self, symbol: Symbol, error: GraphirError) -> Symbol:
        """Record a refusal, and return a stand-in of the assumed type for the symbol's users."""
        follows = any(arg.index in self.refusals for arg in symbol.args)
        op, operands = self._call(symbol)
        placed = error.having(location=symbol.location, op=op, operands=operands)
        self.refusals[symbol.index] = Refusal(symbol, placed, follows)
        assumption = self.assumed_types[symbol.index]
        type_ = symbol.type if assumption is None else assumption.type
        return self.new.append(symbol.op, (), symbol.attrs, type_, symbol.source)

    def _call(self, symbol: Symbol) -> tuple[str, tuple[OperandInfo, ...]]:
        """Return the name of the refused op and the descriptions of its operands."""
        if symbol.op is ops.input:
            return f"input %{self.names[symbol.index]}: {symbol.type}", ()
        if is_literal(symbol):
            return "scalar", ()
        op = symbol.args[0].op if _writes_in_place(symbol) else symbol.op
        return op.name, operand_infos(op, self._error_operands)


def _writes_in_place(symbol: Symbol) -> bool:
    """Whether a symbol is the cast by which an in-place operator writes its result to an array."""
    origins = symbol.origins if symbol.op is ops.cast else ()
    return bool(origins) and origins[0].rule == ASSIGN and origins[0].location.in_place


def _key(symbol: Symbol, operands: list[Any]) -> tuple[Any, ...]:
    """Return the cache key of a refusal: op, attributes (shared where equal), operand types."""
    types = [operand.type if isinstance(operand, Symbol) else repr(operand) for operand in operands]
    return (symbol.op, symbol.attrs, *types)


def _entering_type(operand: Symbol, twin: Symbol, entering: Symbol) -> TensorType:
    """Return the type of a body's input for the twin of an operand.

    An input that takes another dtype than its operand keeps it, unless the operand is weak: then
    the body has promoted it.
    """
    keeps = operand.dtype is not entering.dtype and not operand.dtype.weak
    return entering.type if keeps else entering.type.cast(twin.dtype)


def _broken_promise(graph: Graph) -> GraphError | None:
    """Return the error of a graph whose outputs differ from its `out_types`, or None."""
    types = tuple(symbol.type for symbol in graph.outputs)
    if not types or graph.out_types in (None, types):
        return None
    promise = ", ".join(map(str, graph.out_types or ()))
    return GraphError(
        f"graph {graph.name!r} promises ({promise}) and has ({', '.join(map(str, types))}) under "
        f"{graph.rules.name!r}",
        fix=".cast(...) the outputs, or promise that",
    )


def refusal_error(graph: Graph, new: Rebuilt) -> PromotionError:
    """Return one PromotionError for all refusals: first causes, then their consequences."""
    refusals = new.all_refusals()
    first = [refusal for refusal in refusals if not refusal.follows]
    rest = [refusal for refusal in refusals if refusal.follows]
    rules, count = new.graph.rules.name, len(inlined(graph))
    head = f"{rules!r} refuses {len(refusals)} of {count} symbols of graph {graph.name!r}"
    lines = [f"{head}:" if first else f"{rules!r} breaks a promise:"]
    lines += [f"  {refusal.error}" for refusal in first[:MAX_SHOWN]]
    if rest:
        lines.append(f"  {len(rest)} of them follow from operands that are refused:")
        lines += [f"  {refusal.error}" for refusal in rest[: max(MAX_SHOWN - len(first), 0)]]
    if len(refusals) > MAX_SHOWN:
        lines.append(f"  ... passes.diff(graph, {rules!r}) has all {len(refusals)}")
    if new.broken:
        lines.append(f"  {new.broken}")
    lines.append(f"Cast there, or keep rules={graph.rules.name!r}.")
    return PromotionError("\n".join(lines))


# -- another dtype for all floats


def retyped(graph: Graph, dtype: DTypeLike, rules: RulesLike | None = None) -> Rebuilt:
    """Return the program with all floats of one dtype; its inputs keep their dtypes.

    The rules are those of the graph if they have the dtype, else `jax`. Complex values keep their
    dtypes. Raises GraphError for a dtype that is no float, and for an explicit graph; one
    PromotionError for the symbols that the rules refuse.
    """
    to = DType(dtype)
    if not to.is_float or to.weak:
        problem = "as_dtype: the dtype of all floats is a float dtype"
        raise GraphError(problem, got=str(to), fix="use as_dtype='bfloat16'")
    _require_implicit(graph, "its casts have the dtypes that it was built with")
    own = graph.rules if to in graph.rules.dtypes else "jax"
    new = _Retyping(graph, rules_named(own if rules is None else rules), to).run()
    if new.refusals:
        raise refusal_error(graph, new)
    return new


class _Retyping(Rebuilding):
    """A rebuild whose float values all have the dtype `to`."""

    def __init__(self, graph: Graph, rules: PromotionRules, to: DType) -> None:
        super().__init__(graph, rules, graph.symbols, f"{graph.name}_as_{to}")
        self.to = to
        self._scaled = _scaled_integers(graph, to)

    def add(self, symbol: Symbol) -> None:
        """Append the twin of the next symbol, in the dtype."""
        super().add(symbol)
        twin = self.twins[-1]
        if twin is not None and symbol.index not in self._scaled:
            self.twins[-1] = self._cast(twin, self.to, twin.location)

    def _cast(self, value: Symbol, to: DType, location: Location) -> Symbol:
        """Return a value cast to a dtype if it is a float of another one."""
        if not value.dtype.is_float or value.dtype.weak or value.dtype is to:
            return value
        return self.converted(value, to, location)

    def _alone(self, symbol: Symbol) -> Symbol:
        literal = super()._alone(symbol)
        return self._cast(literal, self.to, literal.location)

    def _attrs(self, symbol: Symbol) -> Mapping[str, Any]:
        attrs = super()._attrs(symbol)
        if symbol.op in (ops.constant, ops.input):
            return attrs
        floats = {key: self.to for key, x in attrs.items() if isinstance(x, DType) and x.is_float}
        return {**attrs, **floats} if floats else attrs

    def _operands(self, symbol: Symbol) -> list[Any]:
        """Return the twins of the operands, in the dtype of the integers that the op scales."""
        operands = super()._operands(symbol)
        dtype = next((x.dtype for x in symbol.args if x.index in self._scaled), None)
        if dtype is None:
            return operands
        return [
            self._cast(x, dtype, symbol.location) if isinstance(x, Symbol) else x for x in operands
        ]

    def _reapply(self, symbol: Symbol) -> Symbol:
        """Return the twin of a symbol; a cast between floats is nothing here."""
        if symbol.op is ops.cast and symbol.dtype.is_float:
            value = self._map(symbol.args[0])
            if value.dtype is self.to:
                return value
        return super()._reapply(symbol)


def _scaled_integers(graph: Graph, to: DType) -> set[int]:
    """Return the indices of casts from integers to wider floats that ops of a graph make."""
    if graph.rules.name != "explicit":
        return set()
    return {
        symbol.index
        for symbol in graph.symbols
        if symbol.op is ops.cast and not symbol.args[0].dtype.is_inexact
        if symbol.dtype.is_float and not symbol.dtype.exact_in(to)
        if any(origin.operand == INTERMEDIATE for origin in symbol.origins)
    }


# -- literals


class Literals:
    """The literals of a graph, each in an expression (`x + 1`) or alone (`g.scalar(1)`).

    Each expression gives its literals their dtype. A literal is in the expression of a user that
    has the literal's location. Passes merge equal literals: a merged literal is in the expressions
    of later users too, if those users would give it the dtype that it has. `inside` has the indices
    of literals that are in the expression of their first user.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        first: dict[int, Symbol] = {}
        for symbol in graph.symbols:
            for arg in symbol.args:
                if is_literal(arg):
                    first.setdefault(arg.index, symbol)
        symbols = graph.symbols
        self.inside = {
            i
            for i, user in first.items()
            if _together(symbols[i], user) or not self.alone(symbols[i])
        }

    def within(self, user: Symbol, position: int) -> bool:
        """Whether an operand is a literal in the expression of its user."""
        literal = user.args[position]
        if literal.index not in self.inside:
            return False
        return _together(literal, user) or self._dtype_beside(user, position) is literal.dtype

    def alone(self, literal: Symbol) -> bool:
        """Whether a literal has the dtype that its rules give a lone Python number."""
        return own_dtype(self.graph.rules, literal.attrs["literal"]) is literal.dtype

    def _dtype_beside(self, user: Symbol, position: int) -> DType | None:
        """Return the dtype that the other operands of an op would give a literal, or None."""
        operands = [arg.attrs["literal"] if is_literal(arg) else arg for arg in user.args]
        try:
            return resolve_literal(self.graph.rules, user.op, operands, position)[1]
        except GraphirError:
            return None


def own_dtype(rules: PromotionRules, value: complex) -> DType | None:
    """Return the dtype that rules give a lone Python number, or None if they refuse it."""
    try:
        return rules.literal(value)
    except GraphirError:
        return None


def is_literal(symbol: Symbol) -> bool:
    """Whether a symbol is a constant from a Python number without a dtype."""
    return symbol.op is ops.constant and symbol.attrs["literal"] is not None


def _together(literal: Symbol, user: Symbol) -> bool:
    """Whether two symbols have the same location; True if the location is unknown."""
    return not literal.location.file or literal.location.matches(user.location)
