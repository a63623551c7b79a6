"""Functions as vector code: NumPy's bits for all inputs; the probe refuses other functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import Graph, ops, trace
from graphir.control import scan
from graphir.runtime import Program, interpret
from graphir.runtime.native.compilation import LOCK
from graphir.runtime.native.emitters import has_code
from graphir.runtime.native.functions import (
    INLINE,
    c_library_double,
    extension_of,
    intel_svml,
    numpy_loops,
)
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite
from tests.support.tables import every

pytestmark = needs_llvmlite

CALLS = sorted([(function.__name__, code) for function, code in INLINE])
EMITTERS = [
    (*call, required) for call in CALLS for required in INLINE[getattr(np, call[0]), call[1]]
]
SINGLES = [name for name, code in CALLS if code == "f"]
DOUBLES = [name for name, code in CALLS if code == "d"]


def program_of(name: str, code: str) -> Program:
    graph, dtype = Graph(name), np.dtype(code).name
    graph.output(getattr(ops, name)(graph.input(dtype, ("n",))))
    return Program(graph, native="now")


@every(("name", "code"), CALLS)
def test_edges_and_odd_sizes_have_the_bits_of_numpy(name: str, code: str) -> None:
    from graphir.runtime.native.probe import function_inputs

    program, x = program_of(name, code), function_inputs(code)
    for n in (0, 1, 7, 31, 32, 33, 1023, 1025, x.size):
        assert same(program(x[-n:]), interpret(program.graph, x[-n:])), n


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SINGLES)
def test_numbers_of_all_magnitudes_have_the_bits_of_numpy(name: str) -> None:
    """Every 61st of the 2**32 numbers; all of them were run once, with the step 1."""
    program, step = program_of(name, "f"), 61
    for first in range(0, 1 << 32, 1 << 28):
        x = np.arange(first, first + (1 << 28), step, dtype=np.uint64).astype(np.uint32)
        x = x.view(np.float32)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        assert same(program(x), expected), first


@every("name", DOUBLES)
def test_drawn_numbers_have_the_bits_of_numpy(name: str) -> None:
    program, draw = program_of(name, "d"), np.random.default_rng()
    words = draw.integers(0, 256, 1 << 20, dtype=np.uint8).view(np.float64)
    ranges = (-746, -700), (-2, 2), (0.9, 1.1), (-700, 712), (2, 1e6), (1e-300, 1e-3)
    for x in (words, *[draw.uniform(a, b, 1 << 17) for a, b in ranges]):
        results, expected = program(x), interpret(program.graph, x)
        differ = (results != expected) & ~(np.isnan(results) & np.isnan(expected))
        assert same(results, expected), x[differ][:5]


@every(("name", "code"), CALLS)
@every("axis", [0, 1])
def test_vectors_of_all_widths_have_the_bits_of_numpy(name: str, code: str, axis: int) -> None:
    """The sums of columns have tiles of 1 to 32 lanes, and those of rows four rows side by side."""
    graph = Graph(name)
    x = graph.input(np.dtype(code).name, ("m", "n"))
    graph.output(ops.sum(getattr(ops, name)(x), axis=axis))
    program, numbers = Program(graph, native="now"), np.geomspace(0.01, 100, 9 * 63)
    for n in (1, 2, 3, 7, 8, 31, 33, 63):
        operand = np.resize(numbers, (9, n)).astype(code)
        assert same(program(operand), interpret(graph, operand)), n


@every(("name", "code"), CALLS)
def test_loops_over_scalars_have_the_bits_of_numpy(name: str, code: str) -> None:
    from graphir.runtime.native.probe import function_inputs

    x = function_inputs(code)[::7]
    graph = trace(
        lambda start, x: scan(lambda last, x: (last, getattr(np, name)(x)), start, x), x[0], x
    ).graph
    program = Program(graph, native="now")
    _, results = program(x[0], x)
    assert same(results, interpret(graph, x[0], x)[1])
    assert "the whole loop is machine code" in program.explain(x[0], x)


def accepts(function: np.ufunc, code: str = "f", required: str = "fma") -> bool:
    from graphir.runtime.native import probe

    if required not in probe.engine().processor().features:
        pytest.skip(f"this processor has no {required}")
    probe._has_the_bits_of_numpy.cache_clear()
    try:
        with LOCK:
            return probe._has_the_bits_of_numpy(function, code, required)
    finally:
        probe._has_the_bits_of_numpy.cache_clear()


@every(("name", "code", "required"), EMITTERS)
def test_kernels_use_the_emitters_that_the_probe_accepts(
    name: str, code: str, required: str
) -> None:
    from graphir.runtime.native import probe

    function, dtype = getattr(np, name), np.dtype(code)
    if not accepts(function, code, required):
        pytest.skip("NumPy computes with other roundings")
    with LOCK:
        extensions = frozenset(probe.extensions([(function, code)]))
    first = next(each for each in INLINE[function, code] if accepts(function, code, each))
    assert extension_of(function, code, first) in extensions
    extensions = frozenset([extension_of(function, code, required)])
    dtypes = (dtype,) * (function.nin + 1)
    assert has_code(function, dtypes, extensions)
    assert not has_code(function, dtypes, frozenset([required]))


@pytest.mark.parametrize("table", ["_EXP_P", "_EXP_Q", "_LOG_P", "_LOG_Q"])
def test_the_probe_refuses_coefficients_that_differ_in_the_fifth_digit(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = np.exp if "EXP" in table else np.log
    if not accepts(function):
        pytest.skip("this NumPy computes with other roundings")
    coefficients = getattr(numpy_loops, table)
    for k, coefficient in enumerate(coefficients):
        changed = [*coefficients]
        changed[k] = coefficient * (1 + 1e-5) if coefficient else 1e-9
        monkeypatch.setattr(numpy_loops, table, tuple(changed))
        assert not accepts(function), k


def test_the_probe_refuses_other_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    if not accepts(np.exp):
        pytest.skip("this NumPy computes with other roundings")
    for name, up in (("_EXP_OVERFLOW", -np.inf), ("_EXP_UNDERFLOW", np.inf)):
        bound: Any = getattr(numpy_loops, name)
        monkeypatch.setattr(numpy_loops, name, np.nextafter(bound, np.float32(up)))
        assert not accepts(np.exp), name
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("name", "table"), [("exp", "_EXP"), ("log", "_LOG"), ("log", "_LOG_NEAR_1")]
)
def test_the_probe_refuses_other_coefficients_of_the_c_library(
    name: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses_other_coefficients(c_library_double, name, "fma", table, monkeypatch)


@pytest.mark.parametrize(("name", "table"), [("exp", "_EXP"), ("log", "_LOG")])
def test_the_probe_refuses_other_coefficients_of_svml(
    name: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses_other_coefficients(intel_svml, name, "avx512f", table, monkeypatch)


@pytest.mark.parametrize(("name", "table"), [("exp", "_powers"), ("log", "_logarithms")])
@pytest.mark.parametrize("entry", range(16))
def test_the_probe_refuses_other_tables_of_svml(
    name: str, table: str, entry: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not accepts(getattr(np, name), "d", "avx512f"):
        pytest.skip("this NumPy computes with other roundings")
    firsts, rests = map(np.array, getattr(intel_svml, table)())
    rests[entry] += 2.0**-52 * max(1, abs(firsts[entry]))
    changed = tuple(firsts.tolist()), tuple(rests.tolist())
    monkeypatch.setattr(intel_svml, table, lambda: changed)
    assert not accepts(getattr(np, name), "d", "avx512f")


def refuses_other_coefficients(
    module: Any, name: str, required: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = getattr(np, name)
    if not accepts(function, "d", required):
        pytest.skip("NumPy computes with other roundings here")
    coefficients = getattr(module, table)
    for k, coefficient in [*enumerate(coefficients)][:3]:
        changed = [*coefficients]
        changed[k] = (float.fromhex(coefficient) * (1 + 1e-3)).hex()
        monkeypatch.setattr(module, table, tuple(changed))
        assert not accepts(function, "d", required), k
