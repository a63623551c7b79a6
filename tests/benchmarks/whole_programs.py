"""Whole programs as people write them: two for each of fifteen classes, beside compilers.

    python -m tests.benchmarks.whole_programs [--only softmax adam_step] [--engines graphir jax]
        [--runs 5] [--seconds 0.2] [--threads N] [--small] [--json FILE] [--patience 300]
        [--python numba=PATH]

The sizes are fixed; with `--small` inputs have about 100 elements, and a figure is that of many
calls between two readings of the clock. Each engine has a process of its own, and the processes are
called in turn: in a run, each engine repeats the program for `--seconds`, and its figure is the
median of the calls. Engines are warm: before the first run a program is called until a second has
passed and five calls in a row were no faster than the best one. An engine gets its own arrays and
returns its own (jax and torch wait for the result), so that peers pay no conversion. A row has the
median over the runs and the spread, (most - least) / median; `ratio` is the time of the best peer
over graphir's. The end is the geometric mean of the ratios, how many are won, and the rows below
0.7. `error` is the largest error of the result, relative to NumPy's largest value; of graphir, 0
means NumPy's bits.

graphir and NumPy run `whole_numpy`, graphir by `jit`; jax.jit, torch.compile and numba run
`whole_jax`, `whole_torch` and `whole_numba`. An engine fails where it is not installed, raises, or
takes more than `--patience` seconds to answer (to compile, above all). `--python numba=PATH` runs
an engine by the interpreter of another environment.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINES = ("graphir", "numpy", "jax", "torch", "numba")
BEHIND = 0.7
Inputs = Callable[[np.random.Generator], tuple[np.ndarray, ...]]


class Program(NamedTuple):
    """One program: its class in the table of speeds, its name in the modules, its inputs."""

    kind: str
    name: str
    inputs: Inputs


def _normal(
    *shapes: tuple[int, ...], dtype: Any = np.float32, scale: float = 1.0, offset: float = 0.0
) -> Inputs:
    return lambda r: tuple((r.normal(size=s) * scale + offset).astype(dtype) for s in shapes)


def _layers(rows: int, width: int) -> Inputs:
    weights = [(width, width), (width,)] * 3
    scaled = _normal(*weights, scale=width**-0.5)
    return lambda r: (*_normal((rows, width))(r), *scaled(r))


def _integers(low: int, high: int, *shapes: tuple[int, ...], dtype: Any) -> Inputs:
    return lambda r: tuple(r.integers(low, high, size=s, dtype=dtype) for s in shapes)


def _one_hot(rows: int, classes: int) -> Inputs:
    def inputs(r: np.random.Generator) -> tuple[np.ndarray, ...]:
        (logits,) = _normal((rows, classes), scale=3)(r)
        return logits, np.eye(classes, dtype=np.float32)[r.integers(0, classes, rows)]

    return inputs


def _causal(batch: int, length: int, width: int) -> Inputs:
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)
    return lambda r: (*_normal(*[(batch, length, width)] * 3)(r), mask)


def _image(height: int, width: int, other: Inputs) -> Inputs:
    frame = _integers(0, 256, (height, width, 3), dtype=np.uint8)
    return lambda r: (*frame(r), *other(r))


def _colour_matrix(r: np.random.Generator) -> tuple[np.ndarray, ...]:
    return ((np.eye(3) * 0.7 + r.uniform(0, 0.1, (3, 3))).astype(np.float32),)


def _adam(size: int) -> Inputs:
    def inputs(r: np.random.Generator) -> tuple[np.ndarray, ...]:
        parameter, gradient, first, second = _normal(*[(size,)] * 4)(r)
        return parameter, gradient, first, np.abs(second)

    return inputs


def _options(size: int) -> Inputs:
    ranges = ((50, 150), (50, 150), (0.1, 2), (0.1, 0.5))
    return lambda r: tuple(r.uniform(low, high, size) for low, high in ranges)


def _plane(size: int) -> Inputs:
    axes = np.linspace(-2, 0.6, size), np.linspace(-1.2, 1.2, size)
    return lambda r: tuple(np.meshgrid(*axes))


def _positive(*shapes: tuple[int, ...], dtype: Any) -> Inputs:
    return lambda r: tuple(r.uniform(0.5, 2, s).astype(dtype) for s in shapes)


def _with(first: Inputs, second: Inputs) -> Inputs:
    return lambda r: (*first(r), *second(r))


PROGRAMS = (
    Program("normalisation", "layer_norm", _normal((4096, 1024), (1024,), (1024,), offset=1)),
    Program("normalisation", "rms_norm", _normal((2048, 3000), (2048, 3000), (3000,))),
    Program("softmax", "softmax", _normal((4096, 1024), scale=3)),
    Program("softmax", "cross_entropy", _one_hot(2048, 2000)),
    Program("attention", "attention", _normal(*[(8, 256, 64)] * 3)),
    Program("attention", "causal_attention", _causal(4, 512, 64)),
    Program("layers", "relu_layers", _layers(256, 512)),
    Program("layers", "residual_tanh_layers", _layers(1024, 256)),
    Program("tiny layer", "tiny_relu_layer", _normal((1, 64), (64, 64), (64,))),
    Program("tiny layer", "tiny_gated_cell", _normal((64,), (64,), (64, 64), (64, 64), (64,))),
    Program("short axis", "squared_distances", _normal((1500, 3), (1500, 3), dtype=np.float64)),
    Program("short axis", "n_body_forces", _positive((800, 3), (800,), dtype=np.float64)),
    Program("stencils", "blur_steps", _normal((1024, 1024))),
    Program("stencils", "heat_steps", _normal((700, 900))),
    Program(
        "sums of functions",
        "normal_log_likelihood",
        _with(_normal(*[(1_000_000,)] * 2, dtype=np.float64), _positive((1_000_000,), dtype=float)),
    ),
    Program(
        "sums of functions",
        "logistic_loss",
        _with(_normal((2_000_000,), scale=3), _positive((2_000_000,), dtype=np.float32)),
    ),
    Program("uint8 images", "colour_matrix", _image(1080, 1920, _colour_matrix)),
    Program("uint8 images", "tone_curve", _image(1080, 1920, _positive((3,), dtype=np.float32))),
    Program(
        "integer products",
        "int8_product",
        _integers(-128, 128, (256, 1024), (1024, 1024), dtype=np.int8),
    ),
    Program(
        "integer products",
        "int32_product",
        _integers(-999, 999, (512, 512), (512, 512), dtype=np.int32),
    ),
    Program("sorts", "sorted_rows", _normal((2000, 1000))),
    Program("sorts", "trimmed_means", _normal((4000, 300), dtype=np.float64)),
    Program("argmax", "predicted_classes", _normal((4096, 1024))),
    Program("argmax", "nearest_centres", _normal((20_000, 64), (64,), dtype=np.float64)),
    Program("update rules", "adam_step", _adam(1_000_000)),
    Program("update rules", "momentum_step", _normal(*[(2_000_000,)] * 4)),
    Program("columns", "column_moments", _normal((100_000, 50), offset=1)),
    Program("columns", "standardized_columns", _normal((10_000, 200), dtype=np.float64)),
    Program("pricing, escape times", "option_prices", _options(500_000)),
    Program("pricing, escape times", "escape_times", _plane(400)),
)
BY_NAME = {program.name: program for program in PROGRAMS}

SMALL: dict[str, Inputs] = {
    "layer_norm": _normal((10, 10), (10,), (10,), offset=1),
    "rms_norm": _normal((10, 10), (10, 10), (10,)),
    "softmax": _normal((10, 10), scale=3),
    "cross_entropy": _one_hot(10, 10),
    "attention": _normal(*[(2, 7, 7)] * 3),
    "causal_attention": _causal(2, 7, 7),
    "relu_layers": _layers(10, 10),
    "residual_tanh_layers": _layers(10, 10),
    "tiny_relu_layer": _normal((1, 10), (10, 10), (10,)),
    "tiny_gated_cell": _normal((10,), (10,), (10, 10), (10, 10), (10,)),
    "squared_distances": _normal((6, 3), (6, 3), dtype=np.float64),
    "n_body_forces": _positive((6, 3), (6,), dtype=np.float64),
    "blur_steps": _normal((12, 12)),
    "heat_steps": _normal((10, 10)),
    "normal_log_likelihood": _with(
        _normal(*[(100,)] * 2, dtype=np.float64), _positive((100,), dtype=float)
    ),
    "logistic_loss": _with(_normal((100,), scale=3), _positive((100,), dtype=np.float32)),
    "colour_matrix": _image(6, 6, _colour_matrix),
    "tone_curve": _image(6, 6, _positive((3,), dtype=np.float32)),
    "int8_product": _integers(-128, 128, (10, 10), (10, 10), dtype=np.int8),
    "int32_product": _integers(-999, 999, (10, 10), (10, 10), dtype=np.int32),
    "sorted_rows": _normal((10, 10)),
    "trimmed_means": _normal((10, 10), dtype=np.float64),
    "predicted_classes": _normal((10, 10)),
    "nearest_centres": _normal((10, 10), (10,), dtype=np.float64),
    "adam_step": _adam(100),
    "momentum_step": _normal(*[(100,)] * 4),
    "column_moments": _normal((10, 10), offset=1),
    "standardized_columns": _normal((10, 10), dtype=np.float64),
    "option_prices": _options(100),
    "escape_times": _plane(10),
}
"""The inputs of the same programs with about 100 elements, by name."""


# -- in the process of an engine


class Loaded(NamedTuple):
    """A program of one engine, ready to be called."""

    call: Callable[..., Any]
    arrays: tuple[Any, ...]
    to_numpy: Callable[[Any], Any] = np.asarray


def _load_numpy(name: str, arrays: tuple[np.ndarray, ...], threads: int) -> Loaded:
    module = importlib.import_module("tests.benchmarks.whole_numpy")
    return Loaded(getattr(module, name), arrays)


def _load_graphir(name: str, arrays: tuple[np.ndarray, ...], threads: int) -> Loaded:
    from graphir.runtime import jit

    module = importlib.import_module("tests.benchmarks.whole_numpy")
    return Loaded(jit(getattr(module, name), rules="numpy"), arrays)


def _load_jax(name: str, arrays: tuple[np.ndarray, ...], threads: int) -> Loaded:
    import jax

    jax.config.update("jax_enable_x64", True)
    module = importlib.import_module("tests.benchmarks.whole_jax")
    compiled = jax.jit(module.function(name))
    return Loaded(
        lambda *given: jax.block_until_ready(compiled(*given)),
        tuple(jax.device_put(array) for array in arrays),
    )


def _load_torch(name: str, arrays: tuple[np.ndarray, ...], threads: int) -> Loaded:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    module = importlib.import_module("tests.benchmarks.whole_torch")
    compiled = torch.compile(getattr(module, name), dynamic=False)
    return Loaded(compiled, tuple(torch.from_numpy(array) for array in arrays), lambda t: t.numpy())


def _load_numba(name: str, arrays: tuple[np.ndarray, ...], threads: int) -> Loaded:
    import numba

    numba.set_num_threads(threads)
    module = importlib.import_module("tests.benchmarks.whole_numba")
    return Loaded(getattr(module, name), arrays)


_LOADERS = {
    "graphir": _load_graphir,
    "numpy": _load_numpy,
    "jax": _load_jax,
    "torch": _load_torch,
    "numba": _load_numba,
}


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _error(loaded: Loaded, result: Any, meant: Any) -> float:
    worst = 0.0
    for part, wanted in zip(_parts(result), _parts(meant), strict=True):
        array = np.asarray(loaded.to_numpy(part), np.float64)
        wanted = np.asarray(wanted, np.float64)
        worst = max(worst, float(np.abs(array - wanted).max() / max(np.abs(wanted).max(), 1e-30)))
    return worst


def _warm(loaded: Loaded) -> None:
    """Call until a second has passed and five calls in a row were no faster than the best."""
    start, best, stale = time.perf_counter(), math.inf, 0
    while stale < 5 or time.perf_counter() - start < 1:
        before = time.perf_counter()
        loaded.call(*loaded.arrays)
        taken = time.perf_counter() - before
        stale = stale + 1 if taken > 0.95 * best else 0
        best = min(best, taken)


def _timed(loaded: Loaded, seconds: float) -> float:
    call, arrays, taken, count = loaded.call, loaded.arrays, list[float](), 1
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken) < 3:
        start = time.perf_counter()
        for _ in range(count):
            call(*arrays)
        taken.append((time.perf_counter() - start) / count)
        count = max(count, int(_SHORTEST / taken[-1]))
    return statistics.median(taken)


_SHORTEST = 2e-4
"""The seconds of calls that one reading of the clock measures, or more."""


def serve(engine: str, threads: int, inputs: Mapping[str, Inputs]) -> None:
    """Answer requests, a line of JSON each: load a program, or time the one that is loaded."""
    answers, sys.stdout = sys.stdout, sys.stderr
    loaded: Loaded | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            if "load" in request:
                arrays = inputs[request["load"]](np.random.default_rng(0))
                meant = _load_numpy(request["load"], arrays, threads).call(*arrays)
                loaded = _LOADERS[engine](request["load"], arrays, threads)
                error = _error(loaded, loaded.call(*loaded.arrays), meant)
                _warm(loaded)
                answer = {"error": error}
            else:
                assert loaded is not None
                answer = {"seconds": _timed(loaded, request["seconds"])}
        except Exception as failure:  # of any engine: the row says that it failed
            answer = {"failure": f"{type(failure).__name__}: {failure}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers, flush=True)


# -- in the process that asks


class Worker:
    """The process of an engine."""

    def __init__(
        self, engine: str, python: str, threads: int, patience: float, small: bool
    ) -> None:
        self.engine, self.python, self.threads = engine, python, threads
        self.patience, self.small = patience, small
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        module = "tests.benchmarks.whole_programs"
        command = [self.python, "-m", module, "--serve", self.engine]
        command += ["--small"] * self.small
        threads = str(self.threads)
        return subprocess.Popen(
            [*command, "--threads", threads],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; a failure where the process ended or was too slow."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], self.patience)[0]:
                self.process.kill()
                self.process = self._started()
                return {"failure": f"no answer in {self.patience:g} s"}
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            self.process = self._started()
            return {"failure": "the process ended"}

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Row(NamedTuple):
    """The figures of one engine for one program."""

    program: str
    engine: str
    seconds: float
    spread: float
    error: float


def measure(
    program: Program, workers: Sequence[Worker], runs: int, seconds: float
) -> tuple[list[Row], dict[str, str]]:
    """Rows of the engines that run the program, and the failures of the others."""
    loads = {worker.engine: worker.ask(load=program.name) for worker in workers}
    failures = {e: answer["failure"] for e, answer in loads.items() if "failure" in answer}
    ready = [worker for worker in workers if worker.engine not in failures]
    figures: dict[str, list[float]] = {worker.engine: [] for worker in ready}
    for run in range(runs):
        turn = run % max(len(ready), 1)
        for worker in [*ready[turn:], *ready[:turn]]:
            answer = worker.ask(seconds=seconds)
            if "failure" in answer:
                failures[worker.engine] = answer["failure"]
            else:
                figures[worker.engine].append(answer["seconds"])
    rows: list[Row] = []
    for engine, taken in figures.items():
        if engine not in failures:
            median = statistics.median(taken)
            spread = (max(taken) - min(taken)) / median
            rows.append(Row(program.name, engine, median, spread, loads[engine]["error"]))
    return rows, failures


def ratio_of(rows: Sequence[Row]) -> float | None:
    """The best peer's time over graphir's, of the rows of one program."""
    ours = [row.seconds for row in rows if row.engine == "graphir"]
    peers = [row.seconds for row in rows if row.engine != "graphir"]
    return min(peers) / ours[0] if ours and peers else None


def _printed(program: Program, rows: Sequence[Row], failures: dict[str, str]) -> None:
    ratio = ratio_of(rows)
    shown = "" if ratio is None else f"  ratio {ratio:.2f}"
    print(f"{program.kind}: {program.name}{shown}", flush=True)
    for row in sorted(rows, key=lambda row: row.seconds):
        figures = f"{row.seconds * 1e3:10.4f} ms  +-{row.spread:4.0%}  error {row.error:.1e}"
        print(f"    {row.engine:8}{figures}")
    for engine, failure in failures.items():
        print(f"    {engine:8}fails: {failure}")


def summarize(ratios: dict[str, float]) -> str:
    """The geometric mean of the ratios, how many are won, and which are far behind."""
    if not ratios:
        return "no ratio: graphir or all peers are missing"
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
    won = sum(ratio >= 1 for ratio in ratios.values())
    lines = [f"geometric mean of best peer / graphir: {mean:.2f}; won {won} of {len(ratios)}"]
    lines += [f"behind: {name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < BEHIND]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the programs and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=sorted(BY_NAME), default=[])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--python", nargs="*", default=[], metavar="ENGINE=PATH")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--patience", type=float, default=300, metavar="SECONDS")
    parser.add_argument("--small", action="store_true", help="inputs of about 100 elements")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        inputs = {program.name: program.inputs for program in PROGRAMS}
        serve(options.serve, options.threads, SMALL if options.small else inputs)
        return
    pythons = dict(pair.split("=", 1) for pair in options.python)
    workers = [
        Worker(
            engine,
            pythons.get(engine, sys.executable),
            options.threads,
            options.patience,
            options.small,
        )
        for engine in options.engines
    ]
    chosen = [BY_NAME[name] for name in options.only] or list(PROGRAMS)
    ratios: dict[str, float] = {}
    report: list[dict[str, Any]] = []
    for program in chosen:
        rows, failures = measure(program, workers, options.runs, options.seconds)
        _printed(program, rows, failures)
        if (ratio := ratio_of(rows)) is not None:
            ratios[program.name] = ratio
        report += [row._asdict() for row in rows]
    for worker in workers:
        worker.close()
    print(summarize(ratios))
    if options.json:
        options.json.write_text(json.dumps({"rows": report, "ratios": ratios}, indent=1))


if __name__ == "__main__":
    main()
