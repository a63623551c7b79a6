"""NumPy's functions that write to an array: copyto, put, place, putmask and similar functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.errors import GraphError
from graphir.numpy_api.arrays.indexing import put
from graphir.numpy_api.arrays.memory import ArrayValue, TraceMemory, plainly
from graphir.numpy_api.arrays.operands import (
    VALUES,
    array_from,
    assigned,
    broadcast,
    is_known,
    operand,
    plains,
    stored,
)


def _target(x: Any, name: str) -> ArrayValue:
    if not isinstance(x, ArrayValue):
        raise GraphError(
            f"np.{name}: writes to an array of elsewhere; got a {type(x).__name__}; use np.array(x)"
        )
    x.check_writable()
    return x


def _is_number(value: Any) -> bool:
    """Whether a value is a known number of Python or NumPy, or a traced number."""
    return not isinstance(value, VALUES) and np.isscalar(value)


def _copyto(
    memory: TraceMemory, dst: Any, src: Any, casting: str = "same_kind", where: Any = True
) -> None:
    into = _target(dst, "copyto")
    value: Any = src if _is_number(src) else array_from(memory, src)
    if is_known(into, value, where):
        plainly(np.copyto, into.plain, plains(value), cast("Any", casting), where=plains(where))
        into.cell.changed()
        memory.uses_layouts = True
        return
    if _is_number(src):
        number = plains(src)
        plainly(np.copyto, np.empty((), into.element.to_numpy()), number, cast("Any", casting))
        symbol = assigned(memory, value, into.element)
    else:
        symbol = stored(memory, into, broadcast(memory, value.read(), into.dims), casting)
    symbol = broadcast(memory, symbol, into.dims)
    if where is not True:
        symbol = memory.graph.apply(ops.where, (operand(memory, where), symbol, into.read()), {})
    into.write(symbol)


def _put_flat(x: ArrayValue, places: Any, values: Any) -> None:
    """Set elements by their positions in row-major order; a single value serves all positions."""
    at: Any = plainly(np.unravel_index, places.reshape(-1), x.plain.shape)
    if np.ndim(values) or isinstance(values, (list, tuple)):
        several = array_from(x.memory, values)
        if several.cell is x.cell:
            raise GraphError("values are of the array that they are put into", fix="pass a copy")
        if several.size != places.size:
            raise GraphError(f"got {several.size} values for {places.size} places; give as many")
        values = several.reshape(-1)
    put(x, tuple(at), values)


def _places(x: ArrayValue, ind: Any, mode: str) -> Any:
    if not is_known(ind):
        raise GraphError("np.put: places are known when the graph runs; use x[i] = v")
    places = np.asarray(plains(ind))
    size = x.plain.size
    if mode != "raise":
        return places % size if mode == "wrap" else np.clip(places, 0, size - 1)
    plainly(operator.getitem, np.empty(size, np.int8), places)
    return np.where(places < 0, places + size, places)


def _put(memory: TraceMemory, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = _target(a, "put")
    _put_flat(x, _places(x, ind, mode), v)


def _putmask(memory: TraceMemory, a: Any, mask: Any, values: Any) -> None:
    x = _target(a, "putmask")
    if np.ndim(values):
        raise GraphError(
            "np.putmask: values are repeated by their places; use np.where(mask, y, x)"
        )
    put(x, mask if isinstance(mask, ArrayValue) else np.asarray(mask, bool), values)


def _place(memory: TraceMemory, arr: Any, mask: Any, vals: Any) -> None:
    if np.ndim(vals) and np.size(vals) != 1:
        raise GraphError("np.place: which value goes where depends on the mask; use np.where")
    x = _target(arr, "place")
    value: Any = vals
    if np.ndim(vals):
        value = array_from(memory, vals).reshape(())[()]
    put(x, mask if isinstance(mask, ArrayValue) else np.asarray(mask, bool), value)


def _put_along_axis(
    memory: TraceMemory, arr: Any, indices: Any, values: Any, axis: Any = -1
) -> None:
    x = _target(arr, "put_along_axis")
    if not is_known(indices) or axis is None:
        raise GraphError("np.put_along_axis: indices are known when the graph runs; use x[i] = v")
    at = np.asarray(plains(indices))
    axis %= x.plain.ndim
    keys: list[Any] = []
    for i, size in enumerate(x.plain.shape):
        shape = [1] * at.ndim
        shape[i] = size
        keys.append(at if i == axis else plainly(np.reshape, np.arange(size), shape))
    put(x, tuple(keys), values)


def _fill_diagonal(memory: TraceMemory, a: Any, val: Any, wrap: bool = False) -> None:
    x = _target(a, "fill_diagonal")
    places = np.zeros(x.plain.shape, np.bool_)
    plainly(np.fill_diagonal, places, True, wrap)
    _put_flat(x, np.flatnonzero(places), val)


def add_at(memory: TraceMemory, ufunc: np.ufunc, a: Any, indices: Any, *values: Any) -> None:
    """Execute ufunc.at: apply the operation once for each index, so repeated indices accumulate.

    Each round handles indices without repetition, in their order of occurrence.
    """
    x = _target(a, f"{ufunc.__name__}.at")
    if is_known(x, indices, values):
        plainly(ufunc.at, x.plain, plains(indices), *plains(values))
        x.cell.changed()
        memory.uses_layouts = True
        return
    if not is_known(indices):
        raise GraphError(
            f"np.{ufunc.__name__}.at: an index may occur twice, which is known when the graph "
            "runs; use (i == np.arange(n)[:, None]).sum(1) and the like"
        )
    places = np.arange(x.plain.size).reshape(x.plain.shape)
    places = np.asarray(plainly(operator.getitem, places, plains(indices)))
    flat = places.reshape(-1)
    others = [_spread(memory, value, places.shape) for value in values]
    order = np.argsort(flat, kind="stable")
    counts = np.zeros(flat.size, np.intp)
    for before, here in pairwise(order):
        counts[here] = counts[before] + 1 if flat[here] == flat[before] else 0
    for turn in range(int(counts.max(initial=-1)) + 1):
        which = np.flatnonzero(counts == turn)
        key = np.unravel_index(flat[which], x.plain.shape)
        result: Any = ufunc(x[key], *[other[which] for other in others])  # pyright: ignore
        x[key] = result.astype(x.plain.dtype)  # pyright: ignore


def _spread(memory: TraceMemory, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a vector with a value for each position."""
    array = array_from(memory, value) if not _is_number(value) else value
    symbol = broadcast(memory, operand(memory, array), shape) if not _is_number(array) else None
    if symbol is None:
        return np.full(shape, plains(array)).reshape(-1)
    return memory.computed(memory.reshaped(symbol, (symbol.size,)))


WRITERS: dict[Any, Callable[..., None]] = {
    np.copyto: _copyto,
    np.put: _put,
    np.putmask: _putmask,
    np.place: _place,
    np.put_along_axis: _put_along_axis,
    np.fill_diagonal: _fill_diagonal,
}
