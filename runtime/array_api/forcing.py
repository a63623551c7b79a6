"""Forcing: compute pending symbols once, op by op or as a compiled Program.

`value_of` collects the pending symbols that its argument depends on. Repeated or large structures
run as a Program; small new ones run op by op, with a cached kernel for each combination of op,
attributes and types. The key of the cache of Programs is a piece's structure: ops, attributes,
types and operand positions. Reference counts tell which intermediate values an Array or another
pending symbol still needs; only these values are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from sys import getrefcount
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from graphir.conversions import convert
from graphir.hints import Array
from graphir.public import DType, Graph, GraphirError, Symbol, ops
from graphir.runtime.array_api.lazy import ARRAYS, PENDING, TAPE, Lazy
from graphir.runtime.program import Program
from graphir.runtime.results import REFUSAL_ERRORS, counts_references, refused
from graphir.semantics.evaluation import contiguous, settings_of
from graphir.semantics.kernels import KERNELS

Call: TypeAlias = Callable[..., Array]
Pending: TypeAlias = dict[Lazy, tuple[Lazy, ...]]

# -- pieces, and their Programs

_MOST_PROGRAMS = 256
"""The most structures in the cache; the least recently used structure is evicted first."""

_AGAIN = 3
"""The occurrence of a structure from which on it runs as a Program."""

_LARGE = 1 << 16
"""The mean elements per op beyond which compiling a Program pays even for one run."""


class PendingPiece:
    """Symbols to compute, with a structural key that identifies inputs by their types alone.

    `todo` maps each symbol to its operands, in topological order; `targets` are the results.
    """

    def __init__(self, todo: Mapping[Lazy, tuple[Lazy, ...]], targets: Sequence[Lazy]) -> None:
        self.todo, self.targets = todo, targets
        self.inputs: list[Lazy] = []
        places: dict[Lazy, int] = {}
        key: list[Any] = []
        for symbol, args in todo.items():
            key += symbol.op, symbol.attrs, symbol.type
            for arg in args:
                place = places.get(arg)
                if place is None:
                    self.inputs.append(arg)
                    place = places[arg] = -len(self.inputs)
                    key.append(arg.type)
                key.append(place)
            places[symbol] = len(places)
        key += [places[target] for target in targets]
        self.key = tuple(key)

    @property
    def is_large(self) -> bool:
        """Whether the computation takes long compared with the compilation of a Program."""
        sizes: Any = [symbol.type.size for symbol in self.todo]
        return sum(sizes) > _LARGE * len(sizes)

    def program(self, beside: Program | None = None) -> Program:
        """Compile the Program of the piece; it shares scratch memory with `beside`."""
        graph = Graph("array_api", rules=TAPE.rules)
        symbols: dict[Lazy, Symbol] = {symbol: graph.input(symbol.type) for symbol in self.inputs}
        for symbol, args in self.todo.items():
            operands = tuple([symbols[arg] for arg in args])
            symbols[symbol] = graph.append(
                symbol.op, operands, symbol.attrs, symbol.type, symbol.source
            )
        graph.output(*[symbols[symbol] for symbol in self.targets])
        return Program(graph, memory=beside.memory if beside else None)


class Programs:
    """A cache of recent structures with their numbers of occurrences and their Programs.

    All Programs share their scratch memory.
    """

    def __init__(self) -> None:
        self._first: Program | None = None
        self._seen_keys: dict[Any, tuple[int, Program | None]] = {}
        self._lock = Lock()

    def of(self, piece: PendingPiece) -> Program | None:
        """Return the Program of a piece, or None for a small new piece."""
        with self._lock:
            times, program = self._seen_keys.pop(piece.key, (0, None))
            if program is None and (times + 1 >= _AGAIN or piece.is_large):
                program = piece.program(self._first)
                self._first = self._first or program
            self._seen_keys[piece.key] = times + 1, program
            while len(self._seen_keys) > _MOST_PROGRAMS:
                del self._seen_keys[next(iter(self._seen_keys))]
        return program


# -- the calls of single ops

_MOST_CALLS = 1 << 12
_CALLS: dict[Any, Call] = {}


def call_of(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """Return the function that computes a symbol from its operands' values, as `interpret` does.

    Its result is C-contiguous. Call the function inside `np.errstate(all="ignore")`.
    """
    key = (symbol.op, symbol.attrs, *[arg.type for arg in args])
    entry = _CALLS.get(key)
    if entry is None:
        if len(_CALLS) >= _MOST_CALLS:
            _CALLS.clear()
        entry = _CALLS[key] = _make_call(symbol, args)
    return entry


def _make_call(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """Return the kernel of a symbol, with conversions of its operands if necessary.

    Kernels compute in all dtypes of the standard directly, so that no legalization is needed.
    """
    result = symbol.dtype
    if symbol.op is ops.cast:
        return partial(_cast, args[0].dtype, result)
    target_dtypes = TAPE.builder.infer(symbol.op, args, symbol.attrs).operands
    settings = settings_of(symbol.op, result, symbol.attrs, {}, TAPE.tf32)
    kernel = partial(KERNELS[symbol.op.name], **settings)
    casts = [(arg.dtype, to) for arg, to in zip(args, target_dtypes, strict=True)]
    if all(source is to for source, to in casts):
        return partial(_call, kernel, result)
    return partial(_call_cast, casts, kernel, result)


def _cast(source: DType, target: DType, x: Array) -> Array:
    return contiguous(convert(x, source, target))


def _call(kernel: Call, result: DType, *operands: Array) -> Array:
    result_array = np.asarray(kernel(*operands))
    if result_array.dtype != result.storage:  # kernels return indices as int64
        result_array = convert(result_array, DType.from_numpy(result_array.dtype), result)
    return contiguous(result_array)


def _call_cast(
    casts: list[tuple[DType, DType]], kernel: Call, result: DType, *operands: Array
) -> Array:
    pairs = zip(operands, casts, strict=True)
    return _call(kernel, result, *[contiguous(convert(x, *cast)) for x, cast in pairs])


# -- forcing

LIMIT = 1 << 29
"""The most bytes that pending symbols may hold; beyond the limit they are computed at once."""

MANY = 128
"""The most pending ops to recount; repeated recounts of more would cost more than computing."""

PROGRAMS = Programs()


def value_of(symbol: Lazy) -> Array:
    """Return the value of a symbol, computed at first use; the caller must not modify it."""
    return symbol.value if symbol.value is not None else _force(symbol)


def bounded(symbol: Lazy) -> Lazy:
    """Return the symbol; compute it if its pending operands hold more than LIMIT bytes."""
    if symbol.held_bytes > LIMIT:
        todo = pending(symbol)
        symbol.held_bytes = _held_bytes(todo)  # an exact recount: operands may be shared
        many = len(todo) > MANY
        del todo  # its references would count as holders
        if symbol.held_bytes > LIMIT or many:
            value_of(symbol)
    return symbol


def _held_bytes(todo: Pending) -> int:
    inputs = {arg for args in todo.values() for arg in args if arg not in todo}
    return PENDING * len(todo) + sum(value_of(symbol).nbytes for symbol in inputs)


def pending(target: Lazy) -> Pending:
    """Return the pending symbols that `target` depends on, in topological order, with operands."""
    todo: Pending = {target: target.args}
    waiting = [target]
    while waiting:
        for arg in todo[waiting.pop()]:
            if arg.value is None and arg not in todo:
                args = arg.args
                if arg.value is None:  # still pending: no other thread cleared args
                    todo[arg] = args
                    waiting.append(arg)
    return {arg: todo[arg] for arg in sorted(todo, key=_place)}


def _place(symbol: Lazy) -> int:
    return symbol.index


def _force(target: Lazy) -> Array:
    todo = pending(target)
    if target.value is not None:  # another thread has computed it
        return target.value
    targets = [*_held_elsewhere(todo, target), target]
    with np.errstate(all="ignore"):
        values = _compute(todo, targets)
    for symbol, value in zip(targets, values, strict=True):
        symbol.settle(value)
    return values[-1]


def _held_elsewhere(todo: Pending, target: Lazy) -> list[Lazy]:
    """Return the symbols whose values an Array or another pending symbol needs later."""
    if len(todo) == 1:
        return []
    if not counts_references():
        return [symbol for symbol in todo if symbol is not target]
    uses = Counter([id(arg) for args in todo.values() for arg in args])
    return [
        symbol
        for symbol in todo
        if symbol is not target and getrefcount(symbol) - uses[id(symbol)] > _UNHELD
    ]


def _references() -> int:
    """Return the reference count that `_held_elsewhere` sees for an otherwise unreferenced key."""
    todo: dict[object, None] = {object(): None}
    (count,) = [getrefcount(item) for item in todo]
    return count


_UNHELD = _references()


def _compute(todo: Pending, targets: Sequence[Lazy]) -> list[Array]:
    if len(todo) > 1:
        piece = PendingPiece(todo, targets)
        program = PROGRAMS.of(piece)
        if program is not None:
            try:
                results = program(*[value_of(each) for each in piece.inputs])
                return list(results) if len(targets) > 1 else [results]
            except GraphirError:
                pass  # the op-by-op run raises the error with the op's own line
    return _one_by_one(todo, targets)


def _one_by_one(todo: Pending, targets: Sequence[Lazy]) -> list[Array]:
    """Compute op by op and return the values of `targets`; free other values after last use."""
    last = {arg: symbol for symbol, args in todo.items() for arg in args if arg in todo}
    keep = set(targets)
    values: dict[Lazy, Array] = {}
    for symbol, args in todo.items():
        operands = [values[operand] if operand in values else value_of(operand) for operand in args]
        try:
            values[symbol] = call_of(symbol, args)(*operands)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol).having(vocabulary=ARRAYS) from None
        for operand in args:
            if last.get(operand) is symbol and operand not in keep:
                values.pop(operand, None)
    return [values[symbol] for symbol in targets]
