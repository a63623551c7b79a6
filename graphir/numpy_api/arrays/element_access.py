"""Reads and writes of elements: x[key], x[key] = value, np.copyto, np.put, np.add.at and others.

A basic key gives a view. An array key gathers or scatters the elements at positions. A mask with
unknown values gives a selection, or a `where` on assignment.

Of NumPy's functions that write to their first argument, np.copyto, np.add.at and np.subtract.at are
ops. The others run in NumPy's Python code, or are calls of NumPy's compiled code, which give new
values of the argument.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, MissingOpError
from graphir.hints import ArrayOrNumber
from graphir.ir.operators.indexing import index
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.call_operands import (
    adopted,
    array_from,
    arrays_of,
    assigned,
    broadcast,
    cast_to_out,
    is_known,
    plains,
    write_where,
)
from graphir.numpy_api.arrays.memory import (
    ArrayIndexError,
    ArrayValue,
    Cell,
    ScalarValue,
    TracedValue,
    TraceMemory,
    plainly,
)
from graphir.numpy_api.arrays.selections import (
    SelectionValue,
    are_equal_expressions,
    rows_in_order,
)
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.view_steps import Pick, ViewBuilder, ViewStep
from graphir.semantics.library_calls import Function, Keywords


@dataclass(frozen=True, slots=True, eq=False)
class At(ViewStep):
    """The slice at an index that is known only at run time; its axis stays, with size 1."""

    axis: int
    at: Symbol

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the slice, gathered."""
        at = builder.reshaped(self.at, (1,))
        return builder.emit(ops.gather, (x, at), axis=self.axis)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the array with the slice written into it."""
        at = builder.reshaped(self.at, (1,))
        return builder.emit(ops.index_update, (x, new, at), axis=self.axis)


# -- keys


def keys_of(memory: TraceMemory, key: Any) -> tuple[Any, ...]:
    """Return a key's parts: ints, slices, None, `...`, plain arrays, symbolic values."""
    if type(key) is TracedNumber:
        return (memory.scalar(memory, key.symbol()),)
    keys = cast("tuple[Any, ...]", key) if type(key) is tuple else (key,)
    return tuple(_key(memory, part) for part in keys)


def _key(memory: TraceMemory, key: Any) -> Any:
    if isinstance(key, list):
        key = array_from(memory, cast("Any", key)) if key else np.empty(0, np.intp)
    if isinstance(key, Symbol):
        key = memory.value_of(key, scalar=True)
    if isinstance(key, ScalarValue):
        if key.symbol.dtype is DType.bool:
            raise GraphError(
                "b is a bool that depends on values", op="x[b]", fix="use np.where(b, x, y)"
            )
        if not key.symbol.dtype.is_integer:
            raise ArrayIndexError(
                "an index is an int, a slice or an array of integers",
                op="x[i]",
                got=f"i of {key.symbol.dtype}",
            )
        return key
    if isinstance(key, ArrayValue):
        return key.plain.copy() if key.is_known else key
    if isinstance(key, slice) and not is_known(key):
        raise GraphError(
            "the size would depend on values",
            op="x[a:b]",
            fix="use np.where, or bounds from the arguments",
        )
    return plains(key)


def _is_advanced(key: Any) -> bool:
    return isinstance(key, (np.ndarray, ArrayValue, bool, np.bool_))


def _expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """Return a key for each axis: `...` expanded, masks as arrays of positions, None kept."""
    parts: list[Any] = []
    for key in keys:
        if isinstance(key, np.ndarray) and key.dtype == np.bool_ and key.ndim:  # pyright: ignore
            parts.extend(np.nonzero(cast("NDArray[Any]", key)))
        else:
            parts.append(key)
    used = sum(key is not None and key is not Ellipsis for key in parts)
    at = next((i for i, key in enumerate(parts) if key is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * (rank - used), *parts[at + 1 :]]


def _mask(x: ArrayValue, keys: tuple[Any, ...]) -> Symbol | None:
    """Return the symbol of a mask that is known only at run time, or None for other keys."""
    if not any(isinstance(key, ArrayValue) and key.element is DType.bool for key in keys):
        return None
    if len(keys) > 1:
        raise GraphError(
            "the size would depend on values", op="x[mask, ...]", fix="use np.where(mask, x, other)"
        )
    mask: Symbol = next(iter(keys)).read()
    if mask.shape != x.dims[: mask.rank]:
        raise ArrayIndexError(
            "the shape of a mask is that of the leading axes",
            op="x[mask]",
            got=f"mask {mask.type} for x of shape {list(x.dims)}",
        )
    return mask


# -- reading


def get(x: ArrayValue, key: Any) -> Any:
    """Return x[key]: a view, an element, or a new array of the elements at positions."""
    memory = x.memory
    keys = keys_of(memory, key) if not x.is_known or not is_known(key) else ()
    if x.is_known and all(is_known(part) for part in keys):
        return adopted(memory, plainly(operator.getitem, x.plain, plains(key)), [x])
    mask = _mask(x, keys)
    if mask is not None:
        return memory.selection(memory, x.read(), mask, rows_in_order(x, mask.rank))
    if x.layout is None:
        return _unplaced(x, keys)
    if any(map(_is_advanced, keys)):
        real: Any = plainly(operator.getitem, x.plain, _in_place_of(keys))
        symbol = _picked(x, keys)
        if type(real) is not np.ndarray:
            return memory.value_of(symbol, scalar=True)
        return memory.array(Cell(memory, real, symbol))
    target = viewed(x, keys)
    if target.plain.ndim or any(key is Ellipsis for key in keys):
        return target
    return memory.value_of(target.read(), scalar=True)


def viewed(x: ArrayValue, keys: tuple[Any, ...]) -> ArrayValue:
    """Return the view for ints, slices, None and `...`; an int may be known only at run time."""
    keys = keys if any(key is Ellipsis for key in keys) else (*keys, Ellipsis)
    if not any(isinstance(key, ScalarValue) for key in keys):
        return x.of_view(plainly(operator.getitem, x.plain, keys))
    places: list[Any] = [slice(None)] * x.plain.ndim
    steps: list[ViewStep] = []
    axis = 0
    for key in _expanded(keys, x.plain.ndim):
        if isinstance(key, ScalarValue):
            places[axis] = slice(0, 1)
            steps.append(At(axis, key.symbol))
        axis += key is not None
    origin = plainly(operator.getitem, x.plain, tuple(places))
    inner = plainly(operator.getitem, origin, (*_in_place_of(keys),))
    return type(x)(x.cell, inner, origin, (*x.steps, *steps))


def _in_place_of(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the keys with zeros in place of the parts that are known only at run time."""
    return tuple(
        np.zeros(key.dims, np.intp)
        if isinstance(key, ArrayValue)
        else 0
        if isinstance(key, ScalarValue)
        else key
        for key in keys
    )


def _unplaced(x: ArrayValue, keys: tuple[Any, ...]) -> Any:
    """Index an array of unknown layout, and forbid later writes to the array."""
    names = tuple(key.read() if isinstance(key, TracedValue) else key for key in keys)
    (first, *more) = names or ((),)
    symbol = index(x.read(), names if more else first)
    x.cell.frozen = x.cell.frozen or "it has views, and sizes that are known when the graph runs"
    result = x.memory.value_of(symbol, scalar=bool(keys) and len(keys) == len(x.dims))
    if isinstance(result, ArrayValue):
        result.cell.frozen = x.cell.frozen
    return result


def _picked(x: ArrayValue, keys: tuple[Any, ...]) -> Symbol:
    """Return the elements at positions: gathered along an axis, or by their flat positions."""
    memory = x.memory
    arrays = [i for i, key in enumerate(keys) if _is_advanced(key)]
    whole = all(
        isinstance(key, slice) and key == slice(None)
        for i, key in enumerate(keys)
        if i != arrays[0]
    )
    only: Any = keys[arrays[0]]
    if len(arrays) == 1 and whole and _is_integer(only):
        places = only.read() if isinstance(only, ArrayValue) else memory.constant_array(only)
        return memory.graph.apply(ops.gather, (x.read(), places), {"axis": arrays[0]})
    places = flat_places(memory, x.plain.shape, keys)
    if not isinstance(places, Symbol):
        return Pick(places).forward(memory, x.read())
    flat = memory.reshaped(x.read(), (x.plain.size,))
    return memory.emit(ops.gather, (flat, places), axis=0)


def _is_integer(key: Any) -> bool:
    if isinstance(key, ArrayValue):
        return key.element.is_integer
    return isinstance(key, np.ndarray) and cast("NDArray[Any]", key).dtype.kind in "iu"


def flat_places(memory: TraceMemory, shape: tuple[int, ...], keys: tuple[Any, ...]) -> Any:
    """Return the positions, counted in row-major order, of the elements that a key selects."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    places = np.asarray(plainly(operator.getitem, places, _in_place_of(keys)))
    symbolic = [key for key in keys if isinstance(key, TracedValue)]
    if not symbolic:
        return places
    expanded = _expanded(keys, len(shape))
    advanced = [
        i for i, key in enumerate(expanded) if not isinstance(key, slice) and key is not None
    ]
    shapes = [np.shape(part) for part in _in_place_of(tuple(expanded[i] for i in advanced))]
    rank = len(np.broadcast_shapes(*shapes))
    adjacent = advanced[-1] - advanced[0] == len(advanced) - 1
    after = places.ndim - rank - (advanced[0] if adjacent else 0)
    total = memory.constant_array(places)
    axis, weight = 0, places.size
    for key in expanded:
        if key is None:
            continue
        weight = int(np.prod(shape[axis + 1 :]))
        if isinstance(key, TracedValue):
            line = {"dtype": DType.int64, "start": 0, "step": weight, "size": shape[axis]}
            steps = memory.emit(ops.range, (), **line)
            part = memory.graph.apply(ops.gather, (steps, key.read()), {"axis": 0})
            part = memory.reshaped(part, (*part.shape, *(1,) * after))
            total = memory.graph.apply(ops.add, (total, part), {})
        axis += 1
    return total


# -- writing


def put(x: ArrayValue, key: Any, value: Any) -> None:
    """Execute x[key] = value, with NumPy's casts and broadcasts."""
    memory = x.memory
    if x.is_known and is_known(key, value) and type(value) is not TracedNumber:
        x.check_writable()
        plainly(operator.setitem, x.plain, plains(key), plains(value))
        x.cell.changed()
        return
    x.check_writable()
    if isinstance(value, (list, tuple)) and any(array.cell is x.cell for array in arrays_of(value)):
        raise GraphError(  # NumPy assigns the rows in turn, so later rows read earlier writes
            "rows of a list are of the array that they are put into", fix="pass copies"
        )
    keys = keys_of(memory, key)
    mask = _mask(x, keys)
    if mask is not None:
        _put_masked(x, mask, value)
        return
    if isinstance(value, SelectionValue):
        raise GraphError(
            "the size depends on values", op="x[key] = y[mask]", fix="use np.where(mask, y, x)"
        )
    if x.layout is None:
        if any(key is not Ellipsis and key != slice(None) for key in keys):
            raise GraphError(
                "sizes of x depend on values", op="x[key] = y", fix="use np.where, or fixed sizes"
            )
        assign(x, value)
    elif any(map(_is_advanced, keys)):
        _put_picked(x, keys, value)
    else:
        target = viewed(x, keys)
        is_element = not target.plain.ndim and all(key is not Ellipsis for key in keys)
        if is_element and isinstance(value, ArrayValue):
            element = np.empty(
                1, target.plain.dtype
            )  # NumPy raises if an element cannot hold the value
            plainly(operator.setitem, element, 0, np.zeros(value.dims, element.dtype))
        assign(target, value)


def assign(target: ArrayValue, value: Any) -> None:
    """Replace all elements of a view by a value."""
    if isinstance(value, ArrayValue) and value.cell is target.cell:
        if _is_itself(target, value):
            return
        _check_overlap(target, value)
    memory = target.memory
    symbol = assigned(memory, value, target.element)
    target.write(broadcast(memory, symbol, target.dims))


def _check_overlap(target: ArrayValue, value: ArrayValue) -> None:
    """Raise GraphError where NumPy may read elements that it has already written to one memory.

    NumPy copies overlapping operands, except a vector in the direction of its target.
    """
    a, b = target.layout, value.layout
    if a is None or b is None or a.ndim != 1 or not b.ndim or b.size < 2:
        return
    apart = a.strides[0] == b.strides[-1] or a.strides[0] * b.strides[-1] <= 0
    if not apart and np.may_share_memory(a, b):
        raise GraphError(
            "x[...] = y: x and y overlap with different strides, so NumPy reads elements that "
            "it has written",
            fix="write x[...] = y.copy()",
        )


def _is_itself(target: ArrayValue, value: ArrayValue) -> bool:
    """Whether two views of a memory are the same, as when `x[i] += 1` writes x[i] back."""
    if value.prefix != target.prefix:
        return False
    a, b = target.layout, value.layout
    if a is None or b is None or (a.shape, a.strides, a.dtype) != (b.shape, b.strides, b.dtype):
        return False
    return a.__array_interface__["data"] == b.__array_interface__["data"]


def _put_picked(x: ArrayValue, keys: tuple[Any, ...], value: Any) -> None:
    memory = x.memory
    symbol = assigned(memory, value, x.element)
    places = flat_places(memory, x.plain.shape, keys)
    new = broadcast(memory, symbol, places.shape)
    whole = x.read()
    if not isinstance(places, Symbol):
        if places.size:
            x.write(Pick(places).backward(memory, whole, new))
        return
    x.write(memory.emit(ops.index_update, (whole, new, places), axis=None))


def _put_masked(x: ArrayValue, mask: Symbol, value: Any) -> None:
    """Execute x[mask] = value by `where`."""
    memory, whole = x.memory, x.read()
    if isinstance(value, SelectionValue):
        if not are_equal_expressions(value.mask, mask) or value.symbol.shape != whole.shape:
            raise GraphError(
                "the masks differ", op="x[mask] = y[other]", fix="use np.where(mask, y, x)"
            )
        value = value.symbol
    else:
        value = assigned(memory, value, x.element)
        beyond = whole.shape[mask.rank :]
        if value.rank > len(beyond) and value.shape != (1,) * value.rank:
            raise GraphError(
                "the position of each element of y depends on the mask",
                op="x[mask] = y",
                got=f"y {value.type}",
                fix="use np.where(mask, y, x)",
            )
        value = broadcast(memory, value, whole.shape if not value.rank else beyond)
    wide = memory.reshaped(mask, (*mask.shape, *(1,) * (whole.rank - mask.rank)))
    symbol = assigned(memory, value, x.element)
    x.write(memory.graph.apply(ops.where, (wide, symbol, whole), {}))


# -- functions that write to their first argument

WRITING: dict[Any, str] = {
    np.copyto: "dst",
    np.put: "a",
    np.place: "arr",
    np.putmask: "a",
    np.put_along_axis: "arr",
    np.fill_diagonal: "a",
}
"""The functions that write to their first argument, with its name."""
_COMPILED = frozenset((np.put, np.place, np.putmask))
"""Those of them that are compiled, or call compiled code alone."""


def write_by_function(
    memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Keywords
) -> bool:
    """Execute a call of a function of WRITING.

    Returns False for a call whose Python code is to run. Raises MissingOpError for a call of
    compiled code.
    """
    if is_known(args, kwargs):
        x = _target(args[0] if args else kwargs[WRITING[function]], function.__name__)
        _write_known(x, function, args, kwargs)
        return True
    if function is np.copyto:
        places, settings = bound(function, _copyto, args, kwargs, leading=1)
        _copyto(memory, *places, **settings)
        return True
    if function in _COMPILED:
        raise MissingOpError("no op writes as this does")
    return False


def _write_known(x: ArrayValue, function: Function, args: Sequence[Any], kwargs: Keywords) -> None:
    """Execute a call of NumPy that writes known values to an array of known values."""
    plainly(function, *plains(args), **plains(kwargs))
    x.cell.changed()


def _target(x: ArrayOrNumber, name: str) -> ArrayValue:
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
    return not isinstance(value, TracedValue) and np.isscalar(value)


def _copyto(
    memory: TraceMemory, dst: Any, src: ArrayLike, casting: str = "same_kind", where: Any = True
) -> None:
    into = _target(dst, "copyto")
    value: Any = src if _is_number(src) else array_from(memory, src)
    if _is_number(src):
        number = plains(src)
        plainly(np.copyto, np.empty((), into.element.to_numpy()), number, cast("Any", casting))
        symbol = assigned(memory, value, into.element)
    else:
        symbol = cast_to_out(memory, into, broadcast(memory, value.read(), into.dims), casting)
    symbol = broadcast(memory, symbol, into.dims)
    write_where(memory, into, symbol, where)


def add_at(
    memory: TraceMemory, ufunc: np.ufunc, a: ArrayOrNumber, indices: Any, b: ArrayLike | None = None
) -> None:
    """Execute ufunc.at: apply the operation once for each index, so repeated indices accumulate.

    Sums in the dtype of the array are one op. Raises GraphError for others.
    """
    x = _target(a, f"{ufunc.__name__}.at")
    values = () if b is None else (b,)
    if is_known(x, indices, values):
        _write_known(x, ufunc.at, (x, indices, *values), {})
        return
    if b is None:
        raise MissingOpError("no op writes as this does")
    whole, keys = x.read(), keys_of(memory, indices)
    if any(isinstance(key, TracedValue) and key.read().dtype is DType.bool for key in keys):
        raise GraphError("which elements a mask selects depends on values", fix="use np.where")
    if len(keys) == 1 and isinstance(keys[0], TracedValue):
        places = keys[0].read()
    else:
        places = flat_places(memory, x.plain.shape, keys)
        if not isinstance(places, Symbol):
            places = memory.constant_array(places)
        whole = memory.reshaped(whole, (whole.size,))
    if isinstance(b, float) and x.element.to_numpy().type(b) != np.array(b):
        b = np.asarray(b)  # NumPy adds it in its own dtype
    new = assigned(memory, b, x.element) if _is_number(b) else array_from(memory, b).read()
    x.write(memory.reshaped(_joined_at(ufunc, whole, places, new), x.dims))


def _joined_at(ufunc: np.ufunc, x: Symbol, places: Symbol, values: Symbol) -> Symbol:
    """Return x after ufunc.at(x, places, values): places name slices, and may be negative."""
    if ufunc not in (np.add, np.subtract) or (x.dtype is DType.bool and ufunc is not np.add):
        raise GraphError(f"np.{ufunc.__name__}.at of {x.dtype} at computed places has no op")
    if x.graph.rules.promote(x.type, values.type) is not x.dtype:
        raise GraphError(f"values {values.dtype} do not join {x.dtype}", fix="cast them first")
    values = values.cast(x.dtype)
    values = ops.negative(values) if ufunc is np.subtract else values
    return ops.index_add(x, values, places, axis=0)
