"""NumPy's functions that write to an array: copyto, put, place, putmask and similar functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.indexing import flat_places, keys_of, put
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse, TraceMemory, plainly
from graphir.numpy_api.arrays.operands import (
    VALUES,
    array_from,
    assigned,
    broadcast,
    cast_to_out,
    is_known,
    operand,
    plains,
    truth_of,
    where_mask,
)
from graphir.numpy_api.counting import joined_at


def _target(x: Any, name: str) -> ArrayValue:
    if not isinstance(x, ArrayValue):
        raise GraphError(
            "the first argument is an array that the traced function has not created",
            op=f"np.{name}",
            got=f"a {type(x).__name__}",
            fix="use np.array(x)",
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
        memory.reads_layouts(LayoutUse.ALL)
        return
    if _is_number(src):
        number = plains(src)
        plainly(np.copyto, np.empty((), into.element.to_numpy()), number, cast("Any", casting))
        symbol = assigned(memory, value, into.element)
    else:
        symbol = cast_to_out(memory, into, broadcast(memory, value.read(), into.dims), casting)
    symbol = broadcast(memory, symbol, into.dims)
    if where is not True:
        mask = operand(memory, where_mask(memory, where))
        symbol = memory.graph.apply(ops.where, (mask, symbol, into.read()), {})
    into.write(symbol)


def _put_flat(x: ArrayValue, places: Any, values: Any) -> None:
    """Set elements by their positions in row-major order; a single value serves all positions."""
    at: Any = plainly(np.unravel_index, places.reshape(-1), x.plain.shape)
    if np.ndim(values) or isinstance(values, (list, tuple)):
        several = array_from(x.memory, values)
        if several.cell is x.cell:
            raise GraphError("values are of the array that they are put into", fix="pass a copy")
        if several.size != places.size:
            raise GraphError(
                f"each of {places.size} places takes one value", got=f"{several.size} values"
            )
        values = several.reshape(-1)
    put(x, tuple(at), values)


def _places(x: ArrayValue, ind: Any, mode: str) -> Any:
    if not is_known(ind):
        raise GraphError("the indices depend on values", op="np.put", fix="use x[i] = v")
    places = np.asarray(plains(ind))
    size = x.plain.size
    if mode != "raise":
        return places % size if mode == "wrap" else np.clip(places, 0, size - 1)
    plainly(operator.getitem, np.empty(size, np.int8), places)
    return np.where(places < 0, places + size, places)


def _put(memory: TraceMemory, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = _target(a, "put")
    if not is_known(ind) and x.in_order:
        _put_computed(x, array_from(memory, ind), v, mode)
        return
    _put_flat(x, _places(x, ind, mode), v)


def _put_computed(x: ArrayValue, ind: Any, v: Any, mode: str) -> None:
    """Set elements at places that are known only at run time; few values are repeated."""
    size, flat = x.plain.size, cast("Any", x).reshape(-1)
    at = ind.reshape(-1)
    if mode != "raise":
        at = at % size if mode == "wrap" else np.clip(at, 0, size - 1)
    flat[at] = v if _is_number(v) else _repeated(x.memory, v, at.size)


def _repeated(memory: TraceMemory, values: Any, size: int) -> Any:
    """Return values as a vector of a size: cut, or repeated from the first on."""
    several = array_from(memory, values).reshape(-1)
    return several[np.arange(size) % several.size]


def _putmask(memory: TraceMemory, a: Any, mask: Any, values: Any) -> None:
    """Set the elements at which a mask is true to the values at these places, repeated."""
    x = _target(a, "putmask")
    if not _is_number(values):
        values = _repeated(memory, values, x.plain.size).reshape(x.dims)
    _put_true(memory, x, mask, values)


def _place(memory: TraceMemory, arr: Any, mask: Any, vals: Any) -> None:
    """Set the elements at which a mask is true to the values in turn, repeated as needed."""
    x = _target(arr, "place")
    if not _is_number(vals):
        several = array_from(memory, vals).reshape(-1)
        mask = _array_of(memory, truth_of(memory, mask)).reshape(-1)
        count: Any = np.cumsum(mask) - 1
        vals = several[np.maximum(count, 0) % several.size].reshape(x.dims)
    _put_true(memory, x, mask, vals)


def _put_true(memory: TraceMemory, x: ArrayValue, mask: Any, values: Any) -> None:
    where = _array_of(memory, truth_of(memory, mask)).reshape(x.dims)
    _copyto(memory, x, values, "unsafe", where)


def _array_of(memory: TraceMemory, value: Any) -> Any:
    return memory.value_of(value) if isinstance(value, Symbol) else value


def _put_along_axis(
    memory: TraceMemory, arr: Any, indices: Any, values: Any, axis: Any = -1
) -> None:
    x = _target(arr, "put_along_axis")
    if axis is None:
        raise GraphError("np.put_along_axis: axis=None has no op", fix="use x.reshape(-1)[i] = v")
    at: Any = np.asarray(plains(indices)) if is_known(indices) else array_from(memory, indices)
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


def add_at(memory: TraceMemory, ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> None:
    """Execute ufunc.at: apply the operation once for each index, so repeated indices accumulate.

    Sums in the dtype of the array are one op. Otherwise each round handles indices without
    repetition, in their order of occurrence.
    """
    x = _target(a, f"{ufunc.__name__}.at")
    values = () if b is None else (b,)
    if is_known(x, indices, values):
        plainly(ufunc.at, x.plain, plains(indices), *plains(values))
        x.cell.changed()
        memory.reads_layouts(LayoutUse.ALL)
        return
    if not is_known(indices):
        _join_at(x, ufunc, indices, *values)
        return
    places = np.arange(x.plain.size).reshape(x.plain.shape)
    places = np.asarray(plainly(operator.getitem, places, plains(indices)))
    flat = places.reshape(-1)
    others = [_spread(memory, value, places.shape) for value in values]
    if ufunc in (np.add, np.subtract):
        whole, new = x.read(), array_from(memory, others[0]).read()
        if memory.graph.rules.promote(whole.type, new.type) is whole.dtype:
            whole = memory.reshaped(whole, (whole.size,))
            result = joined_at(ufunc, whole, memory.constant_array(flat), new)
            x.write(memory.reshaped(result, x.dims))
            return
    order = np.argsort(flat, kind="stable")
    counts = np.zeros(flat.size, np.intp)
    for before, here in pairwise(order):
        counts[here] = counts[before] + 1 if flat[here] == flat[before] else 0
    for turn in range(int(counts.max(initial=-1)) + 1):
        which = np.flatnonzero(counts == turn)
        key = np.unravel_index(flat[which], x.plain.shape)
        result: Any = ufunc(x[key], *[other[which] for other in others])  # pyright: ignore
        x[key] = result.astype(x.plain.dtype)  # pyright: ignore


def _join_at(x: ArrayValue, ufunc: np.ufunc, indices: Any, value: Any) -> None:
    """Execute ufunc.at for indices that are known only at run time."""
    memory, whole = x.memory, x.read()
    keys = keys_of(memory, indices)
    if any(isinstance(key, VALUES) and key.read().dtype is DType.bool for key in keys):
        raise GraphError("which elements a mask selects depends on values", fix="use np.where")
    if len(keys) == 1 and isinstance(keys[0], VALUES):
        places = keys[0].read()
    else:
        places = flat_places(memory, x.plain.shape, keys)
        whole = memory.reshaped(whole, (whole.size,))
    if isinstance(value, float) and x.element.to_numpy().type(value) != np.array(value):
        value = np.asarray(value)  # NumPy adds it in its own dtype
    values = assigned(memory, value, x.element) if _is_number(value) else operand(memory, value)
    values = values if isinstance(values, Symbol) else array_from(memory, values).read()
    result = joined_at(ufunc, whole, places, values)
    x.write(memory.reshaped(result, x.dims))


def _spread(memory: TraceMemory, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a vector with a value for each position."""
    array = array_from(memory, value) if not _is_number(value) else value
    symbol = broadcast(memory, operand(memory, array), shape) if not _is_number(array) else None
    if symbol is None:
        return np.full(shape, plains(array)).reshape(-1)
    return memory.value_of(memory.reshaped(symbol, (symbol.size,)))


WRITERS: dict[Any, Callable[..., None]] = {
    np.copyto: _copyto,
    np.put: _put,
    np.putmask: _putmask,
    np.place: _place,
    np.put_along_axis: _put_along_axis,
    np.fill_diagonal: _fill_diagonal,
}
