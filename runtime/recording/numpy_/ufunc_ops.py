"""The ops of NumPy's universal functions, recorded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphir import Op, Symbol, ops
from graphir.ir.operators.powers import power
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS
from runtime.recording.recorder import Recorder
from runtime.recording.values import UnrecordedError


def op_of(table: Mapping[np.ufunc, Op], ufunc: np.ufunc) -> Op:
    """The op that a table has for a ufunc."""
    if ufunc not in table:
        raise UnrecordedError("it has no op")
    return table[ufunc]


def emit(recorder: Recorder, ufunc: np.ufunc, args: tuple[Symbol, ...] | None) -> Symbol:
    """The ops of a ufunc, on operands that have symbols; None stands for others."""
    op = OPS.get(ufunc)
    if args is None:
        raise UnrecordedError("it has no op, or not on these operands")
    short = _power(*args) if op is ops.pow else None
    if short is not None:
        return short
    return recorder.emit(op, args) if op else COMPOUNDS[ufunc](recorder, *args)


def _power(base: Symbol, exponent: Symbol) -> Symbol | None:
    """The root or reciprocal that np.power takes by an exponent without axes; None of a power."""
    literal = exponent.op is ops.constant and exponent.weak and not exponent.rank
    number = exponent.attrs["value"].item() if literal else exponent
    return power(base, number, operator=False)
