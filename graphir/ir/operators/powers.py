"""Powers by a scalar exponent that NumPy computes as a root or a reciprocal.

NumPy computes `x ** 0.5` as sqrt(x) and `x ** -1` as 1 / x. The bits of these differ from those of
a power in some 5 % of elements. NumPy takes the short cut for every 0-d exponent of that value,
after the conversion of x to a float, in the loops of np.power too. For complex x the operator alone
takes short cuts, for Python's -1, 2 and 0.5. NumPy 1 takes its short cuts for NumPy's scalars and
0-d arrays too, for -1, 0, 0.5, 1 and 2, and keeps the dtype of x. The kernel of pow squares floats
itself; float16 has the same bits either way. Sources: fast_scalar_power in
numpy/_core/src/multiarray/number.c of 2.4; numpy/_core/src/umath/loops.c.src.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.ops.op import GraphValue, Op
from graphir.ops.types import TensorType
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import Number, Place
from graphir.promotion.rules import PromotionRules

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class Shortcut(NamedTuple):
    """The op that replaces a power, and the dtype to which its operand is converted first."""

    op: Op
    dtype: DType


def shortcut(rules: PromotionRules, base: TensorType, exponent: Any) -> Shortcut | None:
    """Return the op that the library's `**` computes instead of a power, or None for a power.

    `exponent` is a Python number or a NumPy scalar.
    """
    if not (isinstance(rules, LibraryRules) and rules.roots) or base.dtype.weak:
        return None
    if not isinstance(exponent, (int, float, np.floating, np.integer)):
        return None
    number: Any = cast("Any", exponent)
    if base.dtype.is_complex:
        op = _OF_COMPLEX.get((type(number), number))
    else:
        op = ops.sqrt if number == 0.5 else ops.reciprocal if number == -1 else None
    dtype = rules.answer(base, number) if op else None
    if op is None or dtype is None or dtype.is_integer:
        return None
    converts = dtype is not base.dtype
    if converts and base.dtype.family in ("float", "complex") and type(number) in (int, float):
        return None
    return Shortcut(op, dtype)


def power(base: Symbol, exponent: Any, operator: bool = True) -> Symbol | None:
    """Add `base ** exponent` by NumPy's short cut; return None where NumPy computes a power.

    With `operator` False the call is np.power. For a 0-d exponent whose value is unknown at build
    time, the graph computes root, reciprocal and power, and selects among them when it runs.
    """
    graph = base.graph
    if not (isinstance(graph.rules, LibraryRules) and graph.rules.roots):
        return None
    if not operator and base.dtype.is_complex:
        return None
    if isinstance(exponent, np.ndarray) and not exponent.ndim:
        exponent = graph.entering(exponent)
    if isinstance(exponent, GraphValue):
        symbol = cast("Symbol", exponent)
        if symbol.rank or symbol.graph is not graph or symbol.weak:
            return None
        if symbol.op is not ops.constant:
            return _known_power(base, symbol)
        exponent = symbol.attrs["value"][()]
    quick = _quick(base, exponent) if operator else None
    if quick is not None:
        return quick
    short: Shortcut | None = graph.ask(shortcut, graph.rules, base.type, exponent)
    return short and graph.apply(short.op, (graph.implied_cast(base, short.dtype, ops.pow),), {})


def _quick(base: Symbol, exponent: Any) -> Symbol | None:
    """Add a short cut of rules with `scalar_exponents`; return None for any other power.

    These rules keep the dtype of the base. The exponent is a Python number or a NumPy scalar.
    """
    rules, kinds = base.graph.rules, (int, float, np.integer, np.floating)
    if not (isinstance(rules, LibraryRules) and rules.scalar_exponents):
        return None
    if not isinstance(exponent, kinds):
        return None
    number: Any = exponent.item() if isinstance(exponent, np.generic) else exponent
    factors = int(number) if base.dtype.is_integer and number == 2 else number
    place = Place((base.type, Number(factors)), 1, ops.pow.name, base.op.kind != "creation")
    if type(number) not in (int, float) or not rules.shortcut(factors, place):
        return None
    op = _OF_FLOATS.get(number) if base.dtype.is_inexact else None
    return ops.pow(base, number) if op is None else op(base)


def _known_power(base: Symbol, exponent: Symbol) -> Symbol | None:
    """Add a power by a 0-d exponent that selects root, reciprocal or power when the graph runs.

    The selection is for real floats; for other dtypes the result is the power.
    """
    whole = power_of_arrays(ops.pow(base, exponent))
    if not whole.dtype.is_float or base.weak:
        return whole
    x = base.graph.implied_cast(base, whole.dtype, ops.pow)
    y = base.graph.implied_cast(exponent, whole.dtype, ops.pow, 1)
    rest = ops.where(ops.equal(y, -1), ops.reciprocal(x), whole)
    return ops.where(ops.equal(y, 0.5), ops.sqrt(x), rest)


_OF_FLOATS: dict[Any, Op] = {-1: ops.reciprocal, 0.5: ops.sqrt, 2: ops.square}
_OF_COMPLEX: dict[Any, Op] = {
    (int, -1): ops.reciprocal,
    (int, 2): ops.square,
    (float, 0.5): ops.sqrt,
}


def power_of_arrays(result: Symbol) -> Symbol:
    """Return a result, but a power of floats without axes by the loop over arrays.

    The kernel of `pow` computes such powers as those of scalars, which have other bits.
    """
    if result.op is not ops.pow or result.rank or not result.dtype.is_float:
        return result
    operands = (
        result.graph.implied_cast(value, result.dtype, ops.pow, place)
        for place, value in enumerate(result.args)
    )
    base, exponent = (ops.reshape(value, (1,)) for value in operands)
    return ops.reshape(ops.pow(base, exponent), ())
