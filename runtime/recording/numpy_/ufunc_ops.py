"""The ops that recording emits for NumPy's universal functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphir import Op, Symbol, ops
from graphir.ir.operators.powers import power, power_of_arrays
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, NamedOps
from runtime.recording.numpy_.products import product_attributes
from runtime.recording.recorder import Recorder
from runtime.recording.values import UnrecordedError


def op_of(table: NamedOps, ufunc: np.ufunc) -> Op:
    """Return the op of a ufunc in a table. Raises UnrecordedError if the table lacks it."""
    op = table[ufunc]
    if op is None:
        raise UnrecordedError("it has no op")
    return op


def emit(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any] = (),
    scalars: bool = False,
) -> Symbol:
    """Emit the ops of a ufunc on operands, and return the symbol of the result.

    `values` are the operands' arrays, for products. `scalars` says that an operator of NumPy's
    scalars ran in place of the ufunc's loop.

    Raises UnrecordedError if `args` is None: the operands have no symbols, or the ufunc has no op.
    """
    op = OPS[ufunc]
    if args is None:
        raise UnrecordedError("it has no op, or not on these operands")
    short = _power(*args) if op is ops.pow else None
    if short is not None:
        return short
    is_product = ufunc is np.matmul and len(values) > 0
    attrs: Mapping[str, Any] = product_attributes("matmul", values) if is_product else {}
    result = recorder.emit(op, args, **attrs) if op else COMPOUNDS[ufunc](recorder, *args)
    return result if scalars else power_of_arrays(result)


def _power(base: Symbol, exponent: Symbol) -> Symbol | None:
    """Return the symbol of a special case of np.power, such as a root or a reciprocal; or None.

    NumPy applies these cases to a 0-d exponent.
    """
    literal = exponent.op is ops.constant and exponent.weak and not exponent.rank
    number = exponent.attrs["value"].item() if literal else exponent
    return power(base, number, operator=False)
