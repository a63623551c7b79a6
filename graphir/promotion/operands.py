"""Operands as promotion sees them: a dtype, a rank and, where known, a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from graphir.dtypes import DType
from graphir.promotion.scalars import WEAK, survives


class Typed(Protocol):
    """What promotion needs of an operand: its dtype and rank. TensorType and Operand have them."""

    @property
    def dtype(self) -> DType:
        """Its dtype."""
        ...

    @property
    def rank(self) -> int:
        """The number of its axes."""
        ...


class Operand(NamedTuple):
    """An operand by its dtype alone; a bare dtype counts as an array of one axis.

    `value` is the Python scalar that a 0-d operand is known to be, else None.
    """

    dtype: DType
    rank: int = 1
    value: bool | int | float | complex | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """A shape of this rank, of one element."""
        return (1,) * self.rank

    @property
    def size(self) -> int:
        """One element."""
        return 1


class Number(NamedTuple):
    """A Python scalar among operands, which counts by its type and value."""

    value: bool | int | float | complex

    @property
    def dtype(self) -> DType:
        """The weak dtype of its type; of a bool, bool."""
        return WEAK[type(self.value)]

    @property
    def rank(self) -> int:
        """It has no axis."""
        return 0


class Place(NamedTuple):
    """Where a literal stands: `at` among the operands of an op that promote together, in order.

    `computed` says that an op computed the first operand, so a 0-d one is a NumPy scalar.
    """

    operands: Sequence[Typed] = ()
    at: int = 0
    op: str = ""
    computed: bool = False

    @property
    def others(self) -> list[Typed]:
        """The operands beside it, Numbers among them."""
        return [operand for i, operand in enumerate(self.operands) if i != self.at]

    @property
    def partners(self) -> list[Typed]:
        """The operands that are no literals."""
        return [operand for operand in self.operands if not isinstance(operand, Number)]


ALONE = Place()
"""The place of a literal with nothing beside it."""


def operand_of(operand: Any) -> Typed:
    """What an operand counts as.

    NumPy scalars are strong: np.float64 is a float and np.generic is looked at first.
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
    """The operands, NumPy's scalars and arrays by the dtype that `array` gives them.

    `array` takes their own dtype, the tensors among the operands, and the array as `value`.
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
    """What an operand loses in a dtype: its value, where that is known, else the simplest one."""
    value = getattr(operand, "value", None)
    if value is None or isinstance(value, bool):
        return operand.dtype.witness(dtype)
    return None if survives(value, dtype) else value


def smallest_holding(dtypes: Sequence[DType]) -> DType | None:
    """The smallest dtype that has every value of these."""
    for dtype in sorted(filter(_usual, DType), key=lambda dtype: dtype.bits):
        if all(each.exact_in(dtype) for each in dtypes):
            return dtype
    return None


def instead_of(dtype: DType, among: Iterable[DType]) -> DType | None:
    """The dtype to take instead of one: the smallest that has all its values, else one as wide."""
    wide = [candidate for candidate in among if _usual(candidate) and candidate.bits >= dtype.bits]
    return min(
        wide, key=lambda candidate: (not dtype.exact_in(candidate), candidate.bits), default=None
    )


def _usual(dtype: DType) -> bool:
    return dtype.storage.name == str(dtype) and not dtype.narrow
