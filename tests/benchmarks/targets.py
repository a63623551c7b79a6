"""What graphir is to reach, and whether it does: ratios of medians, the best of three runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.alone import ask
from tests.benchmarks.engine import Engine
from tests.benchmarks.execution import FIRST, PEAK, Bench, Row, sizes_of
from tests.benchmarks.workloads import Workload

RUNS = 3


class Target(NamedTuple):
    """The time of graphir is at most `most` of another's, fresh outputs.

    Beside numpy it has one thread; beside another it has what serves it best, and so has the
    other; beside itself two.
    """

    workload: str
    n: int
    most: float
    beside: str = "numpy"

    def value(self, rows: Sequence[Row]) -> float:
        """The ratio, NaN where one was not measured or graphir was wrong."""
        mine = {
            row["threads"]: row["seconds"]
            for row in rows
            if row["engine"] == "graphir" and row["exact"] == 1
        }
        others = [row["seconds"] for row in rows if row["engine"] == self.beside]
        if self.beside == "graphir":
            return mine.get(2, math.nan) / mine.get(1, math.nan)
        if self.beside == "numpy":
            return mine.get(1, math.nan) / min(others, default=math.nan)
        return min(mine.values(), default=math.nan) / min(others, default=math.nan)

    def __str__(self) -> str:
        size = f"n={self.n:,}" if self.n else "0-d"
        pair = "2 threads / 1" if self.beside == "graphir" else f"graphir / {self.beside}"
        return f"{self.workload:4}{size:14} {pair:22} <= {self.most}"


_AT_1E7 = {"W1": 0.65, "W2": 0.35, "W3": 0.24, "W4": 0.30, "W5": 0.45, "W6": 0.22, "W7": 0.50}
_AT_1E4 = {"W1": 0.9, "W2": 0.9, "W3": 0.9, "W4": 0.6, "W5": 0.6, "W6": 0.6}
TARGETS = (
    *(Target(name, 10**7, most) for name, most in _AT_1E7.items()),
    *(Target(name, 10**4, most) for name, most in _AT_1E4.items()),
    *(Target(name, 100, 1.0) for name in ("W1", "W2", "W3")),
    Target("W8", 0, 0.2),
    Target("W9", 1024, 1.05),
    Target("W10", 0, 0.6),
    Target("W10", 1000, 0.6),
    *(Target(name, 10**7, 1.0, "graphir") for name in _AT_1E7),
    *(
        Target(name, 10**7, 1.0, peer)
        for peer in ("jax.jit", "torch", "onnxruntime", "numexpr")
        for name in ("W1", "W2", "W3")
    ),
    Target("W7", 10**7, 1.0, "numexpr"),
    *(Target(name, n, 1.0, "MAX") for name in _AT_1E4 for n in (100, 10**4)),
)


def check(
    workloads: Sequence[Workload], engines: Sequence[Engine], asked: argparse.Namespace
) -> int:
    """Print a line a target of these workloads, engines and sizes; 1 if one is missed."""
    present = {one.name for one in engines}
    by_name = {one.name: one for one in workloads}
    wanted = [
        one
        for one in TARGETS
        if one.workload in by_name
        and one.beside in present
        and (one.beside != "graphir" or {1, 2} <= set(asked.threads))
        and one.n in sizes_of(by_name[one.workload], asked.sizes)
    ]
    best = dict.fromkeys(wanted, math.nan)
    cells = dict.fromkeys((one.workload, one.n) for one in wanted)
    benches: dict[frozenset[str], Bench] = {}
    for _ in range(RUNS):
        for workload, n in cells:
            mine = [one for one in wanted if (one.workload, one.n) == (workload, n)]
            names = frozenset({"graphir", "numpy", *(one.beside for one in mine)})
            if names not in benches:
                chosen = [one for one in engines if one.name in names]
                benches[names] = Bench(chosen, asked.threads, asked.rounds)
            rows = benches[names].measure(by_name[workload], n, ("fresh",))
            for one in mine:
                best[one] = min(
                    filter(math.isfinite, (best[one], one.value(rows))), default=math.nan
                )
    results = [missed(str(one), value, one.most) for one, value in best.items()]
    if "W1" in by_name and PEAK in asked.sizes and "graphir" in present:
        results += [
            missed("W1  peak above inputs, MB", _asked("peak", PEAK) / 1e6, PEAK * 4 / 1e6 + 8),
            missed("W1  first result, ms", _asked("first", FIRST) * 1e3, 5.0),
        ]
    for note in dict.fromkeys(note for one in benches.values() for note in one.unmeasured()):
        print(note)
    return int(any(results))


def _asked(what: str, n: int) -> float:
    found = [ask(what, "graphir", "W1", n) for _ in range(RUNS)]
    return min((one for one in found if one is not None), default=math.nan)


def missed(text: str, value: float, most: float) -> bool:
    """Print it; whether it is missed."""
    passed = value <= most
    print(f"{'pass' if passed else 'FAIL'}  {text:56} {value:8.2f}")
    return not passed
