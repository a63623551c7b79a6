"""Operands that must have one type, in models that mix types.

ONNX has no promotion, and its checker refuses a Mul of float and int64. Such a model is read with a
cast of the operand that is off, and a note says what to write.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir import DType, GraphError, Symbol, TensorType, ops
from graphir.conversions import convert
from graphir.runtime.sources.onnx_.model import DTYPES


class NodeOperand(NamedTuple):
    """An input of a node: its place and name, and the parameter of the op, with its variable."""

    place: int
    name: str
    symbol: Symbol
    parameter: str
    variable: str

    @property
    def is_constant(self) -> bool:
        """Whether the operand is an initializer or the result of a Constant node."""
        return self.symbol.op is ops.constant


class Misfit(NamedTuple):
    """An operand that is off, the dtype that it needs, and the sentence that says so."""

    operand: NodeOperand
    dtype: DType
    note: str


def misfits(
    onnx: Any, schema: Any, names: Sequence[str], args: Sequence[Symbol | None], declared: Declared
) -> list[Misfit]:
    """Return the operands of a node whose dtypes ONNX refuses; GraphError if no cast is sure."""
    formals, fits = _parameters(onnx, schema)
    groups: dict[str, list[NodeOperand]] = {}
    for place, symbol in enumerate(args):
        name, variable, is_homogeneous = formals[min(place, len(formals) - 1)]
        if symbol is not None and type(symbol.type) is TensorType:
            operand = NodeOperand(place, names[place], symbol, name, variable)
            groups.setdefault(variable if is_homogeneous else str(place), []).append(operand)
    results: list[Misfit] = []
    for group in groups.values():
        variable = group[0].variable
        fit = fits[variable]
        dtypes = {operand.symbol.dtype for operand in group}
        if len(dtypes) == 1 and dtypes <= fit:
            continue
        is_result = any(result.type_str == variable for result in schema.outputs)
        target = _target(group, fit, declared if is_result else Declared(None, False))
        operands = " and ".join(f"{type_name(onnx, x.symbol.dtype)} ({x.name})" for x in group)
        demand = "has one type" if len(dtypes) > 1 else f"takes no {type_name(onnx, *dtypes)}"
        if target is None:
            raise GraphError(f"{schema.name} {demand}", got=operands, fix="insert a Cast")
        for operand in group:
            if operand.symbol.dtype is not target:
                to = type_name(onnx, target)
                fix = f"insert Cast(to={to}) of {operand.name!r} before it"
                if operand.is_constant:
                    fix = f"give the constant {operand.name!r} the type {to}"
                note = f"{schema.name} {demand}, and ONNX promotes nothing; got {operands}; {fix}"
                results.append(Misfit(operand, target, note))
    return results


Parameters: TypeAlias = "tuple[list[tuple[str, str, bool]], dict[str, frozenset[DType]]]"

_PARAMETERS: dict[tuple[str, str, int], Parameters] = {}
"""What `_parameters` has answered, by domain, op and version."""


def _parameters(onnx: Any, schema: Any) -> Parameters:
    """Return the parameters of an op with their type variables, and the dtypes of the variables."""
    key = schema.domain, schema.name, schema.since_version
    if key not in _PARAMETERS:
        formals = [(each.name, each.type_str, each.is_homogeneous) for each in schema.inputs]
        texts = {
            each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints
        }
        names = {f"tensor({type_name(onnx, dtype)})": dtype for dtype in DTYPES.values()}
        fits = {
            variable: frozenset(
                names[text] for text in texts.get(variable, {variable}) & names.keys()
            )
            for _, variable, _ in formals
        }
        _PARAMETERS[key] = formals, fits
    return _PARAMETERS[key]


class Declared(NamedTuple):
    """The dtype that the model states for the first result, and whether it is one of the graph."""

    dtype: DType | None
    is_output: bool


def _target(
    group: Sequence[NodeOperand], fit: frozenset[DType], declared: Declared
) -> DType | None:
    """Return the dtype in which operands meet, or None.

    It is the declared dtype of an output of the graph. Else constants give way to computed values,
    if no value is lost. Else it is the declared dtype of the result, that of most operands, or the
    widest.
    """
    dtypes = {operand.symbol.dtype for operand in group}
    if len(dtypes) == 1:
        return (
            declared.dtype if declared.dtype in fit else next(iter(fit)) if len(fit) == 1 else None
        )
    candidates = dtypes & fit
    if declared.is_output and declared.dtype in candidates:
        return declared.dtype
    others = [operand for operand in group if not operand.is_constant]
    main = {operand.symbol.dtype for operand in others} & fit
    constants = [operand.symbol for operand in group if operand.is_constant]
    if len(main) == 1 and all(_survives(constant, *main) for constant in constants):
        return main.pop()
    if declared.dtype in candidates:
        return declared.dtype
    counts = Counter(operand.symbol.dtype for operand in group if operand.symbol.dtype in fit)
    ranked = sorted(counts, key=lambda dtype: (counts[dtype], dtype.is_inexact, dtype.bits))
    return ranked[-1] if ranked else None


def _survives(constant: Symbol, dtype: DType) -> bool:
    """Whether a constant keeps its values in a dtype, except that floats may round."""
    source: DType = constant.dtype
    array = constant.attrs["value"]
    if source.is_inexact and dtype.is_inexact:
        return dtype.is_complex or not source.is_complex
    back = convert(convert(array, source, dtype), dtype, source)
    return bool(np.array_equal(back, array))


def type_name(onnx: Any, dtype: DType) -> str:
    """Return ONNX's name of a dtype, `float` for float32; graphir's if the version lacks it."""
    number = next(number for number, each in DTYPES.items() if each is dtype)
    numbers: dict[str, int] = dict(onnx.TensorProto.DataType.items())
    return next((name.lower() for name, each in numbers.items() if each == number), str(dtype))
