"""Symbols of a lowered graph as one task on blocks: a Program, pickled once."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import numpy as np

from graphir import Graph, Symbol, TensorType, ops
from graphir.ops.dims import Dim
from runtime.program import Program
from runtime.program.cutting import source_of
from runtime.targets.emission import optional

Labels: TypeAlias = tuple[str, ...]
"""A name for each axis of an operand: axes of one name are cut alike."""
Arrays: TypeAlias = Mapping[Symbol, Any]


def dask_array() -> Any:
    """The module dask.array; ImportError without dask."""
    return optional("dask.array", "dask", "the Dask target")


def meta(dtype: Any, rank: int) -> Any:
    """What tells Dask the dtype and rank of an array: one without elements."""
    return np.empty((0,) * rank, dtype)


def quiet(function: Callable[..., Any]) -> Any:
    """The function, its floating point errors silent in whatever thread it runs."""
    wrapper: Any = partial(_quietly, function)
    wrapper.__name__ = getattr(function, "__name__", "block")
    return wrapper


def _quietly(function: Callable[..., Any], *arrays: Any, **settings: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arrays, **settings)


class BlockTask:
    """A Program as the function of tasks: pickled once, and unpickled once by a process."""

    def __init__(self, graph: Graph) -> None:
        # Tasks run in parallel: each has one thread.
        self.program = Program(graph, threads=1)
        self.pickled = pickle.dumps(self.program)
        self.__name__ = graph.name

    def __call__(self, *blocks: Any) -> Any:
        """The results for these blocks."""
        return self.program(*blocks)

    def __dask_tokenize__(self) -> bytes:
        return self.pickled

    def __reduce__(self) -> tuple[Any, tuple[str, bytes]]:
        return _task, (self.__name__, self.pickled)


@lru_cache(maxsize=1024)
def _task(name: str, payload: bytes) -> BlockTask:
    task = BlockTask.__new__(BlockTask)
    task.program, task.pickled, task.__name__ = pickle.loads(payload), payload, name
    return task


class BlockPiece:
    """Symbols that one task computes for each block of its operands.

    `operands` are symbols that others compute, with labels for their axes. A result has the labels
    that its shape follows from, `new0` and so on where it is 1; along other axes a task takes
    operands as a whole. So it does along those labelled `whole`.
    """

    def __init__(
        self,
        graph: Graph,
        operands: Sequence[tuple[Symbol, Labels]],
        results: Sequence[Symbol],
        whole: str = "",
    ) -> None:
        self.operands, self.results, self.whole = tuple(operands), tuple(results), whole
        self.labels = tuple(
            str(dim) if isinstance(dim, Dim) else f"new{axis}"
            for axis, dim in enumerate(graph.outputs[0].shape)
        )
        self.task = BlockTask(graph)

    @property
    def needs(self) -> list[Symbol]:
        """The symbols that are computed before."""
        return [symbol for symbol, _ in self.operands]

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """The results; blocks have sizes of their own."""
        return self.arrays(values)

    def arrays(self, values: Arrays) -> list[Any]:
        """The results for these arrays of the operands."""
        if len(self.results) == 1:
            return [self.blocks(self.task, values, self.results[0].dtype.storage)]
        every = self.blocks(self.task, values, np.dtype(object))
        return [self._one(every, place) for place in range(len(self.results))]

    def blocks(self, task: Any, values: Arrays, dtype: Any, sum_labels: Labels = ()) -> Any:
        """What a task makes of each block of the operands, which are cut along `summed` too."""
        labels = (*sum_labels, *self.labels)
        arguments: list[Any] = []
        for symbol, own in self.operands:
            rechunking = {axis: -1 for axis, label in enumerate(own) if label == self.whole}
            arguments += [values[symbol].rechunk(rechunking) if rechunking else values[symbol], own]
        return dask_array().blockwise(
            task,
            labels,
            *arguments,
            token=self.task.__name__,
            new_axes={label: 1 for label in labels if label.startswith("new")},
            adjust_chunks=dict.fromkeys(sum_labels, 1),
            concatenate=True,
            dtype=dtype,
            meta=meta(dtype, len(labels)),
        )

    def _one(self, every: Any, place: int) -> Any:
        """One of several results, which a task gives as a tuple."""
        labels, symbol = self.labels, self.results[place]
        dtype = symbol.dtype.storage
        return dask_array().blockwise(
            itemgetter(place),
            labels,
            every,
            labels,
            token=symbol.op.name,
            dtype=dtype,
            meta=meta(dtype, len(labels)),
        )


def region(symbols: Sequence[Symbol], results: Sequence[Symbol]) -> BlockPiece:
    """Elementwise symbols of one shape; known numbers are part of the task, unless all are."""
    extract, inside, values = _Extract(results), set(symbols), dict[Symbol, Symbol]()
    args = {arg for symbol in symbols for arg in operands_of(symbol, inside)} - inside
    numbers = {arg for arg in args if arg.op is ops.constant and not arg.rank}
    for arg in sorted(args, key=attrgetter("index")):
        number = arg in numbers and numbers != args
        values[arg] = extract.copy(arg, ()) if number else extract.input(arg, numbered(arg))
    for symbol in symbols:
        args_new = [values[arg] for arg in operands_of(symbol, inside)]
        values[symbol] = extract.copy(symbol, args_new)
    outputs = [values[result] for result in results]
    return BlockPiece(extract.finished(outputs), extract.operands, results)


def single(symbol: Symbol, labels: Sequence[Labels], whole: str = "") -> BlockPiece:
    """One op, on operands whose axes have these labels."""
    extract = _Extract([symbol])
    inputs = [extract.input(*pair) for pair in zip(symbol.args, labels, strict=True)]
    result = extract.copy(symbol, inputs)
    return BlockPiece(extract.finished([result]), extract.operands, [symbol], whole)


def entered(symbol: Symbol) -> BlockPiece:
    """An input by itself: Programs round one of tensor_float32 as it enters."""
    extract = _Extract([symbol])
    symbol_new = extract.input(symbol, numbered(symbol))
    return BlockPiece(extract.finished([symbol_new]), extract.operands, [symbol])


def numbered(symbol: Symbol, name: str = "a") -> Labels:
    """A label for each axis, counted from the last: those that broadcast have the same."""
    return tuple(f"{name}{axis}" for axis in reversed(range(symbol.rank)))


class _Extract:
    """A graph in the making, of symbols of another, whose inputs have labels for dims."""

    def __init__(self, results: Sequence[Symbol]) -> None:
        self.new = results[0].graph.like()
        self.new.name = "-".join(dict.fromkeys(symbol.op.name for symbol in results[-3:]))
        self.new.out_types = None
        self.operands: list[tuple[Symbol, Labels]] = []

    def input(self, symbol: Symbol, labels: Labels) -> Symbol:
        """What stands for a symbol; axes of 1 stay so, and broadcast."""
        dims = [1 if dim == 1 else label for dim, label in zip(symbol.shape, labels, strict=True)]
        type_ = TensorType(symbol.dtype, dims)
        attrs = {"dtype": type_.dtype, "shape": type_.shape}
        symbol_new = self.new.append(ops.input, (), attrs, type_, symbol.location)
        self.new.input_names.append(f"x{len(self.operands)}")
        self.new.inputs.append(symbol_new)
        self.operands.append((symbol, labels))
        return symbol_new

    def copy(self, symbol: Symbol, args: Sequence[Symbol]) -> Symbol:
        """An op on what its operands have become."""
        inference = self.new.infer(symbol.op, args, symbol.attrs)
        return self.new.append(
            symbol.op, tuple(args), inference.attrs, inference.type, symbol.source
        )

    def finished(self, outputs: Sequence[Symbol]) -> Graph:
        """The graph with these outputs."""
        self.new.outputs = tuple(outputs)
        return self.new


def operands_of(symbol: Symbol, inside: set[Symbol]) -> list[Symbol]:
    """The operands of a symbol of a region; one that repeats what is inside is that itself."""
    return [source if (source := source_of(arg)) in inside else arg for arg in symbol.args]
