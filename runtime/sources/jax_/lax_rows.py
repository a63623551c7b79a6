"""The primitives of jax.lax in terms of ops: a row for each (see graphir.runtime.sources.op_rows).

A row takes the operands of an equation, and its parameters as keywords. Sources: the operation
semantics of XLA and jax/_src/lax of JAX 0.10 and 0.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphir.public import DType, Op, Symbol, TensorType, ops
from graphir.runtime.sources.op_rows import Attribute, Emitted, OpRows, RowCall, product_layout

if TYPE_CHECKING:
    from graphir.runtime.sources.jax_.source import Importer


class Equation(RowCall):
    """An equation of a jaxpr; `importer` adds jaxprs that are among its parameters."""

    def __init__(self, importer: Importer, name: str, types: Sequence[TensorType]) -> None:
        super().__init__(importer.graph, name, types)
        self.importer = importer

    def number(self, value: complex, like: Symbol | TensorType) -> Symbol:
        """Return a 0-d constant of the dtype of `like`."""
        return self.graph.scalar(value, like.dtype if like.dtype.weak is False else None)


_PLAIN = """
    abs exp expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt
    rsqrt cbrt atan2 erf floor ceil square real imag conj is_finite nextafter
    add add_any=add add_jaxvals=add sub=subtract neg=negative
    eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal complex=as_complex
    and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_invert logistic=sigmoid
    shift_left=left_shift
"""

_WITHOUT_EFFECT = frozenset(
    {
        *("shape", "new_sizes", "dtype", "index_dtype", "preferred_element_type"),  # of the result
        *("sharding", "out_sharding", "indices_are_sorted", "unique_indices", "is_stable"),
        *("linear", "unroll", "_split_transpose"),
    }
)
"""The parameters that say what the types of the results say, or how JAX may compute."""

ROWS = OpRows(_PLAIN, _WITHOUT_EFFECT)
row = ROWS.row

PROMOTING = frozenset(
    {*ROWS, "mul", "div", "pow", "max", "min", "select_n", "clamp", "shift_right_arithmetic"}
)
"""The primitives to which JAX's functions promote operands."""

INLINED = {
    **dict.fromkeys(("jit", "pjit", "remat", "remat2", "checkpoint", "custom_lin"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call", "core_closed_call", "call"), "call_jaxpr"),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
"""The primitives that stand for the equations of their jaxpr, by the name of that parameter."""


def known_shape(x: Symbol | TensorType) -> tuple[int, ...]:
    """Return a shape; the dims of jaxprs are known sizes."""
    return cast("tuple[int, ...]", x.shape)


MOVING = frozenset({"broadcast_in_dim", "expand_dims", "squeeze"})
"""The primitives by which JAX's functions broadcast an operand that they have converted."""

# -- elementwise


@row("copy", "copy_p", "stop_gradient", "name", "sharding_constraint", "device_put")
@row("optimization_barrier", "pvary", "reshard")
def _same(e: Equation, *args: Symbol, **_: Attribute) -> Emitted:
    """Return the operands; the parameters say where they lie, or what they are called."""
    return args


@row("mul")
def _multiply(e: Equation, x: Symbol, y: Symbol, *, out_dtype: Attribute = None) -> Emitted:
    return None if out_dtype else e(ops.multiply, x, y)


@row("one_minus_square")
def _one_minus_square(e: Equation, x: Symbol) -> Emitted:
    """(1 + x) * (1 - x), as JAX lowers it."""
    unit = e.number(1, x)
    return e(ops.multiply, e(ops.add, unit, x), e(ops.subtract, unit, x))


@row("polynomial")
def _polynomial(e: Equation, x: Symbol, *coefficients: Symbol) -> Emitted:
    """The rule of Horner: the coefficients follow x, from the lowest degree on."""
    *coefficients_below, value = coefficients
    for coefficient in reversed(coefficients_below):
        value = e(ops.add, e(ops.multiply, value, x), coefficient)
    return value


@row("div")
def _divide(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    """Integers divide towards 0; -1 for a divisor of 0.

    XLA multiplies by the reciprocal of a divisor that it broadcasts (HandleDivide of its algebraic
    simplifier), but not of bfloat16, which it computes in float32, nor of complex numbers.
    """
    if not e.type.dtype.is_integer:
        source = y.args[0] if y.op is ops.broadcast_to else y
        is_broadcast = prod(known_shape(source)) < prod(known_shape(e.type))
        if e.type.dtype in _RECIPROCAL and is_broadcast and not _is_power_of_two(source):
            return e(ops.multiply, x, e(ops.reciprocal, source))
        return e(ops.divide, x, y)
    quotient = e.divide_integers(x, y, e.type.dtype.family == "uint")
    zero = e.number(0, e.type)
    by_zero = e(ops.bitwise_invert, zero)
    return e(ops.where, e(ops.equal, y, zero), by_zero, quotient)


_RECIPROCAL = (DType.float16, DType.float32, DType.float64, DType.weak_float)


def _is_power_of_two(x: Symbol) -> bool:
    """Whether x is a constant whose quotients are its products with the reciprocal."""
    if x.op is not ops.constant:
        return False
    mantissas, exponents = np.frexp(np.asarray(x.attrs["value"], np.float64))
    return bool(np.all((abs(mantissas) == 0.5) & (abs(exponents) < 13)))


@row("rem")
def _remainder(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    """The remainder of division towards 0; x itself for an integer divisor of 0."""
    rest = e(ops.fmod, x, y)
    if not e.type.dtype.is_integer:
        return rest
    return e(ops.where, e(ops.equal, y, e.number(0, e.type)), x, rest)


@row("lt_to")
def _less_in_total_order(e: Equation, x: Symbol, y: Symbol) -> Symbol:
    """X < y in the order of IEEE 754: -NaN, numbers, NaN; -0.0 is below 0.0."""
    less = e(ops.less, x, y)
    if not x.dtype.is_float:
        return less
    signs = [e(ops.signbit, z) for z in (x, y)]
    ends = [e(ops.is_nan, z) for z in (x, y)]
    below = e(ops.greater, *signs)
    zeros = e(ops.logical_and, e(ops.equal, x, y), below)
    numbers = e(ops.logical_or, less, zeros)
    with_nan = e(ops.where, ends[0], signs[0], e(ops.logical_not, signs[1]))
    with_nan = e(ops.where, e(ops.logical_and, *ends), below, with_nan)
    return e(ops.where, e(ops.logical_or, *ends), with_nan, numbers)


@row("le_to")
def _less_equal_in_total_order(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    return e(ops.logical_not, _less_in_total_order(e, y, x))


@row("shift_right_logical")
def _shift_right(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    return e(ops.right_shift, x, y) if e.type.dtype.family == "uint" else None


@row("shift_right_arithmetic")
def _shift_right_with_sign(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    """XLA's shift copies the upper bit, of numbers without a sign too."""
    shifted = e(ops.right_shift, x, y)
    if e.type.dtype.family != "uint":
        return shifted
    ones = e(ops.bitwise_invert, e(ops.right_shift, e(ops.bitwise_invert, x), y))
    has_upper_bit = e(ops.greater, x, e.number(e.type.dtype.max // 2, x))
    return e(ops.where, has_upper_bit, ones, shifted)


@row("round")
def _round(e: Equation, x: Symbol, *, rounding_method: Attribute) -> Emitted:
    if int(rounding_method):  # to even
        return e(ops.round, x)
    whole = e(ops.trunc, x)
    rest = e(ops.abs, e(ops.subtract, x, whole))
    away = e(ops.add, whole, e(ops.copysign, e.number(1, x), x))
    up = e(ops.greater_equal, rest, e.number(0.5, x))
    return e(ops.where, up, away, whole)


@row("exp2")
def _exp2(e: Equation, x: Symbol) -> Emitted:
    return e(ops.pow, e.number(2.0, e.type), x)


@row("integer_pow")
def _integer_pow(e: Equation, x: Symbol, *, y: int) -> Emitted:
    """Powers by squares and products, as XLA computes them."""
    if not y:
        return e(ops.broadcast_to, e.number(1, e.type), shape=e.type.shape)
    result: Symbol | None = None
    factor, left = x, abs(y)
    while left:
        if left & 1:
            result = factor if result is None else e(ops.multiply, result, factor)
        left >>= 1
        if left:
            factor = e(ops.multiply, factor, factor)
    assert result is not None
    return result if y > 0 else e(ops.divide, e.number(1.0, e.type), result)


@row("pow")
def _power(e: Equation, x: Symbol, y: Symbol) -> Emitted:
    """XLA computes powers of complex numbers in polar form (EmitComplexPower)."""
    if not e.type.dtype.is_complex:
        return e(ops.pow, x, y)
    y = y if y.dtype.is_complex else e(ops.cast, y, to=x.dtype)
    (a, b), (c, d) = ([e(part, z) for part in (ops.real, ops.imag)] for z in (x, y))
    size, angle = e(ops.abs, x), e(ops.atan2, b, a)
    shrinking = e(ops.exp, e(ops.negative, e(ops.multiply, d, angle)))
    length = e(ops.multiply, e(ops.pow, size, c), shrinking)
    turns = e(ops.multiply, d, e(ops.log, size))
    turn = e(ops.add, e(ops.multiply, c, angle), turns)
    parts = [e(ops.multiply, length, e(op, turn)) for op in (ops.cos, ops.sin)]
    zero, unit = e.number(0, a), e.number(1, a)

    def both(*tests: tuple[Symbol, Symbol]) -> Symbol:
        first, second = (e(ops.equal, *test) for test in tests)
        return e(ops.logical_and, first, second)

    is_one = e(ops.logical_or, both((a, unit), (b, zero)), both((c, zero), (d, zero)))
    at_zero = e(ops.logical_and, e(ops.equal, a, zero), e(ops.greater, c, zero))
    at_end = e(ops.logical_or, at_zero, both((a, e.number(float("inf"), a)), (c, c)))
    is_real = e(ops.logical_and, at_end, both((b, zero), (d, zero)))
    real = e(ops.where, is_one, unit, e(ops.where, is_real, length, parts[0]))
    imaginary = e(ops.where, e(ops.logical_or, is_one, is_real), zero, parts[1])
    return e(ops.as_complex, real, imaginary)


@row("select_n")
def _select(e: Equation, which: Symbol, *cases: Symbol) -> Emitted:
    if which.dtype is DType.bool:
        return e(ops.where, which, *reversed(cases)) if len(cases) == 2 else cases[0]
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        here = e(ops.equal, which, e.number(i, which))
        result = e(ops.where, here, cases[i], result)
    return result


@row("sign")
def _sign(e: Equation, x: Symbol) -> Emitted:
    """The sign of a zero is that zero."""
    sign = e(ops.sign, x)
    return e(ops.copysign, sign, x) if x.dtype.is_float else sign


def _greater(op: Op, e: Equation, x: Symbol, y: Symbol) -> Symbol:
    """Return the maximum or minimum; XLA has -0.0 below 0.0, the op takes the second of zeros.

    Complex numbers compare by real parts, if these are equal by imaginary ones (mlir._minmax_hlo).
    """
    if e.type.dtype.is_complex:
        wins = ops.greater if op is ops.maximum else ops.less
        (a, b), (c, d) = ([e(part, z) for part in (ops.real, ops.imag)] for z in (x, y))
        tie = e(ops.equal, a, c)
        return e(
            ops.where,
            e(ops.where, tie, e(wins, b, d), e(wins, a, c)),
            x,
            y,
        )
    if not e.type.dtype.is_float or _is_not_zero(x) or _is_not_zero(y):
        return e(op, x, y)
    negative_wins = op is ops.minimum
    for first, second in ((x, y), (y, x)):
        is_constant = second.op is ops.constant and not second.rank
        if is_constant or not second.dtype.is_float:  # zeros of integers are positive
            is_negative = is_constant and bool(np.signbit(second.attrs["value"]))
            pair = (first, second) if is_negative == negative_wins else (second, first)
            return e(op, *pair)
    cases = (y, x) if negative_wins else (x, y)
    zeros = e(ops.where, e(ops.signbit, y), *cases)
    return e(ops.where, e(ops.equal, x, y), zeros, e(op, x, y))


ROWS["max"], ROWS["min"] = partial(_greater, ops.maximum), partial(_greater, ops.minimum)


def _is_not_zero(x: Symbol) -> bool:
    """Whether x is a constant without zeros."""
    x = x.args[0] if x.op is ops.broadcast_to else x
    return x.op is ops.constant and bool(np.all(np.asarray(x.attrs["value"]) != 0))


@row("clamp")
def _clamp(e: Equation, low: Symbol, x: Symbol, high: Symbol) -> Emitted:
    if not x.dtype.is_float or (_is_not_zero(low) and _is_not_zero(high)):
        return e(ops.clip, x, low, high)
    return _greater(ops.minimum, e, _greater(ops.maximum, e, x, low), high)


@row("reduce_precision")
def _reduce_precision(e: Equation, x: Symbol, *, exponent_bits: int, mantissa_bits: int) -> Emitted:
    """Rounding of the mantissa; where the exponent has fewer bits, XLA has no subnormal numbers."""
    bits = exponent_bits, mantissa_bits
    own = _BITS.get(e.graph.concrete_dtype(x.dtype))
    if own == bits:
        return x
    if own != _BITS[DType.float32] or bits != _BITS[DType.bfloat16]:
        return None
    return e(ops.cast, e(ops.cast, x, to=DType.bfloat16), to=x.dtype)


_BITS = {
    DType.float16: (5, 10),
    DType.bfloat16: (8, 7),
    DType.float32: (8, 23),
    DType.float64: (11, 52),
}
"""The bits of exponents and mantissas."""


# -- movement


@row("reshape", "squeeze", "expand_dims")
def _reshape(
    e: Equation, x: Symbol, *, dimensions: Attribute = None, new_sizes: Attribute = None
) -> Emitted:
    if dimensions is not None and new_sizes is not None:
        return None
    return e(ops.reshape, x, shape=e.type.shape)


@row("broadcast_in_dim")
def _broadcast(e: Equation, x: Symbol, *, broadcast_dimensions: Sequence[int]) -> Emitted:
    shape = [1] * e.type.rank
    for axis, size in zip(broadcast_dimensions, known_shape(x), strict=True):
        shape[axis] = size
    return e.spread(e.shaped(x, shape) if x.rank else x, e.type.shape)


@row("transpose")
def _transpose(e: Equation, x: Symbol, *, permutation: Sequence[int]) -> Emitted:
    return e(ops.permute, x, dims=permutation)


@row("rev")
def _reverse(e: Equation, x: Symbol, *, dimensions: Sequence[int]) -> Emitted:
    return e(ops.flip, x, axis=dimensions)


@row("concatenate")
def _concatenate(e: Equation, *args: Symbol, dimension: int) -> Emitted:
    return e(ops.concat, *args, axis=dimension)


@row("stack")
def _stack(e: Equation, *args: Symbol, axis: int) -> Emitted:
    return e(ops.stack, *args, axis=axis)


@row("tile")
def _tile(e: Equation, x: Symbol, *, reps: Sequence[int]) -> Emitted:
    return e(ops.tile, x, repeats=reps)


@row("slice")
def _slice(
    e: Equation,
    x: Symbol,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Emitted:
    step = strides or (1,) * x.rank
    return e(ops.slice, x, start=start_indices, stop=limit_indices, step=step)


@row("split")
def _split(e: Equation, x: Symbol, *, sizes: Sequence[int], axis: int) -> Emitted:
    return x.split(cast("list[Any]", [*sizes]), axis)


@row("unstack")
def _unstack(e: Equation, x: Symbol, *, axis: int) -> Emitted:
    parts = x.split(cast("list[Any]", [1] * len(e.types)), axis)
    return [e(ops.reshape, part, shape=e.type.shape) for part in parts]


@row("pad")
def _pad(
    e: Equation, x: Symbol, value: Symbol, *, padding_config: Sequence[Sequence[int]]
) -> Emitted:
    """Padding by an update of a slice; negative padding by a slice."""
    config = [tuple(map(int, each)) for each in padding_config]
    shape = [
        max(low, 0) + size + max(size - 1, 0) * inner + max(high, 0)
        for size, (low, high, inner) in zip(known_shape(x), config, strict=True)
    ]
    start = [max(low, 0) for low, _, _ in config]
    step = [inner + 1 for _, _, inner in config]
    stop = [
        low + (size - 1) * by + 1 if size else low
        for low, size, by in zip(start, known_shape(x), step, strict=True)
    ]
    whole = e(ops.broadcast_to, value, shape=shape)
    result = e(ops.slice_update, whole, x, start=start, stop=stop, step=step)
    if any(low < 0 or high < 0 for low, high, _ in config):
        first = [max(-low, 0) for low, _, _ in config]
        last = [size - max(-high, 0) for size, (_, high, _) in zip(shape, config, strict=True)]
        result = e(ops.slice, result, start=first, stop=last, step=[1] * len(first))
    return result


@row("iota")
def _iota(e: Equation, *, dimension: int) -> Emitted:
    shape = known_shape(e.type)
    places = e(ops.range, dtype=e.type.dtype, start=0, step=1, size=shape[dimension])
    return e.spread(e.along(places, dimension, len(shape)), shape)


# -- reductions and rows


def _reduction(op: Op, e: Equation, x: Symbol, *, axes: Sequence[int]) -> Emitted:
    if op in (ops.sum, ops.prod):
        return e(op, x, axis=tuple(axes), dtype=e.type.dtype) if axes else x
    if 0 in [known_shape(x)[axis] for axis in axes]:
        return e.spread(e.number(_extreme(x.dtype, least=op is ops.max), e.type), e.type.shape)
    return e(op, x, axis=tuple(axes)) if axes else x


for _name in ("sum", "prod", "max", "min"):
    ROWS[f"reduce_{_name}"] = partial(_reduction, ops.find(_name))


def _extreme(dtype: DType, least: bool) -> float:
    """Return the least or greatest value of a dtype."""
    if dtype.is_integer:
        return dtype.min if least else dtype.max
    return not least if dtype is DType.bool else float("-inf" if least else "inf")


def _verdict(op: Op, e: Equation, x: Symbol, *, axes: Sequence[int]) -> Emitted:
    return e(op, x, axis=tuple(axes)) if e.type.dtype is DType.bool else None


ROWS["reduce_and"], ROWS["reduce_or"] = partial(_verdict, ops.all), partial(_verdict, ops.any)


def _locator(op: Op, e: Equation, x: Symbol, *, axes: Sequence[int]) -> Emitted:
    (axis,) = axes
    return e(op, x, axis=axis, dtype=e.type.dtype)


ROWS["argmax"], ROWS["argmin"] = partial(_locator, ops.argmax), partial(_locator, ops.argmin)


def _cumulative(op: Op, e: Equation, x: Symbol, *, axis: int, reverse: bool) -> Emitted:
    x = e(ops.flip, x, axis=(axis,)) if reverse else x
    result = e(op, x, axis=axis, dtype=e.type.dtype)
    return e(ops.flip, result, axis=(axis,)) if reverse else result


ROWS["cumsum"] = partial(_cumulative, ops.cumulative_sum)
ROWS["cumprod"] = partial(_cumulative, ops.cumulative_prod)


@row("sort")
def _sort(e: Equation, *args: Symbol, dimension: int, num_keys: int) -> Emitted:
    if len(args) == 1:
        return e(ops.sort, args[0], axis=dimension)
    if num_keys != 1:
        return None
    order = e(ops.argsort, args[0], axis=dimension)
    return [e(ops.take_along, x, order, axis=dimension) for x in args]


@row("dot_general")
def _dot_general(
    e: Equation,
    x: Symbol,
    y: Symbol,
    *,
    dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], ...],
    precision: Attribute = None,
) -> Emitted:
    """A batched product of matrices, of operands permuted and reshaped."""
    if "DotAlgorithm" in type(precision).__name__:
        return None
    (summed_x, summed_y), (batch_x, batch_y) = dimension_numbers
    free_x = [i for i in range(x.rank) if i not in (*summed_x, *batch_x)]
    free_y = [i for i in range(y.rank) if i not in (*summed_y, *batch_y)]
    to = e.type.dtype
    if e.graph.rules.answer(x.dtype, y.dtype) is not to:
        x, y = (z if z.dtype is to else e(ops.cast, z, to=to) for z in (x, y))
    size = prod([known_shape(x)[int(i)] for i in summed_x])
    batch = [x.shape[i] for i in batch_x]
    rows, columns = prod(known_shape(x)[i] for i in free_x), prod(known_shape(y)[i] for i in free_y)
    left = _arranged(e, x, (*batch_x, *free_x, *summed_x), (*batch, rows, size))
    right = _arranged(e, y, (*batch_y, *summed_y, *free_y), (*batch, size, columns))
    product = e(ops.matmul, left, right, layout=product_layout(left, right))
    return e.shaped(product, e.type.shape)


def _arranged(e: Equation, x: Symbol, order: Sequence[int], shape: Sequence[Any]) -> Symbol:
    if tuple(order) != tuple(range(x.rank)):
        x = e(ops.permute, x, dims=tuple(order))
    return e.shaped(x, shape)
