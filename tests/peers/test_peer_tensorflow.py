"""TensorFlow 2.21 against its four rule sets: pairs, triples, every op, literals, NumPy operands.

Wants an environment of tensorflow-cpu 2.21 with NumPy 2, this project and pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed, so nothing is compared")

import tensorflow as tf

from graphir import DType, Graph, GraphirError, PromotionRules, TensorType, ops, runtime
from graphir.promotion.tensorflow import TENSORFLOW
from graphir.promotion.tensorflow_modes import TF_ALL, TF_LEGACY, TF_SAFE
from tests.peers import CALLS, Deviation, Operand, any_complex, choices, ours, unexplained
from tests.peers import tensorflow_ as peer
from tests.support.tables import every

RULES: dict[peer.Mode, PromotionRules] = {
    "plain": TENSORFLOW,
    "all": TF_ALL,
    "safe": TF_SAFE,
    "legacy": TF_LEGACY,
}
MODES = every("mode", RULES)
PROMOTING = every("mode", ["all", "safe"])
STRONG = tuple(peer.DTYPES)
USUAL = tuple(dtype for dtype in STRONG if not dtype.narrow)
SMALL = (DType.float8_e5m2, DType.int4, DType.float8_e4m3fnuz)
WEAK = (DType.weak_int, DType.weak_float, DType.weak_complex)
SCALARS = (True, 1, 1.5, 1j)

# TensorFlow warns of complex numbers cast to real ones, NumPy of overflow.
pytestmark = pytest.mark.filterwarnings("ignore")


def dtypes(mode: peer.Mode) -> tuple[DType, ...]:
    """All; where ops promote, of the small ones three, with more kernels, fewer and none."""
    return STRONG if mode in ("plain", "legacy") else (*USUAL, *SMALL, *WEAK)


def answer(mode: peer.Mode, *operands: Operand) -> DType | None:
    """What the table has, or `promote` answers, to what peer.result_type asks TensorFlow.

    In the mode "plain" that is tf.add, which the table of weak dtypes follows, and `promote` of
    numbers does not: that is `+`.
    """
    weak = {int: DType.weak_int, float: DType.weak_float, complex: DType.weak_complex}
    found: list[Any] = [
        TensorType(*one)
        if isinstance(one, tuple)
        else weak.get(type(one), one)
        if mode == "plain"
        else one
        for one in operands
    ]
    return RULES[mode].answer(*found)


def compared(mode: peer.Mode, questions: Iterable[peer.Question]) -> list[tuple[Any, ...]]:
    """Each question that the two answer differently: op, operands, our answer, theirs."""
    asked = list(questions)
    found: list[tuple[Any, ...]] = []
    for (op, operands), theirs in zip(asked, peer.answers(asked, mode), strict=True):
        promotes = op == "result_type"
        us = answer(mode, *operands) if promotes else ours(RULES[mode], op, *operands)
        if us is not theirs:
            found.append((op, operands, us, theirs))
    return found


# -- the join


def pairs(mode: peer.Mode, shapes: Iterable[tuple[int, ...]]) -> list[tuple[Operand, ...]]:
    """Tensors of these shapes and Python scalars, two of them, one at least a tensor."""
    tensors: list[Operand] = [(dtype, shape) for dtype in dtypes(mode) for shape in shapes]
    both = product([*tensors, *SCALARS], repeat=2)
    return [pair for pair in both if any(isinstance(one, tuple) for one in pair)]


def test_pairs_and_scalars_added_by_the_function_and_by_the_operator():
    asked = pairs("plain", [(2,), ()])
    found = compared("plain", [("result_type", pair) for pair in asked])
    # tf.add(True, x) makes True a bool tensor; here, as in True + x, it becomes what x is.
    assert found and all(one[1][0] is True and one[3] is None for one in found)
    assert compared("plain", [("add", pair) for pair in asked]) == []


def test_pairs_and_scalars_stacked():
    found = compared("plain", [("stack", pair) for pair in pairs("plain", [()])])
    # TensorFlow does not convert 1 to these, but stacks tensors of them.
    small = {DType.float8_e4m3fn, DType.float8_e5m2}
    assert {one[2] for one in found} == small and all(1 in one[1] for one in found)


def test_all_triples_stacked():
    operands: list[Operand] = [*((dtype, ()) for dtype in USUAL), 1, 1.5, 1j]
    triples = [t for t in product(operands, repeat=3) if any(isinstance(one, tuple) for one in t)]
    assert compared("plain", [("stack", triple) for triple in triples]) == []


def less_safe(mode: peer.Mode, found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without what the last of the deviations explains."""
    if mode != "safe":
        return found
    explained = [
        one
        for one in found
        if one[2] is None
        and an_integer_and_a_weak_float([x[0] for x in one[1] if isinstance(x, tuple)])
    ]
    assert explained
    return [one for one in found if one not in explained]


@PROMOTING
def test_pairs_in_the_modes_that_promote(mode: peer.Mode):
    questions = pairs(mode, [(2,), ()])
    found = less_safe(mode, compared(mode, [("result_type", pair) for pair in questions]))
    operators = {one for one in found if any(x is True for x in one[1])}
    # `promote` is `+`, which does not convert True to all that it would join.
    assert operators and {one[2] for one in operators} == {None}
    assert [one[3] for one in compared(mode, [("add", one[1]) for one in operators])] == []
    # The table lacks the small types, which here meet themselves.
    small = [one for one in found if one[2] and one[2].narrow]
    assert all({dtype for dtype, _ in one[1]} == {one[2]} for one in small)
    # A weak float32 is float32.
    rest = [one for one in found if one not in operators and one not in small]
    assert {one[2:] for one in rest} == {(DType.float32, DType.weak_float)}
    added = less_safe(mode, compared(mode, [("add", pair) for pair in questions]))
    # A Python float that is not joined by an integer is a weak float32, and here float32.
    assert added and {one[2:] for one in added} == {(DType.float32, peer.WEAK_FLOAT32)}


@PROMOTING
def test_all_triples_in_the_modes_that_promote(mode: peer.Mode):
    triples = product([*USUAL, *WEAK], repeat=3)
    questions = [("result_type", tuple((one, ()) for one in triple)) for triple in triples]
    assert less_safe(mode, compared(mode, questions)) == []


def test_pairs_and_scalars_under_operators_in_the_mode_legacy():
    asked = pairs("legacy", [(2,), ()])
    assert compared("legacy", [("add", pair) for pair in asked]) == []
    found = compared("legacy", [("result_type", pair) for pair in asked])
    # NumPy has a join, and `+`, which `promote` is, no kernel that casts to it.
    assert found and {one[2] for one in found} == {None}
    assert all(
        any(x is True or (isinstance(x, tuple) and x[0].narrow) for x in one[1]) for one in found
    )


def test_all_triples_in_the_mode_legacy():
    triples = product(USUAL, repeat=3)
    found = compared("legacy", [("result_type", tuple((one, ()) for one in t)) for t in triples])
    # By their order NumPy takes some and not others, of bfloat16, a wide float and an integer with
    # which bfloat16 has no join; no operator takes three, and graphir refuses all such.
    orders = {frozenset(one[0] for one in operands) for _, operands, _, _ in found}
    assert len(found) == 16 and all(us is None for _, _, us, _ in found)
    assert all(DType.bfloat16 in order and len(order) == 3 for order in orders)


# -- every op


def some_weak(dtypes: Sequence[DType]) -> bool:
    return any(dtype.weak for dtype in dtypes)


def an_integer_and_a_weak_float(dtypes: Sequence[DType]) -> bool:
    return DType.weak_float in dtypes and any(d.is_integer and not d.weak for d in dtypes)


NO_KERNELS = [
    Deviation("sigmoid silu", any_complex, "graphir computes them of real numbers alone"),
    Deviation("mean", lambda d: d[0].is_integer, "graphir has no mean that is an integer"),
    Deviation(
        "multiply",
        lambda d: DType.bool in d and any(x.is_float or x.is_complex or x.bits == 64 for x in d),
        "TensorFlow makes both int32, then bool: here 0.5 and 2**32 shall not become False",
    ),
]
DEVIATIONS: dict[peer.Mode, list[Deviation]] = {
    "plain": NO_KERNELS,
    "all": [
        *NO_KERNELS,
        Deviation(
            "atan2 nextafter not_equal less less_equal greater greater_equal bitwise_and "
            "bitwise_or bitwise_xor left_shift right_shift where searchsorted concat stack scatter",
            some_weak,
            "graphir's literals are weak symbols: these ops take both, TensorFlow literals alone",
        ),
        Deviation(
            "clip",
            lambda dtypes: dtypes[0].weak,
            "TensorFlow marks the result as x is marked, which fails for most dtypes",
        ),
        Deviation(
            "sort argsort",
            lambda dtypes: dtypes[0] in (DType.uint32, DType.uint64),
            "TensorFlow raises over its own constant -1, which it lets only uint8 and uint16 join",
        ),
    ],
}
# In the mode legacy operators promote before they multiply, so that no mask is left.
DEVIATIONS["legacy"] = NO_KERNELS[:2]
DEVIATIONS["safe"] = [
    *DEVIATIONS["all"],
    Deviation(
        "add subtract multiply divide floor_divide remainder fmod pow equal maximum minimum "
        "clip matmul",
        an_integer_and_a_weak_float,
        "integers are safe beside a weak float64, not beside a literal: graphir refuses both",
    ),
]


@MODES
def test_every_op_that_tensorflow_has_on_every_pair_of_dtypes(mode: peer.Mode):
    assert set(CALLS) - set(peer.OPS) == {
        *("positive", "trunc", "log2", "log10", "hypot", "logaddexp", "copysign", "signbit"),
        *("layer_norm", "outer", "cbrt", "deg2rad", "heaviside"),
        *("affine_view", "item", "numpy_sum", "slice_update", "index_update", "index_add"),
    }
    found = compared(
        mode,
        (
            (op, tuple(CALLS[op].operands(*chosen)))
            for op in peer.OPS
            for chosen in choices(len(CALLS[op].free), dtypes(mode))
        ),
    )
    differences = [
        (op, tuple(operands[i][0] for i in CALLS[op].free), us, them)
        for op, operands, us, them in found
    ]
    assert unexplained(differences, DEVIATIONS[mode]) == ([], [])


@MODES
def test_conditions_and_0d_operands(mode: peer.Mode):
    i8: Operand = (DType.int8, ())
    questions: list[peer.Question] = [("where", ((one, ()), i8, i8)) for one in STRONG]
    for op in ("add", "divide", "maximum", "equal", "less", "where", "bitwise_and"):
        for pair in product(USUAL, repeat=2):
            for shapes in (((), (2, 2)), ((2, 2), ()), ((), ())):
                operands = CALLS[op].operands(*pair)
                operands[-2:] = zip(pair, shapes, strict=True)
                questions.append((op, tuple(operands)))
    assert compared(mode, questions) == []


# -- literals

INTS = (0, 1, -1, 128, 300, 2**24 + 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63))
LITERALS = (
    *(True, False, *INTS, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200),
    *(1.5, 65520.0, 1e39, 1e300, float("inf"), float("nan"), 1j, 1e39j),
)
TAKING = (
    *("add", "subtract", "divide", "floor_divide", "pow", "maximum", "atan2", "equal", "less"),
    *("bitwise_and", "left_shift", "logical_or", "where", "clip"),
)


def with_literal(op: str, dtype: DType, literal: Any, first: bool) -> tuple[Operand, ...]:
    """The operands: a tensor and a literal, which comes first or last (as both bounds of clip)."""
    tensor: Operand = (dtype, (1,))
    if op == "clip":
        return tensor, literal, literal
    pair = (literal, tensor) if first else (tensor, literal)
    return ((DType.bool, (1,)), *pair) if op == "where" else pair


def literals() -> list[peer.Question]:
    """Without ints that a uint64 does not hold.

    TensorFlow's converter leaves an error unhandled over these, which kills the process later.
    """
    return [
        (op, with_literal(op, dtype, literal, first))
        for op, dtype, literal, first in product(TAKING, USUAL, LITERALS, (False, True))
        if not (op == "clip" and first)
        if not (dtype is DType.uint64 and isinstance(literal, int) and not 0 <= literal < 2**64)
    ]


class Asked(NamedTuple):
    """What a question is about."""

    op: str
    dtype: DType
    literal: Any
    first: bool

    @staticmethod
    def of(op: str, operands: tuple[Operand, ...]) -> Asked:
        pair = operands[:2] if op == "clip" else operands[-2:]
        first = not isinstance(pair[0], tuple)
        tensor, literal = reversed(pair) if first else pair
        return Asked(op, tensor[0], literal, first)  # pyright: ignore[reportIndexIssue]

    def is_int(self) -> bool:
        return isinstance(self.literal, int)

    def wrapped(self) -> int | None:
        """What an int becomes that comes after an integer tensor; beside bool it stays weak."""
        if self.first or not self.is_int() or self.dtype.is_float or self.dtype.is_complex:
            return None
        if self.dtype is DType.bool:
            return self.literal
        return int(np.uint64(self.literal % 2**64).astype(self.dtype.storage))


LITERAL_DEVIATIONS: dict[str, Callable[[Asked], bool]] = {
    "an int literal has 64 bits here, beside a float too": (
        lambda one: one.is_int() and not -(2**63) <= one.literal < 2**63
    ),
    "TensorFlow runs at once what it is asked, and x // 0 of integers raises": (
        lambda one: one.op == "floor_divide" and one.wrapped() == 0
    ),
    "TensorFlow runs at once what it is asked, and x ** -1 of integers raises": (
        lambda one: one.op == "pow" and (one.wrapped() or 0) < 0
    ),
}


IN_MODES: dict[str, Callable[[Asked], bool]] = {
    "in the modes that promote, & refuses a scalar on its left": (
        lambda one: one.op == "bitwise_and" and one.first
    ),
    "a Python float beside bool is a weak float32, which is a strong one here": (
        lambda one: one.dtype is DType.bool and isinstance(one.literal, float)
    ),
}


@MODES
def test_literals_are_taken_and_refused_alike(mode: peer.Mode):
    deviations = LITERAL_DEVIATIONS | (IN_MODES if mode in ("all", "safe") else {})
    unused = dict(deviations)
    for op, operands, us, them in compared(mode, literals()):
        asked = Asked.of(op, operands)
        reasons = [why for why, where in deviations.items() if where(asked)]
        assert reasons, (asked, us, them)
        for why in reasons:
            unused.pop(why, None)
    assert not unused


def our_value(op: str, operands: tuple[Operand, ...]) -> Any:
    """The value of an op on 3 (True, 3 + 0j) and a literal; None where anything refuses."""
    g = Graph(rules=TENSORFLOW)
    given = [one[0] for one in operands if isinstance(one, tuple)]
    try:
        made = [g.input(*one) if isinstance(one, tuple) else one for one in operands]
        g.output(ops.CATALOGUE[op](*made))
        return runtime.interpret(g, *(np.full(1, 3, dtype.storage) for dtype in given))
    except GraphirError:
        return None


def their_value(op: str, operands: tuple[Operand, ...]) -> Any:
    made = [
        tf.constant(np.full(1, 3, one[0].storage)) if isinstance(one, tuple) else one
        for one in operands
    ]
    try:
        return peer.OPS[op](*made).numpy()
    except (TypeError, ValueError, SystemError, tf.errors.OpError):
        return None


def test_literals_wrap_and_round_to_the_same_values():
    count = 0
    for op, operands in literals():
        dtype, literal, first = Asked.of(op, operands)[1:]
        if op in ("pow", "atan2", "floor_divide"):  # of which each has its own rounding
            continue
        if op == "divide" and dtype.is_complex:
            continue
        if op == "left_shift" and not first and literal not in range(dtype.bits):
            continue
        us = our_value(op, operands)
        them = None if us is None else their_value(op, operands)
        if them is not None:
            count += 1
            wide = us.astype(float) if dtype is DType.bfloat16 else us
            np.testing.assert_array_equal(wide, them.astype(wide.dtype), f"{op} {operands}")
    assert count > 2000
