"""Compare `jit` and `record` with NumPy on random Python functions.

    python -m tests.runtime.fuzz_numpy_functions --programs 20000 --seed 1 --front-end jit

Each function is source text in a module of its own, called two or three times: with other values,
then with other layouts, dtypes or dimensions. A call has NumPy's result (type, dtype, shape,
strides, bits), leaves NumPy's values in the arguments, raises NumPy's exception, or is refused
with a `GraphirError`. A recording without notes also has the same outputs when its graph runs on
its inputs, and NumPy's outputs when it runs on other values. `--front-end numpy` checks the fuzzer;
`jit-loose` and the like take a 0-d array for a scalar, to see what else differs.

Programs run in batches in a process of their own, so that a crash costs one program. Each failing
program is made smaller; the summary lists kinds of failures by frequency, and for each feature of
the programs how many calls were equal, refused, different, crashed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.batches import Row, batch_rows, described, feature_table, share

BATCH = 200  # programs of one process
SILENCE = 90.0  # seconds without an answer after which a process is ended
MEMORY = 8 << 30  # bytes of address space of a process
SHRUNK_PER_MESSAGE = 2  # reproductions of each message of refusals and crashes, in a batch
STATUSES = ("equal", "refused", "differ", "crashed")


def run_seed(seed: int, front_end: str, messages: Counter[Any] | None = None) -> Row:
    """Draw, run and, if it fails, shrink the program of a seed."""
    from tests.runtime.function_programs.drawing import draw_program
    from tests.runtime.function_programs.runs import run_program
    from tests.runtime.function_programs.shrinking import (
        culprits,
        identity,
        normalized,
        shrink,
    )

    program = draw_program(seed)
    outcome = run_program(program, front_end)
    row: Row = {
        "seed": seed,
        "front_end": front_end,
        "status": outcome.status,
        "kind": outcome.kind,
        "detail": outcome.detail[:400],
        "message": normalized(outcome.detail) if outcome.status in ("refused", "crashed") else "",
        "raises": outcome.raises,
        "names_line": outcome.names_line,
        "noted": outcome.noted,
        "tags": program.tags,
    }
    if outcome.status == "equal":
        return row
    messages = Counter() if messages is None else messages
    key = identity(outcome)
    messages[key] += 1
    if outcome.status == "differ" or messages[key] <= SHRUNK_PER_MESSAGE:
        smaller = shrink(program, front_end, outcome)
        row["detail"] = run_program(smaller, front_end).detail[:400] or row["detail"]
        row["tags_left"] = [tag for tag in smaller.tags if not tag.startswith("size")]
        row["culprits"] = culprits(smaller)
        row["reproduction"] = smaller.text()
    return row


def _run_worker(first: int, last: int, front_end: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    messages: Counter[Any] = Counter()
    for seed in range(first, last):
        print(json.dumps({"begins": seed}), flush=True)
        print(json.dumps(run_seed(seed, front_end, messages)), flush=True)


def _lost_row(front_end: str, seed: int, kind: str) -> Row:
    return {
        "seed": seed,
        "front_end": front_end,
        "status": "crashed",
        "kind": kind,
        "detail": "",
        "message": kind,
        "raises": False,
        "names_line": True,
        "noted": False,
        "tags": [],
    }


def run_seeds(seeds: range, front_end: str, processes: int) -> Iterator[Row]:
    """Rows in any order: batches in processes, or in this process if `processes` is 0."""
    if not processes:
        messages: Counter[Any] = Counter()
        yield from (run_seed(seed, front_end, messages) for seed in seeds)
        return
    rows: queue.Queue[Row | None] = queue.Queue()

    worker = ["-m", "tests.runtime.fuzz_numpy_functions", "--worker", "--front-end", front_end]

    def run(first: int) -> None:
        batch = range(first, min(first + BATCH, seeds.stop))
        try:
            for row in batch_rows(worker, batch, SILENCE, partial(_lost_row, front_end)):
                rows.put(row)
        finally:
            rows.put(None)

    starts = range(seeds.start, seeds.stop, BATCH)
    with ThreadPoolExecutor(processes) as pool:
        for start in starts:
            pool.submit(run, start)
        running = len(starts)
        while running:
            row = rows.get()
            if row is None:
                running -= 1
            else:
                yield row


def kinds_of_failures(rows: Iterable[Row]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Failing rows in groups of one status, kind, message and culprit, the largest group first."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] != "equal":
            used = "" if row["message"] else " ".join(row.get("culprits", ()))
            groups[row["status"], row["kind"], row["message"], used].append(row)
    return sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def score(rows: list[Row]) -> str:
    """Counts of outcomes, and the share of refusals among programs that raise nothing in NumPy."""
    counts = Counter(row["status"] for row in rows)
    plain = [row for row in rows if not row["raises"]]
    refused = [row for row in plain if row["status"] == "refused"]
    unnamed = sum(not row["names_line"] for row in rows if row["status"] == "refused")
    lines = [
        f"{len(rows)} programs: {counts['equal']} equal, {counts['refused']} refused,"
        f" {counts['differ']} differ, {counts['crashed']} crashed",
        f"refused of the programs that raise nothing in NumPy: {share(len(refused), len(plain))}",
        f"refusals that do not name the program's file: {share(unnamed, counts['refused'])}",
    ]
    if any(row["front_end"].startswith("record") for row in rows):
        noted = sum(row["noted"] for row in rows)
        lines.append(f"recordings with notes, without a replay: {share(noted, len(rows))}")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Score, kinds of failures with the smallest reproduction of each, and counts by feature."""
    parts = [score(rows), "", "## Kinds", ""]
    for (status, kind, message, used), group in kinds_of_failures(rows):
        about = ", ".join(part for part in (message, used) if part)
        parts += described(f"{status}: {kind}{f' - {about}' if about else ''}", group)
    return "\n".join([*parts, "## Features", "", feature_table(rows, STATUSES)])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; one a program")
    front_ends = [
        f"{name}{loose}" for name in ("jit", "record", "numpy") for loose in ("", "-loose")
    ]
    parser.add_argument("--front-end", choices=front_ends, default="jit")
    parser.add_argument("--processes", type=int, default=1, help="0: in this process")
    parser.add_argument("--out", type=Path, help="a file for one JSON line a program")
    parser.add_argument("--show", action="store_true", help="print the programs, run none")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    seeds = range(options.seed, options.seed + options.programs)
    if options.worker:
        _run_worker(seeds.start, seeds.stop, options.front_end)
        return 0
    if options.show:
        from tests.runtime.function_programs.drawing import draw_program

        for seed in seeds:
            print(draw_program(seed).text(), end="\n\n")
        return 0
    rows: list[Row] = []
    with open(options.out or os.devnull, "w", encoding="utf-8") as file:
        for row in run_seeds(seeds, options.front_end, options.processes):
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
    print(summary(rows))
    return int(any(row["status"] in ("differ", "crashed") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
