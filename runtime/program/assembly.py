"""Instructions made callable: registers given slots, and one Python function for a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import Symbol
from runtime.program.code import Code, Instruction, Place
from runtime.program.tracing import Storage, assign, select

WRITTEN = 400
"""The instructions up to which source is written: compiling a line takes as long as 50 calls."""


class Slot(NamedTuple):
    """Memory of a block, read as some dtype: of an input, of a result, or scratch."""

    kind: str
    number: int
    dtype: Storage


class Body(NamedTuple):
    """A region as a function of its slots, views of one block each.

    `inputs` are the symbols it reads, `outs` those it stores; `widths` are the bytes an element of
    each scratch slot; `rows` says in which slot the operand of each row-wise symbol is. `calls` are
    the instructions, with the places of their operands among the slots and then the constants.
    """

    function: Callable[..., Any]
    slots: tuple[Slot, ...]
    inputs: tuple[Symbol, ...]
    outs: tuple[Symbol, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[Symbol, int], ...]
    calls: tuple[tuple[Instruction, tuple[int, ...]], ...]
    constants: tuple[NDArray[Any], ...]


def assemble(code: Code) -> Body:
    """The body of a region: for each register the memory that is free first, and the calls."""
    places, live, widths = _allocated(code)
    slots: dict[Slot, int] = {}
    constants: dict[Place, int] = {}

    def at(place: Place) -> int:
        """The slot of a place; below 0 for constants, whose places follow all slots."""
        if place.register in code.constants:
            return -1 - constants.setdefault(place, len(constants))
        return slots.setdefault(Slot(*places[place.register], place.dtype), len(slots))

    found = [(one, [*map(at, one.args), at(one.out)]) for one in live]
    rows = tuple([(symbol, at(place)) for symbol, place in code.rows])
    count = len(slots)
    calls = tuple(
        [(one, tuple([k if k >= 0 else count - 1 - k for k in args])) for one, args in found]
    )
    arrays = tuple([code.constants[place.register].view(place.dtype) for place in constants])
    make = _written if len(calls) <= WRITTEN else _walked
    return Body(
        make(calls, count, arrays),
        tuple(slots),
        tuple(code.inputs.values()),
        tuple(code.outs),
        tuple(widths),
        rows,
        calls,
        arrays,
    )


def _allocated(
    code: Code,
) -> tuple[dict[int, tuple[str, int]], list[Instruction], list[int]]:
    """Where each register lies, the instructions that matter, and the width of each scratch slot.

    From the last instruction back to the first: a register takes its slot at its last use, and
    gives it up where it is written, to the operands of that very instruction first. So results are
    computed in place, chains in the memory of the result itself.
    """
    places: dict[int, tuple[str, int]] = {r: ("in", i) for i, r in enumerate(code.inputs)}
    given = places.keys() | code.constants.keys()
    for i, out in enumerate(code.outs.values()):
        places[out.register] = ("out", i)
    free: dict[int, list[tuple[str, int]]] = {}
    widths: list[int] = []

    def need(register: int) -> None:
        if register in places or register in given:
            return
        width = code.widths[register]
        spare = free.setdefault(width, [])
        if not spare:
            spare.append(("scratch", len(widths)))
            widths.append(width)
        places[register] = spare.pop()

    for _, place in code.rows:
        need(place.register)
    live: list[Instruction] = []
    for one in reversed(code.instructions):
        out = one.out.register
        if out not in places:
            continue  # nothing reads it
        live.append(one)
        freed = free.setdefault(code.widths[out], [])
        if _in_place(one):
            freed.append(places[out])
        for place in one.args:
            need(place.register)
        if not _in_place(one):
            freed.append(places[out])
    live.reverse()
    return places, live, widths


def _in_place(one: Instruction) -> bool:
    """Whether the result may take the memory of an operand.

    A ufunc whose only element is in place is a reduction to NumPy, which rounds complex products
    otherwise (IS_BINARY_REDUCE, numpy/_core/src/umath/fast_loop_macros.h).
    """
    return one.function not in (select, assign) and one.out.dtype.kind != "c"


def _written(
    calls: Sequence[tuple[Instruction, tuple[int, ...]]],
    count: int,
    constants: Sequence[NDArray[Any]],
) -> Callable[..., Any]:
    """The calls as Python source, compiled; equal sources share their code."""
    writer = Writer()
    names = [f"s{k}" for k in range(count)]
    writer.call(calls, [*names, *map(writer.name, constants)])
    return writer.function(names)


class Writer:
    """Python source being written, and what its names stand for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """The name of a global value."""
        name = self._names.setdefault(id(value), f"g{len(self._names)}")
        self.scope[name] = value  # which keeps it alive, so that its id stays its own
        return name

    def call(
        self, calls: Sequence[tuple[Instruction, tuple[int, ...]]], names: Sequence[str]
    ) -> None:
        """Write the calls of a body, its slots and constants having these names."""
        for one, args in calls:
            *operands, out = [names[k] for k in args]
            if one.function is assign:
                self.lines.append(f"{out}[...] = {operands[0]}")
                continue
            keyword = "out=" if one.function in _KEYWORD else ""
            read = ", ".join(operands)
            self.lines.append(f"{self.name(one.function)}({read}, {keyword}{out})")

    def function(self, parameters: Sequence[str]) -> Callable[..., Any]:
        """The function whose statements were written; equal sources share their code."""
        text = "\n    ".join(self.lines) or "pass"
        exec(_compiled(", ".join(parameters), text), self.scope)
        return self.scope["body"]


@lru_cache(1024)
def _compiled(parameters: str, lines: str) -> Any:
    return compile(f"def body({parameters}):\n    {lines}\n", "<region>", "exec")


_KEYWORD: tuple[Any, ...] = (np.maximum, np.minimum)
"""The ufuncs that no longer take their result by position."""


def _walked(
    calls: Sequence[tuple[Instruction, tuple[int, ...]]],
    count: int,
    constants: Sequence[NDArray[Any]],
) -> Callable[..., Any]:
    """The calls as a walk over tuples, which needs no compiling."""
    code = [(positional(one.function), *(*args, 0, 0)[:4], len(args)) for one, args in calls]

    def body(*slots: Any) -> None:
        s = [*slots, *constants]
        for f, a, b, c, d, size in code:
            if size == 3:
                f(s[a], s[b], s[c])
            elif size == 2:
                f(s[a], s[b])
            else:
                f(s[a], s[b], s[c], s[d])

    return body


@cache
def positional(function: Callable[..., Any]) -> Callable[..., Any]:
    """A step's function, taking its result last whatever it is."""
    if function not in _KEYWORD:
        return function

    def call(x: Any, y: Any, out: Any) -> Any:
        return function(x, y, out=out)

    return call
