"""Deviations of JAX, eager and compiled."""

from __future__ import annotations

import numpy as np

from graphir import DType
from tests.peers import deviations as at
from tests.peers.deviations import DIVISION, PRODUCTS, SUMS, Deviation
from tests.peers.steps import Step
from tests.peers.table.operands import C64, E8M0, F32, INT8, INT32, JAX, NAN, X, Y

FNUZ, E4M3 = DType.float8_e4m3fnuz, DType.float8_e4m3fn

ROWS = [
    Deviation(
        "an integer power looks at 6 bits of the exponent",
        "jax/_src/numpy/ufuncs.py, _pow_int_int",
        JAX,
        ("pow",),
        lambda case: case.dtypes[0].is_integer or case.dtypes[0] is DType.weak_int,
        ((INT32, [3]), (INT32, [65])),
        (Step("pow", (X, Y)),),
        [3**65 % 2**32 - 2**32],
        [3],
    ),
    Deviation(
        "an integer to a negative power is an integer, here an error",
        "jax/_src/numpy/ufuncs.py, _pow_int_int",
        JAX,
        ("pow",),
        at.negative_exponent,
        ((INT32, [2]), (INT32, [-1])),
        (Step("pow", (X, Y)),),
        None,
        INT32,
    ),
    Deviation(
        "an integer divided by zero is -2, but 0 // 0 is -1; the remainder is x",
        "XLA on CPU: division by zero gives -1; jax/_src/numpy/ufuncs.py, floor_divide",
        JAX,
        DIVISION,
        at.divisor_is_zero,
        ((INT8, [7, -7, 0]), (INT8, [0, 0, 0])),
        (Step("floor_divide", (X, Y)),),
        [0, 0, 0],
        [-2, -2, -1],
    ),
    Deviation(
        "an order puts a NaN with its sign set first, as the bits of float8 *fnuz have it",
        "jax/_src/lax/lax.py, _sort_lt_comparator: a total order; ml_dtypes",
        JAX,
        ("sort", "argsort", "argmax", "argmin", "max", "min"),
        at.has_nan,
        ((FNUZ, [1.0, NAN, 2.0]),),
        (Step("sort", (X,)),),
        [1.0, 2.0, NAN],
        [NAN, 1.0, 2.0],
    ),
    Deviation(
        "a remainder of zero has the sign of the dividend; sign keeps that of zero",
        "jax/_src/numpy/ufuncs.py, remainder; StableHLO, sign",
        JAX,
        ("remainder", "floor_divide", "sign", "sqrt", *SUMS, "reciprocal", "divide"),
        at.equal_numbers,
        ((F32, [-4.0]),),
        (Step("remainder", (X, 2)),),
        [0.0],
        [-0.0],
    ),
    Deviation(
        "quotients, roots and signs of complex numbers are rounded otherwise, and overflow",
        "XLA on LLVM",
        JAX,
        PRODUCTS,
        at.close(512),
        ((C64, [112 + 1j]),),
        (Step("sign", (X,)),),
        [0.9999601244926453 + 0.008928216062486172j],
        [0.9999602437019348 + 0.008928216062486172j],
    ),
    Deviation(
        "x divided by what is broadcast is x times its reciprocal, of great divisors 0",
        "XLA's algebraic simplifier; reciprocals that are subnormal are flushed",
        JAX,
        ("divide", "floor_divide"),
        lambda case: np.shape(case.conversions[1].before) != case.values[0].shape,
        ((F32, [3e38, 3e38]), (F32, 3e38)),
        (Step("divide", (X, Y)),),
        [1.0, 1.0],
        [0.0, 0.0],
    ),
    Deviation(
        "sums and products of narrow floats are rounded at each step, those of others in an order",
        "XLA on CPU",
        JAX,
        SUMS,
        at.accumulated,
        ((E4M3, [160.0, 112.0, 0.078125]),),
        (Step("cumulative_sum", (X,)),),
        [160.0, 256.0, 288.0],
        [160.0, 256.0, 256.0],
    ),
    Deviation(
        "any and all look at the real part of a complex number alone, not at a subnormal one",
        "jax/_src/numpy/reductions.py: astype(bool); jax-ml/jax#16200",
        JAX,
        ("any", "all", "logical_not"),
        lambda case: case.conversions[0].source.is_complex,
        ((C64, [1j]),),
        (Step("any", (X,)),),
        True,
        False,
    ),
    Deviation(
        "what is below 2**-127 is NaN in float8_e8m0fnu",
        "ml_dtypes/include/float8.h, float8_e8m0fnu has no zero",
        JAX,
        (*PRODUCTS, *SUMS, "max", "min", "sort", "argsort", "argmax", "argmin", "floor_divide"),
        lambda case: case.conversions[0].target is E8M0,
        ((E8M0, [2.0**-100]),),
        (Step("square", (X,)),),
        [2.0**-127],
        [NAN],
    ),
]
