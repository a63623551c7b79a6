"""The dtype rules of ops: the dtype that each operand must have, and the dtype of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from graphir.dtypes import DType
from graphir.errors import REAL_PARTS, PromotionError, cast_first
from graphir.ops.op import Attributes, Op, Resolved, Signature, Types, find
from graphir.promotion.python import ruling
from graphir.promotion.rules import Family, PromotionRules
from graphir.promotion.scalars import fits, misfit

Rule: TypeAlias = Callable[[PromotionRules, Op, Types, Attributes], Resolved]


def _no_complex(op: Op, dtype: DType) -> DType:
    if dtype.is_complex:
        problem = f"it is not defined for {dtype}, whose values have no order or floor"
        raise PromotionError(problem, fix=REAL_PARTS, op=op.name)
    return dtype


def _all(types: Types, dtype: DType) -> tuple[DType, ...]:
    return (dtype,) * len(types)


def common_dtype(family: Family, rules: PromotionRules, op: Op, types: Types) -> DType:
    """Return the dtype in which an op of a family computes, for operands that promote together."""
    rules = ruling(rules, op.name, types)
    return rules.family_dtype(family, rules.meeting(types, op.name), op.name)


def _together(family: Family, *, real: bool = False) -> Rule:
    """Return the dtype rule of ops whose operands and result share one dtype."""

    def resolve(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
        if op.name in rules.unconverted:
            dtypes = tuple([rules.supported(type_.dtype) for type_ in types])
            return Resolved(dtypes, dtypes[0])
        dtype = common_dtype(family, rules, op, types)
        return Resolved(_all(types, _no_complex(op, dtype) if real else dtype), dtype)

    return resolve


def _alone(family: Family) -> Rule:
    """Return the dtype rule of unary ops with a real result, such as magnitudes and parts."""

    def resolve(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
        dtype = common_dtype(family, rules, op, types)
        return Resolved((dtype,), dtype.part)

    return resolve


def _comparison(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved(ruling(rules, op.name, types).comparison_dtypes(types, op.name), DType.bool)


def _order(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    rules = ruling(rules, op.name, types)
    dtypes = rules.comparison_dtypes(types, op.name)
    return Resolved(tuple(rules.family_dtype("ordering", d, op.name) for d in dtypes), DType.bool)


def _step(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    resolution = _together("floating", real=True)(rules, op, types, attrs)
    if rules.concrete_dtype(resolution.result) not in (DType.float32, DType.float64):
        raise PromotionError(
            "it steps through float32 or float64 alone",
            reason="arithmetic in narrower floats is that of float32, rounded",
            got=str(resolution.result),
            fix=cast_first(DType.float32),
            op=op.name,
        )
    return resolution


def _predicate(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved((common_dtype("inspection", rules, op, types),), DType.bool)


def _sign_predicate(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved((_no_complex(op, common_dtype("inspection", rules, op, types)),), DType.bool)


def _logical(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    """Resolve a logical op, whose operands convert to truth values separately.

    The rules must also promote the operands' dtypes.
    """
    truths = tuple(rules.family_dtype("truth", type_.dtype, op.name) for type_ in types)
    rules.meeting(types, op.name)
    return Resolved(truths, rules.verdict(types[0].dtype, op.name))


def _select(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    condition = rules.family_dtype("truth", types[0].dtype, op.name)
    dtype = common_dtype("movement", rules, op, types[1:])
    return Resolved((condition, dtype, dtype), dtype)


def _accumulation(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    source, named_dtype = rules.source_dtype(types[0].dtype, op.name), _named_dtype(rules, attrs)
    if named_dtype not in (None, source) and not rules.implicit:
        rules.join((source, named_dtype))
    if named_dtype is not None:
        dtype = rules.accumulator(named_dtype, op.name)
    else:
        dtype = common_dtype("accumulation", rules, op, types)
    _castable(op, source, dtype)
    return Resolved((dtype,), dtype)


def _masked(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    """Resolve x by the rules of the op `sum`; the mask is a truth value."""
    dtype = _accumulation(rules, find("sum"), types[:1], attrs).result
    if attrs["initial"] is not None:
        _number(op, attrs["initial"], rules.concrete_dtype(dtype))
    return Resolved((dtype, rules.family_dtype("truth", types[1].dtype, op.name)), dtype)


def _clip(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = common_dtype("ordering", rules, op, types)
    return Resolved(_all(types, dtype), rules.clip_dtype(types[0].dtype, dtype))


def _position(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = common_dtype("ordering", rules, op, types)
    result = _named_dtype(rules, attrs) or rules.position(op.name)
    return Resolved(_all(types, dtype), _integer(op, result))


def _lookup(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    """Resolve gather-like ops: data operands join, and the last operand holds indices."""
    data = common_dtype("movement", rules, op, types[:-1])
    for type_ in types[:-1]:
        _castable(op, type_.dtype, data)
    indices = rules.index_dtype(types[-1].dtype, op.name)
    return Resolved((*_all(types[:-1], data), indices), data)


def _update(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = common_dtype("movement", rules, op, types)
    for type_ in types:
        _castable(op, type_.dtype, dtype)
    return Resolved(_all(types, dtype), dtype)


def _named_dtype(rules: PromotionRules, attrs: Attributes) -> DType | None:
    """Return the dtype that the user named, or None; PromotionError if the rules lack it."""
    return attrs["dtype"] and rules.supported(attrs["dtype"])


def _integer(op: Op, dtype: DType) -> DType:
    if not dtype.is_integer:
        raise PromotionError("its result must have an integer dtype", got=str(dtype), op=op.name)
    return dtype


_same = _together("movement")


def _padding(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    resolution = _same(rules, op, types, attrs)
    _number(op, attrs["value"], rules.concrete_dtype(resolution.result))
    return resolution


def _number(op: Op, value: Any, dtype: DType) -> None:
    """Raise PromotionError unless a number attribute fits its dtype, under any rules."""
    if not fits(value, dtype):
        raise PromotionError.like(misfit(value, dtype), op=op.name)


def _castable(op: Op, source: DType, target: DType) -> None:
    if source.is_complex and not (target.is_complex or target is DType.bool):
        raise PromotionError(
            f"{source} to {target} would drop the imaginary part",
            fix="take .real first",
            op=op.name,
        )


def _cast(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    _castable(op, types[0].dtype, rules.supported(attrs["to"]))
    return Resolved((types[0].dtype,), attrs["to"])


def _creation(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    if "value" in attrs:
        _number(op, attrs["value"], rules.concrete_dtype(attrs["dtype"]))
    return Resolved((), rules.supported(attrs["dtype"]))


def _constant(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype, storage = attrs["dtype"], attrs["value"].dtype
    if storage != dtype.storage:
        raise PromotionError(
            f"a constant of {dtype} is stored as {dtype.storage}",
            fix=f"g.constant[DType.{dtype}](...) converts what fits",
            got=f"{storage}",
        )
    return Resolved((), rules.supported(dtype))


def _shape_dtype(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    result = _named_dtype(rules, attrs) or rules.position(op.name)
    return Resolved((types[0].dtype,), _integer(op, result))


def _complex_of(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _no_complex(op, common_dtype("floating", rules, op, types))
    result = _COMPLEX.get(dtype)
    if result is None:
        dtype, result = DType.float32, DType.complex64
    return Resolved(_all(types, dtype), result)


_COMPLEX = {DType.float64: DType.complex128, DType.weak_float: DType.weak_complex}


_MEANINGS = {
    "arithmetic": "Operands meet in one dtype, which the result has.",
    "real arithmetic": "Operands meet in one dtype, not complex, which the result has.",
    "join": "Operands meet in one dtype, which the result has.",
    "ordering": "Operands meet in one dtype that has an order, which the result has.",
    "clip": "Operands meet in one dtype; the result has it, or that of x, as the rules say.",
    "comparison": "Operands meet in one dtype to be compared; the result is bool.",
    "order": "Operands meet in one dtype that has an order; the result is bool.",
    "division": "Operands meet in one dtype, integers in a float that the rules name.",
    "floating": "Operands meet in a float or complex dtype that the rules name; so the result.",
    "real floating": "Operands meet in a float dtype that the rules name; so the result.",
    "step": "Operands meet in float32 or float64, which the result has.",
    "magnitude": "The result has the dtype of x; of a complex one, that of its parts.",
    "part": "The result has the dtype of x; of a complex one, that of its parts.",
    "predicate": "The result is bool.",
    "sign predicate": "x is not complex; the result is bool.",
    "logical": "Operands are truth values, and so is the result.",
    "bitwise": "Operands meet in an integer dtype or bool, which the result has.",
    "shift": "Operands meet in an integer dtype, which the result has.",
    "select": "condition is bool; x and y meet in one dtype, which the result has.",
    "accumulation": "The result has the dtype asked for, else that in which the rules accumulate.",
    "masked accumulation": "The result has the dtype of sum(x); the mask is bool.",
    "mean": "The result has a float or complex dtype that the rules name.",
    "spread": "The result has a float dtype that the rules name.",
    "position": "The result has the integer dtype asked for, else the rules' dtype of positions.",
    "lookup": "indices are integers; the result has the dtype of x.",
    "scatter": "x and updates meet in one dtype, which the result has; indices are integers.",
    "update": "x and updates meet in one dtype, which the result has.",
    "same": "The result has the dtype of the operand.",
    "padding": "The result has the dtype of the operand, which must hold the value.",
    "cast": "The result has the dtype asked for; no complex number becomes a real one.",
    "created": "The result has the dtype asked for.",
    "known": "The result has the dtype asked for, in which the values are stored.",
    "sized": "The result has the integer dtype asked for, else the rules' dtype of positions.",
    "complex of": "Operands meet in a float dtype; the result has the complex dtype of such parts.",
}
"""The sentence that the help of an op prints for each rule."""


def _signature(
    name: str, resolve: Rule, *joined_positions: int, other: Any = DType.int64
) -> Signature:
    return Signature(name, resolve, joined_positions or None, other, _MEANINGS[name])


ARITHMETIC = _signature("arithmetic", _together("arithmetic"))
REAL_ARITHMETIC = _signature("real arithmetic", _together("arithmetic", real=True))
JOIN = _signature("join", _same)
ORDERING = _signature("ordering", _together("ordering"))
CLIP = _signature("clip", _clip)
COMPARISON = _signature("comparison", _comparison)
ORDER = _signature("order", _order)
DIVISION = _signature("division", _together("division"))
FLOATING = _signature("floating", _together("floating"))
REAL_FLOATING = _signature("real floating", _together("floating", real=True))
STEP = _signature("step", _step)
MAGNITUDE = _signature("magnitude", _alone("arithmetic"))
PART = _signature("part", _alone("inspection"))
PREDICATE = _signature("predicate", _predicate)
SIGN_PREDICATE = _signature("sign predicate", _sign_predicate)
LOGICAL = _signature("logical", _logical)
BITWISE = _signature("bitwise", _together("bitwise"))
SHIFT = _signature("shift", _together("shift"))
SELECT = _signature("select", _select, 1, 2, other=DType.bool)
ACCUMULATION = _signature("accumulation", _accumulation)
MASKED_ACCUMULATION = _signature("masked accumulation", _masked, 0, other=DType.bool)
MEAN = _signature("mean", _together("average"))
SPREAD = _signature("spread", _alone("average"))
POSITION = _signature("position", _position)
LOOKUP = _signature("lookup", _lookup, 0)
SCATTER = _signature("scatter", _lookup, 0, 1)
UPDATE = _signature("update", _update)
SAME = _signature("same", _same)
PADDING = _signature("padding", _padding)
CAST = _signature("cast", _cast)
CREATION = _signature("created", _creation)
CONSTANT = _signature("known", _constant)
SIZES = _signature("sized", _shape_dtype)
COMPLEX_OF = _signature("complex of", _complex_of)
