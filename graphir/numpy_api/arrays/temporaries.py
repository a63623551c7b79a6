"""Temporaries: the operands of operators that nothing but the expression references.

NumPy writes the result of an operator into a temporary, so that the result has its layout (see
numpy_api/elision.py). An operand is a temporary if an experiment counts as many references to one.
Thus the experiment has the methods of symbolic arrays, so that as many frames hold the operands,
but its methods call the functions here that return counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from sys import getrefcount
from typing import Any

import numpy as np

from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.boundary import caller_of_boundary
from graphir.numpy_api.arrays.memory import ArrayValue
from graphir.numpy_api.elision import ELIDING, elided, runs_operator


def reference_counts(operands: Sequence[Any]) -> list[int]:
    """Return the reference counts of an operator's operands."""
    return [getrefcount(value) for value in operands]


class _Temporary:
    """An object whose operators return the reference counts of their operands."""

    __slots__ = ("cell",)


def _counts_in_operator(_: None, *operands: Any) -> list[int]:
    return reference_counts(operands)


def _counts_in_ufunc(ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> list[int]:
    return reference_counts(inputs)


def set_experiment(
    operator: Callable[[Any, Callable[..., Any]], Any], ufunc: Callable[[Any], Any]
) -> None:
    """Give the experiment the methods that symbolic arrays have.

    `operator(None, call)` makes a method that calls `call(None, *operands)` as it would call
    `operate`. `ufunc(call)` makes the method `__array_ufunc__`.
    """
    experiment: Any = _Temporary
    experiment.__add__ = operator(None, _counts_in_operator)
    experiment.__array_ufunc__ = ufunc(_counts_in_ufunc)


@cache
def _temporary_counts(is_ufunc: bool) -> list[int]:
    """Return the reference counts of two operands that nothing but the expression references.

    `is_ufunc` says that the left operand is an ndarray, whose operator calls a ufunc.
    """
    return (np.zeros(1) if is_ufunc else _Temporary()) + _Temporary()  # pyright: ignore


def elided_operand(
    ufunc: np.ufunc,
    operands: Sequence[Any],
    counts: Sequence[int],
    dtype: np.dtype[Any],
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


def operands_of_layout(
    ufunc: np.ufunc, inputs: tuple[Any, ...], counts: Sequence[int], result: Any
) -> tuple[Any, ...]:
    """Return the operands that decide the layout of a ufunc's result.

    That is the temporary alone if an operator of the program, with an ndarray on its left, calls
    the ufunc.
    """
    if ufunc not in ELIDING or type(inputs[0]) is not np.ndarray or not isinstance(result, Symbol):
        return inputs
    if not runs_operator(caller_of_boundary()):
        return inputs
    into = elided_operand(ufunc, inputs, counts, result.dtype.to_numpy(), is_ufunc=True)
    return inputs if into is None else (into,)
