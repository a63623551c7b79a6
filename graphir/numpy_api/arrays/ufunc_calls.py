"""NumPy's operators and ufuncs on symbolic arrays.

A call takes one of three ways. `_operate_row_major` serves operators on row-major arrays, which are
most calls. `operate` serves the other operators, with Python's rules: lists repeat, and a class of
higher priority decides. `call_ufunc` serves ufuncs and their methods, with `out=` and `where=`. The
latter two let NumPy compute with known values; all other operands become symbols, and the function
ops on them, by the tables of numpy_api.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from graphir import ops
from graphir.errors import GraphError, MissingOpError
from graphir.ir.literals import is_literal
from graphir.ir.operands import symbols_of
from graphir.ir.operators.powers import power_of_arrays
from graphir.ir.symbol import Symbol
from graphir.location import user_location
from graphir.numpy_api import dispatch
from graphir.numpy_api.arrays import element_access, library_calls
from graphir.numpy_api.arrays.blas_products import check_product_output, matrix_product
from graphir.numpy_api.arrays.call_operands import (
    adopted,
    array_from,
    cast_to_out,
    is_known,
    layouts,
    memory_among,
    operand,
    plains,
    storable,
    symbols,
)
from graphir.numpy_api.arrays.call_results import (
    call_numpy,
    elementwise,
    numpy_allocator,
    results,
    write_outputs,
)
from graphir.numpy_api.arrays.elementwise_loops import results_of_loop
from graphir.numpy_api.arrays.memory import (
    PYTHON_NUMBERS,
    ArrayTypeError,
    ArrayValue,
    OrderError,
    ScalarValue,
    TracedValue,
    TraceMemory,
    plainly,
)
from graphir.numpy_api.arrays.order_checks import check_ufunc
from graphir.numpy_api.arrays.ordered_sums import sum_of_ufunc
from graphir.numpy_api.arrays.selections import SelectionValue, apply_to_selections
from graphir.numpy_api.arrays.temporaries import (
    elided_operand,
    operands_of_layout,
    reference_counts,
)
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.ufuncs import BINARY, MATMUL, MUL, POW, UFUNCS
from graphir.ops.dims import Dim
from graphir.semantics.library_calls import Function, Keywords

# -- products and powers of scalars, which have other bits than those of arrays
#
# NumPy multiplies complex scalars without fused multiply-add, and raises scalars to a power by the
# C library. Its loops over arrays use vector instructions.

DIFFERING = frozenset((MUL, POW))
"""The operators whose results depend on whether the operands are scalars."""
OPERATORS = {ufunc: function for function, ufunc in BINARY.values() if function in DIFFERING}
_SCALARS = ScalarValue, int, float, complex, np.generic


def are_scalars(operands: Sequence[Any]) -> bool:
    """Whether all operands are scalars or numbers, rather than arrays."""
    kinds: list[type] = [type(value) for value in operands]
    return all(kind is TracedNumber or issubclass(kind, _SCALARS) for kind in kinds)


def of_scalars(memory: TraceMemory, function: Function, values: Sequence[Any]) -> Symbol | None:
    """Return the product or power of scalars, or None where the operator on symbols serves."""
    graph = memory.graph
    if function is POW:
        return graph.apply(ops.pow, tuple(values), {})
    x, y = symbols_of(graph, ops.multiply, tuple(values))
    dtype = graph.rules.promote(x.type, y.type)
    if not dtype.is_complex:
        return None
    (a, b), (c, d) = ((ops.real(z), ops.imag(z)) for z in (x.cast(dtype), y.cast(dtype)))
    return ops.as_complex(a * c - b * d, a * d + b * c)


def of_arrays(result: Any) -> Any:
    """Return the result of a function of arrays, with the bits of NumPy's loops over arrays."""
    return power_of_arrays(result) if isinstance(result, Symbol) else cast("object", result)


# -- operators


def operate(function: Function, *operands: Any) -> Any:
    """Return the result of an operator; NotImplemented lets the other operand's class decide.

    The order of checks:

    - The fast path needs no other check, and serves most calls.
    - References to operands are counted before a local variable holds an operand.
    - Selections have no array that later checks could read. Lists are a count of repetitions only
      until `operand` makes arrays of them.
    - NumPy computes with known values, so objects of all classes may stand beside them.
    - An operand of another class may decide, before an op refuses it.
    - Two numbers or plain arrays have no symbol, so the other operand's method decides.
    """
    quick = _operate_row_major(function, operands)
    if quick is not None:
        return quick
    counts = reference_counts(operands)
    memory = memory_among(operands)
    if any(isinstance(value, SelectionValue) for value in operands):
        return apply_to_selections(memory, function, operands)
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
        return results(memory, result, True, partial(numpy_allocator, np.matmul, operands, {}))
    if isinstance(result, Symbol):
        into = elided_operand(UFUNCS[function], operands, counts, result.dtype.to_numpy())
        operands = operands if into is None else (into,)
    return elementwise(memory, result, operands, scalar=True)


def _of_operands(
    memory: TraceMemory, function: Function, operands: Sequence[Any], values: Sequence[Any]
) -> Any:
    """Return the symbols of an operator's result, for operands whose symbols are `values`."""
    result = results_of_loop(memory, UFUNCS[function], operands)
    if result is not None:
        return result
    if function is MATMUL:
        return _matmul(memory, operands, values)
    if function in DIFFERING:
        return _differing(memory, function, operands, values)
    return function(*values)


def _beside_object(
    memory: TraceMemory, function: Function, operands: Sequence[Any], other: Any
) -> Any:
    """Return the result of an operator beside an object that is neither an array nor a number.

    NumPy leaves the result to a class that has `__array_ufunc__` or a higher priority. None and
    text differ from all numbers, and so do objects that equal themselves alone. Any other object
    would make an array of objects.
    """
    kind: Any = cast("object", type(other))
    if hasattr(kind, "__array_ufunc__"):
        return NotImplemented if kind.__array_ufunc__ is None else UFUNCS[function](*operands)
    ours: float = next(
        cast("Any", x).__array_priority__ for x in operands if isinstance(x, TracedValue)
    )
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
        result = matrix_product(memory, "matmul", operands, values)
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


def _operate_row_major(function: Function, operands: Sequence[Any]) -> Any:
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
    if function in DIFFERING:
        return memory.value_of(_differing(memory, function, operands, values), scalar=True)
    return memory.value_of(function(*values), scalar=True)


def _differing(
    memory: TraceMemory, function: Function, operands: Sequence[Any], values: Sequence[Any]
) -> Any:
    """Return a product or power, by NumPy's code for scalars if all operands are scalars."""
    if are_scalars(operands):
        result = of_scalars(memory, function, values)
        return function(*values) if result is None else result
    return of_arrays(function(*values))


def _plain_operator(
    memory: TraceMemory, function: Function, operands: Sequence[Any], counts: Sequence[int]
) -> Any:
    """Return NumPy's own result of an operator on known values."""
    real = plainly(function, *plains(tuple(operands)))
    into = None
    if type(real) is np.ndarray:
        into = elided_operand(UFUNCS[function], operands, counts, real.dtype)
    if into is not None:
        copy = np.empty_like(plains(into))
        copy[...] = real
        real = copy
    return adopted(memory, real, ())


def in_place(function: Function, ufunc: np.ufunc, x: Any, other: Any) -> Any:
    """Execute `x += y`: write the result to the memory of x, cast as NumPy allows."""
    memory: TraceMemory = x.memory
    if isinstance(x, SelectionValue):
        result = apply_to_selections(memory, function, (x, other)).symbol
        x.symbol = storable(result, x.symbol.dtype)
        return x
    if isinstance(other, SelectionValue):
        other.refuse("x += y[mask]")
    x.check_writable()
    if is_known(x, other) and type(other) is not TracedNumber:
        plainly(ufunc, x.plain, plains(other), out=x.plain)
        x.cell.changed()
        return x
    value = operand(memory, other)
    if value is NotImplemented:
        raise ArrayTypeError("y is no array or number", got=type(other).__name__)
    if function is MATMUL:
        check_product_output(x)
    result = results_of_loop(memory, ufunc, (x, other), (x,))
    if result is None and function is MATMUL:
        result = _matmul(memory, (x, other), (x.read(), value))
    elif result is None:
        result = function(x.read(), value)
    if result is NotImplemented:
        return result
    x.write(cast_to_out(memory, x, result))
    return x


# -- universal functions


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Keywords) -> Any:
    """Return the result of a ufunc or of a method of a ufunc."""
    counts = reference_counts(inputs)
    try:
        return _ufunc_of_ops(ufunc, method, inputs, kwargs, counts)
    except Exception:  # of any kind: a call of the library replaces it, or it is raised
        outcome = library_calls.of_call(ufunc, method, inputs, kwargs)
        if outcome is None:
            raise
        return outcome[0]


def _ufunc_of_ops(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Keywords, counts: Sequence[int]
) -> Any:
    """Return the result of a ufunc, or of a method of a ufunc, without a call of the library.

    The order of the cases:

    - `at` takes places and returns nothing, unlike all other calls.
    - Selections have no array that later cases could read; nested lists become arrays, which all
      later cases can.
    - Sums of floats follow the order of memory, of which the symbols of ops tell nothing.
    - NumPy computes with known values, so objects of all classes may stand beside them.
    - Ops compute all else.
    """
    memory = memory_among([*inputs, *kwargs.get("out", ())])
    if method == "at":
        places, settings = bound(ufunc.at, element_access.add_at, inputs, kwargs, leading=2)
        return element_access.add_at(memory, ufunc, *places, **settings)
    if any(isinstance(value, SelectionValue) for value in inputs):
        return _ufunc_of_selection(memory, ufunc, method, inputs, kwargs)
    inputs = tuple(
        array_from(memory, value) if isinstance(value, (list, tuple)) else value for value in inputs
    )
    call = _UfuncCall(memory, ufunc, method, inputs)
    known = is_known(inputs, kwargs)
    total = None if known else _sum_in_order(call, kwargs)
    if total is not None:
        return total
    if known and TracedNumber not in map(type, inputs):
        return call_numpy(memory, getattr(ufunc, method), inputs, kwargs)
    return _ufunc_by_ops(call, dict(kwargs), counts)


class _UfuncCall(NamedTuple):
    """A call of a ufunc, or of a method of a ufunc, without its keywords."""

    memory: TraceMemory
    ufunc: np.ufunc
    method: str
    inputs: tuple[Any, ...]


def _sum_in_order(call: _UfuncCall, kwargs: Keywords) -> Any:
    """Return a reduction in the order of memory; None for any other call.

    The function raises OrderError for a call of which no op has NumPy's order. Known inputs have no
    order that ops must follow, also where `out=` is unknown.
    """
    memory, ufunc, method, inputs = call
    settings = {name: value for name, value in kwargs.items() if name != "out"}
    outs = kwargs.get("out", ())
    if outs and is_known(inputs, settings):
        return None
    check_ufunc(ufunc, method, inputs, settings)
    total = sum_of_ufunc(ufunc, method, inputs, settings)
    if total is None or not outs:
        return total
    return write_outputs(memory, outs, total, True, "same_kind")


def _ufunc_by_ops(call: _UfuncCall, kwargs: dict[str, Any], counts: Sequence[int]) -> Any:
    """Return the result of a ufunc by ops, or NotImplemented where another operand's class decides.

    Where `out=` takes the result, `where=` may leave elements as they are.
    """
    memory, ufunc, method, inputs = call
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True) if method == "__call__" else True
    casting = kwargs.pop("casting", "same_kind")
    values = [operand(memory, value) for value in inputs]
    if any(value is NotImplemented for value in values):
        return _of_other_class(inputs)
    if method == "reduceat" and is_known(inputs[1]):
        values[1] = plains(inputs[1])
    result = _ufunc_symbols(call, values, kwargs, out, casting)
    if result is NotImplemented:
        return result
    if out is not None and any(array is not None for array in out):
        return write_outputs(memory, out, result, where, casting, method == "__call__")
    if where is not True:
        raise GraphError(
            "elements where the mask is false are not set",
            op=f"np.{ufunc.__name__}",
            fix="use out=np.zeros_like(x)",
            got="where= without out=",
        )
    if method == "__call__" and not ufunc.signature:
        if not kwargs:
            inputs = operands_of_layout(ufunc, inputs, counts, result)
        return elementwise(memory, result, inputs, scalar=True)
    allocator = partial(numpy_allocator, getattr(ufunc, method), inputs, kwargs)
    return results(memory, result, True, allocator)


def _ufunc_symbols(
    call: _UfuncCall, values: list[Any], kwargs: dict[str, Any], out: Any, casting: str
) -> Any:
    """Return the symbols of a ufunc's results, for operands whose symbols are `values`.

    The keyword dtype= is removed from `kwargs` for a call, whose operands are cast.
    """
    memory, ufunc, method, inputs = call
    result = None
    if method == "__call__" and not kwargs:
        result = results_of_loop(memory, ufunc, inputs, out or ())
    if method == "__call__" and kwargs.get("dtype") is not None:
        values = _in_dtype(ufunc, values, np.dtype(kwargs.pop("dtype")), casting)
    elif casting not in ("same_kind", "unsafe"):
        raise MissingOpError("no op refuses casts", got=f"casting={casting!r}")
    if result is None and not kwargs:
        result = _of_operator(call, values, out)
    if result is not None:
        return result
    operands, settings = tuple(values), symbols(kwargs)
    return of_arrays(dispatch.call_ufunc(memory.graph, ufunc, method, operands, settings))


def _ufunc_of_selection(
    memory: TraceMemory, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Keywords
) -> Any:
    """Return an elementwise function of x[mask]."""
    if method != "__call__" or kwargs or ufunc.signature:
        raise GraphError(
            "the size of x[mask] depends on values",
            op=f"np.{ufunc.__name__}",
            fix="use np.where(mask, x, 0)",
        )
    return apply_to_selections(memory, ufunc, inputs)


def _of_other_class(inputs: Sequence[Any]) -> Any:
    """Return NotImplemented if the class of another operand decides; else raise ArrayTypeError."""
    kinds: list[Any] = [type(value) for value in inputs if not isinstance(value, _OURS)]
    if any(hasattr(kind, "__array_ufunc__") for kind in kinds):
        return NotImplemented
    raise ArrayTypeError("an operand is no array or number")


_OURS = TracedValue, TracedNumber, np.ndarray, np.generic


def _of_operator(call: _UfuncCall, values: Sequence[Any], out: Sequence[Any] | None) -> Any:
    """Return a product that BLAS computes, or the result of an operator of scalars, else None.

    In `np.complex128(z) * x` the scalar on the left calls the ufunc in place of the operator of x.
    """
    memory, ufunc, _, inputs = call
    if ufunc is np.matmul:
        for into in out or ():
            check_product_output(into)
        return matrix_product(memory, "matmul", inputs, values)
    if ufunc not in OPERATORS or not are_scalars(inputs) or not user_location().is_operator:
        return None
    return _differing(memory, OPERATORS[ufunc], inputs, values)


def _in_dtype(ufunc: np.ufunc, values: list[Any], dtype: np.dtype[Any], casting: str) -> list[Any]:
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
