"""Fixes: the edit that answers a row of a report, a policy's hit, or a step that lost values.

The fix of an implicit cast depends on its loss. If the operands lose values at their join, the fix
casts all of them to the smallest dtype that has every value of each. If a known number fits the
narrow operand's dtype, the fix casts the number. Otherwise the fix writes the implicit casts down.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.ir.op_builder import infer
from graphir.ir.operands import number_of
from graphir.ir.symbol import Symbol
from graphir.location import Location
from graphir.loss import Loss, literal_loss
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.passes.analysis.explanations.edits import (
    Edit,
    UncastOp,
    assignment_edit,
    call_edit,
    code_edit,
    operand_name,
    words,
)
from graphir.passes.analysis.expressions import Expression, expression, statement, syntax_of
from graphir.promotion import PromotionRules
from graphir.promotion.operands import smallest_holding
from graphir.promotion.scalars import survives
from graphir.source_text import source_line

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import LossRow
    from graphir.passes.analysis.casts.rows import CastRow


# -- implicit casts


class Promotion(NamedTuple):
    """An op before any cast, and the implicit `casts` of its operands by position.

    The cast in question is that of the operand at `position`, with the given `loss`. `number` is
    True if that operand is a Python number that the program writes without a dtype.
    """

    uncast: UncastOp
    casts: Mapping[int, DType]
    position: int
    loss: Loss
    number: bool = False

    @property
    def meeting(self) -> Sequence[int]:
        """The positions of the operands that promote together."""
        positions = self.uncast.op.signature.promoted
        return range(len(self.uncast.values)) if positions is None else positions

    @property
    def others(self) -> Sequence[int]:
        """The positions of the operands that promote with the operand in question."""
        return [i for i in self.meeting if i != self.position]

    def operands(self, casts: Mapping[int, DType]) -> Sequence[DType] | None:
        """Return the operand dtypes that the rules demand after `casts`; None if they refuse."""
        rules, op, values = self.uncast
        types = [x.type.cast(casts.get(i, x.dtype)) for i, x in enumerate(values)]
        return _operand_dtypes(rules, op, tuple(types))

    def edit(self, place: Location, avoid: Collection[DType] = ()) -> Edit | None:
        """Return the edit after which no cast is silent and no avoidable loss remains.

        If operands lose values, it casts all to the smallest dtype that has every value of each,
        unless `avoid` has that dtype. If a known number fits the narrow dtype, it casts the number
        to the narrow dtype. Otherwise it writes the implicit casts down; for an op of more than
        MOST_OPERANDS operands it names only the cast in question. Returns None for a number that
        its dtype merely rounds.
        """
        if len(self.uncast.values) > MOST_OPERANDS:
            is_written = self.position in self.casts and not self.number
            casts = {self.position: self.casts[self.position]} if is_written else {}
            return words(place, self.uncast.in_words(casts))
        return self.uncast.edit(place, self._target_dtypes(avoid))

    def _target_dtypes(self, avoid: Collection[DType]) -> Mapping[int, DType]:
        """Return the dtypes to which the fix casts operands, by position."""
        if self.number:
            return self._around_number(avoid)
        if self.loss.exact:
            return self._narrowed_number() or self._written_down()
        return self._holding(avoid) or self._integers() or self._written_down()

    def _integers(self) -> dict[int, DType]:
        """Return the cast that keeps integers of unlike signs integers, in place of floats.

        No integer dtype has all values of uint64 and of a signed one. Known values without a sign
        take the unsigned dtype; else all take int64.
        """
        target, values = self.casts.get(self.position), self.uncast.values
        dtypes = {i: values[i].dtype for i in self.meeting}
        if target is None or not target.is_float or not all(x.is_integer for x in dtypes.values()):
            return {}
        signed = {i: dtype for i, dtype in dtypes.items() if dtype.family == "int"}
        unsigned = {i: dtype for i, dtype in dtypes.items() if dtype.family == "uint"}
        if not signed or not unsigned or any(dtype.weak for dtype in dtypes.values()):
            return {}
        no_signs = all(_has_no_sign(values[i]) for i in signed)
        common = max(unsigned.values(), key=lambda x: x.bits) if no_signs else DType.int64
        casts = {i: common for i, dtype in dtypes.items() if dtype is not common}
        after = self.operands(casts)
        return casts if after and all(after[i] is common for i in dtypes) else {}

    def _written_down(self) -> Mapping[int, DType]:
        """Return the implicit casts as they are, or casts of all operands that promote together.

        The second answer is for rules that refuse the op after the cast in question alone.
        """
        if self.operands(self.casts) is not None or self.position not in self.meeting:
            return self.casts
        target, values = self.casts[self.position], self.uncast.values
        return {i: target for i in self.meeting if values[i].dtype is not target}

    def _holding(self, avoid: Collection[DType]) -> dict[int, DType]:
        """Return casts to the smallest dtype of the target's family that has all values."""
        target, rules = self.casts.get(self.position), self.uncast.rules
        least = _LEAST.get(target.family, ()) if target else ()
        dtypes = {i: self.uncast.values[i].dtype for i in self.meeting}
        holding = smallest_holding([*dtypes.values(), *least])
        if self.position not in dtypes or holding is None or holding in avoid:
            return {}
        if not rules.has(holding) or rules.promote(holding, holding) is not holding:  # no int64
            return {}
        return {i: holding for i, dtype in dtypes.items() if dtype is not holding}

    def _narrowed_number(self) -> dict[int, DType]:
        """Return the cast of the other operand to the narrow dtype, if it is a number that fits."""
        values, others = self.uncast.values, self.others
        narrow = values[self.position].dtype
        fitting = {i: narrow for i in others if _fits(values[i], narrow)}
        dtypes = self.operands(fitting) if len(fitting) == len(others) == 1 else None
        return fitting if dtypes and dtypes[self.position] is narrow else {}

    def _around_number(self, avoid: Collection[DType]) -> dict[int, DType]:
        """Return casts of the other operands to a float wide enough for an out-of-range number."""
        number = self.loss.witness
        if number is None or self.loss.kinds in (("precision",), ("special",)):
            return {}
        for wide in (DType.float32, DType.float64):
            if literal_loss(number, wide).kinds in ((), ("precision",)) and wide not in avoid:
                return dict.fromkeys(self.others, wide)
        return {}


MOST_OPERANDS = 16
"""The most operands of an op whose fix quotes source and casts several operands."""

_LEAST = {"float": (DType.float16,), "complex": (DType.complex64,)}


@lru_cache(maxsize=4096)
def _operand_dtypes(
    rules: PromotionRules, op: Op, types: tuple[TensorType, ...]
) -> tuple[DType, ...] | None:
    """Return the dtypes that rules demand of an op's operands, or None if they refuse the op."""
    try:
        return infer(rules, op, types, {}).operands
    except GraphirError:
        return None


def _has_no_sign(symbol: Symbol) -> bool:
    """Whether a symbol is known to have no negative value: a range or a constant."""
    attrs = symbol.attrs
    if symbol.op is ops.range:
        return attrs["start"] >= 0 and attrs["step"] >= 0
    return symbol.op is ops.constant and bool(np.all(attrs["value"] >= 0))


def _fits(symbol: Symbol, dtype: DType) -> bool:
    """Whether a symbol is a known number that a dtype represents exactly."""
    number = number_of(symbol)
    return number is not None and survives(number, dtype)


def row_edit(row: CastRow) -> Edit | None:
    """Return the edit in place of a row's cast: where a run lost values, one that keeps them.

    Returns None for a cast that needs no fix: the user's own cast, an exact consequence of another
    cast, a number that its dtype merely rounds. Returns None for a cast inside a compound function
    too, since no line of the program can change it.
    """
    if (edit := _measured_edit(row)) is not None:
        return edit
    if row.op in ops.CONTROL:
        return _in_control_flow(row)
    if row.location.compound:
        return None
    if row.conversion.stores:
        syntax, is_assignment = syntax_of(row.symbol.graph), row.kind == "assignment"
        return assignment_edit(row.location, row.target, syntax) if is_assignment else None
    conversion, (user, position, cause) = row.conversion, row.uses.of(row)
    kind, loss = conversion.kind, conversion.loss
    if user is None or kind not in ("implicit", "literal") or (loss.exact and cause):
        return None
    uncast = UncastOp(PromotionRules.find(conversion.rule), user.op, row.uses.operands(user))
    casts = {position: conversion.target}
    return Promotion(uncast, casts, position, loss, kind == "literal").edit(row.location)


def _in_control_flow(row: CastRow) -> Edit | None:
    """Return the cast to write around a value that enters or leaves a graph of control flow."""
    if row.uses.of(row).user is None or row.kind not in ("implicit", "literal"):
        return None
    value, target, syntax = row.operands[row.position], row.target, syntax_of(row.symbol.graph)
    if row.kind == "literal":
        number = syntax.number_of(repr(value.attrs["value"].item()), target)
        return words(row.location, number)
    source = expression(value.location)
    if source is None or value.location.compound or not value.args:
        return words(row.location, f"{row.op} of {syntax.cast_of(row.operand, target)}")
    return code_edit(value.location, syntax.cast_of(source.brief, target))


# -- losses


def loss_edit(row: LossRow) -> Edit | None:
    """Return the edit of a step that casts its operands to a dtype that holds its result.

    That is float64 for floats, and for integers the smallest dtype of at least twice the bits that
    holds the worst result. Returns None in a function of a library, which no line of the program
    can change, and for a step in a dtype that no wider one holds.
    """
    dtype, source, syntax = wider(row), row.expression, syntax_of(row.symbol.graph)
    place, symbol = row.location, row.symbol
    if source and row.kind == "overflow" and (text := _clamped(row, source)):
        return code_edit(place, text)
    if dtype is not None and source and place.compound and _takes_dtype(source.text):
        return call_edit(symbol, dtype, always=True)
    if dtype is None or place.compound or row.kind == "invalid":
        return None
    if symbol.op is ops.index_add:  # a call that writes to its operand, which no cast may replace
        return None
    if source and source.is_augmented and source.operand(0).endswith("]"):
        return maker_edit(symbol.args[0], dtype)  # elements keep the dtype of their array
    if source and source.is_augmented and not symbol.shape:
        number = syntax.number_of(source.operand(1), dtype)
        return code_edit(place, source.replaced({1: number}), {1: dtype})
    if edit := call_edit(symbol, dtype):
        return edit
    if symbol.graph.provenance.library and row.uses.facts.is_function(symbol):
        return None  # the operands of the text are the function's
    positions = symbol.op.signature.promoted or range(len(symbol.args))
    values = row.uses.operands(symbol)
    casts = {i: dtype for i in positions if values[i].op is not ops.constant or values[i].shape}
    uncast = UncastOp(symbol.graph.rules, symbol.op, values)
    return uncast.edit(place, casts or dict.fromkeys(positions, dtype))


def _clamped(row: LossRow, source: Expression) -> str:
    """Return the sum of torch clamped to its dtype if an operand is the dtype's least or greatest.

    Masks have that value: the sum is to be as low, and not infinite. Returns "" for other steps.
    """
    dtype, measured = row.source, row.measured
    library = row.symbol.graph.provenance.library
    is_sum = row.symbol.op in (ops.add, ops.subtract) and library == "torch"
    if not is_sum or measured is None or source.is_augmented or row.location.compound:
        return ""
    limits = {float(dtype.min): "min", float(dtype.max): "max"}
    name = next((limits[x.real] for x in measured.operands if x.real in limits), "")
    limit = f"{name}=torch.finfo(torch.{dtype}).{name}"
    return f"torch.clamp({source.brief}, {limit})" if name else ""


def _takes_dtype(text: str) -> bool:
    """Whether a text calls a reduction of NumPy that takes the dtype of its sum."""
    names = ("sum", "mean", "prod", "std", "var")
    return text.startswith(tuple(f"np.{nan}{name}(" for name in names for nan in ("", "nan")))


def source_edit(row: CastRow) -> Edit | None:
    """Return the edit that keeps the values that a cast in a library's program lost; else None.

    A cast of floats that the program asks for is left out, and one of integers goes to a float
    dtype that has the values. A step of autocast runs outside of it. A node Cast of a model is left
    out.
    """
    source, library = row.expression, row.symbol.graph.provenance.library
    place, syntax = row.location, syntax_of(row.symbol.graph)
    if row.kind == "autocast":
        return _outside_autocast(row)
    if library == "onnx" and row.kind in ("explicit", "exporter"):
        name = operand_name(ops.cast, row.symbol.args[0], 0)
        return words(place, f"{name}, without this Cast")
    if row.kind != "explicit" or not library or source is None or not source.operand(0):
        return None
    operand = row.symbol.args[0]
    if operand.op is ops.constant and operand.location == place:
        return None  # an array of NumPy of which this call makes a tensor
    if row.source.is_inexact or not row.target.is_inexact:
        is_of_floats = row.source.is_inexact and row.target.is_inexact
        return code_edit(place, source.operand(0), dtype=row.source) if is_of_floats else None
    worst = row.measured.worst if row.measured is not None else None
    is_small = worst is not None and abs(worst[0]) <= 2**DType.float32.precision
    wide = DType.float32 if is_small else DType.float64
    return code_edit(place, syntax.cast_of(source.operand(0), wide), dtype=wide)


def _outside_autocast(row: CastRow) -> Edit | None:
    """Return the statement of a step under autocast, without it; None if its operands differ."""
    line = source_line(row.location.source, row.location.line).strip()
    steps = [x for x in row.symbol.graph.symbols if x.location == row.location]
    operands = [x for step in steps for x in step.args if x.location != row.location]
    node, dtypes = statement(line), {x.dtype for x in operands if x.dtype.is_float}
    if node is None or len(dtypes) != 1:
        return None
    text = f'with torch.autocast("cpu", enabled=False): {line[: node.end_col_offset]}'
    return words(row.location, text)


def number_edit(row: CastRow) -> Edit | None:
    """Return the edit that keeps a Python number whose rounding made an error; None of other rows.

    The other operands get the dtype of Python's floats.
    """
    if row.kind != "literal" or row.user is None or row.location.compound:
        return None
    uncast = UncastOp(row.symbol.graph.rules, row.user.op, row.uses.operands(row.user))
    wide = DType.complex128 if row.target.is_complex else DType.float64
    casts = {i: wide for i, x in enumerate(uncast.values) if x.op is not ops.constant}
    return uncast.edit(row.location, casts) if row.target is not wide else None


def _measured_edit(row: CastRow) -> Edit | None:
    """Return the edit that keeps the values that a cast lost in a run; None of other casts.

    Floats beyond an integer dtype are clipped to its range. If an assignment truncated floats, the
    array gets a float dtype where the program makes it.
    """
    measured, source = row.measured, row.expression
    if measured is None or not row.target.is_integer or source is None:
        return None
    if row.kind == "explicit" and measured.overflowed and source.spans:
        limits = f"{int(row.target.min)}, {int(row.target.max)}"
        operand = source.operand(0)
        if operand.startswith("(") and statement(operand[1:-1]) is not None:
            operand = operand[1:-1]
        return code_edit(row.location, source.replaced({0: f"np.clip({operand}, {limits})"}))
    if row.kind != "assignment" or row.source.is_integer:
        return None
    users = (x for x in row.symbol.graph.symbols if any(arg is row.symbol for arg in x.args))
    array = next(users, None)
    dtype = row.symbol.graph.concrete_dtype(row.source)
    return None if array is None else maker_edit(array, dtype)


def maker_edit(array: Symbol, dtype: DType) -> Edit | None:
    """Return the edit that makes an array in a dtype, where it is made; None if nothing makes it.

    The first operand of each write to the array is the array before it.
    """
    while array.args:
        array = array.args[0]
    is_made = array.op.kind == "creation" and array.op is not ops.input
    return call_edit(array, dtype, always=True) if is_made else None


def wider(row: CastRow) -> DType | None:
    """Return the dtype in which a step would keep its values; None if there is none."""
    source, worst = row.source, row.measured and row.measured.worst
    if source.is_complex:
        return None if source is DType.complex128 else DType.complex128
    if not source.is_integer:
        exact = abs(worst[0]) if worst else math.inf
        library = row.symbol.graph.provenance.library
        if library and source.bits < 32 and exact <= float(DType.float32.max):
            return DType.float32
        return None if source is DType.float64 else DType.float64
    exact = worst[0].real if worst else math.inf
    holding = [x for x in _INTEGERS if x.bits >= 2 * source.bits and x.min <= exact <= x.max]
    return next(iter(holding), DType.float64)


_INTEGERS = (DType.int16, DType.int32, DType.int64)
