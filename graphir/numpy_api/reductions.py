"""Reductions on symbols, with a start, `initial=`, or a mask, `where=`.

An element that the mask leaves out becomes the neutral element, and the start is one more operand.
For integers, extremes and truths that is exact. Floats NumPy multiplies one after the other, and
adds in an order that depends on the mask, on the layout of the operand and on casts: those sums are
the op numpy_sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from graphir import ops
from graphir.dtypes import DType, numpy_code
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import OpAdder
from graphir.ops.op import Op
from graphir.semantics.sums import BUFFER, SumOrder, layout_of_result

UNSET: Any = object()
"""The default of `initial=`: NumPy takes None for a reduction without a start."""

_COMBINING: dict[Op, Op] = {
    ops.sum: ops.add,
    ops.prod: ops.multiply,
    ops.max: ops.maximum,
    ops.min: ops.minimum,
    ops.any: ops.logical_or,
    ops.all: ops.logical_and,
}
"""The op of two operands that each reduction repeats."""
_SIGNS: dict[Op, str] = {ops.sum: "+", ops.prod: "*"}
_NEUTRAL: dict[Op, float] = {ops.sum: 0, ops.prod: 1, ops.any: False, ops.all: True}


class ReductionArguments(NamedTuple):
    """NumPy's arguments of a reduction beside its operand, and the order in which NumPy adds.

    Casts make the order `buffered`, whatever it says.
    """

    axis: Any = None
    keepdims: Any = False
    dtype: Any = None
    initial: Any = UNSET
    where: Any = True
    order: SumOrder = SumOrder()

    def axes(self, x: Symbol) -> tuple[int, ...]:
        """Return the axes of a symbol to reduce."""
        return tuple(range(x.rank) if self.axis is None else axes_of(x, self.axis))

    def attributes(self, x: Symbol) -> dict[str, Any]:
        """Return the attributes of the reduction op of a symbol."""
        attributes = {"axis": self.axes(x), "keepdims": bool(self.keepdims)}
        return attributes if self.dtype is None else {**attributes, "dtype": self.dtype}


def reduced(build: OpAdder, op: Op, x: Symbol, arguments: ReductionArguments) -> Symbol:
    """Return a reduction with NumPy's arguments, by ops that have NumPy's bits.

    Sums of floats come first: for them alone a mask or a start changes the order. Then the mask
    replaces elements, as the start must not be among the replaced ones. The function raises
    GraphError for a sum or product of floats whose order no op has.
    """
    initial, where = arguments.initial, arguments.where
    where = True if where is np.True_ else where
    attributes = arguments.attributes(x)
    result = build.graph.infer(op, (x,), attributes).type
    if op is ops.sum and result.dtype.is_inexact:
        return _sum_of_floats(build, x, initial, where, attributes, result.dtype, arguments.order)
    if initial is UNSET and where is True:
        return build.emit(op, (x,), **attributes)
    if op in (ops.any, ops.all):
        x = build.cast(x, DType.bool)
    start = UNSET if initial is UNSET else _start(build, op, initial, result.dtype)
    if where is not True:
        x = masked(build, x, where, _neutral_element(op, start, result.dtype))
    if start is UNSET:
        return build.emit(op, (x,), **attributes)
    if 0 in [x.shape[i] for i in attributes["axis"]]:
        return build.emit(ops.broadcast_to, (start,), shape=result.shape)
    if op is ops.prod and result.dtype.is_inexact:
        product = _product_from(build, x, attributes["axis"], start, result.dtype)
        return build.emit(ops.reshape, (product,), shape=result.shape)
    return build.emit(_COMBINING[op], (build.emit(op, (x,), **attributes), start))


def _neutral_element(op: Op, start: Any, to: DType) -> Any:
    """Return the element that takes the place of those that a mask leaves out."""
    neutral = _NEUTRAL.get(op, start)
    if neutral is UNSET:
        raise GraphError(f"{op.name} with where= needs a start", fix="pass initial=")
    if op is ops.prod and to.is_complex:
        _refuse(op, f"{to} with where=", "write np.where(mask, x, 1)")
    return neutral


def masked(build: OpAdder, x: Symbol, mask: ArrayOrNumber, neutral: Any) -> Symbol:
    """Return a symbol with a neutral element where a mask is false."""
    mask = _mask(mask)
    if not isinstance(neutral, Symbol):
        neutral = x.dtype.to_numpy().type(neutral)
    result = build.emit(ops.where, build.operands(ops.where, (mask, x, neutral)))
    if result.shape != x.shape:
        raise ShapeError("where= does not broadcast to the operand", got=f"{result.type}, {x.type}")
    return result


def _mask(mask: ArrayOrNumber) -> Any:
    """Return a mask as a symbol or array of bools."""
    if type(mask) is TracedNumber:
        mask = concrete(mask)
    mask = mask if isinstance(mask, Symbol) else np.asarray(mask)
    if mask.dtype != np.bool_:
        raise GraphError("where= takes bools", got=str(mask.dtype), fix="use mask.astype(bool)")
    return mask


def true_count(build: OpAdder, x: Symbol, arguments: ReductionArguments, less: int = 0) -> Symbol:
    """Return max(n - less, 0) for the n elements that a reduction takes, as int64."""
    arguments = arguments._replace(dtype=None)
    sizes = [x.shape[i] for i in arguments.axes(x)]
    if arguments.where is True and all(isinstance(size, int) for size in sizes):
        count = prod(int(str(size)) for size in sizes)
        value = max(count - less, 0)
        return build.emit(ops.full, (), dtype=DType.int64, value=value, shape=())
    ones = build.emit(ops.full, (), dtype=DType.int64, value=1, shape=x.shape)
    count = reduced(build, ops.sum, ones, arguments)
    if not less:
        return count
    rest = build.emit(ops.subtract, build.operands(ops.subtract, (count, np.int64(less))))
    return build.emit(ops.maximum, build.operands(ops.maximum, (rest, np.int64(0))))


def shared_out(build: OpAdder, total: Symbol, count: Symbol) -> Symbol:
    """Return a quotient, computed in 64 bits a part and rounded to the dtype of the total."""
    wide = DType.complex128 if total.dtype.is_complex else DType.float64
    return build.cast(
        build.emit(ops.divide, (build.cast(total, wide), build.cast(count, wide))), total.dtype
    )


def reduction_in_order(
    build: OpAdder, name: str, x: Symbol, settings: Mapping[str, Any], order: SumOrder
) -> Symbol:
    """Return the NumPy function sum, mean, var or std, added in some order."""
    named, correction = dict(settings), 0
    if named.get("dtype") is not None:
        named["dtype"] = DType(numpy_code(named["dtype"]))
    if name in ("var", "std"):
        correction = named.pop("correction", named.pop("ddof", 0))
    arguments = ReductionArguments(**named, order=order)
    if name == "mean":
        return mean(build, x, arguments)
    if name == "sum":
        return reduced(build, ops.sum, x, arguments)
    return spread(build, ops.var if name == "var" else ops.std, x, arguments, correction)


def mean(build: OpAdder, x: Symbol, arguments: ReductionArguments) -> Symbol:
    """Return a mean with NumPy's arguments, by ops that have NumPy's bits."""
    dtype: DType | None = arguments.dtype
    to = dtype or build.graph.infer(ops.mean, (x,), {"axis": ()}).type.dtype
    wide = DType.float32 if dtype is None and to is DType.float16 else to
    if to.is_inexact and _has_op(x, arguments, wide):
        x = x if dtype is None else build.cast(x, dtype)
        settings = {"axis": arguments.axis, "keepdims": bool(arguments.keepdims)}
        return build.emit(ops.mean, (x,), **settings)
    total = reduced(build, ops.sum, x, arguments._replace(dtype=wide))
    return build.cast(shared_out(build, total, true_count(build, x, arguments)), to)


def spread(
    build: OpAdder, op: Op, x: Symbol, arguments: ReductionArguments, correction: int = 0
) -> Symbol:
    """Return a variance or standard deviation as NumPy does, by ops that have NumPy's bits."""
    dtype: DType | None = arguments.dtype
    to = dtype or build.graph.infer(ops.mean, (x,), {"axis": ()}).type.dtype
    wide = DType.from_numpy(np.result_type(x.dtype.to_numpy(), to.to_numpy()))
    if wide is to and _has_op(x, arguments, to):
        x = x if dtype is None else build.cast(x, dtype)
        if x.dtype is not DType.float16 or not all(isinstance(size, int) for size in x.shape):
            settings = {"axis": arguments.axis, "keepdims": bool(arguments.keepdims)}
            return build.emit(op, (x,), **settings, correction=correction)
    kept = arguments._replace(keepdims=True, dtype=to)
    total = reduced(build, ops.sum, x, kept)
    center = build.cast(shared_out(build, total, true_count(build, x, kept)), wide)
    off = build.emit(ops.subtract, (build.cast(x, wide), center))
    parts = [build.emit(part, (off,)) for part in (ops.real, ops.imag)] if to.is_complex else [off]
    squares = [build.emit(ops.multiply, (part, part)) for part in parts]
    square = build.emit(ops.add, tuple(squares)) if to.is_complex else squares[0]
    freedom = true_count(build, x, arguments, correction)
    order = arguments.order._replace(buffered=False)
    if order.layout is not None:
        sizes = tuple(int(str(size)) for size in x.shape)
        order = order._replace(layout=layout_of_result(order.layout, sizes))
    total = reduced(build, ops.sum, square, arguments._replace(dtype=to.part, order=order))
    variance = shared_out(build, total, freedom)
    return build.emit(ops.sqrt, (variance,)) if op is ops.std else variance


def _has_op(x: Symbol, arguments: ReductionArguments, to: DType) -> bool:
    """Whether the op of a mean or spread adds as NumPy does."""
    is_plain = arguments.where is True and arguments.order == SumOrder()
    return is_plain and not _is_buffered(x, arguments.axes(x), to)


# -- starts


def _start(build: OpAdder, op: Op, initial: ArrayOrNumber | None, to: DType) -> Any:
    """Return the start of a reduction as a symbol in the result's dtype, as NumPy casts it."""
    if isinstance(initial, Symbol) and not (op is ops.prod and to.is_inexact):
        if initial.rank:
            raise GraphError("initial= takes a number", got=str(initial.type))
        return build.cast(initial, to)
    if initial is None and op in (ops.max, ops.min):
        return UNSET
    number = _number(op, initial, to)
    if op in (ops.sum, ops.prod) and number == _NEUTRAL[op]:
        return UNSET  # from which NumPy starts anyhow
    if op is ops.prod and to is DType.float16:
        _refuse(op, f"initial={initial!r} of {to}", "write initial * x.prod()")
    return build.emit(ops.full, (), dtype=to, value=number.item(), shape=())


def _number(op: Op, initial: ArrayOrNumber | None, to: DType) -> Any:
    """Return the start of a reduction in a dtype as NumPy casts it."""
    if type(initial) is TracedNumber:
        initial = concrete(initial)
    if isinstance(initial, Symbol):
        _refuse(op, "a start that is computed", f"write initial {_SIGNS[op]} x.{op.name}()")
    if initial is None:
        _refuse(op, "initial=None", "leave initial= out")
    cell: Any = np.empty((), to.to_numpy())
    try:
        cell[()] = initial
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"initial={initial!r} is not representable in {to}: {error}") from None
    return cell


def _product_from(
    build: OpAdder, x: Symbol, axes: Sequence[int], start: Symbol, to: DType
) -> Symbol:
    """Return a product of floats from a start; the reduced axes become one, after the others."""
    if to.is_complex:
        _refuse(ops.prod, f"{x.type} from a start", "write initial * x.prod()")
    others = [i for i in range(x.rank) if i not in axes]
    x = build.emit(ops.permute, (x,), dims=(*others, *sorted(axes)))
    sizes = x.shape[: len(others)]
    x = build.emit(ops.reshape, (x,), shape=(*sizes, -1))
    first = build.emit(ops.broadcast_to, (start,), shape=(*sizes, 1))
    line = build.emit(ops.concat, (first, build.cast(x, to)), axis=len(others))
    return build.emit(ops.prod, (line,), axis=(len(others),))


# -- order


def _sum_of_floats(
    build: OpAdder,
    x: Symbol,
    initial: Any,
    where: Any,
    attributes: dict[str, Any],
    to: DType,
    order: SumOrder,
) -> Symbol:
    """Return a sum in a dtype of floats: the op `sum`, or numpy_sum if NumPy's order is another."""
    order = order._replace(buffered=order.buffered or _is_buffered(x, attributes["axis"], to))
    number = 0 if initial is UNSET else _number(ops.sum, initial, to).item()
    if number or np.signbit(np.real(number)):
        attributes = {**attributes, "initial": number}
    elif where is True and order == SumOrder():  # from 0.0 NumPy starts anyhow
        return build.emit(ops.sum, (x,), **attributes)
    if to is DType.float16:
        _refuse(ops.sum, f"{to} with where=, initial= or strides", "use x.astype(np.float32)")
    mask = np.True_ if where is True else _mask(where)
    values = build.operands(ops.numpy_sum, (build.cast(x, to), mask))
    return build.emit(ops.numpy_sum, values, **{**attributes, "dtype": None}, **order._asdict())


def _is_buffered(x: Symbol, axes: Sequence[int], to: DType) -> bool:
    """Whether NumPy casts the operand of a sum, and by that adds pairs in parts."""
    long = [i for i, size in enumerate(x.shape) if size != 1]
    if x.dtype is to or not long or long[-1] not in axes:
        return False
    sizes = [size for size in (x.shape[i] for i in axes) if isinstance(size, int)]
    count = prod(sizes) if len(sizes) == len(axes) else 1 << to.precision
    if count <= BUFFER:
        return False
    return x.dtype.is_inexact or x.dtype.precision + count.bit_length() > to.precision


def _refuse(op: Op, got: str, fix: str) -> NoReturn:
    raise GraphError("no op has NumPy's order of operations", got=f"{op.name} of {got}", fix=fix)
