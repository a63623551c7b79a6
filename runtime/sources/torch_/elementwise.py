"""Rows of elementwise arithmetic as PyTorch's kernels compute it: of halves in float32.

A kernel of float16 and bfloat16 widens its operands, computes in float32 and rounds the result, as
`legalize` does. But some kernels keep a scalar in float32, some round in between, and some differ
between elements in vectors and the rest. Measured for all values of both dtypes on PyTorch 2.13
(tests/runtime/sources/test_torch_kernels.py); source: aten/src/ATen/native/cpu.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from graphir import DType, Op, Symbol, ops
from runtime.sources.torch_.rows import ROWS, RowCall, row

__all__ = ["ROWS", "vector_places"]


def vector_places(shape: Sequence[int], operands: Sequence[Any], bits: int) -> Any:
    """Return where a kernel of 16 bits computes in vectors of `bits`: True, False, or a mask.

    The loop runs along the inner axes over which no operand jumps, two vectors at a time.
    Source: vectorized_loop of aten/src/ATen/native/cpu/Loops.h. Loops of several threads, which
    split results of more than 32,768 elements, have more ends.
    """
    strides = [x.expand(shape).stride() for x in operands if x.dim()]
    order = sorted(range(len(shape)), key=lambda axis: [x[axis] for x in strides], reverse=True)
    if not strides or any(x[order[-1]] not in (0, 1) for x in strides):
        return False
    size = 1
    for axis in reversed(order):
        if any(x[axis] != x[order[-1]] * size for x in strides):
            break
        size *= shape[axis]
    end = size - size % (bits // 8)
    if end in (0, size):
        return bool(end)
    mask = np.arange(int(np.prod(shape))) % size < end
    return mask.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def _is_scalar(x: Any) -> bool:
    return not isinstance(x, Symbol) or not x.rank


def _beside_scalar(op: Op, e: RowCall, x: Any, y: Any) -> Any:
    """An op whose kernel of halves keeps a second operand without axes in float32.

    Measured: * / // and trunc division; the first operand, and those of other ops, are halves.
    """
    if e.is_half and _is_scalar(y):
        return e.narrow(e(op, e.wide(e.operand(x)), e.scalar(y)))
    return e(op, x, y)


ROWS["mul"] = partial(_beside_scalar, ops.multiply)


def _add_multiple(op: Op, e: RowCall, x: Any, y: Any, alpha: Any = 1) -> Any:
    """Add and subtract, of y * alpha; of halves, alpha is one, and vectors keep a wide product."""

    def multiple() -> Any:
        return e(ops.multiply, y, alpha) if isinstance(y, Symbol) else y * alpha

    if alpha == 1:
        return e(op, x, y)
    y = e.operand(y) if isinstance(y, Symbol) else y
    if not e.is_half:
        return e(op, x, multiple())
    alpha, x, y = e.half_number(alpha), e.operand(x), e.operand(y)

    def in_vectors() -> Symbol:
        product = e(ops.multiply, e.wide(y), alpha)
        return e.narrow(e(op, e.wide(x), product))

    return e.by_place(in_vectors, lambda: e(op, x, multiple()))


ROWS["add"], ROWS["sub"] = partial(_add_multiple, ops.add), partial(_add_multiple, ops.subtract)


@row("addcmul")
def _addcmul(e: RowCall, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    """X + value * y * z; of halves, y * value is float32, and the rest a fused multiply-add."""
    if not e.is_half:
        return None
    x, y, z = (e.wide(operand) for operand in (x, y, z))
    return _multiply_add(e, e(ops.multiply, y, value), z, x)


def _multiply_add(e: RowCall, left: Symbol, right: Symbol, addend: Symbol) -> Symbol:
    """Return left * right + addend of float32, rounded to float32, then to a half.

    The product is exact in float64.
    """
    left, right, addend = (e.inside(x, DType.float64) for x in (left, right, addend))
    exact = e(ops.add, e(ops.multiply, left, right), addend)
    return e.narrow(e.inside(exact, DType.float32))


@row("addcdiv")
def _addcdiv(e: RowCall, x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    if not e.is_half:
        return None
    x, y, z = (e.wide(operand) for operand in (x, y, z))
    return e.narrow(e(ops.add, x, e(ops.divide, e(ops.multiply, y, value), z)))


def _float32(e: RowCall, number: Any) -> Symbol:
    return e.graph.scalar(float(number), DType.float32)


@row("lerp")
def _lerp(e: RowCall, x: Any, y: Any, weight: Any) -> Any:
    """The interpolation from the nearer end; of halves by a fused multiply-add."""
    if not e.is_half or isinstance(weight, (Symbol, complex)):
        return None
    x, y = e.wide(x), e.wide(y)
    weight = np.float32(weight)
    if abs(weight) < 0.5:
        return _multiply_add(e, e(ops.subtract, y, x), _float32(e, weight), x)
    return _multiply_add(e, e(ops.subtract, x, y), _float32(e, np.float32(1) - weight), y)


@row("pow")
def _pow(e: RowCall, x: Any, y: Any) -> Any:
    """Some powers are roots and products: those of bfloat16 round after each product."""
    number = y if isinstance(x, Symbol) and isinstance(y, (int, float)) else None
    if number == 0.5 and e.type.dtype.is_float and e.type.dtype is not DType.float16:
        return e(ops.sqrt, x)
    if number == -0.5 and e.type.dtype is DType.bfloat16:
        return _rsqrt(e, x, wide=True)
    if number == -2 and e.type.dtype is DType.bfloat16:
        return e(ops.reciprocal, e(ops.multiply, x, x))
    if number == 3 and e.type.dtype is DType.bfloat16:
        return e(ops.multiply, e(ops.multiply, x, x), x)
    return e(ops.pow, x, y)


@row("rsqrt")
def _rsqrt(e: RowCall, x: Any, wide: bool = False) -> Any:
    return e.by_place(lambda: e(ops.rsqrt, x), lambda: e(ops.reciprocal, e(ops.sqrt, x)), wide)


@row("remainder")
def _remainder(e: RowCall, x: Any, y: Any) -> Any:
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
def _floor_divide(e: RowCall, x: Any, y: Any) -> Any:
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
def _div(e: RowCall, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return _beside_scalar(ops.divide, e, x, y)
    if rounding_mode == "floor":
        return _floor_divide(e, x, y)
    if e.type.dtype.is_integer:
        return e(ops.floor_divide, e(ops.subtract, x, e(ops.fmod, x, y)), y)
    if e.is_half and _is_scalar(y):
        return e.narrow(e(ops.trunc, e(ops.divide, e.wide(e.operand(x)), e.scalar(y))))
    return e(ops.trunc, e(ops.divide, x, y))


@row("xlogy")
def _xlogy(e: RowCall, x: Any, y: Any) -> Any:
    """X * log(y), which is 0 where x is 0 and y no NaN; of halves, the logarithm is a half."""
    x, y = (e.operand(z) for z in (x, y))
    product = e(ops.multiply, x, e(ops.log, y))
    product = e(ops.where, e(ops.equal, x, 0), 0.0, product)
    return e(ops.where, e(ops.is_nan, y), y, product)


@row("logaddexp2")
def _logaddexp2(e: RowCall, x: Any, y: Any) -> Any:
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
def _logit(e: RowCall, x: Any, eps: float | None = None) -> Any:
    x = e.operand(x)
    if eps is not None:
        x = e(ops.clip, x, eps, 1 - eps)
    return e(ops.log, e(ops.divide, x, e(ops.subtract, 1, x)))


@row("softshrink")
def _softshrink(e: RowCall, x: Any, lambd: Any = 0.5) -> Any:
    wide = e.wide(x) if e.is_half else x
    zero = e.by_place(
        lambda: e.graph.full(0, x.shape, wide.dtype), lambda: e(ops.multiply, wide, 0)
    )
    inside = e(ops.where, e(ops.is_nan, wide), wide, zero)
    low = e(ops.where, e(ops.less, wide, -lambd), e(ops.add, wide, lambd), inside)
    result = e(ops.where, e(ops.greater, wide, lambd), e(ops.subtract, wide, lambd), low)
    return e.narrow(result) if e.is_half else result
