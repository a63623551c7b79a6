"""The native tier beside the plan in NumPy, other compilers, and a copy of as many bytes.

    python -m tests.benchmarks.native [--workloads W1,W3] [--sizes 100,10000]
        [--engines native,copy] [--outputs fresh,dropped,out=] [--threads 1,2]
        [--rounds 5] [--no-grids] [--check]

Times are taken as in `tests.benchmarks.execution`: NumPy arrays in and out, one process, the order
turned each round, medians over rounds. `native` compiles at once, `plan` never; `torch.compile`
rounds each bfloat16, as graphir does; `copy` is `np.copyto` of as many bytes as the inputs and the
output have, half of them read and half written, and of W7, which writes nothing, of its input. The
grids are pairs of 2-D programs.

`--check` measures what the targets need alone, and exits with 1 if one is missed; each time is the
best of three runs. A target is of the threads that serve graphir best and of those that serve the
other best; beside a copy both have as many.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphir import Graph, Symbol, ops
from graphir.runtime import interpret
from graphir.runtime.program import Program
from tests.benchmarks.engine import Array, Engine, Function, Unable
from tests.benchmarks.engines import BY_NAME as ENGINES
from tests.benchmarks.engines import TorchCompile
from tests.benchmarks.execution import (
    OUTPUTS,
    SIZES,
    Bench,
    Contestant,
    Row,
    clock,
    equal,
    interleaved,
    machine,
    sizes_of,
    table,
)
from tests.benchmarks.targets import RUNS, missed
from tests.benchmarks.workloads import BY_NAME, Workload


class Native(Engine):
    """A Program with or without machine code."""

    module, chooses = "llvmlite", True
    imports = ("graphir.runtime.program",)

    def __init__(self, name: str, mode: Any) -> None:
        self.name, self.mode = name, mode

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        return Program(workload.graph(n), threads=threads, native=self.mode)

    into = function


class Copy(Engine):
    """As many bytes as the inputs and the result have, half of them read and half written.

    Where the result is a number, it is a copy of the inputs.
    """

    name, module, chooses = "copy", "numpy", True

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        if not n:
            raise Unable("0-d")
        memory: dict[int, tuple[Array, Array]] = {}
        result = np.dtype(workload.dtype if workload.dtype != "bfloat16" else "int16").itemsize
        pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

        def run(*arrays: Array, out: Array | None = None) -> Array:
            size = sum(one.nbytes for one in arrays)
            if workload.name != "W7":
                size = (size + arrays[0].size * result) // 2
            if size not in memory:
                memory[size] = np.ones(size, np.uint8), np.ones(size, np.uint8)
            source, target = memory[size]
            target = target if out is not None else np.empty_like(source)
            if pool is None:
                np.copyto(target, source)
            else:
                half = len(source) // 2
                other = pool.submit(np.copyto, target[half:], source[half:])
                np.copyto(target[:half], source[:half])
                other.result()
            return target if out is None else out

        return run

    into = function


class TorchExact(TorchCompile):
    """As PyTorch computes uncompiled: each op rounds to its dtype."""

    def _compiled(self, body: Function, workload: Workload) -> Function:
        settings: Any = importlib.import_module("torch._inductor.config")
        settings.emulate_precision_casts = True
        return super()._compiled(body, workload)


PEERS = ("jax.jit", "torch.compile", "numba", "onnxruntime")
CONTESTANTS: dict[str, Engine] = {
    one.name: one
    for one in (
        *(ENGINES["numpy"], Native("native", "now"), Native("plan", "off"), Copy()),
        *(TorchExact() if name == "torch.compile" else ENGINES[name] for name in PEERS),
    )
}


class Target(NamedTuple):
    """Native time is at most `most` of another's; in microseconds, where there is no other."""

    workload: str
    n: int
    output: str
    beside: str
    most: float

    def value(self, rows: Sequence[Row]) -> float:
        """The ratio, NaN where one was not measured or the result was wrong."""
        mine = {
            row["threads"]: row["seconds"]
            for row in rows
            if row["engine"] == "native" and row["exact"] == 1 and row["output"] == self.output
        }
        if not self.beside:
            return min(mine.values(), default=math.nan) * 1e6
        others = [row for row in rows if row["engine"] == self.beside]
        others = [row for row in others if row["output"] == self.output] or others
        if self.beside == "copy":
            ratios = [
                mine[row["threads"]] / row["seconds"] for row in others if row["threads"] in mine
            ]
            return min(ratios, default=math.nan)
        best = min((row["seconds"] for row in others), default=math.nan)
        return min(mine.values(), default=math.nan) / best

    def __str__(self) -> str:
        size = f"n={self.n:,}" if self.n else "0-d"
        pair = f"native / {self.beside}" if self.beside else "us a call"
        return f"{self.workload:4}{size:14} {self.output:8} {pair:22} <= {self.most}"


_SEVEN = ("W1", "W2", "W3", "W4", "W5", "W6", "W7")
_AT_1E7 = {"W2": 0.25, "W4": 0.06, "W5": 0.04, "W6": 0.06}
_AT_1E6 = {"W1": 0.25, "W3": 0.08, "W4": 0.06, "W5": 0.03, "W6": 0.16}
TARGETS = (
    *(Target(name, 10**7, "out=", "copy", 1.25) for name in ("W1", "W3", "W7")),
    *(Target(name, 10**7, "out=", "numpy", most) for name, most in _AT_1E7.items()),
    *(Target(name, 10**6, "out=", "numpy", most) for name, most in _AT_1E6.items()),
    *(Target(name, n, "fresh", peer, 1.0) for name in _SEVEN for n in SIZES for peer in PEERS),
    Target("W1", 100, "dropped", "", 0.4),
    Target("W8", 0, "dropped", "", 0.4),
)


def check(engines: Sequence[Engine], asked: argparse.Namespace) -> bool:
    """Print a line a target of what is asked for; whether one is missed."""
    present = {one.name: one for one in engines}
    wanted = [
        one
        for one in TARGETS
        if one.workload in asked.workloads
        and one.n in sizes_of(BY_NAME[one.workload], asked.sizes)
        and one.beside in ("", *present)
    ]
    results: list[bool] = []
    for name in dict.fromkeys(one.workload for one in wanted):
        bench = Bench(engines, asked.threads, asked.rounds)
        for n in dict.fromkeys(one.n for one in wanted if one.workload == name):
            mine = [one for one in wanted if (one.workload, one.n) == (name, n)]
            outputs = [one for one in OUTPUTS if one in {target.output for target in mine}]
            rows = _best([bench.measure(BY_NAME[name], n, outputs) for _ in range(RUNS)])
            able = {"", *(row["engine"] for row in rows)}
            results += [
                missed(str(one), one.value(rows), one.most) for one in mine if one.beside in able
            ]
        print(*bench.unmeasured(), sep="\n", flush=True)
        bench.forget()
    return any(results)


def _best(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Each row with the least of the times that runs of the same rows took."""
    return [min(rows, key=lambda row: row["seconds"]) for rows in zip(*runs, strict=True)]


# -- grids


class Grid(NamedTuple):
    """A program of two axes, and another that it is measured beside."""

    name: str
    mine: Callable[[], Any]
    beside: Callable[[], Any]
    most: float
    exact: float


_SIDE = 1000


def _compiled(
    make: Callable[..., Symbol], arrays: Sequence[Array], threads: int, into: bool = True
) -> tuple[Callable[[], Any], float]:
    """A call of a program of arrays of these shapes, and the part of it that is exact."""
    g = Graph()
    g.output(make(*(g.input(one.dtype.name, one.shape) for one in arrays)))
    wanted = np.asarray(interpret(g, *arrays))
    run = partial(Program(g, threads=threads, native="now"), *arrays)
    exact = equal(np.asarray(run()), wanted)
    return (partial(run, out=np.full_like(wanted, 77)) if into else run), exact


def _mixed(x: Any, y: Any) -> Any:
    return (x + y) * y - x


def _normal(x: Any, scale: Any, shift: Any) -> Any:
    mean = ops.mean(x, axis=-1, keepdims=True)
    var = ops.mean(ops.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) / ops.sqrt(var + 1e-5) * scale + shift


def _normal_var(x: Any, scale: Any, shift: Any) -> Any:
    mean = ops.mean(x, axis=-1, keepdims=True)
    var = ops.var(x, axis=-1, keepdims=True)
    return (x - mean) / ops.sqrt(var + 1e-5) * scale + shift


def _normal_op(x: Any, scale: Any, shift: Any) -> Any:
    return ops.layer_norm(x, scale, shift, epsilon=1e-5)


def grids(threads: int, jax: bool) -> list[Grid]:
    """What is to hold of 2-D programs, each with the other of its pair."""
    draw = np.random.default_rng(0)
    x, y, scale, shift = (
        draw.standard_normal(shape, np.float32)
        for shape in ((_SIDE, _SIDE), (_SIDE, _SIDE), _SIDE, _SIDE)
    )
    found: list[Grid] = []

    def pair(
        name: str, make: Any, one: Sequence[Array], other: Sequence[Array], most: float
    ) -> None:
        mine, exact = _compiled(make, one, threads)
        found.append(Grid(name, mine, _compiled(make, other, threads)[0], most, exact))

    pair("row broadcast / none", _mixed, (x, y[0]), (x, y), 1.5)
    pair("column broadcast / none", _mixed, (x, y[:, :1]), (x, y), 1.5)
    long = draw.standard_normal(2 * _SIDE * _SIDE, np.float32)
    for name, dtype in (("float32", "float32"), ("float16", "float16"), ("int8", "int8")):
        flat = (long * 9).astype(dtype)
        halves = flat[::2], flat[1::2]
        whole = tuple(map(np.ascontiguousarray, halves))
        pair(f"[::2] / contiguous, {name}", _mixed, halves, whole, 2.0)
    if jax:
        other = _jax_normal(x, scale, shift)
        for name, make in (("ops", _normal), ("var", _normal_var), ("layer_norm", _normal_op)):
            mine, exact = _compiled(make, (x, scale, shift), threads, into=False)
            found.append(Grid(f"normalised rows, {name} / jax.jit", mine, other, 1.5, exact))
    return found


def _jax_normal(*arrays: Array) -> Callable[[], Any]:
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")

    def body(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        var = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + 1e-5) * scale + shift

    run = jax.jit(body)
    return lambda: np.asarray(run(*map(jnp.asarray, arrays)))


def measured(asked: argparse.Namespace, jax: bool) -> bool:
    """Print each grid for each number of threads; whether one is missed with all of them."""
    best: dict[tuple[str, float], float] = {}
    for threads in asked.threads:
        for one in grids(threads, jax):
            pair = [
                Contestant(CONTESTANTS["native"], threads, "dropped", call, 1.0)
                for call in (one.mine, one.beside)
            ]
            runs = [interleaved(pair, asked.rounds, False) for _ in range(RUNS)]
            mine, other = (min(map(statistics.median, times)) for times in zip(*runs, strict=True))
            shown = f"{clock(mine)} / {clock(other)}"
            print(
                f"{one.name:44} threads {threads} {shown:>24}  {'' if one.exact == 1 else 'WRONG'}"
            )
            key = one.name, one.most
            value = mine / other if one.exact == 1 else math.nan
            best[key] = min(best.get(key, value), value)
    results = [missed(f"{name} <= {most}", value, most) for (name, most), value in best.items()]
    return any(results)


# -- what is asked


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    nine = ",".join(["W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9"])
    for name, usual in (
        ("workloads", nine),
        ("sizes", ",".join(map(str, SIZES))),
        ("engines", ",".join(CONTESTANTS)),
        ("outputs", ",".join(OUTPUTS)),
        ("threads", "1,2"),
    ):
        parser.add_argument(f"--{name}", default=usual, help=f"of {usual}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-grids", action="store_true")
    asked = parser.parse_args(given)
    for name in ("workloads", "sizes", "engines", "outputs", "threads"):
        texts = getattr(asked, name).split(",")
        setattr(asked, name, list(map(int, texts)) if name in ("sizes", "threads") else texts)
    return asked


def main(given: Sequence[str] | None = None) -> int:
    asked = arguments(given)
    engines = [CONTESTANTS[name] for name in asked.engines]
    for one in engines:
        if not one.installed:
            print(f"{one.name}: not installed")
    engines = [one for one in engines if one.installed]
    print(machine())
    print(", ".join(f"{one.name} {one.version}" for one in engines))
    bad = False
    if asked.check:
        bad = check(engines, asked)
    else:
        bench = Bench(engines, asked.threads, asked.rounds)
        for name in asked.workloads:
            workload = BY_NAME[name]
            rows = [
                row
                for n in sizes_of(workload, asked.sizes)
                for row in bench.measure(workload, n, asked.outputs)
            ]
            print(table(workload, rows, math.inf), flush=True)
            bench.forget()
        print("\nnot measured:", *bench.unmeasured(), sep="\n  ")
    if not asked.no_grids:
        bad |= measured(asked, any(one.name == "jax.jit" for one in engines))
    return int(bad and asked.check)


if __name__ == "__main__":
    sys.exit(main())
