"""The ops of NumPy's universal functions, recorded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphir import Op, Symbol
from graphir.numpy_ops import COMPOUNDS, OPS
from runtime.recording.recorder import Recorder
from runtime.recording.steps import UnrecordedError


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
    return recorder.emit(op, args) if op else COMPOUNDS[ufunc](recorder, *args)
