"""Regions of a lowered graph as tasks on blocks, each of which runs a Program, and control flow."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from graphir.import_names import optional
from graphir.ops.dims import Dim, evaluate
from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.program import Program
from graphir.runtime.program.cutting import source_of
from graphir.runtime.targets.emission import bind_sizes

Labels: TypeAlias = tuple[str, ...]
"""A name for each axis of an operand; axes of one name have the same chunks."""
Arrays: TypeAlias = Mapping[Symbol, Any]


def dask_array() -> Any:
    """Return the module dask.array. Raises ImportError without dask."""
    return optional("dask.array", "dask", "the Dask target")


def rechunked(x: Any, chunks: Any) -> Any:
    """Return an array in other chunks; an array without elements in one.

    Dask's own rechunk forgets what an array without elements was computed from: an op that refuses
    its operands would not, and two dtypes of ml_dtypes of one width would be one array.
    """
    return x.rechunk(chunks) if x.size else without_elements(x.shape, x.dtype, [x])


def without_elements(shape: Sequence[int], dtype: DTypeLike, after: Sequence[Any]) -> Any:
    """Return an array without elements, in one block, computed once the arrays `after` are."""
    operands: list[Any] = []
    for place, array in enumerate(after):
        operands += [array, tuple(f"a{place}_{axis}" for axis in range(array.ndim))]
    labels = {f"new{axis}": size for axis, size in enumerate(shape)}
    return dask_array().blockwise(
        partial(_no_elements, tuple(shape), dtype),
        tuple(labels),
        *operands,
        new_axes=labels,
        concatenate=True,
        dtype=dtype,
        meta=meta(dtype, len(labels)),
    )


def _no_elements(shape: Sequence[int], dtype: DTypeLike, *after: Any) -> Any:
    return np.empty(shape, dtype)


def meta(dtype: DTypeLike, rank: int) -> Any:
    """Return an empty array that tells Dask a dtype and a rank."""
    return np.empty((0,) * rank, dtype)


def quiet(function: Callable[..., Any]) -> Any:
    """Return the function without NumPy's floating-point warnings, in any thread."""
    wrapper: Any = partial(_quietly, function)
    wrapper.__name__ = getattr(function, "__name__", "block")
    return wrapper


def _quietly(function: Callable[..., Any], *arrays: Any, **settings: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arrays, **settings)


class BlockTask:
    """A Program as the function of tasks, pickled once and unpickled once in each process."""

    def __init__(self, graph: Graph) -> None:
        # Dask runs tasks in parallel, so each task has one thread.
        self.program = Program(graph, threads=1)
        self.pickled = pickle.dumps(self.program)
        self.__name__ = graph.name

    def __call__(self, *blocks: Any) -> Any:
        """Return the results for some blocks."""
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
    """Symbols that one task computes for each block of the operands.

    `operands` are symbols of other pieces, with labels for their axes. A result has the labels that
    determine its shape, and `new0`, `new1`, ... for axes of size 1. A task takes operands whole
    along axes that the results lack, and along axes with the label `whole`.
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
        """The symbols that the task reads."""
        return [symbol for symbol, _ in self.operands]

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arrays of the results; `sizes` is unused, as each block has its own sizes."""
        return self.arrays(values)

    def arrays(self, values: Arrays) -> list[Any]:
        """Return the arrays of the results for some arrays of the operands."""
        if len(self.results) == 1:
            return [self.blocks(self.task, values, self.results[0].dtype.storage)]
        every = self.blocks(self.task, values, np.dtype(object))
        return [self._result_at(every, place) for place in range(len(self.results))]

    def blocks(self, task: Any, values: Arrays, dtype: DTypeLike, sum_labels: Labels = ()) -> Any:
        """Return the array of a task's results on each block of the operands.

        The axes of `sum_labels`, whose blocks stay apart, come first in the result.
        """
        labels = (*sum_labels, *self.labels)
        arguments: list[Any] = []
        for symbol, own in self.operands:
            rechunking = {axis: -1 for axis, label in enumerate(own) if label == self.whole}
            arguments += [
                rechunked(values[symbol], rechunking) if rechunking else values[symbol],
                own,
            ]
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

    def _result_at(self, every: Any, place: int) -> Any:
        """Return the array of one result, from blocks that are tuples of all results."""
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
    """Return the piece of elementwise symbols of one shape.

    0-d constants are part of the task, unless all operands are constants.
    """
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
    """Return the piece of one op, on operands whose axes have some labels."""
    extract = _Extract([symbol])
    inputs = [extract.input(*pair) for pair in zip(symbol.args, labels, strict=True)]
    result = extract.copy(symbol, inputs)
    return BlockPiece(extract.finished([result]), extract.operands, [symbol], whole)


def entered(symbol: Symbol) -> BlockPiece:
    """Return the piece of an input alone: its Program rounds a tensor_float32 input on load."""
    extract = _Extract([symbol])
    symbol_new = extract.input(symbol, numbered(symbol))
    return BlockPiece(extract.finished([symbol_new]), extract.operands, [symbol])


def numbered(symbol: Symbol, name: str = "a") -> Labels:
    """Return a label for each axis, counted from the last, so that broadcast axes share labels."""
    return tuple(f"{name}{axis}" for axis in reversed(range(symbol.rank)))


class _Extract:
    """A builder of a graph from symbols of another graph; labels are the dims of its inputs."""

    def __init__(self, results: Sequence[Symbol]) -> None:
        name = "-".join(dict.fromkeys(symbol.op.name for symbol in results[-3:]))
        self.new = results[0].graph.like(name=name, keeps_types=False)
        self.operands: list[tuple[Symbol, Labels]] = []

    def input(self, symbol: Symbol, labels: Labels) -> Symbol:
        """What stands for a symbol; axes of 1 stay so, and broadcast."""
        dims = [1 if dim == 1 else label for dim, label in zip(symbol.shape, labels, strict=True)]
        type_ = TensorType(symbol.dtype, dims)
        attrs = {"dtype": type_.dtype, "shape": type_.shape}
        symbol_new = self.new.append(ops.input, (), attrs, type_, symbol.location)
        names = [*self.new.input_names, f"x{len(self.operands)}"]
        self.new.set_interface([*self.new.inputs, symbol_new], names)
        self.operands.append((symbol, labels))
        return symbol_new

    def copy(self, symbol: Symbol, args: Sequence[Symbol]) -> Symbol:
        """Re-emit a symbol on operands of the new graph."""
        inference = self.new.infer(symbol.op, args, symbol.attrs)
        return self.new.append(
            symbol.op, tuple(args), inference.attrs, inference.type, symbol.source
        )

    def finished(self, outputs: Sequence[Symbol]) -> Graph:
        """Set the outputs of the new graph, and return it."""
        return self.new.set_interface(outputs=outputs)


def operands_of(symbol: Symbol, inside: set[Symbol]) -> list[Symbol]:
    """Return the operands of a symbol of a region.

    The operand of an explicit broadcast replaces the broadcast if it is inside the region.
    """
    return [source if (source := source_of(arg)) in inside else arg for arg in symbol.args]


class ControlTask:
    """An op of control flow and the live parts of its result."""

    def __init__(self, symbol: Symbol, parts: Sequence[Symbol]) -> None:
        self.results = tuple(parts)
        self.needs = list(symbol.args)
        self._graph = _alone(symbol, parts)

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arrays of the parts; the task has the sizes of all named dims."""
        task = BlockTask(bind_sizes(self._graph, sizes))
        operands: list[Any] = []
        for place, symbol in enumerate(self.needs):
            operands += [values[symbol], tuple(f"a{place}_{i}" for i in range(symbol.rank))]
        if len(self.results) == 1:
            return [_whole(task, operands, self.results[0], sizes)]
        every = dask_array().blockwise(
            *(task, (), *operands), concatenate=True, dtype=object, meta=meta(object, 0)
        )
        return [
            _whole(itemgetter(place), [every, ()], symbol, sizes)
            for place, symbol in enumerate(self.results)
        ]


def _whole(task: Any, operands: Sequence[Any], symbol: Symbol, sizes: Mapping[str, int]) -> Any:
    """Return the result of a task as an array of one block."""
    shape = [evaluate(dim, sizes) for dim in symbol.shape]
    labels = {f"new{axis}": size for axis, size in enumerate(shape)}
    dtype = symbol.dtype.storage
    return dask_array().blockwise(
        *(task, tuple(labels), *operands),
        token=symbol.args[0].op.name,
        new_axes=labels,
        concatenate=True,
        dtype=dtype,
        meta=meta(dtype, len(labels)),
    )


def _alone(symbol: Symbol, parts: Sequence[Symbol]) -> Graph:
    """Return the graph of an op of control flow alone, whose outputs are the parts."""
    new = symbol.graph.like(name=symbol.op.name, keeps_types=False)
    operands: list[Symbol] = []
    for arg in symbol.args:
        with new.at(arg.location):
            operands.append(new.input(arg.type))
    result = new.append(symbol.op, tuple(operands), symbol.attrs, symbol.type, symbol.source)
    new.output(*(new.append(ops.control.part, (result,), x.attrs, x.type, x.source) for x in parts))
    return new
