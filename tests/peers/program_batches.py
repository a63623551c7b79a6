"""Run drawn programs in batches of a process each, and summarize their outcomes.

A process that ends or is silent costs the program that it was at; a new process takes the rest.
The fuzzer of a library gives its module's name, and the function that runs the program of a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.batches import Row, batch_rows, described, feature_table, share

from .drawn_programs import Outcome, Program, shrink

BATCH = 100  # programs of one process
SILENCE = 120.0  # seconds without an answer after which a process is ended
MEMORY = 12 << 30  # bytes of address space of a process
SHRUNK_PER_IDENTITY = 2  # reproductions of one identity of failures, in a batch
STATUSES = ("equal", "refused", "differ", "crashed", "invalid")
Draw = Callable[[int], Program]
Run = Callable[[Program, str, str], Outcome]  # program, front end, folder


def run_seed(draw: Draw, run: Run, options: argparse.Namespace, seen: Counter[Any]) -> Row:
    """Draw, run and, if it fails, shrink the program of a seed."""
    began = time.perf_counter()
    program = draw(options.seed)
    outcome = run(program, options.front_end, options.folder)
    row: Row = {
        "seed": options.seed,
        "status": outcome.status,
        "kind": outcome.kind,
        "detail": outcome.detail[:600],
        "identity": outcome.identity,
        "tags": program.tags,
        "library_refuses": program.refusal,
    }
    if outcome.status != "equal":
        seen[outcome.identity] += 1
        if seen[outcome.identity] <= SHRUNK_PER_IDENTITY:
            program = shrink(
                program, lambda one: run(one, options.front_end, options.folder), outcome
            )
            row["tags_left"] = program.tags
        row["reproduction"] = program.text()
    row["seconds"] = round(time.perf_counter() - began, 3)
    return row


def _run_worker(draw: Draw, run: Run, options: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seen: Counter[Any] = Counter()
    with tempfile.TemporaryDirectory() as options.folder:
        for seed in range(options.seed, options.seed + options.programs):
            options.seed = seed
            print(json.dumps({"begins": seed}), flush=True)
            print(json.dumps(run_seed(draw, run, options, seen)), flush=True)


def _run_batch(module: str, seeds: range, front_end: str) -> Iterator[Row]:
    worker = ["-m", module, "--worker", "--front-end", front_end]
    return batch_rows(worker, seeds, SILENCE, partial(_lost_row, module, front_end))


def _lost_row(module: str, front_end: str, seed: int, kind: str) -> Row:
    """The row of a program that ends its process: invalid if it does so in the library alone."""
    status = "crashed"
    if front_end != "none":
        (alone,) = _run_batch(module, range(seed, seed + 1), "none")
        if alone["status"] == "crashed":
            status, kind = "invalid", "the library ends the process"
    fields: Row = {"seed": seed, "status": status, "kind": kind, "detail": "", "tags": []}
    return {**fields, "identity": [status, kind, ""], "library_refuses": False}


def summarize(rows: list[Row]) -> str:
    """Counts, kinds of failures with a small reproduction of each, and counts by feature."""
    counts = Counter(row["status"] for row in rows)
    both = sum(row["library_refuses"] and row["status"] == "equal" for row in rows)
    valid = [row for row in rows if not row["library_refuses"]]
    refused = sum(row["status"] == "refused" for row in valid)
    parts = [
        f"{len(rows)} programs: " + ", ".join(f"{counts[one]} {one}" for one in STATUSES),
        f"of the equal, {both} are refused by the library too",
        f"refused of the programs that the library runs: {share(refused, len(valid))}",
        "",
        "## Kinds",
        "",
    ]
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] != "equal":
            groups[tuple(row["identity"])].append(row)
    for (status, kind, message), group in sorted(groups.items(), key=lambda one: -len(one[1])):
        parts += described(f"{status}: {kind}{f' - {message}' if message else ''}", group)
    return "\n".join([*parts, "## Features", "", feature_table(rows, STATUSES)])


def run_command_line(
    module: str, document: str, draw: Draw, run: Run, front_ends: tuple[str, ...]
) -> int:
    """The command line of a fuzzer; status 1 if a program differs or crashes."""
    parser = argparse.ArgumentParser(description=document.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; one a program")
    parser.add_argument("--front-end", choices=front_ends, default=front_ends[0])
    parser.add_argument("--out", type=Path, help="a file for one JSON line a program")
    parser.add_argument("--show", action="store_true", help="print the programs, run none")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    if options.worker:
        _run_worker(draw, run, options)
        return 0
    if options.show:
        for seed in seeds:
            print(draw(seed).text(), end="\n\n")
        return 0
    rows: list[Row] = []
    with open(options.out or os.devnull, "w", encoding="utf-8") as file:
        for start in range(seeds.start, seeds.stop, BATCH):
            batch = range(start, min(start + BATCH, seeds.stop))
            for row in _run_batch(module, batch, options.front_end):
                rows.append(row)
                print(json.dumps(row), file=file, flush=True)
    print(summarize(rows))
    return int(any(row["status"] in ("differ", "crashed", "invalid") for row in rows))
