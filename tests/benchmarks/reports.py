"""Making the report of a large graph, beside the pass it rests on; writing it in each form.

    python -m tests.benchmarks.reports [--nodes 100000] [--rounds 3]

The graphs are those of `tests.benchmarks.policies`; the first, for three nodes two uses of casts and
two casts that the program writes, is the one that is written.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable

from passes import cast_report, implicit_cast
from passes.reports import REPORT_FORMATS
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
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    for name, build in PROGRAMS.items():
        graph = build(asked.nodes)
        alone = [seconds(lambda g=graph: implicit_cast(g), 1) for _ in range(asked.rounds)]
        whole = [seconds(lambda g=graph: cast_report(g), 1) for _ in range(asked.rounds)]
        ratio = statistics.median(whole) / statistics.median(alone)
        print(f"{name:10} implicit_cast {statistics.median(alone):5.2f} s", end="")
        print(f", cast_report {statistics.median(whole):5.2f} s, {ratio:.2f} times")
    report = cast_report(mixed(asked.nodes))
    print(f"{asked.nodes:,} nodes, {len(report):,} rows")
    for name, write in REPORT_FORMATS.items():
        taken = seconds(lambda write=write: write(report), asked.rounds)
        print(f"  {name:12} {taken:6.2f} s   {len(write(report)) / 2**20:8.1f} MiB")


if __name__ == "__main__":
    main()
