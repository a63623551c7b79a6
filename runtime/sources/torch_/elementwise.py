"""Rows of elementwise arithmetic as PyTorch's kernels compute it: of halves in float32.

A kernel of float16 and bfloat16 widens its operands, computes in float32 and rounds the result, as
`legalize` does. But some kernels keep a scalar in float32, some round in between, and some differ
between elements in vectors and the rest. Measured for all values of both dtypes on PyTorch 2.13
(tests/runtime/sources/test_torch_kernels.py); source: aten/src/ATen/native/cpu.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from graphir.public import DType, Op, Symbol, ops
from graphir.runtime.sources.op_rows import Emitted
from graphir.runtime.sources.torch_.aten_rows import ROWS, AtenCall, Operand, row, sizes


def _is_scalar(x: Any) -> bool:
    return not isinstance(x, Symbol) or not x.rank


def _beside_scalar(op: Op, e: AtenCall, x: Symbol, y: Operand) -> Emitted:
    """An op whose kernel of halves keeps a second operand without axes in float32.

    Measured: * / // and trunc division; the first operand, and those of other ops, are halves.
    """
    if e.is_half and _is_scalar(y):
        return e.narrow(e(op, e.wide(e.operand(x)), e.scalar(y)))
    return e(op, x, y)


ROWS["mul"] = partial(_beside_scalar, ops.multiply)


def _add_multiple(op: Op, e: AtenCall, x: Symbol, y: Operand, alpha: Operand = 1) -> Emitted:
    """Add and subtract, of y * alpha: a fused multiply-add of float32.

    Of halves, alpha is one, and elements outside of vectors round the product.
    """

    def multiple() -> Any:
        return e(ops.multiply, y, alpha) if isinstance(y, Symbol) else y * alpha

    if alpha == 1:
        return e(op, x, y)
    y = e.operand(y) if isinstance(y, Symbol) else y
    if e.type.dtype is DType.float32:
        factor = _float32(e, alpha if op is ops.add else -alpha)
        return _multiply_add(e, e.operand(y), factor, e.operand(x))
    if not e.is_half:
        return e(op, x, multiple())
    alpha, x, y = e.half_number(alpha), e.operand(x), e.operand(y)

    def in_vectors() -> Symbol:
        factor = _float32(e, alpha if op is ops.add else -alpha)
        return _multiply_add(e, e.wide(y), factor, e.wide(x))

    return e.by_place(in_vectors, lambda: e(op, x, multiple()))


ROWS["add"], ROWS["sub"] = partial(_add_multiple, ops.add), partial(_add_multiple, ops.subtract)


@row("rsub")
def _rsub(e: AtenCall, x: Symbol, y: Operand, alpha: Operand = 1) -> Emitted:
    return _add_multiple(ops.subtract, e, y, x, alpha)


@row("addcmul")
def _addcmul(e: AtenCall, x: Symbol, y: Operand, z: Operand, *, value: Operand = 1) -> Emitted:
    """X + value * y * z, where y * value is float32, and the rest a fused multiply-add."""
    if not _is_fused(e):
        return None
    x, y, z = (e.wide(operand) for operand in (x, y, z))
    return _multiply_add(e, e(ops.multiply, y, value) if value != 1 else y, z, x)


def _is_fused(e: AtenCall) -> bool:
    """Whether a kernel computes in float32; float64 holds the products of a fused multiply-add."""
    return e.is_half or e.type.dtype is DType.float32


def _multiply_add(e: AtenCall, left: Symbol, right: Symbol, addend: Symbol) -> Symbol:
    """Return left * right + addend of float32, fused, in the result's dtype."""
    return e.narrow(e.multiply_add(left, right, addend))


@row("addcdiv")
def _addcdiv(e: AtenCall, x: Symbol, y: Operand, z: Operand, *, value: Operand = 1) -> Emitted:
    if not e.is_half:
        return None
    x, y, z = (e.wide(operand) for operand in (x, y, z))
    return e.narrow(e(ops.add, x, e(ops.divide, e(ops.multiply, y, value), z)))


def _float32(e: AtenCall, number: Operand) -> Symbol:
    return e.graph.scalar(float(number), DType.float32)


@row("lerp")
def _lerp(e: AtenCall, x: Operand, y: Operand, weight: Operand) -> Emitted:
    """The interpolation from the nearer end, by a fused multiply-add."""
    if not _is_fused(e) or isinstance(weight, complex):
        return None
    x, y = e.wide(x), e.wide(y)
    span = e(ops.subtract, y, x)
    if isinstance(weight, Symbol):
        weight = e.wide(weight)
        is_near = e(ops.less, e(ops.abs, weight), 0.5)
        rest = e(ops.where, is_near, weight, e(ops.subtract, weight, 1))
        return _multiply_add(e, rest, span, e(ops.where, is_near, x, y))
    weight = np.float32(weight)
    if abs(weight) < 0.5:
        return _multiply_add(e, _float32(e, weight), span, x)
    return _multiply_add(e, _float32(e, weight - np.float32(1)), span, y)


@row("pow")
def _pow(e: AtenCall, x: Operand, y: Operand) -> Emitted:
    """Some powers are roots and products: those of bfloat16 round after each product."""
    dtype = e.type.dtype
    if dtype.is_integer and isinstance(y, Symbol):
        return _integer_pow(e, e.operand(x), e.cast(y, dtype))
    if dtype.is_complex:
        return _complex_pow(e, x, y)
    if not isinstance(x, Symbol) or not dtype.is_float or isinstance(y, (Symbol, complex)):
        return e(ops.pow, x, y)
    x = e.cast(x, dtype)
    if y == 0:
        return e(ops.where, e(ops.is_nan, x), 1.0, e(ops.pow, x, y))
    if dtype is DType.float16:
        return e(ops.pow, x, y)
    if y == 0.5:
        return e(ops.sqrt, x)
    if y == -0.5:
        return _rsqrt(e, x, wide=True)
    if y == -1:
        return e(ops.reciprocal, x)
    if y == -2:
        return e(ops.reciprocal, e(ops.multiply, x, x))
    if y == 3:
        return e(ops.multiply, e(ops.multiply, x, x), x)
    return e(ops.pow, x, y)


def _complex_pow(e: AtenCall, x: Operand, y: Operand) -> Emitted:
    """The exponential of y * log(x), as PyTorch computes powers of tensors; 0 ** 0 is NaN there."""
    if not isinstance(x, Symbol) and x == 1:
        return e.graph.full(1, e.type.shape, e.type.dtype)
    if not isinstance(y, Symbol) and y in (0, 1, 2, 3, 0.5, -0.5, -1, -2):
        power = e(ops.sqrt, x) if abs(y) == 0.5 else e(ops.pow, x, abs(y))
        return e(ops.divide, 1.0, power) if y in (-0.5, -1, -2) else power
    return e(ops.exp, e(ops.multiply, e.operand(y), e(ops.log, e.operand(x))))


def _integer_pow(e: AtenCall, x: Symbol, y: Symbol) -> Symbol:
    """The power of integers, of which those below 1 are 0: 2 ** -1, and even 0 ** -1."""
    if y.dtype.family == "uint":
        return e(ops.pow, x, y)
    is_odd = e(ops.equal, e(ops.bitwise_and, y, 1), 1)
    unit = e(ops.where, e(ops.equal, e(ops.abs, x), 1), x, 0)
    inverse = e(ops.where, is_odd, unit, e(ops.multiply, unit, unit))
    power = e(ops.pow, x, e(ops.maximum, y, 0))
    return e(ops.where, e(ops.less, y, 0), inverse, power)


def _greater_or_less(op: Op, e: AtenCall, x: Symbol, y: Operand) -> Emitted:
    """The maximum or minimum; of zeros of both signs, vectors take y, and other elements x."""
    if not e.type.dtype.is_float:
        return e(op, x, y)
    x, y = e.operand(x), e.operand(y)
    equal = e.by_place(lambda: y, lambda: x)
    return e(ops.where, e(ops.equal, x, y), equal, e(op, x, y))


ROWS["maximum"] = partial(_greater_or_less, ops.maximum)
ROWS["minimum"] = partial(_greater_or_less, ops.minimum)


@row("reciprocal")
def _reciprocal(e: AtenCall, x: Symbol) -> Emitted:
    """1 / x, which of a complex 0 is infinity and NaN."""
    return e(ops.divide, 1.0, x) if e.type.dtype.is_complex else e(ops.reciprocal, x)


@row("rsqrt")
def _rsqrt(e: AtenCall, x: Symbol, wide: bool = False) -> Emitted:
    if e.type.dtype.is_complex:
        return e(ops.divide, 1.0, e(ops.sqrt, x))
    return e.by_place(lambda: e(ops.rsqrt, x), lambda: e(ops.reciprocal, e(ops.sqrt, x)), wide)


@row("remainder")
def _remainder(e: AtenCall, x: Operand, y: Operand) -> Emitted:
    """The remainder that has the sign of y; a remainder of 0 has that of x."""
    result = e(ops.remainder, x, y)
    if not e.type.dtype.is_float:
        return result
    if isinstance(x, Symbol):
        zero = e.operand(0.0)
        if x.dtype is not DType.bool:
            zero = e(ops.where, e(ops.signbit, x), e.operand(-0.0), zero)
    else:
        zero = e.operand(np.copysign(0.0, x).item())
    return e(ops.where, e(ops.equal, result, 0), zero, result)


@row("floor_divide")
def _floor_divide(e: AtenCall, x: Symbol, y: Operand) -> Emitted:
    """The floor of a quotient; of halves, every step of a kernel without a scalar is rounded."""
    if not e.is_half or _is_scalar(y):
        return _beside_scalar(ops.floor_divide, e, x, y)
    x, y = (e.operand(z) for z in (x, y))
    rest, quotient = e(ops.fmod, x, y), e(ops.divide, x, y)
    overflows = e(ops.logical_and, e(ops.is_inf, quotient), e(ops.logical_not, e(ops.is_inf, x)))
    whole = e(ops.divide, e(ops.where, overflows, x, e(ops.subtract, x, rest)), y)
    unlike = e(ops.not_equal, e(ops.less, y, 0), e(ops.less, rest, 0))
    below = e(ops.logical_and, unlike, e(ops.not_equal, rest, 0))
    whole = e(ops.where, below, e(ops.subtract, whole, 1), whole)
    floor = e(ops.floor, whole)
    up = e(ops.greater, e(ops.subtract, whole, floor), 0.5)
    floor = e(ops.where, up, e(ops.add, floor, 1), floor)
    zero = e(ops.copysign, e.graph.full(0, quotient.shape, quotient.dtype), quotient)
    floor = e(ops.where, e(ops.equal, whole, 0), zero, floor)
    return e(ops.where, e(ops.equal, y, 0), quotient, floor)


@row("div")
def _div(e: AtenCall, x: Symbol, y: Operand, rounding_mode: str | None = None) -> Emitted:
    if rounding_mode is None:
        return _beside_scalar(ops.divide, e, x, y)
    if rounding_mode == "floor":
        return _floor_divide(e, x, y)
    if e.type.dtype.is_integer:
        return e.divide_integers(x, y, e.type.dtype.family == "uint")
    if e.is_half and _is_scalar(y):
        return e.narrow(e(ops.trunc, e(ops.divide, e.wide(e.operand(x)), e.scalar(y))))
    return e(ops.trunc, e(ops.divide, x, y))


def _times_log(log: Op, e: AtenCall, x: Symbol, y: Operand) -> Emitted:
    """X * log(y), which is 0 where x is 0 and y no NaN; of halves, the logarithm is a half."""
    x, y = (e.operand(z) for z in (x, y))
    product = e(ops.multiply, x, e(log, y))
    product = e(ops.where, e(ops.equal, x, 0), 0.0, product)
    return e(ops.where, e(ops.is_nan, y), y, product)


ROWS["xlogy"] = partial(_times_log, ops.log)
ROWS["special_xlog1py"] = partial(_times_log, ops.log1p)


@row("special_entr")
def _entr(e: AtenCall, x: Symbol) -> Emitted:
    """The entropy -x * log(x): of halves, the logarithm is a half."""
    x = e.operand(x)
    product = e(ops.multiply, e(ops.negative, x), e(ops.log, x))
    product = e(ops.where, e(ops.equal, x, 0), 0.0, product)
    return e(ops.where, e(ops.less, x, 0), float("-inf"), product)


@row("round")
def _round(e: AtenCall, x: Symbol, *, decimals: int = 0) -> Emitted:
    if not decimals or x.dtype.is_integer:
        return e(ops.round, x)
    wide = e.wide(x) if e.is_half else x
    scale = float(10 ** abs(decimals))
    up, down = (ops.multiply, ops.divide) if decimals > 0 else (ops.divide, ops.multiply)
    result = e(down, e(ops.round, e(up, wide, scale)), scale)
    return e.narrow(result) if e.is_half else result


def _reduction_of(e: AtenCall, losses: Symbol, reduction: int) -> Symbol:
    """Return losses, their mean or their sum, by the number of a reduction."""
    if not reduction:
        return losses
    flat = e.shaped(losses, (int(np.prod(sizes(losses))),))
    return e(ops.mean if reduction == 1 else ops.sum, flat, axis=(0,))


@row("mse_loss")
def _mse_loss(e: AtenCall, x: Symbol, y: Operand, reduction: int = 1) -> Emitted:
    span = e(ops.subtract, e.operand(x), e.operand(y))
    return _reduction_of(e, e(ops.multiply, span, span), reduction)


def _near_and_far(
    steps: DType, e: AtenCall, x: Operand, y: Operand, reduction: int, bound: Operand
) -> Emitted:
    """The losses that are squares below a bound: one dtype of halves rounds their steps."""
    x, y = e.operand(x), e.operand(y)
    has_steps = e.type.dtype is steps
    if e.is_half and not has_steps:
        x, y = e.inside(x, DType.float32), e.inside(y, DType.float32)
    bound = e.half_number(bound) if has_steps else bound
    far = e(ops.abs, e(ops.subtract, x, y))
    half = e(ops.multiply, bound, 0.5) if isinstance(bound, Symbol) else bound * 0.5
    square = e(ops.multiply, e(ops.multiply, far, 0.5), far)
    rest = e(ops.subtract, far, e.half_number(half) if has_steps else half)
    if e.name == "huber_loss":
        rest = e(ops.multiply, rest, bound)
    else:
        square = e(ops.divide, square, bound)
    losses = e(ops.where, e(ops.less, far, bound), square, rest)
    losses = e.narrow(losses) if e.is_half else losses
    return _reduction_of(e, losses, reduction)


@row("huber_loss")
def _huber_loss(
    e: AtenCall, x: Symbol, y: Operand, reduction: int = 1, delta: float = 1.0
) -> Emitted:
    return _near_and_far(DType.bfloat16, e, x, y, reduction, delta)


@row("smooth_l1_loss")
def _smooth_l1_loss(
    e: AtenCall, x: Symbol, y: Operand, reduction: int = 1, beta: float = 1.0
) -> Emitted:
    return _near_and_far(DType.float16, e, x, y, reduction, beta) if beta else None


def _by_float64(e: AtenCall, op: Op, x: Symbol) -> Symbol:
    """Return a function of float32 computed in float64: nearer to PyTorch's code than float32."""
    return e.inside(e(op, e.inside(x, DType.float64)), DType.float32)


@row("erf")
def _erf(e: AtenCall, x: Symbol) -> Emitted:
    return e.narrow(_approximate_erf(e, e.wide(e.operand(x)))) if e.is_half else e(ops.erf, x)


def _approximate_erf(e: AtenCall, x: Symbol) -> Symbol:
    """The error function as the vectors of PyTorch approximate it, within 1.5e-7.

    Source: Abramowitz and Stegun, 7.1.26; aten/src/ATen/cpu/vec/vec256/vec256_float.h.
    """

    size, unity = e(ops.abs, x), _float32(e, 1)
    t = e(ops.divide, 1.0, e.multiply_add(size, _float32(e, 0.3275911), unity))
    series = _float32(e, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = e.multiply_add(series, t, _float32(e, coefficient))
    tail = _by_float64(e, ops.exp, e(ops.negative, e(ops.multiply, x, x)))
    tail = e(ops.multiply, e(ops.negative, tail), t)
    return e(ops.copysign, e.multiply_add(tail, series, unity), x)


def _logistic(op: Op, e: AtenCall, x: Symbol) -> Emitted:
    """The sigmoid or SiLU, of halves as 1 / (1 + exp(-x)) and x / (1 + exp(-x))."""
    if not e.is_half:
        return e(op, e.operand(x))
    x = e.wide(e.operand(x))
    power = _by_float64(e, ops.exp, e(ops.negative, x))
    return e.narrow(e(ops.divide, x if op is ops.silu else 1.0, e(ops.add, power, 1.0)))


ROWS["sigmoid"], ROWS["silu"] = partial(_logistic, ops.sigmoid), partial(_logistic, ops.silu)


@row("gelu")
def _gelu(e: AtenCall, x: Symbol, approximate: str = "none") -> Emitted:
    """The Gaussian error linear unit; of halves in the steps of PyTorch's kernels.

    oneDNN multiplies before it halves, so that large numbers overflow. It gives NaN for infinities,
    and rounds to bfloat16 with subnormal results as zeros.
    """
    if not e.is_half:
        return e(ops.gelu, x, approximate=approximate)
    x = e.wide(x)
    half, scaled = e(ops.multiply, x, 0.5), e(ops.multiply, x, float(np.sqrt(0.5)))
    if approximate == "none" and e.type.dtype is DType.bfloat16 and e.onednn(True):
        wide = e(ops.multiply, x, e(ops.add, _by_float64(e, ops.erf, scaled), 1))
        wide = e(ops.where, e(ops.is_inf, x), np.nan, e(ops.multiply, wide, 0.5))
        is_normal = e(ops.greater_equal, e(ops.abs, wide), float(np.finfo(np.float32).tiny))
        return e.narrow(e(ops.where, is_normal, wide, e(ops.multiply, x, 0)))
    if approximate == "tanh":
        cube = e(ops.multiply, e(ops.multiply, x, x), x)
        inner = e(ops.add, x, e(ops.multiply, cube, 0.044715))
        steep = _by_float64(e, ops.tanh, e(ops.multiply, inner, float(np.sqrt(2 / np.pi))))
        return e.narrow(e(ops.multiply, half, e(ops.add, steep, 1)))
    steep = e.by_place(lambda: _approximate_erf(e, scaled), lambda: _by_float64(e, ops.erf, scaled))
    return e.narrow(e(ops.multiply, half, e(ops.add, steep, 1)))


@row("logaddexp2")
def _logaddexp2(e: AtenCall, x: Symbol, y: Operand) -> Emitted:
    """The base-2 logarithm of the sum of powers; of halves, rounded once."""
    if not e.is_half:
        return None
    x, y = (e.wide(z) for z in (x, y))
    greater = e(ops.maximum, x, y)
    power = e(ops.pow, 2.0, e(ops.negative, e(ops.abs, e(ops.subtract, x, y))))
    result = e(ops.add, greater, e(ops.divide, e(ops.log1p, power), float(np.log(2))))
    same = e(ops.logical_and, e(ops.is_inf, x), e(ops.equal, x, y))
    return e.narrow(e(ops.where, same, x, result))


@row("logit")
def _logit(e: AtenCall, x: Symbol, eps: float | None = None) -> Emitted:
    x = e.operand(x)
    if eps is not None:
        x = e(ops.clip, x, eps, 1 - eps)
    return e(ops.log, e(ops.divide, x, e(ops.subtract, 1, x)))


@row("softshrink")
def _softshrink(e: AtenCall, x: Symbol, lambd: Operand = 0.5) -> Emitted:
    wide = e.wide(x) if e.is_half else x
    if e.is_half and e.graph.rules.name != "torch@2.13":  # since 2.14 the bound is a half
        lambd = float(np.asarray(lambd).astype(x.dtype.storage))
    zero = e.by_place(
        lambda: e.graph.full(0, x.shape, wide.dtype), lambda: e(ops.multiply, wide, 0)
    )
    inside = e(ops.where, e(ops.is_nan, wide), wide, zero)
    low = e(ops.where, e(ops.less, wide, -lambd), e(ops.add, wide, lambd), inside)
    result = e(ops.where, e(ops.greater, wide, lambd), e(ops.subtract, wide, lambd), low)
    return e.narrow(result) if e.is_half else result
