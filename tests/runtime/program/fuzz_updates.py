"""Replays against NumPy on programs of updates: python -m tests.runtime.program.fuzz_updates.

A drawn program assigns to slices, rows, columns and elements of two arrays; the sources overlap
the targets. The program is recorded once. Programs for both tiers, in one block and in several,
with the thresholds of the cost model as they are and divided by 512, then have NumPy's results for
the recorded inputs and for others, and change no input.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from graphir.runtime import Program, record
from graphir.runtime.program.tier import Mode
from tests.support.evaluator import same
from tests.support.native_runs import TIERS
from tests.support.scaled_thresholds import scaled

DTYPES = ["f8", "f8", "f4", "i4", "c16"]
SHAPES: list[tuple[int, ...]] = [(9,), (40,), (5, 7), (8, 3), (2, 33), (3, 4, 5)]
MODES: list[tuple[Mode, int | None, int]] = [
    *(("off", None, 1), ("off", None, 512), ("off", 7, 512)),
    *[("now", block, sizes) for block, sizes in ((7, 1), (None, 1), (None, 512)) if "now" in TIERS],
]
"""The tier, the elements of a block, and the divisor of thresholds."""

TERMS = [
    *("{x}[{near}]", "{x}[{near}]", "{x}[{box}]", "{y}[{near}]", "2 * {x}[{near}]", "{t}[{near}]"),
    *("np.minimum({x}[{near}], {y}[{box}])", "np.where({x}[{near}] == {y}[{near}], 1, {x}[{box}])"),
    *("{x}[{near}] * {y}[{near}] + {x}[{box}]", "abs({x}[{near}])", "-{y}[{near}]", "{t}[{box}]"),
]
STATEMENTS = [
    *("{x}[{box}] = {term} + {term}", "{x}[{box}] += {term}", "{x}[{box}] = {term}"),
    *("{x}[{box}] *= {term} - {term}", "{x}[{box}], {y}[{box}] = {term}, {term}"),
    *("{x}[{i}] = {x}[{j}] + {y}[{i}]", "{x}[{i}] -= {x}[{i}] * {x}[{j}]", "{y}[{i}] = {x}[{i}]"),
    *("{x}[..., {k}] += {x}[..., {l}]", "{x}[{i}] += {x}[{j}, ..., {k}]", "{x}[{i}] = {t}[{j}]"),
    *("{x}[{i}, ..., {k}] = {x}[{j}, ..., {l}] * 2", "{x}[:] = np.maximum({x}, {t}[{j}])"),
    *("{x}[...] = {x}[::-1]", "{x} += {y}", "{x}[:] = np.roll({y}, 1, 0)", "{x} = {x} * 2"),
    *("{x}[np.arange({i}, {n})] += {y}[np.arange({i}, {n})]", "{x}[[{i}, {j}]] = {x}[[{j}, {i}]]"),
    *("t = {x}", "t = {x}[{near}] * 2 + {x}", "t = {x}.copy()", "t = {x}[::-1]", "t = {y} + {x}"),
    *("t = np.where({x} > {y}, {x}, {y}).astype({other})", "t = ({x} == {y}).astype({other})"),
    *("{x}[{i}:, {k}:] -= np.multiply.outer({x}[{i}:, {l}], {x}[{j}, {k}:])",),
]


def program(pick: Random, shape: tuple[int, ...]) -> str:
    """Return the source of a function of two arrays of some shape."""
    lines = ["def f(a, b):", "    t = b"]
    for _ in range(pick.randint(1, 7)):
        steps = [pick.choice([1, 1, 2]) for _ in shape]
        sizes = [pick.randint(1, -(-n // by)) for n, by in zip(shape, steps, strict=True)]
        own = _place(pick, shape, sizes, steps)
        x, y = pick.sample(["a", "b"], 2)

        def filled(
            text: str, x: str = x, y: str = y, own: str = own, at: Any = (sizes, steps)
        ) -> str:
            rows, columns = shape[0], shape[-1]
            return text.format(
                x=x,
                y=y,
                t="t",
                box=own,
                near=_place(pick, shape, *at),
                n=rows,
                i=pick.randrange(rows),
                j=pick.randrange(rows),
                k=pick.randrange(columns),
                l=pick.randrange(columns),
                other="a.dtype.str.translate({102: 105, 105: 102})",  # i4 for f4 and f4 for i4
                term="{term}",
            )

        line = filled(pick.choice(STATEMENTS))
        while "{term}" in line:
            line = line.replace("{term}", filled(pick.choice(TERMS)), 1)
        lines.append(f"    {line}")
    return "\n".join([*lines, "    return a, b, t, a.sum()"])


def _place(pick: Random, shape: Any, sizes: Any, steps: Any) -> str:
    """Return a slice of some sizes and steps, somewhere in an array, as text."""
    parts: list[str] = []
    for n, size, by in zip(shape, sizes, steps, strict=True):
        start = pick.randint(0, n - 1 - (size - 1) * by)
        parts.append(f"{start}:{start + (size - 1) * by + 1}:{by}")
    return ", ".join(parts)


def check(seed: int) -> str | None:
    """Return what is wrong with the program of a seed, "" if nothing is; None if NumPy refuses."""
    pick = Random(seed)
    shape, dtype = pick.choice(SHAPES), pick.choice(DTYPES)
    source = program(pick, shape)
    names: dict[str, Any] = {"np": np}
    exec(source, names)
    rng = np.random.default_rng(seed)
    calls = [[rng.integers(-3, 4, shape).astype(dtype) for _ in range(2)] for _ in range(2)]
    try:
        names["f"](*[x.copy() for x in calls[0]])
    except (IndexError, ValueError, TypeError):
        return None
    # No value decides about the control flow: the recordings differ in their values alone.
    recordings = [record(names["f"], *inputs) for inputs in calls]
    for native, block, sizes in MODES:
        with scaled(sizes):
            replay = Program(recordings[0].graph, native=native, block=block)
            problem = _differs(replay, recordings * 2)
        if problem:
            return f"{source}\nseed {seed}, {native}, {block}, {sizes}: {problem}"
    return ""


def _differs(replay: Program, recordings: Sequence[Any]) -> str:
    """Return what is wrong with the replays of recordings."""
    for number, recording in enumerate(recordings):
        inputs = [np.copy(x) for x in recording.inputs]
        outs = tuple([np.zeros_like(x) for x in recording.outputs]) if number % 2 else None
        results = replay(*inputs, out=outs[0] if outs and len(outs) == 1 else outs)
        results = results if isinstance(results, tuple) else (results,)
        if not all(map(same, inputs, recording.inputs)):
            return "an input has changed"
        if not all(map(same, results, recording.outputs)):
            return f"{results!r}\nin place of {recording.outputs!r}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=200)
    asked = parser.parse_args()
    wrong = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(asked.seed, asked.seed + asked.programs):
            problem = check(seed)
            refused += problem is None
            if problem:
                wrong += 1
                print(problem, flush=True)
    print(f"{asked.programs} programs, {refused} refused by NumPy, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
