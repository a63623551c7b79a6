"""What a rule set says besides the join, found by asking it: a line for each matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.ir.graph import Graph
from graphir.ops.op import Inferred, Op
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import rounded, survives


class Fact(NamedTuple):
    """A question, and what a rule set answers to it in a line."""

    subject: str
    answer: str


def facts(rules: PromotionRules, among: Iterable[DType] = tuple(DType)) -> tuple[Fact, ...]:
    """What a rule set says of division, functions, reductions, bool, places, order and literals.

    Each answer is that of an op on arrays of the dtypes that the rules have, among those given. A
    question about dtypes of which there is none is left out.
    """
    asked = {*among} & {*rules.dtypes}
    known = [
        dtype for dtype in DType if dtype in asked and dtype in rules.dtypes and rules.has(dtype)
    ]
    strong = [dtype for dtype in known if not dtype.weak and not dtype.narrow] or known
    whole = [dtype for dtype in strong if dtype.is_integer or dtype is DType.bool]
    found = [
        *(Fact(subject, _over(rules, op, whole)) for subject, op in _OF_INTS.items()),
        *(Fact(subject, _over(rules, op, strong)) for subject, op in _OF_ALL.items()),
        Fact("bool arithmetic", _of_bool(rules) if DType.bool in known else ""),
        Fact("is a truth value", _over(rules, ops.logical_not, strong, lambda _: "yes")),
        Fact("places", _places(rules, strong)),
        Fact("comparison", "; ".join(_compared(rules, pair) for pair in _pairs(_COMPARED, known))),
        Fact("in place", _in_place(rules, _pairs(_STORED, known))),
        Fact("0-d operands", _beside(rules) if {DType.int8, DType.int64} <= {*known} else ""),
        *(Fact(f"{x} + {value!r}", _with(rules, x, value)) for x, value in _pairs(_FITS, known)),
        *(Fact(f"{value!r} alone", _alone(rules, value)) for value in (True, 1, 1.5, 1j)),
    ]
    return tuple(fact for fact in found if fact.answer)


_OF_INTS = {"int / int": ops.divide, "sin(int)": ops.sin, "mean(int)": ops.mean}
_OF_ALL = {"sum accumulates": ops.sum, "cumulative_sum": ops.cumulative_sum}
OF_OPS = frozenset({*_OF_INTS, *_OF_ALL, "bool arithmetic", "is a truth value", "places"})
"""The subjects that are results of ops on arrays of one dtype."""

_OF_BOOL = {
    "+": ops.add,
    "-": ops.subtract,
    "*": ops.multiply,
    "/": ops.divide,
    "//": ops.floor_divide,
    "**": ops.pow,
    "-x": ops.negative,
    "~x": ops.bitwise_invert,
}
_PLACES = (ops.argmax, ops.argsort, ops.searchsorted, ops.shape_of)
_COMPARED = (
    (DType.int64, DType.uint64),
    (DType.int64, DType.float32),
    (DType.float16, DType.bfloat16),
)
_STORED = (
    (DType.float32, DType.float64),
    (DType.int8, DType.int16),
    (DType.uint8, DType.int8),
    (DType.int8, DType.float32),
)
_FITS: tuple[tuple[DType, Any], ...] = (
    (DType.bool, 1),
    (DType.int8, 100),
    (DType.int8, 300),
    (DType.uint8, -1),
    (DType.int32, 1.5),
    (DType.int32, 2**40),
    (DType.float16, 1),
    (DType.float16, 2049),
    (DType.float16, 1e6),
    (DType.float32, 0.1),
    (DType.float32, 1j),
)
_REFUSED = "refused"


def _pairs(asked: Iterable[tuple[DType, Any]], known: Sequence[DType]) -> list[tuple[DType, Any]]:
    """Those whose dtypes a rule set has."""
    return [(x, y) for x, y in asked if x in known and (not isinstance(y, DType) or y in known)]


def inferred(rules: PromotionRules, op: Op, *dtypes: DType) -> Inferred | None:
    """An op on arrays of some dtypes, without attributes; None where it is refused."""
    try:
        return op.infer(rules, [TensorType(dtype, ("n",)) for dtype in dtypes], {})
    except GraphirError:
        return None


def _over(
    rules: PromotionRules,
    op: Op,
    dtypes: Sequence[DType],
    answer: Callable[[DType], str] = str,
) -> str:
    """What an op of one dtype gives for each, those that give the same named together."""
    groups: dict[str, list[DType]] = {}
    for dtype in dtypes:
        found = inferred(rules, op, *(dtype,) * len(op.operands))
        told = _REFUSED if found is None else answer(found.type.dtype)
        groups.setdefault("its own" if told == str(dtype) else told, []).append(dtype)
    *first, last = sorted(groups, key=lambda told: len(groups[told])) or [""]
    named = [f"{told} of {' '.join(map(str, groups[told]))}" for told in groups if told in first]
    return "; ".join([*named, f"else {last}" if first else last])


def _of_bool(rules: PromotionRules) -> str:
    return ", ".join(
        f"{sign} {_name(inferred(rules, op, *(DType.bool,) * len(op.operands)))}"
        for sign, op in _OF_BOOL.items()
    )


def _places(rules: PromotionRules, dtypes: Sequence[DType]) -> str:
    """The dtypes of places, asked of the first dtype that each op takes."""
    told: list[str] = []
    for op in _PLACES:
        tried = (inferred(rules, op, *(dtype,) * len(op.operands)) for dtype in dtypes)
        told.append(f"{op.name} {_name(next((one for one in tried if one), None))}")
    return ", ".join(told)


def _name(found: Inferred | None) -> str:
    return _REFUSED if found is None else str(found.type.dtype)


def _compared(rules: PromotionRules, pair: tuple[DType, DType]) -> str:
    found = inferred(rules, ops.less, *pair)
    met = dict.fromkeys(found.operands) if found else ()
    return f"{pair[0]} < {pair[1]} {'at ' + ' and '.join(map(str, met)) if met else _REFUSED}"


def _in_place(rules: PromotionRules, pairs: Sequence[tuple[DType, DType]]) -> str:
    """What `x += y` leaves x to be: bound anew, or the array that it writes to, of x's dtype."""
    if not pairs:
        return ""
    if not rules.in_place:
        return "x += y is x = x + y"
    told: list[str] = []
    for target, other in pairs:
        graph = _graph(rules)
        x = graph.input(target, ("n",))
        try:
            x += graph.input(other, ("n",))
            told.append(f"{target} += {other} is {x.dtype}")
        except GraphirError:
            told.append(f"{target} += {other} {_REFUSED}")
    return "; ".join(told if "matmul" in rules.in_place else [*told, "x @= y is x = x @ y"])


def _graph(rules: PromotionRules) -> Graph:
    """A graph under rules that need not be registered, and are not by this."""
    graph = Graph("literal")
    graph.rules = rules
    return graph


def _with(rules: PromotionRules, dtype: DType, value: Any) -> str:
    """What an array and a literal give, and what becomes of the literal there."""
    graph = _graph(rules)
    try:
        result = (graph.input(dtype, ("n",)) + value).dtype
    except GraphirError:
        return _REFUSED
    kept = rules.committed(result)
    if survives(value, kept):
        return str(result)
    return f"{result}, where it is {rounded(value, kept, graph.tf32)}"


def _beside(rules: PromotionRules) -> str:
    """What an array and a 0-d operand of a wider dtype give, by its value where that counts."""
    graph = _graph(rules)
    x = graph.input(DType.int8, ("n",))
    told: dict[str, str] = {}
    for which, value in {"1": 1, "300": 300, "not known": None}.items():
        y = graph.input(DType.int64) if value is None else graph.scalar(value, DType.int64)
        try:
            told[which] = str((x + y).dtype)
        except GraphirError:
            told[which] = _REFUSED
    if len({*told.values()}) == 1:
        return f"int8 beside a 0-d int64 is {told['1']}"
    by_value = ", ".join(f"{found} where that is {which}" for which, found in told.items())
    return f"int8 beside a 0-d int64 is {by_value}"


def _alone(rules: PromotionRules, value: Any) -> str:
    """What a literal is by itself, and what it is committed to."""
    try:
        dtype = _graph(rules).scalar(value).dtype
    except GraphirError:
        return _REFUSED
    kept = rules.committed(dtype)
    return str(dtype) if kept is dtype else f"{dtype}, {kept} in the end"
