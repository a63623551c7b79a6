"""The rules of JAX in 2020, before it had weak types."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from typing import Any

from graphir.dtypes import DType
from graphir.promotion.jax import INTS, JAX_LATTICE, Jax
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import Operand, Typed
from graphir.promotion.rules import Family
from graphir.promotion.scalars import identity_key


class Jax2020(Jax):
    """The table of 2020, before weak types: 64-bit unsigned with signed is float64.

    Operands join one after the other, which is not associative. A Python scalar counts where its
    kind is higher than those of all arrays, and then as int64, float64 or complex128. Functions of
    floats take all integers as float64. Sources: jax/dtypes.py (result_type) and
    jax/numpy/lax_numpy.py (_to_inexact_dtype) of 2020.
    """

    of_numbers = True
    inexact = dict.fromkeys((DType.bool, *INTS), DType.float64)

    def cell(self, value: Any, op: str) -> Hashable:
        """The interval between limits of dtypes in which a number lies; each exponent by itself."""
        return identity_key(value) if op == "pow" else LibraryRules.cell(self, value, op)

    def common(self, operands: Sequence[Typed]) -> DType:
        """The join of the arrays, and of the scalars whose kind is higher; never weak."""
        arrays = [operand for operand in operands if not operand.dtype.weak]
        highest = max((_kind(operand.dtype) for operand in arrays), default=())
        scalars = [
            Operand(self.concrete_dtype(operand.dtype), operand.rank)
            for operand in operands
            if operand.dtype.weak and _kind(operand.dtype) > highest
        ]
        return super().common([*arrays, *scalars])

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """One after the other; what would be weak today has 64 bits."""
        return reduce(lambda a, b: self.concrete_dtype(JAX_LATTICE.join(a, b)), dtypes)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """As today, but never weak."""
        return self.concrete_dtype(super().family_dtype(family, dtype, op))


def _kind(dtype: DType) -> tuple[bool, ...]:
    """Greater for complex numbers than for floats, integers and bool."""
    return dtype.is_complex, dtype.is_float, dtype.is_integer


JAX_2020 = Jax2020(
    "jax_2020",
    "jax.numpy before weak types; not associative.",
    source="JAX documentation of 2020, Type promotion semantics",
    dtypes=[d for d in JAX_LATTICE if not d.weak and not d.narrow],
)
