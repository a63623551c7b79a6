"""StableHLO's form of each primitive op, as functions of values with the kernels' parameters."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (A lambda's operands are values, which its line need not say; operators have types of no values.)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graphir.ops.shape_rules import broadcast_shapes
from graphir.public import DType, TensorType
from graphir.runtime.targets.stablehlo_ import movement
from graphir.runtime.targets.stablehlo_.movement import axis_moved, picked
from graphir.runtime.targets.stablehlo_.values import (
    DIRECTIONS,
    HloValue,
    Sizes,
    cast_values,
    dense,
    fields,
    ints,
    together,
    where,
)

# -- numbers by their kind


def real(x: HloValue) -> HloValue:
    """The real part."""
    return x.op("real", to=x.dtype.part) if x.dtype.is_complex else x


def imag(x: HloValue) -> HloValue:
    """The imaginary part; 0 of a real number."""
    return x.op("imag", to=x.dtype.part) if x.dtype.is_complex else x.number(0, x.shape)


def signbit(x: HloValue) -> HloValue:
    """Whether the sign of a float is set, of -0.0 and NaN too."""
    return x.bitcast(DType(f"int{x.dtype.bits}")) < 0


# -- division


def floor_divide(x: HloValue, y: HloValue) -> HloValue:
    """Return the floor of a quotient of integers, 0 where y is 0; the op on floats decomposes."""
    safe = _safe(y)
    quotient, rest = x / safe, x.op("remainder", safe)
    off = rest.ne(0) & ((rest < 0) ^ (safe < 0))
    floor = where(y.eq(0), 0, quotient - off.convert(x.dtype))
    return where(y.eq(-1), -x, floor) if x.dtype.family == "int" else floor


def fmod(x: HloValue, y: HloValue) -> HloValue:
    """Return the remainder with the sign of x; for integers it is 0 where y is 0."""
    if x.dtype.is_float:
        return x.op("remainder", y)
    return where(y.eq(0), 0, x.op("remainder", _safe(y)))


def _safe(y: HloValue) -> HloValue:
    """Return integer divisors with 1 for 0 and -1, by which some quotients do not exist."""
    return where(y.eq(0) | y.eq(-1) if y.dtype.family == "int" else y.eq(0), 1, y)


# -- powers and shifts


def power(x: HloValue, y: HloValue) -> HloValue:
    """Return x ** y, with x * x for real floats where y is 2; integers wrap."""
    if x.dtype.is_integer:
        return _integer_power(x, y)
    powers = x.op("power", y)
    if x.dtype.is_complex:  # engines do not define complex 0 ** 0
        return where(y.eq(0), 1, powers)
    return where(y.eq(2), x * x, powers)


def _integer_power(x: HloValue, y: HloValue) -> HloValue:
    """Return x ** y by squaring, in a loop that ends when no exponent has bits left."""
    base, left = together(x, x, y)
    state = [base.number(1, base.shape), base, left]
    types = [function.type for function in state]

    def goes_on(power: HloValue, base: HloValue, left: HloValue) -> HloValue:
        return left.ne(0).reduce(operator.or_, False, range(left.rank))

    def step(power: HloValue, base: HloValue, left: HloValue) -> list[HloValue]:
        power = where((left & 1).eq(1), power * base, power)
        return [power, base * base, left.op("shift_right_logical", 1)]

    regions = [x.body.region(types, function) for function in (goes_on, step)]
    return x.body.line("while", state, types, *regions)[0]


def shifted(name: str, x: HloValue, y: HloValue) -> HloValue:
    """Return a shift; where y is negative or at least the width, it is 0 or the sign."""
    past = (y < 0) | (y >= x.dtype.bits)
    arithmetic = name == "right" and x.dtype.family == "int"
    op = {"left": "shift_left"}.get(
        name, f"shift_right_{'arithmetic' if arithmetic else 'logical'}"
    )
    rest = where(x < 0, -1, x.number(0, x.shape)) if arithmetic else 0
    return where(past, rest, x.op(op, where(past, 0, y)))


# -- functions


def compared(direction: str, x: HloValue, y: HloValue) -> HloValue:
    """Return a comparison; complex numbers compare by real and then imaginary part, as in NumPy."""
    if x.dtype.is_complex and direction[0] in "LG":
        strictly = f"{direction[0]}T"
        ahead = real(x).compare(strictly, real(y)) & imag(x).eq(imag(x)) & imag(y).eq(imag(y))
        return ahead | (real(x).eq(real(y)) & imag(x).compare(direction, imag(y)))
    return x.compare(direction, y)


def _extreme(name: str, direction: str, x: HloValue, y: HloValue) -> HloValue:
    """Return the greater or the lesser of two values, or NaN if either is NaN."""
    if x.dtype.is_complex:
        return where(compared(direction, x, y) | x.ne(x), x, y)
    return x.op(name, y)


maximum = partial(_extreme, "maximum", "GE")
minimum = partial(_extreme, "minimum", "LE")


def before(x: HloValue, y: HloValue) -> HloValue:
    """Return whether x sorts before y, with NaN last as in NumPy."""
    if x.dtype.is_complex:
        return _complex_before(x, y)
    return (x < y) | (x.eq(x) & y.ne(y)) if x.dtype.is_float else x < y


def _complex_before(x: HloValue, y: HloValue) -> HloValue:
    """Return the order of complex numbers by real part, then by imaginary part.

    Numbers without NaN come first, then those whose imaginary part alone is NaN.
    """
    has_no_nan, theirs = (imag(operand).eq(imag(operand)) for operand in (x, y))
    ahead, behind = real(x) < real(y), real(x) > real(y)
    apart = real(x).eq(real(x)) ^ real(y).eq(real(y))
    alike = before(imag(x), imag(y))
    by_parts = where(behind, has_no_nan & ~theirs, where(apart, real(y).ne(real(y)), alike))
    return where(ahead, has_no_nan | ~theirs, by_parts)


Pair = Callable[[HloValue, HloValue], HloValue]


# -- reductions


def reduced(function: Pair, init: Callable[[DType], Any]) -> Callable[..., HloValue]:
    """Return the emitter of a reduction by a function of two values.

    `init(dtype)` is the neutral element of the function.
    """

    def row(x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
        return _keep_axes(x.reduce(function, init(x.dtype), axis), x, axis, keepdims)

    return row


def _keep_axes(result: HloValue, x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
    """Return a reduction's result; under `keepdims` the reduced axes stay, with size 1."""
    if not keepdims:
        return result
    return result.reshape(tuple(1 if i in axis else size for i, size in enumerate(x.shape)))


total = reduced(operator.add, lambda dtype: 0)
product = reduced(operator.mul, lambda dtype: 1)
any_of = reduced(operator.or_, lambda dtype: False)
all_of = reduced(operator.and_, lambda dtype: True)


def extreme(function: Pair, ends: Callable[[DType], Any]) -> Callable[..., HloValue]:
    """Return the emitter of a maximum or minimum.

    The emitter raises NotImplementedError for an empty axis. `ends(dtype)` is the start value.
    """
    row = reduced(function, ends)

    def check_input(x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
        if any(not x.shape[i] for i in axis):
            raise NotImplementedError(
                f"has no maximum or minimum over an empty axis, as in {x.type}"
            )
        return row(x, axis, keepdims)

    return check_input


def _end(dtype: DType, sign: int) -> Any:
    """Return the greatest value of a dtype, or the least one for the sign -1."""
    if dtype.format is None:
        return dtype.max if sign > 0 else dtype.min
    end = sign * math.inf
    return complex(end, end) if dtype.is_complex else end


greatest_of = extreme(maximum, partial(_end, sign=-1))
least_of = extreme(minimum, partial(_end, sign=1))


def located(name: str) -> Callable[..., HloValue]:
    """Return the emitter of argmax or argmin of real values: the int64 index, NaN first."""

    def row(x: HloValue, axis: int | None, keepdims: bool) -> HloValue:
        axes = tuple(range(x.rank)) if axis is None else (axis,)
        over = {"max": greatest_of, "min": least_of}[name]
        hit = x.eq(_spread(over(x, axes, False), x, axes))
        hit = hit | x.ne(x) if x.dtype.is_float else hit
        if axis is None:
            flat = x.body.iota(DType.int64, (math.prod(x.shape),), 0).reshape(x.shape)
        else:
            flat = x.body.iota(DType.int64, x.shape, axis)
        first = where(hit, flat, DType.int64.max)
        return _keep_axes(first.reduce(minimum, DType.int64.max, axes), x, axes, keepdims)

    return row


def _spread(reduced_value: HloValue, x: HloValue, axes: Sizes) -> HloValue:
    """Return a reduction's result, broadcast back to the shape of `x`."""
    return reduced_value.broadcast(x.shape, [i for i in range(x.rank) if i not in axes])


# -- rows


def accumulated(function: Pair, init: ArrayLike) -> Callable[..., HloValue]:
    """Return the emitter of a scan by a function of two values, with neutral element `init`."""

    def row(x: HloValue, axis: int) -> HloValue:
        size, shape = x.shape[axis], [1] * x.rank
        if not math.prod(x.shape):
            return x
        shape[axis] = size
        padding = np.zeros((x.rank, 2), np.int64)
        padding[axis, 0] = size - 1
        region = x.body.region([TensorType(x.dtype)] * 2, function)
        windows = {"window_dimensions": ints(shape), "padding": dense(padding, DType.int64)}
        return x.body.emit("reduce_window", [x, x.number(init)], x.type, region, **windows)

    return row


# -- sorting


def sort(x: HloValue, axis: int, descending: bool, stable: bool) -> HloValue:
    """Return the values in the stable ascending order, NaN last.

    Other orders have a decomposition, so `descending` is False and `stable` True here.
    """
    return _sorted([x], axis)[0]


def argsort(x: HloValue, axis: int, descending: bool, stable: bool) -> HloValue:
    """Return the int64 indices of the stable ascending order, NaN last.

    Other orders have a decomposition, so `descending` is False and `stable` True here.
    """
    return _sorted([x, x.body.iota(DType.int64, x.shape, axis)], axis)[1]


def _sorted(values: Sequence[HloValue], axis: int) -> list[HloValue]:
    """Return all arrays, in the order that sorts the first array; the sort is stable."""
    scalars = [TensorType(value.dtype) for value in values for _ in range(2)]

    def compare(x: HloValue, y: HloValue, *others: HloValue) -> HloValue:
        return before(x, y)

    region = values[0].body.region(scalars, compare)
    types = [value.type for value in values]
    attrs = {"dimension": f"{axis} : i64", "is_stable": "true"}
    return values[0].body.line("sort", values, types, region, **attrs)


def searchsorted(x: HloValue, values: HloValue, side: str) -> HloValue:
    """Return the insertion points of values in a sorted vector, by binary search.

    Each step decides one bit of the insertion point.
    """
    size = x.shape[0]
    count = x.body.iota(DType.int64, (1,), 0).reshape(()).broadcast(values.shape)
    for bit in reversed(range(size.bit_length())):
        further = count + (1 << bit)
        there = picked(x, where(further > size, size, further) - 1, 0)
        ahead = before(there, values) if side == "left" else ~before(values, there)
        count = where((further <= size) & ahead, further, count)
    return count


def matmul(x: HloValue, y: HloValue) -> HloValue:
    """Return the matrix product over the last two axes; the leading axes broadcast."""
    inner = max(y.rank - 2, 0)
    if x.rank < 3 or y.rank < 3:
        product = _product(x, y, ((), ()), ((x.rank - 1,), (inner,)))
        # For one matrix x and many y, the rows of x come before the batch axes of y.
        return axis_moved(product, 0, product.rank - 2) if x.rank == 2 and y.rank > 2 else product
    batch: Any = broadcast_shapes((x.type.shape[:-2], y.type.shape[:-2]))
    left, right = (operand.broadcast((*batch, *operand.shape[-2:])) for operand in (x, y))
    places = tuple(range(len(batch)))
    return _product(left, right, (places, places), ((left.rank - 1,), (right.rank - 2,)))


def _product(
    x: HloValue, y: HloValue, batch: tuple[Sizes, Sizes], sum_axes: tuple[Sizes, Sizes]
) -> HloValue:
    """Return a dot_general; for bools in int32, which counts the pairs that are both true."""
    if x.dtype is DType.bool:
        left, right = (cast_values(operand, DType.int32) for operand in (x, y))
        return _product(left, right, batch, sum_axes).ne(0)
    shape: Sizes = tuple(x.shape[i] for i in batch[0])
    free = [
        tuple(size for i, size in enumerate(operand.shape) if i not in (*some, *others))
        for operand, some, others in zip((x, y), batch, sum_axes, strict=True)
    ]
    if not all(x.shape[i] for i in sum_axes[0]):  # an empty sum, on which engines abort
        return x.number(0, (*shape, *free[0], *free[1]))
    dimensions = fields(
        "dot",
        lhs_batching_dimensions=batch[0],
        rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=sum_axes[0],
        rhs_contracting_dimensions=sum_axes[1],
    )
    exact = "#stablehlo<precision HIGHEST>"
    return x.body.emit(
        "dot_general",
        [x, y],
        TensorType(x.dtype, (*shape, *free[0], *free[1])),
        dot_dimension_numbers=dimensions,
        precision_config=f"[{exact}, {exact}]",
    )


Row = Callable[..., HloValue]


def _op(name: str) -> Row:
    """Return the row of an elementwise op of StableHLO or CHLO."""

    def row(x: HloValue, *others: HloValue) -> HloValue:
        return x.op(name, *others)

    return row


_DIRECT = {
    **{name: name for name in ("add", "subtract", "multiply", "atan2")},
    **{name: name for name in ("sqrt", "cbrt", "log", "tan", "tanh")},
    **{name: name for name in ("floor", "ceil", "sign")},
    "negative": "negate",
    "round": "round_nearest_even",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "log1p": "log_plus_one",
    "sin": "sine",
    "cos": "cosine",
    "sigmoid": "logistic",
    "logical_and": "and",
    "logical_or": "or",
    "logical_xor": "xor",
    "logical_not": "not",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_invert": "not",
    **{name: f"chlo.{name}" for name in ("asin", "acos", "atan", "sinh", "cosh", "erf")},
    **{name: f"chlo.{name}" for name in ("asinh", "acosh", "atanh")},
    "nextafter": "chlo.next_after",
}
COMPOSITES = frozenset({"sigmoid", "cbrt"})
"""The composite ops that StableHLO has itself."""

STABLEHLO: Mapping[str, Row] = {
    **{name: _op(theirs) for name, theirs in _DIRECT.items()},
    **{name: partial(compared, how) for name, how in DIRECTIONS.items()},
    # -- arithmetic
    "divide": operator.truediv,
    "floor_divide": floor_divide,
    "fmod": fmod,
    "pow": power,
    "maximum": maximum,
    "minimum": minimum,
    "abs": lambda x: x.op("abs", to=x.dtype.part),
    "reciprocal": partial(operator.truediv, 1),  # of complex numbers; others decompose
    # -- functions of floats
    # with Phi by erfc; the approximations decompose
    "gelu": lambda x, approximate: x * 0.5 * (x * -math.sqrt(0.5)).op("chlo.erfc"),
    # -- predicates, bits, selection
    "signbit": signbit,
    "left_shift": partial(shifted, "left"),
    "right_shift": partial(shifted, "right"),
    "where": where,
    # -- complex numbers
    "real": real,
    "imag": imag,
    "as_complex": lambda x, y: x.op("complex", y, to=DType(f"complex{2 * x.dtype.bits}")),
    # -- reductions and rows
    "sum": total,
    "prod": product,
    "max": greatest_of,
    "min": least_of,
    "any": any_of,
    "all": all_of,
    "argmax": located("max"),
    "argmin": located("min"),
    "cumulative_sum": accumulated(operator.add, 0),
    "cumulative_prod": accumulated(operator.mul, 1),
    "sort": sort,
    "argsort": argsort,
    "searchsorted": searchsorted,
    # -- contractions
    "matmul": matmul,
    # -- movement
    "reshape": HloValue.reshape,
    "broadcast_to": HloValue.broadcast,
    "rebind": movement.rebind,
    "permute": movement.permute,
    "slice": movement.sliced,
    "flip": movement.flip,
    "pad": movement.pad,
    "concat": movement.concat,
    "gather": movement.gather,
    "take_along": movement.take_along,
    "scatter": movement.scatter,
    "index_add": movement.index_add,
}
