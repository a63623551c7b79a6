"""Results of jit and of recordings lie in memory as NumPy's do: strides, bits and dtypes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphirError, ops, trace
from graphir.numpy_api.arrays.temporaries import LEAST_BYTES
from graphir.passes import rebuild
from graphir.passes.pipeline import lower_to_ops
from graphir.runtime import array_api as xp
from graphir.runtime import execute, interpret, jit, record, targets
from graphir.semantics.library_calls import MemoryLayout
from tests.support.tables import every, sampled

RUNS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, *args: jit(f)(*args),
    "record": lambda f, *args: record(f, *args).result,
}

UNARY = """
a + 1; -a; abs(a); np.exp(a); np.isnan(a); a.copy('K'); np.copy(a); a.astype('f4'); a.T + 0; a.T
a.max(0); a.any(0); a.sum(1); a.sum((0, 2)); a.mean(0); a.std(0); a.cumsum(0); np.sort(a, 0)
np.zeros_like(a); np.full_like(a, 2); np.round(a, 1); a.clip(0, 1); np.take(a, [0, 1], axis=1)
a[[0, 1]]; a[:, [0, 1]]; a[..., [1, 0]]; (a + 1).T; (a + 1)[::2]; (a + 1)[:, ::-1]
(a + 1).reshape(-1); (a + 1).ravel('K'); np.swapaxes(a + 1, 0, 1); np.moveaxis(a + 1, 0, -1)
np.add.reduce(a, 1); np.add.accumulate(a, 1); np.maximum.reduce(a, 1, keepdims=True)
np.multiply.outer(a[0, 0], a[0]); np.repeat(a, 2, axis=1); np.roll(a, 1, axis=0)
np.diff(a, axis=0); np.flip(a) + 1; np.pad(a, 1); np.nan_to_num(a); np.asfortranarray(a) + 1
np.broadcast_to(a.sum(0), (3, *a.shape[1:])); np.real(a + 1); np.median(a, 0); np.triu(a)
np.where(a > 0, a, 0); a @ a.transpose(0, 2, 1); np.modf(a)[0] if False else a - 1
(a + 1j * a).conj(); np.split(a + 1, 2); np.delete(a, 1, axis=0); np.concatenate([a, a + 1])
np.stack([a, -a]); np.exp(a - a.max(-1, keepdims=True)).sum(-1); (a * a)[1:, :, ::2] * 3
"""
BINARY = """
a * b; a - b; a / b; np.maximum(a, b); a < b; np.where(a < b, a, b); np.hypot(a, b)
np.divmod(a, b); (a * b).sum(1); np.exp(a) * b; np.clip(a, b, 2); np.concatenate([a, a + b])
"""
OPERATORS = """
np.asfortranarray(a) - a; a - np.asfortranarray(a); a * (F + 1); (F + 1) - a; a - (F + 1)
(t := F + 1) - a; np.add(F + 1, a); (F + 1)[:] * a; F.copy('K') - a; F.copy() - a; named(F + 1, a)
(F + 1) * (a > 0); (F + 1).astype('f4') * a; (F * 2 - a).sum(1); ((F + 1) * a) @ a[0]; K * (F * 2)
(K.T + 1) - a; np.multiply(K, F * 2); [F * 1][0] - a; (a + 1) * F; (F + 1) // a; (F + 1) ** a
"""


def expressions(text: str) -> list[str]:
    """The expressions of a table."""
    return [each.strip() for each in text.replace("\n", ";").split(";") if each.strip()]


def functions(text: str, arguments: str, **names: Any) -> Iterator[tuple[str, Any]]:
    """The expressions of a table, each with its function."""
    for expression in expressions(text):
        space = {"np": np, **names}
        exec(f"def f({arguments}): return {expression}", space)
        yield expression, space["f"]


def layouts(shape: tuple[int, ...], dtype: str = "f8") -> dict[str, Any]:
    """Arrays of a shape in each order of axes, strided, reversed, and broadcast to the shape."""
    random, rank = np.random.default_rng(0), len(shape)

    def draw(*sizes: int) -> Any:
        return (random.standard_normal(sizes) * 3).astype(dtype)

    arrays: dict[str, Any] = {}
    for axes in itertools.permutations(range(rank)):
        sizes = [shape[axis] for axis in axes]
        arrays[f"axes {axes}"] = draw(*sizes).transpose(np.argsort(axes))
    arrays["strided"] = draw(*shape[:-1], 2 * shape[-1])[..., ::2]
    arrays["rows"] = draw(2 * shape[0], *shape[1:])[::2]
    arrays["reversed"] = draw(*shape)[..., ::-1]
    arrays["flipped"] = np.flip(draw(*shape))
    arrays["broadcast"] = np.broadcast_to(draw(*shape[-1:]), shape)
    arrays["row"] = draw(*shape[-1:])
    arrays["column"] = draw(shape[0], *(1,) * (rank - 1))
    return arrays


def difference(result: Any, expected: Any) -> str:
    """How a result differs from NumPy's: in type, dtype, shape, strides or bits; or ""."""
    if isinstance(expected, (tuple, list)):
        pairs = zip(result, expected, strict=True)
        return next(filter(None, (difference(a, b) for a, b in pairs)), "")
    x, y = np.asarray(result), np.asarray(expected)
    facts = [(v.dtype, v.shape, _strides(v)) for v in (x, y)]
    if facts[0] != facts[1]:
        return f"{facts[0]} for {facts[1]}"
    equal = x.tobytes() == y.tobytes() or np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
    return "" if equal and (x.dtype.kind != "f" or _signs(x, y)) else "bits"


def _signs(x: Any, y: Any) -> bool:
    return bool(np.all((np.signbit(x) == np.signbit(y)) | np.isnan(x)))


def _strides(array: Any) -> list[int]:
    pairs = zip(array.strides, array.shape, strict=True)
    return [step for step, size in pairs if size > 1] if array.size else []


def check(way: str, name: Any, f: Any, *args: Any) -> str:
    """How the result of one way differs from NumPy's; a refusal is no difference."""
    with np.errstate(all="ignore"):
        try:
            expected = f(*args)
        except (ValueError, IndexError, TypeError):  # NumPy refuses this shape or dtype
            return ""
        try:
            result = RUNS[way](f, *args)
        except GraphirError:
            return ""
    problem = difference(result, expected)
    return f"{name}: {problem}" if problem else ""


@sampled(3)
@every("way", RUNS)
def test_results_of_one_array(way: str) -> None:
    arrays = {k: x for k, x in layouts((4, 3, 2)).items() if k not in ("row", "column")}
    some = ("axes (2, 1, 0)", "broadcast")
    for name, f in functions(UNARY, "a"):
        for key in some:
            assert not check(way, (name, key), f, arrays[key])


@sampled(2)
@every("way", RUNS)
def test_results_of_two_arrays(way: str) -> None:
    arrays = layouts((4, 3, 2))
    pairs = [
        *(("axes (0, 1, 2)", "axes (2, 1, 0)"), ("axes (0, 2, 1)", "axes (1, 0, 2)")),
        *(("column", "axes (1, 2, 0)"), ("reversed", "axes (2, 0, 1)"), ("broadcast", "rows")),
    ]
    for name, f in functions(BINARY, "a, b"):
        for key, other in pairs:
            assert not check(way, (name, key, other), f, arrays[key], arrays[other])


def _named(x: Any, y: Any) -> Any:
    return x - y


@sampled(2)
@every("way", RUNS)
@every("size", [180, 182])
def test_operators_write_into_large_temporaries(way: str, size: int) -> None:
    """From 256 KiB on, NumPy writes the result of an operator into an unnamed operand."""
    assert 180 * 180 * 8 < LEAST_BYTES <= 182 * 182 * 8
    a, f, k = (np.random.default_rng(i).standard_normal((size, size)) for i in range(3))
    for name, function in functions(OPERATORS, "a, F", K=k, named=_named):
        assert not check(way, (name, size), function, a, np.asfortranarray(f))


def test_sums_follow_the_layout_of_a_product() -> None:
    s = np.random.default_rng(0).standard_normal((513, 100))

    def f(s: Any) -> Any:
        return np.sum(s * np.asfortranarray(s), axis=0)

    for way in RUNS:
        assert not check(way, "sum", f, s)


def test_a_signature_has_the_strides() -> None:
    x = np.random.default_rng(0).standard_normal((6, 5))
    f: Any = jit(lambda x: np.exp(x) + x)
    for array in (x, np.asfortranarray(x), x, x[::-1], x[:, ::-1], np.flip(x), x.T, x):
        for _ in range(3):
            assert not difference(f(array), np.exp(array) + array)


def test_a_program_takes_arrays_in_the_order_of_the_function() -> None:
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((6, 5)))
    f: Any = jit(lambda x: x * 2 + 1)
    assert f(x).flags.f_contiguous
    assert np.array_equal(f.program(x)(x), x * 2 + 1)
    assert f.program(x) is f.program(x)


def _unaligned(x: Any) -> Any:
    memory = np.empty(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype)
    view[...] = x
    return view


@every("way", RUNS)
@every("dtype", ["f4", "f8", "c8"])
def test_unaligned_arrays(way: str, dtype: str) -> None:
    x = _unaligned(np.random.default_rng(0).standard_normal(20_000).astype(dtype))
    for f in (np.sum, np.mean, np.var, np.exp, lambda x: x.reshape(100, 200).sum(0)):
        assert not check(way, f, f, x)
    jitted: Any = jit(lambda x: x.sum())
    assert not difference(jitted(x.copy()), x.copy().sum())  # alignment is in the signature
    assert not difference(jitted(x), x.sum())


FUNCTIONS_OF_DIRECTION = """
np.cbrt(a); np.exp(a); np.power(a, 1.5); a ** 3.5; np.arctan2(a, 2.0); np.tanh(a); np.square(a)
np.arctan2(a.copy(), a); abs(a); a * a; np.exp2(a); np.float_power(a, 2); np.log1p(a * a)
np.exp(a, out=np.empty_like(a)[::-1]); np.exp(a[::-1])
"""


def directions(dtype: str) -> dict[str, Any]:
    """Arrays of a dtype that lie backwards in memory, or with steps."""
    random = np.random.default_rng(0)

    def draw(*sizes: int) -> Any:
        x = random.standard_normal(sizes)
        return (x + 1j * random.standard_normal(sizes) if dtype[0] == "c" else x).astype(dtype)

    return {
        "[::-1]": draw(100)[::-1],
        "[::-2]": draw(200)[::-2],
        "[::-3]": draw(300)[::-3],
        "[::3]": draw(300)[::3],
        "flip": np.flip(draw(8, 8)),
        "short rows": draw(8, 90)[:, ::-1],
        "long rows": draw(2, 9000)[:, ::-1],
        "strided rows": draw(2, 18000)[:, ::2],
        "transposed": draw(4, 5, 6)[::-1].T,
        "in order": draw(8, 8),
    }


def test_functions_run_in_the_loop_that_numpy_chooses() -> None:
    """NumPy's loops over arrays that lie backwards have other bits; so have those of jit."""
    arrays = directions("f8")
    for name, f in functions(FUNCTIONS_OF_DIRECTION, "a"):
        for key in ("[::-2]", "flip", "in order"):
            assert not check("jit", (name, key), f, arrays[key])
    cbrt: Any = jit(np.cbrt)
    x = np.linspace(-9, 9, 64, dtype="f4").reshape(8, 8)
    assert not difference(cbrt(x), np.cbrt(x))
    assert not difference(cbrt(np.flip(x)), np.cbrt(np.flip(x)))


def replayed(f: Any, *arrays: Any) -> list[tuple[str, str]]:
    """How runs of a recorded graph, on its inputs and on other values, differ from NumPy."""
    others = [MemoryLayout.of(x).laid_out((x * 1.25 + 0.5).astype(x.dtype), True) for x in arrays]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        try:
            expected, other = f(*arrays), f(*others)
        except TypeError:  # NumPy has no such function of complex numbers
            return []
        recording = record(f, *arrays)
    if recording.notes:
        return []
    graph, inputs = recording.graph, [*map(copied, arrays)]
    runs = [
        ("interpret", interpret(graph, *inputs), expected),
        ("execute", execute(graph, *inputs), expected),
        ("parsed", execute(Graph.parse(str(graph)), *inputs), expected),
        ("others", execute(graph, *map(copied, others)), other),
    ]
    problems = [(run, difference(result, copied(real))) for run, result, real in runs]
    return [(run, problem) for run, problem in problems if problem]


def copied(x: Any) -> Any:
    """Return a copy in C order."""
    return np.array(x, order="C")


LOOPS = (
    FUNCTIONS_OF_DIRECTION
    + """
a ** np.rint(a); 1.5 ** a; np.exp2(a, where=a > 0, out=a.copy())
np.arctan2.outer(a[0], a[..., :50]); np.power(a, a.astype('f4'), dtype='f8')
np.hypot(np.rint(a).astype('i4'), a); np.exp2(a.astype('i2'))
"""
)


def test_recordings_replay_in_the_loop_that_numpy_chose() -> None:
    """Ops of a recorded graph have the attribute `loop` where NumPy's own loop has other bits."""
    arrays = directions("f8")
    cases = {key: arrays[key] for key in ("[::-2]", "in order")}
    cases |= {"f4": directions("f4")["flip"], "f2": directions("f2")["[::-1]"]}
    for name, f in functions(LOOPS, "a"):
        for key, x in cases.items():
            assert not replayed(f, x), (name, key)


def _power_of_roots(x: Any) -> Any:
    return abs(np.cbrt(x)) ** x


def test_loops_of_numpy_stay_out_of_other_engines_and_other_rules() -> None:
    x = directions("f4")["flip"]
    recording = record(_power_of_roots, x)
    graph, inputs = recording.graph, recording.inputs
    loops = ["loop" in symbol.attrs for symbol in graph.symbols]  # of cbrt, on some processors
    assert loops in ([False, True, False, True], [False, False, False, True])
    for other in (lower_to_ops(graph), rebuild(graph, "jax")):
        assert not any("loop" in symbol.attrs for symbol in other.symbols)
    source: dict[str, Any] = {}
    exec(targets.python(graph), source)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            source["_power_of_roots"](*inputs), execute(graph, *inputs), rtol=1e-6
        )
    assert not recording.audit().unseen


@every(
    "loop",
    [
        *(None, "exp", ("sin", ((-1,),), ()), ("exp2", ((-1,),), ()), ("exp", ((-1,),))),
        *(("exp", ((-1, 1),), ()), ("exp", ((-1,), (1,)), ()), ("exp", ((-1,),), ((1,), (1,)))),
        *(("exp", ((0.5,),), ()), (["exp"], ((1,),), ())),
    ],
)
def test_loops_that_no_op_has_are_refused(loop: Any) -> None:
    x = Graph("loops").input("float32", (4,), name="x")
    with pytest.raises(GraphirError):
        ops.exp(x, loop=loop)


def test_arrays_of_the_array_api_have_no_layout() -> None:
    for key in ("[::-2]", "flip", "transposed", "long rows"):
        x = directions("f8")[key]
        rows = xp.asarray(copied(x))
        views = xp.asarray(x), xp.flip(xp.asarray(copied(np.flip(x))))
        for f in (xp.exp, xp.tan, lambda x: xp.atan2(x, x + 1)):
            for view in views:
                assert not difference(np.asarray(f(view)), np.asarray(f(rows)))


def test_orders_of_halves_are_those_of_numpy() -> None:
    """NumPy leaves equal float16 in another order than equal float32."""
    x = np.random.default_rng(0).integers(0, 50, 600).astype("f2")
    for f in (
        np.argsort,
        np.sort,
        lambda x: x[::-1].reshape(1, 600).argsort(),
        lambda x: -np.sort(-x),
    ):
        assert not check("jit", "argsort", f, x)
        assert not replayed(f, x)


def test_vectors_of_one_element_run_in_the_loop_of_their_step() -> None:
    for value in np.random.default_rng(0).standard_normal(20) * 9:
        for f in (lambda x: np.cbrt(x[:1][::-1]), lambda x: np.cbrt(x[::-2][:1])):
            x = np.array([value, 1, 2])
            assert not check("jit", value, f, x)
            assert not replayed(f, x)


def test_a_clip_by_0_keeps_the_signs_of_zeros() -> None:
    x = np.array([-0.0, 0.0, -1.0, 3.0, np.nan])
    for dtype in ("f2", "f4", "f8"):
        for low, high in ((0, 2), (-0.0, 1.0), (-1, 0), (np.float64(0), 2)):
            assert not replayed(lambda x, low=low, high=high: x.clip(low, high), x.astype(dtype))


def test_reciprocals_of_the_integer_0_are_those_of_the_processor() -> None:
    for dtype in ("i1", "u2", "i4", "i8"):
        x = np.array([0, 1, 2, 0], dtype)
        assert not check("jit", dtype, np.reciprocal, x)
        assert not replayed(np.reciprocal, x)
        assert not replayed(lambda x: np.reciprocal(x[0]), x)


def test_convolutions_give_the_zeros_of_numpy() -> None:
    """NumPy adds the products to 0.0, so that no result is -0.0."""
    for size, f in itertools.product((1, 2, 5), (np.convolve, np.correlate)):
        x, kernel = np.full(6, -0.0), np.ones(size)
        for mode in ("full", "same", "valid"):
            graph = record(f, x, kernel, mode).graph
            assert not difference(execute(graph, x, kernel), f(x, kernel, mode))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_recordings_replay_in_the_loop_that_numpy_chose_for_all_layouts(dtype: str) -> None:
    problems = [
        (name, key, each)
        for name, f in functions(LOOPS, "a")
        for key, x in directions(dtype).items()
        for each in replayed(f, x)
    ]
    assert not problems


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_functions_run_in_the_loop_that_numpy_chooses_for_all_layouts(dtype: str, way: str) -> None:
    for name, f in functions(FUNCTIONS_OF_DIRECTION, "a"):
        for key, x in directions(dtype).items():
            assert not check(way, (name, key), f, x)


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", RUNS)
def test_results_in_all_layouts(way: str) -> None:
    for shape in ((6, 5, 4), (41, 32, 30)):
        arrays = layouts(shape)
        full = {key: x for key, x in arrays.items() if x.ndim == 3 and x.shape == shape}
        problems = [
            check(way, (name, key), f, x)
            for name, f in functions(UNARY, "a")
            for key, x in full.items()
        ]
        problems += [
            check(way, (name, key, other), f, arrays[key], arrays[other])
            for name, f in functions(BINARY, "a, b")
            for key, other in itertools.product(arrays, arrays)
            if {key, other} - {"row", "column"}
        ]
        assert not list(filter(None, problems))


def test_powers_by_arrays_that_hold_2() -> None:
    """NumPy squares for an exponent without axes alone; so does a power of a Python number."""
    random = np.random.default_rng(0)
    x, y = random.uniform(0, 4, 5000), random.choice([0.5, 1, 2, 3, -1], 5000)
    powers: list[Any] = [
        *(lambda x, y: x**y, np.power, lambda x, y: 1.3**y, lambda x, y: x ** np.float64(2)),
        *(lambda x, y: x ** y[2], lambda x, y: x ** np.full(5000, 2.0), lambda x, y: x**2),
    ]
    for dtype in ("f4", "f8"):
        for f in powers:
            assert not check("jit", dtype, f, x.astype(dtype), y.astype(dtype))
    power: Any = jit(lambda base, y: base**y)
    for base in (2.0, 1.7, 3):
        assert not difference(power(base, y), base**y)


@every("dtype", ["f2", "f8"])
def test_signs_of_zeros_of_dot(dtype: str) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (1, 1), (5,), (2, 5)]
    for left, right in itertools.product(shapes, shapes):
        a, b = np.full(left, -0.0, dtype), np.ones(right, dtype)
        for f in (np.dot, np.inner, lambda a, b: np.tensordot(a, b, 0)):
            assert not check("jit", (left, right), f, a, b)


def test_elements_that_a_mask_leaves_out() -> None:
    random = np.random.default_rng(0)
    for to, dtype in itertools.product(("f2", "f4", "f8", "i4"), (None, "f4", "f8")):

        def f(x: Any, out: Any, mask: Any, dtype: Any = dtype) -> Any:
            out = out.copy()
            return np.add(x, 1, out=out, where=mask, casting="unsafe", dtype=dtype)

        x, out = random.standard_normal((2, 40)) * 100 + 1 / 3
        assert not check("jit", (to, dtype), f, x, out.astype(to), x > 0)


def test_copies_of_joined_arrays_are_in_row_major_order() -> None:
    x = np.asfortranarray(np.random.default_rng(1).standard_normal((30, 20)).astype(np.float32))
    texts = "np.vstack([a, a]); np.stack([a, a], -2); np.roll(a, 1, 0); np.hstack((a, a))"
    for name, f in functions(texts, "a"):
        assert execute(trace(f, x, rules="numpy").graph, x).flags.c_contiguous, name
        for after in (np.copy, np.ascontiguousarray, lambda y: np.array(y, order="C").sum(0)):
            for way in RUNS:
                assert not check(way, name, lambda a, f=f, after=after: after(f(a)), x)


def test_results_of_several_arrays_and_of_bodies_have_numpys_strides() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 5))
    texts = "np.gradient(a)[1]; np.gradient(a, 1.0, axis=(2, 0))[0]; np.average(a, 0, abs(a))"
    for name, f in functions(texts, "a"):
        for array in (x, np.asfortranarray(x), x.transpose(1, 0, 2)):
            for way in RUNS:
                assert not check(way, name, f, array)


def test_averages_of_unaligned_arrays() -> None:
    values = np.random.default_rng(0).standard_normal(34000).astype(np.float32)
    x = np.frombuffer(b"-" + values.tobytes(), np.float32, offset=1).reshape(200, 170)
    for name, f in functions("np.average(a); np.average(a, 1); np.linalg.norm(a)", "a"):
        assert not check("jit", name, f, x)
