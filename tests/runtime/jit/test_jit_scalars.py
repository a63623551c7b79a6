"""NumPy's scalars under jit: the bits of products and powers, and which results are scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import trace
from graphir.runtime import execute, jit
from tests.support.tables import every, sampled

LINES = [
    "x[0] * y[0]",
    "x[0] * y[0] * 3",
    "x[0] ** y[0]",
    "x[0] ** 2",
    "x[0] ** 1.5",
    "2.5 ** x[0]",
    "x[0] ** -1",
    "x[0] ** 3",
    "x[0] ** 0.5",
    "np.power(x[0], y[0])",
    "np.multiply(x[0], y[0])",
    "x[0, ...] ** y[0, ...]",
    "x[0, ...] * y[0]",
    "x[:1] ** y[:1]",
    "x.sum() ** 1.7",
    "np.float64(1.7) ** x[0]",
    "x[0] ** np.float32(1.7)",
    "(x[0] - y[0]) * (x[0] + y[0])",
]


@sampled(2)
@every("dtype", ["f8", "f4", "c16", "c8"])
@every("line", LINES)
def test_scalars_have_numpys_bits(line, dtype):
    space = {"np": np, "__name__": "user"}
    exec(f"def f(x, y):\n    return {line}\n", space)
    random, jitted = np.random.default_rng(3), jit(space["f"])
    for _ in range(120):
        x, y = (np.abs(random.normal(size=3)) for _ in range(2))
        if dtype[0] == "c":
            x, y = (z + 1j * random.normal(size=3) for z in (x, y))
        x, y = x.astype(dtype), y.astype(dtype)
        expected, result = np.asarray(space["f"](x, y)), np.asarray(jitted(x, y))
        assert (expected.dtype, expected.tobytes()) == (result.dtype, result.tobytes())


FORMS: dict[str, Callable[[Any], Any]] = {
    "sqrt of sum": lambda x: np.sqrt(np.sum(x * x)),
    "argmax": lambda x: x.argmax(),
    "any": lambda x: (x.any(), np.all(x > 0), np.allclose(x, x), np.array_equal(x, x)),
    "x[2]": lambda x: (x[2], x[..., 2], x.flat[1], x[2][()]),
    "mean": lambda x: (x.mean(), np.mean(x), np.average(x), x.std(), np.var(x), np.ptp(x)),
    "order": lambda x: (np.median(x), np.percentile(x, 30), np.sort(x)[0], np.count_nonzero(x)),
    "round": lambda x: (np.round(x[0]), round(x[0], 1), np.around(x.mean(), 2)),
    "divmod": lambda x: divmod(x[0], 2),
    "products": lambda x: (x @ x, x.dot(x), np.dot(x, x), np.vdot(x, x), np.tensordot(x, x, 1)),
    "einsum": lambda x: np.einsum("i,i->", x.astype(int), x.astype(int)),
    "take": lambda x: (np.take(x, 1), x.take(1), np.searchsorted(x, 2.0), np.digitize(x[0], x)),
    "where": lambda x: (np.where(x[0] > 1, x[0], x[1]), np.select([x[0] > 1], [x[0]])),
    "movement": lambda x: (np.squeeze(x[:1]), np.reshape(x[0], ()), np.transpose(x[0]), x[0].T),
    "arrays": lambda x: (np.array(x.sum()), x[:1].reshape(()), np.asarray(x[0]), np.copy(x[0])),
    "of arrays": lambda x: (-np.array(x.sum()), np.array(x[0]) + 1, np.sqrt(np.array(x[0]))),
    "made": lambda x: (np.zeros(()), np.full((), x[0]), np.zeros_like(x[0])),
    "parts": lambda x: (x[0].imag, (x[0] * 1j).imag, np.real(np.array(x[0])), x[0].conj()),
    "functions": lambda x: (np.nan_to_num(x[0]), np.interp(2.0, x, x), np.clip(x[0], 0, 1)),
    "norm": lambda x: (np.linalg.norm(x), np.trace(np.outer(x, x)), np.polyval(x, 0.5)),
    "selection": lambda x: (x[x > 1].sum(), x[x > 1].mean(), np.add.reduce(x)),
    "numbers": lambda x: (x.size, x.shape, x.ndim, 3, 0.5, True, 1j, np.float32(2), x.shape[0] * 2),
    "structure": lambda x: [None, x, {"a": x.sum(), "b": [x.max()]}, (x.sum(keepdims=True),)],
    "astype": lambda x: (x[0].astype(np.float32), x.astype(np.int8)[1], np.sum(x > 1)),
}


def _alike(a: Any, b: Any) -> bool:
    """Whether two results have the same classes, dtypes and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict):
        return all(_alike(a[name], b[name]) for name in a)
    return a is b or (np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b))


def test_results_are_scalars_where_numpy_gives_scalars() -> None:
    def program(x: Any) -> Any:
        return {name: function(x) for name, function in FORMS.items()}

    x = np.array([1.0, 2.0, 2.5, 4.0])
    theirs, jitted = program(x), jit(program)
    for _ in range(3):
        ours = jitted(x)
        assert [name for name in FORMS if not _alike(ours[name], theirs[name])] == []
    assert _alike(trace(program, x).outputs(execute(trace(program, x).graph, x)), theirs)


def test_scalars_on_the_fast_paths() -> None:
    x = np.arange(5.0)
    for function in (
        lambda x: x.sum(),
        lambda x: (x.sum(), x * 2, 3),
        lambda x: (x > 3).any(),
        lambda x: x.shape[0],
    ):
        jitted = jit(function)
        for _ in range(4):
            assert _alike(jitted(x), function(x))
    numbers = jit(lambda x, k: (k, k * 2, x * k, k / 2))
    for k in (3, 4, 2.5, True, 7):
        assert _alike(numbers(x, k), (k, k * 2, x * k, k / 2))
    assert {jit(lambda x: x.sum())(x): 1}[10.0] == 1
    assert jit(lambda x: x.sum(), rules="jax")(x).shape == ()


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "scalar": lambda x: (np.float32(x[0]), np.int8(x[1]), np.bool(x[0]), np.complex64(x.sum())),
    "array": lambda x: (np.float32(x), np.int64(x), np.float64(x.T), np.uint8(x[:2])),
    "list": lambda x: (np.float32([x[0], 2]), np.int16([x[1], x[2]])),
    "in arithmetic": lambda x: np.float32(x[1]) * np.float32(2) + np.float16(len(x)),
    "0-d": lambda x: (np.float32(x[0, ...]), np.asfortranarray(x[0]), np.ascontiguousarray(x[1])),
    "reshape": lambda x: (x.sum().reshape(()), x[0].reshape([]), np.reshape(x.sum(), ())),
    "loops": lambda x: np.array([np.float32(value) for value in x]),
    "classes": lambda x: (
        x + {np.float32: 1, np.float64: 2}[type(x[0])] * (np.float64 is x.dtype.type)
    ),
    "dtypes": lambda x: (x.astype(np.float32), np.zeros(3, np.int8) + x, np.array(x, np.float16)),
    "facts": lambda x: x * np.finfo(np.float32).eps + np.dtype(np.int8).itemsize,
    "isinstance": lambda x: x + isinstance(x[0], np.float64) + issubclass(np.float32, np.floating),
    "ndarray": lambda x: _filled(np.ndarray(3), x),
    "known buffer": lambda x: x[:2] + np.ndarray((2,), buffer=np.arange(4.0), offset=8),
}


def _filled(array: Any, x: Any) -> Any:
    array[:] = x
    return array


def test_calls_of_numpys_classes_convert() -> None:
    x = np.array([3.5, 1.0, 0.25])
    for name, program in CONVERSIONS.items():
        expected, result = program(x), jit(program)(x)
        pairs = (expected, result) if isinstance(expected, tuple) else ([expected], [result])
        for theirs, ours in zip(*pairs, strict=True):
            assert type(ours) is type(theirs), name
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name
            assert np.array_equal(ours, theirs) and np.shape(ours) == np.shape(theirs), name


def test_arrays_in_place_of_dtypes_raise_numpys_errors() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.dtype(x),
        lambda x: np.finfo(x).eps,
        lambda x: np.iinfo(x.astype(int)).max,
        lambda x: np.issubdtype(x, np.floating),
        lambda x: np.promote_types(x, np.int8),
        lambda x: np.fromstring(x),
        lambda x: np.nansum((), 0, x),
        lambda x: np.nanvar(x, dtype=x),
    ]
    for call in calls:

        def caught(x: Any, call: Any = call) -> Any:
            try:
                return call(x) * x
            except TypeError:
                return x + 1
            except ValueError:
                return x + 2

        x = np.arange(3.0)
        assert np.array_equal(jit(caught, static="call")(x), caught(x)), call
    assert jit(lambda x: x * np.issubdtype(x.dtype, np.floating))(np.ones(1)) == 1
    assert (
        jit(lambda x: x.astype(np.promote_types(x.dtype, np.complex64)))(np.ones(1)).dtype
        == complex
    )
