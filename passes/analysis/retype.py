"""Retype a graph: the same program with another dtype for all its floats.

Float inputs and constants are cast to the dtype where they enter, and so is each float result of
another dtype, such as the mean of integers. Dtypes that the program writes become the dtype too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphir import DType, Graph, GraphError, PromotionRules, Symbol, ops
from graphir import rules as rules_named
from graphir.dtypes import DTypeLike
from graphir.ops.attribute_record import TO_DTYPE
from graphir.promotion import RulesLike
from passes.analysis.rebuild import Rebuilding, Rebuilt, refusal_error


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
        super().__init__(graph, rules, graph.symbols)
        self.to = to
        self.new.name, self.new.out_types = f"{graph.name}_as_{to}", None

    def run(self) -> Rebuilt:
        """Rebuild all symbols."""
        for symbol in self.old.symbols:
            self.add(symbol)
            if (twin := self.twins[-1]) is not None:
                self.twins[-1] = self._in_dtype(twin)
        result = self.finished()
        result.graph.inputs = [x.args[0] if x.op is ops.cast else x for x in result.graph.inputs]
        return result

    def _in_dtype(self, twin: Symbol) -> Symbol:
        """Return a value cast to the dtype if it is a float of another one."""
        if not twin.dtype.is_float or twin.dtype.weak or twin.dtype is self.to:
            return twin
        type_ = twin.type.cast(self.to)
        return self.new.append(ops.cast, (twin,), TO_DTYPE[self.to.code], type_, twin.location)

    def _alone(self, symbol: Symbol) -> Symbol:
        return self._in_dtype(super()._alone(symbol))

    def _attrs(self, symbol: Symbol) -> Mapping[str, Any]:
        attrs = super()._attrs(symbol)
        if symbol.op in (ops.constant, ops.input):
            return attrs
        floats = {key: self.to for key, x in attrs.items() if isinstance(x, DType) and x.is_float}
        return {**attrs, **floats} if floats else attrs

    def _reapply(self, symbol: Symbol) -> Symbol:
        """Return the twin of a symbol; a cast between floats is nothing here."""
        if symbol.op is ops.cast and symbol.dtype.is_float:
            value = self._map(symbol.args[0])
            if value.dtype is self.to:
                return value
        return super()._reapply(symbol)
