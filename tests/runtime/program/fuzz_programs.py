"""Drawn NumPy programs: `python -m tests.runtime.program.fuzz_programs [--count N] [--seed N]`.

A program is a function of a few arrays: elementwise functions, reductions over any axes and what is
broadcast back, products of matrices, stencils of slices, assignments to slices, sorts, sums along
an axis, lookups and casts, over arrays of any layout. With `--updates` most statements copy an
array, assign to slices of the copy, and then select, cast and count, also between dtypes of one
size. NumPy runs each statement as it is drawn, so that programs raise nothing.

Each program runs with NumPy alone and by machine code, on one thread and on several, with the
thresholds of the cost model as they are and divided by 512, at its own sizes and at very small
ones, several times, and with `out=`. Its results have the bits of `interpret`. The last line has
the paths that the programs took, with the number of plans; stderr has a line for 100 programs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from graphir import GraphirError
from graphir.numpy_api.trace import trace
from runtime import Program, interpret
from runtime.program import program as programs
from runtime.program.codegen.assembly import Walk
from runtime.program.cost_model import scaled
from runtime.program.plans import Plan
from runtime.program.steps import CallStep, RegionStep
from tests.support.evaluator import same
from tests.support.native_runs import step_by_step

DTYPES = ["f4", "f4", "f4", "f8", "f8", "i4", "i8", "i1", "u1", "f2", "?"]
UNARY = [
    *("np.exp({x})", "np.exp(-np.abs({x}))", "np.log(np.abs({x}) + 1)", "np.tanh({x})", "-{x}"),
    *(
        "np.sqrt(np.abs({x}))",
        "{x} * 2",
        "{x} ** 2",
        "np.log1p(np.abs({x}))",
        "1 / (1 + {x} * {x})",
    ),
    *("np.maximum({x}, 0)", "np.expm1({x} * 0.1)", "np.abs({x})", "np.clip({x}, -1, 2)", "{x} > 0"),
    *("np.log({x})", "np.sin({x})", "np.rint({x})", "{x} + 0.5", "3 - {x}", "np.sign({x})"),
]
BINARY = [
    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "np.maximum({x}, {y})", "{x} / (np.abs({y}) + 1)"),
    *(
        "np.where({x} > {y}, {x}, {y})",
        "{x} * 0.9 + {y} * 0.1",
        "np.minimum({x}, {y})",
        "{x} < {y}",
    ),
]
REDUCTIONS = [
    *("{x}.sum({axis})", "{x}.mean({axis})", "{x}.max({axis})", "{x}.min({axis})"),
    *("np.sum({x} * {x}, {axis})", "np.sum(np.exp(-np.abs({x})), {axis})", "{x}.std({axis})"),
    *(
        "np.any({x} > 0, {axis})",
        "np.all({x} > -2, {axis})",
        "{x}.var({axis})",
        "np.prod({x}, {axis})",
        "np.argmax({x}, {axis})",
        "np.argmin(-{x}, {axis})",
    ),
]
ROWS = [
    *("{x} - {x}.mean({kept})", "({x} - {x}.mean({kept})) / ({x}.std({kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept}))", "{x} / np.sqrt(np.mean({x} * {x}, {kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept})) / np.exp({x} - {x}.max({kept})).sum({kept})",),
    *("np.sort({x}, {last})", "np.cumsum({x}, {last})", "np.argsort({x}, {last}, kind='stable')"),
    *(
        "np.argmax({x}, {last})",
        "np.argmin({x}, {last})",
        "{x} - np.max({x}, {last}, keepdims=True)",
    ),
]
MOVES = [
    *(
        "{x}[..., ::-1]",
        "{x}.T",
        "{x}[1:-1]",
        "{x}[::2]",
        "{x}[..., 1:]",
        "{x}[:, None]",
        "{x}[None]",
    ),
    *("np.swapaxes({x}, -1, -2)", "{x}.reshape(-1)", "np.concatenate([{x}, {x}[:1]])", "{x}[0]"),
    *(
        "np.roll({x}, 1, 0)",
        "np.pad({x}, 1)",
        "{x}[np.array([1, 0, 1])]",
        "{x}[..., None]",
        "{x}[-1]",
    ),
    *("np.stack([{x}, {x}], -1)", "{x}.astype(np.float32)", "{x}.astype(np.float64)", "{x}.copy()"),
    *(
        "{x}.astype(np.int32)",
        "{x}.astype(np.int8)",
        "{x}.astype(np.float16)",
        "{x}.astype(np.uint8)",
    ),
    *("np.diff({x})", "np.broadcast_to({x}, (3, *{x}.shape))", "np.take({x}, [0, 1, 0], -1)"),
]
STENCILS = [
    *("{x}[:-2] + {x}[2:] - 2 * {x}[1:-1]", "{x}[..., :-1] * 0.5 + {x}[..., 1:] * 0.5"),
    *("{x}[1:-1, 1:-1] + 0.1 * ({x}[:-2, 1:-1] + {x}[2:, 1:-1] + {x}[1:-1, :-2])",),
    *("np.roll({x}, 1, 0) + np.roll({x}, -1, 0)", "{x}[1:] * 0.5 - {x}[:-1]"),
]
UPDATES = [
    *(
        "{z}[1:-1] += 0.1 * ({z}[:-2] + {z}[2:] - 2 * {z}[1:-1])",
        "{z}[0] = 0",
        "{z}[..., 0] += {z}[..., 1]",
    ),
    *(
        "{z}[1:-1] = {x}[2:] - {x}[:-2]",
        "{z}[-1] = {z}[-2]",
        "{z}[:, 1:] = {z}[:, :-1]",
        "{z}[1:-1, 1:-1] += 0.1 * {z}[:-2, 1:-1]",
        "{z} *= 0.5",
        "{z}[::2] = 1",
    ),
]
PRODUCTS = [
    *(
        "{x} @ {y}",
        "{x} @ np.swapaxes({y}, -1, -2)",
        "np.maximum({x} @ np.swapaxes({y}, -1, -2) + 1, 0)",
    ),
    *("{x} @ {x}.T", "np.sum(({x}[:, None] - {y}[None]) ** 2, -1)", "np.dot({x}, {y})"),
    *(
        "np.einsum('ij,kj->ik', {x}, {y})",
        "np.outer({x}, {y})",
        "{x}.astype(np.int32) @ {x}.astype(np.int32).T",
    ),
    *("np.einsum('...ij,...kj->...ik', {x}, {y})", "np.sum({x}[:, None] * {y}[None], 1)"),
    *(
        "{x} / (1 + np.abs({x} @ {x}.reshape(-1)[: {x}.shape[-1]])[..., None])",
        "np.stack([{x}, {y}, {x}], -1) * {x}[..., None] + np.arange(3)",
    ),
]
KINDS = [
    UNARY,
    UNARY,
    BINARY,
    BINARY,
    REDUCTIONS,
    REDUCTIONS,
    ROWS,
    ROWS,
    MOVES,
    STENCILS,
    UPDATES,
    PRODUCTS,
]
COPIES = [
    *(
        "{z}[::2] = 0",
        "{z}[1:] = {z}[:-1]",
        "{z}[0] = 3",
        "{z}[..., ::2] *= 2",
        "{z}[:] = {x}[::-1]",
    ),
    *("{z}[2:5] = {x}[:3]", "{z}[:, :-1] = 3", "{z}[1:-1] = {x}[2:]", "{z}[-1] += {z}[0]"),
    *(
        "{z}[{z} > 1] = 0",
        "{z}[...] = np.where({z} > 0, {z}, 1)",
        "{z}[1:-1, 1:] = {x}[1:-1, :-1] * 2",
    ),
]
SAME_SIZE = [("f8", "i8", "u8"), ("f4", "i4", "u4"), ("f2", "i2", "u2"), ("i1", "u1", "?")]
TYPED = [
    *("np.where({x} > 1, {x}, {x}.dtype.type(1)).astype('{t}')", "{x}.astype('{t}')"),
    *("np.where({x} > 0, {x}.astype('{t}'), {x}.astype('{t}') + 1)", "({x} > 0).astype('{t}')"),
    *(
        "np.count_nonzero(np.where({x} > 1, {x}, {x}.dtype.type(0)))",
        "np.count_nonzero({x}, {last})",
    ),
    *(
        "np.where({x} > 1, {x}, {x}.dtype.type(1)).astype('{t}').sum({axis})",
        "{x}.astype('{t}') * 2",
    ),
    *("np.where({x} > 0, {x}, {x}[..., ::-1])", "np.where({y} > 0, {x}, {x}.dtype.type(2)) + {y}"),
    *("np.where({x} > 1, {x}, {x}.dtype.type(0)).sum({axis})", "np.maximum({x}, 1).astype('{t}')"),
    *(
        "np.where({x}, {x}, {x}.dtype.type(1)).astype('{t}')[..., 1:]",
        "{x}.astype('{t}').sum({axis})",
    ),
]
SHAPES: list[tuple[int, ...]] = [
    *((40,), (300,), (2000,), (3, 4), (17, 33), (60, 130), (9, 300), (130, 7), (50, 3), (200, 64)),
    *((2, 9, 16), (4, 33, 3), (3, 20, 40), (2, 3, 8, 16), (1, 64), (33, 1), (5, 1, 40), (1100, 5)),
]
UPDATING = [COPIES, COPIES, COPIES, TYPED, TYPED, TYPED, UPDATES, UNARY, BINARY, MOVES, REDUCTIONS]
VIEWS = ["{x}.T", "{x}[..., ::2]", "{x}[1:]", "{x}[None]", "{x}[..., ::-1]", "{x}.reshape(-1)"]
LARGE: list[tuple[int, ...]] = [(300, 1000), (1000, 300), (200_000,), (8, 100, 64), (40_000, 3)]
MOST = 1 << 20
"""The most elements of a value."""


class Drawn:
    """A program, drawn statement by statement from some kinds, and arrays for it."""

    def __init__(self, number: int, kinds: Sequence[list[str]] = KINDS) -> None:
        self.pick, self.random = Random(number), np.random.default_rng(number)
        pick = self.pick
        large = pick.random() < 0.05
        shape = pick.choice(LARGE if large else SHAPES)
        if pick.random() < 0.03:  # arrays without elements
            shape = (0, *shape[1:])
        others = [shape, shape[-1:], (*shape[:-1], 1), shape[::-1], pick.choice(SHAPES)]
        dtypes = [pick.choice(DTYPES)] * 3 + [pick.choice(DTYPES)]
        shapes = [shape, *[pick.choice([shape, *others]) for _ in range(pick.randint(0, 2))]]
        self.arrays = [self._array(each, pick.choice(dtypes)) for each in shapes]
        self.names = [f"a{k}" for k in range(len(shapes))]
        self.values = {
            name: array.copy() for name, array in zip(self.names, self.arrays, strict=True)
        }
        self.lines: list[str] = []
        self.live = [*self.names]
        for _ in range(pick.randint(2, 5 if large else 14)):
            self._statement(pick.choice(kinds))
        outputs = dict.fromkeys([self.live[-1], *pick.sample(self.live, min(2, len(self.live)))])
        if kinds is UPDATING:
            outputs |= dict.fromkeys(self._views([*outputs]))
        body = "".join(f"    {line}\n" for line in self.lines)
        self.source = f"def f({', '.join(self.names)}):\n{body}    return {', '.join(outputs)},\n"

    def _views(self, names: Sequence[str]) -> Iterator[str]:
        """Yield some views of values."""
        for name in names:
            text = self.pick.choice(VIEWS).format(x=name)
            try:
                eval(text, {"np": np}, self.values)
            except (ValueError, TypeError, IndexError):
                continue
            if self.pick.random() < 0.3:
                yield text

    def small(self) -> list[np.ndarray]:
        """The first elements of the arrays, at most 2 to 4 along each axis."""
        most = {1: 1, 0: 0}
        parts: list[np.ndarray] = []
        for array in self.arrays:
            sizes = [most.setdefault(n, min(n, self.pick.choice([2, 3, 4]))) for n in array.shape]
            parts.append(array[tuple(map(slice, sizes))])
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
        if templates is PRODUCTS and max(pairs, np.size(self.values[x]) ** 2) > 64 * MOST:
            return
        axes = [*range(-rank, rank)] or [0]
        axis: Any = pick.choice(
            [None, -1, pick.choice(axes), pick.choice(axes), tuple(range(1, rank))]
        )
        keepdims = pick.random() < 0.5
        dtype = np.asarray(self.values[x]).dtype
        alike = [each for each in SAME_SIZE if dtype in map(np.dtype, each)] or SAME_SIZE
        text = pick.choice(templates).format(
            x=x,
            y=y,
            z="z",
            t=pick.choice(alike[0]) if templates is TYPED else "",
            last=f"axis={pick.choice([-1, -1, pick.choice(axes)])}",
            axis=f"axis={axis}, keepdims={keepdims}",
            kept=f"axis={pick.choice([-1, -1, axis])}, keepdims=True",
        )
        name = f"v{len(self.lines)}"
        lines = [f"{name} = {text}"]
        if templates in (UPDATES, COPIES):
            lines = [f"{name} = {x}.copy()", text.replace("z", name)]
        trial = self.values.copy()
        try:
            for line in lines:
                exec(line, {"np": np}, trial)
        except (ValueError, TypeError, IndexError, MemoryError, np.exceptions.AxisError):
            return
        value = trial[name]
        if np.size(value) > MOST or np.ndim(value) > 4:
            return
        self.values, self.live = trial, [*self.live, name]
        self.lines += lines


PATHS: Counter[str] = Counter()
"""The paths that plans took."""

GRAPH_REWRITES = (
    *("hoisted", "multiply_squares", "sum_vector_products", "expanded", "update_pads"),
    *("split_reductions", "recompute_cheap_values", "split_short_axes", "slice_operands"),
)


@contextmanager
def watched() -> Iterator[None]:
    """Count the rewrites that change a graph."""
    with patch.multiple(programs, **{name: _counted(name) for name in GRAPH_REWRITES}):
        yield


def _counted(name: str) -> Any:
    rewrite = getattr(programs, name)

    def counted(graph: Any, **settings: Any) -> Any:
        result = rewrite(graph, **settings)
        PATHS[name] += result is not graph
        return result

    return counted


def note_paths(program: Program) -> None:
    """Count the paths of the plans of a program that was called."""
    for plan, _ in program._plans.values():
        PATHS.update(set(_paths(plan)))


def _paths(plan: Plan) -> Iterator[str]:
    functions = plan.straight, plan.native
    yield from [name for name, each in zip(("straight", "native"), functions, strict=True) if each]
    yield from ["steps"] * ("steps" in vars(plan)) + ["kernels in straight"] * bool(plan._entries)
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
        pick, space = drawn.pick, dict[str, Any](np=np)
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
        except (ValueError, TypeError, IndexError):
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
    before = [array.copy() for array in arrays]
    expected = interpret(graph, *arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for native, threads, sizes in modes:
        apart = step_by_step() if pick.random() < 0.3 else nullcontext()
        counts = pick.choice([1, 1, 1, 8, 64]) if sizes > 1 else 1
        with scaled(sizes, counts), apart:
            program = Program(graph, native=native, threads=threads)
            for call in range(4 if native == "auto" else 3):
                last = call == 2
                out = _outs(pick, expected) if last else None
                results = program(*arrays, out=out if out is None or len(out) > 1 else out[0])
                results = results if isinstance(results, tuple) else (results,)
                for k, (x, y) in enumerate(zip(results, expected, strict=True)):
                    if not same(np.asarray(x), np.asarray(y)):
                        how = f"native={native!r} threads={threads} sizes={sizes} counts={counts}"
                        return f"{how} call {call}, output {k}:\n{drawn.source}"
                if not last and any(np.may_share_memory(x, a) for x in results for a in arrays):
                    return f"a result shares memory with an input\n{drawn.source}"
            note_paths(program)
        if not all(map(same, before, arrays)):
            return f"an input has changed\n{drawn.source}"
    return "equal"


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


def main() -> None:
    """Draw programs and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", action="store_true")
    options = parser.parse_args()
    kinds = UPDATING if options.updates else KINDS
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
