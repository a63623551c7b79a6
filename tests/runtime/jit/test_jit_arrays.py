"""jit of programs that write to arrays: results and arguments after the call are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import GraphError, GraphirError, trace
from graphir.numpy_api.arrays import memory
from graphir.runtime import interpret, jit
from tests.runtime.view_programs import copied, differs
from tests.support.tables import every, sampled


def _stencil(x: Any, y: Any) -> Any:
    for _ in range(3):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        x[x > 3] -= y[0]
    return x.sum()


def _filled(x: Any, y: Any) -> Any:
    out = np.empty(len(x), dtype=x.dtype)
    for i, one in enumerate(x):
        out[i] = one * 2 if i % 2 else y[i]
    return out, np.array([out[0], 1, y[1]]), np.linspace(0, 1, 3)[1] * x


def _aliases(x: Any, y: Any) -> Any:
    z = x
    z += 1
    rows = x.reshape(2, -1)
    rows[1] *= 3
    copy = rows.copy()
    copy[0] = -1
    return x is z, rows, copy, x.ravel()[::-1]


def _masked(x: Any, y: Any) -> Any:
    there = x > y
    x[there] = x[there] * 2 - y[there]
    y[~there] **= 2
    np.copyto(y, 0, where=there)
    return np.add(x, y, out=np.zeros_like(x), where=there)


def _swapped(x: Any, y: Any) -> Any:
    x[0], x[-1] = x[-1], x[0]
    first, *rest = x
    x[[0, 0, 1]] += [1, 2, 3]
    np.add.at(x, [2, 2], first)
    x.flat[3:5] = 7
    y.sort()
    return first, rest[0], x.dtype == np.float64, isinstance(x, np.ndarray), x[1:].base is None


def _by_index(x: Any, y: Any) -> Any:
    at = np.argmax(x)
    x[at] = 0
    order = np.argsort(y)
    x[order[:2]] += 1
    table = np.arange(6.0)
    table[at] = x[at] + 5
    return table, x[order], y[at]


PROGRAMS = [_stencil, _filled, _aliases, _masked, _swapped, _by_index]
CALLS: dict[str, Any] = {
    "apart": lambda whole: (whole[:6], whole[6:12]),
    "strided": lambda whole: (whole[:12:2], whole[12:18]),
    "the same": lambda whole: (whole[:6], whole[:6]),
    "overlapping": lambda whole: (whole[:6], whole[3:9]),
    "backwards": lambda whole: (whole[5::-1], whole[:6]),
}


@sampled(2)
@every("way", CALLS)
@every("program", PROGRAMS)
def test_arguments_change_as_with_numpy(program: Any, way: str) -> None:
    jitted = jit(program)
    for seed in (0, 1):
        whole = np.random.default_rng(seed).random(18).round(1) * 5
        ours, theirs = copied(CALLS[way](whole)), copied(CALLS[way](whole))
        expected, results = program(*theirs), jitted(*ours)
        pairs = [(expected, results)] if type(expected) is not tuple else zip(expected, results)  # noqa: B905
        for a, b in [*pairs, *zip(theirs, ours, strict=True)]:
            assert not differs(b, a), (a, b)


def test_one_function_serves_arrays_that_lie_in_any_way() -> None:
    jitted = jit(_aliases)
    for way in (*CALLS, *CALLS):
        ours, theirs = (copied(CALLS[way](np.arange(18.0))) for _ in range(2))
        _aliases(*theirs), jitted(*ours)
        assert np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[1], theirs[1])


def test_a_trace_gives_new_values_of_arguments_as_last_outputs() -> None:
    x, y = np.arange(6.0), np.arange(6.0)
    traced = trace(_masked, x, y)
    values = interpret(traced.graph, x, y)
    _masked(x, y)
    assert [at for at, _ in traced.writes] == [0, 1]
    assert all(np.array_equal(values[at], one) for (_, at), one in zip(traced.writes, (x, y)))  # noqa: B905
    assert traced.outputs(values).shape == (6,)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda x: x if x[0] > 0 else -x, TypeError, "ops.where"),
    (lambda x: np.median(x[x > 0]), ValueError, r"np\.where"),
    (lambda x: x[10], IndexError, "out of bounds"),
    (lambda x: x.__setitem__(0, 1j), TypeError, "complex"),
    (lambda x: x.__iadd__(1j), TypeError, "same_kind"),
    (lambda x: np.add(x, 1, out=np.empty(3)), ValueError, "shape"),
    (lambda x: np.broadcast_to(x, (2, 6)).fill(1), ValueError, "read-only"),
    (lambda x: x.view("M8[s]"), ValueError, "astype"),
    (lambda x: x[: x.argmax()], ValueError, "depend on values"),
    (lambda x: x.base, ValueError, "is a view"),
    (lambda x: np.asarray(x).__array__(), TypeError, "no value"),
]


@every(("function", "kind", "words"), REFUSED)
def test_what_jit_cannot_follow_is_refused_at_its_line(
    function: Any, kind: Any, words: str
) -> None:
    x = np.arange(6.0)
    with pytest.raises(GraphirError, match=words) as caught:
        jit(lambda x: (function(x), x))(x)
    assert isinstance(caught.value, kind) and caught.value.location is not None
    assert caught.value.location.file.endswith("test_jit_arrays.py") and (x == np.arange(6.0)).all()


def _branch(x: Any) -> Any:
    if x.sum() > 2:
        return x
    return -x


def _descent(x: Any) -> Any:
    y = x * 1.0
    while np.abs(y).max() > 1:
        y = y / 2
    return y


def _assertion(x: Any) -> Any:
    y = x + 1
    assert (y > 0).all(), "positive"
    return y


def _greatest(x: Any) -> Any:
    y = x[0]
    return max(y, x[1])


@every("follow", [jit, lambda f: lambda x: trace(f, x)])
@every(("function", "line"), [(_branch, 1), (_descent, 2), (_assertion, 2), (_greatest, 2)])
def test_a_branch_on_a_value_is_refused_at_its_line(follow: Any, function: Any, line: int) -> None:
    words = r"bool\(.*choose with ops\.where\(.*branch with graphir\.control\.cond"
    with pytest.raises(GraphirError, match=words) as caught:
        follow(function)(np.arange(6.0))
    place = caught.value.location
    assert place is not None and place.line == function.__code__.co_firstlineno + line


def test_a_long_loop_is_refused_where_it_is_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LONGEST_TRACE", 2000)

    def loop(x: Any) -> Any:
        for i in range(3000):
            x[i % 6] = i
        return x

    words = "loop here is unrolled into more than 2,000 ops; write it as operations on whole"
    with pytest.raises(GraphError, match=words) as caught:
        jit(loop)(np.zeros(6))
    assert caught.value.location is not None
    assert caught.value.location.line == loop.__code__.co_firstlineno + 2


def test_read_only_arguments_stay_as_they_are() -> None:
    x = np.zeros(3)
    x.setflags(write=False)
    with pytest.raises(GraphError, match="read-only"):
        jit(lambda x: x.fill(1))(x)


def test_makers_are_numpys_again_after_a_trace() -> None:
    zeros = globals()["np"].zeros
    jit(lambda x: np.zeros(3) + x)(np.ones(3))
    assert np.zeros is zeros and globals()["np"] is np and type(np.zeros(2)) is np.ndarray


def test_a_scalar_is_bound_anew_and_an_array_without_axes_is_written_to() -> None:
    @jit
    def increased(x: Any) -> Any:
        x += 1
        return x

    array = np.array(1.0)
    assert increased(array) == 2 and array == 2
    assert increased(np.float64(1)) == 2 and increased(array) == 3 and array == 3


BODIES: list[Any] = [
    np.gradient,
    np.unwrap,
    lambda x: np.pad(x, 2, mode="edge"),
    lambda x: np.pad(x, (1, 3), mode="reflect"),
    lambda x: np.piecewise(x, [x < 2, x >= 2], [-1, 1]),
    lambda x: np.isin(x, [1, 2]),
    lambda x: np.fromiter((one * 2 for one in x), float),
    lambda x: np.trapezoid(x, dx=0.5),
    lambda x: np.linalg.multi_dot([x[:, None], x[None], x[:, None]]),
]


@every("function", BODIES)
def test_functions_that_numpy_writes_in_python_run_as_they_are(function: Any) -> None:
    x = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.5])
    traced = jit(lambda x: function(x)).traced(x)
    assert not differs(jit(lambda x: function(x))(x), function(x))
    files = {one.location.file for one in traced.graph.symbols}
    assert all(file.endswith("test_jit_arrays.py") for file in files)
