"""Retype a graph: the same program with another dtype for all its floats.

Float inputs and constants are cast to the dtype where they enter, and so is each float result of
another dtype, such as the mean of integers. Dtypes that the program writes become the dtype too.

The integers that one op of an explicit graph scales, such as int32 biases of ONNX's
DequantizeLinear, are no floats of the program: they keep the dtype of the op's arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphir.dtypes import DTypeLike
from graphir.location import INTERMEDIATE
from graphir.ops.attribute_record import TO_DTYPE
from graphir.passes.analysis.rebuild import Rebuilding, Rebuilt, refusal_error
from graphir.promotion import RulesLike
from graphir.public import DType, Graph, GraphError, Location, PromotionRules, Symbol, ops
from graphir.public import rules as rules_named


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
    if graph.rules_before is not None:
        raise GraphError(
            f"graph {graph.name!r} is explicit: its casts have the dtypes that it was built with",
            fix="take the graph as it was before implicit_cast",
        )
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

    def run(self) -> Rebuilt:
        """Rebuild all symbols."""
        for symbol in self.old.symbols:
            self.add(symbol)
            twin = self.twins[-1]
            if twin is not None and symbol.index not in self._scaled:
                self.twins[-1] = self._in_dtype(twin)
        result = self.finished()
        inputs = [x.args[0] if x.op is ops.cast else x for x in result.graph.inputs]
        result.graph.set_interface(inputs)
        return result

    def _in_dtype(self, twin: Symbol) -> Symbol:
        """Return a value cast to the dtype if it is a float of another one."""
        return self._cast(twin, self.to, twin.location)

    def _cast(self, value: Symbol, to: DType, location: Location) -> Symbol:
        if not value.dtype.is_float or value.dtype.weak or value.dtype is to:
            return value
        type_ = value.type.cast(to)
        return self.new.append(ops.cast, (value,), TO_DTYPE[to.code], type_, location)

    def _alone(self, symbol: Symbol) -> Symbol:
        return self._in_dtype(super()._alone(symbol))

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
