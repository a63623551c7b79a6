"""The dtype budget: nothing wider than these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from graphir.dtypes import DType
from graphir.errors import GraphError


def limit(dtype: DType) -> DType:
    """A dtype as a limit; GraphError for bool and weak dtypes, which have no width."""
    if dtype.family == "bool" or dtype.weak:
        raise GraphError(f"{dtype} has no width to keep to", fix="take int32, float32 or the like")
    return dtype


@cache
def too_wide(limits: tuple[DType, ...]) -> frozenset[DType]:
    """The dtypes that have more bits than a limit on them.

    int and uint limit both; float limits floats and the parts of complex numbers; complex limits
    complex numbers alone.
    """
    return frozenset(dtype for dtype in DType for most in limits if _exceeds(dtype, most))


def _exceeds(dtype: DType, most: DType) -> bool:
    if most.is_complex:
        return dtype.is_complex and dtype.bits > most.bits
    return family(dtype) == family(most) and dtype.part.bits > most.bits


def family(dtype: DType) -> str:
    """Integers of both signs are one family, floats and complex numbers another."""
    return {"int": "integer", "uint": "integer", "complex": "float"}.get(dtype.family, dtype.family)


def limits_on(dtype: DType, limits: Sequence[DType]) -> list[DType]:
    """Those of the limits that a dtype exceeds."""
    return [most for most in limits if _exceeds(dtype, most)]


def within(dtype: DType, limits: tuple[DType, ...]) -> DType | None:
    """A dtype that keeps to the limits, else the widest of its kind that does, if there is one."""
    wide = too_wide(limits)
    if dtype not in wide:
        return dtype
    fitting = [each for each in DType if each.family == dtype.family and each not in wide]
    usual = [each for each in fitting if each in limits or each.storage.name == str(each)]
    return max(usual, key=lambda each: (each in limits, each.bits), default=None)
