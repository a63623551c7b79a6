"""The implicit casts that the promotion rules demand for one symbol.

The signature of an op names a dtype for each operand. An operand of another dtype needs a cast. The
result needs a cast where the op, given the converted operands under the rules "explicit", computes
another dtype than the symbol has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.ir.op_builder import infer
from graphir.ir.operands import operand_infos
from graphir.promotion import rules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.ops.types import TensorType


class ImpliedCast(NamedTuple):
    """A cast of one operand, from its own dtype to the dtype that its op's signature names.

    `position` and `operand` are the operand's position and its name in the signature.
    """

    position: int
    operand: str
    source: DType
    target: DType


class Implied(NamedTuple):
    """The implicit casts of a symbol, and its op as the rules "explicit" compute it.

    All symbols with the same op, operand types and attributes share the answer. With the attributes
    `attrs` the op computes the same values under the rules "explicit", with a result of the type
    `result`. Where `result` differs from the symbol's type, the result needs a cast. `outputs` are
    the dtypes to which the outputs of each graph among the attributes need casts.
    """

    casts: tuple[ImpliedCast, ...]
    attrs: Mapping[str, Any]
    result: TensorType
    outputs: tuple[tuple[DType, ...], ...] = ()


def implied(graph: Graph, symbol: Symbol) -> Implied:
    """Return the implicit casts of a symbol. The answer is equal for symbols with equal `kinds`.

    Raises PromotionError where the rules give the op a type on dtypes for which no kernel exists.
    `Graph.kinds` yields the keys.
    """
    op, args, attrs = symbol.op, symbol.args, symbol.attrs
    if op.kind == "creation":
        literal = attrs.get("literal") is not None
        return Implied((), {**attrs, "literal": None} if literal else attrs, symbol.type)
    if op in (ops.control.part, ops.control.call):
        return Implied((), attrs, symbol.type)
    inference = graph.infer(op, args, attrs)
    operand_dtypes = inference.operands
    casts = tuple(
        ImpliedCast(i, op.operand(i), arg.dtype, to)
        for i, (arg, to) in enumerate(zip(args, operand_dtypes, strict=True))
        if arg.dtype is not to
    )
    if inference.outputs:
        return Implied(casts, attrs, symbol.type, inference.outputs)
    types = [arg.type.cast(to) for arg, to in zip(args, operand_dtypes, strict=True)]
    result = _computation_dtype(graph, symbol, types)
    if result is not symbol.dtype and attrs.get("dtype", result) is None:
        attrs, result = {**attrs, "dtype": symbol.dtype}, symbol.dtype
    return Implied(casts, attrs, symbol.type.cast(result))


def _computation_dtype(graph: Graph, symbol: Symbol, types: list[TensorType]) -> DType:
    """Return the dtype of the op's result on operands of these types, under "explicit"."""
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
