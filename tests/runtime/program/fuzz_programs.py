"""Drawn NumPy programs: `python -m tests.runtime.program.fuzz_programs [--count N] [--seed N]`.

A program is a function of a few arrays: elementwise functions, reductions over any axes and what is
broadcast back, products of matrices, stencils of slices, assignments to slices, sorts, sums along
an axis, lookups and casts, over arrays of any layout. With `--updates` most statements copy an
array, assign to slices of the copy, and then select, cast and count, also between dtypes of one
size. With `--broad` statements also index by arrays, search, accumulate, reduce several axes, read
windows, make constants, run loops and branches, and call functions of NumPy that no op computes,
over further dtypes and arrays of no or one element; inputs lie in memory in any way, or in each
other's memory. NumPy runs each statement as it is drawn, so that programs raise nothing.

Each program runs with NumPy alone and by machine code, on one thread and on several, with the
thresholds of the cost model as they are and divided by 512, at its own sizes and at very small
ones, several times, and with `out=`; broad programs also in small blocks, with a report of
progress, over arrays as they lie in memory, and with `out=` in the memory of inputs. Its results
have the bits of `interpret`. The last line has the paths that the programs took, with the number of
plans; stderr has a line for 100 programs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from random import Random
from typing import Any, NamedTuple

import numpy as np

from graphir import Graph, GraphirError, control
from graphir.numpy_api.trace import trace
from graphir.ops.op import GraphValue
from graphir.passes.pipeline import Pass
from graphir.runtime import Program, interpret
from graphir.runtime.program import planning
from graphir.runtime.program.codegen.assembly import Walk
from graphir.runtime.program.cost_model import scaled
from graphir.runtime.program.graph_rewrites.axis_orders import in_memory_order, inverse
from graphir.runtime.program.plans import Plan
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep
from tests.runtime.program.drawn_statements import (
    BATCHES,
    BROAD,
    CHANNELS,
    COPIES,
    KINDS,
    PLACES,
    PRODUCTS,
    SAME_SIZE,
    TYPED,
    UPDATES,
    UPDATING,
    VIEWS,
)
from tests.support import layouts
from tests.support.evaluator import same
from tests.support.native_runs import step_by_step

DTYPES = ["f4", "f4", "f4", "f8", "f8", "i4", "i8", "i1", "u1", "f2", "?"]
SHAPES: list[tuple[int, ...]] = [
    *((40,), (300,), (2000,), (3, 4), (17, 33), (60, 130), (9, 300), (130, 7), (50, 3), (200, 64)),
    *((2, 9, 16), (4, 33, 3), (3, 20, 40), (2, 3, 8, 16), (1, 64), (33, 1), (5, 1, 40), (1100, 5)),
]
BROAD_DTYPES = [*DTYPES, "c8", "c16", "u2", "u4", "u8", "i2"]
BROAD_SHAPES: list[tuple[int, ...]] = [
    *((), (1,), (9,), (40,), (1, 1), (1, 7), (7, 1), (3, 0, 4), (33, 9), (2, 3, 8, 16), (4, 33, 3)),
    *((2, 1, 5), (6, 40, 8), (3, 4, 1), (120, 3), (17, 1300), (5, 5, 5), (70, 20), (2, 20, 20)),
]
LAYOUTS = (
    *(np.array, layouts.strided, layouts.backwards, layouts.fortran, layouts.transposed),
    *(layouts.repeated, layouts.rows_repeated, layouts.unaligned),
)
LARGE: list[tuple[int, ...]] = [(300, 1000), (1000, 300), (200_000,), (8, 100, 64), (40_000, 3)]
NUMPY_ERRORS = (ArithmeticError, AttributeError, IndexError, MemoryError, TypeError, ValueError)
MOST = 1 << 20
"""The most elements of a value."""


def turns(count: int, body: Any, value: Any) -> Any:
    """Return a value after some turns of a loop, in NumPy or in a graph."""
    if isinstance(value, GraphValue):
        return control.fori_loop(0, count, body, value)
    for i in range(count):
        value = body(np.int64(i), value)
    return value


def choice(truth: Any, on_true: Any, on_false: Any, value: Any) -> Any:
    """Return one of two functions of a value, in NumPy or in a graph."""
    if isinstance(truth, GraphValue):
        return control.cond(truth, on_true, on_false, value)
    return (on_true if truth else on_false)(value)


def rows(function: Any, carry: Any, array: Any) -> Any:
    """Return the last carry and the stacked results of a scan, in NumPy or in a graph."""
    if isinstance(array, GraphValue):
        return control.scan(function, carry, array)
    results: list[Any] = []
    for row in array:
        carry, result = function(carry, row)
        results.append(result)
    return carry, np.stack(results)


def shifted(value: Any) -> Any:
    """Return a copy of an array in which each row is the one before."""
    value = value.copy()
    value[1:] = value[:-1]
    return value


SPACE: dict[str, Any] = {
    "np": np,
    "turns": turns,
    "choice": choice,
    "rows": rows,
    "shifted": shifted,
}


class Drawn:
    """A program, drawn statement by statement from some kinds, and arrays for it."""

    def __init__(self, number: int, kinds: Sequence[list[str]] = KINDS) -> None:
        self.pick, self.random = Random(number), np.random.default_rng(number)
        pick = self.pick
        self.is_broad = kinds is BROAD
        large = pick.random() < 0.05
        all_shapes = [*SHAPES, *BROAD_SHAPES] if self.is_broad else SHAPES
        shape = pick.choice(LARGE if large else all_shapes)
        if pick.random() < 0.03:  # arrays without elements
            shape = (0, *shape[1:])
        others = [shape, shape[-1:], (*shape[:-1], 1), shape[::-1], pick.choice(all_shapes)]
        all_dtypes = BROAD_DTYPES if self.is_broad else DTYPES
        dtypes = [pick.choice(all_dtypes)] * 3 + [pick.choice(all_dtypes)]
        shapes = [shape, *[pick.choice([shape, *others]) for _ in range(pick.randint(0, 2))]]
        self.arrays = [self._array(each or (1,), pick.choice(dtypes)) for each in shapes]
        if self.is_broad:
            self.arrays = [*self._laid_out(shapes)]
        self.names = [f"a{k}" for k in range(len(shapes))]
        self.values: dict[str, Any] = {
            name: array.copy() for name, array in zip(self.names, self.arrays, strict=True)
        }
        self.lines: list[str] = []
        self.live = [*self.names]
        for _ in range(pick.randint(2, 5 if large else 14)):
            self._statement(pick.choice(kinds))
        outputs = dict.fromkeys([self.live[-1], *pick.sample(self.live, min(2, len(self.live)))])
        if kinds is not KINDS:
            outputs |= dict.fromkeys(self._views([*outputs]))
        body = "".join(f"    {line}\n" for line in self.lines)
        self.source = f"def f({', '.join(self.names)}):\n{body}    return {', '.join(outputs)},\n"

    def _views(self, names: Sequence[str]) -> Iterator[str]:
        """Yield some views of values."""
        for name in names:
            text = self.pick.choice(VIEWS).format(x=name)
            try:
                eval(text, SPACE, self.values)
            except NUMPY_ERRORS:
                continue
            if self.pick.random() < 0.3:
                yield text

    def _laid_out(self, shapes: Sequence[tuple[int, ...]]) -> Iterator[np.ndarray]:
        """Yield the arrays in some layout; some are the first array, or a view of its memory."""
        arrays = [x.reshape(shape) for x, shape in zip(self.arrays, shapes, strict=True)]
        first = self.pick.choice(LAYOUTS)(arrays[0])
        for array in arrays:
            kind = self.pick.random()
            if kind < 0.15 and first.shape == array.shape:
                yield first if kind < 0.05 or not first.ndim else first[::-1]
            else:
                yield array if kind < 0.6 else self.pick.choice(LAYOUTS)(array)

    def small(self) -> list[np.ndarray]:
        """The first elements of the arrays, at most 2 to 4 along each axis."""
        most = {1: 1, 0: 0}
        parts: list[np.ndarray] = []
        for array in self.arrays:
            sizes = [most.setdefault(n, min(n, self.pick.choice([2, 3, 4]))) for n in array.shape]
            parts.append(array[*map(slice, sizes), ...])
        return parts

    def _array(self, shape: tuple[int, ...], code: str) -> np.ndarray:
        draw, dtype = self.random, np.dtype(code)
        if dtype.kind in "iu":
            array = draw.integers(-20 if dtype.kind == "i" else 0, 20, shape).astype(dtype)
        elif dtype.kind == "b":
            array = draw.random(shape) < 0.5
        else:
            array = draw.normal(size=shape) * self.pick.choice([1, 1, 10])
            array[draw.random(shape) < 0.02] = -0.0
            if self.pick.random() < 0.2:
                special = draw.choice([np.nan, np.inf, -np.inf, 0.0], size=shape)
                array = np.where(draw.random(shape) < 0.01, special, array)
            array = array.astype(dtype)
            if dtype.kind == "c":
                array.imag = draw.normal(size=shape)
        kind = self.pick.random()
        if kind < 0.15:
            return np.asfortranarray(array)
        if kind < 0.25 and array.size:
            return np.repeat(array, 2, -1)[..., ::2]
        return array[::-1] if kind < 0.3 else array

    def _statement(self, templates: list[str]) -> None:
        pick = self.pick
        x, y = pick.choice(self.live[-4:]), pick.choice(self.live)
        rank, pairs = np.ndim(self.values[x]), np.size(self.values[x]) * np.size(self.values[y])
        if (
            templates in (PRODUCTS, BATCHES, CHANNELS)
            and max(pairs, np.size(self.values[x]) ** 2) > 64 * MOST
        ):
            return
        axes = [*range(-rank, rank)] or [0]
        axis: Any = pick.choice(
            [None, -1, pick.choice(axes), pick.choice(axes), tuple(range(1, rank))]
        )
        keepdims = pick.random() < 0.5
        dtype = np.asarray(self.values[x]).dtype
        some = (
            pick.sample(range(rank), pick.randint(1, max(1, rank)))
            if rank and self.is_broad
            else []
        )
        alike = [each for each in SAME_SIZE if dtype in map(np.dtype, each)] or SAME_SIZE
        name = f"v{len(self.lines)}"
        text = pick.choice(templates).format(
            x=x,
            y=y,
            z=name,
            t=pick.choice(alike[0]) if templates is TYPED else "",
            last=f"axis={pick.choice([-1, -1, pick.choice(axes)])}",
            axis=f"axis={axis}, keepdims={keepdims}",
            axes=f"axis={tuple(some)}, keepdims={keepdims}",
            kept=f"axis={pick.choice([-1, -1, axis])}, keepdims=True",
        )
        lines = [f"{name} = {text}"]
        if templates in (UPDATES, COPIES, PLACES):
            lines = [f"{name} = {x}.copy()", text]
        trial: dict[str, Any] = {**self.values, **SPACE}
        try:
            for line in lines:
                exec(line, trial)
        except NUMPY_ERRORS:
            return
        value = trial[name]
        if np.size(value) > MOST or np.ndim(value) > 4:
            return
        self.values, self.live = trial, [*self.live, name]
        self.lines += lines


PATHS: Counter[str] = Counter()
"""The paths that plans took."""


@contextmanager
def watched() -> Iterator[None]:
    """Verify each graph while programs are planned, and count the passes that change a graph."""
    pipelines = planning.plan_for_numpy, planning.plan_for_native
    before = [(pipeline.passes, pipeline.verify_each) for pipeline in pipelines]
    for pipeline in pipelines:
        pipeline.passes, pipeline.verify_each = tuple(map(_counted, pipeline.passes)), True
    try:
        yield
    finally:
        for pipeline, (passes, verify_each) in zip(pipelines, before, strict=True):
            pipeline.passes, pipeline.verify_each = passes, verify_each


def _counted(rewrite: Pass) -> Pass:
    @wraps(rewrite)
    def counted(graph: Graph) -> Graph:
        result = rewrite(graph)
        PATHS[rewrite.__name__] += result is not graph
        return result

    return counted


def note_paths(program: Program) -> None:
    """Count the paths of the plans of a program that was called."""
    for plan in program.plans:
        PATHS.update(set(_paths(plan)))


def _paths(plan: Plan) -> Iterator[str]:
    functions = plan.straight, plan.native
    yield from [name for name, each in zip(("straight", "native"), functions, strict=True) if each]
    yield from ["steps"] * ("steps" in vars(plan)) + ["kernels in straight"] * bool(
        plan.tier_up.entries
    )
    yield from ["donated carries"] * bool(plan.donated) + ["flattened"] * bool(plan.origins)
    for step in plan.fused:
        yield type(step).__name__
        if isinstance(step, CallStep) and step.in_place:
            yield "update in place"
        if not isinstance(step, RegionStep):
            continue
        yield from ["several blocks"] * (step.blocks > 1) + ["threads"] * (step.threads > 1)
        yield from ["rows"] * bool(step.rows) + ["parts of rows"] * bool(step.trees)
        yield from ["long region"] * isinstance(step.body.function, Walk)
        for store in step.stores.values():
            whole = store.box.shape == store.shape
            kind = "memory of an operand" if whole else "a slice"
            yield f"region into {kind}{'' if store.in_place else ' of a copy'}"
            yield from ["copy of few rows"] * (store.copied_rows is not None)


def run(number: int, kinds: Sequence[list[str]] = KINDS) -> str:
    """Return how a drawn program ended: equal, refused, or the difference with the program."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), watched():
        warnings.simplefilter("ignore")
        drawn = Drawn(number, kinds)
        pick, space = drawn.pick, SPACE.copy()
        exec(drawn.source, space)
        both = ["off", "now"]
        modes = [(native, pick.choice([1, 2]), sizes) for native in both for sizes in (1, 512)]
        modes.append((pick.choice(["now", "auto"]), pick.choice([1, 2, 3]), 512))
        end = _compare(drawn, space["f"], drawn.arrays, modes)
        if end != "equal":
            return f"seed {number}, {end}" if end != "refused" else end
        small = drawn.small()
        try:
            space["f"](*[array.copy() for array in small])
        except NUMPY_ERRORS:
            return "equal"
        end = _compare(drawn, space["f"], small, [(pick.choice(both), 2, 512)])
        return end if end in ("equal", "refused") else f"seed {number}, small arrays, {end}"


def _compare(drawn: Drawn, function: Any, arrays: Sequence[np.ndarray], modes: Any) -> str:
    """Return how a program ends on some arrays in modes: tier, threads, and divisor."""
    pick = drawn.pick
    try:
        graph = trace(function, *arrays, rules="numpy").graph
    except (GraphirError, TypeError, IndexError, ValueError):
        return "refused"
    expected = interpret(graph, *arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    given = _given(drawn, graph, arrays)
    before = [array.copy() for array in given.arrays]
    for native, threads, sizes in modes:
        apart = step_by_step() if pick.random() < 0.3 else nullcontext()
        counts = pick.choice([1, 1, 1, 8, 64]) if sizes > 1 else 1
        block = pick.choice([None, None, 7, 100]) if drawn.is_broad else None
        with scaled(sizes, counts), apart:
            program = Program(given.graph, native=native, threads=threads, block=block)
            end = _call(drawn, program, given.arrays, expected, 4 if native == "auto" else 3)
            note_paths(program)
        if end:
            how = f"native={native!r} threads={threads} sizes={sizes} counts={counts} block={block}"
            return f"{how} {end}\n{drawn.source}"
        if not all(map(same, before, given.arrays)):
            return f"an input has changed\n{drawn.source}"
    return "equal"


class Given(NamedTuple):
    """A graph, and arrays that it takes."""

    graph: Graph
    arrays: Sequence[np.ndarray]


def _given(drawn: Drawn, graph: Graph, arrays: Sequence[np.ndarray]) -> Given:
    """Return a graph and its inputs, of a broad program as they lie in memory if they can."""
    axes: dict[int, tuple[int, ...]] = {}
    for place, array in enumerate(arrays if drawn.is_broad else ()):
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        if order != sorted(order) and array.transpose(order).flags.c_contiguous:
            axes[place] = inverse(tuple(order))
    ordered = in_memory_order(graph, axes, {})
    if ordered is None:
        return Given(graph, arrays)
    PATHS["in_memory_order"] += 1
    orders = [inverse(axes.get(k, tuple(range(x.ndim)))) for k, x in enumerate(arrays)]
    return Given(ordered, [x.transpose(order) for x, order in zip(arrays, orders, strict=True)])


def _call(
    drawn: Drawn,
    program: Program,
    arrays: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    count: int,
) -> str:
    """Call a program several times; return the difference, or ""."""
    pick = drawn.pick
    for call in range(count):
        last, own = call == 2, arrays
        out = _outs(pick, expected) if last else None
        if out and drawn.is_broad and pick.random() < 0.4:
            own, out = _outs_in_inputs(arrays, out)
        way = pick.random() if drawn.is_broad and not last else 1
        if way < 0.15:
            results = program(**dict(zip(program.graph.input_names, own, strict=True)))
        elif way < 0.3:
            results = program.watched(lambda done, total: None, *own)
        else:
            results = program(*own, out=out if out is None or len(out) > 1 else out[0])
        results = results if isinstance(results, tuple) else (results,)
        for k, (x, y) in enumerate(zip(results, expected, strict=True)):
            if not same(np.asarray(x), np.asarray(y)):
                return f"call {call}, output {k}:"
        if not last and any(np.may_share_memory(x, a) for x in results for a in arrays):
            return "a result shares memory with an input"
    return ""


def _outs(pick: Random, expected: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return arrays for results, in C order, in Fortran order, or with steps."""
    arrays: list[np.ndarray] = []
    for x in expected:
        kind = pick.random()
        array = np.zeros(x.shape, x.dtype, "F" if kind < 0.2 else "C")
        if kind > 0.8 and x.ndim:
            array = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
        arrays.append(array)
    return tuple(arrays)


def _outs_in_inputs(
    arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], tuple[np.ndarray, ...]]:
    """Return copies of arrays, and arrays for results, in the memory of the copies if they fit."""
    own, results = [array.copy() for array in arrays], [*outs]
    free = [*own]
    for k, out in enumerate(outs):
        for array in free:
            if array.shape == out.shape and array.dtype == out.dtype:
                results[k] = array if k % 2 else array[::-1] if array.ndim else array
                free = [each for each in free if each is not array]
                break
    return own, tuple(results)


def main() -> None:
    """Draw programs and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", action="store_true")
    parser.add_argument("--broad", action="store_true")
    options = parser.parse_args()
    kinds = BROAD if options.broad else UPDATING if options.updates else KINDS
    ends = {"equal": 0, "refused": 0}
    failures = 0
    for number in range(options.seed, options.seed + options.count):
        try:
            end = run(number, kinds)
        except Exception as error:
            end = f"seed {number}: {type(error).__name__}: {error}\n{Drawn(number, kinds).source}"
        if end in ends:
            ends[end] += 1
        else:
            failures += 1
            print(end, flush=True)
        if (number + 1 - options.seed) % 100 == 0:
            print(f"{number}: {ends}, {failures} differ", file=sys.stderr, flush=True)
    print(f"{ends['equal']} equal, {ends['refused']} refused, {failures} differ")
    print(", ".join([f"{name} {count}" for name, count in PATHS.most_common()]))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
