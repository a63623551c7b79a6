"""Facts about a rule set besides its join, each a line obtained by inferring an example op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from graphir import ops
from graphir.display import folded, fragment, paragraphs, table, tag, text
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.ir.graph import Graph
from graphir.ir.op_builder import infer
from graphir.ops.op import Inference, Op
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import round_scalar, survives
from graphir.rule_reports.tables import table_parts


class Fact(NamedTuple):
    """A question to a rule set, and its answer in a line."""

    subject: str
    answer: str


def facts(rules: PromotionRules, among: Iterable[DType] = DType) -> tuple[Fact, ...]:
    """Return the facts about a rule set that its join does not determine.

    The subjects are division, functions, reductions, bool arithmetic, index dtypes, comparison,
    in-place operators, 0-d operands and literals. Each answer comes from inferring an op on arrays
    of the dtypes that are both in `among` and in the rule set. The result omits questions for which
    no such dtype exists.
    """
    dtypes_asked = {*among} & {*rules.dtypes}
    dtypes = [
        dtype
        for dtype in DType
        if dtype in dtypes_asked and dtype in rules.dtypes and rules.has(dtype)
    ]
    strong = [dtype for dtype in dtypes if not dtype.weak and not dtype.narrow] or dtypes
    whole = [dtype for dtype in strong if dtype.is_integer or dtype is DType.bool]
    answers = [
        *(Fact(subject, _over(rules, op, whole)) for subject, op in _OF_INTS.items()),
        *(Fact(subject, _over(rules, op, strong)) for subject, op in _OF_ALL.items()),
        Fact("bool arithmetic", _of_bool(rules) if DType.bool in dtypes else ""),
        Fact("is a truth value", _over(rules, ops.logical_not, strong, lambda _: "yes")),
        Fact("places", _places(rules, strong)),
        Fact(
            "comparison",
            "; ".join(_comparison(rules, pair) for pair in _pairs(_COMPARISON_PAIRS, dtypes)),
        ),
        Fact("in place", _in_place(rules, _pairs(_IN_PLACE_PAIRS, dtypes))),
        Fact("0-d operands", _beside(rules) if {DType.int8, DType.int64} <= {*dtypes} else ""),
        *(Fact(f"{x} + {value!r}", _with(rules, x, value)) for x, value in _pairs(_FITS, dtypes)),
        *(Fact(f"{value!r} alone", _alone(rules, value)) for value in (True, 1, 1.5, 1j)),
    ]
    return tuple(fact for fact in answers if fact.answer)


_OF_INTS = {"int / int": ops.divide, "sin(int)": ops.sin, "mean(int)": ops.mean}
_OF_ALL = {"sum accumulates": ops.sum, "cumulative_sum": ops.cumulative_sum}
OF_OPS = frozenset({*_OF_INTS, *_OF_ALL, "bool arithmetic", "is a truth value", "places"})
"""The subjects whose answers are results of ops on arrays of one dtype."""

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
_COMPARISON_PAIRS = (
    (DType.int64, DType.uint64),
    (DType.int64, DType.float32),
    (DType.float16, DType.bfloat16),
)
_IN_PLACE_PAIRS = (
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
_REFUSAL = "refused"


def _pairs(pairs: Iterable[tuple[DType, Any]], dtypes: Sequence[DType]) -> list[tuple[DType, Any]]:
    """Select the pairs whose dtypes are all among `dtypes`."""
    return [(x, y) for x, y in pairs if x in dtypes and (not isinstance(y, DType) or y in dtypes)]


def infer_op(rules: PromotionRules, op: Op, *dtypes: DType) -> Inference | None:
    """Infer an op without attributes on arrays of some dtypes; None where the rules refuse it."""
    try:
        return infer(rules, op, [TensorType(dtype, ("n",)) for dtype in dtypes], {})
    except GraphirError:
        return None


def _over(
    rules: PromotionRules,
    op: Op,
    dtypes: Sequence[DType],
    answer: Callable[[DType], str] = str,
) -> str:
    """Describe an op's result dtype for each operand dtype, grouped by result."""
    groups: dict[str, list[DType]] = {}
    for dtype in dtypes:
        inference = infer_op(rules, op, *(dtype,) * len(op.operands))
        text = _REFUSAL if inference is None else answer(inference.type.dtype)
        groups.setdefault("its own" if text == str(dtype) else text, []).append(dtype)
    *first, last = sorted(groups, key=lambda text: len(groups[text])) or [""]
    groups_text = [
        f"{text} of {' '.join(map(str, groups[text]))}" for text in groups if text in first
    ]
    return "; ".join([*groups_text, f"else {last}" if first else last])


def _of_bool(rules: PromotionRules) -> str:
    return ", ".join(
        f"{sign} {_name(infer_op(rules, op, *(DType.bool,) * len(op.operands)))}"
        for sign, op in _OF_BOOL.items()
    )


def _places(rules: PromotionRules, dtypes: Sequence[DType]) -> str:
    """Describe the dtype of indices and sizes, from the first operand dtype that each op takes."""
    places: list[str] = []
    for op in _PLACES:
        attempts = (infer_op(rules, op, *(dtype,) * len(op.operands)) for dtype in dtypes)
        places.append(
            f"{op.name} {_name(next((attempt for attempt in attempts if attempt), None))}"
        )
    return ", ".join(places)


def _name(inference: Inference | None) -> str:
    return _REFUSAL if inference is None else str(inference.type.dtype)


def _comparison(rules: PromotionRules, pair: tuple[DType, DType]) -> str:
    inference = infer_op(rules, ops.less, *pair)
    common = dict.fromkeys(inference.operands) if inference else ()
    return f"{pair[0]} < {pair[1]} {'at ' + ' and '.join(map(str, common)) if common else _REFUSAL}"


def _in_place(rules: PromotionRules, pairs: Sequence[tuple[DType, DType]]) -> str:
    """Describe `x += y`: a new binding of x, or a write to the array x in the dtype of x."""
    if not pairs:
        return ""
    if not rules.in_place:
        return "x += y is x = x + y"
    answers: list[str] = []
    for target, other in pairs:
        graph = _graph(rules)
        x = graph.input(target, ("n",))
        try:
            x += graph.input(other, ("n",))
            answers.append(f"{target} += {other} is {x.dtype}")
        except GraphirError:
            answers.append(f"{target} += {other} {_REFUSAL}")
    return "; ".join(answers if "matmul" in rules.in_place else [*answers, "x @= y is x = x @ y"])


def _graph(rules: PromotionRules) -> Graph:
    """Return a graph under rules that need not be registered."""
    graph = Graph("literal")
    graph.rules = rules
    return graph


def _with(rules: PromotionRules, dtype: DType, value: complex) -> str:
    """Describe the dtype of an array plus a literal, and the literal's value if it changes."""
    graph = _graph(rules)
    try:
        result = (graph.input(dtype, ("n",)) + value).dtype
    except GraphirError:
        return _REFUSAL
    committed_dtype = rules.concrete_dtype(result)
    if survives(value, committed_dtype):
        return str(result)
    return f"{result}, where it is {round_scalar(value, committed_dtype, graph.tf32)}"


def _beside(rules: PromotionRules) -> str:
    """Describe the dtype of an int8 array plus a 0-d int64.

    Under rules that read the value of the 0-d operand, the answer lists values.
    """
    graph = _graph(rules)
    x = graph.input(DType.int8, ("n",))
    answers: dict[str, str] = {}
    for which, value in {"1": 1, "300": 300, "not known": None}.items():
        y = graph.input(DType.int64) if value is None else graph.scalar(value, DType.int64)
        try:
            answers[which] = str((x + y).dtype)
        except GraphirError:
            answers[which] = _REFUSAL
    if len({*answers.values()}) == 1:
        return f"int8 beside a 0-d int64 is {answers['1']}"
    by_value = ", ".join(f"{dtype} where that is {which}" for which, dtype in answers.items())
    return f"int8 beside a 0-d int64 is {by_value}"


def _alone(rules: PromotionRules, value: complex) -> str:
    """Describe the dtype of a literal without partners, and its concrete dtype."""
    try:
        dtype = _graph(rules).scalar(value).dtype
    except GraphirError:
        return _REFUSAL
    committed_dtype = rules.concrete_dtype(dtype)
    return str(dtype) if committed_dtype is dtype else f"{dtype}, {committed_dtype} in the end"


# -- notebooks


def rules_fragment(rules: PromotionRules) -> str:
    """Return the name and the description of a rule set, and its table and facts, folded."""
    source = [f"Source: {rules.source}."] if rules.source else []
    answers = [(text(subject), text(answer, 300)) for subject, answer in facts(rules)]
    return fragment(
        tag("div", tag("b", text(rules.name)), f", {len(rules.dtypes)} dtypes"),
        paragraphs([rules.doc, *source]),
        folded("Table", *table_parts(rules.table())),
        folded("Besides the join", table(("question", "answer"), answers, len(answers))),
    )
