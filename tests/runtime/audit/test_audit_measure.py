"""What `measure` says of a cast, beside fractions: every ordered pair of dtypes, random data."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from graphir import DType
from graphir.conversions import convert
from graphir.passes.analysis.casts import Measured
from graphir.runtime.audit import double_double
from graphir.runtime.audit.effects import measure
from tests.support.rounding import (
    ALL,
    COMPLEX,
    FORMATS,
    GREATEST,
    INTEGERS,
    float_edges,
    integer_traps,
)

PARTS = {"complex64": "float32", "complex128": "float64", "weak_complex": "weak_float"}


def part_of(name: str) -> str:
    return PARTS.get(name, name)


# -- the oracle: Python's numbers, one element at a time


def parts(value: Any) -> tuple[Any, Any]:
    if isinstance(value, complex):
        return value.real, value.imag
    return (value if isinstance(value, float) else int(value)), 0


def is_nan(value: Any) -> bool:
    return any(math.isnan(x) for x in parts(value))


def is_finite(value: Any) -> bool:
    return all(isinstance(x, int) or math.isfinite(x) for x in parts(value))


def is_zero(value: Any) -> bool:
    return all(x == 0 for x in parts(value))


def signs(value: Any) -> list[bool]:
    return [isinstance(x, float) and math.copysign(1, x) < 0 for x in parts(value)]


def changed(before: Any, after: Any) -> bool:
    if is_nan(before) or is_nan(after):
        return is_nan(before) != is_nan(after)
    # Python compares an int with a float exactly.
    return parts(before) != parts(after) or any(
        x == 0 and one != other
        for x, one, other in zip(parts(before), signs(before), signs(after), strict=True)
    )


def unit(x: Fraction, name: str) -> Fraction:
    """One unit in the last place about x, found in whole numbers."""
    if part_of(name) not in FORMATS:
        return Fraction(1)
    f = FORMATS[part_of(name)]
    least = -f.bias if f.specials == "scale" else 1 - f.bias
    exponent = least
    if x:
        exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
        exponent = max(exponent - (abs(x) < Fraction(2) ** exponent), least)
    return Fraction(2) ** (exponent - f.mantissa)


def overflowed(before: Any, after: Any, name: str) -> bool:
    if not is_finite(before) or not is_finite(after):
        return is_finite(before)
    real = Fraction(parts(before)[0])
    if name in INTEGERS:
        bits, signed = INTEGERS[name]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return not low <= math.trunc(real) <= high
    if name in FORMATS and FORMATS[name].specials == "finite":
        greatest = Fraction(GREATEST[name])
        return abs(real) >= greatest + unit(greatest, name) / 2
    return False


def loss(before: Any, after: Any) -> list[Fraction]:
    return [Fraction(y) - Fraction(x) for x, y in zip(parts(before), parts(after), strict=True)]


def expected(pairs: list[tuple[Any, Any]], name: str) -> tuple[dict[str, Any], list[Fraction]]:
    """The fields of Measured but the relative error, of which the squares come second."""
    lost = [pair for pair in pairs if changed(*pair)]
    over = [pair for pair in lost if overflowed(*pair, name)]
    usable = [(x, y) for x, y in pairs if is_finite(x) and is_finite(y) and not is_zero(x)]
    ulps = [
        abs(d) / unit(Fraction(x), name)
        for before, after in usable
        for d, x in zip(loss(before, after), parts(before), strict=True)
    ]
    under = [(x, y) for x, y in lost if is_finite(x) and not is_zero(x) and is_zero(y)]
    return {
        "elements": len(pairs),
        "changed": len(lost),
        "overflowed": len(over),
        "underflowed": len([pair for pair in under if pair not in over]),
        "nan_made": sum(not is_nan(x) and is_nan(y) for x, y in lost),
        "ulps": float(max(ulps, default=Fraction(0))),
    }, [relative(*pair) for pair in usable]


def relative(before: Any, after: Any) -> Fraction:
    """The square, since magnitudes of complex numbers are no fractions."""
    return sum(x * x for x in loss(before, after)) / sum(Fraction(x) ** 2 for x in parts(before))


# -- data


def data(source: DType) -> Any:
    """Random values of every magnitude and on the edges of every format."""
    rng = np.random.default_rng(len(str(source)))
    name = part_of(str(source))
    if source is DType.bool:
        return np.array([True, False, True])
    if name in INTEGERS:
        traps = integer_traps(name)
        kept = [*traps[:4], *traps[-4:], *(traps[i] for i in rng.integers(0, len(traps), 120))]
        wide = np.array(kept, np.uint64 if min(kept) >= 0 else np.int64)
        return wide.astype(source.storage)
    with np.errstate(all="ignore"):
        found = rng.choice(float_edges(name), 90)
        spread = rng.standard_normal(60) * 2.0 ** rng.integers(-160, 140, 60)
        wild = np.ldexp(rng.standard_normal(10), rng.integers(-1070, 1020, 10))
        near = rng.standard_normal(60) * 300
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e-30, 0.4])
        more = np.concatenate([spread, wild, near, special])
        found = np.concatenate([found, convert(more, DType.float64, DType(name))])
        if not source.is_complex:
            return found
        both = np.empty(found.shape, source.storage)
        both.real, both.imag = found, rng.permutation(found)
        both.imag[:20] = 0
        return both


PAIRS = [
    (source, target)
    for source in ALL
    for target in ALL
    if not source.is_complex or target.is_complex or target is DType.bool
]


def items(array: Any) -> list[Any]:
    return [one.item() for one in array]


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", ALL, ids=str)
def test_what_is_measured_equals_fractions_for_every_pair(source: DType) -> None:
    before = data(source)
    for target in [target for one, target in PAIRS if one is source]:
        after = convert(before, source, target)
        got = measure(before, after, source, target)
        pairs = list(zip(items(before), items(after), strict=True))
        want, relatives = expected(pairs, str(target))
        where = f"{source} to {target}"
        assert {name: getattr(got, name) for name in want} == want, where
        largest = max(relatives, default=Fraction(0))
        if str(source) in COMPLEX:
            # hypot, hypot and a quotient: documented to be within 4 ulps
            assert abs(Fraction(got.relative) ** 2 - largest) <= 8 * largest / 2**52, where
        else:
            assert got.relative == root(largest), where
        if got.worst is None:
            assert not largest, where
        else:
            assert got.worst in pairs
            close = abs(relative(*got.worst) - largest)
            assert close <= largest * Fraction(1, 2**49), where


def root(square: Fraction) -> Fraction:
    """The root, exact since both are squares, rounded to float64."""
    exact = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    assert exact**2 == square
    return nearest(exact)


def nearest(exact: Fraction) -> Any:
    try:
        return Fraction(float(exact))
    except OverflowError:
        return math.inf


def test_every_dtype_is_among_them() -> None:
    assert set(ALL) == set(DType)


@pytest.mark.parametrize(
    ("source", "target"),
    [("int64", "bfloat16"), ("float32", "int8"), ("complex128", "complex64"), ("int8", "int64")],
)
def test_blocks_and_layouts_make_no_difference(
    monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    dtypes = DType(source), DType(target)
    before = data(dtypes[0])
    before = before[: before.size // 6 * 6]
    whole = measure(before, convert(before, *dtypes), *dtypes)
    assert whole.elements == before.size
    monkeypatch.setattr(double_double, "BLOCK", 7)
    for shaped in (before, before.reshape(6, -1), before.reshape(2, 3, -1).transpose(2, 0, 1)):
        again = measure(shaped, convert(shaped, *dtypes), *dtypes)
        assert facts(again) == facts(whole)


def facts(found: Measured) -> Any:
    """All but which of the worst elements is named."""
    return dataclasses.replace(found, worst=None)


def test_nothing_and_one_number() -> None:
    both = DType.float64, DType.float16
    assert measure(np.zeros((0, 3)), np.zeros((0, 3), np.float16), *both) == Measured(0)
    got = measure(np.array(2049.0), np.array(2048, np.float16), *both)
    assert got == Measured(1, 1, relative=1 / 2049, ulps=0.5, worst=(2049.0, 2048.0))
