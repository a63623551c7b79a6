"""The products and powers of NumPy's scalars, which have other bits than those of arrays.

NumPy multiplies complex scalars without fused multiply-add, and raises scalars to a power by the C
library. Its loops over arrays use vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.ir.operands import symbols_of
from graphir.ir.operators.powers import power_of_arrays
from graphir.ir.symbol import Symbol
from graphir.location import user_location
from graphir.numpy_api.arrays.memory import ScalarValue, TraceMemory
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.ufuncs import BINARY, MUL, POW

DIFFERING = frozenset((MUL, POW))
"""The operators whose results depend on whether the operands are scalars."""
OPERATORS = {ufunc: function for function, ufunc in BINARY.values() if function in DIFFERING}
_SCALARS = ScalarValue, int, float, complex, np.generic


def are_scalars(operands: Sequence[Any]) -> bool:
    """Whether all operands are scalars or numbers, rather than arrays."""
    kinds: list[type] = [type(value) for value in operands]
    return all(kind is TracedNumber or issubclass(kind, _SCALARS) for kind in kinds)


def of_scalars(
    memory: TraceMemory, function: Callable[..., Any], values: Sequence[Any]
) -> Symbol | None:
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


def by_operator() -> bool:
    """Whether the user's instruction is an operator, as in `np.complex128(z) * x`.

    NumPy's scalar on the left calls the ufunc in place of the operator of its right operand.
    """
    return user_location().is_operator
