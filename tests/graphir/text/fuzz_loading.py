"""Loads files that have gone wrong: each is what it says, or a clear error; none hangs or crashes.

    python -m tests.graphir.text.fuzz_loading --files 100000 [--first 0] [--seed 0]

Every case is made of its number alone, so that `--first N --files 1` repeats one. Each has SECONDS
and the process MEMORY bytes more than it began with; what breaks that, raises anything but a
GraphirError, or runs code, is shown, and the status is 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphir import Graph, GraphirError, Lattice, ParseError, ops
from graphir.promotion.scalars import number
from graphir.runtime.value_files import read_input
from graphir.text.printer import large_constants
from tests.graphir.text.fuzzing import Files, corpus, mutated

SECONDS, MEMORY = 10, 1 << 30
_LONGEST = 4000
"""The most characters of an error: what it shows of a file is cut."""


_RUNS = frozenset({"exec", "os.system", "subprocess.Popen", "os.posix_spawn", "pickle.find_class"})
"""The audit events of code being run; modules are imported before any file is loaded."""


class HangError(BaseException):
    """A file took longer than it may; no `except Exception` holds it up."""


class RunError(BaseException):
    """A file made something run."""


def load(folder: Path, files: Files) -> Any:
    """What is in the files, written to a folder."""
    for suffix, data in files.items():
        (folder / f"case.{suffix}").write_bytes(data)
    suffix, data = next(iter(files.items()))
    path = folder / f"case.{suffix}"
    if suffix == "gir":
        return _checked(Graph.load(path), data.decode())
    if suffix == "json":
        return Lattice.load(path)
    return number(data.decode("utf-8", "replace")) if suffix == "number" else read_input(str(path))


def _checked(graph: Graph, text: str) -> Graph:
    """A graph that is what it seems: it passes the verifier, and prints to itself."""
    graph.verify()
    again = str(graph)
    assert str(Graph.parse(again, large_constants(graph))) == again
    return graph


def verdict(folder: Path, files: Files) -> str:
    """`loaded` or the kind of error; AssertionError for an error that is not clear."""
    try:
        load(folder, files)
    except GraphirError as error:
        text = str(error)
        assert 10 < len(text) < _LONGEST and "\n\n" not in text, f"{len(text)} characters"
        if "gir" in files and b"\xff" not in files["gir"] and "UTF-8" not in text:
            assert isinstance(error, ParseError), "no ParseError"
            assert error.line >= 1 and error.column >= 1, "no place"
        return type(error).__name__
    return "loaded"


def _late(*_: Any) -> None:
    raise HangError(f"{SECONDS} seconds")


def _audited(event: str, _: Any) -> None:
    if event in _RUNS and signal.getitimer(signal.ITIMER_REAL)[0]:
        raise RunError(event)


def _bounded() -> None:
    """Bound the memory of this process; end what takes too long, or runs code, while it loads."""
    sys.addaudithook(_audited)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    signal.signal(signal.SIGALRM, _late)


def run(first: int, count: int, seed: int) -> int:
    """Load so many files; how many were neither loaded nor refused clearly."""
    found: Counter[str] = Counter()
    failures, slowest, began = 0, (0.0, 0), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for files in corpus():
            load(Path(folder), files)
        with suppress(GraphirError):
            ops.find("unknown")  # imports what reads entry points
        for case in range(first, first + count):
            files = mutated(random.Random(f"{seed}:{case}"))
            start = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                found[f"{next(iter(files))}: {verdict(Path(folder), files)}"] += 1
            except (Exception, HangError, RunError):
                failures += 1
                print(f"case {case} of seed {seed}:", traceback.format_exc(limit=-6), sep="\n")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            slowest = max(slowest, (time.monotonic() - start, case))
            for one in Path(folder).iterdir():
                one.unlink()
    for what, times in sorted(found.items()):
        print(f"{times:7} {what}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    took, (longest, case) = time.monotonic() - began, slowest
    print(f"{count} files in {took:.0f} s, the slowest {longest:.2f} s (case {case}), at most")
    print(f"{peak} MB; {failures} neither loaded nor refused")
    return failures


def main() -> int:
    """Run as the module says."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("--files", type=int, default=1500)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    np.seterr(all="ignore")
    _bounded()
    return int(run(given.first, given.files, given.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
