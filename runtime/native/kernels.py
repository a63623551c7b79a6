"""The kernels of one region: compiled when it has earned them, for each layout of its inputs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, cached_property
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import ExecutionError, Symbol
from runtime.native import background
from runtime.native.code import NativeCode, is_sum
from runtime.native.emitters import EMITTERS
from runtime.native.layout import WIDTH, broadcast, contiguous_strides, laid, prepared
from runtime.native.entry import Spec
from runtime.native.regions import UnsupportedError, Writer
from runtime.native.running import Task
from runtime.program.blocks import Range, Uniform, laid_out
from runtime.program.cutting import Region
from runtime.program.memory import Lane

if TYPE_CHECKING:
    from runtime.program.program import Plan, Program
    from runtime.program.steps import RegionStep, Run, Taker, Work

Array = NDArray[Any]
Kinds = tuple[str, ...]
_LOG = logging.getLogger("graphir.native")
EARNED = 20e6
"""Nanoseconds in NumPy after which a kernel is compiled: about what that takes."""

_WORTH = 150_000
_HELD = 50_000
"""Nanoseconds for which a call may keep other threads from running Python."""

_CHUNK = 1 << 12


@cache
def engine() -> Any:
    """What needs llvmlite, imported when there is something to compile."""
    return import_module("runtime.native.engine")


class MachineCode(NamedTuple):
    """A region as LLVM IR and as the assembly of this CPU; `str()` is both."""

    llvm: str
    assembly: str

    def __str__(self) -> str:
        return f"{self.llvm}\n{self.assembly}"


class Kernels:
    """What a region is in machine code: for the kinds of its inputs a kernel, once compiled.

    `why` says why it is not, where it cannot be; `now`: compiled when first needed.
    """

    def __init__(self, region: Region, needed: Collection[int], now: bool) -> None:
        self.region, self.needed, self.now = region, needed, now
        self.why = "" if region.symbols or any(map(is_sum, region.rows)) else "no elementwise op"
        self.spent = 0.0
        self._made: dict[tuple[str, ...], Any] = {}
        self._asked: set[tuple[str, ...]] = set()
        self._lock = Lock()

    @cached_property
    def code(self) -> NativeCode:
        """The instructions."""
        return NativeCode(self.region, self.needed)

    # -- compiling

    def compiled(self, kinds: tuple[str, ...]) -> Any:
        """The kernel, compiled now if it is not; None where it cannot be."""
        with self._lock:
            found = self._made.get(kinds)
            if found is None and not self.why:
                found = self._compile(kinds)
                if found is not None:
                    self._made[kinds] = found
            return found

    def _compile(self, kinds: tuple[str, ...]) -> Any:
        try:
            made = Writer(self.code, kinds, WIDTH, engine().features()[1]).kernel()
            return engine().Compiled(made)
        except UnsupportedError as error:
            self.why = f"no machine code for {error}"
        except Exception as error:  # whatever LLVM says: NumPy goes on
            self.why = f"{type(error).__name__}: {error}"
            _LOG.warning("a region stays in NumPy: %s", self.why)
        return None

    def kernel(self, kinds: tuple[str, ...], cost: float) -> Any:
        """The kernel if it is there; else a call of so many nanoseconds in NumPy counts for it."""
        found = self._made.get(kinds)
        if found is not None or self.why:
            return found
        if self.now:
            return self.compiled(kinds)
        self.spent += cost
        if self.spent > EARNED and kinds not in self._asked:
            self._asked.add(kinds)
            background.submit(self.compiled, kinds)
        return None

    # -- questions

    def state(self, kinds: Kinds | None = None) -> str:
        """Which tier runs the region, for inputs of some kinds or of any, and why NumPy does."""
        if self.why:
            return f"NumPy: {self.why}"
        if self._made if kinds is None else kinds in self._made:
            known = self._made if kinds is None else [kinds]
            return "native for " + " and ".join(f"({', '.join(one)})" for one in known)
        if self._asked if kinds is None else kinds in self._asked:
            return "NumPy: being compiled"
        if self.now:
            return "NumPy: compiled when it is called"
        spent = f"{min(self.spent, EARNED) / 1e6:.1f} ms"
        return f"NumPy: {spent} spent there, compiled after {EARNED / 1e6:.0f} ms"

    @property
    def inputs(self) -> Sequence[Symbol]:
        """What the region reads."""
        return [*self.code.inputs.values()]

    def kinds(self, shape: Sequence[int], arrays: Sequence[Array]) -> Kinds:
        """Of what kind arrays are to the region, whose inputs they are."""
        return prepared(shape, arrays, WIDTH)[0].kinds

    @property
    def contiguous(self) -> Kinds:
        """The kinds of inputs that are whole, or of one element, or of one for each row."""
        last = self.region.shape[-1:]
        return tuple(
            "each" if one.rank and one.shape[-1:] == last else "same" for one in self.inputs
        )

    def machine_code(self, kinds: Kinds | None = None) -> MachineCode:
        """The code for inputs of some kinds; raises ExecutionError if there is none."""
        kinds = self.contiguous if kinds is None else kinds
        if self.compiled(kinds) is None:
            raise ExecutionError(f"the region stays in NumPy: {self.why}")
        made = Writer(self.code, kinds, WIDTH, engine().features()[1]).kernel()
        return MachineCode(*engine().listing(made.text))

    # -- without Python

    def entry(self, program: Program, plan: Plan, calls: int) -> Callable[..., Any] | None:
        """A built-in function that does what the program does, for inputs of the plan's shapes."""
        lowered = program.lowered
        if self.why or program.rounded:
            return None
        code, shape = self.code, plan.shapes[0]
        count = math.prod(shape)
        symbols = list(code.inputs.values())
        given = dict(zip(lowered.inputs, plan.inputs, strict=True))
        constants = [program.constants.get(program.cells[one.index]) for one in symbols]
        shapes = [given[one] if one in given else array.shape for one, array in zip(symbols, constants, strict=True)]
        sizes = [one.dtype.storage.itemsize for one in symbols]
        strides = [broadcast(shape, own, contiguous_strides(own, size)) for own, size in zip(shapes, sizes, strict=True)]
        layout = laid(shape, strides, sizes)
        if layout is None or layout.outer != 1 or not count or count * self.cost > _HELD:
            return None
        kernel = self.kernel(layout.kinds, calls * plan.price)
        if kernel is None:
            return None
        places = {symbol: place for place, symbol in enumerate(symbols)}
        outs = {symbol: len(symbols) + i for i, symbol in enumerate(code.outs)}
        inputs = [
            Spec(lowered.committed(one.dtype).storage, own, places.get(one, len(symbols) + len(outs)))
            for one, own in given.items()
        ]
        results = [Spec(one.dtype.storage, shape, outs[one]) for one in lowered.outputs]
        template = [0 if array is None else array.ctypes.data for array in constants] + [0] * len(outs)
        return engine().entry(kernel, inputs, results, template, count, constants)

    # -- running

    def work(
        self, step: RegionStep, run: Run, outs: Sequence[Array], takers: Sequence[Taker]
    ) -> tuple[Sequence[Range], Work] | None:
        """The ranges of a step and what is done with each; None where it stays in NumPy."""
        if self.why or not step.size:
            return None
        cells = [step.cells[symbol.index] for symbol in self.code.inputs.values()]
        arrays = [np.asarray(run.values[cell]) for cell in cells]
        layout, whole = prepared(step.shape, arrays, WIDTH)
        kernel = self.kernel(layout.kinds, step.price)
        if kernel is None:
            return None
        if step.rows and layout.outer > 1 and layout.inner != step.length:
            return None
        task = Task(kernel, layout, whole, outs)
        ranges = step.ranges if step.rows else self._ranges(step, layout.outer, layout.inner, run)
        sources = self._sources(step, run, outs)
        buffered = [self.code.dtypes[register] for register in self.code.buffered]
        count, length = len(self.code.sums), step.length

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            for i in numbers:
                a, b = ranges[i]
                buffers = [np.empty(b - a, dtype) for dtype in buffered]
                sums = np.empty((max(1, (b - a) // length), count)) if count else None
                task.run(a, b, buffers, sums, length)
                for taker, (kind, source) in zip(takers, sources, strict=True):
                    if kind == "sum":
                        assert sums is not None
                        place, dtype = source
                        taker.settle(i, a, sums[:, place].copy().view(dtype)[:: 8 // dtype.itemsize])
                    elif kind == "buffer":
                        taker.take(i, a, b, buffers[source])
                    else:
                        taker.take(i, a, b, source.block(a, b))

        return ranges, work

    def _ranges(self, step: RegionStep, outer: int, inner: int, run: Run) -> Sequence[Range]:
        parts = step.threads if step.size * self.cost > _WORTH else 1
        parts = max(parts, 64 if run.progress else 1)
        if outer > 1:
            return Uniform(step.size, -(-outer // parts) * inner)
        return Uniform(step.size, -(-step.size // parts // _CHUNK) * _CHUNK or step.size)

    @cached_property
    def cost(self) -> float:
        """Nanoseconds an element, roughly."""
        return sum(0.02 if one[0] in EMITTERS else 0.5 for one in self.code.instructions)

    def _sources(self, step: RegionStep, run: Run, outs: Sequence[Array]) -> list[tuple[str, Any]]:
        """For each row-wise symbol what its taker gets: sums, a buffer, or a block of an array."""
        code = self.code
        taken = [code.bases[register] for register in code.outs.values()]
        found: list[tuple[str, Any]] = []
        for symbol, register in code.rows:
            if is_sum(symbol):
                found.append(("sum", (code.sums.index(register), code.dtypes[register])))
            elif register in code.buffered:
                found.append(("buffer", code.buffered.index(register)))
            else:
                base = code.bases[register]
                if base in taken:
                    array = outs[taken.index(base)].view(code.dtypes[register])
                else:
                    array = np.asarray(run.values[step.cells[code.inputs[register].index]])
                found.append(("array", laid_out(array, step.shape, step.longest)))
        return found
