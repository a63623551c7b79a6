"""Rule sets: a warm lookup beside np.promote_types, and building under each beside "max".

    python -m tests.benchmarks.rule_sets [--nodes 30000] [--rounds 7]

Two programs: one of symbols (an add, then two casts), one in which every second operand is a
literal. Each is built under every rule set with a pair of dtypes that this mixes, interleaved with
the same program under "max"; the figures are medians, and ratios of medians.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
import timeit
from collections.abc import Callable

import numpy as np

from graphir import DType, Graph, PromotionError, PromotionRules, rule_sets, rules

PAIRS = ((DType.int16, DType.float32), (DType.float32, DType.float32))
LOOKUPS = 200_000


def lookups(rounds: int) -> dict[str, float]:
    """Nanoseconds a lookup, median over rounds: np.promote_types, then each rule set's promote."""
    dtypes = [np.dtype(np.int16), np.dtype(np.float32)]
    calls: dict[str, Callable[[], object]] = {"np.promote_types": lambda: np.promote_types(*dtypes)}
    for each in rule_sets():
        pair = mixed_by(each)
        calls[each.name] = lambda each=each, pair=pair: each.promote(*pair)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timeit.timeit(call, number=LOOKUPS) / LOOKUPS * 1e9)
    return {name: statistics.median(taken) for name, taken in times.items()}


def mixed_by(each: PromotionRules) -> tuple[DType, DType]:
    """The first of PAIRS that a rule set mixes, or its own last dtype twice."""
    usual = [pair for pair in PAIRS if each.answer(*pair)]
    return usual[0] if usual else (each.dtypes[-1], each.dtypes[-1])


def symbols(each: PromotionRules, pair: tuple[DType, DType], nodes: int) -> Graph:
    g = Graph("symbols", rules=each)
    a, b = g.input(pair[0], ("n",)), g.input(pair[1], ("n",))
    for _ in range(nodes // 3):
        r = a + b
        a, b = r.cast(pair[0]), r.cast(pair[1])
    return g


def literals(each: PromotionRules, pair: tuple[DType, DType], nodes: int) -> Graph:
    g = Graph("literals", rules=each)
    x = g.input(pair[1], ("n",))
    for _ in range(nodes // 2):
        x = x + 1.0
    return g


def ratio(make: Callable[..., Graph], each: PromotionRules, nodes: int, rounds: int) -> float:
    """The time to build under a rule set, of that under "max", medians; NaN if it refuses."""
    pair, base = mixed_by(each), rules("max")
    of_base = pair if base.answer(*pair) else PAIRS[0]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for taken, one, dtypes in ((times[0], each, pair), (times[1], base, of_base)):
            gc.collect()
            start = time.perf_counter()
            try:
                make(one, dtypes, nodes)
            except PromotionError:  # it takes no such literal
                return math.nan
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]) / statistics.median(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    found = lookups(asked.rounds)
    base = found.pop("np.promote_types")
    print(f"np.promote_types: {base:.0f} ns\n")
    print(f"{'rule set':14} {'lookup, ns':>10} {'of numpy':>9} {'symbols':>8} {'literals':>9}")
    for each in rule_sets():
        built = [ratio(make, each, asked.nodes, asked.rounds) for make in (symbols, literals)]
        taken = found[each.name]
        ratios = f"{taken / base:8.2f}x {built[0]:7.2f}x {built[1]:8.2f}x"
        print(f"{each.name:14} {taken:10.0f} {ratios}")


if __name__ == "__main__":
    main()
