"""NumPy's functions, ufuncs and operators on symbolic arrays.

NumPy itself computes with known values. A function that gives views runs on ndarrays with the
arguments' layouts; a result that shares their memory is a view of the argument. All other functions
become ops on symbols by the tables of numpy_api. A function without an entry runs in its own Python
body.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from sys import _getframe as getframe  # pyright: ignore[reportPrivateUsage]
from sys import getrefcount
from types import FunctionType
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, GraphirError, MissingOpError
from graphir.ir.literals import is_literal
from graphir.ir.operators.in_place import is_scalar
from graphir.ir.symbol import Symbol
from graphir.location import user_location
from graphir.numpy_api import dispatch
from graphir.numpy_api.arrays import library_calls, orders, products, scalars, writers
from graphir.numpy_api.arrays.boundary import NoStandInError, numpys_error, single, stand_in
from graphir.numpy_api.arrays.contractions import compiled_einsum, path_of
from graphir.numpy_api.arrays.indexing import assign
from graphir.numpy_api.arrays.makers import BODY_PARTS, traced_body
from graphir.numpy_api.arrays.memory import (
    PYTHON_NUMBERS,
    Array,
    ArrayTypeError,
    ArrayValue,
    Cell,
    LayoutUse,
    OrderError,
    ScalarValue,
    TraceMemory,
    as_graph_error,
    plainly,
    strided_zeros,
)
from graphir.numpy_api.arrays.operands import (
    VALUES,
    adopted,
    array_from,
    arrays_of,
    broadcast,
    cast_to_out,
    is_known,
    layouts,
    leaves,
    mapped,
    memory_among,
    operand,
    plains,
    storable,
    symbols,
    where_mask,
)
from graphir.numpy_api.arrays.orders import converter_of
from graphir.numpy_api.arrays.selection import SelectionValue, is_same
from graphir.numpy_api.elision import ELIDING, elided, runs_operator
from graphir.numpy_api.functions import BODY_FUNCTIONS, FUNCTIONS
from graphir.numpy_api.reductions.masked import reduction_in_order
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import MATMUL, MUL, POW, UFUNCS, DirectAdder
from graphir.ops.dims import Dim
from graphir.semantics.sums import SumOrder

# -- results


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


def _result_class(function: Any, args: Any, kwargs: Any) -> Any:
    """Return the class of NumPy's result without axes; None if that is unknown.

    NumPy computes it of arrays with one element along each axis, or else of ones of equal sizes.
    """
    if any(isinstance(leaf, FunctionType) for leaf in leaves([args, kwargs])):
        return None
    operands = mapped(_number, [list(args), dict(kwargs)])
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
    if isinstance(operand, VALUES):
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


# -- operators


def operate(function: Callable[..., Any], *operands: Any) -> Any:
    """Return the result of an operator; NotImplemented lets the other operand's class decide."""
    quick = _operate_in_order(function, operands)
    if quick is not None:
        return quick
    counts = _reference_counts(operands)
    if function is _reference_counts:
        return counts
    memory = memory_among(operands)
    if any(isinstance(value, SelectionValue) for value in operands):
        return _selected(memory, function, operands)
    if function is MUL and _repeats(operands):
        raise GraphError(
            "a list is repeated as often as an array element says, known when the graph runs",
            fix="use np.array(list) * x",
        )
    if is_known(operands) and TracedNumber not in map(type, operands):
        return _plain_operator(memory, function, operands, counts)
    values = [operand(memory, value) for value in operands]
    if any(value is NotImplemented for value in values):
        return _beside_object(memory, function, operands, operands[values.index(NotImplemented)])
    if len(values) == 2 and not any(isinstance(value, Symbol) for value in values):
        return NotImplemented
    result = _of_operands(memory, function, operands, values)
    if result is NotImplemented:
        return result
    if function is MATMUL:
        return results(memory, result, True, partial(_as_numpy, np.matmul, operands, {}))
    if isinstance(result, Symbol):
        into = _elided(UFUNCS[function], operands, counts, result.dtype.to_numpy())
        operands = operands if into is None else (into,)
    return elementwise(memory, result, operands, scalar=True)


def _of_operands(
    memory: TraceMemory, function: Callable[..., Any], operands: Sequence[Any], values: Any
) -> Any:
    """Return the symbols of an operator's result, for operands whose symbols are `values`."""
    result = orders.of_loop(memory, UFUNCS[function], operands)
    if result is not None:
        return result
    if function is MATMUL:
        return _matmul(memory, operands, values)
    if function in scalars.DIFFERING:
        return _differing(memory, function, operands, values)
    return function(*values)


def _reference_counts(operands: Sequence[Any]) -> list[int]:
    """Return the reference counts of an operator's operands."""
    return [getrefcount(value) for value in operands]


class _Temporary:
    """An object whose operators return the reference counts of their operands."""

    __slots__ = ("cell",)


@cache
def _temporary_counts(is_ufunc: bool) -> list[int]:
    """Return the reference counts of two operands that nothing but the expression references.

    `is_ufunc` says that the left operand is an ndarray, whose operator calls a ufunc.
    """
    return (np.zeros(1) if is_ufunc else _Temporary()) + _Temporary()  # pyright: ignore


def set_experiment(method: Callable[[Any], Any], dispatched: Callable[[Any], Any]) -> None:
    """Give the experiment the methods that symbolic arrays have.

    `method` makes an operator, and `dispatched` makes `__array_ufunc__`.
    """
    experiment: Any = _Temporary
    experiment.__add__ = method(_reference_counts)
    experiment.__array_ufunc__ = dispatched(_counts_in_ufunc)


def _counts_in_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Any) -> list[int]:
    """Return the reference counts of a ufunc's operands, as `call_ufunc` gets them."""
    return _reference_counts(inputs)


def _elided(
    ufunc: np.ufunc,
    operands: Sequence[Any],
    counts: Sequence[int],
    dtype: Any,
    is_ufunc: bool = False,
) -> Any:
    """Return the operand into whose memory NumPy writes the result of an operator, or None."""
    if len(operands) != 2:
        return None
    plain_operands = [x.layout if isinstance(x, ArrayValue) else x for x in operands]
    temporary = [
        count == alone and (not isinstance(value, ArrayValue) or value.owns_memory)
        for value, count, alone in zip(operands, counts, _temporary_counts(is_ufunc), strict=True)
    ]
    place = elided(ufunc, plain_operands, temporary, dtype)
    return None if place is None else operands[place]


def _operands_of_layout(
    ufunc: np.ufunc, inputs: tuple[Any, ...], counts: Sequence[int], result: Any
) -> tuple[Any, ...]:
    """Return the operands that decide the layout of an operator that calls a ufunc.

    The frame of the operator is that of the caller of `__array_ufunc__`, behind three functions.
    """
    if not isinstance(result, Symbol) or not runs_operator(getframe(5)):
        return inputs
    into = _elided(ufunc, inputs, counts, result.dtype.to_numpy(), is_ufunc=True)
    return inputs if into is None else (into,)


def _beside_object(
    memory: TraceMemory, function: Callable[..., Any], operands: Sequence[Any], other: Any
) -> Any:
    """Return the result of an operator beside an object that is neither an array nor a number.

    NumPy leaves the result to a class that has `__array_ufunc__` or a higher priority. None and
    text differ from all numbers, and so do objects that equal themselves alone. Any other object
    would make an array of objects.
    """
    kind: Any = cast("object", type(other))
    if hasattr(kind, "__array_ufunc__"):
        return NotImplemented if kind.__array_ufunc__ is None else UFUNCS[function](*operands)
    ours: float = next(cast("Any", x).__array_priority__ for x in operands if isinstance(x, VALUES))
    if getattr(kind, "__array_priority__", LEAST_PRIORITY) > ours:
        return NotImplemented
    is_comparison = function in (operator.eq, operator.ne)
    if kind in (type(None), str, bytes) or (is_comparison and kind.__eq__ is object.__eq__):
        return adopted(memory, plainly(function, *layouts(tuple(operands))), ())
    raise MissingOpError(
        "the result is an array of Python objects, which graphs lack",
        got=f"a named size, {other}" if kind is Dim else f"an operand of {kind.__name__}",
        fix="write the size as a number, as in float32[8]" if kind is Dim else (),
    )


LEAST_PRIORITY: float = np.float64(0).__array_priority__


def _matmul(memory: TraceMemory, operands: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the operator @ of operands, whose symbols are `values`."""
    try:
        result = products.product(memory, "matmul", operands, values)
    except OrderError:
        outcome = library_calls.of_call(np.matmul, "__call__", operands, {})
        if outcome is None:
            raise
        return outcome[0].read()
    return MATMUL(*values) if result is None else result


def _repeats(operands: Sequence[Any]) -> bool:
    """Whether a list or tuple stands beside a NumPy scalar, which Python takes as a count."""
    lists = any(isinstance(value, (list, tuple)) for value in operands)
    return lists and any(isinstance(value, ScalarValue) for value in operands)


def _operate_in_order(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Fast path: an operator on row-major symbolic arrays, scalars and numbers.

    The result is None for any other operand.
    """
    memory: TraceMemory | None = None
    values: list[Any] = []
    for value in operands:
        if isinstance(value, ArrayValue):
            if value.is_known or not value.in_order:
                return None
            memory = value.memory
            values.append(value.read())
        elif isinstance(value, ScalarValue):
            memory = value.memory
            values.append(value.symbol)
        elif type(value) in PYTHON_NUMBERS:
            values.append(value)
        else:
            return None
    if memory is None or function is MATMUL or function is divmod:
        return None
    if function is POW and memory.runs_here and isinstance(operands[1], ArrayValue):
        return None
    if function in scalars.DIFFERING:
        return memory.value_of(_differing(memory, function, operands, values), scalar=True)
    return memory.value_of(function(*values), scalar=True)


def _differing(
    memory: TraceMemory, function: Callable[..., Any], operands: Sequence[Any], values: Any
) -> Any:
    """Return a product or power, by NumPy's code for scalars if all operands are scalars."""
    if scalars.are_scalars(operands):
        result = scalars.of_scalars(memory, function, values)
        return function(*values) if result is None else result
    return scalars.of_arrays(function(*values))


def _plain_operator(
    memory: TraceMemory, function: Callable[..., Any], operands: Any, counts: Sequence[int]
) -> Any:
    """Return NumPy's own result of an operator on known values."""
    real = plainly(function, *plains(tuple(operands)))
    into = None
    if type(real) is np.ndarray:
        into = _elided(UFUNCS[function], operands, counts, real.dtype)
    if into is not None:
        copy = np.empty_like(plains(into))
        copy[...] = real
        real = copy
    return adopted(memory, real, ())


def in_place(function: Callable[..., Any], ufunc: Any, x: Any, other: Any) -> Any:
    """Execute `x += y`: write the result to the memory of x, cast as NumPy allows."""
    memory: TraceMemory = x.memory
    if isinstance(x, SelectionValue):
        result = _selected(memory, function, (x, other)).symbol
        x.symbol = storable(result, x.symbol.dtype)
        return x
    if isinstance(other, SelectionValue):
        other.refuse("x += y[mask]")
    x.check_writable()
    if is_known(x, other) and type(other) is not TracedNumber:
        plainly(ufunc, x.plain, plains(other), out=x.plain)
        x.cell.changed()
        memory.reads_layouts(LayoutUse.ALL)
        return x
    value = operand(memory, other)
    if value is NotImplemented:
        raise ArrayTypeError("y is no array or number", got=type(other).__name__)
    if function is MATMUL:
        products.check_output(x)
    result = orders.of_loop(memory, ufunc, (x, other), (x,))
    if result is None and function is MATMUL:
        result = _matmul(memory, (x, other), (x.read(), value))
    elif result is None:
        result = function(x.read(), value)
    if result is NotImplemented:
        return result
    x.write(cast_to_out(memory, x, result))
    return x


def _selected(memory: TraceMemory, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Return an elementwise function of selections that share a mask."""
    selection = next(value for value in operands if isinstance(value, SelectionValue))
    values: list[Any] = []
    for value in operands:
        if isinstance(value, SelectionValue):
            if (
                not is_same(value.mask, selection.mask)
                or value.symbol.shape != selection.symbol.shape
            ):
                value.refuse("x[mask] with y[other]")
            value = value.symbol
        elif isinstance(value, VALUES):
            if value.read().rank:
                selection.refuse("x[mask] with an array")
            value = value.read()
        elif np.ndim(value) if not isinstance(value, TracedNumber) else 0:
            selection.refuse("x[mask] with an array")
        values.append(value)
    result = function(*values)
    if not isinstance(result, Symbol) or result.shape != selection.symbol.shape:
        selection.refuse("a function of x[mask]")
    in_order = all(x.in_order for x in operands if isinstance(x, SelectionValue))
    return memory.selection(memory, result, selection.mask, in_order)


# -- universal functions


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """Return the result of a ufunc or of a method of a ufunc."""
    counts = _reference_counts(inputs)
    try:
        return _ufunc_of_ops(ufunc, method, inputs, kwargs, counts)
    except Exception:
        outcome = library_calls.of_call(ufunc, method, inputs, kwargs)
        if outcome is None:
            raise
        return outcome[0]


def _ufunc_of_ops(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any, counts: Sequence[int]
) -> Any:
    """Return the result of a ufunc, or of a method of a ufunc, by ops."""
    outs = kwargs.get("out", ())
    memory = memory_among([*inputs, *outs])
    if method == "at":
        places, settings = bound(ufunc.at, writers.add_at, inputs, kwargs, leading=2)
        return writers.add_at(memory, ufunc, *places, **settings)
    if any(isinstance(value, SelectionValue) for value in inputs):
        return _ufunc_of_selection(memory, ufunc, method, inputs, kwargs)
    inputs = tuple(
        array_from(memory, value) if isinstance(value, (list, tuple)) else value for value in inputs
    )
    settings = {name: value for name, value in kwargs.items() if name != "out"}
    reordered = orders.of_ufunc(ufunc, method, inputs, settings)
    if reordered is not None:
        return _write_outputs(memory, outs, reordered, True, "same_kind") if outs else reordered
    if is_known(inputs, kwargs) and TracedNumber not in map(type, inputs):
        return _plain_call(
            memory, ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs
        )
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True) if method == "__call__" else True
    casting = kwargs.pop("casting", "same_kind")
    values = [operand(memory, value) for value in inputs]
    if any(value is NotImplemented for value in values):
        return _of_other_class(inputs)
    values[1:2] = _second(method, inputs, values)
    result = _ufunc_symbols(memory, ufunc, method, inputs, values, kwargs, (out, casting))
    if result is NotImplemented:
        return result
    if out is not None and any(array is not None for array in out):
        return _write_outputs(memory, out, result, where, casting, method == "__call__")
    if where is not True:
        raise _unset_elements(ufunc)
    if method == "__call__" and not ufunc.signature:
        if type(inputs[0]) is np.ndarray and ufunc in ELIDING and not kwargs:
            inputs = _operands_of_layout(ufunc, inputs, counts, result)
        return elementwise(memory, result, inputs, scalar=True)
    return results(memory, result, True, partial(_as_numpy, getattr(ufunc, method), inputs, kwargs))


def _ufunc_symbols(
    memory: TraceMemory,
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    values: list[Any],
    kwargs: dict[str, Any],
    output: tuple[Any, str],
) -> Any:
    """Return the symbols of a ufunc's results; `output` is out= and casting=.

    The keyword dtype= is removed from `kwargs` for a call, whose operands are cast.
    """
    out, casting = output
    result = None
    if method == "__call__" and not kwargs:
        result = orders.of_loop(memory, ufunc, inputs, out or ())
    if method == "__call__" and kwargs.get("dtype") is not None:
        values = _in_dtype(ufunc, values, np.dtype(kwargs.pop("dtype")), casting)
    elif casting not in ("same_kind", "unsafe"):
        _check_casting(ufunc, values, casting)
    if result is None and not kwargs:
        result = _of_operator(memory, ufunc, inputs, values, out)
    if result is not None:
        return result
    operands, settings = tuple(values), symbols(kwargs)
    result = dispatch.call_ufunc(memory.graph, ufunc, method, operands, settings)
    return scalars.of_arrays(result)


def _ufunc_of_selection(
    memory: TraceMemory, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Any
) -> Any:
    """Return an elementwise function of x[mask]."""
    if method != "__call__" or kwargs or ufunc.signature:
        raise GraphError(
            "the size of x[mask] depends on values",
            op=f"np.{ufunc.__name__}",
            fix="use np.where(mask, x, 0)",
        )
    return _selected(memory, ufunc, inputs)


def _unset_elements(ufunc: np.ufunc) -> GraphError:
    return GraphError(
        "elements where the mask is false are not set",
        op=f"np.{ufunc.__name__}",
        fix="use out=np.zeros_like(x)",
        got="where= without out=",
    )


def _of_other_class(inputs: Sequence[Any]) -> Any:
    """Return NotImplemented if the class of another operand decides; else raise ArrayTypeError."""
    kinds: list[Any] = [type(value) for value in inputs if not _is_ours(value)]
    if any(hasattr(kind, "__array_ufunc__") for kind in kinds):
        return NotImplemented
    raise ArrayTypeError("an operand is no array or number")


def _is_ours(value: Any) -> bool:
    return isinstance(value, (*VALUES, np.ndarray, np.generic)) or type(value) is TracedNumber


def _check_casting(ufunc: np.ufunc, values: Sequence[Any], casting: str) -> None:
    """Raise NumPy's error if the loop of a ufunc needs other casts of its operands."""
    types: list[Any] = []
    for value in values:
        if isinstance(value, Symbol):
            types.append(value.dtype.to_numpy())
        else:
            number: Any = _number(value)
            types.append(type(number) if is_literal(number) else number.dtype)
    ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), casting=cast("Any", casting))


def _second(method: str, inputs: Sequence[Any], values: list[Any]) -> list[Any]:
    """Return the second operand, as a plain array if it is known indices of reduceat."""
    known_indices = method == "reduceat" and is_known(inputs[1])
    return [plains(inputs[1])] if known_indices else values[1:2]


def _of_operator(memory: TraceMemory, ufunc: np.ufunc, inputs: Any, values: Any, out: Any) -> Any:
    """Return a product that BLAS computes, or the result of an operator of scalars, else None.

    NumPy turns an operator with a scalar on the left into a call of the ufunc.
    """
    if ufunc is np.matmul:
        for into in out or ():
            products.check_output(into)
        return products.product(memory, "matmul", inputs, values)
    if ufunc not in scalars.OPERATORS or not scalars.are_scalars(inputs):
        return None
    if not scalars.by_operator():
        return None
    return _differing(memory, scalars.OPERATORS[ufunc], inputs, values)


def _plain_call(memory: TraceMemory, function: Any, args: Any, kwargs: Any) -> Any:
    """Return NumPy's own result for known values; record writes to `out=`."""
    outs = arrays_of(kwargs.get("out"))
    for out in outs:
        out.check_writable()
    result = plainly(function, *plains(args), **plains(kwargs))
    for out in outs:
        out.cell.changed()
        memory.reads_layouts(LayoutUse.ALL)
    return adopted(memory, result, arrays_of(args, kwargs))


def _in_dtype(ufunc: np.ufunc, values: list[Any], dtype: Any, casting: str) -> list[Any]:
    """Return a ufunc's operands, cast to the computation dtype that `dtype=` names.

    The function raises GraphError if the ufunc has no loop of that dtype.
    """
    if dtype == np.bool_ and all(loop.endswith(("->?", "->O")) for loop in ufunc.types):
        return values  # a predicate: `dtype=` is that of its result
    loop = f"{dtype.char * ufunc.nin}->{dtype.char * ufunc.nout}"
    if loop not in ufunc.types:
        raise GraphError(
            f"dtype={dtype} has no op", op=f"np.{ufunc.__name__}", fix="use x.astype(...)"
        )
    operands: list[Any] = []
    for value in values:
        if is_literal(value):
            operands.append(dtype.type(value))
            continue
        source = value.dtype.to_numpy() if isinstance(value, Symbol) else value.dtype
        if not np.can_cast(source, dtype, cast("Any", casting)):
            raise ArrayTypeError(
                f"NumPy does not cast {value.dtype} to dtype={dtype} with casting={casting!r}",
                op=f"np.{ufunc.__name__}",
                fix=f"use x.astype({str(dtype)!r})",
            )
        operands.append(value.astype(dtype))
    return operands


def _write_outputs(
    memory: TraceMemory, out: Any, result: Any, where: Any, casting: str, spreads: bool = False
) -> Any:
    """Write results to `out`, at the true elements of the mask `where`, and return `out`.

    `spreads` says that results broadcast to `out`.
    """
    several = isinstance(result, tuple)
    parts = cast("tuple[Any, ...]", result if several else (result,))
    outputs: list[Any] = []
    for into, part in zip(out, parts, strict=True):
        if not isinstance(part, (Symbol, *VALUES)):
            part = array_from(memory, part)
        symbol: Symbol = part.read() if isinstance(part, VALUES) else part
        if into is None:
            outputs.append(memory.value_of(symbol, scalar=True))
            continue
        if spreads and isinstance(into, ArrayValue) and symbol.rank <= len(into.dims):
            symbol = broadcast(memory, symbol, into.dims)
        new = cast_to_out(memory, into, symbol, casting)
        if where is not True:
            mask = operand(memory, where_mask(memory, where))
            new = memory.graph.apply(ops.where, (mask, new, into.read()), {})
        into.write(new)
        outputs.append(into)
    return tuple(outputs) if several else outputs[0]


# -- other functions

_VIEWS = (
    *("reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes", "moveaxis"),
    *("rollaxis", "squeeze", "expand_dims", "broadcast_to", "broadcast_arrays", "flip", "flipud"),
    *("fliplr", "rot90", "diagonal", "diag", "split", "array_split", "hsplit", "vsplit", "dsplit"),
    *("unstack", "atleast_1d", "atleast_2d", "atleast_3d", "real", "imag", "meshgrid"),
    *("sliding_window_view", "astype"),
)
_FACTS = ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "result_type", "can_cast")
_LIKE = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}
_VIEWING = frozenset((*_VIEWS, *_FACTS, *_LIKE))
"""The functions whose results depend on layouts alone: views, or facts of shape and dtype."""


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function that is no ufunc."""
    try:
        return _function_of_ops(function, args, kwargs)
    except Exception:
        outcome = library_calls.of_call(function, "__call__", args, kwargs)
        if outcome is None:
            raise
        return outcome[0]


def _function_of_ops(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function by ops, or by the Python body of the function."""
    memory = memory_among([args, kwargs])
    for leaf in leaves([args, kwargs]):
        if isinstance(leaf, SelectionValue):
            return _of_selection(memory, function, leaf, args, kwargs)
    if function in _CHECKED and not is_known(args, kwargs):
        error = numpys_error(function, args, kwargs)
        if error is not None:
            raise as_graph_error(error)
    writer = writers.WRITERS.get(function)
    if writer is not None:
        args, kwargs = bound(function, writer, args, kwargs, leading=1)
        return writer(memory, *args, **kwargs)
    if function is np.full_like and not is_known(args, kwargs):
        args, kwargs = bound(function, _full_like, args, kwargs)
        return _full_like(*args, **kwargs)
    if is_known(args, kwargs):
        return _filling(memory, function, _plain_call(memory, function, args, kwargs))
    if function in _RETURNING and (same := _itself(function, args, kwargs)) is not None:
        return same
    is_placed = all(array.layout is not None for array in arrays_of(args, kwargs))
    if function.__name__ in _VIEWING and is_placed:
        return _viewed(memory, function, args, kwargs)
    return _compute(memory, function, args, dict(kwargs))


def _compute(memory: TraceMemory, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function that computes, in `out` if that is given."""
    name = function.__name__
    out, where = kwargs.pop("out", None), kwargs.get("where", True)
    if where is True:
        kwargs.pop("where", None)
    elif name in _MASKED or isinstance(where, (ArrayValue, np.ndarray)):
        kwargs["where"] = where_mask(memory, where)
    if name == "astype":
        args, kwargs = bound(function, _astype, args, kwargs)
        return _astype(*args, **kwargs)
    if out is not None and function not in FUNCTIONS:
        kwargs["out"] = out
        out = None
    result = orders.of_function(function, args, kwargs)
    if result is None:
        result = _by_its_body(memory, function, args, kwargs)
    if out is not None:
        casting = kwargs.get("casting", "same_kind")
        return _write_outputs(memory, (out,), result, True, casting)
    call = function, args, kwargs
    return results(memory, result, None, partial(_as_numpy, *call), partial(_result_class, *call))


def _of_selection(
    memory: TraceMemory, function: Any, selection: SelectionValue, args: Any, kwargs: Any
) -> Any:
    """Return a reduction of x[mask] over all elements or the first axis: that with where=mask."""
    takes = {"axis", "dtype", "initial", "ddof", "keepdims"}
    axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
    count = selection.mask.rank
    if (
        function not in SELECTION_REDUCTIONS
        or not args
        or args[0] is not selection
        or len(args) > 2
        or not {*kwargs} <= takes
        or kwargs.get("keepdims")
        or axis not in (None, 0, count - 1 - selection.symbol.rank)
    ):
        selection.refuse(f"np.{function.__name__} of x[mask]")
    settings = {key: value for key, value in symbols(kwargs).items() if key != "keepdims"}
    x = selection.symbol
    settings["axis"] = None if axis is None else tuple(range(count))
    settings["where"] = selection.whole_mask()
    name = function.__name__
    if function is np.count_nonzero:
        function, x = np.sum, x.cast(DType.bool).cast(DType.int64)
    if function in (np.sum, np.mean, np.var, np.std):
        if axis is None and not selection.in_order and x.dtype.is_inexact:
            raise OrderError("NumPy adds x[mask] as x lies in memory", fix="pass x.copy()")
        build, name = DirectAdder(memory.graph), function.__name__
        total = reduction_in_order(build, name, x, settings, SumOrder(selection=True))
        return results(memory, total, True)
    if name not in _EXTREMES or "initial" in settings:
        return results(memory, dispatch.call_function(memory.graph, function, (x,), settings), True)
    settings |= {"initial": selection.bound(name in ("min", "amin"))}
    extreme = dispatch.call_function(memory.graph, function, (x,), settings)
    return results(memory, selection.not_empty(extreme), True)


_EXTREMES = ("max", "amax", "min", "amin")
SELECTION_REDUCTIONS = frozenset(
    (
        *(np.sum, np.prod, np.max, np.amax, np.min, np.amin, np.any, np.all, np.mean),
        *(np.var, np.std, np.count_nonzero),
    )
)
"""The functions of x[mask] whose result has a known shape."""


def call_like(x: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an array constructor with `like=x`; NumPy omits `like` from the call."""
    if any(isinstance(each, (*VALUES, SelectionValue)) for each in leaves([args, kwargs])):
        return call_function(function, args, kwargs)
    return adopted(x.memory, plainly(function, *args, **kwargs), ())


def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", *, shape: Any = None
) -> Any:
    """Return a new array, filled by assignment."""
    result = call_function(np.empty_like, (a, dtype, order), {"shape": shape})
    assign_all(result, fill_value)
    return result


def _astype(x: Any, dtype: Any, *, copy: bool = True) -> Any:
    return x.astype(dtype, copy=copy)


def _filling(memory: TraceMemory, function: Any, result: Any) -> Any:
    if function.__name__ in _LIKE and isinstance(result, ArrayValue):
        result.plain.fill(_LIKE[function.__name__])
        result.cell.fill = result.plain.dtype.type(_LIKE[function.__name__]).item()
    return result


def _as_numpy(function: Any, args: Any, kwargs: Any) -> Callable[[int], Array | None] | None:
    """Return the allocator of results: NumPy's call on zeros, or else on ones, in their layouts.

    The function returns None if an argument's layout is unknown.
    """
    arrays = arrays_of(args, kwargs)
    if any(array.layout is None for array in arrays):
        return None
    values = layouts(mapped(_materialized, [args, kwargs]))

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


_CHECKED = frozenset((np.place, np.putmask, np.copyto, np.select, np.compress, np.extract))
"""The functions of masks, whose errors for types and shapes NumPy itself raises."""
_MASKED = frozenset(("sum", "prod", "max", "min", "amax", "amin", "any", "all"))
"""The reductions whose `where=` counts by its truth alone."""


def _materialized(value: Any) -> Any:
    return value.plain if isinstance(value, ArrayValue) else value


def _filled(fill: int, value: Any) -> Any:
    """Return an array of one number with the strides of an array; other values stay."""
    if not isinstance(value, np.ndarray):
        return value
    array = strided_zeros(cast("Array", value))
    if fill:
        array.fill(fill)
    return array


def _viewed(memory: TraceMemory, function: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of a function of layouts: views of arguments, or copies by ops."""
    real = plainly(function, *layouts(args), **layouts(kwargs))
    name = function.__name__
    if name in _FACTS:
        return real
    if name == "reshape" and isinstance(args[0], ArrayValue):
        order = {"order": args[2]} if len(args) > 2 else {}
        array: Any = args[0]
        return array.reshape(*args[1:2], **order, **kwargs)
    if name in _LIKE:
        return _filling(memory, function, memory.plain_array(real))
    sources = arrays_of(args, kwargs)
    several = isinstance(real, (tuple, list))
    parts: list[Any] = list(cast("Any", real)) if several else [real]
    outputs: list[Any] = []
    copies: Any = None
    for at, part in enumerate(parts):
        source = _owner(sources, part) if type(part) is np.ndarray else None
        if source is not None:
            outputs.append(source.of_view(part))
            continue
        if copies is None:
            result = dispatch.call_function(memory.graph, function, symbols(args), symbols(kwargs))
            copies = [*result] if isinstance(result, (tuple, list)) else [result]  # pyright: ignore
        is_array = type(part) is np.ndarray
        cell = Cell(memory, part, copies[at])
        outputs.append(memory.array(cell) if is_array else memory.value_of(copies[at], True))
    if not several:
        return outputs[0]
    return tuple(outputs) if isinstance(real, tuple) else outputs


def _einsum_view(*args: Any, **kwargs: Any) -> ArrayValue | None:
    """Return np.einsum of one array without a sum, which is a view as NumPy makes it; else None."""
    sources = arrays_of(args, kwargs)
    if len(sources) != 1 or sources[0].layout is None or kwargs.get("out") is not None:
        return None
    real = plainly(np.einsum, *layouts(args), **layouts(kwargs))
    is_view = type(real) is np.ndarray and np.may_share_memory(real, sources[0].plain)
    return sources[0].of_view(real) if is_view else None


def _cleared_of_nan(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> ArrayValue | None:
    """Return the array in which np.nan_to_num(x, copy=False) replaces elements; else None."""
    if copy or not isinstance(x, ArrayValue):
        return None
    x.check_writable()
    x.write(call_function(np.nan_to_num, (x, True, nan, posinf, neginf), {}).read())
    return x


def _undifferenced(
    a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None
) -> Any:
    """Return the operand of np.diff(a, n=0); else None."""
    return a if not isinstance(n, (ArrayValue, ScalarValue)) and n == 0 else None


def _itself(function: Any, args: Any, kwargs: Any) -> ArrayValue | None:
    handler = _RETURNING[function]
    places, settings = bound(function, handler, args, kwargs)
    return handler(*places, **settings)


_RETURNING: dict[Any, Callable[..., Any]] = {
    np.einsum: _einsum_view,
    np.nan_to_num: _cleared_of_nan,
    np.diff: _undifferenced,
}
"""The functions that return their array, or a view of it, for some arguments."""


def _owner(sources: Sequence[ArrayValue], part: Array) -> ArrayValue | None:
    for source in sources:
        if np.may_share_memory(source.plain, part):
            return source
    return None


def _by_its_body(memory: TraceMemory, function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function by its table entry, or run the Python body that NumPy gives the function.

    The functions inside the body receive symbolic arrays.
    """
    result = products.of_function(memory, function.__name__, args, kwargs)
    if result is not None:
        return result
    in_order = all(array.in_order and array.is_aligned for array in arrays_of(args, kwargs))
    contracts = function.__name__ in _CONTRACTING or bool(kwargs.get("optimize"))
    by_body_first = not in_order or contracts
    if by_body_first and (outcome := _of_body(memory, function, args, kwargs)) is not None:
        return outcome[0]
    try:
        return dispatch.call_function(memory.graph, function, symbols(args), symbols(kwargs))
    except GraphirError:
        outcome = None if by_body_first else _of_body(memory, function, args, kwargs)
        if outcome is None:
            raise
        return outcome[0]


_CONTRACTING = frozenset(("tensordot", "cov", "corrcoef", "norm"))
"""The functions whose bodies transpose the operands of a product."""


def _of_body(memory: TraceMemory, function: Any, args: Any, kwargs: Any) -> tuple[Any] | None:
    """Return the result of a function's Python body in a tuple; None where it cannot run.

    The function raises OrderError where the body computes in an order that no op has.
    """
    body = traced_body(function)
    if body is None or function in memory.bodies or function.__name__ in _COMPILED:
        return None
    memory.bodies.add(function)
    refusal, since = memory.graph.trace_state.refusal, len(memory.graph.symbols)
    operands = symbols(args), symbols(kwargs)
    try:
        with memory.graph.at(user_location()):
            result = body(*mapped(_number, args), **mapped(_number, kwargs))
        steps = memory.graph.symbols[since:]
        dispatch.attribute_casts(function, body, *operands, symbols(result), steps)
        is_caught = memory.graph.trace_state.refusal is not refusal  # by the body
        return None if is_caught else (result,)
    except OrderError:
        raise
    except Exception:  # of any kind, where the body meets compiled code
        return None
    finally:
        memory.bodies.discard(function)
        memory.graph.trace_state.refusal = refusal


def _number(value: Any) -> Any:
    return concrete(value) if type(value) is TracedNumber else value


def _body_part(implementation: Any, original: Any) -> Any:
    """Return the stand-in of a private function of NumPy, by its implementation on symbols."""

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if is_known(args, kwargs):
            return (
                original(*args, out=out, **kwargs) if out is not None else original(*args, **kwargs)
            )
        memory = memory_among([args, kwargs])
        result = implementation(*symbols(args), **symbols(kwargs))
        if out is not None:
            return _write_outputs(memory, (out,), result, True, "unsafe")
        return results(memory, result, None)

    return call


BODY_PARTS.update(
    {name: partial(_body_part, function) for name, function in BODY_FUNCTIONS.items()}
)


BODY_PARTS["_array_converter"] = converter_of
BODY_PARTS["einsum_path"] = path_of
BODY_PARTS["c_einsum"] = compiled_einsum

_COMPILED = frozenset(("einsum_path", "save", "savetxt", "array2string", "array_repr", "array_str"))


def assign_all(x: ArrayValue, value: Any) -> None:
    """Set every element, as `x[...] = value` does."""
    x.check_writable()
    if is_known(x, value) and type(value) is not TracedNumber:
        plainly(operator.setitem, x.plain, ..., plains(value))
        x.cell.changed()
        x.memory.reads_layouts(LayoutUse.ALL)
    else:
        assign(x, value)
