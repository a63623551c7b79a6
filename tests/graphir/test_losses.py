"""What conversions can lose, against every value of every small dtype, in fractions."""

from __future__ import annotations

import bisect
import math
from fractions import Fraction
from typing import Any

import numpy as np

from graphir import DType
from graphir.conversions import convert
from graphir.loss import LOSS_KINDS, Loss, literal_loss, loss
from tests.support.tables import every

SMALL = [d for d in DType if d.bits <= 16]
TARGETS = [d for d in DType if not d.weak]


def values(dtype: DType) -> np.ndarray[Any, Any]:
    """Every value of a dtype of at most 16 bits, in its storage."""
    if dtype.family == "bool":
        return np.array([False, True])
    if dtype.is_integer:
        return np.arange(int(dtype.min), int(dtype.max) + 1).astype(dtype.storage)
    size = dtype.storage.itemsize
    patterns = np.arange(2**dtype.bits, dtype=np.uint8 if size == 1 else np.uint16)
    return patterns.view(dtype.storage)


def rounded_unbounded(x: Fraction, bits: int) -> Fraction:
    """To `bits` significant bits, ties to even, whatever the exponent."""
    if not x:
        return x
    exponent = 0
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - bits + 1)
    return round(x / step) * step


def too_great(x: Fraction, target: DType) -> bool:
    if target.format is None:
        return math.trunc(x) > target.max
    return rounded_unbounded(x, target.mantissa_bits + 1) > Fraction(target.max)


def expected(source: DType, target: DType) -> dict[str, Any]:
    exact = values(source)
    with np.errstate(all="ignore"):
        made = convert(exact, source, target).astype(np.complex128)
        numbers = exact.astype(np.float64)
        survived = (made == numbers) & (np.signbit(made.real) == np.signbit(numbers))
        survived |= np.isnan(made) & np.isnan(numbers)
    rising = np.unique(numbers[np.isfinite(numbers) & (numbers > 0)])
    first = bisect.bisect_left(rising, True, key=lambda x: too_great(Fraction(float(x)), target))
    beyond = Fraction(float(rising[first])) if first < len(rising) else None
    return {"exact": bool(survived.all()), "beyond": beyond}


@every("source", SMALL)
def test_losses_of_small_dtypes_are_those_of_their_values(source: DType) -> None:
    for target in TARGETS:
        found, wanted = loss(source, target), expected(source, target)
        assert found.exact == wanted["exact"], target
        told = None if found.beyond is None else Fraction(found.beyond)
        assert told == wanted["beyond"], target
        assert ("range" in found.kinds) >= (told is not None)


@every("source", DType)
def test_a_loss_agrees_with_the_witness(source: DType) -> None:
    for target in DType:
        agrees(source, target)


def agrees(source: DType, target: DType) -> None:
    found = loss(source, target)
    assert found.exact == source.exact_in(target) == (found.kinds == ())
    assert set(found.kinds) <= set(LOSS_KINDS)
    assert str(found) == "exact" if found.exact else str(found.witness) in str(found)
    assert found.bits >= 0
    if found.beyond is not None:
        assert "range" in found.kinds
        assert found.beyond > 0


@every(
    ("source", "target", "kinds", "text"),
    [
        ("int16", "float32", (), "exact"),
        ("int32", "bfloat16", ("precision",), "257 becomes 256.0, 23 bits fewer"),
        (
            *("int64", "float16", ("range", "precision")),
            "2049 becomes 2048.0, 5 bits fewer, 65520 becomes inf",
        ),
        (
            *("float32", "float16", ("range", "precision", "underflow")),
            "2049 becomes 2048.0, 13 bits fewer, 65520.0 becomes inf",
        ),
        ("int8", "uint8", ("sign",), "-1 becomes 255"),
        ("uint8", "int8", ("range",), "128 becomes -128"),
        ("int64", "int32", ("range",), "2147483648 becomes -2147483648"),
        ("float32", "int8", ("range", "precision"), "128 becomes 127"),
        ("int64", "float64", ("precision",), "9007199254740993 becomes 9007199254740992.0"),
        ("complex64", "complex128", (), "exact"),
    ],
)
def test_phrases(source: str, target: str, kinds: tuple[str, ...], text: str) -> None:
    found = loss(DType(source), DType(target))
    assert found.kinds == kinds
    assert str(found).startswith(text)


@every(
    ("number", "target", "kinds", "becomes"),
    [
        (2.5, "bfloat16", (), None),
        (2.2, "bfloat16", ("precision",), 2.203125),
        (1e-9, "float16", ("underflow",), 0.0),
        (1e9, "float16", ("range",), math.inf),
        (-1, "uint8", ("sign",), 255),
        (300, "uint8", ("range",), 44),
        (math.inf, "float8_e4m3fn", ("special",), None),
    ],
)
def test_a_number_loses_what_it_loses(
    number: float, target: str, kinds: tuple[str, ...], becomes: float | None
) -> None:
    found = literal_loss(number, DType(target))
    assert found.kinds == kinds
    if becomes is not None:
        assert found.becomes == becomes


def test_json_has_numbers_as_text() -> None:
    assert loss(DType.int64, DType.float16).to_json() == {
        "kinds": ["range", "precision"],
        "bits": 5,
        "witness": "2049",
        "becomes": "2048.0",
        "beyond": "65520",
        "beyond_becomes": "inf",
    }
    assert Loss().to_json()["witness"] is None
