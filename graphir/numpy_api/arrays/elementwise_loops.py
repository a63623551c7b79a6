"""NumPy's own loops over elements, for ufuncs whose op has other bits.

NumPy's loops round differently where the operands or results lie backwards, say, and compute some
functions of float16 in float16. Where the graph runs in this process, an op `call` runs such a
loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.call_operands import dtype_of, layouts
from graphir.numpy_api.arrays.memory import ArrayValue, OrderError, TracedValue, TraceMemory
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.ops import control
from graphir.semantics.library_calls import has_odd_step
from graphir.semantics.numpy_loops import (
    LIKE_POWERS,
    call_attributes,
    computes_halves_in_float32,
    has_contiguous_bits,
    is_of_processor,
    loop_dtypes,
    squares,
)


def results_of_loop(
    memory: TraceMemory, ufunc: np.ufunc, inputs: Sequence[Any], outs: Sequence[Any] = ()
) -> Any:
    """Return the results of a ufunc by NumPy's own loop, where it has other bits than the op.

    The result is None where the op serves. The first case that holds decides, and each needs those
    before it:

    - A generalized ufunc has no such loop.
    - NumPy cannot run where a graph may run elsewhere, or where a layout is unknown: the op serves,
      or floats are refused if the ufunc has none (LIKE_POWERS).
    - The op has the bits if no kind of value makes them differ (`has_own_loop`), and all arrays
      lie as new ones do. This is the common case, so it comes before questions to NumPy.
    - NumPy has no loop for the dtypes: the op refuses them.
    - Integers are exact, beside np.reciprocal, which divides by zero as the processor does.
    - The layouts choose a loop, but an experiment finds in it the bits of contiguous operands.
    - NumPy's own loop computes, by an op `call`.
    """
    if ufunc.signature:
        return None
    values = (*inputs, *outs)
    if not memory.runs_here or any(isinstance(x, ArrayValue) and x.layout is None for x in values):
        return _without_loop(ufunc, inputs)
    differs_everywhere = ufunc in LIKE_POWERS or has_own_loop(ufunc, inputs)
    if not differs_everywhere and all(map(has_plain_layout, values)):
        return None
    operands, results = layouts([*inputs]), layouts([*outs])
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None:
        return None
    if ufunc is not np.reciprocal and not any(dtype.kind in "fc" for dtype in dtypes):
        return None
    if not differs_everywhere and has_contiguous_bits(ufunc, operands, results):
        return None
    arguments = _loop_arguments(memory, inputs, operands, dtypes)
    attrs = call_attributes(ufunc, operands, results)
    parts = control.parts(memory.graph.emit(control.call, tuple(arguments), attrs))
    return tuple(parts) if ufunc.nout > 1 else parts[0]


def _loop_arguments(
    memory: TraceMemory, inputs: Sequence[Any], operands: list[Any], dtypes: Sequence[np.dtype[Any]]
) -> list[Symbol]:
    """Return the symbols that a loop takes; in `operands`, give traced numbers a dtype."""
    arguments: list[Symbol] = []
    for place, value in enumerate(inputs):
        if type(value) is TracedNumber:
            try:
                number = value.symbol()
            except PromotionError:  # an int of more than 64 bits, which NumPy rounds to the loop's
                operands[place] = concrete(value)
                continue
            operands[place] = dtypes[place].type(0)
            arguments.append(number.cast(DType.from_numpy(dtypes[place])))
        elif isinstance(value, TracedValue):
            arguments.append(value.read())
        elif type(value) not in (bool, int, float, complex):
            arguments.append(memory.graph.entering(value))
    return arguments


def _without_loop(ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """Raise OrderError for floats if no op has the bits of a ufunc."""
    if ufunc not in LIKE_POWERS:
        return
    kinds = {dtype_of(value).kind for value in inputs if type(value) is not TracedNumber}
    if ufunc is np.float_power or kinds & {"f", "c"}:
        name = f"np.{ufunc.__name__}"
        raise OrderError(f"no op has the bits of {name}", fix=LIKE_POWERS[ufunc])


def has_own_loop(ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    """Whether NumPy's loop has results that the op of a ufunc has not, for all layouts."""
    arrays = (Symbol, TracedValue, np.ndarray, np.generic)
    dtypes = [dtype_of(x) for x in inputs if isinstance(x, arrays)]
    if np.float16 in dtypes and not computes_halves_in_float32(ufunc):
        return True
    if any(is_of_processor(ufunc, dtype) for dtype in dtypes):
        return True
    return _squares(ufunc, inputs)


def _squares(ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    """Whether a power may have exponents 2 in an array, for which the op `pow` gives x * x.

    NumPy takes that short cut for an exponent without axes alone.
    """
    if ufunc is not np.power or len(inputs) < 2:
        return False
    exponent = inputs[1]
    if isinstance(exponent, ArrayValue):
        if not exponent.dims or exponent.element is DType.bool:
            return False
        return not exponent.is_known or squares(exponent.plain)
    return squares(exponent)


def has_plain_layout(value: Any) -> bool:
    """Whether an operand lies in memory as a new array does, in row-major order."""
    if isinstance(value, ArrayValue):
        is_odd = value.layout is not None and has_odd_step(value.layout)
        return value.in_order and value.is_aligned and not is_odd
    return not issubclass(type(value), np.ndarray) or value.flags.c_contiguous
