"""The rules of NumPy before 2.0, which read the values of 0-d arrays and Python scalars.

Sources, as of 1.26: numpy/core/src/multiarray/convert_datatype.c (min_scalar_type_num,
should_use_min_scalar, promote_types, can_cast_scalar_to); the loop search of
numpy/core/src/umath/ufunc_type_resolution.c; NEP 50, "Current status". Measured on 1.26.4
(tests/golden/numpy_legacy.json).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.library import COMPLEX, SIGNED, UNSIGNED, by_op
from graphir.promotion.numpy_ import (
    BINARY_FLOATS,
    DTYPES,
    FACTS,
    FLOATS,
    LOGICAL,
    OF_ARRAYS,
    REALS,
    Numpy,
)
from graphir.promotion.operands import ALONE, Operand, Place, Typed

_INTEGERS = tuple(dtype for pair in zip(SIGNED, UNSIGNED, strict=True) for dtype in pair)
_LOOPS = {
    "pow": (*_INTEGERS, *REALS, *COMPLEX),
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), (*_INTEGERS, *REALS)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (DType.bool, *_INTEGERS)),
    **dict.fromkeys(("left_shift", "right_shift"), _INTEGERS),
    **dict.fromkeys(BINARY_FLOATS, REALS),
}
"""The loops of ops that run the first loop to which all operands cast, by the loops' dtypes."""


class Least(NamedTuple):
    """The dtype for which an operand counts.

    `small` marks an unsigned value that fits the signed dtype.
    """

    dtype: DType
    small: bool = False

    def beside(self, other: DType) -> DType:
        """Return the dtype beside `other`: signed if small and `other` is signed or inexact."""
        if self.small and other.family not in ("bool", "uint"):
            return SIGNED[UNSIGNED.index(self.dtype)]
        return self.dtype


class NumpyLegacy(Numpy):
    """NumPy 1: a 0-d operand counts by its value beside an n-d one of its category or above.

    Categories are bool, integers, and floats with complex numbers. A value counts as the smallest
    dtype whose range holds it, whatever its precision. A literal has rank 0 and dtype bool, int64
    (uint64 from 2**63 on), float64 or complex128; it widens its partner if it does not fit: `x_i8 +
    300` is int16. If the value of a 0-d operand is unknown, the result dtype must be the same for
    every possible value.
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    library = "NumPy 1"
    of_numbers = False  # no dtype is weak
    by_value = True
    scalar_exponents = True
    has_idle_bounds = False  # clip omits bounds only since NumPy 2.1
    exceptions = by_op({**FACTS, "floor ceil trunc": FLOATS})

    def operands(self, values: Sequence[Any]) -> list[Typed]:
        """Return the operands; the type `int` is a 0-d int64 of unknown value."""
        return [
            Operand(operand.dtype, 0)
            if operand.dtype.weak and isinstance(operand, Operand)
            else operand
            for operand in super().operands(values)
        ]

    def _strong(self, operands: Sequence[Typed]) -> Sequence[Typed]:
        """Return the operands, with the 64-bit dtype instead of a weak dtype."""
        if not any(operand.dtype.weak for operand in operands):
            return operands
        return [
            Operand(self.concrete_dtype(operand.dtype), operand.rank, _value(operand))
            if operand.dtype.weak
            else operand
            for operand in operands
        ]

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return a left-to-right fold of pairs if values count, else NumPy 2's join of all."""
        operands = self._strong(operands)
        if not _values_count(operands):
            return super().common(operands)
        return self._unanimous(operands, self._folds)

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join; for the ops of `_LOOPS`, the first loop to which all operands cast."""
        operands = self._strong(operands)
        if op in _LOOPS:
            return self._unanimous(operands, partial(self._loops, op))
        if op == "divide" and all(operand.dtype in FLOATS for operand in operands):
            return DType.float64
        return super().meeting(_as_arrays(operands) if op in OF_ARRAYS | LOGICAL else operands, op)

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return NumPy 2's answer.

        Integers with an unknown value count by dtype, which is equally exact.
        """
        operands = self._strong(operands)
        integers = all(operand.dtype.is_integer for operand in operands)
        no_value = any(not operand.rank and _value(operand) is None for operand in operands)
        return super().comparison_dtypes(
            _as_arrays(operands) if integers and no_value else operands, op
        )

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return True for the exponent 2 or 2.0 of a bool base, else the value itself."""
        squares = self.shortcut(value, place) and place.operands[0].dtype is DType.bool
        return True if squares else value

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the literal's own dtype, or the base's dtype for an exponent with a short cut.

        Whether the literal gives way to its partners depends on its value, which `common` reads.
        The short cut applies to n-d bases and 0-d arrays (fast_scalar_power in number.c). A NumPy
        scalar has no short cut: np.float32(2) ** 0.5 is float64 in NumPy 1. A 0-d value that an op
        computed is a scalar, and so is every 0-d bool; other 0-d inputs are arrays.
        """
        return place.operands[0].dtype if self.shortcut(value, place) else self.own(value)

    def shortcut(self, value: Any, place: Place) -> bool:
        """Whether `**` replaces this exponent by a function of x, computed in the dtype of x."""
        if place.op != "pow" or not place.at or isinstance(value, (bool, complex)):
            return False
        base, rank = place.operands[0].dtype, place.operands[0].rank
        if not rank and (place.is_result or base is DType.bool):
            return False
        if base.is_inexact:
            return value in (-1, 0, 0.5, 1, 2)
        return (base is DType.bool or isinstance(value, int)) and value == 2

    def _unanimous(
        self,
        operands: Sequence[Typed],
        answers: Callable[[Sequence[Sequence[Least]]], Iterable[DType]],
    ) -> DType:
        """Return the one dtype that holds for all known and possible values of the operands.

        The method raises PromotionError if possible values give different dtypes.
        """
        for operand in operands:
            self.supported(operand.dtype)
        count = _values_count(operands)
        cases = [_least(each) if count else [Least(each.dtype)] for each in operands]
        answer_set = dict.fromkeys(answers(cases))
        if len(answer_set) == 1:
            return next(iter(answer_set))
        open_dtypes = [each.dtype for each in operands if not each.rank and _value(each) is None]
        raise PromotionError(
            f"under {self.name!r} the dtype here depends on the value of the 0-d operand of "
            f"{' and '.join(map(str, open_dtypes))}, which is not known before the graph runs: "
            f"it may be {' or '.join(map(str, answer_set))}",
            fix=".cast(...) that operand to the dtype of the other, make it a constant, or give it "
            "an axis",
        )

    def _folds(self, cases: Sequence[Sequence[Least]]) -> Iterable[DType]:
        """Return the joins of left-to-right folds; a join is small if both of its operands are."""
        joins = dict.fromkeys(cases[0])
        for case in cases[1:]:
            joins = dict.fromkeys(self._pair(answer, least) for answer in joins for least in case)
        return [answer.dtype for answer in joins]

    def _pair(self, answer: Least, other: Least) -> Least:
        both = other.beside(answer.dtype), answer.beside(other.dtype)
        return Least(self.promote(*both), other.small and answer.small)

    def _loops(self, op: str, cases: Sequence[Sequence[Least]]) -> Iterable[DType]:
        """Yield the first loop to which all operands cast, else the join, which the op refuses."""
        for operands in product(*cases):
            fitting = (
                loop
                for loop in _LOOPS[op]
                if all(self.promote(operand.beside(loop), loop) is loop for operand in operands)
            )
            yield next(fitting, None) or self.promote(*(operand.dtype for operand in operands))


def _category(operand: Typed) -> int:
    """Return the category: 0 for bool, 1 for integers, 2 for floats and complex numbers."""
    return 0 if operand.dtype is DType.bool else 1 if operand.dtype.is_integer else 2


def _values_count(operands: Sequence[Typed]) -> bool:
    """Whether the values of 0-d operands count.

    They count if some n-d operand has at least the category of every 0-d operand.
    """
    arrays = [_category(operand) for operand in operands if operand.rank]
    scalars = [_category(operand) for operand in operands if not operand.rank]
    return bool(arrays and scalars) and max(arrays) >= max(scalars)


def _as_arrays(operands: Sequence[Typed]) -> list[Operand]:
    return [Operand(operand.dtype) for operand in operands]


def _value(operand: Typed) -> Any:
    return getattr(operand, "value", None)


_EDGES = (
    *(0, 128, 256, 2**15, 2**16, 2**31, 2**32, 2**63),
    *(-1, -129, -(2**15) - 1, -(2**31) - 1),
)
"""One value for each Least for which an integer may count."""


def _least(operand: Typed) -> list[Least]:
    """Return the possible Leasts of an operand.

    An n-d operand has the Least of its dtype, and a 0-d operand the Least of its value. An unknown
    value has the Leasts of all possible values.
    """
    dtype, value = operand.dtype, _value(operand)
    if operand.rank:
        return [Least(dtype)]
    if value is not None:
        return [least(dtype, value)]
    if dtype.is_integer:
        return [least(dtype, edge) for edge in _EDGES if dtype.min <= edge <= dtype.max]
    return [least(dtype, edge) for edge in (0.0, 65000.0, 1e39)]


def least(dtype: DType, value: Any) -> Least:
    """Return np.min_scalar_type of a 0-d value: the smallest dtype of its kind that holds it."""
    if dtype.is_integer and value < 0:
        return Least(next(each for each in SIGNED if value >= each.min))
    if dtype.is_integer:
        unsigned = next(each for each in UNSIGNED if value <= each.max)
        return Least(unsigned, value <= unsigned.max // 2)
    if dtype in (DType.float32, DType.float64):
        if abs(value) < 65000 or not math.isfinite(value):
            return Least(DType.float16)
        return Least(DType.float32 if abs(value) < 3.4e38 else dtype)
    if dtype is DType.complex128 and abs(value.real) < 3.4e38 and abs(value.imag) < 3.4e38:
        return Least(
            DType.complex64
        )  # infinities and NaN stay complex128; a float counts as float16
    return Least(dtype)


NUMPY_LEGACY = NumpyLegacy(
    "numpy_legacy",
    "NumPy 1: 0-d arrays and Python scalars count by their values.",
    source="numpy/core/src/multiarray/convert_datatype.c of 1.26; NEP 50",
    dtypes=DTYPES,
)
