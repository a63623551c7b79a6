"""Graphs of JAX functions: every dtype is the jaxpr's, and values are JAX's within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, GraphError, Symbol, ops
from graphir.passes import cast_report, lower
from graphir.passes.rewriter import bodies_of
from graphir.runtime import from_jax, interpret
from tests.support.evaluator import same
from tests.support.tables import every

jax = pytest.importorskip("jax")
jnp = jax.numpy

RNG = np.random.default_rng(1)
X = RNG.standard_normal((4, 5)).astype("float32")
Y = RNG.random((4, 5)).astype("float32") + 0.5
N = RNG.integers(-5, 9, (4, 5)).astype("int32")
B = X.astype(jnp.bfloat16)

UNARY = """
    abs negative sign exp expm1 exp2 log1p sqrt cbrt square reciprocal sin cos tan arctan sinh cosh
    tanh arcsinh deg2rad floor ceil trunc rint round isnan isinf isfinite nan_to_num sum prod mean
    var std max min argmax argmin any all cumsum cumprod ptp median sort argsort diff ravel flip
    rot90 transpose trace tril triu diag nansum nanmean nanmax nanstd count_nonzero gradient
    logical_not average trapezoid cov nanmedian sinc
"""
BINARY = """
    add subtract multiply divide floor_divide remainder fmod float_power maximum minimum fmax
    arctan2 hypot logaddexp equal less greater_equal logical_and isclose divmod
"""
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "where": (lambda x, n: jnp.where(x > 0, x, n), (X, N)),
    "index": (lambda x: x[1:3, ::2], (X,)),
    "take": (lambda x, i: x[i], (X, np.array([0, -1, 9], "int32"))),
    "take along two axes": (lambda x, i: x[i, i], (X, np.array([0, 3], "int32"))),
    "set": (lambda x: x.at[1].set(0), (X,)),
    "set at computed places": (lambda x, i: x.at[i, 1].set(7), (X, np.array([0, 8], "int32"))),
    "add at": (lambda x, i: x.at[i].add(1), (X, np.array([0, 1, 0], "int32"))),
    "dynamic slice": (lambda x, i: jax.lax.dynamic_slice(x, (i, 0), (2, 5)), (X, np.int32(9))),
    "dynamic update": (
        lambda x, i: jax.lax.dynamic_update_slice(x, jnp.zeros((2, 2)), (i, i)),
        (X, np.int32(2)),
    ),
    "pad": (lambda x: jax.lax.pad(x, 1.0, ((-1, 2, 1), (1, -2, 0))), (X,)),
    "einsum": (lambda x, y: jnp.einsum("ij,kj->ik", x, y), (X, Y)),
    "matmul of bfloat16": (lambda x: jnp.matmul(x, x.T), (B,)),
    "softmax": (jax.nn.softmax, (B,)),
    "gelu": (jax.nn.gelu, (X,)),
    "logsumexp": (jax.scipy.special.logsumexp, (X,)),
    "random": (lambda k: jax.random.uniform(k, (3,)), (np.array([0, 7], "uint32"),)),
    "weak": (lambda x: x * 2 + 1.5, (3,)),
    "fori_loop of a weak carry": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2 + x[i, 0], 0.0),
        (X,),
    ),
    "scan": (lambda x: jax.lax.scan(lambda c, r: (c + r.sum(), c * r), 0.0, x), (X,)),
    "while_loop": (
        lambda x: jax.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, x)),
        (X,),
    ),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, lambda: x, lambda: x * 2), (X,)),
    "switch": (
        lambda i, x: jax.lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x * 3], x),
        (np.int32(7), X),
    ),
    "map": (lambda x: jax.lax.map(lambda r: r.sum(), x), (X,)),
    "associative_scan": (lambda x: jax.lax.associative_scan(jnp.add, x), (X,)),
    "vmap": (jax.vmap(lambda x: jnp.dot(x, x)), (X,)),
    "grad": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), (X,)),
    "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (X,)),
    "custom_jvp": (jax.grad(lambda x: jax.nn.relu(x).sum()), (X,)),
    "solve": (lambda x: jnp.linalg.solve(x @ x.T + 4 * jnp.eye(4), x[:, 0]), (X,)),
}
CASES = {
    **{
        f"{name} of {x.dtype}": (getattr(jnp, name), (x,)) for name in UNARY.split() for x in (X, N)
    },
    **{
        f"{name} of {x.dtype}, {getattr(y, 'dtype', y)}": (getattr(jnp, name), (x, y))
        for name in BINARY.split()
        for x, y in ((X, N), (N, X), (N, N[::-1]), (B, Y), (X, 2), (N, 2.5))
    },
    **OTHERS,
}


def symbols(graph: Graph) -> Iterator[Symbol]:
    for symbol in graph.symbols:
        yield symbol
        for body in bodies_of(symbol):
            yield from symbols(body)


@every("name", CASES)
def test_graphs_have_the_values_of_jax(name: str) -> None:
    function, args = CASES[name]
    graph = from_jax(function, *args).verify()
    values = interpret(graph, *args)
    lowered = interpret(lower(graph, verify_each=True), *args)
    expected = [np.asarray(each) for each in jax.tree.leaves(jax.jit(function)(*args))]
    several = values if isinstance(values, tuple) else (values,)
    after = lowered if isinstance(lowered, tuple) else (lowered,)
    for value, again, right in zip(several, after, expected, strict=True):
        assert (value.dtype, value.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(value, again)
        if right.dtype.kind in "bui":
            np.testing.assert_array_equal(value, right)
        else:
            wide = [np.asarray(each, np.float64) for each in (value, right)]
            bound = 2e-2 if right.dtype == B.dtype else 1e-4
            np.testing.assert_allclose(*wide, rtol=bound, atol=bound)


PLACES = np.random.default_rng(0).integers(-5, 6, 40)


def _overlapping(scatter: Any, x: Any) -> Any:
    """Write windows of two rows, whose axes come before that of the windows."""
    numbers = jax.lax.ScatterDimensionNumbers((0, 1), (), (0,))
    updates = jnp.tile(x[:2, :, None], 40) * jnp.arange(1, 41, dtype=x.dtype)
    return scatter(x, np.clip(PLACES, -1, 4)[:, None], updates, numbers)


SCATTERS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x.at[PLACES].add(jnp.outer(jnp.arange(40, dtype=x.dtype), x[0])),
    "columns": lambda x: x.at[:, PLACES].add(x[:, :1]),
    "points": lambda x: x.at[PLACES, PLACES[::-1]].subtract(x[0, 1]),
    "clipped": lambda x: x.at[PLACES].add(x[0], mode="clip"),
    "gradient": jax.grad(lambda x: (jnp.take(x, PLACES, axis=0) ** 2).sum().astype("float32")),
    "windows": partial(_overlapping, jax.lax.scatter_add),
    "the last window": partial(_overlapping, jax.lax.scatter),
}


@every("dtype", ["float32", "bfloat16"])
@every("name", SCATTERS)
def test_scatters_have_the_bits_of_jax(name: str, dtype: str) -> None:
    x = X.astype(DType(dtype).storage)
    graph = from_jax(SCATTERS[name], x)
    assert all(symbol.op is not ops.call for symbol in symbols(graph))
    assert same(interpret(graph, x), np.asarray(jax.jit(SCATTERS[name])(x)))


def test_implicit_casts_come_back_with_their_reasons() -> None:
    def loss(x: Any, n: Any) -> Any:
        y = n * x
        z = y.astype(jnp.bfloat16) + jnp.mean(n)
        return jnp.where(z > 0, z, n), jnp.asarray(n, jnp.float32)

    report = cast_report(from_jax(loss, X, N))
    line = loss.__code__.co_firstlineno
    told = {
        (row.location.line - line, row.kind, row.operand, row.op, str(row.source), str(row.target))
        for row in report
    }
    assert told == {
        (1, "implicit", "lhs", "multiply", "int32", "float32"),
        (2, "explicit", "x", "cast", "float32", "bfloat16"),
        (2, "implicit", "intermediate", "jnp.mean", "int32", "float32"),
        (2, "implicit", "lhs", "add", "bfloat16", "float32"),
        (3, "implicit", "y", "where", "int32", "float32"),
        (3, "explicit", "x", "cast", "int32", "float32"),
    }


def test_a_primitive_without_a_row_is_a_call_of_jax() -> None:
    graph = from_jax(lambda x: jnp.fft.fft(x), X)
    (call,) = (symbol for symbol in symbols(graph) if symbol.op.name == "call")
    assert call.attrs["callee"].name == "jax.fft" and "fft_type" in call.attrs["parameters"]
    text = str(graph)
    assert str(Graph.parse(text)) == text
    np.testing.assert_allclose(interpret(graph, X), np.fft.fft(X), rtol=1e-4, atol=1e-4)


def test_numbers_drawn_while_tracing_are_a_note() -> None:
    (note,) = from_jax(lambda x: x * np.random.rand(), np.float32(1)).notes
    assert "draws from numpy.random are constants" in note


def test_leaves_that_are_no_arrays_are_notes() -> None:
    def named(x: Any) -> Any:
        return {"name": "layer", "value": x * 2}

    graph = from_jax(named, X)
    assert len(graph.outputs) == 1
    assert graph.notes == ["result['name'] is no output: it is str"]
    gradient = jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)
    graph = from_jax(gradient, X, N)
    assert graph.notes == ["result[1] is no output: it is float0"]


DRAWN = RNG.normal(0, 3, (6, 7))
EDGES = np.array([0, 1, -3, 1e20, np.inf, np.nan, -0.0, 2.5], "float32")
PLANE = np.array([complex(a, b) for a in EDGES for b in EDGES], "complex64")
EXPONENTS = np.array([0, 2, -1, 7, 0.5, 1j, np.nan, np.inf, 3 - 0.5j], "complex64")


def _exact_cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    for name in ("float16", "float32", "bfloat16"):
        x, row = DRAWN.astype(name), DRAWN[0].astype(name)
        cases |= {
            f"{name} by a number": (lambda x: (x / 0.9, x / 4, x // 0.3, x % 0.7), (x,)),
            f"{name} by 0-d": (lambda x, y: (x / y, y / x), (x, row[0])),
            f"{name} by a row": (lambda x, y: (x / y, y / x), (x, row)),
            f"{name} by an array": (lambda x, y: x / y, (x, x[::-1])),
        }
    for dtype in ("int32", "float32", "bool"):
        cases[f"extremes of no {dtype}"] = (
            lambda x: (jax.lax.reduce_max(x, (0,)), jax.lax.reduce_min(x, (0,))),
            (np.zeros((0, 3), dtype),),
        )
    edges = np.array([0, 1, 2, 7, 8, 127, 128, 254, 255], "uint8")
    for dtype in ("int8", "uint8"):
        pairs = [x.astype(dtype) for x in np.meshgrid(edges, edges)]
        for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic", "div", "rem"):
            cases[f"{name} of {dtype}"] = getattr(jax.lax, name), (pairs[0], pairs[1])
    sizes = np.array([1e-6, 6e-5, 0.3, 6.1e-5, 1e-40, 7e4, np.nan, -np.inf])
    with np.errstate(all="ignore"):
        for dtype in ("float16", "float32", "bfloat16"):
            cases[f"reduced precision of {dtype}"] = (
                lambda x: [
                    jax.lax.reduce_precision(x, *bits) for bits in ((8, 7), (5, 10), (8, 23))
                ],
                (np.concatenate([sizes, DRAWN[0]]).astype(dtype),),
            )
    zeros = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf])
    for dtype in ("float16", "float32", "bfloat16"):
        x = zeros.astype(dtype)
        cases |= {
            f"signs of {dtype}": (lambda x: (jnp.sign(x), jax.lax.sign(x)), (x,)),
            f"zeros of {dtype}": (
                lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jax.lax.clamp(y, x, -y)),
                (np.stack([x] * 6), np.stack([x] * 6).T),
            ),
            f"zeros of {dtype} and integers": (
                lambda x, n: (jnp.maximum(x, n), jnp.minimum(x, n), jnp.maximum(n, x)),
                (x, np.array([0, 0, 2, -3, 0, 1], "int32")),
            ),
            f"zeros of {dtype} and constants": (
                lambda x: [
                    (jnp.maximum(x, c), jnp.maximum(c, x), jnp.minimum(x, c), jnp.clip(x, c, 1))
                    for c in (0.0, -0.0, 0.5)
                ],
                (x,),
            ),
        }
    cases["tangents of integers"] = (
        jax.jacfwd(lambda x: jnp.asarray(x, bool) * 300),
        (np.zeros((1, 0), "float32"),),
    )
    cases["rounded decimals"] = lambda x: jnp.round(x, 1), (DRAWN.astype("float32"),)
    cases["softmax of no elements"] = jax.nn.softmax, (np.zeros(0, "float32"),)
    return cases


EXACT = _exact_cases()


@every("name", EXACT)
def test_exact_ops_have_the_bits_of_jax(name: str) -> None:
    """XLA multiplies by the reciprocal of a broadcast divisor, of each function by itself."""
    function, args = EXACT[name]
    graph = from_jax(function, *args).verify()
    expected = [np.asarray(x) for x in jax.tree.leaves(function(*map(jnp.asarray, args)))]
    for form in (graph, lower(graph)):
        values = interpret(form, *args)
        for value, right in zip(jax.tree.leaves(values), expected, strict=True):
            assert value.dtype == right.dtype
            wide = value.astype("float64"), right.astype("float64")
            np.testing.assert_array_equal(*wide)
            signs = [np.signbit(x) | np.isnan(x) for x in wide]
            np.testing.assert_array_equal(*signs)


def test_powers_of_complex_numbers_end_as_in_jax() -> None:
    x, y = np.meshgrid(PLANE, EXPONENTS)
    value = interpret(from_jax(jax.lax.pow, x, y), x, y)
    right = np.asarray(jax.jit(jax.lax.pow)(x, y))
    # A part that is small beside the other is the sine of an angle near a zero, whose last bit
    # depends on the processor, and so does the sign of an infinity: XLA has other vectors with
    # AVX-512.
    least = np.where(np.isfinite(right), 1e-6 * np.abs(right), 0.0) + 1e-30
    for got, want in ((value.real, right.real), (value.imag, right.imag)):
        got, want = (np.where(np.isinf(x), np.inf, x) for x in (got, want))
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
        with np.errstate(invalid="ignore"):
            near = np.isclose(got, want, rtol=1e-4, atol=0, equal_nan=True)
            assert (near | (np.abs(got - want) <= least)).all()


def test_a_weak_value_of_another_dtype_than_the_default_has_that_dtype() -> None:
    with jax.enable_x64(True):
        graph = from_jax(lambda x: jax.lax.top_k(x * 7, 2), np.array([True, False, True]))
        assert [str(x.dtype) for x in graph.outputs] == ["weak_int", "int32"]
        values = interpret(graph, np.array([True, False, True]))
    assert [value.dtype.name for value in values] == ["int64", "int32"]


def test_complex_numbers_compare_as_in_jax() -> None:
    x, y = np.meshgrid(PLANE, EXPONENTS)
    for function in (jax.lax.max, jax.lax.min):
        value, right = interpret(from_jax(function, x, y), x, y), np.asarray(function(x, y))
        np.testing.assert_array_equal(value.real, right.real)
        np.testing.assert_array_equal(value.imag, right.imag)


def test_an_array_that_a_jitted_function_does_not_read_is_no_symbol() -> None:
    inner = jax.jit(lambda a, b: a * 2)
    x = np.ones(3, "float32")
    graph = from_jax(lambda x: inner(inner(x, jnp.array([1, 2])), 1.5), x)
    np.testing.assert_array_equal(interpret(graph, x), x * 4)
    assert [symbol.op for symbol in graph if symbol.op is ops.constant and symbol.rank] == []


# -- carries


def _loops() -> dict[str, tuple[Callable[..., Any], Any]]:
    scan, while_loop, fori_loop = jax.lax.scan, jax.lax.while_loop, jax.lax.fori_loop
    zero, xs = jnp.zeros(()), jnp.arange(4.0)
    count = jnp.int32(0)
    return {
        "strong in, weak out": (lambda x: scan(lambda c, x: (2.0 * (x > 0) - 1.0, c), zero, x), xs),
        "weak in, strong out": (lambda x: scan(lambda c, x: (c + x, c), 0.0, x), xs),
        "weak in and out": (lambda x: scan(lambda c, x: (c + 1.0, c), jnp.asarray(1.0) * 0, x), xs),
        "swapped": (lambda x: scan(lambda c, x: ((c[1], 2.0 * (x > 0)), x), (zero, 1.0), x), xs),
        "ints": (lambda x: scan(lambda c, x: ((c[1], c[0]), x), (0, count), x), xs),
        "bool": (lambda x: scan(lambda c, x: (True, c), jnp.array(False), x), xs),
        "complex": (lambda x: scan(lambda c, x: (c * 1j, x), jnp.complex64(1), x), xs),
        "while": (
            lambda x: while_loop(
                lambda c: c[0] < 3, lambda c: (c[0] + 1, 2.0 * (c[0] > 0) - 1.0), (0, zero)
            ),
            xs,
        ),
        "fori_loop": (lambda x: fori_loop(0, 3, lambda i, c: 1.0 * i, zero), xs),
        "mapped": (
            jax.vmap(
                lambda x: while_loop(
                    lambda c: c[0] < x, lambda c: (c[0] + 1, 2.0 * (c[0] > 0) - 1.0), (0.0, zero)
                )
            ),
            xs,
        ),
        "nested": (
            lambda x: scan(
                lambda c, x: (while_loop(lambda k: k < 3, lambda k: 2.0 * (x >= 0) + 1.0, c), c),
                zero,
                x,
            ),
            xs,
        ),
        "gradient": (
            jax.grad(lambda x: scan(lambda c, y: (2.0 * y, c * y), zero, x)[1].sum()),
            xs,
        ),
    }


@pytest.mark.parametrize("x64", [False, True])
def test_the_rule_of_carries_is_that_of_jax(x64: bool) -> None:
    """A body may take a strong carry and return a weak one, of the same dtype."""
    with jax.enable_x64(x64):
        for name, (function, x) in _loops().items():
            graph = from_jax(function, x)
            right = [np.asarray(leaf) for leaf in jax.tree.leaves(function(x))]
            for each in (graph.verify(), lower(graph)):
                values = interpret(each, np.asarray(x))
                several = values if isinstance(values, tuple) else (values,)
                for value, other in zip(several, right, strict=True):
                    assert value.dtype == other.dtype, name
                    np.testing.assert_array_equal(value, other, name)
            rows = [row for row in cast_report(graph) if row.operand == "intermediate"]
            assert not any(row.source.weak or row.target.weak for row in rows), name


# -- 64 bits


def test_explicit_dtypes_of_64_bits_compute_in_64() -> None:
    """Where JAX allows them beside a default of 32, nothing is cut, and no cast is invented."""
    before = jax.config.jax_explicit_x64_dtypes

    def function(x: Any) -> Any:
        wide, count = x.astype(jnp.float64), jnp.arange(4, dtype="int64")
        means = jnp.mean(count), jnp.sum(jnp.arange(3, dtype="int8")), jnp.sum(wide)
        return (
            wide / 3,
            count * wide,
            jnp.sin(count),
            x * 2,
            jnp.where(x > 0, 1, 2),
            *means,
            wide * x,
        )

    jax.config.update("jax_explicit_x64_dtypes", "allow")
    try:
        x = jnp.arange(4.0)
        graph = from_jax(function, x)
        right = [np.asarray(leaf) for leaf in jax.tree.leaves(function(x))]
        values = [interpret(each, np.asarray(x)) for each in (graph.verify(), lower(graph))]
        casts = cast_report(from_jax(lambda x: x.astype(jnp.float64) / 3, x))
        called = from_jax(lambda x: jnp.linalg.inv(x.astype("float64").reshape(2, 2) + 1), x)
    finally:
        jax.config.update("jax_explicit_x64_dtypes", before)
    for several in values:
        for value, other in zip(several, right, strict=True):
            assert value.dtype == other.dtype
            np.testing.assert_allclose(value, other, rtol=1e-15 if other.itemsize == 8 else 1e-6)
    assert [row.kind for row in casts] == ["explicit"]
    inverse = interpret(called, np.asarray(x))  # a call, outside of the setting
    assert inverse.dtype == "float64"
    np.testing.assert_allclose(inverse, np.linalg.inv([[1.0, 2], [3, 4]]), rtol=1e-14)


def test_a_call_has_the_bits_that_jax_had_at_the_import() -> None:
    with jax.enable_x64(True):
        graph = from_jax(jnp.linalg.inv, jnp.array([[1.0, 2], [3, 4]]))
    value = interpret(graph, np.array([[1.0, 2], [3, 4]]))
    assert value.dtype == "float64"


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([2**40, 3]), "changes 1 of 2 values (1099511627776 becomes 0)"),
        (np.array([0.1, 0.5, np.nan]), "changes 1 of 3 values (0.1 becomes 0.10000000149011612)"),
        (np.array([3, 4]), ""),
        (np.array([0.5, np.inf]), ""),
        (np.array([[True]]), ""),
    ],
)
def test_values_that_jax_cuts_are_counted(array: Any, words: str) -> None:
    notes = from_jax(lambda counts: counts * 2, array).notes
    assert len(notes) == bool(words)
    assert all(words in note and f"the {array.dtype} argument counts" in note for note in notes)
    assert all('jax.config.update("jax_enable_x64", True)' in note for note in notes)
    with jax.enable_x64(True):
        assert from_jax(lambda counts: counts * 2, array).notes == []


# -- primitives of strangers


def _primitive(name: str, several: bool = False) -> Any:
    primitive: Any = jax.extend.core.Primitive(name)
    primitive.multiple_results = several

    def shape(x: Any, **_: Any) -> Any:
        aval = jax.core.ShapedArray(x.shape, x.dtype)
        return [aval] if several else aval

    primitive.def_abstract_eval(shape)
    return primitive


@pytest.mark.parametrize("name", ["unheard_of", "transpose", "reduce_sum", "scan", "while", "jit"])
def test_a_primitive_with_parameters_of_its_own_is_a_call(name: str) -> None:
    """It may have the name of one of JAX: another version of JAX has other parameters."""
    several = name in ("scan", "while")
    primitive = _primitive(name, several)
    primitive.def_impl(lambda x, **_: [x + 1] if several else x + 1)
    for parameters in ({}, {"setting": object()}, {"jaxpr": 3, "axes": "all"}):
        graph = from_jax(
            lambda x, p=parameters: jax.tree.leaves(primitive.bind(x * 2, **p))[0], jnp.ones(3)
        )
        np.testing.assert_array_equal(interpret(graph, np.ones(3, "float32")), [3, 3, 3])


def test_a_parameter_that_a_row_does_not_know_makes_a_call() -> None:
    preset = jax.lax.DotAlgorithmPreset.BF16_BF16_F32
    x = jnp.asarray(X[:4, :4])
    graph = from_jax(lambda x: jax.lax.dot(x, x, precision=preset), x)
    assert [s.attrs["callee"].name for s in graph if s.op is ops.control.call] == [
        "jax.dot_general"
    ]
    right = jax.lax.dot(x, x, precision=preset)
    np.testing.assert_array_equal(interpret(graph, np.asarray(x)), np.asarray(right))


def test_a_primitive_that_jax_cannot_compute_is_refused_by_name() -> None:
    with pytest.raises(GraphError, match=r"test_from_jax\.py:.*lonely has neither an op"):
        from_jax(lambda x: _primitive("lonely").bind(x * 2), jnp.ones(3))


def test_an_error_of_a_call_has_its_name() -> None:
    primitive = _primitive("failing")

    def fail(x: Any) -> Any:
        raise KeyError("no such thing")

    primitive.def_impl(fail)
    graph = from_jax(lambda x: primitive.bind(x * 2), jnp.ones(3))
    with pytest.raises(ExecutionError, match=r"jax\.failing: JAX does not compute it"):
        interpret(graph, np.ones(3, "float32"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", ["float32", "bfloat16", "int16", "uint8", "bool", "complex64"])
def test_complex_numbers_become_real_as_in_jax(to: str) -> None:
    """JAX warns of the imaginary parts that it drops; the graph has a note."""
    z = np.array([1 + 2j, 0, 2j, 3.5], "complex64")
    graph = from_jax(lambda z: z.astype(to), z)
    right = np.asarray(jnp.asarray(z).astype(to))
    assert interpret(graph, z).dtype == right.dtype
    np.testing.assert_array_equal(interpret(graph, z).astype(complex), right.astype(complex))
    assert any("drops imaginary parts" in note for note in graph.notes) == (
        to[0] not in "bc" or "16" in to
    )
