"""Writing reports of a large graph: seconds for each form.

    python -m tests.benchmarks.reports [--nodes 100000] [--rounds 3]

The graph is that of `tests.benchmarks.compile`: for three nodes two uses of casts, and two casts
that the program writes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from passes import cast_report
from passes.reports import REPORT_FORMATS
from tests.benchmarks.compile import mixed


def seconds(run: Callable[[], object], rounds: int) -> float:
    """The median of some runs."""
    taken: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    graph = mixed(asked.nodes)
    report = cast_report(graph)
    print(f"{asked.nodes:,} nodes, {len(report):,} rows")
    print(f"  {'cast_report':12} {seconds(lambda: cast_report(graph), asked.rounds):6.2f} s")
    for name, write in REPORT_FORMATS.items():
        taken = seconds(lambda write=write: write(report), asked.rounds)
        print(f"  {name:12} {taken:6.2f} s   {len(write(report)) / 2**20:8.1f} MiB")


if __name__ == "__main__":
    main()
