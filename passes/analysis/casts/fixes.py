"""The fixes of rows: the line to type instead of a cast, or so that a step keeps its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphir.passes.analysis import suggestions
from graphir.passes.analysis.expressions import (
    Expression,
    expression,
    statement,
    syntax_of,
    with_dtype,
)
from graphir.passes.analysis.suggestions import Promotion, UncastOp, operand_name, rewritten
from graphir.public import DType, PromotionRules, Symbol, ops
from graphir.source_text import source_line

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import LossRow
    from graphir.passes.analysis.casts.rows import CastRow


def cast_fix(row: CastRow) -> str:
    """Return the code to type instead of a row's cast (see passes.analysis.suggestions.fix).

    Returns "" for a cast that needs no fix: the user's own cast, an exact consequence of another
    cast, a number that its dtype merely rounds. Returns "" for a cast inside a compound function
    too, since no line of the program can change it.
    """
    if row.op in ops.CONTROL:
        return _in_control_flow(row)
    if row.location.compound:
        return ""
    if row.conversion.stores:
        syntax = syntax_of(row.symbol.graph)
        is_assignment = row.kind == "assignment"
        return (
            suggestions.cast_assignment(row.location, row.target, syntax) if is_assignment else ""
        )
    promotion = _promotion(row)
    return suggestions.fix(promotion, row.location) if promotion else ""


def _in_control_flow(row: CastRow) -> str:
    """Return the cast to write around a value that enters or leaves a graph of control flow."""
    if row.uses.of(row).user is None or row.kind not in ("implicit", "literal"):
        return ""
    value, target, syntax = row.operands[row.position], row.target, syntax_of(row.symbol.graph)
    if row.kind == "literal":
        return syntax.number_of(repr(value.attrs["value"].item()), target)
    source = row.uses.expression(value.location)
    if source is None or value.location.compound or not value.args:
        return f"{row.op} of {syntax.cast_of(row.operand, target)}"
    return syntax.cast_of(source.brief, target)


def _promotion(row: CastRow) -> Promotion | None:
    conversion, (user, position, cause) = row.conversion, row.uses.of(row)
    kind, loss = conversion.kind, conversion.loss
    if user is None or kind not in ("implicit", "literal") or (loss.exact and cause):
        return None
    values, casts, number = (
        row.uses.operands(user),
        {position: conversion.target},
        kind == "literal",
    )
    return Promotion(
        PromotionRules.find(conversion.rule), user.op, values, casts, position, loss, number
    )


# -- losses


def loss_fix(row: LossRow) -> str:
    """Return the expression of a step with its operands cast to a dtype that holds its result.

    That is float64 for floats, and for integers the smallest dtype of at least twice the bits that
    holds the worst result. Returns "" in a function of a library, which no line of the program can
    change, and for a step in a dtype that no wider one holds.
    """
    dtype, source, syntax = wider(row), row.expression, syntax_of(row.symbol.graph)
    if source and row.kind == "overflow" and (text := _clamped(row, source)):
        return text
    if dtype is not None and source and row.location.compound and _takes_dtype(source.text):
        return " ".join(with_dtype(source.text, syntax.dtype_of(dtype), always=True).split())
    symbol = row.symbol
    if dtype is None or row.location.compound or row.kind == "invalid":
        return ""
    if symbol.op is ops.index_add:  # a call that writes to its operand, which no cast may replace
        return ""
    if source and source.is_augmented and source.operand(0).endswith("]"):
        return maker_fix(row, symbol.args[0], dtype)  # elements keep the dtype of their array
    if source and source.is_augmented and not symbol.shape:
        number = syntax.number_of(source.operand(1), dtype)
        return " ".join(source.replaced({1: number}).split())
    if source and (text := with_dtype(source.text, syntax.dtype_of(dtype))):
        return " ".join(text.split())
    positions = symbol.op.signature.promoted or range(len(symbol.args))
    values = row.uses.operands(symbol)
    uncast = UncastOp(symbol.graph.rules, symbol.op, values)
    casts = {i: dtype for i in positions if values[i].op is not ops.constant or values[i].shape}
    return rewritten(uncast, row.location, casts or dict.fromkeys(positions, dtype))


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


def source_fix(row: CastRow) -> str:
    """Return the line that keeps the values that a cast in a library's program lost; else "".

    A cast of floats that the program asks for is left out, and one of integers goes to a float
    dtype that has the values. A step of autocast runs outside of it. A node Cast of a model keeps
    the dtype of its operand.
    """
    source, library = row.expression, row.symbol.graph.provenance.library
    if row.kind == "autocast":
        return _outside_autocast(row)
    if library == "onnx" and row.kind in ("explicit", "exporter"):
        name = operand_name(ops.cast, row.symbol.args[0], 0)
        return syntax_of(row.symbol.graph).cast_of(name, row.source)
    if row.kind != "explicit" or not library or source is None or not source.operand(0):
        return ""
    if row.source.is_inexact or not row.target.is_inexact:
        return source.operand(0) if row.source.is_inexact and row.target.is_inexact else ""
    worst = row.measured.worst if row.measured is not None else None
    is_small = worst is not None and abs(worst[0]) <= 2**DType.float32.precision
    wide = DType.float32 if is_small else DType.float64
    return syntax_of(row.symbol.graph).cast_of(source.operand(0), wide)


def _outside_autocast(row: CastRow) -> str:
    """Return the statement of a step under autocast, without it; "" if its operands differ."""
    line = source_line(row.location.source, row.location.line).strip()
    steps = [x for x in row.symbol.graph.symbols if x.location == row.location]
    operands = [x for step in steps for x in step.args if x.location != row.location]
    node, dtypes = statement(line), {x.dtype for x in operands if x.dtype.is_float}
    if node is None or len(dtypes) != 1:
        return ""
    return f'with torch.autocast("cpu", enabled=False): {line[: node.end_col_offset]}'


def number_fix(row: CastRow) -> str:
    """Return the line that keeps a Python number whose rounding made an error; "" for other rows.

    The other operands get the dtype of Python's floats.
    """
    if row.kind != "literal" or row.user is None or row.location.compound:
        return ""
    uncast = UncastOp(row.symbol.graph.rules, row.user.op, row.uses.operands(row.user))
    wide = DType.complex128 if row.target.is_complex else DType.float64
    casts = {i: wide for i, x in enumerate(uncast.values) if x.op is not ops.constant}
    return rewritten(uncast, row.location, casts) if row.target is not wide else ""


def _takes_dtype(text: str) -> bool:
    """Whether a text calls a reduction of NumPy that takes the dtype of its sum."""
    names = ("sum", "mean", "prod", "std", "var")
    return text.startswith(tuple(f"np.{nan}{name}(" for name in names for nan in ("", "nan")))


def measured_fix(row: CastRow) -> str:
    """Return the line that keeps the values that a cast lost in a run; "" for other casts.

    Floats beyond an integer dtype are clipped to its range. If an assignment truncated floats, the
    array gets a float dtype where the program makes it.
    """
    measured, source = row.measured, row.expression
    if measured is None or not row.target.is_integer or source is None:
        return ""
    if row.kind == "explicit" and measured.overflowed and source.spans:
        limits = f"{int(row.target.min)}, {int(row.target.max)}"
        operand = source.operand(0)
        if operand.startswith("(") and statement(operand[1:-1]) is not None:
            operand = operand[1:-1]
        return " ".join(source.replaced({0: f"np.clip({operand}, {limits})"}).split())
    if row.kind != "assignment" or row.source.is_integer:
        return ""
    users = (x for x in row.symbol.graph.symbols if any(arg is row.symbol for arg in x.args))
    array = next(users, None)
    source_dtype = row.symbol.graph.concrete_dtype(row.source)
    return "" if array is None else maker_fix(row, array, source_dtype)


def maker_fix(row: CastRow, array: Symbol, dtype: DType) -> str:
    """Return the line that makes an array in a dtype, to which a row writes; "" if none makes it.

    The first operand of each write is the array before it.
    """
    while array.args:
        array = array.args[0]
    is_made = array.op.kind == "creation" and array.op is not ops.input
    text = expression(array.location) if is_made else None
    if text is None:
        return ""
    fix = with_dtype(text.text, syntax_of(array.graph).dtype_of(dtype), always=True)
    is_same_line = array.location.place[:2] == row.location.place[:2]
    return fix if is_same_line or not fix else f"{fix} in line {array.location.line}"


def wider(row: LossRow) -> DType | None:
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
