"""The ONNX target: models checked in full and run by onnxruntime, against `interpret`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed, so no model is made")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed, so no model is run")

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, ops
from graphir.runtime import interpret, targets
from graphir.runtime.targets import TargetError
from graphir.runtime.targets.onnx_.primitives import COMPOSITES, ONNX
from tests.peers import CALLS
from tests.runtime.targets.onnx_models import ENGINE, LOOSE, ZEROS, Run, near, outcome, reference
from tests.support import accuracy
from tests.support.accuracy import BOUNDS
from tests.support.drawing import Program, programs
from tests.support.engines import graph_of
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

LACKING = (
    *(DType.float8_e3m4, DType.float8_e4m3, DType.float8_e4m3b11fnuz),
    *(DType.float6_e2m3fn, DType.float6_e3m2fn),
)
REAL = [d for d in STRONG if d not in LACKING and not d.is_complex]
EXACT = """add subtract multiply divide floor_divide remainder maximum minimum negative positive abs
    sign square reciprocal relu floor ceil trunc round sqrt rsqrt copysign nextafter is_nan is_inf
    is_finite signbit equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_invert left_shift right_shift
    where clip real imag conj max min any all argmax argmin sort argsort searchsorted outer reshape
    broadcast_to rebind transpose permute squeeze unsqueeze slice flip roll pad tile repeat concat
    stack gather take_along scatter shape_of"""
"""Ops whose results have the same bits, whatever the dtype."""


def drawn(graph: Graph, seed: int) -> list[Any]:
    """Telling values for the operands that may be any, small ones for the others."""
    random, call = np.random.default_rng(seed), CALLS[graph.name]
    found: list[Any] = []
    for place, x in enumerate(graph.inputs):
        values = pool(x.dtype)
        if seed % 3 == 2:
            values = np.arange(4).astype(x.dtype.storage)
        if place not in call.free:
            values = np.arange(2).astype(x.dtype.storage)
        found.append(values.take(random.integers(0, len(values), x.shape)))
    if graph.name == "searchsorted":
        found[0] = ascending(found[0])
    return found


def ascending(x: Any) -> Any:
    g = Graph()
    g.output(ops.sort(g.input(DType.from_numpy(x.dtype), x.shape)))
    return interpret(g, x)


def test_an_axis_of_one_is_spread_to_none() -> None:
    g = Graph()
    ones, x = g.constant(np.ones((2, 1), bool)), g.input("uint8", (2, 1))
    g.output(ops.slice_update(ones, x.cast("bool"), start=(0, 0), stop=(2, 0), step=(1, 1)))
    values = np.ones((2, 1), np.uint8)
    (theirs,) = Run(targets.onnx(g))(values)
    assert same(interpret(g, values), theirs)


# -- every op, every dtype


@every("name", CALLS)
def test_every_op_of_every_dtype_is_checked_and_agrees(name: str) -> None:
    made = {dtype: graph_of(name, dtype) for dtype in REAL}
    for dtype, graph in made.items():
        if graph is None:
            continue
        is_narrow_sum = name == "index_add" and dtype.is_float and dtype.bits < 19
        if name == "as_complex" or is_narrow_sum:
            with pytest.raises(TargetError, match="narrow floats" if is_narrow_sum else "complex"):
                targets.onnx(graph)
            continue
        run = Run(targets.onnx(graph))
        assert (run.engine == "onnxruntime") == has_kernels(name, dtype), dtype
        for seed in range(6):
            inputs = drawn(graph, seed)
            ours = outcome(partial(interpret, graph), *inputs)
            engines = [run, reference(run.model)] if dtype in BOTH and seed < 2 else [run]
            for engine in engines:
                theirs = outcome(engine, *inputs)
                assert means_the_same(name, dtype, ours, theirs), (dtype, inputs, ours, theirs)
    assert any(made.values()) or name in ("real", "imag", "conj")


BOTH = (DType.bool, DType.int8, DType.uint64, DType.bfloat16, DType.float32, DType.float64)
"""The dtypes of which the reference evaluator is asked besides onnxruntime."""


def means_the_same(name: str, dtype: DType, ours: Any, theirs: Any) -> bool:
    """Whether results of an op are equal to the bit where it is exact, else near."""
    if ours is None or theirs is None:
        return theirs is ours
    if name in ZEROS:
        return near(ours[0], theirs[0], ulps=0)
    if name in EXACT.split() or not dtype.is_float:
        return same(ours[0], theirs[0])
    return near(ours[0], theirs[0], within=LOOSE.get(name, 0.0))


def has_kernels(name: str, dtype: DType) -> bool:
    """Whether onnxruntime has all kernels that an op needs: these are what it lacks."""
    if dtype is DType.float4_e2m1fn:  # of which it has no conversions
        return name == "shape_of"
    computes_in_float64 = dtype in (DType.float64, DType.float8_e8m0fnu)
    return not computes_in_float64 or name not in (
        *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "gelu"),
        "atan2",
    )


def test_every_op_has_a_row() -> None:
    primitives = {name for name, op in ops.CATALOGUE.items() if not op.decomposition}
    assert primitives - set(ONNX) == {"input", "as_complex"}
    assert set(ONNX) >= COMPOSITES


@every("dtype", [DType.complex64, DType.complex128])
def test_complex_numbers_are_moved_and_nothing_else(dtype: DType) -> None:
    for name, op in ops.CATALOGUE.items():
        graph = graph_of(name, dtype) if name in CALLS else None
        if graph is None:
            continue
        if op.computes:
            with pytest.raises(TargetError, match=rf"engines.py:\d+:\d+: {name}\(.*real"):
                targets.onnx(graph)
            continue
        inputs = drawn(graph, 0)
        (found,) = Run(targets.onnx(graph))(*inputs)
        assert same(found, interpret(graph, *inputs)), name


# -- every cast


@every("source", REAL)
@every("ties", ["even", "away"])
def test_every_cast_has_the_same_bits(source: DType, ties: str) -> None:
    values = telling(source)
    for target in REAL if ties == "even" else [DType.tensor_float32]:
        graph = Graph(tf32=ties)
        graph.output(graph.input(source, ("n",)).cast(target))
        (found,) = Run(targets.onnx(graph))(values)
        assert same(found, interpret(graph, values)), target


def telling(dtype: DType) -> Any:
    """The pool; all values of 16 bits; of wider ones those about halves of steps of narrower."""
    if dtype in (DType.float16, DType.bfloat16):
        return np.arange(2**16, dtype=np.uint16).view(dtype.storage)
    if dtype.storage.itemsize < 4:
        return pool(dtype)
    steps = np.arange(0, 2**16, dtype=np.uint16).view(np.float16).astype(np.float64)[::5]
    halves = np.concatenate([steps * (1 + 2.0**-n) for n in (3, 4, 8, 11)])
    near_them = [halves * x for x in (1, 1 + 2.0**-40, 1 - 2.0**-40, 2.0**40, -(2.0**-130))]
    inside = np.concatenate(near_them)
    if dtype.is_integer:
        inside = inside[(inside >= float(dtype.min)) & (inside < float(dtype.max))]
    wide = inside.astype(dtype.storage)
    return np.concatenate([pool(dtype), tf32(wide) if dtype is DType.tensor_float32 else wide])


def tf32(x: Any) -> Any:
    return (x.view(np.uint32) & 0xFFFFE000).view(np.float32)


@every("dtype", LACKING)
def test_a_dtype_that_onnx_has_not_is_named(dtype: DType) -> None:
    g = Graph()
    g.output(g.input("float32", ("n",)).cast(dtype))
    with pytest.raises(TargetError, match=rf"test_target_onnx.py:\d+:\d+: cast.*has no {dtype}"):
        targets.onnx(g)


# -- programs

UNSURE = {"gelu", "erf", "searchsorted", "sin", "cos", "prod", "cumulative_prod"}
"""Ops with deviations that a program spreads; these are asserted below."""


@pytest.mark.parametrize("name", sorted({*ops.CATALOGUE} - UNSURE))
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_programs_of_every_op_agree(name: str, data: st.DataObject) -> None:
    agree(data.draw(programs(op=ops.CATALOGUE[name], steps=2)))


def agree(program: Program) -> None:
    graph, inputs = program
    names = {symbol.op.name for symbol in graph.symbols}
    assume(not names & UNSURE)
    stored = [graph.concrete_dtype(x.dtype).storage for x in graph.inputs]
    assume(all(x.dtype == dtype for x, dtype in zip(inputs, stored, strict=True)))
    ours = outcome(partial(interpret, graph), *inputs)
    try:
        run = Run(targets.onnx(graph))
    except (TargetError, ExecutionError):  # of which constants were folded
        return
    theirs = outcome(run, *inputs)
    if ours is None or theirs is None:
        is_empty = not all(x.size for x in inputs) and names & {"argmax", "argmin"}
        is_lacking = is_empty or ("take_along" in names and run.engine == "reference")
        assert theirs is ours or is_lacking, graph
        return
    for one, other in zip(map(finite, ours), map(finite, theirs), strict=True):
        assert same(one, other) or near(one, other, ulps=2**12), (one, other, str(graph))


def finite(x: Any) -> Any:
    """Without complex infinities, which the reference evaluator's Expand makes NaN in part."""
    return np.where(np.isfinite(x), x, x.dtype.type(np.nan)) if x.dtype.kind == "c" else x


# -- functions


@every("dtype", ["float32", "float64"])
@every("name", [name for name in BOUNDS if name not in ("gelu", "erf")])
def test_functions_are_near_the_truth(name: str, dtype: str) -> None:
    """Within what their rows promise, and some units of the engine's own."""
    pytest.importorskip("mpmath", reason="mpmath is not installed, so the truth is not known")
    operands = accuracy.points(name, dtype)
    g = Graph(name)
    g.output(ops.CATALOGUE[name](*(g.input(dtype, ("n",)) for _ in operands)))
    (found,) = Run(targets.onnx(g))(*operands)
    units = accuracy.distances(found, name)
    kept = units[trusted(name, dtype, operands)]
    assert len(kept) > len(units) / 4
    assert kept.max() <= getattr(BOUNDS[name], dtype) + ENGINE.get(name, 3)


def trusted(name: str, dtype: str, operands: Any) -> Any:
    """Which points are none of the deviations below."""
    x = np.abs(operands[0])
    if name == "tanh" and dtype == "float32":
        return (x == 0) | (x >= np.finfo(dtype).tiny * 2.0**12)
    if name in ("sin", "cos") and dtype == "float64":
        off = np.abs(np.remainder(x, np.pi / 2) - np.pi / 4)
        return (x < 1e4) & (off < np.pi / 4 - 0.25)
    return np.full(x.shape, True)
