"""LibraryRules: what the rule sets of array libraries share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from graphir.dtypes import DType
from graphir.errors import PromotionError, RulesFix
from graphir.lattice.order import Lattice
from graphir.promotion.cells import cell_of
from graphir.promotion.operands import ALONE, Place, Typed, instead_of
from graphir.promotion.registry import rule_sets
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import WEAK, float_of, number_text

SIGNED = (DType.int8, DType.int16, DType.int32, DType.int64)
UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)
COMPLEX = (DType.complex64, DType.complex128)


class LibraryRules(PromotionRules):
    """The rules of a library: it has certain dtypes and no others, and Python scalars are weak.

    A Python scalar is a constant of a weak dtype (bool: of bool) that gives way to what it meets,
    so the conversion that follows shows as a cast. `dtypes` are those of its table, without them
    the lattice's; `more` those that it has besides.
    """

    library: str
    """What messages call it."""

    of_numbers = True

    roots: bool = False
    """Whether `x ** 0.5` is sqrt(x) and `x ** -1` the reciprocal (graphir.ir.operators.powers)."""

    scalar_exponents: bool = False
    """Whether `**` treats NumPy scalars and 0-d arrays as the numbers of `shortcut`."""

    def __init__(
        self,
        name: str,
        doc: str,
        lattice: Lattice[Any] | None = None,
        source: str = "",
        dtypes: Iterable[DType] = (),
        more: Iterable[DType] = (),
    ) -> None:
        super().__init__(name, doc, lattice, source)
        self.dtypes = tuple(dtypes) or self.dtypes
        self._dtype_codes = frozenset(dtype.code for dtype in (*self.dtypes, *more, *WEAK.values()))

    def __init_subclass__(cls, **settings: Any) -> None:
        """Tell numbers apart in a subclass that changes the rules of literals and has no cells."""
        super().__init_subclass__(**settings)
        overrides = vars(cls).keys() & {"literal", "literal_value", "fits", "common", "shortcut"}
        if overrides and "cell" not in vars(cls):
            cls.cell = PromotionRules.cell

    def cell(self, value: Any, op: str) -> Hashable:
        """The interval between limits of dtypes in which a number lies."""
        return cell_of(value)

    def common(self, operands: Sequence[Typed]) -> DType:
        """The dtype in which operands meet, all of which the library has."""
        for operand in operands:
            self.supported(operand.dtype)
        return super().common(operands)

    def scatter_dtype(self, into: Typed, updates: Typed) -> DType:
        """The dtype of what scatter puts into, where libraries only warn of imaginary parts."""
        dtype, source = self.common([into]), self.supported(updates.dtype)
        if source.is_complex and not dtype.is_complex:
            why = "scatter would drop the imaginary part of what it puts"
            raise self.refusal((dtype, source), why)
        return dtype

    def supported(self, dtype: DType) -> DType:
        """The dtype, if the library has it."""
        if dtype.code not in self._dtype_codes:
            raise self.lacking(dtype, f"{self.library} has no {self.named(dtype)}")
        return dtype

    def lacking(self, dtype: DType, why: str) -> PromotionError:
        """The error that says why there is no such dtype, and what to take instead."""
        near = instead_of(dtype, self.dtypes)
        problem = f"there is no {self.named(dtype)} under {self.name!r}"
        fix = f"write DType.{near}, which has all its values" if near else ""
        if near is None or not dtype.exact_in(near):
            fix = f"choose one of {', '.join(map(str, self.dtypes))}"
        have = [each.name for each in rule_sets() if each.lattice and dtype in each.dtypes]
        first = {name.partition("_")[0]: name for name in reversed(["max", *have])}  # of a family
        names = [f"rules={name!r}" for name in reversed(first.values())][:2]
        verb = "has" if len(names) == 1 else "have"
        other = f"{' or '.join(names)}, which {verb} it"
        return PromotionError(problem, reason=why, fix=(fix, RulesFix(other)))

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """The weak dtype of its type, whatever is beside it."""
        dtype = WEAK[type(value)]
        if dtype is DType.weak_int and not -(2**63) <= value < 2**63:
            raise PromotionError(
                f"the literal {number_text(value)} does not fit the 64 bits of an int under "
                f"{self.name!r}",
                fix=("write a float", "g.scalar[DType.uint64](...) where that holds it"),
                op=place.op,
            )
        return dtype

    def exponent(self, value: Any, dtype: DType) -> None:
        """Refuse a literal that an integer cannot be raised to."""
        if value < 0:
            raise PromotionError(
                f"{self.library} raises no integer to the negative power {number_text(value)}",
                fix=(f"write {float_of(value)!r}", f"cast the {dtype} to a float"),
            )


Facts: TypeAlias = Mapping[str, Mapping[DType, "DType | None"]]


def by_op(facts: Facts) -> Facts:
    """Exceptions for each op, from exceptions for names of ops in one string: `"floor ceil"`."""
    facts_by_op: dict[str, dict[DType, DType | None]] = {}
    for names, dtypes in facts.items():
        for name in names.split():
            facts_by_op.setdefault(name, {}).update(dtypes)
    return facts_by_op
