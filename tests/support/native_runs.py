"""Programs run by machine code beside `interpret`: what the tests of the native tier share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from graphir import DType, Graph, Op, PromotionError, Symbol, ops
from graphir.conversions import convert
from graphir.runtime import Program, interpret
from graphir.runtime.native import tier
from graphir.runtime.program import plans
from graphir.runtime.program.cutting import Region
from graphir.runtime.program.rows import sums_by_halves
from graphir.runtime.program.tier_up import TierUp
from tests.support.evaluator import agree, outcome, same
from tests.support.rounding import edges, float_edges, integer_traps
from tests.support.strategies import STRONG, pool

ELEMENTWISE = [op for op in ops.CATALOGUE.values() if op.kind == "elementwise"]


_TIER, _WHY = tier("now")
TIERS = ("off", *["now"] * (_TIER is not None))
"""The tiers that differ here: without llvmlite, NumPy runs all regions."""
needs_llvmlite = pytest.mark.skipif(_TIER is None, reason=_WHY)
needs_sums = pytest.mark.skipif(
    not sums_by_halves(), reason="this NumPy adds 8,192 elements at a time: sums take whole arrays"
)


_HASWELL = "sse4.1 avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt"
PROCESSORS = {"x86-64": (), "haswell": tuple(_HASWELL.split())}
"""Older processors as compilation targets, with the extensions that LLVM assumes for each."""


@contextmanager
def compiled_for(name: str) -> Iterator[None]:
    """Machine code is that for an older processor, or for this one without a name."""
    from graphir.runtime.native import engine

    missing = {*PROCESSORS.get(name, ())} - engine.processor().features
    if missing:
        pytest.skip(f"this processor is no {name}: it has no {', '.join(missing)}")
    older = engine.Processor(name, ",".join(f"+{each}" for each in PROCESSORS.get(name, ())))
    with patch.object(engine, "processor", lambda: older) if name else nullcontext():
        yield


@contextmanager
def step_by_step() -> Iterator[None]:
    """No program is one function of NumPy calls, or one call of machine code.

    Each region is a step, which a kernel runs.
    """
    refused = patch.object(TierUp, "take_sequence", lambda _: False)
    with patch.object(plans, "fits", lambda _: False), refused:
        yield


def left(program: Program) -> list[str]:
    """Why regions of a program that was called are not machine code, or that none was asked for."""
    found: list[str] = []
    for number, step in enumerate(program.steps):
        if isinstance(step, Region) and (step.shape or step.rows):
            kernels = program.kernels(number)
            assert kernels is not None
            found += (
                [kernels.why or "not compiled"]
                if kernels.why or not kernels.compiled_kernels
                else []
            )
    return found


def check(graph: Graph, *inputs: Any, threads: int = 1, whole: bool = True) -> None:
    """A program in machine code gives the bits of `interpret`; `whole`: all regions of it are."""
    program = Program(graph, threads=threads, native="now")
    found, wanted = program(*inputs), interpret(graph, *inputs)
    if len(graph.outputs) == 1:
        found, wanted = (found,), (wanted,)
    for symbol, one, other in zip(graph.outputs, found, wanted, strict=True):
        assert same(one, other), _difference(symbol, one, other, inputs)
    if whole:
        assert not left(program)


def _difference(symbol: Symbol, one: Any, other: Any, inputs: Sequence[Any]) -> str:
    differs = [
        k for k in np.ndindex(np.shape(one)) if not same(np.asarray(one[k]), np.asarray(other[k]))
    ]
    at = differs[0]
    given = [np.broadcast_to(x, np.shape(one))[at] if x.ndim <= np.ndim(one) else x for x in inputs]
    return (
        f"{symbol.op}({', '.join(str(arg.type) for arg in symbol.args)}) {symbol.attrs}: "
        f"{len(differs)} differ, the first at {at}: {one[at]!r}, not {other[at]!r}, of {given}"
    )


# -- values


@cache
def values(dtype: DType, count: int, seed: int = 0) -> Any:
    """So many values: telling ones first, then those of any bits, and numbers about 0."""
    random = np.random.default_rng([seed, dtype.bits])
    telling = random.permutation(pool(dtype)) if seed else pool(dtype)
    if dtype.family == "bool":
        rest = random.integers(0, 2, count).astype(bool)
    elif dtype.is_complex:
        rest = np.empty(count, dtype.storage)
        rest.real, rest.imag = (values(dtype.part, count, seed + k) for k in (1, 2))
    else:
        near = convert(random.standard_normal(count) * 10, DType.float64, dtype)
        rest = random.integers(0, 2**63, count, np.uint64) * np.uint64(2) + np.uint64(seed)
        rest = quiet(read_as(rest, dtype), dtype)
        rest[::2] = near[::2]
    return np.concatenate([telling, rest])[:count]


def read_as(bits: Any, dtype: DType) -> Any:
    """The values whose patterns are the last bits of integers."""
    if dtype is DType.tensor_float32:
        bits = bits << 13
    return np.asarray(bits).astype(f"u{dtype.storage.itemsize}").view(dtype.storage)


@np.errstate(all="ignore")
def quiet(x: Any, dtype: DType) -> Any:
    """No NaN is a signalling one: whether hypot and pow see that depends on the processor."""
    if dtype.is_float and not dtype.narrow:
        x[np.isnan(x)] = np.nan
    return x


# -- graphs


def applied(op: Op, args: Sequence[Symbol]) -> list[Symbol]:
    """The op on as many of some operands as it takes, with each value of its attributes.

    Nothing where it does not take their dtype.
    """
    args = args[: len(op.operands)]
    if op is ops.where:
        args = [ops.equal(args[0], args[0]), *args[1:]]
    variants: list[dict[str, Any]] = [{}]
    if op is ops.gelu:
        variants = [{"approximate": name} for name in ("none", "tanh", "quick")]
    try:
        return [op(*args, **each) for each in variants]
    except PromotionError:
        return []


def every_op(dtype: DType, *args: Symbol, operands: int = 1) -> list[Symbol]:
    """What each op makes that takes the dtype, and so many operands or more.

    Powers of signed integers are refused where one is negative: regions have none.
    """
    taken = [op for op in ELEMENTWISE if len(op.operands) >= operands]
    if dtype.family == "int":
        taken.remove(ops.pow)
    return [one for op in taken for one in applied(op, args)]


def graph_of(make: Callable[..., Sequence[Symbol]], *types: Any, tf32: str = "even") -> Graph:
    """The graph of what a function makes of inputs of (dtype, shape)."""
    graph = Graph("ops", rules="explicit", tf32=tf32)
    made = make(*(graph.input(dtype, shape) for dtype, shape in types))
    graph.output(*made)
    return graph


# -- casts


def casts(x: Symbol) -> Sequence[Symbol]:
    """To every dtype to which there is a cast; the value itself last."""
    real = [d for d in STRONG if not d.is_complex and d is not DType.bool]
    return [*(x.cast(d) for d in STRONG if not (x.dtype.is_complex and d in real)), x]


@cache
@np.errstate(all="ignore")
def sources(dtype: DType) -> Any:
    """All patterns of up to 16 bits; of more bits what lies about any rounding, and at random."""
    if dtype is DType.bool:
        return np.array([False, True])
    if dtype.is_complex:
        return values(dtype, 5000)
    if dtype.bits <= 16:
        return quiet(read_as(np.arange(2**16), dtype), dtype)
    if dtype.is_integer:
        traps = np.array(integer_traps(dtype.storage.name), dtype.storage)
        return np.concatenate([traps, values(dtype, 5000)])
    parts = [float_edges(dtype.name), values(dtype, 20000)]
    if dtype is DType.float64:
        parts += [ties(d) for d in STRONG if d.is_float and d.bits <= 19]
        parts += [around(edges(23)[::97].astype(np.float64))]
    else:
        parts += [quiet(edges(m)[::3], dtype) for m in (0, 1, 2, 3, 7, 10)]
    if dtype is DType.tensor_float32:
        parts = [(part.view(np.uint32) & 0xFFFFE000).view(np.float32) for part in parts]
    return np.concatenate(parts)


@np.errstate(all="ignore")
def ties(dtype: DType) -> Any:
    """Float64 half way between neighbours of a format, and beside that."""
    x = read_as(np.arange(2 ** min(dtype.bits, 11)) << max(dtype.bits - 11, 0), dtype)
    x = np.unique(x.astype(np.float64)[np.isfinite(x.astype(np.float64))])
    last = read_as(np.arange(2 ** min(dtype.bits, 9)), dtype).astype(np.float64)
    found = [(each[1:] + each[:-1]) / 2 for each in (x, np.unique(last[np.isfinite(last)]))]
    return around(np.concatenate([x, *found]))


def around(x: Any) -> Any:
    """Float64 and what is beside it."""
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])


def run_drawn(graph: Graph, inputs: Any, block: Any, threads: Any) -> None:
    """Machine code gives the outcome of `interpret`, step by step and as a whole."""
    meaning = outcome(interpret, graph, *inputs)
    make = partial(Program, graph, threads=threads, block=block, native="now")
    with step_by_step():
        assert agree(outcome(make(), *inputs), meaning)
    program = make()
    for _ in range(3):
        assert agree(outcome(program, *inputs), meaning)
