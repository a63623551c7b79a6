"""The dtype rules of ops: what each operand must be, and what the result is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.op import Attributes, Op, Resolved, Signature, Types
from graphir.promotion.rules import PromotionRules, fits, misfit

Rule: TypeAlias = Callable[[PromotionRules, Op, Types, Attributes], Resolved]


def _no_complex(op: Op, dtype: DType) -> DType:
    if dtype.is_complex:
        raise PromotionError(
            f"{op.name} is not defined for {dtype}, whose values have no order or floor; take "
            ".real, .imag or abs() first"
        )
    return dtype


def _integers(op: Op, dtype: DType, *, or_bool: bool = False) -> DType:
    if dtype.is_integer or (or_bool and dtype is DType.bool):
        return dtype
    takes = "integers or bool" if or_bool else "integers"
    raise PromotionError(
        f"{op.name} takes {takes}, not {dtype}; cast first, for example .cast(DType.int64)"
    )


def _all(types: Types, dtype: DType) -> tuple[DType, ...]:
    return (dtype,) * len(types)


def _arithmetic(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.common(types)
    if dtype is DType.bool:
        dtype = rules.boolean(op.name)
    return Resolved(_all(types, dtype), dtype)


def _real_arithmetic(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    resolved = _arithmetic(rules, op, types, attrs)
    _no_complex(op, resolved.result)
    return resolved


def _joining(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.common(types)
    return Resolved(_all(types, dtype), dtype)


def _ordered(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _no_complex(op, rules.common(types))
    return Resolved(_all(types, dtype), dtype)


def _comparison(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved(_all(types, rules.common(types)), DType.bool)


def _order(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved(_all(types, _no_complex(op, rules.common(types))), DType.bool)


def _division(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.divided(rules.common(types))
    return Resolved(_all(types, dtype), dtype)


def _floating(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.floating(rules.common(types), op.name)
    return Resolved(_all(types, dtype), dtype)


def _real_floating(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _no_complex(op, rules.floating(rules.common(types), op.name))
    return Resolved(_all(types, dtype), dtype)


def _step(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    resolved = _real_floating(rules, op, types, attrs)
    if resolved.result not in (DType.float32, DType.float64, DType.weak_float):
        raise PromotionError(
            f"{op.name} steps through float32 or float64, not {resolved.result}, whose arithmetic "
            "is float32's rounded; .cast(DType.float32) first"
        )
    return resolved


def _magnitude(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = types[0].dtype
    if dtype is DType.bool:
        dtype = rules.boolean(op.name)
    return Resolved((dtype,), dtype.part)


def _part(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = types[0].dtype
    return Resolved((dtype,), dtype.part)


def _predicate(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved((types[0].dtype,), DType.bool)


def _sign_predicate(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved((_no_complex(op, types[0].dtype),), DType.bool)


def _logical(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved(tuple(rules.truth(t.dtype, op.name) for t in types), DType.bool)


def _bitwise(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _integers(op, rules.common(types), or_bool=True)
    return Resolved(_all(types, dtype), dtype)


def _shift(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _integers(op, rules.common(types))
    return Resolved(_all(types, dtype), dtype)


def _select(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    condition = rules.truth(types[0].dtype, f"the condition of {op.name}")
    dtype = rules.common(types[1:])
    return Resolved((condition, dtype, dtype), dtype)


def _accumulation(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype: DType | None = attrs["dtype"]  # as the user asked, or as the rules accumulate
    if dtype is None:
        dtype = rules.accumulated(types[0].dtype, op.name)
        dtype = rules.boolean(op.name) if dtype is DType.bool else dtype
    _castable(op, types[0].dtype, dtype)
    return Resolved((dtype,), dtype)


def _mean(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.averaged(types[0].dtype, op.name)
    return Resolved((dtype,), dtype)


def _spread(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = rules.averaged(types[0].dtype, op.name)
    return Resolved((dtype,), dtype.part)


def _position(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _no_complex(op, rules.common(types))
    result: DType = attrs["dtype"] or rules.index
    return Resolved(_all(types, dtype), _integers(op, result))


def _lookup(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    """Data operands join; the last operand holds indices, which stay as they are."""
    data = rules.common(types[:-1])
    indices = types[-1].dtype
    if not indices.is_integer:
        raise PromotionError(
            f"the indices of {op.name} are integers, not {indices}; .cast(DType.int64)"
        )
    return Resolved((*_all(types[:-1], data), indices), data)


def _same(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved((types[0].dtype,), types[0].dtype)


def _padding(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    _number(op, attrs["value"], types[0].dtype)
    return _same(rules, op, types, attrs)


def _number(op: Op, value: Any, dtype: DType) -> None:
    """A number among the attributes fits the dtype it is to have, whatever the rules."""
    if not fits(value, dtype):
        raise PromotionError(f"{op.name}: {misfit(value, dtype)}")


def _castable(op: Op, source: DType, target: DType) -> None:
    if source.is_complex and not (target.is_complex or target is DType.bool):
        raise PromotionError(
            f"{op.name} of {source} to {target} would drop the imaginary part; take .real first"
        )


def _cast(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    _castable(op, types[0].dtype, attrs["to"])
    return Resolved((types[0].dtype,), attrs["to"])


def _created(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    if "value" in attrs:
        _number(op, attrs["value"], attrs["dtype"])
    return Resolved((), attrs["dtype"])


def _known(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype, stored = attrs["dtype"], attrs["value"].dtype
    if stored != dtype.storage:
        raise PromotionError(
            f"a constant of {dtype} is stored as {dtype.storage}, not {stored}; "
            f"g.constant[DType.{dtype}](...) converts what fits"
        )
    return Resolved((), dtype)


def _sized(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    result: DType = attrs["dtype"] or rules.index
    return Resolved((types[0].dtype,), _integers(op, result))


def _complex_of(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    dtype = _no_complex(op, rules.floating(rules.common(types), op.name))
    if dtype in (DType.float64, DType.weak_float):
        return Resolved(_all(types, DType.float64), DType.complex128)
    return Resolved(_all(types, DType.float32), DType.complex64)


def _signature(name: str, resolve: Rule, *joined: int, other: Any = DType.int64) -> Signature:
    return Signature(name, resolve, joined or None, other)


ARITHMETIC = _signature("arithmetic", _arithmetic)
REAL_ARITHMETIC = _signature("real arithmetic", _real_arithmetic)
JOIN = _signature("join", _joining)
ORDERED = _signature("ordered", _ordered)
COMPARISON = _signature("comparison", _comparison)
ORDER = _signature("order", _order)
DIVISION = _signature("division", _division)
FLOATING = _signature("floating", _floating)
REAL_FLOATING = _signature("real floating", _real_floating)
STEP = _signature("step", _step)
MAGNITUDE = _signature("magnitude", _magnitude)
PART = _signature("part", _part)
PREDICATE = _signature("predicate", _predicate)
SIGN_PREDICATE = _signature("sign predicate", _sign_predicate)
LOGICAL = _signature("logical", _logical)
BITWISE = _signature("bitwise", _bitwise)
SHIFT = _signature("shift", _shift)
SELECT = _signature("select", _select, 1, 2, other=DType.bool)
ACCUMULATION = _signature("accumulation", _accumulation)
MEAN = _signature("mean", _mean)
SPREAD = _signature("spread", _spread)
POSITION = _signature("position", _position)
LOOKUP = _signature("lookup", _lookup, 0)
SCATTER = _signature("scatter", _lookup, 0, 1)
SAME = _signature("same", _same)
PADDING = _signature("padding", _padding)
CAST = _signature("cast", _cast)
CREATED = _signature("created", _created)
KNOWN = _signature("known", _known)
SIZED = _signature("sized", _sized)
COMPLEX_OF = _signature("complex of", _complex_of)
