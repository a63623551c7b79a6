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
from unittest.mock import patch

import numpy as np

from graphir import Graph, GraphirError
from graphir.numpy_api.trace import trace
from graphir.passes.pipeline import Pass
from graphir.runtime import Program, interpret
from graphir.runtime.program import planning, plans
from graphir.runtime.program.plans import Plan
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.axis_orders import in_memory_order, inverse
from graphir.runtime.program.steps import CallStep
from tests.runtime.program.drawn_programs import NUMPY_ERRORS, SPACE, Drawn
from tests.runtime.program.drawn_statements import BROAD, KINDS, UPDATING
from tests.support.evaluator import same
from tests.support.native_runs import step_by_step
from tests.support.scaled_thresholds import scaled
from tests.support.verified_steps import rewrite_verified

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
        with patch.object(plans, "rewrite_steps", rewrite_verified):
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
