"""PromotionRules: what a graph is built under, and everything a library decides about dtypes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.dtypes import DType, DTypeLike
from graphir.errors import REAL_PARTS, Fix, GraphError, PromotionError, RulesFix, cast_first
from graphir.lattice.order import Lattice, NoUpperBound, SeveralUpperBounds, Violation
from graphir.lattice.published import is_dtype, of_dtypes
from graphir.promotion.defaults import DefaultInside
from graphir.promotion.families import Family, FamilyRules
from graphir.promotion.in_place import InPlaceRules
from graphir.promotion.operands import (
    ALONE,
    Number,
    Operand,
    Place,
    Typed,
    beside_tensors,
    instead_of,
    smallest_holding,
)
from graphir.promotion.registry import rule_sets, rules
from graphir.promotion.scalars import fits, identity_key, misfit, number_text

if TYPE_CHECKING:
    from graphir.rule_reports.explanation import Explanation


class PromotionRules(InPlaceRules, FamilyRules, DefaultInside):
    """A rule set: how dtypes mix, and what its library does besides the join.

    A subclass or instance says how dtypes join (`lattice`, or `join`) and overrides what differs
    from the defaults here: those of "max" (MAX 24.1, max.graph.type_promotion), where every
    silent widening that MAX's lattice does not contain is refused. All raise PromotionError.
    """

    bool_arithmetic: frozenset[str] = frozenset(
        {
            *("add", "multiply", "matmul", "tensordot", "outer", "positive"),
            *("sum", "prod", "cumulative_sum", "cumulative_prod"),
        }
    )
    """The arithmetic ops that take bool: sums are `or`, products `and`."""

    exceptions: Mapping[str, Mapping[DType, DType | None]] = {}
    """By op and the dtype in which its operands met: where it happens, None where it is refused."""

    by_value: bool = False
    """Whether 0-d operands count by their values, so that these are handed over where known."""

    of_numbers: bool = False
    """Whether weak values are Python numbers, and so what operators make of them (see `ruling`)."""

    composes: frozenset[str] = frozenset()
    """The ops that it builds of several: pow (see `exponent_of`), or those over a 0-d operand."""

    implicit: bool = True
    """Whether operands are converted to the dtype that an op was asked to compute in."""

    unconverted: frozenset[str] = frozenset()
    """The ops whose operands keep their own dtypes; the first operand's is the result's."""

    types_uncomputed: bool = False
    """Whether the rules type ops on dtypes in which no kernel computes them (see implied_casts)."""

    instead: str = ""
    """The rule set that a refusal names as a way out."""

    def __init__(
        self, name: str, doc: str, lattice: Lattice[Any] | None = None, source: str = ""
    ) -> None:
        self.name, self.doc, self.lattice, self.source = name, doc, of_dtypes(lattice), source
        self.dtypes: tuple[DType, ...] = self.lattice.nodes if self.lattice else tuple(DType)
        # What `promote` answered of dtypes, by their codes; of pairs row by row, to be read faster.
        self._promote_dtypes: dict[tuple[int, ...] | None, DType] = {}
        self._pairs: dict[int, dict[int, DType]] = {dtype.code: {} for dtype in DType}

    @classmethod
    def from_lattice(
        cls,
        lattice: Lattice[Any] | str | PathLike[str],
        name: str = "",
        doc: str = "",
        source: str = "",
    ) -> PromotionRules:
        """A rule set whose results are the joins of a lattice of dtypes, or of one in a JSON file.

        It is named like the lattice unless `name` says otherwise; where a pair has no join, or
        several minimal bounds, mixing it raises. GraphError for a lattice of other things.
        """
        order = lattice if isinstance(lattice, Lattice) else Lattice.load(lattice)
        foreign = [str(node) for node in order if not is_dtype(node)]
        if foreign or not len(order):
            what = f"{', '.join(foreign)}, which no dtype is named" if foreign else "nothing"
            raise GraphError(
                f"rules are made of dtypes, and lattice {order.name!r} has {what}",
                fix="write names such as int8, bfloat16 or weak_float",
            )
        doc = doc or f"The joins of lattice {order.name!r}."
        return cls(name or order.name, doc, order, source or order.source)

    # -- the join

    def common(self, operands: Sequence[Typed]) -> DType:
        """The dtype in which operands meet; those that share one already do not promote."""
        dtypes = {operand.dtype.code: operand.dtype for operand in operands}
        return operands[0].dtype if len(dtypes) == 1 else self.join(tuple(dtypes.values()))

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """The join of two or more different dtypes."""
        if self.lattice is None:
            raise self.refusal(dtypes, "it has neither a lattice nor a join of its own")
        for dtype in dtypes:
            if dtype not in self.lattice:
                raise self.refusal(dtypes, f"{dtype} is not in its lattice")
        try:
            return self.lattice.join(*dtypes)
        except (NoUpperBound, SeveralUpperBounds) as error:
            why = f"they have {error.bounds}" + (f": {error.reason}" if error.reason else "")
            raise type(error).like(self.refusal(dtypes, why)) from None

    def supported(self, dtype: DType) -> DType:
        """A dtype that a graph may have under these rules; PromotionError where there is none."""
        return dtype

    def has(self, dtype: DType) -> bool:
        """Whether a graph may have a dtype under these rules."""
        with suppress(PromotionError):
            return self.supported(dtype) is dtype
        return False

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """The dtype in which the operands of an op meet."""
        return self.common(operands)

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """The dtypes at which operands are compared: all at their join."""
        return (self.meeting(operands, op),) * len(operands)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """The dtype that a Python scalar takes: here its partners', where exact or rounded."""
        if not place.partners:
            text = number_text(value)
            raise PromotionError(
                f"the literal {text} has no dtype of its own under {self.name!r} and nothing "
                "beside it has one",
                fix=Fix("write {scalar}", value=text),
                op=place.op,
            )
        dtype = self.common(place.partners)
        if self.fits(value, dtype):
            return dtype
        raise self.misfit(value, dtype)

    def literal_value(self, value: Any, place: Place) -> Any:
        """The number that a Python scalar stands for in an op: itself."""
        return value

    def shortcut(self, value: Any, place: Place) -> bool:
        """Whether `**` treats a literal exponent in a way that the library's `power` does not."""
        return False

    def cell(self, value: Any, op: str) -> Hashable:
        """A key of scalars that `literal` and `meant` treat alike in an op; None: all of a type."""
        return identity_key(value)

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """What an exponent counts as, and of how many factors `**` is a product if it is one."""
        return exponent, None

    def entering(self, scalar: Any) -> Any:
        """What a NumPy scalar counts as: itself, a strong one, or a Python scalar."""
        return scalar

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """The dtype of the array `value` that enters beside operands of these types: its own."""
        return dtype

    def admit(self, op: str, attrs: Mapping[str, Any]) -> None:
        """Refuse an op, or a dtype among its attributes, that the library lacks: none here."""

    def fits(self, value: Any, dtype: DType) -> bool:
        """Whether a Python scalar may become `dtype` unasked."""
        return fits(value, dtype)

    # -- what the library does besides: the dtype in which an op happens whose operands met in one

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """The dtype in which an op of a family happens: what `exceptions` or its method says."""
        special = self.exceptions.get(op)
        if special is None or dtype not in special:
            return getattr(self, family)(dtype, op)
        listed_dtype = special[dtype]
        if listed_dtype is None:
            dtypes_taken = [d for d in _USUAL if special.get(d, d) is not None]
            fix = cast_first(dtypes_taken[0]) if dtypes_taken else "no cast helps"
            fix = REAL_PARTS if dtype.is_complex else fix
            problem = f"it is not defined for {dtype} under {self.name!r}"
            raise PromotionError(problem, fix=fix, op=op)
        return listed_dtype

    def source_dtype(self, dtype: DType, op: str) -> DType:
        """The dtype of an operand that an op converts to a dtype which its caller names."""
        return dtype

    def arithmetic(self, dtype: DType, op: str) -> DType:
        """The dtype of + - * // % ** and of what is made of them: the operands' own."""
        return self.boolean(op) if dtype is DType.bool else dtype

    def boolean(self, op: str) -> DType:
        """The dtype in which an arithmetic op on bools happens."""
        if op in self.bool_arithmetic:
            return DType.bool
        raise PromotionError(
            f"it is not defined for bool under {self.name!r} (there + is or, * is and)",
            fix=cast_first(DType.int32),
            op=op,
        )

    def division(self, dtype: DType, op: str) -> DType:
        """The dtype in which `/` happens; float64 for bool and integers, as MAX does."""
        return dtype if dtype.is_float or dtype.is_complex else DType.float64

    def floating(self, dtype: DType, op: str) -> DType:
        """The float in which functions such as sin and mean happen; "max" refuses integers."""
        if dtype.is_float or dtype.is_complex:
            return dtype
        problem = f"its operands must be floats under {self.name!r}"
        raise PromotionError(problem, got=str(dtype), fix=cast_first(DType.float32), op=op)

    def average(self, dtype: DType, op: str) -> DType:
        """The float in which mean, var and std happen."""
        return self.floating(dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """The dtype in which sum, prod and their cumulative forms accumulate."""
        return self.boolean(op) if dtype is DType.bool else dtype

    def ordering(self, dtype: DType, op: str) -> DType:
        """The dtype in which values are put in order; "max" has no order of complex numbers."""
        if not dtype.is_complex:
            return dtype
        problem = f"it is not defined for {dtype}, whose values have no order"
        raise PromotionError(problem, fix=REAL_PARTS, op=op)

    def bitwise(self, dtype: DType, op: str) -> DType:
        """The dtype of & | ^ ~: an integer's or bool."""
        if dtype.is_integer or dtype is DType.bool:
            return dtype
        raise PromotionError(
            "its operands must be integers or bool",
            got=str(dtype),
            fix=cast_first(DType.int64),
            op=op,
        )

    def shift(self, dtype: DType, op: str) -> DType:
        """The dtype of << and >>: an integer's."""
        if dtype.is_integer:
            return dtype
        problem, fix = "its operands must be integers", cast_first(DType.int64)
        raise PromotionError(problem, got=str(dtype), fix=fix, op=op)

    def truth(self, dtype: DType, op: str) -> DType:
        """The dtype that a truth value must have: logical ops, any, all, where's condition."""
        if dtype is DType.bool:
            return dtype
        problem = f"its operands must be bool under {self.name!r}"
        fixes = "write x != 0", Fix("{cast}", DType.bool)
        raise PromotionError(problem, got=str(dtype), fix=fixes, op=op)

    def verdict(self, dtype: DType, op: str) -> DType:
        """The dtype of the result of logical ops, any and all."""
        return DType.bool

    def index_dtype(self, dtype: DType, op: str) -> DType:
        """The dtype of indices, in gather and the like: their own, an integer's."""
        if dtype.is_integer:
            return dtype
        problem, fix = "its indices must be integers", Fix("write {cast}", DType.int64)
        raise PromotionError(problem, got=str(dtype), fix=fix, op=op)

    def inspection(self, dtype: DType, op: str) -> DType:
        """The dtype in which is_nan and the like, real, imag and abs look at a value."""
        return dtype

    def movement(self, dtype: DType, op: str) -> DType:
        """The dtype of what is only moved, or chosen among."""
        return dtype

    def position(self, op: str) -> DType:
        """The dtype of argmax, argsort, searchsorted and shape_of."""
        return DType.int64

    def concrete_dtype(self, weak: DType) -> DType:
        """The concrete dtype that a weak one has where nothing decided otherwise."""
        return _CONCRETE[weak.code] if weak.weak else weak

    # -- questions

    def refusal(self, dtypes: Sequence[DType], why: str) -> PromotionError:
        """The error that says these dtypes do not mix here, and both ways out."""
        holding = smallest_holding(dtypes)
        cast = Fix("cast them, for example {cast}", holding)
        if holding is None:
            cast = Fix("no dtype has every value of both, so choose what to lose by {cast}")
        others = f"rules={self.instead!r}" if self.instead not in ("", self.name) else "other rules"
        problem = f"{' and '.join(map(self.named, dtypes))} do not promote under {self.name!r}"
        return PromotionError(problem, reason=why, fix=(cast, RulesFix(others)))

    def named(self, dtype: DType) -> str:
        """A dtype as errors name it."""
        return str(dtype)

    def misfit(self, value: Any, dtype: DType) -> PromotionError:
        """The error that says a literal does not fit the dtype it would take."""
        wide = instead_of(dtype, [each for each in self.dtypes if self.fits(value, each)])
        error = misfit(value, dtype, f" under {self.name!r}")
        ways = (
            Fix("{cast} of the other operand", wide),
            Fix("write {scalar}", wide, number_text(value)),
        )
        problem, fixes = f"the literal {error.problem}", (*error.fixes, *ways)
        return PromotionError.like(error, problem=problem, fixes=fixes)

    def promote(self, *operands: Any) -> DType:
        """The dtype that operands have together, in which `x + y` computes if `+` takes it.

        Python numbers alone, which a library's operators never see, promote as its functions say.
        An operand is a dtype (or name or NumPy dtype), a TensorType, anything with `.type`, an
        array or NumPy scalar, a Python scalar, or one of the types bool, int, float, complex.
        """
        try:
            a, b = operands
            return self._pairs[a.code][b.code]
        except (AttributeError, LookupError, TypeError, ValueError):
            pass  # other than two dtypes, or not asked yet
        codes = [operand.code for operand in operands if isinstance(operand, DType)]
        key = tuple(codes) if len(codes) == len(operands) else None
        result = self._promote_dtypes.get(key) or self.common(self.operands(operands))
        if key:
            self._promote_dtypes[key] = result
            if len(key) == 2:
                self._pairs[key[0]][key[1]] = result
        return result

    def answer(self, *operands: Any) -> DType | None:
        """What `promote` answers, None where it refuses."""
        with suppress(PromotionError):
            return self.promote(*operands)

    def operands(self, values: Sequence[Any]) -> list[Typed]:
        """What `promote` takes, each by its dtype, rank and value; literals as they enter here."""
        if not values:
            raise PromotionError("promote() needs at least one operand")
        values = [
            self.entering(operand) if isinstance(operand, np.generic) else operand
            for operand in values
        ]
        operands_typed = list(entries := beside_tensors(values, self.array))
        for i, operand in enumerate(entries):
            if isinstance(operand, Number):
                place = Place(entries, i)
                dtype = self.literal(self.literal_value(operand.value, place), place)
                operands_typed[i] = Operand(dtype, 0, operand.value)
        return operands_typed

    def explain(self, *operands: Any) -> Explanation:
        """The same as `promote`, with each operand's path up and what it can lose on the way."""

        from graphir.rule_reports.explanation import explained

        return explained(self, operands)

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
        return {a: {b: self.answer(a, b) for b in self.dtypes} for a in self.dtypes}

    def laws(self) -> list[Violation]:
        """Every violation of the laws of promotion, each with its counterexample (graphir.laws)."""
        from graphir.rule_reports.laws import laws

        return laws(self)

    def is_same_lattice(self, other: PromotionRules) -> bool:
        """Whether both rule sets are one lattice and nothing besides."""
        if not (type(self) is type(other) is PromotionRules and self.lattice and other.lattice):
            return False
        return self.lattice.edges == other.lattice.edges

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (rules, (self.name,)) if self in rule_sets() else super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<PromotionRules {self.name}>"


_USUAL = (DType.int32, DType.float32, DType.bool, DType.int64)
_CONCRETE = {dtype.code: DType.from_numpy(dtype.storage) for dtype in DType if dtype.weak}
