"""Running graphs: time, exactness and memory of W1 to W10, beside the libraries installed.

    python -m tests.benchmarks.execution [--only W1 W3] [--sizes 100 10000] [--rounds 7]
        [--engines numpy jax.jit] [--threads 1 2] [--outputs fresh dropped out=]
        [--json FILE] [--svg FILE] [--check]

Every engine takes NumPy arrays and gives NumPy arrays, as a user calls it, all in one process and
in an order that turns each round; a figure is the median over rounds, and its ratio is to NumPy
eager with the same output. Within a round calls are repeated for 2 ms at least. Three outputs:

- `fresh`: all results are held until the clock stops, so that none lies in the memory of another;
  large ones are given back to the system after it, so that the next have new pages.
- `dropped`: each is freed before the next call, which may have its memory.
- `out=`: memory of the caller, written before; the ratio is to NumPy's fresh output.

`exact` is the part of elements equal to `interpret`'s to the bit. An engine whose threads cannot be
set takes as many as it likes ("own"). The copy limit is the time in which `np.copyto` reads and
writes as many bytes as the inputs and the output have, where that is more than a cache holds.

`--check` measures graphir against the targets instead, best of three runs, and exits with 1 if one
is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime import interpret
from tests.benchmarks.alone import ask
from tests.benchmarks.chart import picture
from tests.benchmarks.engine import Array, Engine, Function, Unable
from tests.benchmarks.engines import ENGINES
from tests.benchmarks.workloads import BY_NAME, WORKLOADS, Workload

SIZES = (10**2, 10**4, 10**6, 10**7)
FIRST, PEAK = 100, 10**7
OUTPUTS = ("fresh", "dropped", "out=")
_LEAST = 2e-3
_LARGE = 10**6
"""Bytes of an output that is worth giving back."""
_REST = 5e-3
"""Seconds: threads of the last engine wait that long for more, and take a core."""
_SEEN = 1e-4
"""Seconds: what is faster to copy lies in a cache."""
Row = dict[str, Any]


class Contestant(NamedTuple):
    """One line of a table at one size."""

    engine: Engine
    threads: int | None
    output: str
    call: Callable[[], Any]
    exact: float


class Bench:
    """What was compiled, for all sizes of a workload, and why some was not."""

    def __init__(self, engines: Sequence[Engine], threads: Sequence[int], rounds: int) -> None:
        self.engines, self.threads, self.rounds = engines, threads, rounds
        self.notes: dict[str, dict[str, None]] = {}
        self._made: dict[tuple[Any, ...], Function | Exception] = {}

    def measure(self, workload: Workload, n: int, outputs: Iterable[str]) -> list[Row]:
        """The rows of one workload at one size."""
        arrays = workload.arrays(n)
        wanted = np.asarray(interpret(workload.graph(n), *arrays))
        found = [
            one
            for engine in self.engines
            for threads in (self.threads if engine.chooses else (None,))
            for output in outputs
            if (one := self._contestant(engine, threads, output, workload, n, arrays, wanted))
        ]
        times = interleaved(found, self.rounds, wanted.nbytes >= _LARGE)
        medians = list(map(statistics.median, times))
        base = {
            one.output: median
            for one, median in zip(found, medians, strict=True)
            if one.engine.name == "numpy"
        }
        usual = base.get("fresh", math.nan)
        traffic = wanted.nbytes + sum(array.nbytes for array in arrays)
        return [
            {
                "workload": workload.name,
                "n": n,
                "engine": one.engine.name,
                "threads": one.threads,
                "output": one.output,
                "seconds": median,
                "ratio": median / base.get(one.output, usual),
                "exact": one.exact,
                "bytes": traffic,
                "rounds": taken,
            }
            for one, median, taken in zip(found, medians, times, strict=True)
        ]

    def _contestant(
        self,
        engine: Engine,
        threads: int | None,
        output: str,
        workload: Workload,
        n: int,
        arrays: Sequence[Array],
        wanted: Array,
    ) -> Contestant | None:
        count = threads or 1
        engine.use(count)
        into = output == "out="
        key = engine.name, threads, into, workload.name, n == 0
        try:
            if key not in self._made:
                self._made[key] = _made(engine, workload, n, count, into)
            run = self._made[key]
            if isinstance(run, Exception):
                raise run
            call = partial(run, *arrays)
            if into:
                memory = np.full_like(wanted, 77)
                call = partial(run, *arrays, out=memory)
            found = np.asarray(call())
            if into:
                if not np.shares_memory(found, memory):
                    raise Unable("out= is not written to")
                found = memory
        except Exception as error:  # one engine's fault is not the others'
            kind = "" if isinstance(error, Unable) else f"{type(error).__name__}: "
            where = ", out=" if into else ""
            reason = f"{engine.name}{where}: {kind}{f'{error} '.splitlines()[0][:150]}"
            self.notes.setdefault(reason.strip(), {})[workload.name] = None
            return None
        return Contestant(engine, threads, output, call, equal(found, wanted))

    def unmeasured(self) -> list[str]:
        """Engines and outputs, why, and of which workloads."""
        return [f"{reason} ({' '.join(of)})" for reason, of in self.notes.items()]

    def forget(self) -> None:
        """Free what was compiled."""
        self._made.clear()
        gc.collect()


def _made(engine: Engine, workload: Workload, n: int, threads: int, into: bool) -> Any:
    try:
        return (engine.into if into else engine.function)(workload, n, threads)
    except Exception as error:  # kept, so that it is not compiled for each size
        return error


def equal(found: Array, wanted: Array) -> float:
    """The part of elements that are equal to the bit; a NaN is one, whatever its bits."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return 0.0
    bits = f"u{wanted.itemsize}"
    same = np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(wanted).view(bits)
    return float(np.mean(same | (np.isnan(found) & np.isnan(wanted)).reshape(same.shape)))


def interleaved(found: Sequence[Contestant], rounds: int, large: bool) -> list[list[float]]:
    """Seconds a call, by contestant and round."""
    repeats = [_repeats(one) for one in found]
    times: list[list[float]] = [[] for _ in found]
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for i in range(len(found)):
                at = (turn + i) % len(found)
                if large:
                    _give_back()
                time.sleep(_REST)
                if repeats[at] > 1:
                    _timed(found[at], 1)
                times[at].append(_timed(found[at], repeats[at]))
    finally:
        gc.enable()
    return times


def _repeats(one: Contestant) -> int:
    count = 1
    while (taken := _timed(one, count) * count) < _LEAST:
        count = max(count + 1, math.ceil(count * min(10.0, 1.2 * _LEAST / max(taken, 1e-9))))
    return count


def _timed(one: Contestant, repeats: int) -> float:
    """Seconds a call."""
    one.engine.use(one.threads or 1)
    call, held = one.call, [None] * repeats
    start = time.perf_counter()
    if one.output == "fresh":
        for i in range(repeats):
            held[i] = call()
    else:
        for _ in held:
            call()
    return (time.perf_counter() - start) / repeats


def _give_back() -> None:
    """Hand free memory to the system, where the C library can."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


def bandwidth() -> float:
    """Bytes a second that np.copyto reads and writes, on one thread."""
    source = np.ones(10**7, np.float32)
    target = np.zeros_like(source)
    times: list[float] = []
    for _ in range(9):
        start = time.perf_counter()
        np.copyto(target, source)
        times.append(time.perf_counter() - start)
    return 2 * source.nbytes / statistics.median(times)


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    python = platform.python_version()
    return f"{name}, {cores()} cores, Python {python}, NumPy {np.__version__}"


def cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def table(workload: Workload, rows: Sequence[Row], copied: float) -> str:
    """A line an engine, its threads and outputs; for each size time, ratio and exactness."""
    sizes = sorted({row["n"] for row in rows})
    heads = [f"{f'n={n:,}' if n else '0-d':>26}" for n in sizes]
    lines = [f"\n{workload.name}: {workload.about}", f"{'':32}{''.join(heads)}"]
    lines.append(
        f"{'engine':15}{'threads':>8}{'output':>9}" + f"{'time  ratio  exact':>26}" * len(sizes)
    )
    keys = dict.fromkeys((row["engine"], row["threads"], row["output"]) for row in rows)
    known = {(row["engine"], row["threads"], row["output"], row["n"]): row for row in rows}
    for engine, threads, output in keys:
        cells = [_cell(known.get((engine, threads, output, n))) for n in sizes]
        lines.append(f"{engine:15}{threads or 'own':>8}{output:>9}{''.join(cells)}")
    limits = {row["n"]: row["bytes"] / copied for row in rows}
    shown = [f"{clock(limits[n]) if limits[n] > _SEEN else '':>13}{'':13}" for n in sizes]
    if max(limits.values()) > _SEEN:
        lines.append(f"{'copy limit':32}{''.join(shown)}")
    return "\n".join(line.rstrip() for line in lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return f"{'-':>13}{'':13}"
    exact = "=" if row["exact"] == 1 else f"{int(row['exact'] * 100)}%"
    return f"{clock(row['seconds']):>13}{row['ratio']:>7.2f}{exact:>6}"


def clock(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} us"


class Fresh(NamedTuple):
    """One engine in processes of its own, W1."""

    engine: str
    first: float | None
    peak: float | None


def fresh_processes(engines: Sequence[Engine], n: int) -> list[Fresh]:
    return [
        Fresh(one.name, ask("first", one.name, "W1", FIRST), ask("peak", one.name, "W1", n))
        for one in engines
    ]


def chosen(asked: Any) -> tuple[list[Workload], list[Engine]]:
    """What is to be measured, and is installed."""
    engines = [one for one in ENGINES if not asked.engines or one.name in asked.engines]
    for one in engines:
        if not one.installed:
            print(f"{one.name}: not installed")
    return [BY_NAME[name] for name in asked.only], [one for one in engines if one.installed]


def sizes_of(workload: Workload, asked: Sequence[int]) -> Sequence[int]:
    return workload.sizes or asked


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = [one.name for one in WORKLOADS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="W")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--engines", nargs="+", choices=[one.name for one in ENGINES])
    parser.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=list(OUTPUTS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--peak", type=int, default=PEAK, help="size of W1 for the peak memory; 0: none"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--check", action="store_true")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    asked = arguments(given)
    workloads, engines = chosen(asked)
    print(machine())
    if asked.check:
        from tests.benchmarks.targets import check

        return check(workloads, engines, asked)
    versions = {one.name: one.version for one in engines}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    copied = bandwidth()
    print(f"copy: {copied / 1e9:.1f} GB/s, read and written")
    bench, rows = Bench(engines, asked.threads, asked.rounds), list[Row]()
    for workload in workloads:
        mine = [
            row
            for n in sizes_of(workload, asked.sizes)
            for row in bench.measure(workload, n, asked.outputs)
        ]
        print(table(workload, mine, copied), flush=True)
        rows += mine
        bench.forget()
    alone = fresh_processes(engines, asked.peak) if asked.peak else []
    if alone:
        print(
            f"\nW1 in fresh processes: first result, n={FIRST}; peak above inputs, n={asked.peak:,}"
        )
    for one in alone:
        time_, bytes_ = one.first, one.peak
        shown = f"{clock(time_) if time_ is not None else '-':>12}"
        print(
            f"{one.engine:15}{shown}{f'{bytes_ / 1e6:.1f} MB' if bytes_ is not None else '-':>12}"
        )
    if bench.notes:
        print("\nnot measured:", *bench.unmeasured(), sep="\n  ")
    if asked.json:
        report = {
            "machine": machine(),
            "engines": versions,
            "copy_bytes_a_second": copied,
            "rows": rows,
            "unmeasured": bench.unmeasured(),
            "fresh_processes": [one._asdict() for one in alone],
            "peak_n": asked.peak,
        }
        asked.json.write_text(json.dumps(report, indent=1) + "\n")
    if asked.svg:
        abouts = {one.name: one.about for one in WORKLOADS}
        asked.svg.write_text(picture(rows, abouts, machine()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
