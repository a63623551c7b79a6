"""In-place operators, cell by cell, against the libraries: `x += y` and its twelve siblings."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle, product
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphir import DType, Graph, rule_sets, rules
from graphir.promotion.numpy_ import NUMPY
from graphir.runtime import interpret
from tests.peers import IN_PLACE, Operand, in_place
from tests.peers import numpy_ as numpy
from tests.support.tables import every

Made: TypeAlias = tuple[DType | None, tuple[int, ...]]

N_D, ZERO_D, WIDE, ROW = (2, 2), (), (3, 2, 2), (1, 2)
NUMBERS = (True, 1, 2, 100, -1, 300, 1.5, 2.0, 0.5, 1j)


def cells(dtypes: Any, numbers: Any = NUMBERS) -> Iterator[tuple[str, Operand, Any]]:
    """An op, an array and what stands beside it: arrays of all ranks, and numbers."""
    arrays = [(dtype, shape) for dtype in dtypes for shape in (N_D, ZERO_D, WIDE, ROW)]
    for name, x in product(IN_PLACE, arrays):
        if x[1] in (N_D, ZERO_D):
            yield from ((name, x, y) for y in (*arrays, *(() if name == "matmul" else numbers)))


def ours(name: str, under: str, x: Any, y: Any) -> Made | None:
    g = in_place(under, name, x, y)
    return None if g is None else (g.outputs[0].dtype, g.outputs[0].shape)  # pyright: ignore


def wrong(
    under: str, asked: Iterator[tuple[str, Operand, Any]], theirs: Callable[..., Made | None]
) -> tuple[int, list[Any]]:
    """How many cells there are, and those in which graphir and the library differ."""
    cells, found = list(asked), []
    for name, x, y in cells:
        us, them = ours(name, under, x, y), theirs(name, x, y)
        if us != them:
            found.append((name, x, y, us, them))
    return len(cells), found


# -- NumPy


def of_numpy(name: str, x: Any, y: Any) -> Made | None:
    made = np.ones(x[1], numpy.DTYPES[x[0]])
    beside = np.ones(y[1], numpy.DTYPES[y[0]]) if isinstance(y, tuple) else y
    with np.errstate(all="ignore"):
        try:
            found = IN_PLACE[name](made, beside)
        except (TypeError, ValueError, OverflowError):
            return None
    assert found is made
    return DType.from_numpy(found.dtype), found.shape


def raises_at_run_time(name: str, x: Any, y: Any) -> bool:
    """NumPy sees only in the values that an integer is raised to a negative power."""
    negative = isinstance(y, (int, np.signedinteger)) and y < 0
    return name == "pow" and x[0].is_integer and bool(negative)


@pytest.mark.exhaustive
def test_numpy_on_all_pairs_of_arrays_and_numbers():
    scalars = [dtype.storage.type(1) for dtype in numpy.DTYPES]
    asked = (
        cell for cell in cells(numpy.DTYPES, (*NUMBERS, *scalars)) if not raises_at_run_time(*cell)
    )
    count, found = wrong("numpy", asked, of_numpy)
    assert not found
    assert count > 25_000


def test_the_values_are_those_of_numpy():
    rng = np.random.default_rng(0)
    count = 0
    for name, a, b in product(IN_PLACE, numpy.DTYPES, numpy.DTYPES):
        g = in_place(NUMPY, name, (a, N_D), (b, N_D))
        if g is None or a.is_complex or b.is_complex or (name == "pow" and a.is_float):
            continue  # NumPy's loops for these differ in the last bit by the length of a row
        x, y = (rng.integers(1, 2 if d is DType.bool else 6, N_D) for d in (a, b))
        x = np.where(a.is_float, x + rng.random(N_D), x).astype(a.storage)
        y = np.where(b.is_float, y + rng.random(N_D), y).astype(b.storage)
        found, expected = interpret(g, x, y), IN_PLACE[name](x, y)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, str((name, a, b)))
        count += 1
    assert count > 800


def test_a_0d_result_of_numpy_is_a_scalar_that_is_bound_anew():
    for a, b in product(numpy.DTYPES, repeat=2):
        g = Graph(rules="numpy")
        x = np.ones(2, a.storage)
        s, t = g.input(a, (2,)).max(), x.max()
        s *= g.constant(b.storage.type(1))
        t *= b.storage.type(1)
        assert type(t) is not np.ndarray and s.dtype.storage == t.dtype


def test_which_casts_are_of_the_same_kind():
    for a, b in product(numpy.DTYPES, repeat=2):
        assert NUMPY.storable(a, b) is np.can_cast(a.storage, b.storage, "same_kind")


# -- PyTorch

REFUSALS = (TypeError, RuntimeError, OverflowError, ZeroDivisionError, ValueError)


def test_pytorch_on_all_pairs_of_tensors_and_numbers():
    pytest.importorskip("torch")
    import torch

    from tests.peers import torch_ as peer

    names = {theirs: dtype for dtype, theirs in peer.DTYPES.items()}

    def tensor(operand: Any) -> Any:
        if not isinstance(operand, tuple):
            return operand
        return torch.ones(operand[1]).to(peer.DTYPES[operand[0]])

    def of_torch(name: str, x: Any, y: Any) -> Made | None:
        try:
            found = IN_PLACE[name](tensor(x), tensor(y))
        except REFUSALS:
            return None
        return names[found.dtype], tuple(found.shape)

    core = [d for d in peer.DTYPES if not d.narrow and str(d) not in ("uint16", "uint32", "uint64")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count, found = wrong("torch", cells(core, (*NUMBERS, np.int64(1), np.float64(1))), of_torch)
    # bool ** True is bool there, though bool ** a bool tensor raises.
    assert all(one[0] == "pow" and one[2] is True for one in found)
    assert count > 12_000
    for a, b in product(peer.DTYPES, repeat=2):
        assert rules("torch").storable(a, b) is torch.can_cast(peer.DTYPES[a], peer.DTYPES[b])


# -- the array API standard


def test_array_api_strict_on_all_pairs_of_arrays_and_numbers():
    pytest.importorskip("array_api_strict")
    import array_api_strict as xp

    from tests.peers import array_api as peer

    names = {theirs: dtype for dtype, theirs in peer.DTYPES.items()}

    def array(operand: Any) -> Any:
        if not isinstance(operand, tuple):
            return operand
        return xp.ones(operand[1], dtype=peer.DTYPES[operand[0]])

    def of_strict(name: str, x: Any, y: Any) -> Made | None:
        try:
            found = IN_PLACE[name](array(x), array(y))
        except REFUSALS:
            return None
        return names[found.dtype], found.shape

    count, found = wrong("array_api", cells(peer.DTYPES), of_strict)
    assert not [one for one in found if not raises_at_run_time(*one[:3])]
    assert count > 15_000


# -- libraries whose arrays have no in-place operators

METHODS = [f"__i{each.__name__.strip('_')[1:]}__" for each in IN_PLACE.values()]


def test_the_methods_asked_for_are_those_of_the_operators():
    assert all(hasattr(np.ndarray, name) for name in METHODS)


@every("library", ["jax", "dask", "tensorflow", "max"])
def test_arrays_without_in_place_operators(library: str):
    pytest.importorskip({"dask": "dask.array", "max": "max.graph"}.get(library, library))
    if library == "jax":
        import jax.numpy as jnp

        kind: Any = type(jnp.ones(2))
    elif library == "dask":
        import dask.array

        kind = dask.array.Array
    elif library == "tensorflow":
        import tensorflow as tf

        kind = type(tf.ones(2))
    else:
        from max.graph import TensorValue

        kind = TensorValue
    assert not [name for name in METHODS if hasattr(kind, name)]
    under = [one for one in rule_sets() if one.name.startswith((library, library[:2] + "_"))]
    assert under and not any(one.in_place for one in under)


def test_where_no_array_is_written_to_it_is_the_operator_itself():
    for under in rule_sets():
        if under.in_place:
            continue
        dtypes = [d for d in under.dtypes if under.has(d) and not d.narrow]
        names = cycle(("add", "divide", "bitwise_or", "divide", "add"))
        for name, (a, b) in zip(names, product(dtypes, dtypes), strict=False):
            g = in_place(under, name, (a, N_D), (b, N_D))
            assert g is None or g.outputs[0].op.name == name


def test_what_has_which_operators():
    writing = {one.name for one in rule_sets() if one.in_place}
    assert writing == {"numpy", "numpy_legacy", "cupy", "torch", "array_api"}
    assert {one.name for one in rule_sets() if "matmul" in one.in_place} == {
        *("numpy", "numpy_legacy", "array_api")
    }
    assert operator.imatmul is IN_PLACE["matmul"]
