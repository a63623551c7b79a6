"""Sliding windows and strided views under jit, record and trace are views without indices.

`np.lib.stride_tricks.sliding_window_view` and `as_strided` become `affine_view`, and slices of
windows become steps of one view.
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from graphir import GraphirError, TensorType, ops, trace
from graphir.runtime import audit, interpret, jit, record
from tests.support.replays import EXACT, gives_again
from tests.support.tables import every

RANDOM = np.random.default_rng(0)
Y = RANDOM.normal(size=400)
X = RANDOM.normal(size=(14, 20))
SPACE = {
    "np": np,
    "as_strided": as_strided,
    "windows": sliding_window_view,
    "v": RANDOM.normal(size=16),
}
VECTORS = {"in order": Y, "with steps": RANDOM.normal(size=800)[::2], "backward": Y[::-1]}
MATRICES = {
    "in order": X,
    "columns": np.asfortranarray(X),
    "part": RANDOM.normal(size=(20, 30))[3:17, 5:25],
    "float32": X.astype(np.float32),
}
OF_VECTORS = [
    "windows(y, 16)",
    "windows(y, 16)[::8]",
    "windows(y, 16)[5::7, 3:12:2]",
    "windows(y, 16)[::-3, ::-1]",
    "windows(y, 16).T",
    "windows(windows(y, 16), 5, 0)[::2]",
    "windows(y[50:350:2] + 1, 16)[::4]",
    "as_strided(y, (40, 16), (y.strides[0] * 8, y.strides[0]))[1:]",
    "np.lib.stride_tricks.as_strided(y[3:], (20, 16), (y.strides[0] * 4, y.strides[0]))",
    "as_strided(y, (5, 16), (0, y.strides[0]))",
]
OF_MATRICES = [
    "windows(x, (3, 4))",
    "windows(x, 3, 0)[::2]",
    "windows(x, (3, 4, 2), (0, 1, 0))",
    "windows(x.T, 3, 0)",
    "windows(x[::-1], 3, 0)[1:, ::-1]",
    "windows(x, (5, 5))[::5, ::5]",
    "np.diagonal(x, 2)",
    "as_strided(x, (10, 8, 5), (x.strides[0], x.strides[1] * 2, x.strides[1]))",
]
USES = [
    *("{}", "{} * 2", "np.exp({})", "({} ** 2).sum(-1)", "{}.sum()", "{}.sum(-1)", "{}.sum(0)"),
    *("{}.mean(-1)", "np.var({}, -1)", "np.cumsum({}, -1)", "{}.max(0)", "np.sort({}, -1)"),
    *("{}[..., :16] @ v[: {}.shape[-1]]", "{}.reshape(-1)[3:].sum()", "{}.copy()"),
]


def programs(name: str, views: list[str]) -> list[tuple[str, Callable[[Any], Any]]]:
    texts = [use.replace("{}", view) for view in views for use in USES]
    return [(text, eval(f"lambda {name}: {text}", dict(SPACE))) for text in texts]


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def differences(name: str, views: list[str], arguments: dict[str, Any], every: int) -> list[Any]:
    """Programs whose results differ from NumPy's; one of `every`, the layouts in turn."""
    wrong: list[Any] = []
    cases = itertools.product(programs(name, views), arguments.items())
    for (text, program), (layout, values) in itertools.islice(cases, 0, None, every):
        expected, recording = program(values), record(program, values)
        if not same(recording.result, expected) or len(recording.inputs) > 1 + ("v[" in text):
            wrong.append(("record", layout, text))
        if not same(interpret(recording.graph, *recording.inputs), expected):
            wrong.append(("replay", layout, text))
        if not same(jit(program)(values), expected):
            wrong.append(("jit", layout, text))
    return wrong


def test_windows_have_numpys_bits() -> None:
    assert not differences("y", OF_VECTORS, VECTORS, 13)
    assert not differences("x", OF_MATRICES, MATRICES, 17)


@pytest.mark.exhaustive
def test_all_uses_of_windows_have_numpys_bits() -> None:
    assert not differences("y", OF_VECTORS, VECTORS, 1)
    assert not differences("x", OF_MATRICES, MATRICES, 1)


def energy(y: Any) -> Any:
    return (sliding_window_view(y, 512)[::128] ** 2).sum(-1)


def test_a_slice_of_windows_is_one_view_without_indices() -> None:
    recording = record(energy, RANDOM.normal(size=5000))
    for graph in (recording.graph, jit(energy).traced(RANDOM.normal(size=5000)).graph):
        names = {symbol.op.name for symbol in graph.symbols}
        assert names <= {"input", "affine_view", "constant", "pow", "square", "sum"}
        (view,) = [symbol for symbol in graph.symbols if symbol.op is ops.affine_view]
        assert view.attrs["steps"] == ((128,), (1,)) and len(graph.inputs) == 1
    assert gives_again(recording, **EXACT) == 1


@every("run", [jit(energy), lambda y: record(energy, y), lambda y: audit(energy, y)])
def test_windows_take_memory_for_the_results_alone(run: Callable[[Any], Any]) -> None:
    second = RANDOM.normal(size=44100)
    run(second)
    tracemalloc.start()
    run(second)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * sliding_window_view(second, 512)[::128].nbytes


def test_windows_of_named_sizes() -> None:
    x = TensorType("float64", ("n", "m"))
    traced = trace(lambda x: sliding_window_view(x, (3, 2), (0, 1)).sum((-1, -2)), x)
    assert "affine_view(%x) {shape=[n-2, m-1, 3, 2], origin=[0, 0], steps=[[1, 0]" in str(
        traced.graph
    )
    expected = sliding_window_view(X, (3, 2), (0, 1)).sum((-1, -2))
    np.testing.assert_allclose(interpret(traced.graph, X), expected, rtol=1e-9)
    with pytest.raises(GraphirError, match="longer than axis 0"):
        trace(lambda x: sliding_window_view(x, 5), TensorType("float64", (4,)))


WRITES = {
    "y[3] = 100; return windows(y, 4) + 0": "",
    "z = y.copy(); w = windows(z, 4); z[3] = 100; return w + 0, z": "",
    "w = windows(y, 4, writeable=True); w[0] = 1; return y + 0": "",
    "w = windows(y, 4, writeable=True)[::4]; w[:] = 3; w *= 2; return y + 0": "",
    "w = as_strided(y, (5, 4), (32, 8)); w[1] = 1; w[:, 2] += 7; return y + 0": "",
    "w = as_strided(y, (3,), (64,)); w += 3; return y + 0": "",
    "w = as_strided(y[:16].reshape(4, 4), (4,), (40,)); w[:] = 0; w += 2; return y + 0": "",
    "z = np.zeros(20); w = as_strided(z, (17, 4), (8, 8)); w[2] = y[:4]; return z + y": "",
    "w = windows(y, 4, writeable=True); w[:] = y[:4]; return y": "share one place in memory",
    "w = windows(y, 4, writeable=True); w += 1; return y": "share one place in memory",
    "w = windows(y, 4); w[0] = 1; return y": "read-only",
    "w = as_strided(y, (5, 4), (32, 8), writeable=False); w[1] = 1; return y": "read-only",
    "return as_strided(y, (50, 6), (24, 8)).sum()": "outside of the array",
}


@every("text", WRITES)
def test_writes_through_windows_are_numpys_or_refused(text: str) -> None:
    space = dict(SPACE)
    exec(f"def program(y):\n    {text}", space)
    program: Any = space["program"]
    traced = np.arange(20.0)
    if WRITES[text]:
        with pytest.raises(GraphirError, match=WRITES[text]):
            jit(program)(traced)
        return
    plain, recorded = np.arange(20.0), np.arange(20.0)
    expected, result = program(plain), jit(program)(traced)
    recording = record(program, recorded)
    assert same(traced, plain) and same(recorded, plain)
    if not isinstance(expected, tuple):
        expected, result = (expected,), (result,)
    again = interpret(recording.graph, *recording.inputs)
    for parts in zip(expected, result, recording.outputs, strict=False):
        assert all(same(part, parts[0]) for part in parts)
    assert same(again[0] if isinstance(again, tuple) else again, recording.outputs[0])


OVERLAPPING = {
    "windows": lambda: sliding_window_view(np.arange(20.0), 4, writeable=True),
    "steps": lambda: sliding_window_view(np.arange(20.0), 4, writeable=True)[::2],
    "backward": lambda: sliding_window_view(np.arange(20.0), 4, writeable=True)[::-1],
    "repeated": lambda: as_strided(np.arange(6.0), (5, 6), (0, 8)),
    "one element": lambda: as_strided(np.arange(6.0), (5, 6), (0, 0)),
}


@every("kind", OVERLAPPING)
def test_arguments_whose_elements_overlap(kind: str) -> None:
    for text in ("w[::3] * 2", "w[2::2, 1:] + 0", "w[1:].T + w[:-1].T", "windows(w, 2, 0)[:, ::2]"):
        program = eval(f"lambda w: {text}", dict(SPACE))
        w = OVERLAPPING[kind]()
        recording = record(program, w)
        assert len(recording.inputs) == 1 and gives_again(recording, **EXACT)
        assert same(jit(program)(w), program(w)) and same(recording.result, program(w))

    def written(w: Any) -> Any:
        w[1:, 2] += 1
        return w + 0

    with pytest.raises(GraphirError, match="its elements share memory"):
        jit(written)(OVERLAPPING[kind]())
    recording = record(written, OVERLAPPING[kind]())
    assert same(recording.result, written(OVERLAPPING[kind]())) and gives_again(recording, **EXACT)


def test_views_between_the_elements_of_an_array_are_refused() -> None:
    gapped = np.arange(20.0).reshape(4, 5)[:, :4]
    with pytest.raises(GraphirError, match="between its elements"):
        jit(lambda x: as_strided(x, (3,), (24,)) * 2)(gapped)
    assert ops.affine_view in {
        symbol.op for symbol in record(lambda x: x.diagonal() * 2, gapped).graph.symbols
    }


@every("owner", ["y", "(y * 2)"])
def test_results_that_are_windows_lie_in_memory_as_numpys_do(owner: str) -> None:
    for view in [
        "windows(Y, 4)",
        "windows(Y, 4, writeable=True)[::2]",
        "np.broadcast_to(Y, (2, 20))",
    ]:
        program = eval(f"lambda y: {view.replace('Y', owner)}", dict(SPACE))
        y = np.arange(20.0)
        expected, result = program(y), jit(program)(y)
        assert same(result, expected) and result.strides == expected.strides
        assert result.flags.writeable == expected.flags.writeable
        assert np.shares_memory(result, y) == np.shares_memory(expected, y)


def test_reductions_of_windows_make_no_copies_of_them() -> None:
    for text in ("windows(y, 512).max(0)", "windows(y, 512).sum(0)"):
        program = jit(eval(f"lambda y: {text}", dict(SPACE)))
        y = RANDOM.normal(size=5000)
        program(y)
        tracemalloc.start()
        program(y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * y.nbytes  # 18 MB as copies
