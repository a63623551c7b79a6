"""Data larger than the memory allowed, over Dask's blocks: graphir beside plain dask.array.

    python -m tests.benchmarks.dask_chunks [--megabytes 2048] [--allowed 512] [--rounds 3] [--check]

An array is mapped from a file, and so is the result. Each run is a process of its own, in which
Linux refuses memory beyond what is allowed (RLIMIT_DATA, which counts what is not a file's). Prints
medians of the seconds and their ratio; `--check` has status 1 where graphir takes longer, or a
result differs. Needs dask.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib.format import open_memmap
from numpy.random import default_rng

from graphir import Graph, ops
from graphir.runtime.targets import dask as target

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS, BLOCK = 1024, (2048, 512)
ENGINES = ("graphir", "dask.array")
DTYPES = ("float32", "bfloat16")


def chain(xp: Any, x: Any, w: Any, number: Callable[[float], Any]) -> Any:
    """Ten elementwise operations."""
    y = xp.maximum(x * w + number(0.5), number(0.0))
    z = y / (abs(y) + number(1.0))
    return xp.sqrt(z * z + number(0.25)) - z * number(0.125)


def graphir(dtype: str) -> Callable[..., Any]:
    """The chain in a dtype, from and to float32, and the sums of its columns."""
    graph = Graph(dtype, rules="jax")
    x, w = graph.input("float32", ("n", COLUMNS)), graph.input("float32", (COLUMNS,))
    y = chain(ops, x.cast(dtype), w.cast(dtype), float).cast("float32")
    graph.output(y, y.sum(axis=0))
    return target(graph)


def plain(dtype: str) -> Callable[..., Any]:
    """The same, as dask.array has it; of bfloat16 and a Python float ml_dtypes makes float32."""
    import dask.array as da

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))

    def function(x: Any, w: Any) -> Any:
        y = chain(da, x.astype(kind), w.astype(kind), kind.type).astype(np.float32)
        return y, y.sum(axis=0, dtype=np.float32)

    return function


def run(engine: str, dtype: str, folder: Path, allowed: int) -> None:
    """One run, from file to file; prints the seconds."""
    import dask
    import dask.array as da

    function = {"graphir": graphir, "dask.array": plain}[engine](dtype)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed << 20, allowed << 20))
    x = File(mapped(folder, "x"))
    out = open_memmap(folder / f"{engine}.npy", "w+", np.float32, x.shape)
    start = time.perf_counter()
    y, sums = function(
        da.from_array(x, chunks=BLOCK), np.linspace(-1, 1, COLUMNS, dtype=np.float32)
    )
    found = dask.compute(da.store(y, out, lock=False, compute=False), sums)[1]
    print(time.perf_counter() - start)
    np.save(folder / f"{engine} sums.npy", found)


class File:
    """An array in a file, of which Dask copies blocks alone; of a memmap it would copy all."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self.array[key])


def mapped(folder: Path, name: str) -> Any:
    """An array that lies in a file."""
    return open_memmap(folder / f"{name}.npy", "r")


def ask(engine: str, dtype: str, folder: Path, allowed: int) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.dask_chunks", "--run", engine, dtype]
    command += ["--folder", str(folder), "--allowed", str(allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine}, {dtype}:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def make(folder: Path, megabytes: int) -> None:
    """The array, made row by row of blocks."""
    rows = (megabytes << 20) // (4 * COLUMNS)
    x, random = open_memmap(folder / "x.npy", "w+", np.float32, (rows, COLUMNS)), default_rng(0)
    for first in range(0, rows, BLOCK[0]):
        part = x[first : first + BLOCK[0]]
        part[...] = random.standard_normal(part.shape, np.float32)


def equal(folder: Path) -> bool:
    """Whether both stored the same bits, and sums within the bound."""
    one, other = (mapped(folder, engine) for engine in ENGINES)
    sums = [np.load(folder / f"{engine} sums.npy").astype(np.float64) for engine in ENGINES]
    bound = 2 * len(one) * np.finfo(np.float32).eps * np.abs(one).sum(axis=0, dtype=np.float64)
    same = all(one[i].tobytes() == other[i].tobytes() for i in range(len(one)))
    return same and bool((abs(sums[0] - sums[1]) <= bound).all())


def measure(folder: Path, asked: argparse.Namespace) -> bool:
    """Print a line for each dtype; whether graphir was the faster, and both agreed."""
    passed = True
    for dtype in DTYPES:
        rounds = [
            {engine: ask(engine, dtype, folder, asked.allowed) for engine in ENGINES}
            for _ in range(asked.rounds)
        ]
        times = [median(one[engine] for one in rounds) for engine in ENGINES]
        same = equal(folder)
        told = [f"{one} {seconds:6.2f} s" for one, seconds in zip(ENGINES, times, strict=True)]
        bits = "the same bits" if same else "DIFFERENT"
        print(f"{dtype:9}", *told, f"ratio {times[0] / times[1]:.2f}", bits, sep="   ")
        passed = passed and same and times[0] <= times[1]
    return passed


def main(words: Sequence[str] | None = None) -> int:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--allowed", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.run:
        run(*asked.run, asked.folder, asked.allowed)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), asked.megabytes)
        print(f"{asked.megabytes} MB in and out, {asked.allowed} MB allowed")
        return int(not measure(Path(folder), asked) and asked.check)


if __name__ == "__main__":
    sys.exit(main())
