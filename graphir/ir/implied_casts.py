"""What the rules ask of a symbol beyond what the program says: the casts that it implies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.ir.inference_cache import infer
from graphir.ir.operands import operand_infos
from graphir.promotion import rules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.ops.types import TensorType


class ImpliedCast(NamedTuple):
    """An operand whose dtype is not the one that its op's signature names; `position` is its."""

    position: int
    operand: str
    source: DType
    target: DType


class Implied(NamedTuple):
    """What symbols of one op, one set of operand types and attributes imply under their rules.

    `attrs` are those with which the op under the rules "explicit" computes the same, and `result`
    the dtype that it has there: where that is not the symbol's, its result is cast.
    """

    casts: tuple[ImpliedCast, ...]
    attrs: dict[str, Any]
    result: DType


def implied(graph: Graph, symbol: Symbol) -> Implied:
    """What a symbol of a graph implies: equal for all that are of one kind (see Graph.kinds).

    Raises PromotionError where the rules type the op on dtypes in which no kernel computes it.
    """
    op, args, attrs = symbol.op, symbol.args, symbol.attrs
    if op.kind == "creation":
        literal = attrs.get("literal") is not None
        return Implied((), {**attrs, "literal": None} if literal else attrs, symbol.dtype)
    operand_dtypes = graph.infer(op, args, attrs).operands
    casts = tuple(
        ImpliedCast(i, op.operand(i), arg.dtype, to)
        for i, (arg, to) in enumerate(zip(args, operand_dtypes, strict=True))
        if arg.dtype is not to
    )
    types = [arg.type.cast(to) for arg, to in zip(args, operand_dtypes, strict=True)]
    result = _computation_dtype(graph, symbol, types)
    if result is not symbol.dtype and attrs.get("dtype", result) is None:
        attrs, result = {**attrs, "dtype": symbol.dtype}, symbol.dtype
    return Implied(casts, attrs, result)


def _computation_dtype(graph: Graph, symbol: Symbol, types: list[TensorType]) -> DType:
    """The dtype in which a symbol's op computes on operands of these types."""
    try:
        return infer(rules("explicit"), symbol.op, types, symbol.attrs).type.dtype
    except PromotionError as error:
        if not graph.rules.types_uncomputed:
            raise
        raise PromotionError(
            f"{graph.rules.name!r} types this {symbol.type}, as its library's graph builder does, "
            "but no kernel computes it",
            reason=error.summary,
            got=" and ".join(str(type_) for type_ in types),
            fix=error.fixes,
            op=symbol.op.name,
            operands=operand_infos(symbol.op, symbol.args),
            location=symbol.location,
        ) from None
