"""Building under policies, beside building without one: what judging the graph costs.

    python -m tests.benchmarks.policies [--nodes 100000] [--rounds 9]

Two programs: the mixed one of `tests.benchmarks.compile`, where two operands of every third symbol
are cast, and one in which every second operand is a number. Each is built without a policy, under
policies that find nothing, and under one that warns of every cast; interleaved in one process. The
figures are seconds, medians, and medians of the ratios to building without. The last program has
as many lines as hits, each of which is looked up, parsed and warned of: microseconds a warning.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphir import Graph
from graphir.passes import Policy
from tests.benchmarks.compile import mixed

POLICIES: dict[str, dict[str, Any]] = {
    "without": {},
    'forbid={"to:float64"}, no hit': {"forbid": {"to:float64"}},
    'widest="float32", no hit': {"widest": "float32"},
    'forbid={"to:float64"}, widest="float32", no hit': {
        "forbid": {"to:float64"},
        "widest": "float32",
    },
    'casts="warn", a hit at each cast': {"casts": "warn"},
}


def numbers(nodes: int, **policy: Any) -> Graph:
    g = Graph("numbers", rules="numpy", policy=Policy(**policy))
    x = g.input("float32", ("n",), name="x")
    for _ in range(nodes // 2):
        x = x * 2.2
    g.output(x)
    return g


PROGRAMS: dict[str, Callable[..., Graph]] = {"mixed": mixed, "numbers": numbers}


def seconds(build: Callable[..., Graph], nodes: int, policy: dict[str, Any]) -> float:
    gc.collect()
    with warnings.catch_warnings(record=True):
        start = time.perf_counter()
        build(nodes, **policy)
        return time.perf_counter() - start


def a_warning_each(lines: int) -> float:
    """Microseconds that each warning of a program costs which has one on each of its lines."""
    body = "\n".join(f"    h = x + h  # {i}" for i in range(lines))
    code = f"def program(g, x, h):\n{body}\n    g.output(h)\n"
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long_program.py"
        path.write_text(code, encoding="utf-8")
        names: dict[str, Any] = {}
        exec(compile(code, str(path), "exec"), names)
        for policy in ({}, {"casts": "warn"}):
            g = Graph("long", policy=Policy(**policy))
            x, h = g.input("int32", ("n",)), g.input("float16", ("n",))
            with warnings.catch_warnings(record=True):
                start = time.perf_counter()
                names["program"](g, x, h)
                taken.append(time.perf_counter() - start)
    return (taken[1] - taken[0]) / lines * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    for program, build in PROGRAMS.items():
        taken: dict[str, list[float]] = {name: [] for name in POLICIES}
        for _ in range(args.rounds):
            for name, policy in POLICIES.items():
                taken[name].append(seconds(build, args.nodes, policy))
        print(f"{program}, {args.nodes:,} nodes{'':28} seconds  ratio")
        for name, each in taken.items():
            ratios = [one / base for one, base in zip(each, taken["without"], strict=True)]
            print(f"  {name:50} {statistics.median(each):.3f}  {statistics.median(ratios):5.2f}")
    for lines in (100, 1000):
        print(f"{lines:,} lines warned of: {a_warning_each(lines):.0f} us a warning")


if __name__ == "__main__":
    main()
