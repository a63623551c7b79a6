"""The loss of a conversion between two dtypes, by kind, derived from the facts of both dtypes.

`loss` compares the ranges, spacings and special values of the two formats; it never enumerates
values. Its answer names the kinds of loss and a witness, the simplest value that does not survive.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from graphir.conversions import convert
from graphir.dtypes import DType, Float
from graphir.promotion.scalars import WEAK, scalar, survives

LossKind: TypeAlias = Literal["range", "sign", "precision", "underflow", "special"]
"""The kinds of loss.

"range": a value too great becomes inf or NaN, saturates or wraps. "sign": a negative value is lost.
"precision": a value is rounded. "underflow": a value too small becomes 0. "special": -0.0, an
infinity or NaN is lost.
"""

LOSS_KINDS: tuple[LossKind, ...] = ("range", "sign", "precision", "underflow", "special")


class Loss(NamedTuple):
    """The loss of a conversion, as data. `str()` is a phrase for reports.

    `kinds` is empty for an exact conversion. `witness` is the simplest value that does not survive,
    and `becomes` is its converted value. `bits` is the largest number of significant bits that a
    value loses. `beyond` is the least positive value that is too great for the target, and
    `beyond_becomes` is its converted value.
    """

    kinds: tuple[LossKind, ...] = ()
    witness: complex | None = None
    becomes: complex | None = None
    bits: int = 0
    beyond: int | float | None = None
    beyond_becomes: complex | None = None

    @property
    def exact(self) -> bool:
        """Whether every value survives."""
        return not self.kinds

    def __str__(self) -> str:
        if self.exact:
            return "exact"
        phrases = [f"{self.witness} becomes {self.becomes}"]
        if self.bits:
            phrases.append(f"{self.bits} bits fewer")
        if self.beyond is not None and self.beyond != self.witness:
            phrases.append(f"{_brief(self.beyond)} becomes {_brief(self.beyond_becomes)}")
        if "sign" in self.kinds and not _negative(self.witness):
            phrases.append("negative values are lost")
        return ", ".join(phrases)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object of the fields, with values as text."""
        values = {
            name: None if (value := getattr(self, name)) is None else str(value)
            for name in ("witness", "becomes", "beyond", "beyond_becomes")
        }
        return {"kinds": list(self.kinds), "bits": self.bits, **values}


EXACT = Loss()


@cache
def loss(source: DType, target: DType) -> Loss:
    """Return the loss that conversions from `source` to `target` can have, over all values."""
    witness = source.witness(target)
    if witness is None:
        return EXACT
    a, b = source.part, target.part
    beyond = _beyond(a, b)
    bits = _bits(a, b)
    losses: dict[LossKind, bool] = {
        "range": beyond is not None or a.min < b.min < 0,
        "sign": a.min < 0 <= b.min,
        "precision": bits > 0 or _fractions(a, b) or (source.is_complex > target.is_complex),
        "underflow": b.format is not None and _least(a) < b.format.least < 1,
    }
    kinds: tuple[LossKind, ...] = tuple(kind for kind, is_lost in losses.items() if is_lost)
    return Loss(
        kinds or ("special",),
        witness,
        _converted_value(witness, source, target),
        bits,
        beyond,
        None if beyond is None else _converted_value(beyond, a, b),
    )


def literal_loss(value: complex, target: DType) -> Loss:
    """Return the loss of one Python number in its conversion to a dtype."""
    if not value and not target.part.format and str(value) == "-0.0":
        return Loss(("sign",), value, 0)
    return _literal_loss(value, target)


# The cache key includes the type, because 1, 1.0 and True are equal. The cache may confuse -0.0
# with 0.0: `survives` compares numbers by ==, so each dtype gives both the same answer.
@lru_cache(maxsize=1 << 14, typed=True)
def _literal_loss(value: complex, target: DType) -> Loss:
    if survives(value, target):
        return EXACT
    result = _converted_value(value, WEAK[type(value)], target)
    return Loss((_kind_of(value, result, target),), value, result)


def _kind_of(value: complex, result: complex | None, target: DType) -> LossKind:
    if result is None:
        return "precision"
    if isinstance(value, complex):
        parts = (value.real, result.real), (value.imag, result.imag)
        kinds = {_kind_of(part, became, target.part) for part, became in parts if part != became}
        return next(kind for kind in LOSS_KINDS if kind in kinds)
    if value != value or value in (float("inf"), -float("inf")):
        return "special"
    if value < 0 <= target.min:
        return "sign"
    if abs(value) > target.max or result != result:
        return "range"
    return "underflow" if result == 0 != value and target.format else "precision"


def _beyond(a: DType, b: DType) -> int | float | None:
    """Return the least positive value of `a` that overflows in `b` after rounding, or None."""
    if b.format is None:
        limit = Fraction(b.max) + 1
    else:
        top = Fraction(b.max)
        # At half an ulp above the greatest value the tie goes to the even neighbour. In "fn"
        # formats the greatest value is even, so the tie does not overflow.
        limit = top + _ulp(top, b.format) / 2
    return _least_of(a, limit, above=b.format is not None and b.format.specials == "fn")


def _least_of(a: DType, limit: Fraction, above: bool) -> int | float | None:
    """Return the least value of `a` at or above a positive limit, or None.

    With `above` the value must exceed the limit.
    """
    step = _ulp(limit, a.format) if a.format else Fraction(1)
    steps = limit // step + 1 if above else -(-limit // step)
    value = steps * step
    if value > Fraction(a.max):
        return None
    return float(value) if a.format else int(value)


def _ulp(x: Fraction, f: Float) -> Fraction:
    """Return the distance between neighbouring values of a format in the binade of x."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > x
    return max(Fraction(2) ** (exponent - f.mantissa), Fraction(f.least))


def _bits(a: DType, b: DType) -> int:
    """Return how many significant bits fewer `b` has than `a`, for values in the range of `b`."""
    if b.format is None:
        return 0
    source_bits = a.precision if a.format else min(a.precision, int(b.max).bit_length())
    return max(source_bits - b.precision, 0)


def _fractions(a: DType, b: DType) -> bool:
    return a.format is not None and b.format is None


def _least(dtype: DType) -> float:
    """Return the least positive value of a dtype."""
    return dtype.format.least if dtype.format else 1.0


def _converted_value(value: complex, source: DType, target: DType) -> complex | None:
    """Return the converted value, or None for a conversion from complex to a real dtype."""
    if source.is_complex and target.family not in ("bool", "complex"):
        return None
    if source.format and isinstance(value, int):
        value = float(value)
    result = convert(scalar(value, source), source, target)
    return result.item() if target.storage.kind in "biufc" else float(result)


def _brief(number: complex | None) -> str:
    """Format a number in about a dozen characters."""
    text = str(number)
    return text if len(text) <= 12 or not isinstance(number, (int, float)) else f"{number:.9g}"


def _negative(number: complex | None) -> bool:
    return isinstance(number, (int, float)) and number < 0
