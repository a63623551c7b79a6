"""Operands of type promotion: a dtype, a rank and, if known, a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from graphir.dtypes import DType, DTypeLike
from graphir.hints import ArrayOrNumber
from graphir.promotion.scalars import WEAK, survives

OperandLike: TypeAlias = "DTypeLike | ArrayOrNumber | Typed"
"""An argument of `promote`: a dtype, or what has one; a type of Python's numbers, or a number."""


class Typed(Protocol):
    """The protocol of an operand: a dtype and a rank. TensorType and Operand satisfy it."""

    @property
    def dtype(self) -> DType:
        """The operand's dtype."""
        ...

    @property
    def rank(self) -> int:
        """The operand's number of axes."""
        ...


class Operand(NamedTuple):
    """An operand of type promotion. A bare dtype counts as an array with one axis.

    `value` is the Python scalar that a 0-d operand equals, or None if the value is unknown.
    """

    dtype: DType
    rank: int = 1
    value: bool | int | float | complex | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return a shape of the operand's rank with one element."""
        return (1,) * self.rank

    @property
    def size(self) -> int:
        """Return 1, the number of elements of `shape`."""
        return 1


class Number(NamedTuple):
    """A Python scalar among operands. Its type and its value both count."""

    value: bool | int | float | complex

    @property
    def dtype(self) -> DType:
        """Return the weak dtype of the scalar's Python type, or bool for a bool."""
        return WEAK[type(self.value)]

    @property
    def rank(self) -> int:
        """Return 0: a scalar has no axis."""
        return 0


class Place(NamedTuple):
    """The position of a literal: index `at` among the operands of an op that promote together.

    `operands` are in the order of the op's signature. `is_result` says that an op computed the
    first operand; a 0-d first operand is then a NumPy scalar.
    """

    operands: Sequence[Typed] = ()
    at: int = 0
    op: str = ""
    is_result: bool = False

    @property
    def others(self) -> list[Typed]:
        """Return every operand but the literal itself; other literals (Numbers) are among them."""
        return [operand for i, operand in enumerate(self.operands) if i != self.at]

    @property
    def partners(self) -> list[Typed]:
        """Return the operands that are not literals."""
        return [operand for operand in self.operands if not isinstance(operand, Number)]


ALONE = Place()
"""The place of a literal without partners."""


def operand_of(operand: Any) -> Typed:
    """Return the operand that a dtype, array, scalar, Python type or typed object counts as.

    NumPy scalars are strong. np.float64 is a subclass of float, so the test for np.generic comes
    before the test for Python scalars.
    """
    if isinstance(operand, DType):
        return Operand(operand)
    if isinstance(operand, (np.ndarray, np.generic)):
        array = cast("np.ndarray[Any, Any]", operand)
        value = None if array.ndim else array.item()
        return Operand(DType.from_numpy(array.dtype), array.ndim, value)
    if isinstance(operand, (bool, int, float, complex)):
        return Number(operand)
    if isinstance(operand, type) and operand in WEAK:
        return Operand(WEAK[operand], 0)
    type_ = getattr(operand, "operand", None) or getattr(operand, "type", operand)
    if isinstance(getattr(type_, "dtype", None), DType):
        return cast(Typed, type_)
    return Operand(DType(operand))


def beside_tensors(values: Sequence[Any], array: Callable[..., DType]) -> list[Typed]:
    """Return the operands, with NumPy scalars and arrays in the dtypes that `array` gives them.

    `array` is called with an array's own dtype, the tensors among the operands, and the array
    itself as the keyword argument `value`.
    """
    operands = [operand_of(value) for value in values]
    arrays = [i for i, value in enumerate(values) if isinstance(value, (np.ndarray, np.generic))]
    if not arrays:
        return operands
    others = [value for i, value in enumerate(operands) if i not in arrays]
    tensors = [value for value in others if not isinstance(value, Number)]
    for i in arrays:
        dtype = array(operands[i].dtype, tensors, value=values[i])
        if dtype is not operands[i].dtype:
            operands[i] = Operand(dtype, operands[i].rank)
    return operands


def witness(operand: Typed, dtype: DType) -> complex | None:
    """Return a value that an operand loses in a dtype, or None if it loses nothing.

    The witness is the operand's value if that is known, else the dtype's simplest witness.
    """
    value = getattr(operand, "value", None)
    if value is None or isinstance(value, bool):
        return operand.dtype.witness(dtype)
    return None if survives(value, dtype) else value


def smallest_holding(dtypes: Sequence[DType]) -> DType | None:
    """Return the smallest dtype that holds every value of all of `dtypes`, or None."""
    for dtype in sorted(filter(_usual, DType), key=lambda dtype: dtype.bits):
        if all(operand_dtype.exact_in(dtype) for operand_dtype in dtypes):
            return dtype
    return None


def instead_of(dtype: DType, among: Iterable[DType]) -> DType | None:
    """Return the best substitute for a dtype among candidates at least as wide, or None.

    The substitute is the smallest candidate that holds all values of the dtype, else the smallest
    candidate.
    """
    wide = [candidate for candidate in among if _usual(candidate) and candidate.bits >= dtype.bits]
    return min(
        wide, key=lambda candidate: (not dtype.exact_in(candidate), candidate.bits), default=None
    )


def _usual(dtype: DType) -> bool:
    return dtype.storage.name == str(dtype) and not dtype.narrow
