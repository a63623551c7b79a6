"""The rules of the array API standard against array-api-strict: every pair, triple, op, literal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("array_api_strict", reason="array-api-strict is not installed: no comparison")

import array_api_strict as xp

from graphir import DType, Graph, GraphirError, TensorType, ops, runtime
from graphir.promotion.array_api import ARRAY_API
from tests.peers import CALLS, Deviation, Operand, array_api, differences, ours, unexplained
from tests.support.tables import every

DTYPES = tuple(array_api.DTYPES)
SHAPES = ((2,), ())
ARRAYS: list[Operand] = list(product(DTYPES, SHAPES))
SCALARS = (True, 1, 1.0, 1j)
PAIRS = [
    pair
    for pair in product([*ARRAYS, *SCALARS], repeat=2)
    if any(isinstance(one, tuple) for one in pair)
]

# NumPy warns of overflow, and of // 0.
pytestmark = pytest.mark.filterwarnings("ignore")


def answer(*operands: Operand) -> DType | None:
    return ARRAY_API.answer(*(TensorType(*x) if isinstance(x, tuple) else x for x in operands))


# -- the join


def test_pairs_of_arrays_of_any_rank_and_scalars():
    for pair in PAIRS:
        assert answer(*pair) is array_api.result_type(*pair), pair
        assert ours(ARRAY_API, "add", *pair) is array_api.result("add", *pair), pair


def test_all_triples():
    for triple in product(DTYPES, repeat=3):
        operands: list[Operand] = [(dtype, (2,)) for dtype in triple]
        assert answer(*operands) is array_api.result_type(*operands), triple


# -- every op


def differ(dtypes: Sequence[DType]) -> bool:
    return dtypes[0] is not dtypes[1]


def apart(dtypes: Sequence[DType]) -> bool:
    """Whether uint64 meets signed integers, with which it has no common dtype."""
    return DType.uint64 in dtypes and any(dtype.family == "int" for dtype in dtypes)


DEVIATIONS = [
    Deviation(
        "matmul tensordot outer",
        differ,
        "the functions do not check, and NumPy promotes; the operator @ and the standard refuse",
    ),
    Deviation(
        "searchsorted",
        differ,
        "the library compares as NumPy promotes where the standard has no common dtype",
    ),
    Deviation(
        "clip",
        apart,
        "the library compares uint64 with signed integers, which have no common dtype",
    ),
]


def test_every_op_that_the_library_has_on_every_pair_of_dtypes():
    missing = set(CALLS) - set(array_api.OPS)
    assert missing == {
        *("as_complex", "erf", "gelu", "layer_norm", "logsoftmax", "pad", "rebind", "relu"),
        *("rsqrt", "scatter", "shape_of", "sigmoid", "silu", "softmax", "softplus"),
        *("fmod", "cbrt", "deg2rad", "heaviside", "item", "numpy_sum"),
        *("affine_view", "slice_update", "index_update", "index_add"),
    }
    found = differences(ARRAY_API, array_api.result, array_api.OPS, DTYPES)
    assert unexplained(found, DEVIATIONS) == ([], [])


def test_where_functions_do_not_check_the_operator_does():
    for a, b in product(DTYPES, repeat=2):
        x, y = (xp.ones((2, 2), dtype=array_api.DTYPES[dtype]) for dtype in (a, b))
        try:
            theirs = DType(str((x @ y).dtype).rpartition(".")[2])
        except TypeError:
            theirs = None
        assert ours(ARRAY_API, "matmul", (a, (2, 2)), (b, (2, 2))) is theirs, (a, b)


def test_all_triples_in_clip():
    for triple in product(DTYPES, repeat=3):
        operands = CALLS["clip"].operands(*triple)
        theirs = None if apart(triple) else array_api.result("clip", *operands)
        assert ours(ARRAY_API, "clip", *operands) is theirs, triple


def test_conditions_and_indices_of_every_dtype():
    for dtype in DTYPES:
        i8: Operand = (DType.int8, (2,))
        for op, *operands in (("where", (dtype, (2,)), i8, i8), ("gather", i8, (dtype, (2,)))):
            assert ours(ARRAY_API, op, *operands) is array_api.result(op, *operands), (op, dtype)


# -- literals

INTS = (0, 1, -1, 127, 128, -128, -129, 255, 256, 2**24 + 1, 2**31, 2**63 - 1, -(2**63))
LITERALS = (
    *(True, False, *INTS, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200),
    *(0.1, -1.5, 65520.0, 1e39, 1e300, float("inf"), float("nan"), 1j, 1e39j),
)
TAKING = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "maximum"),
    *("atan2", "equal", "less", "bitwise_and", "logical_or", "left_shift", "where", "clip"),
)
Asked = tuple[str, DType, Any, bool]


def asked_of(asked: Asked, array: Any, condition: Any) -> tuple[Any, ...]:
    """The operands: an array of ones and a literal, which comes first or last."""
    op, _, literal, first = asked
    if op == "clip":
        return array, literal, literal
    pair = (literal, array) if first else (array, literal)
    return (condition, *pair) if op == "where" else pair


def our_answer(asked: Asked) -> tuple[DType, Any] | None:
    op, dtype = asked[:2]
    g = Graph(rules=ARRAY_API)
    try:
        x = g.input(dtype, (1,))
        found = ops.CATALOGUE[op](*asked_of(asked, x, np.array([not asked[3]])))
        g.output(found)
        return found.dtype, runtime.interpret(g, np.ones(1, dtype.storage))
    except GraphirError:
        return None


def their_answer(asked: Asked) -> tuple[DType, Any] | None:
    op, dtype = asked[:2]
    x, condition = xp.ones(1, dtype=array_api.DTYPES[dtype]), xp.asarray([not asked[3]])
    try:
        found = array_api.OPS[op](*asked_of(asked, x, condition))
    except (TypeError, ValueError, OverflowError):
        return None
    return DType(str(found.dtype).rpartition(".")[2]), np.asarray(found)


def beyond(asked: Asked, low: float, high: float) -> bool:
    """Whether the literal is an int out of a range."""
    return isinstance(asked[2], int) and not low <= asked[2] <= high


LITERAL_DEVIATIONS: dict[str, Callable[[Asked], bool]] = {
    "an int literal has 64 bits here, beside a float too": (
        lambda one: not one[1].is_integer and beyond(one, -(2**63), 2**63 - 1)
    ),
    "the library takes bounds of clip that its integers do not hold, and wraps": (
        lambda one: one[0] == "clip" and one[1].is_integer and beyond(one, one[1].min, one[1].max)
    ),
    "a negative shift raises in the library, and gives 0 here": (
        lambda one: one[0] == "left_shift" and beyond(one, 0, 2**64) and not one[3]
    ),
    "the library asks for real operands before the scalar makes them complex": (
        lambda one: (
            one[0] in ("less", "maximum") and one[1].is_float and isinstance(one[2], complex)
        )
    ),
}


def test_literals_are_taken_and_refused_alike_and_have_the_same_values():
    unused, values = dict(LITERAL_DEVIATIONS), 0
    for asked in product(TAKING, DTYPES, LITERALS, (False, True)):
        us, them = our_answer(asked), their_answer(asked)
        if (us and us[0]) is not (them and them[0]):
            reasons = [why for why, where in LITERAL_DEVIATIONS.items() if where(asked)]
            assert reasons, (asked, us, them)
            for why in reasons:
                unused.pop(why, None)
        elif us and them:
            values += 1
            np.testing.assert_array_equal(us[1], them[1], str(asked))
    assert not unused and values > 3000


@every("op", ["concat", "stack", "matmul", "tensordot", "outer"])
def test_ops_of_arrays_alone(op: str):
    for dtype, scalar in product(DTYPES, SCALARS):
        operands = [CALLS[op].operands(dtype, dtype)[0], scalar]
        assert ours(ARRAY_API, op, *operands) is array_api.result(op, *operands) is None
