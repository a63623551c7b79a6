"""The ops that recording emits for NumPy's universal functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphir.ir.operators.powers import power, power_of_arrays
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, OpAdder
from graphir.public import Op, Symbol, ops
from graphir.runtime.recording.numpy_.products import product_attributes
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import UnrecordedError
from graphir.semantics.numpy_loops import CLIP, LIKE_POWERS, has_op_bits, loop_attribute


def emit(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any] = (),
    scalars: bool = False,
    outs: Sequence[Any] = (),
) -> Symbol:
    """Emit the ops of a ufunc on operands, and return the symbol of the result.

    `values` are the operands' arrays, and `outs` those of `out=`, or None in place of a new array:
    their layouts decide how products and functions of floats round. `scalars` says that an operator
    of NumPy's scalars ran in place of the ufunc's loop.

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
    if loop := _loop(ufunc, op, values, outs):
        attrs = {"loop": loop}
    if op is None:
        result = COMPOUNDS[ufunc](_WithLoop(recorder, loop) if loop else recorder, *args)
    else:
        result = recorder.emit(op, args, **attrs)
    return result if scalars else power_of_arrays(result)


def _loop(ufunc: np.ufunc, op: Op | None, values: Sequence[Any], outs: Sequence[Any]) -> Any:
    """Return the attribute of NumPy's loop where another has other bits, or may have; or None.

    A replay may have exponents 2.0 where the recorded array has none.
    """
    has_axes = any(np.ndim(value) for value in values)
    if not values or not (has_axes or ufunc is np.reciprocal):
        return None
    if op is None:
        name = ufunc.__name__ if ufunc in LIKE_POWERS else None
    else:
        name = op.name if ufunc in (CLIP, getattr(np, op.name, None)) else None
    may_square = ufunc is np.power and np.ndim(values[1]) > 0
    if name is None or (not may_square and has_op_bits(ufunc, values, outs)):
        return None
    return loop_attribute(ufunc, name, values, outs)


class _WithLoop:
    """An OpAdder whose ops have an attribute `loop`."""

    def __init__(self, build: OpAdder, loop: Any) -> None:
        self.graph, self.cast, self.operands = build.graph, build.cast, build.operands
        self._build, self._loop = build, loop

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        return self._build.emit(op, args, **attrs, loop=self._loop)


def _power(base: Symbol, exponent: Symbol) -> Symbol | None:
    """Return the symbol of a special case of np.power, such as a root or a reciprocal; or None.

    NumPy applies these cases to a 0-d exponent.
    """
    literal = exponent.op is ops.constant and exponent.weak and not exponent.rank
    number = exponent.attrs["value"].item() if literal else exponent
    return power(base, number, operator=False)
