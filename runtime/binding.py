"""Input binding: match arguments to a graph's inputs, check them, and bind the symbolic dims."""

from __future__ import annotations

import re
import sys
from collections import ChainMap
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.errors import OperandInfo, ShapeError
from graphir.ir.foreign_arrays import is_foreign_array, to_numpy_array
from graphir.ir.literals import is_literal, literal_array
from graphir.ops.dims import Dim, Size, evaluate
from graphir.public import DType, ExecutionError, Graph, GraphError, Symbol


def bind(
    graph: Graph, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[NDArray[Any]], dict[str, int]]:
    """Return the inputs as arrays in the graph's order, and the size of every named dim.

    Raises ExecutionError that names the wrong input and the mismatch: dtype, rank, size, name or
    count.
    """
    values = match_inputs(graph, inputs, keywords)
    arrays = [
        check_input(graph, symbol, name, value)
        for symbol, name, value in zip(graph.inputs, graph.input_names, values, strict=True)
    ]
    return arrays, sizes_of(graph, arrays)


def match_inputs(graph: Graph, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """Return positional and keyword arguments in the order of a graph's inputs.

    An argument may be a tree (dicts, lists, tuples), each leaf of which is an input: that whose
    name is the leaf's path. An input without argument has its value in `graph.defaults`. Raises
    ExecutionError for a missing, unknown, repeated or surplus argument or leaf.
    """
    names = graph.input_names
    inputs, keywords = _leaves_of_inputs(graph, inputs, keywords)
    if len(inputs) > len(names):
        problem = f"graph {graph.name!r} takes {len(names)} inputs ({_inputs_text(graph)})"
        raise ExecutionError(problem, got=str(len(inputs)))
    all_names, first = set(names), set(names[: len(inputs)])
    for name in keywords:
        if name not in all_names:
            problem = f"graph {graph.name!r} has no input {name!r}"
            raise ExecutionError(problem, fix=f"it takes ({_inputs_text(graph)})")
        if name in first:
            raise ExecutionError(
                f"graph {graph.name!r} takes one value for input {name!r}", got="two values"
            )
    values = {**graph.defaults, **keywords}
    missing = [name for name in names[len(inputs) :] if name not in values]
    if missing:
        problem = f"graph {graph.name!r} is missing {', '.join(missing)}"
        raise ExecutionError(problem, fix=f"it takes ({_inputs_text(graph)})")
    return [*inputs, *(values[name] for name in names[len(inputs) :])]


def _leaves_of_inputs(
    graph: Graph, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments with the leaves of each tree in its place, in the order of the graph."""
    if all(hasattr(value, "dtype") or is_literal(value) for value in (*inputs, *keywords.values())):
        return inputs, keywords
    flat: list[Any] = []
    for place, value in enumerate(inputs):
        names = graph.input_names[len(flat) :]
        leaves = _named_leaves(graph, f"argument {place + 1}", value, names)
        flat += [value] if leaves is None else [leaves[name] for name in names[: len(leaves)]]
    by_name: dict[str, Any] = {}
    for keyword, value in keywords.items():
        leaves = _named_leaves(graph, keyword, value, graph.input_names, keyword)
        by_name |= {keyword: value} if leaves is None else leaves
    return flat, by_name


def _named_leaves(
    graph: Graph, what: str, value: Any, names: Sequence[str], parameter: str | None = None
) -> dict[str, Any] | None:
    """Return the leaves of a tree by the inputs that have their paths; None of other values.

    `names` are those of the inputs without argument. Without `parameter` the leaves are those of
    the first of them, and the parameter is the one for which most leaves have an input.
    """
    leaves = dict(_tree_leaves(value))
    takes_none = bool(graph.provenance.library)  # as functions of JAX do
    if "" in leaves or (value is None and not takes_none):
        return None
    endings = {path: "_" + re.sub(r"\W+", "_", path).strip("_") for path in leaves}
    parameters = {} if parameter is None else {parameter: None}
    if parameter is None:
        matches = ((name, end) for name in names for end in endings.values() if name.endswith(end))
        parameters = dict.fromkeys(name.removesuffix(end) for name, end in matches)
    all_names = set(names)
    counts = [sum(name + end in all_names for end in endings.values()) for name in parameters]
    if not any(counts) and isinstance(value, (list, tuple)) and value:
        return None  # no tree, but numbers in place of an array
    first = max(zip(counts, parameters, strict=True), key=lambda pair: pair[0], default=(0, ""))[1]
    for path, end in endings.items():
        if first + end not in all_names:
            problem = f"graph {graph.name!r} has no input for {what}{path}"
            raise ExecutionError(problem, fix=f"it takes ({_inputs_text(graph)})")
    by_name = {first + end: leaves[path] for path, end in endings.items()}
    absent = [name for name in names[: len(leaves)] if name not in by_name]
    if absent and parameter is None:
        problem = f"{what} of graph {graph.name!r} has no leaf for input {absent[0]!r}"
        raise ExecutionError(problem, got=", ".join(f"{what}{path}" for path in leaves))
    return by_name


def _tree_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree with their paths; that of an array or a number is empty.

    Objects of other classes are trees if JAX has registered their classes. None has no leaves.
    """
    if isinstance(value, Mapping):
        parts = [(f"[{key!r}]", part) for key, part in cast("Any", value).items()]
    elif isinstance(value, tuple) and hasattr(cast("Any", value), "_fields"):
        parts = [(f".{name}", part) for name, part in cast("Any", value)._asdict().items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{i}]", part) for i, part in enumerate(cast("Sequence[Any]", value))]
    elif value is None:
        parts = []
    else:
        jax = None if is_literal(value) or hasattr(value, "dtype") else sys.modules.get("jax")
        trees: Any = getattr(jax, "tree_util", None)
        for keys, leaf in trees.tree_flatten_with_path(value)[0] if trees else [((), value)]:
            yield path + (trees.keystr(keys) if trees else ""), leaf
        return
    for key, part in parts:
        yield from _tree_leaves(part, path + key)


def _inputs_text(graph: Graph) -> str:
    pairs = zip(graph.input_names, graph.inputs, strict=True)
    return ", ".join(f"{name}: {symbol.type}" for name, symbol in pairs)


def check_input(graph: Graph, symbol: Symbol, name: str, value: Any) -> NDArray[Any]:
    """Return one input as an array in the storage dtype of its declared dtype.

    Accepts a Python number for a 0-d input if the dtype can represent it, and arrays of other
    libraries. Rounds float32 to tensor_float32. Raises ExecutionError that names the mismatch.
    """
    dtype = graph.concrete_dtype(symbol.dtype)
    if is_literal(value):
        if symbol.rank:
            raise _unfit(graph, symbol, name, f"the number {value!r}", "use an array")
        try:
            return literal_array(value, dtype, None, graph.tf32)[1]
        except GraphError as error:
            what = f"input {name!r} of graph {graph.name!r} is {symbol.type}"
            raise ExecutionError.like(error).within(what) from None
    kind = cast("type[Any]", type(value))
    if kind is not np.ndarray and is_foreign_array(kind):
        try:
            value = to_numpy_array(value)
        except GraphError as error:
            what = f"input {name!r} of graph {graph.name!r} is {symbol.type}"
            raise ExecutionError.like(error).within(what) from None
    require_type(graph, symbol, name, value, cast("type[Any]", type(value)))
    array: NDArray[Any] = np.asarray(value)
    return convert(array, DType.float32, dtype, graph.tf32) if dtype.emulated else array


def require_type(graph: Graph, symbol: Symbol, name: str, array: Any, kind: type[Any]) -> None:
    """Raise ExecutionError unless an array has the dtype and rank of an input.

    `kind` is the NumPy class of the array, or of the array that a wrapper of another library holds;
    it must be np.ndarray or np.generic, and no masked array.
    """
    dtype = graph.concrete_dtype(symbol.dtype)
    # Plain arrays skip the access to np.ma, which would import numpy.ma.
    is_masked = kind is not np.ndarray and issubclass(kind, np.ma.MaskedArray)
    if is_masked or not issubclass(kind, (np.ndarray, np.generic)):
        fix = "x.filled(...)" if is_masked else f"np.asarray(..., {numpy_name(dtype)})"
        raise _unfit(graph, symbol, name, f"a {kind.__name__}", f"use {fix}")
    if array.dtype != dtype.storage:
        fix = f"use .astype({numpy_name(dtype)}), or cast inside the graph"
        storage = f", stored as {dtype.storage}"
        raise _unfit(graph, symbol, name, f"an array of {array.dtype}", fix, storage)
    if array.ndim != symbol.rank:
        shape, axes = f"an array of shape {array.shape}", f", of {symbol.rank} axes"
        raise _unfit(graph, symbol, name, shape, (), axes)


def _unfit(
    graph: Graph,
    symbol: Symbol,
    name: str,
    got: str,
    fix: str | tuple[str, ...],
    requirement: str = "",
) -> ExecutionError:
    """Return the error for a value that does not fit an input."""
    return ExecutionError(
        f"input {name!r} of graph {graph.name!r} is {symbol.type}{requirement}",
        got=got,
        fix=fix,
        operands=(OperandInfo(name, symbol.type, symbol.location),),
    )


def numpy_name(dtype: DType) -> str:
    """Return the expression of a dtype's storage dtype: `np.float32`, `ml_dtypes.bfloat16`."""
    module = "np" if dtype.storage.isbuiltin == 1 else "ml_dtypes"
    return f"{module}.{'bool_' if dtype is DType.bool else dtype.storage.name}"


def sizes_of(graph: Graph, arrays: Sequence[Any]) -> dict[str, int]:
    """Return the size of every named dim; raise ExecutionError for a size that contradicts a dim.

    The plain dims bind their names first. Then each dim that is linear in one unbound name binds
    that name, until no dim binds a further name.
    """
    sizes: dict[str, int] = {}
    dims = [
        (name, axis, dim, size)
        for name, symbol, array in zip(graph.input_names, graph.inputs, arrays, strict=True)
        for axis, (dim, size) in enumerate(zip(symbol.shape, array.shape, strict=True))
    ]
    plain_first = sorted(dims, key=lambda dim: not str(dim[2]).isidentifier())
    for _ in dims:
        before = len(sizes)
        for _, _, dim, size in plain_first:
            _solve(dim, size, sizes)
        if len(sizes) == before:
            break
    for name, axis, dim, size in dims:
        _compare(graph, name, axis, dim, size, sizes)
    return sizes


def _solve(dim: Size, size: int, sizes: dict[str, int]) -> None:
    """Bind the one unbound name of a dim that is linear in that name."""
    name = unknown_of(dim, sizes)
    if name is None or not isinstance(dim, Dim):
        return
    at_0, at_1 = (dim.evaluate(ChainMap({name: n}, sizes)) for n in (0, 1))
    if slope := at_1 - at_0:
        quotient, rest = divmod(size - at_0, slope)
        if quotient >= 0 and not rest:
            sizes[name] = quotient


def unknown_of(dim: Size, bound_names: Container[str]) -> str | None:
    """Return the only unbound name of a dim, if the dim is linear in it; else None."""
    if not isinstance(dim, Dim):
        return None
    free_names = [name for name in dim.names() if name not in bound_names]
    # A single unbound name outside any floor division: the dim is linear in it.
    linear = len(free_names) == 1 and any(free_names[0] in monomial for monomial, _ in dim.terms)
    return free_names[0] if linear else None


def _compare(
    graph: Graph, name: str, axis: int, dim: Size, size: int, sizes: Mapping[str, int]
) -> None:
    what = f"axis {axis} of input {name!r} of graph {graph.name!r} is {dim}"
    try:
        size_expected = evaluate(dim, sizes)
    except ShapeError as error:
        raise ExecutionError(what, reason=error.summary, got=str(size)) from None
    if size_expected != size:
        bound = f", which is {size_expected} here" if isinstance(dim, Dim) else ""
        raise ExecutionError(f"{what}{bound}", got=str(size))
