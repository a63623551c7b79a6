"""What an audit costs beside the plain run: large arrays, loops of scalars, reports of many rows.

    python -m tests.benchmarks.audit_cost [--rounds 5] [--elements 1600000] [--points 300]

Plain runs and audits alternate; the figures are medians, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphir.passes import CastReport
from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime import record
from tests.benchmarks.audit_programs import PROGRAMS, inputs_of
from tests.support.loading import written


def discounted(prices: Any, counts: Any, rates: Any) -> Any:
    """Round float64 amounts to float32 again and again: 40 ops, of which 15 lose values."""
    for _ in range(5):
        gross = prices * counts
        net = gross.astype(np.float32)
        taxed = net * rates
        kept = taxed.astype(np.float64) + prices
        whole = kept.astype(np.float32)
        scaled = whole * np.float64(0.1)
        prices = scaled.astype(np.float32).astype(np.float64)
    return prices


def discounted_inputs(elements: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(0)
    prices = generator.uniform(1, 100, elements)
    counts = generator.integers(1, 10, elements)
    return prices, counts, generator.uniform(0.1, 1.2, elements)


def image_grade(image: Any, gains: Any, noise: Any) -> Any:
    """Grade an image in 40 ops of uint8, float16, float32 and float64 arrays."""
    linear = (image / np.float32(255)) ** np.float32(2.2)
    exposed = linear * gains + noise * np.float32(0.01)
    lifted = np.maximum(exposed, np.float32(0)) + np.float32(1e-3)
    half = lifted.astype(np.float16)
    toned = half / (half + np.float16(0.5))
    dark = np.exp(-toned.astype(np.float32) * np.float32(3))
    curve = np.log(lifted) * np.float32(0.25) + np.sqrt(lifted)
    mixed = np.where(toned > np.float16(0.3), curve, dark)
    centred = mixed - mixed.mean(dtype=np.float32)
    contrast = np.tanh(centred * np.float32(1.5))
    weights = 1 / (1 + np.square(contrast - gains))
    blurred = contrast * weights + half * np.float32(0.125)
    sharp = blurred + np.abs(blurred - contrast) * np.float16(0.7)
    offset = sharp - noise.astype(np.float64) * 1e-3
    graded = offset.astype(np.float32) * np.float32(0.5) + np.float32(0.25)
    bounded = np.minimum(np.maximum(graded, np.float32(0)), np.float32(1))
    return (bounded * np.float32(200) + dark).astype(np.float16)


def image_inputs(elements: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(0)
    image = generator.integers(0, 256, elements).astype(np.uint8)
    gains = generator.uniform(0.5, 1.5, elements).astype(np.float32)
    return image, gains, generator.normal(0, 1, elements).astype(np.float16)


def dbscan(points: Any, radius: float = 0.3, least: int = 5) -> Any:
    """Cluster points by density (Ester et al., 1996), by loops over NumPy scalars."""
    labels = np.full(len(points), -1)
    visited = np.zeros(len(points), bool)
    cluster = -1
    for i in range(len(points)):
        if visited[i]:
            continue
        visited[i] = True
        near = neighbours(points, i, radius)
        if len(near) < least:
            continue
        cluster += 1
        labels[i] = cluster
        queue = list(near)
        while queue:
            j = queue.pop()
            if not visited[j]:
                visited[j] = True
                further = neighbours(points, j, radius)
                if len(further) >= least:
                    queue.extend(further)
            if labels[j] < 0:
                labels[j] = cluster
    return labels


def neighbours(points: Any, i: int, radius: float) -> Any:
    distances = np.sqrt(((points - points[i]) ** 2).sum(axis=1))
    return np.where(distances < radius)[0]


def point_inputs(count: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(0)
    centres = generator.uniform(-4, 4, (6, 2))
    points = centres[generator.integers(0, 6, count)] + generator.normal(0, 0.4, (count, 2))
    return (points.astype(np.float32),)


def half_squares(x: Any, y: Any) -> Any:
    """Add the squares of differences, one NumPy scalar after another."""
    total = np.float32(0)
    for i in range(len(x)):
        difference = x[i] - y[i]
        total = total + difference * difference * np.float32(0.5)
    return total


def many_lines(lines: int) -> Callable[[Any, Any], Any]:
    """Return a program of so many lines, each with a cast of its own."""
    body = [f"    y = y * np.float32(0.5) + x * np.float64({i})" for i in range(1, lines // 2 + 1)]
    text = "\n".join(["import numpy as np", "def program(x, y):", *body, "    return y"])
    return written(Path(tempfile.mkdtemp()) / "many_lines.py", text).program


def seconds(run: Callable[[], object]) -> float:
    """The time that this thread computes for; that of others on the machine is not counted."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def compared(
    name: str, program: Callable[..., Any], inputs: tuple[Any, ...], rounds: int
) -> CastReport:
    """Print the medians of plain runs and of audits, which alternate; return the last report."""
    program(*inputs)
    plain: list[float] = []
    audits: list[float] = []
    recorded: list[float] = []
    report = record(program, *inputs).audit()
    for _ in range(rounds):
        plain.append(seconds(lambda: program(*inputs)))
        start = time.thread_time()
        recording = record(program, *inputs)
        recorded.append(time.thread_time() - start)
        report = recording.audit()
        audits.append(time.thread_time() - start)
    once, whole, first = map(statistics.median, (plain, audits, recorded))
    symbols = len(report.graph.symbols)
    print(f"{name}: {symbols:,} symbols, plain {once * 1e3:.1f} ms,", end=" ")
    print(f"audit {whole:.2f} s ({first:.2f} s of it recording), {whole / once:.1f} times")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--elements", type=int, default=1_600_000)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--rows", type=int, default=8000)
    asked = parser.parse_args()
    compared("discounted", discounted, discounted_inputs(asked.elements), asked.rounds)
    compared("image grade", image_grade, image_inputs(asked.elements), asked.rounds)
    for program in PROGRAMS:
        arrays = inputs_of(program, asked.elements)
        compared(program.__name__, program, arrays, asked.rounds)
    compared("dbscan", dbscan, point_inputs(asked.points), asked.rounds)
    vectors = np.random.default_rng(0).normal(size=(2, 20 * asked.points)).astype(np.float32)
    compared("half squares", half_squares, tuple(vectors), asked.rounds)
    arrays = np.linspace(0, 1, 10).astype(np.float32), np.ones(10, np.float32)
    report = compared("many lines", many_lines(asked.rows), arrays, 1)
    print(f"{len(report.rows):,} rows")
    for name, write in REPORT_FORMATS.items():
        times = [seconds(lambda write=write: write(report)) for _ in range(asked.rounds)]
        print(f"  {name:10} {times[0]:6.2f} s first, {statistics.median(times):6.2f} s again")


if __name__ == "__main__":
    main()
