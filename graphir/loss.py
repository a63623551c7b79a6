"""What a conversion between two dtypes can lose, kind by kind, from the facts of both."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from graphir.conversions import convert
from graphir.dtypes import DType, Float
from graphir.promotion.scalars import WEAK, scalar, survives

LossKind: TypeAlias = Literal["range", "sign", "precision", "underflow", "special"]
"""Too great (inf, NaN, saturated, wrapped); negative; rounded; too small (0); -0.0, inf or NaN."""

LOSS_KINDS: tuple[LossKind, ...] = ("range", "sign", "precision", "underflow", "special")


class Loss(NamedTuple):
    """What a conversion can lose: `str()` is the phrase, empty kinds are an exact conversion.

    `witness` is the simplest value that does not survive and `becomes` what is made of it; `bits`
    counts the significant bits that values lose at most; `beyond` is the least positive value that
    is too great, and `beyond_becomes` what is made of that.
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
        """The fields as JSON has them, values as text."""
        values = {
            name: None if (value := getattr(self, name)) is None else str(value)
            for name in ("witness", "becomes", "beyond", "beyond_becomes")
        }
        return {"kinds": list(self.kinds), "bits": self.bits, **values}


EXACT = Loss()


@cache
def loss(source: DType, target: DType) -> Loss:
    """What conversions from one dtype to another can lose."""
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


# By type, since 1, 1.0 and True are equal; -0.0 is kept or lost where 0.0 is.
@lru_cache(maxsize=1 << 14, typed=True)
def literal_loss(value: complex, target: DType) -> Loss:
    """What a known number loses as a value of a dtype."""
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
    """The least positive value of `a` that is too great for `b`, which rounds; None for none."""
    if b.format is None:
        limit = Fraction(b.max) + 1
    else:
        top = Fraction(b.max)
        # A tie goes to the even of the two, which "fn" formats have as their greatest value.
        limit = top + _ulp(top, b.format) / 2
    return _least_of(a, limit, above=b.format is not None and b.format.specials == "fn")


def _least_of(a: DType, limit: Fraction, above: bool) -> int | float | None:
    """The least value of `a` at a positive limit or above it; None if there is none."""
    step = _ulp(limit, a.format) if a.format else Fraction(1)
    steps = limit // step + 1 if above else -(-limit // step)
    value = steps * step
    if value > Fraction(a.max):
        return None
    return float(value) if a.format else int(value)


def _ulp(x: Fraction, f: Float) -> Fraction:
    """The distance between neighbours of a format in the binade of x."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > x
    return max(Fraction(2) ** (exponent - f.mantissa), Fraction(f.least))


def _bits(a: DType, b: DType) -> int:
    """How many significant bits fewer `b` has for what is in its range."""
    if b.format is None:
        return 0
    source_bits = a.precision if a.format else min(a.precision, int(b.max).bit_length())
    return max(source_bits - b.precision, 0)


def _fractions(a: DType, b: DType) -> bool:
    return a.format is not None and b.format is None


def _least(dtype: DType) -> float:
    """The least positive value."""
    return dtype.format.least if dtype.format else 1.0


def _converted_value(value: complex, source: DType, target: DType) -> complex | None:
    """What is made of a value of a dtype, where it can be converted at all."""
    if source.is_complex and target.family not in ("bool", "complex"):
        return None
    if source.format and isinstance(value, int):
        value = float(value)
    result = convert(scalar(value, source), source, target)
    return result.item() if target.storage.kind in "biufc" else float(result)


def _brief(number: complex | None) -> str:
    """A number in at most a dozen characters."""
    text = str(number)
    return text if len(text) <= 12 or not isinstance(number, (int, float)) else f"{number:.9g}"


def _negative(number: complex | None) -> bool:
    return isinstance(number, (int, float)) and number < 0
