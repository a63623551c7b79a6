"""Making the report of a large graph, beside the pass it rests on; writing it in each form.

    python -m tests.benchmarks.reports [--nodes 100000] [--rounds 5]

The graphs are those of `tests.benchmarks.policies`; the first is the one that is written: for three
nodes two uses of casts and two casts that the program writes.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from functools import partial

from graphir.passes import cast_report, implicit_cast
from graphir.passes.reports import REPORT_FORMATS
from tests.benchmarks.compile import mixed
from tests.benchmarks.policies import PROGRAMS


def seconds(run: Callable[[], object], rounds: int) -> float:
    """The median of some runs."""
    taken: list[float] = []
    for _ in range(rounds):
        gc.collect()
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    for name, build in PROGRAMS.items():
        graph = build(asked.nodes)
        runs = partial(implicit_cast, graph), partial(cast_report, graph)
        pairs = [[seconds(run, 1) for run in runs] for _ in range(asked.rounds)]
        alone, whole = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:10} implicit_cast {alone:5.2f} s", end="")
        print(f", cast_report {whole:5.2f} s: {ratio:.2f} times")
    report = cast_report(mixed(asked.nodes))
    print(f"{asked.nodes:,} nodes, {len(report):,} rows")
    for name, write in REPORT_FORMATS.items():
        taken = seconds(lambda write=write: write(report), asked.rounds)
        print(f"  {name:12} {taken:6.2f} s   {len(write(report)) / 2**20:8.1f} MiB")


if __name__ == "__main__":
    main()
