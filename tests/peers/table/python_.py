"""Deviations of Python's own numbers."""

from __future__ import annotations

from graphir import DType
from tests.peers import deviations as at
from tests.peers.deviations import ANY, PRODUCTS, Deviation
from tests.peers.steps import COMPARISONS, SHIFTS, Step
from tests.peers.table.operands import WEAK_FLOAT, WEAK_INT, X, Y

WEAK_COMPLEX = DType.weak_complex
REFERENCE = "The Python Language Reference, 6.7"

ROWS = [
    Deviation(
        "ints beyond 64 bits are exact, here they wrap",
        "docs.python.org, Numeric Types",
        "python",
        ANY,
        lambda case: at.beyond_64_bits(case.results[1]),
        ((WEAK_INT, 2**62),),
        (Step("multiply", (X, 2)),),
        -(2**63),
        None,
    ),
    Deviation(
        "literals beyond int64 compute exactly, here they are refused",
        "docs.python.org, Numeric Types",
        "python",
        ANY,
        at.given(lambda x: type(x) is int and x >= 2**63),
        ((WEAK_FLOAT, 1.0),),
        (Step("add", (X, 2**64)),),
        None,
        WEAK_FLOAT,
    ),
    Deviation(
        "a division by zero is refused; here integers give 0, floats an infinity or NaN",
        REFERENCE,
        "python",
        ("divide", "floor_divide", "remainder", "pow"),
        lambda case: isinstance(case.results[1], ZeroDivisionError),
        ((WEAK_INT, 7), (WEAK_INT, 0)),
        (Step("floor_divide", (X, Y)),),
        0,
        None,
    ),
    Deviation(
        "what overflows a float is refused, here infinite",
        "Objects/floatobject.c, float_pow: OverflowError",
        "python",
        ("pow", "divide", "multiply", "abs", "add", "subtract", "remainder", "floor_divide"),
        lambda case: isinstance(case.results[1], OverflowError),
        ((WEAK_FLOAT, 1e300),),
        (Step("pow", (X, 2.0)),),
        float("inf"),
        None,
    ),
    Deviation(
        "an int to a negative power that is no literal is a float, here an error",
        "Objects/longobject.c, long_pow",
        "python",
        ("pow",),
        at.negative_exponent,
        ((WEAK_INT, 2), (WEAK_INT, -1)),
        (Step("pow", (X, Y)),),
        None,
        WEAK_FLOAT,
    ),
    Deviation(
        "a negative number to a fraction is complex, here NaN",
        "Objects/floatobject.c, float_pow",
        "python",
        ("pow",),
        lambda case: case.dtypes[1] is WEAK_COMPLEX,
        ((WEAK_FLOAT, -1.0),),
        (Step("pow", (X, 0.5)),),
        WEAK_FLOAT,
        WEAK_COMPLEX,
    ),
    Deviation(
        "a negative shift is refused, here past the width: 0, or the sign",
        "Objects/longobject.c, long_lshift",
        "python",
        SHIFTS,
        lambda case: isinstance(case.results[1], ValueError),
        ((WEAK_INT, 8), (WEAK_INT, -1)),
        (Step("left_shift", (X, Y)),),
        0,
        None,
    ),
    Deviation(
        "an int and a float compare exactly, here at the float",
        "Objects/floatobject.c, float_richcompare",
        "python",
        COMPARISONS,
        at.given(lambda x: x is WEAK_FLOAT or x is WEAK_COMPLEX or isinstance(x, (float, complex))),
        ((WEAK_INT, 2**53 + 1), (WEAK_FLOAT, 2.0**53)),
        (Step("equal", (X, Y)),),
        True,
        False,
    ),
    Deviation(
        "powers, and products, quotients and magnitudes of complex numbers are rounded otherwise",
        "Objects/complexobject.c; libm",
        "python",
        PRODUCTS,
        at.close(512),
        ((WEAK_COMPLEX, 65503.9 + 65520j), (WEAK_COMPLEX, 65504 + 65520j)),
        (Step("multiply", (X, Y)),),
        -2102934.3999999044 + 8583637608j,
        -2102934.4000000954 + 8583637608j,
    ),
]
