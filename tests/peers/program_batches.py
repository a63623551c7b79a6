"""Run drawn programs in batches of a process each, and summarize their outcomes.

A process that ends or is silent costs the program that it was at; a new process takes the rest.
The fuzzer of a library gives its module's name, and the function that runs the program of a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .drawn_programs import Outcome, Program, shrink

BATCH = 100  # programs of one process
SILENCE = 120.0  # seconds without an answer after which a process is ended
MEMORY = 12 << 30  # bytes of address space of a process
SHRUNK_PER_IDENTITY = 2  # reproductions of one identity of failures, in a batch
STATUSES = ("equal", "refused", "differ", "crashed", "invalid")
Row = dict[str, Any]
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


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """The lines that a process prints, until it ends or is silent for too long."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=SILENCE)
        except queue.Empty:
            process.kill()
            return
        if line is None:
            return
        yield line


def _run_batch(module: str, seeds: range, front_end: str) -> Iterator[Row]:
    """Rows of all seeds of a batch, with a new process after each crash."""
    first = seeds.start
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    while first < seeds.stop:
        command = [sys.executable, "-m", module, "--worker", "--front-end", front_end]
        process = subprocess.Popen(
            [*command, "--seed", str(first), "--programs", str(seeds.stop - first)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        begun = first
        for line in _lines(process):
            if not line.startswith("{"):
                continue  # what a program or a library prints
            row = json.loads(line)
            if "begins" in row:
                begun = row["begins"]
                continue
            first = row["seed"] + 1
            yield row
        status = process.wait()
        if first < seeds.stop:
            row = _lost_row(begun, f"process ended with status {status}")
            if front_end != "none":
                alone = next(iter(_run_batch(module, range(begun, begun + 1), "none")))
                if alone["status"] == "crashed":  # the library's own crash
                    kind = "the library ends the process"
                    row |= {"status": "invalid", "kind": kind, "identity": ["invalid", kind, ""]}
            yield row
            first = begun + 1


def _lost_row(seed: int, kind: str) -> Row:
    fields: Row = {"seed": seed, "status": "crashed", "kind": kind, "detail": "", "tags": []}
    return {**fields, "identity": ["crashed", kind, ""], "library_refuses": False}


def _share(part: int, total: int) -> str:
    return f"{part} of {total} ({100 * part / max(total, 1):.1f} %)"


def summarize(rows: list[Row]) -> str:
    """Counts, kinds of failures with a small reproduction of each, and counts by feature."""
    counts = Counter(row["status"] for row in rows)
    both = sum(row["library_refuses"] and row["status"] == "equal" for row in rows)
    valid = [row for row in rows if not row["library_refuses"]]
    refused = sum(row["status"] == "refused" for row in valid)
    parts = [
        f"{len(rows)} programs: " + ", ".join(f"{counts[one]} {one}" for one in STATUSES),
        f"of the equal, {both} are refused by the library too",
        f"refused of the programs that the library runs: {_share(refused, len(valid))}",
        "",
        "## Kinds",
        "",
    ]
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] != "equal":
            groups[tuple(row["identity"])].append(row)
    for (status, kind, message), group in sorted(groups.items(), key=lambda one: -len(one[1])):
        parts.append(f"### {len(group)} x {status}: {kind}{f' - {message}' if message else ''}")
        smallest = min(group, key=lambda row: len(row.get("reproduction", " " * 9999)))
        parts.append(f"\nseed {smallest['seed']}: {smallest['detail']}")
        if "reproduction" in smallest:
            parts.append(f"\n```python\n{smallest['reproduction']}\n```")
        parts.append("")
    return "\n".join([*parts, "## Features", "", _feature_table(rows)])


def _feature_table(rows: list[Row]) -> str:
    features: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for tag in row["tags"]:
            features[tag][row["status"]] += 1
    lines = [f"| feature | {' | '.join(STATUSES)} |", f"|---|{'---|' * len(STATUSES)}"]
    for tag in sorted(features):
        lines.append(f"| {tag} | {' | '.join(str(features[tag][one]) for one in STATUSES)} |")
    return "\n".join(lines)


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
