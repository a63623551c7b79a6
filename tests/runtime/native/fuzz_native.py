"""Machine code against `interpret` on graphs and values drawn anew.

`python -m tests.runtime.native.fuzz_native` runs for a number of seconds; the first difference ends
it, with the seed that draws it again. Every other round divides the thresholds of the cost model
by 512. Graphs with control flow run in NumPy too, whose loops look for machine code after few
turns in these rounds.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from graphir import DType
from graphir.runtime import Program, interpret
from tests.support.control_flow import flow_programs, scalar_programs
from tests.support.evaluator import agree, outcome
from tests.support.native_runs import (
    casts,
    check,
    every_op,
    graph_of,
    run_drawn,
    step_by_step,
    values,
)
from tests.support.program_calls import BLOCKS, calls
from tests.support.scaled_thresholds import scaled
from tests.support.strategies import STRONG


def graphs(number: int) -> None:
    """Graphs of all ops and dtypes."""
    largest, steps = ((2000, 12), (60_000, 6), (300, 40))[number % 3]

    @seed(number)
    @settings(
        max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(calls(largest=largest, steps=steps))
    def each(call: Any) -> None:
        run_drawn(*call)

    each()


def flows(number: int) -> None:
    """Graphs with control flow, nested, over all ops; loops over scalars."""

    @seed(number)
    @settings(
        max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.one_of(flow_programs(), scalar_programs()), st.sampled_from(BLOCKS))
    def each(drawn: Any, block: int | None) -> None:
        graph, inputs = drawn
        meaning = outcome(interpret, graph, *inputs)
        for native in ("off", "now"):
            program = Program(graph, block=block, native=native)
            for _ in range(3):
                assert agree(outcome(program, *inputs), meaning)

    each()


def drawn(number: int) -> tuple[DType, list[Any]]:
    """A dtype, and three arrays of it."""
    pick = random.Random(number)
    dtype, size = pick.choice(STRONG), pick.choice((pick.randrange(100), pick.randrange(5000)))
    return dtype, [values(dtype, size, number + k) for k in range(3)]


def elementwise(number: int) -> None:
    """Every op of a dtype."""
    dtype, inputs = drawn(number)
    make = partial(every_op, dtype, operands=1)
    with step_by_step():
        check(graph_of(make, *[(dtype, ("n",))] * 3), *inputs, whole=len(inputs[0]) > 0)


@np.errstate(all="ignore")
def conversions(number: int) -> None:
    """Every cast of a dtype."""
    dtype, inputs = drawn(number)
    with step_by_step():
        check(graph_of(casts, (dtype, ("n",))), inputs[0], whole=False)


KINDS: tuple[Callable[[int], None], ...] = (graphs, flows, elementwise, conversions)


def main() -> None:
    """Draw until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    end, number = monotonic() + given.seconds, given.seed
    while monotonic() < end:
        for kind in KINDS:
            try:
                counts = 64 if kind is flows and number % 4 == 3 else 1
                with scaled(512 if number % 2 else 1, counts):
                    kind(number)
            except BaseException:
                print(f"--seed {number}: {kind.__name__}", file=sys.stderr)
                raise
        values.cache_clear()
        number += 1
    print(f"{number - given.seed} rounds from seed {given.seed}: no bit differs")


if __name__ == "__main__":
    main()
