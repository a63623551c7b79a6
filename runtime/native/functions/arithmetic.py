"""Products, sums and polynomials of vector code; calls of NumPy's inner loops in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphir.runtime.native.abi import loop_of
from graphir.runtime.native.assembly import Vector, where


def fma(x: Vector, y: Vector, z: Vector) -> Vector:
    """Emit x*y + z, rounded once; y and z may be numbers of NumPy."""
    return x.intrinsic(
        "fma", *[term if hasattr(term, "code") else x.constant(term, x.dtype) for term in (y, z)]
    )


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """Emit a polynomial with one rounding for each degree; the highest degree comes first."""
    first, *rest = [x.constant(coefficient, x.dtype) for coefficient in coefficients]
    for coefficient in rest:
        first = fma(first, x, coefficient)
    return first


_SAME_ROUNDING = "i32 4"
"""An operand of an instruction of AVX-512: the current rounding mode."""


def avx512(name: str, x: Vector, *operands: Vector) -> Vector:
    """Emit an instruction of AVX-512 on 64 bytes of floats, with a result of x's type."""
    code, arguments = "ps" if x.dtype.itemsize == 4 else "pd", ", ".join(map(str, (x, *operands)))
    return x.emit_value(f"call {x.type} @llvm.x86.avx512.{name}.{code}.512({arguments})", x.dtype)


def avx512_masked(name: str, x: Vector, *operands: Vector) -> Vector:
    """Emit an instruction of AVX-512 that takes a mask, on all lanes."""
    return avx512(f"mask.{name}", x, *operands, *all_lanes(x), _SAME_ROUNDING)


def all_lanes(x: Vector) -> tuple[str, str]:
    """Return the last operands of an instruction with a mask: other lanes, of which none is."""
    return f"{x.type} zeroinitializer", f"i{x.code.width} -1"


def log_of_special(x: Vector) -> Vector:
    """Emit log of zeros, negative numbers, infinities and NaN."""
    zero, infinite, invalid = [x.dtype.type(value) for value in (0, -np.inf, -np.nan)]
    return where(x == zero, infinite, where(x < zero, invalid, x + x))


def call_loop(function: np.ufunc, x: Vector) -> Vector:
    """Emit a call of NumPy's inner loop of one operand on its lanes, through the stack.

    The call is `cold`: LLVM then keeps constants in registers outside of the branch with the call,
    and saves them inside (0.36 in place of 0.45 ns for log of a float64, 0.26 for exp).
    """
    code, lines = x.code, x.code.lines
    loop = loop_of(function, x.dtype, x.dtype)
    assert loop
    stack = code.op("call ptr @llvm.stacksave()")
    addresses, sizes = (code.op("alloca [2 x i64], align 16") for _ in range(2))
    length = code.op("alloca i64, align 8")
    lines.append(f"store i64 {code.width}, ptr {length}")
    places = [code.op(f"alloca {x.type}, align 64") for _ in range(2)]
    lines.append(f"store {x}, ptr {places[0]}, align 64")
    for k, place in enumerate(places):
        lines.append(f"put ptr {place}, {addresses}[{k}]")
        lines.append(f"put i64 {x.dtype.itemsize}, {sizes}[{k}]")
    address, data = map(code.pointer, loop)
    lines.append(
        f"call void {address}(ptr {addresses}, ptr {length}, ptr {sizes}, ptr {data}) cold"
    )
    result = x.emit_value(f"load {x.type}, ptr {places[-1]}, align 64", x.dtype)
    lines.append(f"call void @llvm.stackrestore(ptr {stack})")
    return result
