"""Cumulative sums and products in machine code: several lines side by side, each in sequence.

NumPy accumulates one line after another, and each element waits for the one before to pass through
memory. Here the last results stay in registers. A line runs along the axis; lines that are
neighbours in memory are the lanes of a vector, and other lines take turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from graphir.hints import Array
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.compilation import PaidKernels
from graphir.runtime.native.drivers.records import (
    WordRecord,
    record,
    with_numbers,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import Job, shared_ranges
from graphir.runtime.native.probe import engine
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.native.row_reductions import Reduction
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.tier import Accumulation

_LANES = 64
"""The most lines in a vector."""

_SIDE, _NARROW = 8, 8
"""The number of vectors that take turns, and the most lanes of such vectors."""


class AccumulationKind(NamedTuple):
    """A kind of accumulation: what joins two elements, their dtype, and the lanes of a vector."""

    reduction: Reduction
    lanes: int


_TEXT = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  %source = get ptr, %record[LinesRecord.source]
  %result = get ptr, %record[LinesRecord.result]
  %length = get i64, %record[LinesRecord.length]
  %lines = get i64, %record[LinesRecord.lines]
  %chunks = get i64, %record[LinesRecord.chunks]
  %matrix = mul i64 %length, %lines
  %last = sub i64 %lines, {lanes}
  br label %next
next:
  %e = phi i64 [ %first, %entry ]{nexts}
  br i1 $(icmp ult i64 %e, %end), label %choose, label %exit
choose:
  br i1 $(icmp uge i64 $(sub i64 %end, %e), {side}), label %start{side}, label %start1
{groups}
exit:
  ret void
}}"""

_GROUP = """
start{n}:
{starts}
  br label %test{n}
test{n}:
  %k{n} = phi i64 [ 1, %start{n} ], [ %k1_{n}, %step{n} ]
{phis}
  br i1 $(icmp ult i64 %k{n}, %length), label %step{n}, label %done{n}
step{n}:
  %at{n} = mul i64 %k{n}, %lines
{steps}
  %k1_{n} = add i64 %k{n}, 1
  br label %test{n}
done{n}:
  %e{n} = add i64 %e, {n}
  br label %next"""


@record
class LinesRecord(WordRecord):
    """The addresses of the operand and the result, and the elements of a line.

    Then come the number of neighbouring lines, and the vectors that have these. The last of the
    vectors may overlap another.
    """

    fields = "source result length lines chunks"


def accumulation_kernel(kind: AccumulationKind) -> Kernel:
    """Return the kernel of a kind of accumulation, which takes vectors of lines."""
    side = _SIDE if kind.lanes <= _NARROW else 1
    sizes = dict.fromkeys((side, 1))
    names = {"lanes": kind.lanes, "side": side}
    nexts = "".join(f", [ %e{n}, %done{n} ]" for n in sizes)
    groups = "\n".join(_group(kind, n) for n in sizes)
    text = _TEXT.format(**names, nexts=nexts, groups=groups)
    return Kernel(words_of(with_numbers(text, LinesRecord)), ())


def _group(kind: AccumulationKind, n: int) -> str:
    element, vector = kind.reduction.kind, kind.reduction.kinds(kind.lanes)
    starts, phis, steps = list[str](), list[str](), list[str]()
    for g in range(n):
        own = f"{n}_{g}"
        chunk = f"$(mul i64 $(urem i64 %n{own}, %chunks), {kind.lanes})"
        starts += [
            f"  %n{own} = add i64 %e, {g}",
            f"  %lane{own} = call i64 @llvm.umin(i64 {chunk}, i64 %last)",
            f"  %lead{own} = mul i64 $(udiv i64 %n{own}, %chunks), %matrix",
            f"  %place{own} = add i64 %lead{own}, %lane{own}",
            f"  %x{own} = getelementptr {element}, ptr %source, i64 %place{own}",
            f"  %y{own} = getelementptr {element}, ptr %result, i64 %place{own}",
            f"  %a{own} = load {vector}, ptr %x{own}, align 1",
            f"  store {vector} %a{own}, ptr %y{own}, align 1",
        ]
        phis.append(f"  %s{own} = phi {vector} [ %a{own}, %start{n} ], [ %t{own}, %step{n} ]")
        from_, to = (f"$(getelementptr {element}, ptr %{p}{own}, i64 %at{n})" for p in "xy")
        steps += [
            f"  %z{own} = load {vector}, ptr {from_}, align 1",
            f"  %t{own} = {kind.reduction.join(f'%s{own}', f'%z{own}', kind.lanes)}",
            f"  store {vector} %t{own}, ptr {to}, align 1",
        ]
    lines = {"starts": starts, "phis": phis, "steps": steps}
    return _GROUP.format(n=n, **{name: "\n".join(text) for name, text in lines.items()})


class Accumulations(PaidKernels[AccumulationKind, Any]):
    """The accumulations of a process by machine code."""

    def __init__(self, now: bool) -> None:
        super().__init__(now)
        self._jobs: dict[Accumulation, Job] = {}

    def accumulate(
        self, accumulate: Callable[[Array], Array], accumulation: Accumulation, x: Array
    ) -> Array:
        """Return an accumulation of a contiguous array; `accumulate` does the same in NumPy."""
        kind = kind_of(accumulation)
        if not self.kernel(kind):
            return self.by_numpy(kind, accumulate, x)
        result = np.empty(x.shape, x.dtype)
        self.job(accumulation).run([x.ctypes.data, result.ctypes.data])
        return result

    def compiled(self, kind: AccumulationKind) -> Any:
        """Return the kernel of a kind."""
        return engine().Compiled(accumulation_kernel(kind))

    def job(self, accumulation: Accumulation) -> Job:
        """Return an accumulation as a job; its kernel is compiled."""
        job = lookup(self._jobs, accumulation, lambda: self._bound(accumulation), COST.KEPT_PLANS)
        assert job
        return job

    def _bound(self, accumulation: Accumulation) -> Job:
        kind, (lead, length, lines) = kind_of(accumulation), accumulation.space
        chunks = -(-lines // kind.lanes)
        size, price = lead * chunks, math.prod(accumulation.space) * COST.ACCUMULATION_STEP
        threads = accumulation.threads if price > COST.NATIVE_SECOND_THREAD else 1
        ranges = threads * COST.RANGES_PER_THREAD if threads > 1 else 1
        block = -(-size // (ranges * _SIDE)) * _SIDE
        words = words_of_records([LinesRecord(0, 0, length, lines, chunks)])
        shared = shared_ranges(block, min(threads, -(-size // block)) - 1)
        kernel = self.kernels[kind]
        assert kernel
        return Job(kernel, words, size, shared, [(0, 0), (1, 1)])


def kind_of(accumulation: Accumulation) -> AccumulationKind:
    """Return the kind of an accumulation."""
    lanes = min(_LANES, 1 << accumulation.space.lanes.bit_length() - 1)
    name = accumulation.name.removeprefix("cumulative_")
    return AccumulationKind(Reduction(name, accumulation.dtype), lanes)


@cache
def accumulations(now: bool) -> Accumulations:
    """Return the accumulations of this process."""
    return Accumulations(now)
