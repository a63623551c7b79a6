"""Random programs under each library's rules and in the library itself: dtypes and values.

Every intermediate has the same dtype and every value the same bits, but where `DEVIATIONS` says.
Each of its rows is asserted by itself, so that one which is no longer true fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings

from graphir import DType
from graphir.conversions import convert
from tests.evaluator import same
from tests.peers.graphs import (
    ARITHMETIC,
    COMPARISONS,
    LIBRARIES,
    Case,
    Library,
    Program,
    Run,
    Step,
    Value,
    differences,
    program,
)

pytestmark = pytest.mark.filterwarnings("ignore")
BOTH = (*ARITHMETIC, *COMPARISONS, "maximum", "minimum")
ANY = (*BOTH, "abs", "negative", "where", "cast", "concat", "stack", "broadcast_to", "reshape")
JAX = "jax jax_x32 jax_strict"
ALL = f"numpy array_api torch {JAX}"


class Deviation(NamedTuple):
    """What a library does otherwise than graphir: for which ops, where, why, and an example.

    `where` gives the elements of a result that may differ; or, of what one side refuses or has in
    another dtype, whether it may. The example is a step on inputs, and what comes of it, ours and
    theirs: values, a dtype, or None where it is refused.
    """

    libraries: str
    ops: tuple[str, ...]
    what: str
    source: str
    where: Callable[[Case], Any]
    inputs: tuple[tuple[str, Any], ...]
    step: Step
    ours: Any
    theirs: Any

    @property
    def of_values(self) -> bool:
        return isinstance(self.ours, list)


# -- conditions


def _over(case: Case, test: Callable[[Conversion], Any]) -> Any:
    """Where an operand passes a test; of movement, whether one does anywhere."""
    found = [test(one) for one in case.conversions]
    if case.op in MOVES:
        return any(np.any(one) for one in found)
    return reduce(np.logical_or, found, False)


def _parts(x: Any) -> Any:
    """Numbers as float64, the two parts of complex ones on a last axis."""
    both = np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x[..., None]
    return both.astype(np.float64)


def _part(case: Case, test: Callable[[Any], Any]) -> Any:
    """Where a part of an operand passes a test, if it is computed with complex numbers."""
    return _over(case, lambda one: one.target.is_complex and test(_parts(one.after)).any(-1))


def _tiny(x: Any) -> Any:
    """Where numbers are subnormal in float32, or in float64 if they are of that."""
    wide, size = x.dtype in (np.float64, np.complex128), np.abs(_parts(x))
    least = np.finfo(np.float64 if wide else np.float32).smallest_normal
    return ((size > 0) & (size < least)).any(-1)


def _flushed(case: Case) -> Any:
    result = _tiny(case.values[0])
    operands = _over(case, lambda one: _tiny(one.before) | _tiny(one.after))
    return operands | (np.any(result) if case.op in MOVES else result)


def _out_of_range(case: Case) -> Any:
    """Where a float that is cast to an integer has no place there."""
    (one,) = case.conversions
    if not (one.source.is_float and one.target.is_integer):
        return False
    whole = np.trunc(one.before.astype(np.float64))
    return ~((whole >= one.target.min) & (whole < 2.0**one.target.precision))


def _through_float32(one: Conversion) -> Any:
    """Where it matters that an operand passes through float32 on its way to a smaller float."""
    if one.source.is_complex or not one.target.is_float or one.target.bits >= 32:
        return False
    single = convert(one.before, one.source, DType.float32)
    found = _parts(convert(single, DType.float32, one.target)), _parts(one.after)
    return ~(np.equal(*found) | np.isnan(found).all(0)).all(-1)


def _lost(dtype: DType) -> Callable[[Conversion], Any]:
    """Where a number has become NaN in a dtype."""

    def test(one: Conversion) -> Any:
        if one.target is not dtype or one.source.is_complex:
            return False
        return np.isnan(_parts(one.after)).any(-1) & ~np.isnan(_parts(one.before)).any(-1)

    return test


def _inexact(one: Conversion) -> Any:
    return one.target in HALVES and (_parts(one.before) != _parts(one.after)).any(-1)


def _near(case: Case) -> Any:
    """Where complex numbers differ by no more than roundings of their products, or overflow."""
    if not any(one.source.is_complex or one.target.is_complex for one in case.conversions):
        return False
    ours, theirs = (x.astype(np.complex128) for x in case.values)
    sizes = [abs(one.after.astype(np.complex128)) for one in case.conversions]
    close = abs(ours - theirs) <= np.finfo(case.values[0].dtype).eps * reduce(np.multiply, sizes)
    return ~np.isfinite(ours) | ~np.isfinite(theirs) | close
