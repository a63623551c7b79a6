"""What a row of deviations says, and the conditions under which a library may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Graph, GraphirError, runtime
from graphir.conversions import convert
from tests.peers.graphs import OURS, Case, Conversion, Library, Run, applied
from tests.peers.steps import (
    ARITHMETIC,
    BITWISE,
    COMPARISONS,
    DIVISIONS,
    FUNCTIONS,
    MOVES,
    REDUCTIONS,
    ROWS,
    SHIFTS,
    Program,
    Step,
    Value,
)

EXTREMES = ("maximum", "minimum")
DIVISION = ("floor_divide", "remainder")
PRODUCTS = ("multiply", "abs", "square", "divide", "reciprocal", "sign", "pow", "sqrt")
SUMS = ("sum", "prod", "mean", "cumulative_sum", "cumulative_prod")
COMPUTING = (
    *(*ARITHMETIC, *DIVISIONS, "pow", *BITWISE, *SHIFTS, *COMPARISONS, *EXTREMES),
    *("negative", "positive", "abs", "bitwise_invert", "where", "clip", "cast"),
    *(*FUNCTIONS, *REDUCTIONS, *ROWS),
)
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
        names = {case.library.rules.base_name, "jitted" if case.jitted else ""}
        refused = [one is None for one in (self.ours, self.theirs)]
        mine = case.op in self.ops and names & {*self.libraries.split()}
        if mine and refused == [dtype is None for dtype in case.dtypes]:
            other = isinstance(self.ours, DType) and isinstance(self.theirs, DType)
            return self.where(case) if case.alike != other or None in case.dtypes else False
        return False

    def example(self, library: Library) -> Case:
        """The last step of the example as it was run, with the value of a side alone taken."""
        stored = library.rules.concrete_dtype
        inputs = [(dtype, np.array(x).astype(stored(dtype).storage)) for dtype, x in self.inputs]
        run = Run(Program(tuple(inputs), self.steps), library)
        if self.libraries == "jitted":
            return list(run.jitted())[-1]
        run.settle(run.cases[-1])
        return run.cases[-1]

    def ours_alone(self, name: str) -> tuple[DType | None, Any]:
        """The dtype and the value of the example under a rule set, without its library."""
        g = Graph(rules=name)
        known: list[Any] = [g.input(dtype, np.shape(x)) for dtype, x in self.inputs]
        arrays = [np.array(x).astype(g.concrete_dtype(dtype).storage) for dtype, x in self.inputs]
        try:
            for step in self.steps:
                operands = [known[x.place] if isinstance(x, Value) else x for x in step.operands]
                known.append(applied(step, operands, OURS))
            g.output(known[-1])
            return known[-1].dtype, runtime.interpret(g, *arrays)
        except GraphirError:
            return None, None


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
    """Where an operand passes a test; of movement and along rows, whether one does anywhere."""
    found = [test(one) for one in case.conversions]
    if case.op in (*MOVES, *REDUCTIONS, *ROWS):
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


def unfused(case: Case) -> Any:
    """Where the library's complex product has each product rounded, and its |x| is hypot."""
    x, *others = (one.after for one in case.conversions)
    if x.dtype.kind != "c":
        return False
    y = others[0] if others else x
    if case.op == "abs":
        plain = np.hypot(x.real.copy(), x.imag.copy())
    else:
        plain = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        plain.real = x.real * y.real - x.imag * y.imag
        plain.imag = x.real * y.imag + x.imag * y.real
    return equal_bits(case.values[1], plain)


def equal_bits(x: Any, y: Any) -> Any:
    """Where two arrays have the same numbers, signs of zeros among them, or both NaN."""
    x, y = parts(x), parts(y)
    alike = (x == y) & (np.signbit(x) == np.signbit(y))
    return (alike | (np.isnan(x) & np.isnan(y))).all(-1)


def near(case: Case) -> Any:
    """Where complex numbers differ by no more than roundings of their products, or overflow."""
    if not any(one.source.is_complex or one.target.is_complex for one in case.conversions):
        return False
    ours, theirs = (x.astype(np.complex128) for x in case.values)
    sizes = [abs(one.after.astype(np.complex128)) for one in case.conversions]
    allowed = 2 * np.finfo(case.values[0].dtype).eps * reduce(np.multiply, sizes)
    return ~np.isfinite(ours) | ~np.isfinite(theirs) | (abs(ours - theirs) <= allowed)


def close(ulps: float) -> Callable[[Case], Any]:
    """Where inexact results differ by so many roundings; complex ones as wholes, or overflowing."""

    def where(case: Case) -> Any:
        dtype = case.library.rules.concrete_dtype(case.dtypes[0])
        if not (dtype.is_float or dtype.is_complex):
            return False
        ours, theirs = (x.astype(np.complex128) for x in case.values)
        size = np.maximum(abs(ours), abs(theirs))
        eps = 2.0 ** (1 - dtype.part.precision)
        least = float(dtype.part.format.least) if dtype.part.format else 0.0
        near = abs(ours - theirs) <= ulps * (eps * size + least)
        return near | (dtype.is_complex & ~(np.isfinite(ours) & np.isfinite(theirs)))

    return where


def accumulated(case: Case) -> Any:
    """Where sums and products differ by a rounding for each element, or one overflows early."""
    dtype = case.library.rules.concrete_dtype(case.dtypes[0])
    if not (dtype.is_float or dtype.is_complex):
        return False
    ours, theirs = (x.astype(np.complex128) for x in case.values)
    (one,) = case.conversions
    eps = 2.0 ** (1 - dtype.part.precision)
    size = abs(one.after.astype(np.complex128)).sum() if "prod" not in case.op else abs(ours)
    tiny = np.finfo(np.float64 if dtype.part.bits == 64 else np.float32).smallest_normal
    if "prod" in case.op:
        products = np.cumprod(abs(one.after.astype(np.complex128)), -1)
        if dtype.bits <= 16 or np.any((products > 0) & (products < tiny)):
            return True  # products may underflow on the way
    near = abs(ours - theirs) <= 2 * one.after.size * eps * (size + tiny)
    return near | ~np.isfinite(ours) | ~np.isfinite(theirs)


def divisor_is_zero(case: Case) -> Any:
    """Where an integer is divided by zero; of a refusal, whether one is anywhere."""
    if None in case.dtypes:
        divisor, dtype = _values(case)[1], case.dtypes[0]
        wrapped = type(divisor) is int and divisor % 2**dtype.bits == 0
        return wrapped or bool(np.any(np.asarray(divisor).astype(dtype.storage) == 0))
    return case.dtypes[0].is_integer and case.conversions[1].after == 0


def negative_exponent(case: Case) -> Any:
    """Whether an exponent is a negative integer somewhere."""
    exponent = _values(case)[1]
    return np.asarray(exponent).dtype.kind in "ib" and bool(np.any(np.asarray(exponent) < 0))


def shifts_too_far(case: Case) -> Any:
    """Where a shift is negative or not below the width."""
    shift, bits = case.conversions[1].after, case.dtypes[0].bits
    return (shift < 0) | (shift >= bits)


def has_nan(case: Case) -> Any:
    """Whether an operand has a NaN."""
    return any(np.any(np.isnan(parts(one.before))) for one in case.conversions)


def not_finite(case: Case) -> Any:
    """Where an operand or a result is infinite or NaN."""
    results = [~np.isfinite(parts(x)).all(-1) for x in case.values]
    return over(case, lambda one: ~np.isfinite(parts(one.after)).all(-1)) | reduce(
        np.logical_or, results
    )


def _values(case: Case) -> list[Any]:
    """The values of the operands, literals among them."""
    return [x.values[0] if isinstance(x, Case) else x for x in case.operands]


def rank_0(case: Case) -> bool:
    """Whether an operand is an array of rank 0, whose value is not known before the graph runs."""
    return any(isinstance(x, Case) and not x.results[0].rank for x in case.operands)


def beyond_64_bits(result: Any) -> bool:
    """Whether a result is an int of Python that no dtype of 64 bits has."""
    return type(result) is int and not -(2**63) <= result < 2**63


def anywhere(case: Case) -> bool:
    """All of them."""
    return True


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


def huge_number(case: Case) -> bool:
    """Whether an int from 2**63 on is beside a 0-d tensor, or divided by or into one of bool."""
    tensors = [x for x in case.operands if isinstance(x, Case)]
    ranks = [x.results[0].rank for x in tensors]
    divides = case.op == "divide" and DType.bool in case.given
    return any(type(x) is int and x >= 2**63 for x in case.given) and (0 in ranks or divides)


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
    steps = _inexact_steps(case, (*ARITHMETIC, *DIVISIONS, "pow"))
    return any(not isinstance(x, Case) for one in steps for x in one.operands)
