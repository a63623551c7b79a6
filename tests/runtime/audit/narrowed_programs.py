"""Small programs that lose values in three ways, and some that round as they say.

`NARROWED` narrow without being asked to, by less than 1 % of the answer. `CONSTANTS` have a number
that the other dtype does not hold. `PAIRS` lose in arithmetic, and a store would lose the same
values again: both lines are at fault. The comment `guilty` marks the lines of each function.
`DELIBERATE` lose nothing but the roundings that the program asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from graphir import Graph, ops
from graphir.passes import CastReport
from graphir.runtime import audit, record

RANDOM = np.random.default_rng(0)
HALVES = RANDOM.uniform(0.05, 0.2, 60).astype(np.float16)
SINGLES = HALVES.astype(np.float32) / 3
BYTES = np.full((4, 3), 90, np.uint8)
SHORTS = np.array([150, -200, 60], np.int16)


def total_of_halves() -> CastReport:
    def function(values):
        total = 0.0
        for value in values:
            total += value  # guilty
        return total

    return record(function, HALVES).audit()


def residual_of_half() -> CastReport:
    def function(hidden, residual):
        hidden = hidden.copy()
        hidden += residual  # guilty
        return hidden

    return record(function, HALVES, SINGLES).audit()


def ids_through_float32() -> CastReport:
    graph = Graph("ids", rules="jax")
    ids, scale = graph.input("int32", (3,)), graph.input("float32", (3,))
    scaled = ids * scale  # guilty
    graph.output(scaled.cast("int32"))
    return audit(graph, np.array([16777217, 33554435, 7], np.int32), np.ones(3, np.float32))


def times_of_events() -> CastReport:
    def function(origin, ticks):
        times = origin.copy()
        times += ticks * 0.5  # guilty
        return times

    return record(function, np.zeros(3, np.float32), 3.4e9 + np.arange(3.0)).audit()


def decayed_weights() -> CastReport:
    graph = Graph("decay", rules="jax")
    weights = graph.input("bfloat16", (4,))
    graph.output(weights * 0.9999)  # guilty
    return audit(graph, np.linspace(1, 2, 4).astype(ml_dtypes.bfloat16))


def masked_scores() -> CastReport:
    def function(scores, mask):
        masked = scores + (mask - 1) * 1e6  # guilty
        return masked - masked.max()

    mask = np.array([1, 0, 1, 0] * 15, np.float16)
    return record(function, HALVES, mask).audit()


def guarded_quotient() -> CastReport:
    def function(values):
        size = np.abs(values)
        return values / (size + 1e-8)  # guilty

    return record(function, np.array([0, 1, -2], np.float16)).audit()


def smoothed_counts() -> CastReport:
    def function(counts):
        smoothing = np.full_like(counts, 0.25)  # guilty
        return (counts + smoothing) / counts.sum()

    return record(function, np.array([3, 0, 1], np.int32)).audit()


def ticks_since_start() -> CastReport:
    def function(ticks):
        return ticks - 16777217.0  # guilty

    return record(function, np.array([16777218, 16777220], np.float32)).audit()


def running_bytes() -> CastReport:
    def function(frames):
        history = np.zeros(frames.shape, np.uint8)
        total = np.zeros(3, np.uint8)
        for i, frame in enumerate(frames):
            total = total + frame  # guilty
            history[i] = total  # guilty
        return history

    return record(function, BYTES).audit()


def sums_of_pixels() -> CastReport:
    def function(left, right):
        out = np.empty(3, np.uint8)
        for i in range(3):
            both = left[i] + right[i]  # guilty
            out[i] = both  # guilty
        return out

    return record(function, BYTES[0], BYTES[1] * 2).audit()


def energies_of_samples() -> CastReport:
    def function(samples):
        energies = np.zeros((2, 3), np.int16)
        squares = samples * samples  # guilty
        energies[1] = squares  # guilty
        return energies

    return record(function, SHORTS).audit()


def differences_of_rows() -> CastReport:
    def function(levels):
        steps = np.zeros_like(levels)
        rises = levels[1:] - levels[:-1]  # guilty
        steps[1:] = rises  # guilty
        return steps

    return record(function, np.array([100, -100, 50], np.int8)).audit()


def cast_to_half() -> CastReport:
    return record(lambda x: x.astype(np.float16) * np.float16(0.5), SINGLES).audit()


def scaled_by_a_number() -> CastReport:
    return record(lambda x: x * 0.1 + 0.7, HALVES.astype(np.float32)).audit()


def stored_in_a_written_dtype() -> CastReport:
    def function(values):
        out = np.zeros(60, np.float32)
        out[10:] = values[10:] / 3
        return out

    return record(function, HALVES.astype(np.float64)).audit()


def summed_in_float32() -> CastReport:
    def function(rows):
        total = np.zeros(3, np.float32)
        for row in rows:
            total = total + row
        return total

    return record(function, RANDOM.uniform(size=(40, 3)).astype(np.float32)).audit()


def spaced_in_float32() -> CastReport:
    return record(lambda x: x + np.linspace(-1, 1, 60, dtype=np.float32), SINGLES).audit()


def added_to_a_copy() -> CastReport:
    def function(values, noise):
        values = values.copy()
        values += noise
        return values

    return record(function, SINGLES, SINGLES.astype(np.float64) / 7).audit()


def chained_in_bfloat16() -> CastReport:
    graph = Graph("chain", rules="jax")
    x, weights = graph.input("bfloat16", (4, 4)), graph.input("bfloat16", (4, 4))
    graph.output(ops.tanh(x @ weights) * 0.5 + x)
    return audit(graph, *RANDOM.normal(size=(2, 4, 4)).astype(ml_dtypes.bfloat16))


def trained_in_mixed_precision() -> CastReport:
    graph = Graph("network", rules="jax")
    x, first, second = (graph.input("float32", (8, 8)) for _ in range(3))
    x, first, second = (value.cast("bfloat16") for value in (x, first, second))
    logits = (ops.tanh(x @ first) @ second).cast("float32")
    graph.output(logits - ops.max(logits, axis=1, keepdims=True))
    return audit(graph, *RANDOM.normal(size=(3, 8, 8)).astype(np.float32))


def counters_that_stand_still() -> CastReport:
    def function(counts, bins):
        counts = counts.copy()
        np.add.at(counts, bins, 1)  # guilty
        return counts

    return record(function, np.full(3, 2.0**24, np.float32), np.arange(12) % 2).audit()


def positions_in_bfloat16() -> CastReport:
    graph = Graph("positions", rules="jax")
    mask = graph.input("bfloat16", (700,))
    counts = ops.cumulative_sum(mask, axis=0)  # guilty
    graph.output((counts - 1).cast("int32"))
    return audit(graph, np.ones(700, ml_dtypes.bfloat16))


def logits_widened_late() -> CastReport:
    graph = Graph("logits", rules="jax")
    x, head = graph.input("bfloat16", (4, 8)), graph.input("bfloat16", (8, 16))
    logits = x @ head  # guilty
    graph.output(logits.reshape(64).cast("float32"))
    values = (RANDOM.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((4, 8), (8, 16)))
    return audit(graph, *values)


def tables_in_half() -> CastReport:
    def function(angles, signal):
        table = np.cos(angles).astype(np.float16)  # guilty
        return signal * (table * np.float16(2))

    return record(function, SINGLES, SINGLES[::-1].copy()).audit()


def stamps_by_a_factor() -> CastReport:
    def function(stamps, factor):
        return (stamps / factor).astype(np.int64)  # guilty

    return record(function, 1539424800123456789 + np.arange(5) * 51, np.int64(3)).audit()


def entropy_of_rare_words() -> CastReport:
    def function(scores):
        chances = np.exp(scores)
        smoothed = chances + 1e-8  # guilty
        return -np.log(smoothed)

    return record(function, np.array([-1, -30], np.float16)).audit()


def logarithms_of_losses() -> CastReport:
    def function(scores, margins):
        losses = (scores + margins - scores).astype(np.float16)
        shifted = losses + 1e-10  # guilty
        return np.log(shifted)

    margins = np.array([1e-9, 1e-9, 0.5], np.float32)
    return record(function, np.ones(3, np.float32), margins).audit()


Programs = tuple[Callable[[], CastReport], ...]
NARROWED: Programs = (
    *(total_of_halves, residual_of_half, ids_through_float32, times_of_events, decayed_weights),
    *(counters_that_stand_still, positions_in_bfloat16, logits_widened_late),
    *(tables_in_half, stamps_by_a_factor),
)
CONSTANTS: Programs = (
    *(masked_scores, guarded_quotient, smoothed_counts, ticks_since_start, entropy_of_rare_words),
    logarithms_of_losses,
)
PAIRS: Programs = (running_bytes, sums_of_pixels, energies_of_samples, differences_of_rows)
DELIBERATE: Programs = (
    *(cast_to_half, scaled_by_a_number, stored_in_a_written_dtype),
    *(summed_in_float32, spaced_in_float32, added_to_a_copy, chained_in_bfloat16),
    trained_in_mixed_precision,
)


def guilty_lines(program: Any) -> list[int]:
    """The numbers of the marked lines of a program, in its file."""
    lines, start = inspect.getsourcelines(program)
    return [start + i for i, line in enumerate(lines) if line.rstrip().endswith("# guilty")]
