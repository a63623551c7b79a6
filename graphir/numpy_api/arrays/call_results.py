"""Results of NumPy's functions on symbolic arrays: their classes, layouts, and `out=`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import FunctionType
from typing import Any, cast

import numpy as np

from graphir.errors import GraphirError
from graphir.hints import Array
from graphir.ir.operators.in_place import is_scalar
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.boundary import NoStandInError, single, stand_in
from graphir.numpy_api.arrays.call_operands import (
    adopted,
    array_from,
    arrays_of,
    broadcast,
    cast_to_out,
    is_known,
    layouts,
    leaves,
    mapped,
    plains,
    write_where,
)
from graphir.numpy_api.arrays.memory import (
    PYTHON_NUMBERS,
    ArrayValue,
    Cell,
    ScalarValue,
    TracedValue,
    TraceMemory,
    filled_like,
    plainly,
)
from graphir.numpy_api.traced_numbers import concrete
from graphir.semantics.library_calls import Function, Keywords


def results(
    memory: TraceMemory,
    result: Any,
    scalar: bool | None,
    layout: Callable[[], Callable[[int], Array | None] | None] | None = None,
    result_class: Callable[[], Any] | None = None,
) -> Any:
    """Return a function's result with arrays and scalars of the trace in place of symbols.

    `scalar` says whether results without axes are NumPy scalars; None leaves the decision to
    `result_class()`, the class of NumPy's result, and else to the op. `layout()` returns the
    function that asks NumPy for the layout of a result with several axes, by its place, or None.
    """
    kind, places = None, count()
    if isinstance(result, ArrayValue) and not result.dims and result_class is not None:
        kind = result_class()  # of a body
        result = result if kind in (None, np.ndarray) else result.read()
    elif isinstance(result, Symbol) and scalar is None and not result.rank and result_class:
        kind = result_class()
    if kind is not None:
        scalar = kind is not np.ndarray

    def leaf(value: Any) -> Any:
        place = next(places)
        if not isinstance(value, Symbol):
            return value
        allocate = layout() if layout is not None and value.rank > 1 else None
        is_number = is_scalar(value) if scalar is None else scalar
        new = memory.value_of(value, is_number, allocate and partial(allocate, place))
        if kind in PYTHON_NUMBERS and isinstance(new, ScalarValue):
            new.number_class = kind
        return new

    return mapped(leaf, result)


def result_class_of(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the class of NumPy's result without axes; None if that is unknown.

    NumPy computes it of arrays with one element along each axis, or else of ones of equal sizes.
    """
    if any(isinstance(leaf, FunctionType) for leaf in leaves([args, kwargs])):
        return None
    operands = mapped(concrete, [list(args), dict(kwargs)])
    for make in (single, partial(stand_in, 1)):
        try:
            places, names = mapped(make, operands)
            return cast("Any", type(plainly(function, *places, **names)))
        except (GraphirError, NoStandInError):
            continue
    return None


def _layout_of(operands: Sequence[Any]) -> Callable[[], Array] | None:
    """Return the allocator of an elementwise result; None for row-major order.

    The layout of the result follows the operands' layouts, by NumPy's own nditer.
    """
    if all(_is_in_order(value) for value in operands):
        return None
    views: list[Array] = []
    for value in operands:
        if isinstance(value, ArrayValue):
            if value.layout is None:
                return None
            views.append(value.plain)
        elif issubclass(type(value), np.ndarray):
            views.append(value)
        elif isinstance(value, (list, tuple)) and is_known(value):
            views.append(np.asarray(plains(value)))

    def allocate() -> Array:
        flags = [*[["readonly"]] * len(views), ["writeonly", "allocate"]]
        kinds = ["zerosize_ok", "refs_ok"]
        dtypes = [*[view.dtype for view in views], np.dtype(np.int8)]
        it: Any = np.nditer([*views, None], kinds, flags, dtypes, order="K")  # pyright: ignore
        return it.operands[-1]

    return allocate


def _is_in_order(operand: Any) -> bool:
    """Whether an operand of an elementwise function is in row-major order, as any number is."""
    if isinstance(operand, TracedValue):
        return operand.in_order
    return not issubclass(type(operand), np.ndarray) or operand.flags.c_contiguous


def elementwise(memory: TraceMemory, result: Any, operands: Sequence[Any], scalar: bool) -> Any:
    """Return the results of an elementwise function, in the layout that NumPy would give them."""
    allocate = _layout_of(operands)
    if allocate is None:
        return results(memory, result, scalar)
    parts = cast("tuple[Symbol, ...]", result if isinstance(result, tuple) else (result,))
    outputs: list[Any] = []
    for symbol in parts:
        layout = allocate()
        plain = np.empty_like(layout, dtype=symbol.dtype.to_numpy())
        outputs.append(memory.array(Cell(memory, plain, symbol)))
    return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def call_numpy(
    memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Keywords
) -> Any:
    """Return NumPy's own result for known values; record writes to `out=`."""
    outs = arrays_of(kwargs.get("out"))
    for out in outs:
        out.check_writable()
    result = plainly(function, *plains(args), **plains(kwargs))
    for out in outs:
        out.cell.changed()
    return adopted(memory, result, arrays_of(args, kwargs))


def write_outputs(
    memory: TraceMemory, out: Any, result: Any, where: Any, casting: str, spreads: bool = False
) -> Any:
    """Write results to `out`, at the true elements of the mask `where`, and return `out`.

    `spreads` says that results broadcast to `out`.
    """
    several = isinstance(result, tuple)
    parts = cast("tuple[Any, ...]", result if several else (result,))
    outputs: list[Any] = []
    for into, part in zip(out, parts, strict=True):
        if not isinstance(part, (Symbol, TracedValue)):
            part = array_from(memory, part)
        symbol: Symbol = part.read() if isinstance(part, TracedValue) else part
        if into is None:
            outputs.append(memory.value_of(symbol, scalar=True))
            continue
        if spreads and isinstance(into, ArrayValue) and symbol.rank <= len(into.dims):
            symbol = broadcast(memory, symbol, into.dims)
        new = cast_to_out(memory, into, symbol, casting)
        write_where(memory, into, new, where)
        outputs.append(into)
    return tuple(outputs) if several else outputs[0]


def numpy_allocator(
    function: Function, args: Sequence[Any], kwargs: Keywords
) -> Callable[[int], Array | None] | None:
    """Return the allocator of results: NumPy's call on zeros, or else on ones, in their layouts.

    The function returns None if an argument's layout is unknown.
    """
    arrays = arrays_of(args, kwargs)
    if any(array.layout is None for array in arrays):
        return None
    values = layouts([args, kwargs])

    def allocate(place: int) -> Array | None:
        for fill in (0, 1):
            places, names = mapped(partial(_filled, fill), values)
            try:
                result = [*leaves(plainly(function, *places, **names))][place]
            except GraphirError:  # as weights of zeros raise, say
                continue
            return np.empty_like(result) if type(result) is np.ndarray else None
        return None

    return allocate


def _filled(fill: int, value: Any) -> Any:
    """Return an array of one number with the strides of an array; other values stay."""
    return filled_like(cast("Array", value), fill) if isinstance(value, np.ndarray) else value
