"""Register allocation, and the Python function that runs the instructions of a region.

The allocator walks the instructions backwards. A register takes a slot at its last use and frees
the slot at its definition, so an instruction can compute its result in the memory of an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import Symbol
from graphir.runtime.program.codegen.instructions import Instruction, RegionCode
from graphir.runtime.program.codegen.tracing import Storage, assign, select

Call: TypeAlias = tuple[Callable[..., Any], tuple[int, ...], Symbol]
"""A function, the places of its operands and its result, and the symbol to which it belongs."""


class RegisterSlot(NamedTuple):
    """The memory of a block, read in some dtype.

    `kind` is "in" for an input, "out" for a result, or "scratch"; `number` counts within the kind.
    """

    kind: str
    number: int
    dtype: Storage


class RegionBody(NamedTuple):
    """A region as a function of its slots, each of which is a view of one block.

    `inputs` are the symbols that the region loads, `outs` the symbols that it stores. `widths` has
    the bytes per element of each scratch slot. `rows` has the slot of the first operand of each
    row-wise symbol. `calls` are the instructions; the places of their operands number the slots
    first and then `constants`.
    """

    function: Callable[..., Any]
    slots: tuple[RegisterSlot, ...]
    inputs: tuple[Symbol, ...]
    outs: tuple[Symbol, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[Symbol, int], ...]
    calls: tuple[Call, ...]
    constants: tuple[NDArray[Any], ...]


def assemble(code: RegionCode, slice_outs: Collection[int] = ()) -> RegionBody:
    """Return the body of a region: allocate its registers, and compile its calls.

    The memory of results is memory for the chains of instructions that compute them, except for the
    results with the numbers `slice_outs`, whose memory may hold operands.
    """
    places, live, widths = _allocate(code, slice_outs)
    at, slots, constants = _slots(code, places, live)
    calls = tuple(
        [
            (function, (*[at[arg] for arg in args], at[out]), symbol)
            for function, args, out, symbol in live
        ]
    )
    return RegionBody(
        _compile_calls(calls, len(slots), constants),
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
    """Return the place of each register, the slots, and the constants.

    A place numbers the slots first and then the constants; it is -1 for a register without use.
    """
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
            at[register] = 0  # marks the register as visited; the loop below sets its place
        else:
            slot = RegisterSlot(*place, dtypes[register])
            at[register] = slots.setdefault(slot, len(slots))
    for i, register in enumerate(constants):
        at[register] = len(slots) + i
    arrays = [code.constants[bases[register]].view(dtypes[register]) for register in constants]
    return at, tuple(slots), tuple(arrays)


def _allocate(
    code: RegionCode, slice_outs: Collection[int]
) -> tuple[list[tuple[str, int] | None], list[Instruction], list[int]]:
    """Return the slot of each register, the live instructions, and the width of each scratch slot.

    The allocation goes from the last instruction to the first. A register takes its slot at its
    last use and frees the slot where it is written; the operands of the writing instruction are
    first to take the freed slot. Results are therefore computed in place, and a chain of
    instructions runs in the memory of its final result.
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
        keeps_out = place[0] == "out" and place[1] in slice_outs
        free_list = [] if keeps_out else free[code.dtypes[out].itemsize]
        # NumPy takes an in-place ufunc call on one element for a reduction, and its reduction loop
        # rounds complex products differently (IS_BINARY_REDUCE,
        # numpy/_core/src/umath/fast_loop_macros.h).
        in_place = function not in (select, assign) and code.dtypes[out].kind != "c"
        # The last operand of a selection may lie in the memory of the result.
        first = 0 if in_place else 2 if function is select else len(args)
        for k, arg in enumerate(args):
            base = bases[arg]
            if k == first:
                free_list.append(place)
            if places[base] is None:
                take(base)
        if first == len(args):
            free_list.append(place)
    live.reverse()
    return places, live, widths


def _compile_calls(
    calls: Sequence[Call], count: int, constants: Sequence[NDArray[Any]]
) -> Callable[..., Any]:
    """Return the calls as one function compiled from Python source; equal sources share code."""
    writer = FunctionWriter()
    names = [f"s{k}" for k in range(count)]
    writer.call(calls, [*names, *map(writer.name, constants)])
    return writer.function(names)


class FunctionWriter:
    """A writer of Python source that also holds the values of the source's global names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"__name__": __name__}
        self._names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """Return the global name of a value."""
        name = self._names.setdefault(id(value), f"g{len(self._names)}")
        self.scope[name] = value  # the scope keeps the value alive, so its id stays unique
        return name

    def call(self, calls: Sequence[Call], names: Sequence[str]) -> None:
        """Write the calls of a body; `names` are those of its slots and then of its constants."""
        for function, args, _ in calls:
            *operands, out = [names[k] for k in args]
            if function is assign:
                self.lines.append(f"{out}[...] = {operands[0]}")
                continue
            keyword = "out=" if function in _KEYWORD else ""
            operand_text = ", ".join(operands)
            self.lines.append(f"{self.name(function)}({operand_text}, {keyword}{out})")

    def function(self, parameters: Sequence[str]) -> Callable[..., Any]:
        """Return the function with the written statements; equal sources share their code."""
        text = "\n    ".join(self.lines) or "pass"
        exec(_compile(", ".join(parameters), text), self.scope)
        return self.scope["body"]


@lru_cache(1024)
def _compile(parameters: str, lines: str) -> Any:
    return compile(f"def body({parameters}):\n    {lines}\n", "<region>", "exec")


_KEYWORD: tuple[Any, ...] = (np.maximum, np.minimum)
"""The ufuncs that deprecate a positional result: their calls pass `out=`."""
