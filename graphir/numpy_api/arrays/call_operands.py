"""The operands of NumPy's calls on symbolic arrays: conversions of all values, and assignment.

A call takes symbols or ndarrays, and its results become symbolic arrays again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError, ShapeError
from graphir.hints import Number
from graphir.ir.literals import array_of, is_literal
from graphir.ir.operands import may_be_operand
from graphir.ir.symbol import Symbol
from graphir.location import CAST, Location, Origin, Source
from graphir.numpy_api.arrays.memory import (
    ArrayOverflowError,
    ArrayTypeError,
    ArrayValue,
    ScalarValue,
    TracedValue,
    TraceMemory,
    plainly,
)
from graphir.numpy_api.arrays.selections import SelectionValue
from graphir.numpy_api.movement import demanded
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.semantics.library_calls import leaves, mapped


def is_known(*values: Any) -> bool:
    """Whether NumPy itself can compute with values, because no value has a symbol."""
    return not any(
        isinstance(leaf, (Symbol, SelectionValue))
        or (isinstance(leaf, TracedValue) and not leaf.is_known)
        for leaf in leaves(values)
    )


def memory_among(values: Any) -> TraceMemory:
    """Return the memory of the first symbolic value."""
    return next(
        leaf.memory for leaf in leaves(values) if isinstance(leaf, (TracedValue, SelectionValue))
    )


def arrays_of(*values: Any) -> list[ArrayValue]:
    """Return the symbolic arrays among values."""
    return [leaf for leaf in leaves(values) if isinstance(leaf, ArrayValue)]


def plains(value: Any) -> Any:
    """Return known values as ndarrays, and traced numbers as plain numbers."""
    return mapped(_plain, value)


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, ArrayValue) else concrete(value)


def layouts(value: Any) -> Any:
    """Return ndarrays with the layouts of symbolic arrays; their elements are meaningless."""
    return mapped(_layout, value)


def _layout(value: Any) -> Any:
    if isinstance(value, ArrayValue):
        return value.plain
    return value.stand_in(0) if isinstance(value, ScalarValue) else concrete(value)


def symbols(value: Any) -> Any:
    """Return values as operands of ops: symbols, and plain arrays for known values."""
    return mapped(_symbol, value)


def _symbol(value: Any) -> Any:
    return value.operand() if isinstance(value, TracedValue) else value


def operand(memory: TraceMemory, value: Any) -> Any:
    """Return the operand of an operator for a value: a symbol, an array or a number.

    The result is NotImplemented if the value is no operand.
    """
    if isinstance(value, TracedValue):
        return value.read()
    if isinstance(value, (list, tuple)):
        return operand(memory, array_from(memory, cast("Any", value)))
    return value if may_be_operand(value) else NotImplemented


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the dtype of a symbol, a symbolic array, an ndarray or a number."""
    if isinstance(value, Symbol):
        return value.dtype.to_numpy()
    return cast("Any", value).dtype if isinstance(value, TracedValue) else np.asarray(value).dtype


def truth_of(memory: TraceMemory, mask: Any) -> Any:
    """Return the truth of each value of a mask: a symbol, or an array if the values are known."""
    if is_known(mask):
        return np.asarray(plains(mask)).astype(np.bool)
    symbol = mask.read() if isinstance(mask, TracedValue) else array_from(memory, mask).read()
    return symbol if symbol.dtype is DType.bool else symbol.cast(DType.bool)


def where_mask(memory: TraceMemory, where: Any) -> Any:
    """Return the mask of `where=`: the truth of a list or a scalar, or the array of bools itself.

    NumPy casts no array to bools here: the function raises its TypeError.
    """
    if not isinstance(where, (ArrayValue, np.ndarray)):
        return truth_of(memory, where)
    array = cast("Any", where)
    dtype = array.element.to_numpy() if isinstance(where, ArrayValue) else array.dtype
    if dtype != np.bool:
        plainly(np.add, 0.0, 0.0, out=np.zeros(()), where=np.zeros((), dtype))
    return array


def write_where(memory: TraceMemory, into: ArrayValue, new: Symbol, where: Any) -> None:
    """Write a symbol of the dtype and shape of an array, at the true elements of `where` alone."""
    if where is not True:
        mask = operand(memory, where_mask(memory, where))
        new = memory.graph.apply(ops.where, (mask, new, into.read()), {})
    into.write(new)


def adopted(memory: TraceMemory, result: Any, sources: Sequence[ArrayValue]) -> Any:
    """Return NumPy's result on known values with symbolic arrays in place of its arrays.

    An array that shares memory with a source is a view of that source. Any other array has its own
    memory.
    """
    memory.check()
    if type(result) is np.ndarray:
        array: Any = result
        for source in sources:
            if np.may_share_memory(source.plain, array):
                return source if array is source.plain else source.of_view(array)
        return memory.plain_array(array)
    kind: Any = cast("object", type(result))
    if isinstance(result, (tuple, list)):
        items = [adopted(memory, item, sources) for item in cast("list[Any]", result)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    return cast("object", result)


# -- arrays from lists


def array_from(memory: TraceMemory, value: Any, dtype: DTypeLike | None = None) -> Any:
    """Return np.array of a nested list with symbols among its elements."""
    if isinstance(value, ArrayValue):
        return cast_to(memory, value, dtype)
    if is_known(value):
        return memory.plain_array(plainly(np.array, plains(value), dtype))
    real = plainly(np.array, mapped(_layout, value), dtype)
    if real.dtype.kind == "O":
        raise ArrayTypeError(
            "the elements of a list differ in shape", op="np.array", fix="pad them to one shape"
        )
    to = DType.from_numpy(real.dtype)
    symbol = memory.reshaped(_stacked(memory, value, to), real.shape)
    return memory.value_of(symbol, scalar=False)


def cast_to(memory: TraceMemory, value: ArrayValue, dtype: DTypeLike | None) -> ArrayValue:
    """Return an array in another dtype; the array itself if it has that dtype."""
    to = None if dtype is None else np.dtype(dtype)
    if to is None or to == value.read().dtype.to_numpy():
        return value
    return cast("ArrayValue", memory.value_of(cast_symbol(value.read(), DType.from_numpy(to))))


def _stacked(memory: TraceMemory, value: ArrayLike, to: DType) -> Symbol:
    if isinstance(value, (list, tuple)):
        parts = [_stacked(memory, item, to) for item in cast("list[Any]", value)]
        return memory.graph.apply(ops.stack, parts, {"axis": 0})
    return assigned(memory, value, to)


# -- assignment


def cast_symbol(symbol: Symbol, to: DType) -> Symbol:
    """Return a symbol, cast as NumPy casts it: a complex number loses its imaginary part."""
    if symbol.dtype is to:
        return symbol
    if symbol.dtype.is_complex and not to.is_complex and to is not DType.bool:
        real = ops.real(symbol)
        return cast_symbol(converted_real(real, real.location), to)
    return symbol.cast(to)


def converted_real(real: Symbol, source: Source) -> Symbol:
    """Return the real part of a complex number, marked as a conversion that `source` asked for."""
    before, to = real.args[0].dtype, real.dtype
    if isinstance(source, Location):
        real.source = (Origin("x", "cast", source, CAST, before, to),)
    else:
        real.source = tuple(origin._replace(source=before, target=to) for origin in source)
    return real


def assigned(memory: TraceMemory, value: Any, to: DType) -> Symbol:
    """Return the symbol of a value for assignment to an array, cast to `to` despite any loss."""
    if isinstance(value, (list, tuple)):
        value = array_from(memory, cast("Any", value))
    if isinstance(value, TracedValue):
        symbol = value.read()
        return cast_symbol(_fitting(symbol, to) if isinstance(value, ScalarValue) else symbol, to)
    if isinstance(value, Symbol):
        return cast_symbol(value, to)
    if type(value) is TracedNumber:
        return _assigned_number(value, to)
    if is_literal(value):
        return _literal(memory, value, to)
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return cast_symbol(memory.graph.entering(cast("Any", value)), to)
    raise ArrayTypeError("y is no array or number", op="x[...] = y", got=f"{type(value).__name__}")


def _fitting(x: Symbol, to: DType) -> Symbol:
    """Return a NumPy scalar that is put into an array of signed integers.

    NumPy raises an error if the integer part does not fit; then the run raises an error.
    """
    if not np.issubdtype(to.to_numpy(), np.signedinteger) or x.dtype.is_complex:
        return x
    limits = np.iinfo(cast("Any", to.to_numpy()))
    if x.dtype.is_float:
        return demanded(
            x,
            (x > float(limits.min) - 1) & (x < float(limits.max) + 1)
            if limits.bits < 64
            else (x >= -(2.0**63)) & (x < 2.0**63),
        )
    if np.can_cast(x.dtype.to_numpy(), to.to_numpy()) or not x.dtype.is_integer:
        return x
    wide = x if x.dtype is DType.uint64 else x.cast(DType.int64)
    fits = wide <= int(limits.max)
    return demanded(x, fits if x.dtype is DType.uint64 else fits & (wide >= int(limits.min)))


def _literal(memory: TraceMemory, value: Number, to: DType) -> Symbol:
    """Return a Python number as NumPy stores it in an array.

    Raise NumPy's error if it does not fit.
    """
    into = np.empty((), to.to_numpy())
    plainly(into.__setitem__, (), value)
    return memory.graph.constant_of(array_of(into, to))


def _assigned_number(value: TracedNumber, to: DType) -> Symbol:
    """Return a traced number as NumPy stores it; an int reaches a float dtype through float64."""
    graph, number = value.trace.open_graph(), cast("Any", value)
    if isinstance(number, bool) or to is DType.bool:
        if isinstance(number, int) and not graph.ask(graph.rules.fits, value, DType.int64):
            raise ArrayOverflowError("the int y does not fit 64 bits", op="x[...] = y")
        return value.symbol().cast(to)
    if isinstance(number, complex) and not to.is_complex:
        raise ArrayTypeError(
            f"a complex number does not go into {to}", op="x[...] = y", fix="write y.real"
        )
    if to.is_integer:
        if not isinstance(number, int):
            return _literal_of(value, to)
        if not graph.ask(graph.rules.fits, value, to):
            raise ArrayOverflowError(f"the int y does not fit {to}", op="x[...] = y")
        return value.filled(to)
    wide = value.symbol()
    if isinstance(number, int) and wide.dtype.is_integer:
        wide = wide.cast(DType.float64)
    return cast_symbol(wide, to)


def _literal_of(value: TracedNumber, to: DType) -> Symbol:
    graph = value.trace.open_graph()
    into = np.empty((), to.to_numpy())
    plainly(into.__setitem__, (), concrete(value))
    return graph.constant_of(array_of(into, to))


def broadcast(memory: TraceMemory, symbol: Symbol, shape: tuple[Any, ...]) -> Symbol:
    """Return a symbol, broadcast to the shape of an assignment's target.

    The function raises ShapeError if the shapes do not broadcast.
    """
    extra = symbol.rank - len(shape)
    lead, rest = symbol.shape[: max(extra, 0)], symbol.shape[max(extra, 0) :]
    pairs = zip(reversed(rest), reversed(shape), strict=False)
    if any(size != 1 for size in lead) or any(a not in (1, b) for a, b in pairs):
        raise ShapeError(
            f"could not broadcast y into shape {numpy_shape(shape)}",
            got=f"shape {numpy_shape(symbol.shape)}",
            op="x[...] = y",
        )
    return memory.broadcast(symbol, shape)


def numpy_shape(shape: Sequence[Any]) -> str:
    """Return a shape in NumPy's notation."""
    return f"({', '.join(map(str, shape))})"


def cast_to_out(
    memory: TraceMemory, out: Any, result: Symbol, casting: str = "same_kind"
) -> Symbol:
    """Return a result as `out` stores it, under NumPy's casting rule.

    The function raises GraphError or ShapeError if `out` cannot hold the result.
    """
    if not isinstance(out, ArrayValue):
        kind = type(out).__name__
        raise GraphError(
            "out= is an array that the traced function has not created",
            got=f"out= a {kind}",
            fix="use np.empty inside the function",
        )
    new = storable(result, out.element, casting)
    if result.shape != out.dims:
        raise ShapeError(
            f"out= has shape {numpy_shape(out.dims)}",
            got=f"a result of shape {numpy_shape(result.shape)}",
        )
    return new


def storable(result: Symbol, to: DType, casting: str = "same_kind") -> Symbol:
    """Return a result in the dtype of its target.

    Raise PromotionError if NumPy refuses the cast.
    """
    if not np.can_cast(result.dtype.to_numpy(), to.to_numpy(), cast("Any", casting)):
        raise PromotionError(
            f"NumPy does not cast a result of {result.dtype} to {to} with casting={casting!r}",
            fix=f"use .astype({str(to)!r})",
        )
    return cast_symbol(result, to)
