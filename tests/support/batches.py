"""Batches of drawn programs in a process each: a crash or a hang costs one program.

A worker is a command line with `--seed` and `--programs`. It prints a line of JSON with `begins`
before each program, and the program's row after it.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Row = dict[str, Any]


def batch_rows(
    worker: Sequence[str], seeds: range, silence: float, lost: Callable[[int, str], Row]
) -> Iterator[Row]:
    """Yield the rows of all seeds, with a new process after each crash.

    `worker` are the arguments of Python. A process that is silent for `silence` seconds is ended;
    `lost(seed, kind)` is the row of the program at which a process ends.
    """
    first = seeds.start
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    while first < seeds.stop:
        process = subprocess.Popen(
            [sys.executable, *worker, "--seed", str(first), "--programs", str(seeds.stop - first)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        begun = first
        for line in _lines(process, silence):
            if not line.startswith("{"):
                continue  # what a program, a library or a front end prints
            row = json.loads(line)
            if "begins" in row:
                begun = row["begins"]
                continue
            first = row["seed"] + 1
            yield row
        status = process.wait()
        if first < seeds.stop:
            yield lost(begun, f"process ended with status {status}")
            first = begun + 1


def _lines(process: subprocess.Popen[str], silence: float) -> Iterator[str]:
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
            line = lines.get(timeout=silence)
        except queue.Empty:
            process.kill()
            return
        if line is None:
            return
        yield line


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / max(whole, 1):.1f} %)"


def described(title: str, group: Sequence[Row]) -> list[str]:
    """Lines on rows of one kind of failure, with the shortest reproduction."""
    shown = [row for row in group if "reproduction" in row]
    smallest = min(shown, key=lambda row: len(row["reproduction"]), default=group[0])
    lines = [f"### {len(group)} x {title}", f"\nseed {smallest['seed']}: {smallest['detail']}"]
    if "reproduction" in smallest:
        lines.append(f"\n```python\n{smallest['reproduction']}\n```")
    return [*lines, ""]


def feature_table(rows: Iterable[Row], statuses: Sequence[str]) -> str:
    features: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for tag in row["tags"]:
            features[tag][row["status"]] += 1
    lines = [f"| feature | {' | '.join(statuses)} |", f"|---|{'---|' * len(statuses)}"]
    for tag in sorted(features):
        lines.append(f"| {tag} | {' | '.join(str(features[tag][one]) for one in statuses)} |")
    return "\n".join(lines)
