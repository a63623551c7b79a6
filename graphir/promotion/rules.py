"""PromotionRules: the rule set of a graph, with every dtype decision of a library."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphir.display import printable
from graphir.dtype_lattices.order import Lattice, NoUpperBound, SeveralUpperBounds, Violation
from graphir.dtype_lattices.published import of_dtypes
from graphir.dtypes import DType, DTypeLike
from graphir.errors import REAL_PARTS, Fix, GraphError, PromotionError, RulesFix, cast_first
from graphir.promotion.operands import (
    ALONE,
    Number,
    Operand,
    OperandLike,
    Place,
    Typed,
    beside_tensors,
    instead_of,
    smallest_holding,
)
from graphir.promotion.registry import DefaultInside, is_registered, require_rules, rules
from graphir.promotion.scalars import fits, identity_key, misfit, number_text

if TYPE_CHECKING:
    from graphir.rule_reports.explanation import Explanation


# -- The families of ops that share a dtype rule

Family: TypeAlias = Literal[
    "arithmetic",
    "division",
    "floating",
    "average",
    "accumulation",
    "ordering",
    "bitwise",
    "shift",
    "truth",
    "inspection",
    "movement",
]
"""The families of ops.

Each family is a method of PromotionRules that returns the dtype of its ops.
"""


# -- The in-place operators of a library: they write to the array, or bind the name to a new array

IN_PLACE = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    }
)
"""The ops of Python's in-place operators, except `@=`, which some libraries lack."""


# -- PromotionRules: the rule set of a graph, with every dtype decision of a library


class PromotionRules(DefaultInside):
    """A rule set: how dtypes join, and the dtype of every family of ops.

    A subclass or instance defines the join (by `lattice`, or by overriding `join`) and overrides
    other methods where its library differs. The defaults are those of "max" (MAX 24.1,
    max.graph.type_promotion), which refuses every silent widening that MAX's lattice does not
    contain. A refusal is a PromotionError in every rule set.
    """

    public_names = """
        accumulation arithmetic average bitwise bool_arithmetic common division doc dtypes
        exceptions explain find fits floating from_lattice has has_scalars in_place index_dtype
        inspection join lattice laws literal movement name of_release operands ordering path
        position promote releases shift source supported table truth
    """

    in_place: frozenset[str] = frozenset()
    """The ops whose in-place operators write to the array. The array keeps its dtype and shape.

    By default arrays are immutable, and `x += y` binds x to `x + y`.
    """

    has_scalars: bool = False
    """Whether a 0-d result is an immutable scalar instead of a 0-d array."""

    bool_arithmetic: frozenset[str] = frozenset(
        {
            *("add", "multiply", "matmul", "tensordot", "outer", "positive"),
            *("sum", "prod", "cumulative_sum", "cumulative_prod"),
        }
    )
    """The arithmetic ops that accept bool: sums are `or`, products are `and`."""

    exceptions: Mapping[str, Mapping[DType, DType | None]] = {}
    """By op and operands' common dtype: the dtype in which the op computes, None for a refusal."""

    by_value: bool = False
    """Whether 0-d operands count by their values; callers then pass each known value."""

    of_numbers: bool = False
    """Whether a weak value is a Python number, to which Python's operators apply (see `ruling`)."""

    composes: frozenset[str] = frozenset()
    """The ops that the library composes: pow (see `exponent_of`), or ops over a 0-d operand."""

    implicit: bool = True
    """Whether operands convert implicitly to a dtype that the caller names for an op."""

    unconverted: frozenset[str] = frozenset()
    """The ops whose operands keep their own dtypes. The result has the first operand's dtype."""

    types_uncomputed: bool = False
    """Whether the rules type ops on dtypes for which no kernel exists (see implied_casts)."""

    instead: str = ""
    """The rule set that refusals suggest as an alternative."""

    releases: Mapping[str, Mapping[str, object]] = {}
    """By measured release of the library, oldest first: the attributes that differ from the newest.

    The values that a library computes differ between releases too; these are dtypes and refusals.
    """

    def __init__(
        self, name: str, doc: str, lattice: Lattice[Any] | None = None, source: str = ""
    ) -> None:
        self.name, self.doc, self.lattice, self.source = name, doc, of_dtypes(lattice), source
        self.base_name = name  # the name without a release
        self.dtypes: tuple[DType, ...] = self.lattice.nodes if self.lattice else tuple(DType)
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Empty the caches of `promote`, keyed by dtype codes.

        Pairs have a nested dict, because it is faster to read.
        """
        self._promote_dtypes: dict[tuple[int, ...] | None, DType] = {}
        self._pairs: dict[int, dict[int, DType]] = {}

    @staticmethod
    def find(name: str) -> PromotionRules:
        """Return the rule set of that name, for any text: `rules(name)` of a name from elsewhere.

        Raises GraphError that names similar rule sets if none has the name.
        """
        return require_rules(name)

    def of_release(self, version: str) -> PromotionRules:
        """Return the rules of the library's release with this version, named such as `jax@0.10`.

        A version between two measured releases has the rules of the newer one, and a version after
        the last has those of the last. Rules without measured releases return themselves.
        """
        if not self.releases:
            return self
        newer = (each for each in self.releases if minor_version(each) >= minor_version(version))
        release = next(newer, [*self.releases][-1])
        return require_rules(f"{self.name}@{release}")

    def with_release(self, release: str) -> PromotionRules:
        """Return a copy of the rules that has the attributes of a measured release."""
        new = object.__new__(type(self))  # copy.copy returns registered rules themselves
        vars(new).update(vars(self), **self.releases[release], releases={})
        new.name = f"{self.name}@{release}"
        new._forget_answers()
        return new

    @classmethod
    def from_lattice(
        cls,
        lattice: Lattice[Any] | str | PathLike[str],
        name: str = "",
        doc: str = "",
        source: str = "",
    ) -> PromotionRules:
        """Return a rule set whose results are the joins of a lattice of dtypes, or of a JSON file.

        `name` defaults to the lattice's name, `source` to its source. Operands without a join, or
        with several minimal upper bounds, raise PromotionError. The method raises GraphError if a
        node is no dtype, or if the lattice is empty.
        """
        order = lattice if isinstance(lattice, Lattice) else Lattice.load(lattice)
        if not len(order):
            raise GraphError(f"rules are made of dtypes, and lattice {order.name!r} has none")
        doc = doc or f"The joins of lattice {order.name!r}."
        return cls(name or order.name, doc, order, source or order.source)

    # -- the join

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the dtype in which operands meet; operands that share a dtype do not promote."""
        dtypes = {operand.dtype.code: operand.dtype for operand in operands}
        return operands[0].dtype if len(dtypes) == 1 else self.join(tuple(dtypes.values()))

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return the join of two or more different dtypes.

        The method raises PromotionError, also as NoUpperBound or SeveralUpperBounds, if no join
        exists.
        """
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
        """Return `dtype` if a graph under these rules may contain it.

        Raise PromotionError otherwise.
        """
        return dtype

    def has(self, dtype: DType) -> bool:
        """Whether a graph under these rules may contain a dtype."""
        with suppress(PromotionError):
            return self.supported(dtype) is dtype
        return False

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the dtype in which the operands of an op meet."""
        return self.common(operands)

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return the dtype to which each operand converts for a comparison: the join of all."""
        return (self.meeting(operands, op),) * len(operands)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the dtype that a Python scalar takes: by default its partners' join, if it fits.

        The method raises PromotionError if the scalar does not fit or has no partner.
        """
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
        """Return the number that a Python scalar stands for in an op: by default itself."""
        return value

    def shortcut(self, value: Any, place: Place) -> bool:
        """Whether `**` treats a literal exponent differently than the library's `power` does."""
        return False

    def cell(self, value: Any, op: str) -> Hashable:
        """Return a key of a scalar; `literal` and `literal_value` treat scalars with one key alike.

        None puts all scalars of a Python type into one cell.
        """
        return identity_key(value)

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """Return the exponent's meaning and, if `**` is a repeated product, the number of factors.

        The number of factors is None for an op pow.
        """
        return exponent, None

    def entering(self, scalar: Any) -> Any:
        """Return the operand for which a NumPy scalar counts: itself or a Python scalar.

        A scalar that counts as itself is strong.
        """
        return scalar

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """Return the dtype of the array `value` beside `partners`: by default its own."""
        return dtype

    def admit(self, op: str, attrs: Mapping[str, Any]) -> None:
        """Raise PromotionError if the library lacks an op or a dtype among the op's attributes.

        By default the rules accept every op and dtype.
        """

    def fits(self, value: Any, dtype: DType) -> bool:
        """Whether a Python scalar may take `dtype` implicitly."""
        return fits(value, dtype)

    # -- dtypes by family: the dtype in which an op computes, given its operands' common dtype

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return the dtype in which an op computes, by `exceptions` or its family's method.

        `dtype` is the common dtype of the operands. The method raises PromotionError for an entry
        of None.
        """
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
        """Return the dtype of an operand that an op converts to a dtype named by its caller."""
        return dtype

    def arithmetic(self, dtype: DType, op: str) -> DType:
        """Return the dtype of + - * // % ** and the ops composed of them: the operands' dtype."""
        return self.boolean(op) if dtype is DType.bool else dtype

    def boolean(self, op: str) -> DType:
        """Return the dtype in which an arithmetic op on bools computes."""
        if op in self.bool_arithmetic:
            return DType.bool
        raise PromotionError(
            f"it is not defined for bool under {self.name!r} (there + is or, * is and)",
            fix=cast_first(DType.int32),
            op=op,
        )

    def division(self, dtype: DType, op: str) -> DType:
        """Return the dtype in which `/` computes: float64 for bool and integers, as in MAX."""
        return dtype if dtype.is_inexact else DType.float64

    def floating(self, dtype: DType, op: str) -> DType:
        """Return the float dtype in which functions such as sin and mean compute.

        "max" refuses bool and integers.
        """
        if dtype.is_inexact:
            return dtype
        problem = f"its operands must be floats under {self.name!r}"
        raise PromotionError(problem, got=str(dtype), fix=cast_first(DType.float32), op=op)

    def average(self, dtype: DType, op: str) -> DType:
        """Return the float dtype in which mean, var and std compute."""
        return self.floating(dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return the dtype in which sum, prod and their cumulative forms accumulate."""
        return self.boolean(op) if dtype is DType.bool else dtype

    def ordering(self, dtype: DType, op: str) -> DType:
        """Return the dtype in which an op orders values; "max" refuses complex numbers."""
        if not dtype.is_complex:
            return dtype
        problem = f"it is not defined for {dtype}, whose values have no order"
        raise PromotionError(problem, fix=REAL_PARTS, op=op)

    def bitwise(self, dtype: DType, op: str) -> DType:
        """Return the dtype of & | ^ ~: an integer dtype or bool."""
        if dtype.is_integer or dtype is DType.bool:
            return dtype
        raise PromotionError(
            "its operands must be integers or bool",
            got=str(dtype),
            fix=cast_first(DType.int64),
            op=op,
        )

    def shift(self, dtype: DType, op: str) -> DType:
        """Return the dtype of << and >>: an integer dtype."""
        if dtype.is_integer:
            return dtype
        problem, fix = "its operands must be integers", cast_first(DType.int64)
        raise PromotionError(problem, got=str(dtype), fix=fix, op=op)

    def truth(self, dtype: DType, op: str) -> DType:
        """Return the dtype of operands of logical ops, any and all, and of where's condition."""
        if dtype is DType.bool:
            return dtype
        problem = f"its operands must be bool under {self.name!r}"
        fixes = "write x != 0", Fix("{cast}", DType.bool)
        raise PromotionError(problem, got=str(dtype), fix=fixes, op=op)

    def verdict(self, dtype: DType, op: str) -> DType:
        """Return the result dtype of logical ops, any and all."""
        return DType.bool

    def index_dtype(self, dtype: DType, op: str) -> DType:
        """Return the dtype of the indices of gather and similar ops: their own integer dtype."""
        if dtype.is_integer:
            return dtype
        problem, fix = "its indices must be integers", Fix("write {cast}", DType.int64)
        raise PromotionError(problem, got=str(dtype), fix=fix, op=op)

    def inspection(self, dtype: DType, op: str) -> DType:
        """Return the dtype in which is_nan and similar ops, real, imag and abs read a value."""
        return dtype

    def movement(self, dtype: DType, op: str) -> DType:
        """Return the dtype of ops that move values or select among them."""
        return dtype

    def position(self, op: str) -> DType:
        """Return the result dtype of argmax, argsort, searchsorted and shape_of."""
        return DType.int64

    def accumulator(self, dtype: DType, op: str) -> DType:
        """Return the accumulator of a sum whose caller names `dtype`: by default `dtype` itself."""
        return dtype

    def clip_dtype(self, first: DType, join: DType) -> DType:
        """Return the dtype of clip from its first operand's dtype and the join of all operands."""
        return join

    def omits_bound(self, value: Any, place: Place) -> bool:
        """Whether clip drops the bound `value`, which no value of the first operand exceeds."""
        return False

    def storable(self, source: DType, target: DType) -> bool:
        """Whether `x += y` may cast a result of dtype `source` to `target`, the dtype of x."""
        return source is target

    def concrete_dtype(self, weak: DType) -> DType:
        """Return the default dtype of a weak dtype; a concrete dtype stays."""
        return _CONCRETE[weak.code] if weak.weak else weak

    # -- queries

    def refusal(self, dtypes: Sequence[DType], why: str) -> PromotionError:
        """Build the error that dtypes do not promote; its fixes are a cast and other rules."""
        holding = smallest_holding(dtypes)
        cast = Fix("cast them, for example {cast}", holding)
        if holding is None:
            cast = Fix("no dtype has every value of both, so choose what to lose by {cast}")
        others = f"rules={self.instead!r}" if self.instead not in ("", self.name) else "other rules"
        problem = f"{' and '.join(map(self.name_of, dtypes))} do not promote under {self.name!r}"
        return PromotionError(problem, reason=why, fix=(cast, RulesFix(others)))

    def name_of(self, dtype: DType) -> str:
        """Return a dtype's name for error messages."""
        return str(dtype)

    def misfit(self, value: Any, dtype: DType) -> PromotionError:
        """Build the error that a literal does not fit its dtype."""
        wide = instead_of(
            dtype, [candidate for candidate in self.dtypes if self.fits(value, candidate)]
        )
        error = misfit(value, dtype, f" under {self.name!r}")
        ways = (
            Fix("{cast} of the other operand", wide),
            Fix("write {scalar}", wide, number_text(value)),
        )
        problem, fixes = f"the literal {error.problem}", (*error.fixes, *ways)
        return PromotionError.like(error, problem=problem, fixes=fixes)

    def promote(self, *operands: OperandLike) -> DType:
        """Return the common dtype of operands, in which `x + y` computes if `+` accepts the dtype.

        Python numbers alone never reach a library's operators; they promote as the library's
        functions do. An operand is a dtype (or name or NumPy dtype), a TensorType, anything with
        `.type`, an array or NumPy scalar, a Python scalar, or one of the types bool, int, float,
        complex. The method raises PromotionError if the operands do not promote.
        """
        try:
            a, b = operands
            return self._pairs[a.code][b.code]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
        except (AttributeError, LookupError, TypeError, ValueError):
            pass  # not two dtypes, or a pair that the cache lacks
        codes = [operand.code for operand in operands if isinstance(operand, DType)]
        key = tuple(codes) if len(codes) == len(operands) else None
        result = self._promote_dtypes.get(key) or self.common(self.operands(operands))
        if key:
            self._promote_dtypes[key] = result
            if len(key) == 2:
                self._pairs.setdefault(key[0], {})[key[1]] = result
        return result

    def answer(self, *operands: Any) -> DType | None:
        """Return the result of `promote`, or None if `promote` raises PromotionError."""
        with suppress(PromotionError):
            return self.promote(*operands)

    def operands(self, values: Sequence[Any]) -> list[Typed]:
        """Return the operands of `promote` as Typed objects.

        A literal has the dtype that it takes here.
        """
        if not values:
            raise PromotionError("no operands", op="promote", fix="pass at least one operand")
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

    def explain(self, *operands: OperandLike) -> Explanation:
        """Return the result of `promote` with each operand's lattice path and possible losses."""

        from graphir.rule_reports.explanation import explained

        return explained(self, operands)

    def path(self, low: DTypeLike, high: DTypeLike) -> tuple[DType, ...]:
        """Return the lattice path from `low` up to `high`, or the two ends if there is none."""
        low, high = DType(low), DType(high)
        if low is high:
            return (low,)
        lattice = self.lattice
        if lattice and low in lattice and high in lattice and lattice.below(low, high):
            return lattice.path(low, high)
        return low, high

    def table(self) -> PromotionTable:
        """Return the results of all pairs of dtypes, row by column.

        A pair that does not promote has None.
        """
        return PromotionTable({a: {b: self.answer(a, b) for b in self.dtypes} for a in self.dtypes})

    def laws(self) -> list[Violation]:
        """Return every violation of the promotion laws, with its counterexample (graphir.laws)."""
        from graphir.rule_reports.laws import laws

        return laws(self)

    def is_same_lattice(self, other: PromotionRules) -> bool:
        """Whether both rule sets consist of the same lattice and override no method."""
        if not (type(self) is type(other) is PromotionRules and self.lattice and other.lattice):
            return False
        return self.lattice.edges == other.lattice.edges

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (rules, (self.name,)) if is_registered(self) else super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<PromotionRules {printable(self.name)}, {len(self.dtypes)} dtypes>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: what the rules are, and their table and facts, folded."""
        from graphir.rule_reports.facts import rules_fragment

        return rules_fragment(self)


class PromotionTable(dict[DType, dict[DType, DType | None]]):
    """The results of all pairs of dtypes under a rule set, row by column; None is a refusal."""

    def __repr__(self) -> str:
        """Return the table in short names; one of many dtypes without narrow ones."""
        from graphir.rule_reports.tables import brief_text

        return brief_text(self)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks, coloured by loss."""
        from graphir.rule_reports.tables import table_fragment

        return table_fragment(self)


_USUAL = (DType.int32, DType.float32, DType.bool, DType.int64)
_CONCRETE = {dtype.code: DType.from_numpy(dtype.storage) for dtype in DType if dtype.weak}


def minor_version(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple([int(part) for part in re.findall(r"\d+", version)[:2]])
