"""Deviations of NumPy 2 and 1, of Dask and of array-api-strict."""

from __future__ import annotations

import numpy as np

from graphir import DType
from tests.peers import deviations as at
from tests.peers.deviations import ANY, SUMS, Deviation
from tests.peers.graphs import Case
from tests.peers.steps import COMPARISONS, Step, Value
from tests.peers.table.operands import (
    BOOL,
    C128,
    F16,
    F32,
    F64,
    INT8,
    INT64,
    NAN,
    NUMPY,
    SVML,
    X86,
    X,
    Y,
)

UINT8 = DType.uint8


def _misdeclared(case: Case) -> bool:
    """Whether Dask declares an operand to be of another dtype than it computes."""
    operands = [x for x in case.operands if isinstance(x, Case) and x.dtypes[1]]
    return any(x.results[1].dtype != x.dtypes[1].to_numpy() for x in operands)


def _quick_exponent(case: Case) -> bool:
    """Whether an exponent is a 0-d array of a value by which NumPy 1 takes a short cut."""
    exponent = case.operands[1]
    shown = isinstance(exponent, Case) and not exponent.results[0].rank
    return shown and exponent.values[1] in (-1, 0, 0.5, 1, 2)


ROWS = [
    Deviation(
        "a Python complex to an np.float64, which is a Python float, is Python's power",
        "Objects/complexobject.c, complex_pow: ZeroDivisionError, OverflowError",
        "numpy",
        ("pow",),
        lambda case: isinstance(case.results[1], (ZeroDivisionError, OverflowError)),
        ((DType.float64, -1.0),),
        (Step("pow", (0j, X)),),
        C128,
        None,
    ),
    Deviation(
        "complex scalars that a function gave compare by real parts, whatever is NaN",
        "numpy/core/src/umath/scalarmath.c.src of 1.26",
        "numpy_legacy",
        COMPARISONS,
        lambda case: not case.values[0].shape and at.part(case, np.isnan),
        ((C128, complex(-1, NAN)),),
        (Step("conj", (X,)), Step("less_equal", (Value(1), 1))),
        False,
        True,
    ),
    Deviation(
        "the dtype of a power follows the value of a 0-d exponent: that of the base by 1 or 0.5",
        "numpy/core/src/multiarray/number.c of 1.26, fast_scalar_power",
        "numpy_legacy",
        ("pow",),
        _quick_exponent,
        ((F16, 3.0), (F64, 1.0)),
        (Step("pow", (X, Y)),),
        F64,
        F16,
    ),
    Deviation(
        "1 / 0 of integers is what the x86 instruction makes of an infinity",
        "numpy/_core/src/umath/loops.c.src, reciprocal; undefined in C",
        NUMPY,
        ("reciprocal",),
        lambda case: at.over(case, lambda one: one.target.is_integer & (one.after == 0)),
        ((INT64, [0, 1, -2]),),
        (Step("reciprocal", (X,)),),
        [0, 1, 0],
        [-(2**63), 1, 0],
        here=X86,
    ),
    Deviation(
        "x ** y takes another function of broadcast operands and scalars, and squares by it",
        "numpy/_core/src/umath/fast_loop_macros.h; graphir broadcasts first, and x ** 2 is x * x",
        f"{NUMPY} array_api",
        ("pow",),
        lambda case: (
            at.close(512)(case) | at.over(case, lambda one: np.isnan(at.parts(one.after)).any(-1))
        ),
        ((F32, [0, 7, 2, 0, 1, 1] if SVML else [0, 1, 2]),),
        (Step("pow", (0.1 if SVML else 70000.0, X)),),
        np.float32([1, 1.0000001e-07, 1.0000001e-02, 1, 0.1, 0.1] if SVML else [1, 7e4, 4.9e9]),
        np.float32(
            [1, 1.0000001e-07, 9.9999998e-03, 1, 0.1, 0.1] if SVML else [1, 7e4, 4.9000003e9]
        ),
        here=X86,
    ),
    Deviation(
        "cumulative sums and products of float16 are rounded at each step, here from float32",
        "numpy/_core/src/umath/loops.c.src, HALF_add",
        NUMPY,
        SUMS,
        at.accumulated,
        ((F16, [5.793, -4840.0, 1296.0]),),
        (Step("cumulative_sum", (X,)),),
        np.float16([5.793, -4836.0, -3538.0]),
        np.float16([5.793, -4836.0, -3540.0]),
    ),
    Deviation(
        "the sign of a complex number is that of its real part, or of its imaginary one",
        "numpy/core/src/umath/loops.c.src of 1.26; z / |z| since NumPy 2",
        "numpy_legacy",
        ("sign",),
        lambda case: case.dtypes[0].is_complex,
        ((C128, [3 + 4j, -2j, 0]),),
        (Step("sign", (X,)),),
        [0.6 + 0.8j, -1j, 0],
        [1, -1, 0],
    ),
    Deviation(
        "the dtype follows the value of a 0-d operand, which graphir does not know beforehand",
        "numpy/core/src/multiarray/convert_datatype.c of 1.26; NEP 50",
        "numpy_legacy",
        ANY,
        at.rank_0,
        ((INT8, [1, 2]), (INT64, 300)),
        (Step("add", (X, Y)),),
        None,
        DType.int16,
    ),
    Deviation(
        "of equal extremes the place is that in the first chunk, here the first of all",
        "dask/array/reductions.py, arg_chunk",
        "dask",
        ("argmax", "argmin"),
        at.anywhere,
        ((F32, [[3, 2, 0], [3, 0, 0]]),),
        (Step("argmin", (X,)),),
        2,
        4,
    ),
    Deviation(
        "round of bool is float16 that Dask declares bool: later ops decide by bool",
        "dask/array/core.py, Array.round: map_blocks with the dtype of the array",
        "dask",
        ANY,
        _misdeclared,
        ((BOOL, [True]),),
        (Step("round", (X,)), Step("cumulative_prod", (Value(1),))),
        F16,
        INT64,
    ),
    Deviation(
        "round of bool is float16 that Dask declares bool: ops that take no bool refuse it",
        "dask/array/core.py, Array.round: map_blocks with the dtype of the array",
        "dask",
        ANY,
        _misdeclared,
        ((BOOL, True),),
        (Step("round", (X,)), Step("sign", (Value(1),))),
        F16,
        None,
    ),
    Deviation(
        "z / |z| of a complex number, whose magnitude overflows or is rounded otherwise",
        "array_api_strict/_elementwise_functions.py, sign",
        "array_api",
        ("sign",),
        at.close(8),
        ((C128, [6.55205e4 + 1.79769313e308j]),),
        (Step("sign", (X,)),),
        [3.644698803516037e-304 + 1j],
        [3.6446988035160367e-304 + 0.9999999999999999j],
    ),
    Deviation(
        "clip takes a bound that the dtype of the array does not have",
        "array_api_strict/_elementwise_functions.py, clip",
        "array_api",
        ("clip",),
        at.anywhere,
        ((UINT8, [5]), (UINT8, [0])),
        (Step("clip", (X, Y, 70000)),),
        None,
        UINT8,
    ),
    Deviation(
        "clip refuses a lower bound above the upper one, where the standard says nothing",
        "array_api_strict/_elementwise_functions.py, clip",
        "array_api",
        ("clip",),
        at.anywhere,
        ((INT64, [1]),),
        (Step("clip", (X, 3, 2)),),
        INT64,
        None,
    ),
]
