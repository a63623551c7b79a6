"""Rows of the ops that convert: casts, quantization, and products of quantized arrays."""

from __future__ import annotations

from graphir.location import EXPORTER
from graphir.public import DType, GraphError, Symbol, ops
from graphir.runtime.sources.onnx_.node_rows import NodeCall, axis_of, row
from graphir.runtime.sources.op_rows import Attribute, Emitted, SymbolOrNone


@row("Cast", "CastLike")
def _cast(
    e: NodeCall, x: Symbol, *_: Symbol, saturate: int = 1, round_mode: str = "up", **__: Attribute
) -> Emitted:
    """A cast; the conversion to float8_e8m0fnu rounds up by default, which no cast does."""
    to = e.type.dtype
    if _specials(to) == "scale" and round_mode != "nearest":
        return None
    x = _saturating(e, x, to) if saturate else x
    if e.outer:
        return e.cast(x, to)
    if e.by_pass and x.dtype is not to:
        return e.graph.cast_for(x, to, "x", e.by_pass, EXPORTER)
    return e.graph.emit(ops.cast, (x,), {"to": to})


def _specials(dtype: DType) -> str:
    return dtype.format.specials if dtype.format else ""


def _saturating(e: NodeCall, x: Symbol, to: DType) -> Symbol:
    """Return x within the range of a float8 format, where graphir's casts give inf or NaN."""
    if not (to.narrow and to.bits == 8) or _specials(to) in ("", "scale"):
        return x
    wide = x if x.dtype.is_float and not x.dtype.narrow else e.cast(x, DType.float32)
    return e(ops.clip, wide, float(to.min), float(to.max))


def _parameter(e: NodeCall, p: Symbol, x: Symbol, axis: int, block: int) -> Symbol:
    """Return a scale or zero point, of an axis, blocks or all of x, as it broadcasts to x."""
    if p.rank == 0 or p.shape == (1,):
        return e.shaped(p, ())
    axis = axis_of(axis, x.rank)
    if p.rank == 1 and not block:
        return e.shaped(p, [p.shape[0] if i == axis else 1 for i in range(x.rank)])
    p = e(ops.repeat, p, repeats=block, axis=axis)
    return p if p.shape == x.shape else e.cut(p, axis, 0, x.shape[axis])


@row("QuantizeLinear")
def _quantize(
    e: NodeCall,
    x: Symbol,
    scale: Symbol,
    zero: SymbolOrNone = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    saturate: int = 1,
    precision: int = 0,
    **_: Attribute,
) -> Emitted:
    """Round(x / scale) + zero in the range of the result; floats are rounded by the cast alone."""
    to = e.type.dtype
    if precision or _specials(to) == "scale":
        return None
    scale = _parameter(e, scale, x, axis, block_size)
    wide = e.cast(x, scale.dtype) if scale.dtype.is_float and not scale.dtype.narrow else x
    quotient = e(ops.divide, wide, e.cast(scale, wide.dtype))
    if not to.is_integer:
        quotient = _saturating(e, quotient, to) if saturate else quotient
        return e.cast(quotient, to)
    zero = None if zero is None else _parameter(e, zero, x, axis, block_size)
    return _requantize(e, quotient, zero, to)


def _requantize(e: NodeCall, x: Symbol, zero: Symbol | None, to: DType) -> Symbol:
    """Return round(x) + zero as an integer dtype, saturated."""
    whole = e(ops.round, x)
    if zero is not None:
        whole = e(ops.add, whole, e.cast(zero, whole.dtype))
    return e.cast(e(ops.clip, whole, int(to.min), int(to.max)), to)


@row("DynamicQuantizeLinear")
def _quantize_dynamically(e: NodeCall, x: Symbol) -> Emitted:
    """The function of the standard, whose extremes 0 is one of: the padding of x that may be empty.

    The results are x in uint8, the scale and the zero point.
    """
    zero, most = e.number(0, x), e.number(255, x)
    if all(isinstance(size, int) and size for size in x.shape):
        low, high = (e(op, x, axis=None) if x.rank else x for op in (ops.min, ops.max))
        low, high = e(ops.minimum, low, zero), e(ops.maximum, high, zero)
    else:
        padded = e(ops.pad, x, padding=[(0, 1)] * x.rank, value=0)
        low, high = e(ops.min, padded, axis=None), e(ops.max, padded, axis=None)
    scale = e(ops.divide, e(ops.subtract, high, low), most)
    place = e(ops.clip, e(ops.subtract, zero, e(ops.divide, low, scale)), 0, 255)
    point = e.cast(e(ops.round, place), DType.uint8)
    return _requantize(e, e(ops.divide, x, scale), point, DType.uint8), scale, point


@row("DequantizeLinear")
def _dequantize(
    e: NodeCall,
    x: Symbol,
    scale: Symbol,
    zero: SymbolOrNone = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    **_: Attribute,
) -> Emitted:
    scale = _parameter(e, scale, x, axis, block_size)
    if scale.dtype.narrow:
        raise GraphError("the scale has no arithmetic", got=str(scale.type))
    if zero is not None:
        middle = DType.int32 if x.dtype.is_integer else scale.dtype
        zero = e.cast(_parameter(e, zero, x, axis, block_size), middle)
        x = e(ops.subtract, e.cast(x, middle), zero)
    return e.cast(e(ops.multiply, e.cast(x, scale.dtype), scale), e.type.dtype)


def _centred(e: NodeCall, x: Symbol, zero: Symbol | None, axis: int) -> Symbol:
    """Return x - zero as int32; a zero point may have an element for each place of an axis."""
    wide = e.cast(x, DType.int32)
    value = None if zero is None else e.static.of(zero)
    if zero is None or (value is not None and not value.any()):
        return wide
    if zero.rank == 1 and axis == -2 and x.rank > 1:
        zero = e.shaped(zero, (*zero.shape, 1))
    return e(ops.subtract, wide, e.cast(zero, DType.int32))


@row("MatMulInteger")
def _matmul_integer(
    e: NodeCall, a: Symbol, b: Symbol, a_zero: SymbolOrNone = None, b_zero: SymbolOrNone = None
) -> Emitted:
    return e(ops.matmul, _centred(e, a, a_zero, -2), _centred(e, b, b_zero, -1))


@row("QLinearMatMul")
def _qlinear_matmul(
    e: NodeCall,
    a: Symbol,
    p: Symbol,
    az: Symbol,
    b: Symbol,
    q: Symbol,
    bz: Symbol,
    r: Symbol,
    yz: Symbol,
) -> Emitted:
    """A product of quantized matrices; p, q and r are the scales."""
    if any(scale.rank and scale.shape != (1,) for scale in (p, q, r)):
        return None
    product = e(ops.matmul, _centred(e, a, az, -2), _centred(e, b, bz, -1))
    p, q, r = (e.cast(e.shaped(scale, ()), DType.float32) for scale in (p, q, r))
    factor = e(ops.divide, e(ops.multiply, p, q), r)
    scaled = e(ops.multiply, e.cast(product, DType.float32), factor)
    return _requantize(e, scaled, yz, e.type.dtype)
