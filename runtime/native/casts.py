"""Conversions in machine code: what graphir.conversions and NumPy's own casts compute, to the bit.

A value lies in a register of its machine dtype, as in runtime/program/casting.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from graphir import DType
from graphir.conversions import narrow_patterns, narrow_values
from graphir.evaluation import machine
from runtime.native.code import Conversion
from runtime.native.vectors import Table, Vectors
from runtime.program.casting import register
from runtime.program.tracing import Storage

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_U8, _U16, _U32 = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32)
_NAN, _INF = 0x7FC00000, 0x7F800000


def converted(code: Vectors, made: Conversion, x: str) -> str | None:
    """The result of a conversion; None where there is no code for it."""
    if made.kind == "load":
        return _loaded(code, made.source, x)
    if made.kind == "store":
        return _stored(code, made.target, x)
    return _cast(code, made, x)


# -- storage


def _loaded(code: Vectors, dtype: DType, x: str) -> str:
    """Exactly from storage."""
    if dtype is DType.bfloat16:
        return _float(code, code.bits("shl", code.convert("zext", x, _U16, _U32), 16))
    if dtype is DType.float16:
        return _from_half(code, x)
    if dtype.is_integer:
        return _narrow_integer(code, dtype, x)
    return code.looked_up(_values(dtype), code.convert("zext", x, _U8, _U32), _U32)


def _stored(code: Vectors, dtype: DType, x: str) -> str:
    """Exactly to storage."""
    if dtype is DType.bfloat16:
        return code.convert("trunc", code.bits("lshr", _word(code, x), 16), _U32, _U16)
    if dtype is DType.float16:
        return _to_half(code, x)
    if dtype.is_integer:
        return code.op(f"and {code.of('i8')} {x}, splat (i8 {(1 << dtype.bits) - 1})")
    return code.looked_up(_patterns(dtype), _upper(code, x), _U32)


_values = cache(lambda dtype: Table.of(narrow_values(dtype)))
_patterns = cache(lambda dtype: Table.of(narrow_patterns(dtype)))
_rounded_values = cache(lambda dtype: Table.of(narrow_values(dtype).take(narrow_patterns(dtype))))
"""Of a narrow float the values, and the patterns and values of all upper halves of a float32."""


def _from_half(code: Vectors, x: str) -> str:
    """Its bits moved to those of a float32 have an exponent that is 112 too low."""
    if code.has("f16c"):
        half = code.op(f"bitcast {code.of('i16')} {x} to {code.of('half')}")
        return code.op(f"fpext {code.of('half')} {half} to {code.of('float')}")
    word = code.convert("zext", x, _U16, _U32)
    moved = code.bits("shl", code.bits("and", word, 0x7FFF), 13)
    scaled = code.floats("fmul", _float(code, moved), 2.0**112)
    special = code.compare("icmp uge", _U32, moved, code.splat(0x7C00 << 13, _U32))
    size = code.choose(_U32, special, code.bits("or", moved, _INF), _word(code, scaled))
    sign = code.bits("shl", code.bits("and", word, 0x8000), 16)
    return _float(code, code.both("or", _U32, size, sign))


def _to_half(code: Vectors, x: str) -> str:
    """A float32 that is a half: divided by 2**112 it has the exponent of one, subnormals too."""
    if code.has("f16c"):
        half = code.op(f"fptrunc {code.of('float')} {x} to {code.of('half')}")
        return code.op(f"bitcast {code.of('half')} {half} to {code.of('i16')}")
    scaled = _word(code, code.floats("fmul", x, 2.0**-112))
    size = code.bits("and", code.bits("lshr", scaled, 13), 0x7FFF)
    large = code.bits("and", _word(code, x), _INF)
    special = code.compare("icmp eq", _U32, large, code.splat(_INF, _U32))
    bits = code.bits("and", code.bits("lshr", _word(code, x), 13), 0x7FFF)
    size = code.choose(_U32, special, code.bits("or", bits, 0x7C00), size)
    sign = code.bits("and", code.bits("lshr", _word(code, x), 16), 0x8000)
    return code.convert("trunc", code.both("or", _U32, size, sign), _U32, _U16)


def _narrow_integer(code: Vectors, dtype: DType, x: str) -> str:
    """The last bits of a byte, with the sign that they have."""
    up = code.op(f"shl {code.of('i8')} {x}, splat (i8 {8 - dtype.bits})")
    shift = "ashr" if dtype.kind == "int" else "lshr"
    return code.op(f"{shift} {code.of('i8')} {up}, splat (i8 {8 - dtype.bits})")


# -- casts


def _cast(code: Vectors, made: Conversion, x: str) -> str | None:
    source, target = made.source, made.target
    if source.is_complex or target.is_complex:
        return _complex(code, made, x)
    wide, wanted = register(source), register(target)
    if target.is_integer:
        found = _truncated(code, source, target, x) if source.is_float else None
        found = found or assigned(code, (wide, wanted), (x,))
        return _narrow_integer(code, target, found) if found and target.narrow else found
    if target is machine(target):
        return assigned(code, (wide, wanted), (x,))
    return _rounded(code, made, _single(code, source, x))


def _truncated(code: Vectors, source: DType, target: DType, x: str) -> str:
    """A float as an integer, cut off, within the range of its dtype; NaN is 0."""
    dtype, whole = register(source), register(target)
    low, above = code.splat(float(target.min), dtype), code.splat(2.0**target.precision, dtype)
    under = code.compare("fcmp olt", dtype, x, low)
    over = code.compare("fcmp oge", dtype, x, above)
    inside = code.both(
        "and",
        np.dtype(bool),
        code.compare("fcmp oge", dtype, x, low),
        code.compare("fcmp olt", dtype, x, above),
    )
    safe = code.choose(dtype, inside, x, code.splat(0, dtype))
    name = "fptosi" if whole.kind == "i" else "fptoui"
    found = code.convert(name, safe, dtype, whole)
    found = code.choose(whole, over, code.splat(target.max, whole), found)
    return code.choose(whole, under, code.splat(target.min, whole), found)


def _single(code: Vectors, source: DType, x: str) -> str:
    """As float32, exactly or rounded to odd: as graphir.conversions does."""
    wide = register(source)
    if source.exact_in(DType.float32):
        return assigned(code, (wide, _F32), (x,)) or x
    if source.is_integer and source.bits == 64:
        x = _sticky(code, source, x)
    elif wide != _F64:
        x = code.convert("sitofp" if wide.kind == "i" else "uitofp", x, wide, _F64)
    near = code.convert("fptrunc", x, _F64, _F32)
    back = code.convert("fpext", near, _F32, _F64)
    sizes = [code.intrinsic("fabs", _F64, [one]) for one in (back, x)]
    more = code.compare("fcmp ogt", _F64, *sizes)
    other = code.compare("fcmp une", _F64, back, x)
    less = code.both(
        "sub", _U32, _word(code, near), code.convert("zext", more, np.dtype(bool), _U32)
    )
    return _float(
        code, code.both("or", _U32, less, code.convert("zext", other, np.dtype(bool), _U32))
    )


def _sticky(code: Vectors, source: DType, x: str) -> str:
    """64-bit integers as float64, on the same side of every number of at most 41 bits."""
    dtype = register(source)
    name = "sitofp" if dtype.kind == "i" else "uitofp"
    exact = code.convert(name, x, dtype, _F64)
    full = code.type(dtype)
    low = code.op(f"and {full} {x}, splat (i64 4095)")
    even = code.compare("icmp eq", dtype, low, code.splat(0, dtype))
    size = code.intrinsic("fabs", _F64, [exact])
    small = code.compare("fcmp olt", _F64, size, code.splat(2.0**53, _F64))
    middle = code.op(f"add {full} {code.both('sub', dtype, x, low)}, splat (i64 2048)")
    fine = code.both("or", np.dtype(bool), even, small)
    return code.choose(_F64, fine, exact, code.convert(name, middle, dtype, _F64))


def _rounded(code: Vectors, made: Conversion, x: str) -> str:
    """Float32 rounded to a narrower format, within float32."""
    source, target = made.source, made.target
    if source.exact_in(target):
        return x
    if target is DType.float16:
        return _rounded_to_half(code, x)
    if target.narrow:
        return code.looked_up(_rounded_values(target), _upper(code, x), _U32)
    u, cut = _word(code, x), DType.float32.mantissa_bits - target.mantissa_bits
    half = 1 << (cut - 1)
    if made.tf32 == "away" and target is DType.tensor_float32:
        up = code.bits("add", u, half)
    else:
        odd = code.bits("and", code.bits("lshr", u, cut), 1)
        up = code.both("add", _U32, code.bits("add", u, half - 1), odd)
    if not made.quiet:  # a sum could carry NaN over into inf or -0.0
        nan = code.compare("fcmp uno", _F32, x, x)
        up = code.choose(_U32, nan, code.bits("or", u, _NAN), up)
    return _float(code, code.bits("and", up, 0xFFFFFFFF & -(1 << cut)))


def _rounded_to_half(code: Vectors, x: str) -> str:
    if code.has("f16c"):
        half = code.op(f"fptrunc {code.of('float')} {x} to {code.of('half')}")
        return code.op(f"fpext {code.of('half')} {half} to {code.of('float')}")
    u = _word(code, x)
    binade = _float(code, code.bits("and", u, _INF))
    low, high = code.splat(2.0**-14, _F32), code.splat(2.0**16, _F32)
    binade = code.choose(_F32, code.compare("fcmp ogt", _F32, binade, low), binade, low)
    binade = code.choose(_F32, code.compare("fcmp olt", _F32, binade, high), binade, high)
    shift = code.floats("fmul", binade, 1.5 * 2.0**13)
    up = code.both("fadd", _F32, x, shift)
    found = code.both("fsub", _F32, up, shift)
    found = code.floats("fmul", code.floats("fmul", found, 2.0**112), 2.0**-112)
    sign = code.bits("and", u, 0x80000000)
    return _float(code, code.both("or", _U32, _word(code, found), sign))


def _complex(code: Vectors, made: Conversion, x: str) -> str | None:
    """The parts converted each; of a real number the imaginary one is 0."""
    source, target = made.source, made.target
    if not source.is_complex:
        part = _cast(code, made._replace(target=target.part), x) if source is not target.part else x
        return None if part is None else code.joined(register(target), part, None)
    parts = [code.part(register(source), x, i) for i in (0, 1)]
    one = register(source.part)
    if target is DType.bool:
        zero = code.splat(0, one)
        return code.both(
            "or", np.dtype(bool), *[code.compare("fcmp une", one, p, zero) for p in parts]
        )
    made_parts = [assigned(code, (one, register(target.part)), (p,)) or p for p in parts]
    return code.joined(register(target), *made_parts)


# -- NumPy's own casts


def assigned(code: Vectors, dtypes: Sequence[Storage], args: Sequence[str]) -> str | None:
    """NumPy's cast between its own dtypes; a float that is cast to an integer is in its range."""
    source, target, x = dtypes[0], dtypes[-1], args[0]
    if source == target:
        return x
    if {source.kind, target.kind} - set("biuf") or _F16 in (source, target):
        return None
    if target.kind == "b":
        compare = "fcmp une" if source.kind == "f" else "icmp ne"
        return code.compare(compare, source, x, code.splat(0, source))
    if target.kind == "f":
        names = {"f": "fpext" if source.itemsize < target.itemsize else "fptrunc", "i": "sitofp"}
        return code.convert(names.get(source.kind, "uitofp"), x, source, target)
    if source.kind == "f":
        return code.convert("fptosi" if target.kind == "i" else "fptoui", x, source, target)
    if source.kind == "b":
        return code.convert("zext", x, source, target)
    if source.itemsize == target.itemsize:
        return x
    widened = "sext" if source.kind == "i" else "zext"
    return code.convert(
        "trunc" if source.itemsize > target.itemsize else widened, x, source, target
    )


_F16 = np.dtype(np.float16)


def _word(code: Vectors, x: str) -> str:
    return code.read_as(x, _F32, _U32)


def _float(code: Vectors, x: str) -> str:
    return code.read_as(x, _U32, _F32)


def _upper(code: Vectors, x: str) -> str:
    """The upper half of the bits, odd where the lower is not 0; of NaN that of the default."""
    u = _word(code, x)
    low = code.compare("icmp ne", _U32, code.bits("and", u, 0xFFFF), code.splat(0, _U32))
    return code.both(
        "or", _U32, code.bits("lshr", u, 16), code.convert("zext", low, np.dtype(bool), _U32)
    )
