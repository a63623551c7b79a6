"""Forty NumPy kernels under record and jit: NumPy's results and arguments, or a reason."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from graphir import GraphirError
from graphir.runtime import Program, jit, record
from tests.numpy_kernels import KERNELS, KINDS
from tests.support.replays import leaves, same_results
from tests.support.tables import every, sampled

# Kernels that jit refuses, by a part of the reason: their control depends on values.
REFUSED = {"bool(": ["needleman_wunsch", "burning_ship", "gauss_pivot", "until_settled"]}
_REASONS = {name: reason for reason, names in REFUSED.items() for name in names}

# Kernels whose replays have other bits than NumPy: relative differences, and why.
REPLAYED_CLOSE = {
    # NumPy multiplies complex scalars without fused multiply-add, arrays with it.
    "fft_in_place": 1e-14,
}


def test_three_kernels_of_each_kind_and_one_more():
    kinds = Counter(each.function.__module__ for each in KERNELS)
    assert set(kinds) == {kind.__name__ for kind in KINDS} and len(KINDS) == 13
    assert min(kinds.values()) == 3 and len(KERNELS) == 40
    followed = [each for each in KERNELS if each.depends != "control"]
    assert sum(each.writes for each in followed) >= 10
    assert sum(each.scalars for each in followed) >= 10
    assert Counter(each.depends for each in KERNELS) == {"": 32, "control": 4, "shapes": 4}


@sampled(4)
@every("each", KERNELS)
def test_record_returns_numpys_result_and_a_graph_that_gives_it_again(each):
    plain, args = each.arguments(), each.arguments()
    expected = each.function(*plain)
    recording = record(each.function, *args)
    assert same_results(expected, recording.result)
    assert same_results(plain, args)
    computed = Program(recording.graph)(*recording.inputs)
    computed = computed if isinstance(computed, tuple) else (computed,)
    for output, value in zip(recording.outputs, computed, strict=True):
        if each.name in REPLAYED_CLOSE:
            np.testing.assert_allclose(output, value, rtol=REPLAYED_CLOSE[each.name])
        else:
            assert _same_values(output, value)


@sampled(4)
@every("each", KERNELS)
def test_jit_gives_numpys_bits_or_a_reason(each):
    plain, args = each.arguments(), each.arguments()
    if each.name in _REASONS:
        with pytest.raises(GraphirError, match=re.escape(_REASONS[each.name])):
            jit(each.function)(*args)
        assert same_results(plain, args)  # nothing was written before the refusal
        return
    jitted = jit(each.function)
    for seed in (0, 0, 1):  # traced, called again, called with other values
        plain, args = (each.make(np.random.default_rng(seed)) for _ in range(2))
        expected, result = each.function(*plain), jitted(*args)
        assert _same_values(expected, result)
        assert same_results(plain, args)


def test_the_lists_name_kernels_once():
    listed = [name for names in REFUSED.values() for name in names]
    assert len(listed) == len(set(listed))
    assert {*listed, *REPLAYED_CLOSE} <= {each.name for each in KERNELS}


def _same_values(expected, got):
    """The same structure, dtypes, shapes and bytes; a 0-d array counts as a NumPy scalar."""
    pairs = list(zip(leaves(expected), leaves(got), strict=True))
    if not all(isinstance(leaf, (np.ndarray, np.generic)) for pair in pairs for leaf in pair):
        return expected == got
    arrays = [(np.asarray(a), np.asarray(b)) for a, b in pairs]
    return all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in arrays
    )
