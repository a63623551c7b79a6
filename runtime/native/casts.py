"""Conversions in machine code, as NumPy's casts and graphir.conversions have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphir import DType
from runtime.native.vectors import Vectors, lane
from runtime.program.tracing import Storage

_F32, _U32, _U16 = np.dtype(np.float32), np.dtype(np.uint32), np.dtype(np.uint16)
_BF16 = DType.bfloat16.storage
_F16 = np.dtype(np.float16)


def assigned(code: Vectors, dtypes: Sequence[Storage], args: Sequence[str]) -> str | None:
    """NumPy's own cast between dtypes of storage."""
    source, target = dtypes[0], dtypes[-1]
    x = args[0]
    if source == target:
        return x
    if source == _BF16 and target == _F32:
        return _from_bfloat16(code, x)
    if source == _F32 and target == _BF16:
        return _to_bfloat16(code, x)
    if source == _F16 and target == _F32:
        return _from_float16(code, x)
    if source == _F32 and target == _F16:
        return _to_float16(code, x)
    name = _instruction(source, target)
    if name is None:
        return None
    if name == "":
        return code.read_as(x, source, target)
    if name == "true":
        compare = "fcmp une" if source.kind == "f" else "icmp ne"
        return code.op(f"{compare} {code.type(source)} {x}, zeroinitializer")
    return code.op(f"{name} {code.type(source)} {x} to {code.type(target)}")


def _instruction(source: Storage, target: Storage) -> str | None:
    """The LLVM conversion; nothing where bits stay, "true" to bool, None where there is none."""
    one, other = source.kind, target.kind
    if one not in "biuf" or other not in "biuf" or (one == "f" and other in "iu"):
        return None
    if source in (_F16, _BF16) or target in (_F16, _BF16):
        return None
    if other == "b":
        return "true"
    if other == "f":
        if one == "f":
            return "fpext" if source.itemsize < target.itemsize else "fptrunc"
        return "sitofp" if one == "i" else "uitofp"
    if one == "b":
        return "zext"
    if source.itemsize == target.itemsize:
        return ""
    if source.itemsize > target.itemsize:
        return "trunc"
    return "sext" if one == "i" else "zext"


def _bits(code: Vectors, text: str, x: str, amount: int) -> str:
    return code.op(f"{text} {code.of('i32')} {x}, splat (i32 {amount})")


def _from_bfloat16(code: Vectors, x: str) -> str:
    wide = code.op(f"zext {code.of('i16')} {x} to {code.of('i32')}")
    return code.read_as(_bits(code, "shl", wide, 16), _U32, _F32)


def _to_bfloat16(code: Vectors, x: str) -> str:
    """Ties to even; of NaN the upper half, quiet."""
    u = code.read_as(x, _F32, _U32)
    upper = _bits(code, "lshr", u, 16)
    odd = _bits(code, "and", upper, 1)
    half = _bits(code, "add", odd, 0x7FFF)
    sum_ = code.op(f"add {code.of('i32')} {u}, {half}")
    rounded = _bits(code, "lshr", sum_, 16)
    nan = code.op(f"fcmp uno {code.of('float')} {x}, {x}")
    quiet = _bits(code, "or", upper, 0x40)
    chosen = code.op(
        f"select {code.of('i1')} {nan}, {code.of('i32')} {quiet}, {code.of('i32')} {rounded}"
    )
    return code.op(f"trunc {code.of('i32')} {chosen} to {code.of('i16')}")


def _from_float16(code: Vectors, x: str) -> str:
    """The bits of a half, moved to a float's, have an exponent that is 112 too low."""
    wide = code.op(f"zext {code.of('i16')} {x} to {code.of('i32')}")
    moved = _bits(code, "shl", _bits(code, "and", wide, 0x7FFF), 13)
    low = code.read_as(moved, _U32, _F32)
    scale = code.splat(2.0**112, _F32)
    scaled = code.op(f"fmul {code.of('float')} {low}, {scale}")
    bits = code.read_as(scaled, _F32, _U32)
    special = code.op(f"icmp uge {code.of('i32')} {moved}, splat (i32 {0x7C00 << 13})")
    infinite = _bits(code, "or", moved, 0x7F800000)
    found = code.op(
        f"select {code.of('i1')} {special}, {code.of('i32')} {infinite}, {code.of('i32')} {bits}"
    )
    sign = _bits(code, "shl", _bits(code, "and", wide, 0x8000), 16)
    both = code.op(f"or {code.of('i32')} {found}, {sign}")
    return code.read_as(both, _U32, _F32)


def _to_float16(code: Vectors, x: str) -> str:
    """Rounded by adding 1.5 * 2**13 of its binade, and taking it away; then moved."""
    u = code.read_as(x, _F32, _U32)
    f, i = code.of("float"), code.of("i32")
    size = _bits(code, "and", u, 0x7FFFFFFF)
    binade = _bits(code, "and", u, 0x7F800000)
    low = code.op(f"icmp ult {i} {binade}, splat (i32 {113 << 23})")
    binade = code.op(f"select {code.of('i1')} {low}, {i} splat (i32 {113 << 23}), {i} {binade}")
    shift = _bits(code, "add", binade, (13 << 23) + (1 << 22))
    number = code.read_as(size, _U32, _F32)
    by = code.read_as(shift, _U32, _F32)
    up = code.op(f"fadd {f} {number}, {by}")
    back = code.op(f"fsub {f} {up}, {by}")
    scaled = code.op(f"fmul {f} {back}, {code.splat(2.0**-112, _F32)}")
    half = _bits(code, "lshr", code.read_as(scaled, _F32, _U32), 13)
    over = code.op(f"icmp uge {i} {size}, splat (i32 {0x477FF000})")
    half = code.op(f"select {code.of('i1')} {over}, {i} splat (i32 {0x7C00}), {i} {half}")
    nan = code.op(f"icmp ugt {i} {size}, splat (i32 {0x7F800000})")
    half = code.op(f"select {code.of('i1')} {nan}, {i} splat (i32 {0x7E00}), {i} {half}")
    sign = _bits(code, "and", _bits(code, "lshr", u, 16), 0x8000)
    both = code.op(f"or {i} {half}, {sign}")
    return code.op(f"trunc {i} {both} to {code.of('i16')}")
