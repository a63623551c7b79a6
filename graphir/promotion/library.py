"""LibraryRules: the rules that the array libraries share; and "explicit", of graphs without any."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.errors import PromotionError, RulesFix
from graphir.promotion.operands import ALONE, Place, Typed, instead_of
from graphir.promotion.registry import rule_sets
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import WEAK, cell_of, float_of, number_text

SIGNED = (DType.int8, DType.int16, DType.int32, DType.int64)
UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)
COMPLEX = (DType.complex64, DType.complex128)
UPDATES = frozenset({"scatter", "slice_update", "index_update", "index_add"})
"""The ops that write updates into an array."""


class LibraryRules(PromotionRules):
    """Base of the libraries' rule sets: a fixed set of dtypes, and weak Python scalars.

    A Python scalar is a constant of a weak dtype; a bool is a constant of dtype bool. The constant
    converts to the dtype of its partners, and that conversion is a visible cast. `dtypes` are the
    dtypes of the promotion table; without `dtypes` the lattice's nodes form the table. `more` are
    dtypes that the library has outside the table.
    """

    library: str
    """The library's name in error messages."""

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
        """Reset `cell` in a subclass that changes the rules of literals and defines no `cell`.

        Each number then has a cell of its own.
        """
        super().__init_subclass__(**settings)
        overrides = vars(cls).keys() & {"literal", "literal_value", "fits", "common", "shortcut"}
        if overrides and "cell" not in vars(cls):
            cls.cell = PromotionRules.cell

    def cell(self, value: Any, op: str) -> Hashable:
        """Return a number's interval between dtype limits (graphir.promotion.scalars)."""
        return cell_of(value)

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the common dtype of operands.

        Raise PromotionError if the library lacks a dtype.
        """
        for operand in operands:
            self.supported(operand.dtype)
        return super().common(operands)

    def updated_dtype(self, op: str, into: Typed, updates: Typed) -> DType:
        """Return the dtype of the array that an op of UPDATES writes to.

        Refuse complex updates of a real array.

        Libraries only warn when such an update drops imaginary parts.
        """
        dtype, source = self.common([into]), self.supported(updates.dtype)
        if source.is_complex and not dtype.is_complex:
            why = f"{op} would drop the imaginary part of what it puts"
            raise self.refusal((dtype, source), why)
        return dtype

    def supported(self, dtype: DType) -> DType:
        """Return `dtype` if the library has it; raise PromotionError otherwise."""
        if dtype.code not in self._dtype_codes:
            raise self.lacking(dtype, f"{self.library} has no {self.name_of(dtype)}")
        return dtype

    def lacking(self, dtype: DType, why: str) -> PromotionError:
        """Build the error for a dtype that the library lacks.

        Its fixes name a dtype and the first two families of rule sets that have it.
        """
        near = instead_of(dtype, self.dtypes)
        fix = f"choose one of {', '.join(map(str, self.dtypes))}"
        if near is not None and dtype.exact_in(near):
            fix = f"write DType.{near}, which has all its values"
        problem = f"there is no {self.name_of(dtype)} under {self.name!r}"
        having = [each.name for each in rule_sets() if each.lattice and dtype in each.dtypes]
        families = {name.partition("_")[0]: name for name in reversed(["max", *having])}
        names = [f"rules={name!r}" for name in reversed(families.values())][:2]
        verb = "has" if len(names) == 1 else "have"
        other = f"{' or '.join(names)}, which {verb} it"
        return PromotionError(problem, reason=why, fix=(fix, RulesFix(other)))

    def division(self, dtype: DType, op: str) -> DType:
        """Return the dtype in which `/` computes: that of functions of floats."""
        return self.floating(dtype, op)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the weak dtype of the scalar's Python type, whatever its partners are.

        The method raises PromotionError for an int beyond 64 bits.
        """
        dtype = WEAK[type(value)]
        if dtype is DType.weak_int and not -(2**63) <= value < 2**63:
            raise PromotionError(
                f"the literal {number_text(value)} does not fit the 64 bits of an int under "
                f"{self.name!r}",
                fix=("write a float", "g.scalar[DType.uint64](...) where that holds it"),
                op=place.op,
            )
        return dtype

    def exponent(self, value: int, dtype: DType) -> None:
        """Raise PromotionError for a negative literal exponent of an integer base."""
        if value < 0:
            raise PromotionError(
                f"{self.library} raises no integer to the negative power {number_text(value)}",
                fix=(f"write {float_of(value)!r}", f"cast the {dtype} to a float"),
            )


Facts: TypeAlias = Mapping[str, Mapping[DType, "DType | None"]]


def by_op(facts: Facts) -> Facts:
    """Expand a mapping whose keys list several ops, such as `"floor ceil"`, to a mapping by op."""
    facts_by_op: dict[str, dict[DType, DType | None]] = {}
    for names, dtypes in facts.items():
        for name in names.split():
            facts_by_op.setdefault(name, {}).update(dtypes)
    return facts_by_op


# -- no library: every conversion is a cast


class Explicit(PromotionRules):
    """The rule set of a graph after `implicit_cast`: operands of different dtypes raise.

    Every operand already has the dtype that the op's signature demands.
    """

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Raise PromotionError: different dtypes never join."""
        raise self.refusal(dtypes, "every operand must already have the dtype of the op")

    implicit = False
    exceptions = by_op({"reciprocal": {dtype: dtype for dtype in DType if dtype.is_integer}})
    bool_arithmetic = PromotionRules.bool_arithmetic | {"abs", "floor", "ceil", "trunc", "sign"}

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return the operands' one dtype, or their own dtypes for a pair of int64 and uint64.

        No integer dtype holds both int64 and uint64, yet the comparison kernel compares them
        exactly.
        """
        dtypes = tuple([operand.dtype for operand in operands])
        return dtypes if {*dtypes} == _EXACT else super().comparison_dtypes(operands, op)

    def division(self, dtype: DType, op: str) -> DType:
        """Return a float or complex dtype unchanged; refuse integers and bool."""
        return self.floating(dtype, op)

    def ordering(self, dtype: DType, op: str) -> DType:
        """Return any dtype unchanged. Complex numbers sort by real part, then by imaginary part."""
        return dtype


_EXACT = {DType.int64, DType.uint64}

EXPLICIT = Explicit("explicit", "What a graph has after implicit_cast: no conversion is implied.")
