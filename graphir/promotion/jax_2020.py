"""The rules of JAX in 2020, before it had weak types."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from typing import Any

from graphir.dtypes import DType
from graphir.promotion.jax import INTS, JAX_LATTICE, Jax
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import Operand, Typed
from graphir.promotion.rules import Family
from graphir.promotion.scalars import identity_key


class Jax2020(Jax):
    """The promotion table of 2020, without weak types; a signed dtype with uint64 gives float64.

    Operands join from left to right, and this fold is not associative. A Python scalar takes part
    only if its kind is higher than the kind of every array; it then counts as int64, float64 or
    complex128. Functions of floats convert every integer dtype to float64. Sources: jax/dtypes.py
    (result_type) and jax/numpy/lax_numpy.py (_to_inexact_dtype) of 2020.
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    of_numbers = True
    inexact = dict.fromkeys((DType.bool, *INTS), DType.float64)

    def cell(self, value: Any, op: str) -> Hashable:
        """Return the interval between dtype limits that contains a number.

        Each exponent has a cell of its own.
        """
        return identity_key(value) if op == "pow" else LibraryRules.cell(self, value, op)

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the join of the arrays and of the scalars with a higher kind.

        The result is never weak.
        """
        arrays = [operand for operand in operands if not operand.dtype.weak]
        highest = max((_kind(operand.dtype) for operand in arrays), default=())
        scalars = [
            Operand(self.concrete_dtype(operand.dtype), operand.rank)
            for operand in operands
            if operand.dtype.weak and _kind(operand.dtype) > highest
        ]
        return super().common([*arrays, *scalars])

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Fold the dtypes from left to right; a join that is weak today has 64 bits."""
        return reduce(lambda a, b: self.concrete_dtype(JAX_LATTICE.join(a, b)), dtypes)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return today's dtype, with the default dtype for a weak one."""
        return self.concrete_dtype(super().family_dtype(family, dtype, op))


def _kind(dtype: DType) -> tuple[bool, ...]:
    """Sort key of a dtype: complex numbers, floats, integers, then bool, from highest to lowest."""
    return dtype.is_complex, dtype.is_float, dtype.is_integer


JAX_2020 = Jax2020(
    "jax_2020",
    "jax.numpy before weak types; not associative.",
    source="JAX documentation of 2020, Type promotion semantics",
    dtypes=[d for d in JAX_LATTICE if not d.weak and not d.narrow],
)
