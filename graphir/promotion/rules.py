"""PromotionRules: what a graph is built under, and everything a library decides about dtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from graphir.dtypes import DType, DTypeLike
from graphir.errors import PromotionError
from graphir.lattice import Lattice

WEAK: dict[type, DType] = {
    bool: DType.bool,
    int: DType.weak_int,
    float: DType.weak_float,
    complex: DType.weak_complex,
}


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
    """An operand by its dtype alone; a bare dtype counts as an array of one axis."""

    dtype: DType
    rank: int = 1


class Explanation(NamedTuple):
    """Why operands promote as they do: `str()` is the sentence a person wants.

    A literal among the operands stands there itself. `paths` has each operand's way up the lattice
    (just its two ends where the rules have none), `witnesses` the simplest value that each can lose
    on it, None where the cast is exact.
    """

    rules: str
    operands: tuple[Any, ...]
    result: DType
    paths: tuple[tuple[DType, ...], ...]
    witnesses: tuple[complex | None, ...]

    def __str__(self) -> str:
        operands = " and ".join(
            str(one) if isinstance(one, DType) else f"the literal {one!r}" for one in self.operands
        )
        lines = [f"{operands} promote to {self.result} under {self.rules!r}"]
        for path, witness in zip(self.paths, self.witnesses, strict=True):
            if len(path) > 1:
                loss = "exact" if witness is None else f"loses values, the simplest is {witness}"
                lines.append(f"  {' -> '.join(map(str, path))}: {loss}")
        return "\n".join(lines)


class PromotionRules:
    """A rule set: how dtypes mix, and what its library does besides the join.

    A subclass or instance says how dtypes join (`lattice`, or `common`) and overrides what differs
    from the defaults here: those of "max" (MAX 24.1, max.graph.type_promotion), where every
    silent widening that MAX's lattice does not contain is refused. All methods raise
    PromotionError with the reason and the fix.
    """

    index: DType = DType.int64
    """The dtype of argmax, argsort, searchsorted and shape_of."""

    bool_arithmetic: frozenset[str] = frozenset(
        {
            *("add", "multiply", "matmul", "tensordot", "outer", "positive"),
            *("sum", "prod", "cumulative_sum", "cumulative_prod"),
        }
    )
    """The arithmetic ops that take bool: sums are `or`, products `and`."""

    def __init__(
        self, name: str, doc: str, lattice: Lattice[Any] | None = None, source: str = ""
    ) -> None:
        self.name, self.doc, self.lattice, self.source = name, doc, _of_dtypes(lattice), source
        self.dtypes: tuple[DType, ...] = self.lattice.nodes if self.lattice else tuple(DType)

    # -- the join

    def common(self, operands: Sequence[Typed]) -> DType:
        """The dtype in which operands meet; those that share one already do not promote."""
        dtypes = tuple(dict.fromkeys(operand.dtype for operand in operands))
        return dtypes[0] if len(dtypes) == 1 else self.join(dtypes)

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """The join of two or more different dtypes."""
        if self.lattice is None:
            raise self.refusal(dtypes, "it has neither a lattice nor a join of its own")
        for dtype in dtypes:
            if dtype not in self.lattice:
                raise self.refusal(dtypes, f"{dtype} is not in its lattice")
        return self.lattice.join(*dtypes)

    def literal(self, value: Any, partners: Sequence[Typed]) -> DType:
        """The dtype that a Python scalar takes beside operands of the given types.

        Under "max": their common dtype, where the value is exactly representable there (a float:
        where it stays finite).
        """
        if not partners:
            raise PromotionError(
                f"the literal {value!r} has no dtype of its own under {self.name!r} and nothing "
                f"beside it has one; write g.scalar({value!r}, DType....)"
            )
        dtype = self.common(partners)
        if not self.fits(value, dtype):
            raise PromotionError(
                f"the literal {misfit(value, dtype, f' under {self.name!r}')}; or cast the other "
                f"operand, or write g.scalar({value!r}, DType....)"
            )
        return dtype

    def fits(self, value: Any, dtype: DType) -> bool:
        """Whether a Python scalar may become `dtype` unasked."""
        return fits(value, dtype)

    # -- what the library does besides

    def divided(self, dtype: DType) -> DType:
        """The dtype in which `/` happens; float64 for bool and integers, as MAX does."""
        return dtype if dtype.is_float or dtype.is_complex else DType.float64

    def floating(self, dtype: DType, op: str) -> DType:
        """The float in which functions such as sin and mean happen; "max" refuses integers."""
        if dtype.is_float or dtype.is_complex:
            return dtype
        raise PromotionError(
            f"{op} takes floats under {self.name!r}, not {dtype}; cast first, for example "
            f".cast(DType.float32)"
        )

    def averaged(self, dtype: DType, op: str) -> DType:
        """The float in which mean, var and std happen."""
        return self.floating(dtype, op)

    def accumulated(self, dtype: DType, op: str) -> DType:
        """The dtype in which sum, prod and their cumulative forms accumulate."""
        return dtype

    def boolean(self, op: str) -> DType:
        """The dtype in which an arithmetic op on bools happens."""
        if op in self.bool_arithmetic:
            return DType.bool
        raise PromotionError(
            f"{op} does not take bool under {self.name!r} (there + is or, * is and); cast first, "
            "for example .cast(DType.int32)"
        )

    def truth(self, dtype: DType, op: str) -> DType:
        """The dtype that a truth value must have: logical ops, any, all, where's condition."""
        if dtype is DType.bool:
            return dtype
        raise PromotionError(
            f"{op} takes bool under {self.name!r}, not {dtype}; write x != 0, or .cast(DType.bool)"
        )

    def committed(self, weak: DType) -> DType:
        """The concrete dtype that a weak one has where nothing decided otherwise."""
        return {
            DType.weak_int: DType.int64,
            DType.weak_float: DType.float64,
            DType.weak_complex: DType.complex128,
        }.get(weak, weak)

    # -- questions

    def refusal(self, dtypes: Sequence[DType], why: str) -> PromotionError:
        """The error that says these dtypes do not mix here, and both ways out."""
        names = " and ".join(map(str, dtypes))
        holding = _holding(dtypes)
        cast = f"cast them, for example .cast(DType.{holding})"
        if holding is None:
            cast = "no dtype has every value of both, so choose by a .cast(DType....) what to lose"
        return PromotionError(
            f"{names} do not promote under {self.name!r}: {why}; {cast}, or build the graph under "
            "other rules"
        )

    def promote(self, *operands: Any) -> DType:
        """The dtype that operands have together.

        An operand is a dtype (or name or NumPy dtype), a TensorType, anything with `.type`, an
        array or NumPy scalar, a Python scalar, or one of the types bool, int, float, complex.
        """
        typed: list[Typed] = []
        literals: list[Any] = []
        for operand in operands:
            one = operand_of(operand)
            if one is None:
                literals.append(operand)
            else:
                typed.append(one)
        typed += [Operand(self.literal(value, typed), 0) for value in literals]
        if not typed:
            raise PromotionError("promote() needs at least one operand")
        return self.common(typed)

    def explain(self, *operands: Any) -> Explanation:
        """The same as `promote`, with each operand's path up and what it can lose on the way."""
        result = self.promote(*operands)
        known = [operand_of(operand) for operand in operands]
        dtypes = [result if one is None else one.dtype for one in known]
        named = [
            operand if one is None else one.dtype
            for one, operand in zip(known, operands, strict=True)
        ]
        paths = tuple(self.path(dtype, result) for dtype in dtypes)
        witnesses = tuple(dtype.witness(result) for dtype in dtypes)
        return Explanation(self.name, tuple(named), result, paths, witnesses)

    def path(self, low: DTypeLike, high: DTypeLike) -> tuple[DType, ...]:
        """The way up the lattice from one dtype to another; its two ends where there is none."""
        low, high = DType(low), DType(high)
        if low is high:
            return (low,)
        lattice = self.lattice
        if lattice and low in lattice and high in lattice and lattice.below(low, high):
            return lattice.path(low, high)
        return low, high

    def table(self) -> dict[DType, dict[DType, DType | None]]:
        """All pairs of its dtypes, row by column; None where mixing them raises."""
        return {a: {b: self._cell(a, b) for b in self.dtypes} for a in self.dtypes}

    def _cell(self, a: DType, b: DType) -> DType | None:
        try:
            return self.common((Operand(a), Operand(b)))
        except PromotionError:
            return None

    # -- the default rule set, inside a `with` block

    def __enter__(self) -> PromotionRules:
        _DEFAULTS.set((*_DEFAULTS.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _DEFAULTS.set(_DEFAULTS.get()[:-1])

    def __repr__(self) -> str:
        return f"<PromotionRules {self.name}>"


def _holding(dtypes: Sequence[DType]) -> DType | None:
    """The smallest dtype that has every value of these."""
    for dtype in sorted(DType, key=lambda dtype: dtype.bits):
        usual = dtype.storage.name == str(dtype) and not dtype.narrow
        if usual and all(one.exact_in(dtype) for one in dtypes):
            return dtype
    return None


# The rule sets of the `with` blocks around, in each context its own.
_DEFAULTS: ContextVar[tuple[PromotionRules, ...]] = ContextVar("default rules", default=())


def default() -> PromotionRules | None:
    """The rule set of the innermost `with rules(...)` block, if there is one."""
    return _DEFAULTS.get()[-1] if _DEFAULTS.get() else None


def _of_dtypes(lattice: Lattice[Any] | None) -> Lattice[DType] | None:
    """The lattice with names of dtypes read as dtypes."""
    if lattice is None or all(isinstance(node, DType) for node in lattice):
        return lattice
    edges = {DType(low): [DType(node) for node in above] for low, above in lattice.edges.items()}
    return Lattice(lattice.name, edges)


def operand_of(operand: Any) -> Typed | None:
    """What an operand counts as; None for a Python scalar, which counts by its value.

    NumPy scalars are strong: np.float64 is a float and np.generic is looked at first.
    """
    if isinstance(operand, (np.ndarray, np.generic)):
        array = cast("np.ndarray[Any, Any]", operand)
        return Operand(DType.from_numpy(array.dtype), array.ndim)
    if isinstance(operand, (bool, int, float, complex)):
        return None
    if isinstance(operand, type) and operand in WEAK:
        return Operand(WEAK[operand], 0)
    type_ = getattr(operand, "type", operand)
    if isinstance(getattr(type_, "dtype", None), DType):
        return cast(Typed, type_)
    return Operand(DType(operand))


def fits(value: Any, dtype: DType) -> bool:
    """Whether a Python scalar is exactly representable in `dtype`; a float: is rounded there.

    An int fits a float dtype in the range in which that has every int. A float must stay finite,
    and infinities and NaN fit where the format has them.
    """
    if isinstance(value, int):
        low, high = int_range(dtype)
        return low <= value <= high
    if isinstance(value, float):
        return dtype.format is not None and _keeps(value, dtype)
    if isinstance(value, complex):
        return dtype.is_complex and fits(value.real, dtype) and fits(value.imag, dtype)
    return False


def int_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest int that fit a dtype."""
    if dtype.kind == "bool":
        return 0, 1
    if dtype.format is None:
        return int(dtype.min), int(dtype.max)
    exact = 2**dtype.precision
    low = 1 if dtype.format.specials == "scale" else max(-exact, math.ceil(dtype.min))
    return low, min(exact, math.floor(dtype.max))


def _keeps(value: float, dtype: DType) -> bool:
    """Whether what is finite, infinite or NaN stays that when rounded to nearest."""
    specials = dtype.format.specials if dtype.format else "ieee"
    if math.isnan(value):
        return specials != "finite"
    if math.isinf(value):
        return specials == "ieee"
    if specials == "scale" and value <= 0:
        return False
    # Half a unit in the last place above the greatest value the tie is: it goes up, but for "fn",
    # whose greatest value is even.
    limit = float(dtype.max)
    tie = limit + 2.0 ** (math.frexp(limit)[1] - dtype.mantissa_bits - 2)
    return abs(value) < tie or (specials == "fn" and abs(value) == tie)


def misfit(value: Any, dtype: DType, under: str = "") -> str:
    """Why a scalar does not fit a dtype, and what to write instead."""
    if isinstance(value, float) and dtype.format is None:
        why = f"is a float; write an int, or .cast(DType.{dtype}) it"
    elif isinstance(value, complex) and not dtype.is_complex:
        why = "is complex; take its .real part"
    elif isinstance(value, int) and dtype.format and fits(float_of(value), dtype):
        why = f"is beyond the ints that are all exact there; write {float_of(value)!r} to round it"
    elif isinstance(value, float) and not math.isfinite(value):
        why = "is no value of that format; choose another dtype"
    else:
        why = f"is out of range, [{dtype.min}, {dtype.max}]; choose a wider dtype"
    return f"{value!r} does not fit {dtype}{under}: it {why}"


def float_of(value: int) -> float:
    """An int as a float; inf where it is too great."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
