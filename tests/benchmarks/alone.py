"""What only a fresh process can tell: the memory of one call, and the time to a first result.

    python -m tests.benchmarks.alone peak|first ENGINE WORKLOAD SIZE

Prints bytes, or seconds.
"""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.engine import Engine
from tests.benchmarks.engines import BY_NAME
from tests.benchmarks.workloads import BY_NAME as WORKLOADS
from tests.benchmarks.workloads import Workload

ROOT = Path(__file__).resolve().parent.parent.parent
_WARM = 1000


def ask(what: str, engine: str, workload: str, n: int) -> float | None:
    """The same from another process; None if it failed."""
    command = [sys.executable, "-m", "tests.benchmarks.alone", what, engine, workload, str(n)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def first(engine: Engine, workload: Workload, n: int) -> float:
    """Seconds from nothing but imports and inputs to a result."""
    for name in (engine.module, *engine.imports):
        importlib.import_module(name)
    arrays = workload.arrays(n)
    start = time.perf_counter()
    engine.function(workload, n, 1)(*arrays)
    return time.perf_counter() - start


def peak(engine: Engine, workload: Workload, n: int) -> float:
    """Bytes resident at most in a second call, above those before the first one.

    So memory that is kept from call to call counts. The compiler's is in use before that.
    """
    engine.use(1)
    run = engine.function(workload, n, 1)
    run(*workload.arrays(_WARM))
    arrays = workload.arrays(n)
    before = _resident("VmRSS")
    run(*arrays)
    _forget_peak()
    result = run(*arrays)
    after = _resident("VmHWM")
    del result
    return after - before


def _resident(field: str) -> float:
    """A line of Linux's /proc; elsewhere the greatest size so far."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line for line in lines if line.startswith(field)).split()[1]) * 1024
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


if __name__ == "__main__":
    _what, _engine, _workload, _n = sys.argv[1:]
    measure = {"first": first, "peak": peak}[_what]
    print(measure(BY_NAME[_engine], WORKLOADS[_workload], int(_n)))
