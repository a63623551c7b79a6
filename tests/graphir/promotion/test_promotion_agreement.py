"""What `promote`, `explain` and the operator `+` say of the same operands: one decision.

`promote` answers where the operands meet; `+` then computes there, or refuses that dtype, as
TensorFlow refuses two bools. Python numbers alone never reach a library: `+` is Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import product
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import settings

from graphir import DType, Graph, PromotionError, PromotionRules, Symbol, rules
from graphir.errors import GraphirError
from graphir.promotion import rule_sets
from graphir.promotion.operands import operand_of
from graphir.promotion.python import ruling

RULES = pytest.mark.parametrize("chosen", rule_sets(), ids=lambda chosen: chosen.name)
LITERALS = (
    *(True, False, 0, 1, -1, 128, 300, 2**24 + 1, 2**31, 2**63, 2**64),
    *(0.5, 1.0, 1e39, 1e300, float("inf"), float("nan"), 1j, 1e39j),
)
NUMBERS = (
    *(np.bool_(True), np.int8(100), np.uint8(200), np.int64(2**40), np.uint64(2**63)),
    *(np.float16(1), np.float32(0.1), np.float64(0.1), np.complex64(1j), ml_dtypes.bfloat16(1)),
)
ARRAYS = tuple(np.full(2, number) for number in NUMBERS[::2])


@cache
def inputs(rules: PromotionRules) -> list[Any]:
    """An input of rank 1 of every dtype that the rules have, of rank 0 of those not narrow."""
    g = Graph(rules=rules)
    shapes = [(d, s) for d in DType for s in ((2,), ()) if s or not d.narrow]
    return [g.input(d, s) for d, s in shapes if rules.has(d)]


def pairs(rules: PromotionRules) -> list[tuple[Any, Any]]:
    """All pairs of inputs, each input beside each number and array, and after each number."""
    symbols, numbers = inputs(rules), (*LITERALS, *NUMBERS)
    beside = product(symbols, (*symbols, *numbers, *ARRAYS))
    return [*beside, *product(numbers, symbols)]


def answered(question: Callable[..., DType], *operands: Any) -> DType | None:
    """The dtype that a question has for an answer; None where it is refused."""
    with suppress(GraphirError):
        return question(*operands)
    return None


def added(x: Any, y: Any) -> DType:
    """The dtype of `x + y`, which NumPy hands to the symbol where an array is on the left."""
    return (y.__radd__(x) if isinstance(x, (np.ndarray, np.generic)) else x + y).dtype


def entered(rules: PromotionRules, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands, NumPy's scalars as what they count as; themselves where one is refused."""
    with suppress(PromotionError):
        return [rules.entering(one) if isinstance(one, np.generic) else one for one in operands]
    return operands


@pytest.mark.exhaustive
@RULES
def test_promote_explain_and_the_operator_agree(chosen: PromotionRules):
    """On all pairs; where few examples are drawn (HYPOTHESIS_PROFILE=short) on a third of them."""
    asked = pairs(chosen)
    if settings().max_examples < 20:
        asked = Random(chosen.name).sample(asked, len(asked) // 3)
    for pair in asked:
        types = [one.type if isinstance(one, Symbol) else one for one in pair]
        met = answered(chosen.promote, *pair)
        assert met is answered(chosen.promote, *types), pair
        assert met is answered(lambda x, y: chosen.explain(x, y).result, *pair), pair
        given = entered(chosen, types)
        deciding = ruling(chosen, "add", [operand_of(one) for one in given])
        if deciding is not chosen:  # Python's rules, of Python's numbers
            met = answered(deciding.promote, *given)
        computed = None
        if met is not None:
            with suppress(PromotionError):
                computed = deciding.family_dtype("arithmetic", met, "add")
        assert answered(added, *pair) is computed, (pair, met)


@RULES
def test_the_way_to_where_operands_meet_starts_at_their_own_dtypes(chosen: PromotionRules):
    for x, array in product(inputs(chosen), ARRAYS):
        with suppress(PromotionError):
            told = chosen.explain(x, array)
            assert told.paths[1][0] is DType.from_numpy(array.dtype)
            assert told.paths[1][-1] is told.result
            assert told.witnesses[1] == DType.from_numpy(array.dtype).witness(told.result)


def test_a_bool_that_tensorflow_does_not_convert_is_refused_by_promote_too():
    for name in ("tensorflow", "tf_all", "tf_safe", "tf_legacy"):
        assert rules(name).answer(DType.uint8, True) is rules(name).answer(True, DType.int8) is None
        assert rules(name).answer(DType.int32, True) is DType.int32
