"""The decisions of a policy: on one cast, and on the width of a dtype."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from graphir.dtypes import DType
from graphir.errors import GraphError

Action: TypeAlias = Literal["allow", "warn", "forbid"]


class Verdict(NamedTuple):
    """The action for a cast, and the words of the policy that decided it."""

    action: Action
    why: tuple[str, ...]

    def __str__(self) -> str:
        verb = {"allow": "allowed", "warn": "warned of", "forbid": "forbidden"}[self.action]
        return f"{verb} by {', '.join(self.why)}"


def limit(dtype: DType) -> DType:
    """Return a dtype as a limit; raise GraphError for bool and weak dtypes, which have no width."""
    if dtype.family == "bool" or dtype.weak:
        raise GraphError(f"{dtype} has no width to keep to", fix="take int32, float32 or the like")
    return dtype


@cache
def too_wide(limits: tuple[DType, ...]) -> frozenset[DType]:
    """Return the dtypes that have more bits than an applicable limit.

    An int or uint limit applies to int and uint. A float limit applies to floats and to the parts
    of complex numbers. A complex limit applies to complex numbers alone.
    """
    return frozenset(dtype for dtype in DType for most in limits if _exceeds(dtype, most))


def _exceeds(dtype: DType, most: DType) -> bool:
    if most.is_complex:
        return dtype.is_complex and dtype.bits > most.bits
    return family(dtype) == family(most) and dtype.part.bits > most.bits


def family(dtype: DType) -> str:
    """Return the family for budgets: int and uint are "integer", float and complex "float"."""
    return {"int": "integer", "uint": "integer", "complex": "float"}.get(dtype.family, dtype.family)


def limits_on(dtype: DType, limits: Sequence[DType]) -> list[DType]:
    """Return the limits that a dtype exceeds."""
    return [most for most in limits if _exceeds(dtype, most)]


def within(dtype: DType, limits: tuple[DType, ...]) -> DType | None:
    """Return a dtype within the limits: itself, else the widest of its family, or None."""
    wide = too_wide(limits)
    if dtype not in wide:
        return dtype
    fitting = [each for each in DType if each.family == dtype.family and each not in wide]
    usual = [each for each in fitting if each in limits or each.storage.name == str(each)]
    return max(usual, key=lambda each: (each in limits, each.bits), default=None)
