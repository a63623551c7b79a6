"""Instructions made callable: registers given slots, and one Python function for a region."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import starmap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import Symbol
from runtime.program.codegen.instructions import Instruction, RegionCode
from runtime.program.codegen.tracing import Storage, assign, select
from runtime.program.cost_model import KEPT_WALKS

Call: TypeAlias = tuple[Callable[..., Any], tuple[int, ...], Symbol]
"""A function, the places of its operands and of its result, and the symbol it is a part of."""


class RegisterSlot(NamedTuple):
    """Memory of a block, read as some dtype: of an input, of a result, or scratch."""

    kind: str
    number: int
    dtype: Storage


class RegionBody(NamedTuple):
    """A region as a function of its slots, views of one block each.

    `inputs` are the symbols it reads, `outs` those it stores; `widths` are the bytes an element of
    each scratch slot; `rows` says in which slot the operand of each row-wise symbol is. `calls` are
    the instructions, with the places of their operands among the slots and then the constants.
    """

    function: Callable[..., Any]
    slots: tuple[RegisterSlot, ...]
    inputs: tuple[Symbol, ...]
    outs: tuple[Symbol, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[Symbol, int], ...]
    calls: tuple[Call, ...]
    constants: tuple[NDArray[Any], ...]


def assemble(code: RegionCode) -> RegionBody:
    """The body of a region: for each register the memory that is free first, and the calls."""
    places, live, widths = _allocate(code)
    at, slots, constants = _slots(code, places, live)
    calls = tuple(
        [
            (function, (*[at[arg] for arg in args], at[out]), symbol)
            for function, args, out, symbol in live
        ]
    )
    walks = Walk(calls, slots, constants) if code.long else None
    return RegionBody(
        walks or _compile_calls(calls, len(slots), constants),
        slots,
        tuple(code.inputs.values()),
        tuple(code.outs),
        tuple(widths),
        tuple([(symbol, at[register]) for symbol, register in code.rows]),
        calls,
        constants,
    )


def _slots(
    code: RegionCode, places: Sequence[tuple[str, int] | None], live: Sequence[Instruction]
) -> tuple[list[int], tuple[RegisterSlot, ...], tuple[NDArray[Any], ...]]:
    """For each register its place among the slots, those of constants following; and both."""
    at = [-1] * len(places)
    slots: dict[RegisterSlot, int] = {}
    constants: list[int] = []
    bases, dtypes = code.bases, code.dtypes
    registers = [register for _, register in code.rows]
    for _, args, out, _ in live:
        registers += args
        registers.append(out)
    for register in registers:
        if at[register] >= 0:
            continue
        place = places[bases[register]]
        if place is None:
            constants.append(register)
            at[register] = 0  # for now
        else:
            slot = RegisterSlot(*place, dtypes[register])
            at[register] = slots.setdefault(slot, len(slots))
    for i, register in enumerate(constants):
        at[register] = len(slots) + i
    arrays = [code.constants[bases[register]].view(dtypes[register]) for register in constants]
    return at, tuple(slots), tuple(arrays)


def _allocate(
    code: RegionCode,
) -> tuple[list[tuple[str, int] | None], list[Instruction], list[int]]:
    """Where each register lies, the instructions that matter, and the width of each scratch slot.

    From the last instruction back to the first: a register takes its slot at its last use, and
    gives it up where it is written, to the operands of that very instruction first. So results are
    computed in place, chains in the memory of the result itself.
    """
    bases = code.bases
    places: list[tuple[str, int] | None] = [None] * len(bases)
    for i, register in enumerate(code.inputs):
        places[register] = "in", i
    for i, register in enumerate(code.outs.values()):
        places[bases[register]] = "out", i
    free: dict[int, list[tuple[str, int]]] = {width: [] for width in (1, 2, 4, 8, 16)}
    widths: list[int] = []

    def take(register: int) -> None:
        if register in code.constants:
            return
        width = code.dtypes[register].itemsize
        spare = free[width]
        if not spare:
            spare.append(("scratch", len(widths)))
            widths.append(width)
        places[register] = spare.pop()

    for _, register in code.rows:
        if places[bases[register]] is None:
            take(bases[register])
    live: list[Instruction] = []
    for instruction in reversed(code.instructions):
        function, args, out, _ = instruction
        place = places[out]
        if place is None:
            continue  # nothing reads it
        live.append(instruction)
        # Long code is on scratch memory alone, so that its calls can be kept.
        free_list = [] if code.long and place[0] == "out" else free[code.dtypes[out].itemsize]
        # A ufunc whose only element is in place is a reduction to NumPy, which rounds complex
        # products otherwise (IS_BINARY_REDUCE, numpy/_core/src/umath/fast_loop_macros.h).
        in_place = function not in (select, assign) and code.dtypes[out].kind != "c"
        if in_place:
            free_list.append(place)
        for arg in args:
            base = bases[arg]
            if places[base] is None:
                take(base)
        if not in_place:
            free_list.append(place)
    live.reverse()
    return places, live, widths


def _compile_calls(
    calls: Sequence[Call], count: int, constants: Sequence[NDArray[Any]]
) -> Callable[..., Any]:
    """The calls as Python source, compiled; equal sources share their code."""
    writer = FunctionWriter()
    names = [f"s{k}" for k in range(count)]
    writer.call(calls, [*names, *map(writer.name, constants)])
    return writer.function(names)


class FunctionWriter:
    """Python source being written, and what its names stand for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"__name__": __name__}
        self._names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """The name of a global value."""
        name = self._names.setdefault(id(value), f"g{len(self._names)}")
        self.scope[name] = value  # which keeps it alive, so that its id stays its own
        return name

    def call(self, calls: Sequence[Call], names: Sequence[str]) -> None:
        """Write the calls of a body, its slots and constants having these names."""
        for function, args, _ in calls:
            *operands, out = [names[k] for k in args]
            if function is assign:
                self.lines.append(f"{out}[...] = {operands[0]}")
                continue
            keyword = "out=" if function in _KEYWORD else ""
            operand_text = ", ".join(operands)
            self.lines.append(f"{self.name(function)}({operand_text}, {keyword}{out})")

    def function(self, parameters: Sequence[str]) -> Callable[..., Any]:
        """The function whose statements were written; equal sources share their code."""
        text = "\n    ".join(self.lines) or "pass"
        exec(_compile(", ".join(parameters), text), self.scope)
        return self.scope["body"]


@lru_cache(1024)
def _compile(parameters: str, lines: str) -> Any:
    return compile(f"def body({parameters}):\n    {lines}\n", "<region>", "exec")


_KEYWORD: tuple[Any, ...] = (np.maximum, np.minimum)
"""The ufuncs that no longer take their result by position."""


class Walk:
    """The calls one after another, which needs no compiling.

    Calls between scratch slots and constants are kept, with their arrays, for each lane whose
    scratch memory it is; only those that read inputs or write results are made anew.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        slots: Sequence[RegisterSlot],
        constants: Sequence[NDArray[Any]],
    ) -> None:
        self.calls, self.constants = calls, constants
        self.scratch = [k for k, slot in enumerate(slots) if slot.kind == "scratch"]
        given_slots = {k for k, slot in enumerate(slots) if slot.kind != "scratch"}
        self.varying = [
            i for i, (_, args, _) in enumerate(calls) if not given_slots.isdisjoint(args)
        ]
        self._cache: dict[int, tuple[Any, list[Any]]] = {}

    def __call__(self, *slots: Any) -> None:
        """Do them all."""
        arrays = (*slots, *self.constants)
        calls = self._calls(arrays)
        for i in self.varying:
            calls[i] = self._call(i, arrays)
        try:
            deque(starmap(operator.call, calls), 0)
        finally:
            for i in self.varying:  # whose arrays are the caller's
                calls[i] = None

    def _calls(self, arrays: Sequence[Any]) -> list[Any]:
        first = arrays[self.scratch[0]] if self.scratch else None
        memory, calls = self._cache.get(id(first), (None, []))
        if first is None or memory is not first:
            calls = [self._call(i, arrays) for i in range(len(self.calls))]
            if first is not None:
                if len(self._cache) >= KEPT_WALKS:
                    self._cache.clear()
                self._cache[id(first)] = first, calls
        return calls

    def _call(self, i: int, arrays: Sequence[Any]) -> tuple[Any, ...]:
        function, args, _ = self.calls[i]
        return prepared(function, [arrays[k] for k in args])


def prepared(function: Callable[..., Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """A call, as operator.call takes it, of a function on operands and the memory of its result."""
    if function not in _KEYWORD:
        return (function, *arrays)
    *operands, out = arrays
    return (partial(function, *operands, out=out),)
