"""What a row of deviations says, and the conditions under which a library may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from graphir import DType
from graphir.conversions import convert
from tests.peers.graphs import (
    ARITHMETIC,
    COMPARISONS,
    MOVES,
    Case,
    Conversion,
    Library,
    Program,
    Run,
    Step,
)

EXTREMES = ("maximum", "minimum")
COMPUTING = (*ARITHMETIC, *COMPARISONS, *EXTREMES, "negative", "abs", "where", "cast")
ANY = (*COMPUTING, *MOVES)


class Deviation(NamedTuple):
    """What a library does otherwise than graphir, and why; of which ops, and where.

    `where` gives the elements of a result that may differ; or, of what one side refuses, whether
    it may. Then an example: steps on inputs, and what comes of the last, ours and theirs: values,
    a dtype, or None where it is refused. "jitted" are all libraries that compile, when they do.
    `here` says whether it holds on this machine and in this version.
    """

    what: str
    source: str
    libraries: str
    ops: tuple[str, ...]
    where: Callable[[Case], Any]
    inputs: tuple[tuple[DType, Any], ...]
    steps: tuple[Step, ...]
    ours: Any
    theirs: Any
    here: bool = True

    @property
    def names(self) -> list[str]:
        """The rule sets of its libraries."""
        return ["jax", "jax_x32"] if self.libraries == "jitted" else self.libraries.split()

    def explains(self, case: Case) -> Any:
        names = {case.library.rules.name, "jitted" if case.jitted else ""}
        refused = [one is None for one in (self.ours, self.theirs)]
        mine = case.op in self.ops and names & {*self.libraries.split()}
        if mine and refused == [dtype is None for dtype in case.dtypes]:
            return self.where(case)
        return False

    def example(self, library: Library) -> Case:
        """The last step of the example as it was run."""
        inputs = [(dtype, np.array(x).astype(dtype.storage)) for dtype, x in self.inputs]
        run = Run(Program(tuple(inputs), self.steps), library)
        return list(run.jitted())[-1] if self.libraries == "jitted" else run.cases[-1]


def explained(rows: Sequence[Deviation]) -> Callable[[Case], Any]:
    """What gives the elements of a result that some row explains.

    What is compiled is not seen in between: all of it, where a row explains anything on the way.
    """

    def one(case: Case) -> Any:
        return reduce(np.logical_or, [row.explains(case) for row in rows])

    def found(case: Case) -> Any:
        if not case.jitted:
            return one(case)
        return any(np.any(one(step)) for step in case.ancestors() if step.op != "input")

    return found


# -- conditions


def over(case: Case, test: Callable[[Conversion], Any]) -> Any:
    """Where an operand passes a test; of movement, whether one does anywhere."""
    found = [test(one) for one in case.conversions]
    if case.op in MOVES:
        return any(np.any(one) for one in found)
    return reduce(np.logical_or, found, False)


def parts(x: Any) -> Any:
    """Numbers as float64, the two parts of complex ones on a last axis."""
    both = np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x[..., None]
    return both.astype(np.float64)


def part(case: Case, test: Callable[[Any], Any]) -> Any:
    """Where a part of an operand passes a test, if it is computed with complex numbers."""
    return over(case, lambda one: one.target.is_complex and test(parts(one.after)).any(-1))


def tiny(x: Any) -> Any:
    """Where numbers are subnormal in float32, or in float64 if they are of that."""
    wide, size = x.dtype in (np.float64, np.complex128), np.abs(parts(x))
    least = np.finfo(np.float64 if wide else np.float32).smallest_normal
    return ((size > 0) & (size < least)).any(-1)


def flushed(case: Case) -> Any:
    """Where an operand or the result is subnormal."""
    result = tiny(case.values[0])
    operands = over(case, lambda one: tiny(one.before) | tiny(one.after))
    return operands | (np.any(result) if case.op in MOVES else result)


def out_of_range(case: Case) -> Any:
    """Where a float that is cast to an integer has no place there."""
    (one,) = case.conversions
    if not (one.source.is_float and one.target.is_integer):
        return False
    whole = np.trunc(one.before.astype(np.float64))
    return ~((whole >= one.target.min) & (whole < 2.0**one.target.precision))


def through_float32(one: Conversion) -> Any:
    """Where it matters that an operand passes through float32 on its way to a smaller float."""
    if one.source.is_complex or not one.target.is_float or one.target.bits >= 32:
        return False
    single = convert(one.before, one.source, DType.float32)
    found = parts(convert(single, DType.float32, one.target)), parts(one.after)
    return ~(np.equal(*found) | (np.isnan(found[0]) & np.isnan(found[1]))).all(-1)


def made_nan(dtype: DType) -> Callable[[Case], Any]:
    """Where a number, or a product of numbers, has become NaN in a float dtype."""

    def lost(one: Conversion) -> Any:
        if one.target is not dtype or one.source.is_complex:
            return False
        return np.isnan(parts(one.after)).any(-1) & ~np.isnan(parts(one.before)).any(-1)

    def where(case: Case) -> Any:
        if case.op != "multiply" or case.dtypes[0] is not dtype:
            return over(case, lost)
        operands = over(case, lambda one: np.isnan(parts(one.before)).any(-1))
        return np.isnan(parts(case.values[0])).any(-1) & ~operands

    return where


def inexact_half(one: Conversion) -> Any:
    """Where an operand is rounded to a half."""
    halves = (DType.float16, DType.bfloat16)
    return one.target in halves and (parts(one.before) != parts(one.after)).any(-1)


def equal_numbers(case: Case) -> Any:
    """Where only the signs of zeros differ."""
    ours, theirs = map(parts, case.values)
    return ((ours == theirs) | (np.isnan(ours) & np.isnan(theirs))).all(-1)


def multiplied_by_1(case: Case) -> Any:
    """Where complex numbers differ in signs of zeros, or operands are not finite."""
    infinite = part(case, lambda x: ~np.isfinite(x))
    return infinite | (case.dtypes[0].is_complex and equal_numbers(case))


def near(case: Case) -> Any:
    """Where complex numbers differ by no more than roundings of their products, or overflow."""
    if not any(one.source.is_complex or one.target.is_complex for one in case.conversions):
        return False
    ours, theirs = (x.astype(np.complex128) for x in case.values)
    sizes = [abs(one.after.astype(np.complex128)) for one in case.conversions]
    allowed = 2 * np.finfo(case.values[0].dtype).eps * reduce(np.multiply, sizes)
    return ~np.isfinite(ours) | ~np.isfinite(theirs) | (abs(ours - theirs) <= allowed)


def given(test: Callable[[Any], bool]) -> Callable[[Case], bool]:
    """Whether an operand, a dtype or a literal, passes a test."""
    return lambda case: any(map(test, case.given))


def with_complex(case: Case) -> bool:
    """Whether an operand is complex, a literal or not."""
    return any(isinstance(x, complex) or getattr(x, "is_complex", False) for x in case.given)


def misfits(case: Case) -> bool:
    """Whether an int is out of range of the integers that the library makes of it."""
    dtype = case.dtypes[1]
    ints = [x for x in case.given if type(x) is int]
    return bool(dtype and dtype.is_integer) and any(not dtype.min <= x <= dtype.max for x in ints)


def number_beside_0d(case: Case) -> bool:
    """Whether a 0-d tensor is beside an int from 2**63 on, or one that mixes with no bool True."""
    dtypes = [x for x in case.given if isinstance(x, DType)]
    ranks = [x.results[0].rank for x in case.operands if isinstance(x, Case)]
    lonely = any(x.narrow or (x.family == "uint" and x.bits > 8) for x in dtypes)
    huge = any(type(x) is int and x >= 2**63 for x in case.given)
    return 0 in ranks and (huge or (lonely and any(type(x) is bool for x in case.given)))


def _inexact_steps(case: Case, names: tuple[str, ...]) -> list[Case]:
    return [
        one
        for one in case.ancestors()
        if one.op in names and one.dtypes[0] and one.dtypes[0].family in ("float", "complex")
    ]


def after(case: Case, later: tuple[str, ...], earlier: tuple[str, ...]) -> bool:
    """Whether a result depends on floats that come of some ops, and those on others."""
    found = [(one, x) for one in _inexact_steps(case, later) for x in one.ancestors()]
    return any(x is not one and x.op in earlier for one, x in found)


def literally(case: Case) -> bool:
    """Whether a result depends on arithmetic of floats with a literal."""
    steps = _inexact_steps(case, ARITHMETIC)
    return any(not isinstance(x, Case) for one in steps for x in one.operands)
