"""Python scalars: the dtypes that they fit, their own dtypes, their conversion, their cells."""

from __future__ import annotations

import cmath
import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from reprlib import repr as brief
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import ExecutionError, GraphError

WEAK: dict[type, DType] = {
    bool: DType.bool,
    int: DType.weak_int,
    float: DType.weak_float,
    complex: DType.weak_complex,
}
"""The dtype of each type of Python scalar."""


def fits(value: Any, dtype: DType) -> bool:
    """Whether a Python scalar is exactly representable in `dtype`; a float may round.

    An int fits a float dtype if it lies in the range in which the dtype holds every int. A finite
    float must stay finite. Infinities and NaN fit if the format has them.
    """
    if isinstance(value, int):
        low, high = int_range(dtype)
        return low <= value <= high
    if isinstance(value, float):
        return dtype.format is not None and _keeps(value, dtype)
    if isinstance(value, complex):
        return dtype.is_complex and fits(value.real, dtype) and fits(value.imag, dtype)
    return False


def scalar(value: complex, dtype: DType, tf32: str = "even") -> NDArray[Any]:
    """Return a Python scalar as a 0-d array in a dtype's storage, rounded once.

    `tf32` is the rounding of tensor_float32: "even" or "away". Only the narrow floats accept an int
    of more than 64 bits.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = _odd_float(value)
    if isinstance(value, int) and not isinstance(value, bool) and value > 2**63 - 1:
        return convert(np.asarray(value, np.uint64), DType.uint64, dtype, tf32)
    source = WEAK[type(value)]
    return convert(np.asarray(value, source.storage), source, dtype, tf32)


def _odd_float(value: int) -> float:
    """Return an int as a float64 rounded to odd.

    A second rounding to any narrower format then gives the same result as one rounding of the int:
    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    size = abs(value)
    shift = size.bit_length() - 53
    odd = size >> shift | bool(size & ((1 << shift) - 1))
    return math.copysign(math.ldexp(odd, shift), value)


def round_scalar(value: complex, dtype: DType, tf32: str = "even") -> Any:
    """Return the Python number that a Python scalar becomes in a dtype."""
    number = scalar(value, dtype, tf32)
    return number.item() if dtype.storage.kind in "biufc" else float(number)


def survives(value: complex, dtype: DType) -> bool:
    """Whether a dtype holds the exact value of a Python number of at most 64 bits."""
    if isinstance(value, complex) and not dtype.is_complex:
        return False
    number = round_scalar(value, dtype)
    return number == value or (number != number and value != value)


def number_text(value: Any) -> str:
    """Return the repr of a scalar, or a short form of an int of more than 256 bits.

    Python refuses to write an int of 4301 digits.
    """
    if isinstance(value, int) and value.bit_length() > 256:
        sign = "-" if value < 0 else ""
        return f"{sign}0x{abs(value) >> value.bit_length() - 32:x}... ({value.bit_length()} bits)"
    return repr(value)


def identity_key(value: Any) -> tuple[type, Any]:
    """Return a key that only indistinguishable scalars share: 0.0 is not -0.0, 1 is not True.

    All NaNs share a key.
    """
    kind: Any = cast("object", type(value))
    return kind, repr(value) if kind in (float, complex) else value


def int_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest int that fit a dtype.

    For a float dtype both lie in the range in which the dtype holds every int.
    """
    if dtype.family == "bool":
        return 0, 1
    if dtype.format is None:
        return int(dtype.min), int(dtype.max)
    exact = 2**dtype.precision
    low = 1 if dtype.format.specials == "scale" else max(-exact, math.ceil(dtype.min))
    return low, min(exact, math.floor(dtype.max))


def _keeps(value: float, dtype: DType) -> bool:
    """Whether a float keeps its class (finite, infinite or NaN) when it rounds to nearest."""
    specials = dtype.format.specials if dtype.format else "ieee"
    if math.isnan(value):
        return specials != "finite"
    if math.isinf(value):
        return specials == "ieee"
    if specials == "scale" and value <= 0:
        return False
    # The tie lies half a unit in the last place above the greatest value. It rounds up, except in
    # "fn", whose greatest value is even.
    limit = float(dtype.max)
    if limit == sys.float_info.max:
        return True  # the tie overflows, and its flag would reach a ufunc that calls back
    tie = limit + 2.0 ** (math.frexp(limit)[1] - dtype.mantissa_bits - 2)
    return abs(value) < tie or (specials == "fn" and abs(value) == tie)


def misfit(value: complex, dtype: DType, under: str = "") -> GraphError:
    """Build the error that a scalar does not fit a dtype, with the fixes to write."""
    fixes: tuple[str, ...]
    if isinstance(value, float) and dtype.format is None:
        whole = (f"write {int(value)}",) if value.is_integer() else ()
        reason, fixes = "it is a float", (*whole, "choose a float dtype")
    elif isinstance(value, complex) and not dtype.is_complex:
        reason, fixes = "it is complex", ("choose a complex dtype",)
    elif isinstance(value, int) and dtype.format and fits(float_of(value), dtype):
        reason = "it is beyond the ints that are all exact there"
        fixes = (f"write {float_of(value)!r} to round it",)
    elif isinstance(value, float) and not math.isfinite(value):
        reason, fixes = "it is no value of that format", ("choose another dtype",)
    else:
        reason = f"it is out of range, [{dtype.min}, {dtype.max}]"
        fixes = ("choose a wider dtype",)
    problem = f"{number_text(value)} does not fit {dtype}{under}"
    return GraphError(problem, reason=reason, fix=fixes)


def float_of(value: int) -> float:
    """Return an int as a float, or inf if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


# -- Cells of Python scalars: sets of values that every library promotes alike
#
# The dtype that a library gives a Python scalar depends on the dtypes that hold the scalar. It
# changes between 127 and 128, but not between 5 and 6. The limits of the dtypes therefore cut the
# numbers into cells, and a program traced for one number serves every other number of its cell.

EXPONENTS = (-1, 0, 1, 2)
"""The exponents that libraries treat individually. Each exponent has a cell of its own."""


def _int_edges() -> Iterator[int]:
    """Yield the first int of each cell except the lowest cell."""
    for exponent in EXPONENTS:
        yield from (exponent, exponent + 1)
    for bits in (63, 64):
        yield from (-(2**bits), 2**bits)
    largest = 2**1024 - 2**970  # the least int that rounds to no finite float64
    yield from (1 - largest, largest)
    for dtype in DType:
        low, high = int_range(dtype)
        yield from (low, high + 1, -high)  # an unsigned dtype takes ints down to -high in torch
        yield from (low + 1, high)  # the limits themselves clip nothing
        if dtype.format is not None:
            greatest = int(dtype.part.max)
            yield from (-greatest, greatest + 1)


class Interval(NamedTuple):
    """The half-open interval of ints `low <= value < high`; either end may be an infinity."""

    low: float
    high: float


INT_EDGES = tuple(sorted(set(_int_edges())))
_INTERVALS = tuple(map(Interval, (-math.inf, *INT_EDGES), (*INT_EDGES, math.inf)))
FLOAT_EDGES = tuple(
    sorted({float(dtype_.part.max) for dtype_ in DType if dtype_.format is not None})
)
"""The greatest finite magnitude of each cell but the last."""


def cell_of(value: Any) -> Hashable:
    """Return the cell of a Python scalar, a key to compare with the cells of scalars of its type.

    The cell of an int is an interval between two neighbours in INT_EDGES. The cell of a float is
    its sign and a range of magnitudes. Infinities, NaN, 0.5 and floats equal to one of EXPONENTS
    have cells of their own. The cell of a complex number is the pair of its parts' cells.
    """
    if type(value) is int:
        return _INTERVALS[bisect_right(INT_EDGES, value)]
    if type(value) is complex:
        return cell_of(value.real), cell_of(value.imag)
    if not math.isfinite(value) or value == 0.5 or value in EXPONENTS:
        return repr(float(value))
    return bisect_left(FLOAT_EDGES, abs(value)), value < 0


def number(text: str) -> bool | int | float | complex | None:
    """Parse a Python number, without evaluation; return None for any other text.

    Raises ExecutionError for a number beyond the range of floats, and for an integer of more digits
    than Python parses.
    """
    if text in ("True", "False"):
        return text == "True"
    for parse in (_based_int, int, float, complex):
        try:
            value = parse(text)
        except ValueError:
            continue
        if not isinstance(value, int) and cmath.isinf(value) and "inf" not in text.lower():
            raise ExecutionError(
                f"{brief(text)} is beyond all floats", fix="write inf if you mean that"
            )
        return value
    return None


def _based_int(text: str) -> int:
    return int(text, 0)
