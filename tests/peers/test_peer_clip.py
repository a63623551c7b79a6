"""clip by bounds of all dtypes and ranks, numbers and None, against libraries: dtypes, values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, ops
from graphir.runtime import interpret, jit
from tests.peers import numpy_ as numpy

Bound: TypeAlias = "tuple[DType, bool] | bool | int | float | complex | None"
"""An array by its dtype, and whether it has an axis; a number; nothing."""

NUMBERS: list[Bound] = [
    *(None, True, 0, 3, -1, 100, 127, 255, 256, 300, -128, -300, 2**40, 2**63, 2**64, -(2**70)),
    *(1.5, -0.5, 1e6, float("inf"), float("nan"), 1j),
]


def array(dtype: DType, has_axis: bool) -> Any:
    values = [0, 1, 1] if dtype is DType.bool else [0 if dtype.family == "uint" else -5, 3, 100]
    made = np.array(values).astype(dtype.storage)
    return made if has_axis else made[1:2].reshape(())


def cells(
    dtypes: Sequence[DType], step: int = 1
) -> Iterator[tuple[tuple[DType, bool], Bound, Bound]]:
    """Each dtype and rank between numbers, arrays beside numbers, and arrays."""
    arrays = list(product(dtypes, (True, False)))
    for x in arrays:
        yield from ((x, *both) for both in product(NUMBERS[::step], repeat=2))
        yield from ((x, bound, number) for bound, number in product(arrays, NUMBERS[::step]))
        yield from ((x, number, bound) for bound, number in product(arrays, NUMBERS[::step]))
        yield from ((x, bound, (other, True)) for bound, other in product(arrays, dtypes))


def ours(rules: str, x: tuple[DType, bool], low: Bound, high: Bound) -> Any:
    """The value that graphir gives, None where it refuses."""
    g = Graph(rules=rules)
    inputs: list[Any] = []

    def operand(one: Any) -> Any:
        if not isinstance(one, tuple):
            return one
        inputs.append(array(*one))
        return g.input(one[0], inputs[-1].shape)

    try:
        g.output(np.clip(operand(x), operand(low), operand(high)))
        return interpret(g, *inputs)
    except GraphirError:
        return None


def alike(a: Any, b: Any) -> bool:
    kind = a.dtype.kind
    same = a.dtype == b.dtype and a.shape == b.shape
    return same and np.array_equal(a, b, equal_nan=kind not in "?biu")


@pytest.mark.exhaustive
def test_numpy():
    count = 0
    for x, low, high in cells(list(numpy.DTYPES)):
        made = (array(*one) if isinstance(one, tuple) else one for one in (x, low, high))
        try:
            with np.errstate(all="ignore"):
                theirs = np.asarray(np.clip(*made))
        except (TypeError, OverflowError, ValueError):
            theirs = None
        found = ours("numpy", x, low, high)
        assert (found is None) == (theirs is None), (x, low, high, found, theirs)
        assert theirs is None or alike(found, theirs), (x, low, high, found, theirs)
        count += 1
    assert count > 40_000


def test_the_op_by_itself_is_numpys_function():
    for dtype, other in product(numpy.DTYPES, repeat=2):
        if dtype is DType.bool:
            continue
        x, bound = array(dtype, True), array(other, True)
        for low, high in ((bound, 255), (bound, 127), (-300, bound), (-128, bound), (0, 255)):
            g = Graph(rules="numpy")
            try:
                g.output(ops.clip(g.input(dtype, (3,)), low, high))
                expected = np.clip(x, low, high)
            except (GraphirError, TypeError, OverflowError):
                continue
            assert alike(interpret(g, x), expected), (dtype, other, low, high)


def test_methods_have_numpys_names_for_bounds():
    x = np.array([-5, 3, 100], np.int8)
    calls: list[Any] = [
        lambda x: x.clip(min=0),
        lambda x: x.clip(max=300),
        lambda x: x.clip(min=-300, max=5),
        lambda x: x.clip(-1, max=np.int16(2)),
        lambda x: np.clip(x, None, 255),
        lambda x: np.clip(x, min=np.uint16([200, 2, 2]), max=255),
    ]
    for call in calls:
        assert alike(jit(call)(x), call(x))


def test_idle_bounds_of_jitted_functions_are_those_of_each_call():
    jitted = jit(np.clip)
    x, low = np.array([-5, 3], np.int8), np.array([200, 2], np.uint16)
    for high in (100, 126, 127, 128, 255, 300, 2**40, 2**70, 100):
        assert alike(jitted(x, low, high), np.clip(x, low, high)), high
        assert alike(jitted(x, None, high), np.clip(x, None, high)), high
    for low in (-1, -127, -128, -129, -(2**70)):
        assert alike(jitted(x, low, None), np.clip(x, low, None)), low


# -- what others take; more is refused, and told why


def test_torch():
    torch = pytest.importorskip("torch")
    from tests.peers import torch_ as peer

    names = {theirs: dtype for dtype, theirs in peer.DTYPES.items()}
    dtypes = [
        d for d in peer.DTYPES if not d.narrow and str(d) not in ("uint16", "uint32", "uint64")
    ]
    taken = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x, low, high in cells(dtypes, 2):

            def tensor(one: Any) -> Any:
                if not isinstance(one, tuple):
                    return one
                return torch.tensor(array(*one).astype(np.complex128).tolist()).to(
                    peer.DTYPES[one[0]]
                )

            try:
                theirs = torch.clamp(*map(tensor, (x, low, high)))
            except (TypeError, RuntimeError, OverflowError, ValueError):
                theirs = None
            if low is None and high is None:
                continue  # np.clip is the identity there, which torch.clamp has not
            found = ours("torch", x, low, high)
            if found is None:
                refused += theirs is not None
                continue
            assert theirs is not None, (x, low, high, found)
            half = theirs.is_floating_point() and theirs.itemsize == 2
            values = (theirs.float() if half else theirs).numpy()
            assert names[theirs.dtype].storage == found.dtype, (x, low, high)
            assert alike(found.astype(values.dtype), values), (x, low, high, found, values)
            taken += 1
    # Complex bounds of real tensors, a NaN beside what does not fit, and 2**63 beside a tensor.
    assert taken > 8_000 and refused < taken / 10


def test_array_api_strict():
    xp = pytest.importorskip("array_api_strict")
    from tests.peers import array_api as peer

    taken = 0
    for x, low, high in cells(list(peer.DTYPES)):
        found = ours("array_api", x, low, high)
        if found is None or _crosses(low, high):
            continue
        made = (
            xp.asarray(array(*one)) if isinstance(one, tuple) else one for one in (x, low, high)
        )
        theirs = np.asarray(xp.clip(*made))
        assert alike(found, theirs), (x, low, high, found, theirs)
        taken += 1
    assert taken > 3_000


def _crosses(low: Bound, high: Bound) -> bool:
    """Whether a lower bound is above an upper one, which array-api-strict refuses by its value."""
    lows, highs = (
        array(*one).ravel().tolist() if isinstance(one, tuple) else [one] for one in (low, high)
    )
    if lows == [None] or highs == [None]:
        return False
    size = max(len(lows), len(highs))
    pairs = zip(lows * (size // len(lows)), highs * (size // len(highs)), strict=True)
    return not all(a <= b for a, b in pairs)


def test_sums_that_accumulate_in_a_named_dtype_under_torch():
    torch = pytest.importorskip("torch")
    from tests.peers import torch_ as peer

    functions = {
        "sum": torch.sum,
        "prod": torch.prod,
        "cumulative_sum": torch.cumsum,
        "cumulative_prod": torch.cumprod,
    }
    dtypes = [
        d for d in peer.DTYPES if not d.narrow and str(d) not in ("uint16", "uint32", "uint64")
    ]
    for (name, function), source, target in product(functions.items(), dtypes, dtypes):
        if source.is_complex and not target.is_complex:
            continue  # which PyTorch takes the real part of, and graphir refuses
        g = Graph(rules="torch")
        try:
            dtype = ops.find(name)(g.input(source, (3,)), axis=0, dtype=target).dtype
        except GraphirError:
            dtype = None
        try:
            theirs = function(torch.ones(3).to(peer.DTYPES[source]), 0, dtype=peer.DTYPES[target])
        except RuntimeError:
            theirs = None
        assert (dtype is None) == (theirs is None), (name, source, target)
