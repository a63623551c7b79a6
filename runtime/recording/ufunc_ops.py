"""Which ops NumPy's universal functions are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from graphir import DType, Op, Symbol, ops
from runtime.recording.recorder import Recorder
from runtime.recording.steps import UnrecordedError

Compound: TypeAlias = Callable[..., Symbol]

_CLIP: np.ufunc = np._core.umath.clip  # pyright: ignore

OPS: dict[np.ufunc, Op] = {
    **{getattr(np, name): op for name, op in ops.CATALOGUE.items() if name in dir(np)
       and isinstance(getattr(np, name), np.ufunc)},
    np.power: ops.pow,
    np.absolute: ops.abs,
    _CLIP: ops.clip,
    np.arcsin: ops.asin,
    np.arccos: ops.acos,
    np.arctan: ops.atan,
    np.arcsinh: ops.asinh,
    np.arccosh: ops.acosh,
    np.arctanh: ops.atanh,
    np.arctan2: ops.atan2,
    np.isnan: ops.is_nan,
    np.isinf: ops.is_inf,
    np.isfinite: ops.is_finite,
    np.invert: ops.bitwise_invert,
    np.conjugate: ops.conj,
}  # fmt: skip
REDUCTIONS: dict[np.ufunc, Op] = {
    np.add: ops.sum,
    np.multiply: ops.prod,
    np.maximum: ops.max,
    np.minimum: ops.min,
    np.logical_or: ops.any,
    np.logical_and: ops.all,
}
ACCUMULATIONS: dict[np.ufunc, Op] = {np.add: ops.cumulative_sum, np.multiply: ops.cumulative_prod}


NEUTRAL: dict[Any, Any] = {
    np.add: 0,
    np.multiply: 1,
    np.logical_or: False,
    np.logical_and: True,
}
PARTS: dict[np.ufunc, tuple[Op, Op]] = {np.divmod: (ops.floor_divide, ops.remainder)}


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


# -- ufuncs that are several ops


def _in_floats(op: Op) -> Compound:
    """An op that takes integers as they are, where NumPy's function makes floats of them."""

    def compute(recorder: Recorder, x: Symbol) -> Symbol:
        to = recorder.graph.rules.floating(x.dtype, op.name)
        return recorder.emit(op, (recorder.cast(x, to, "x", op.name),))

    return compute


def _scaled(factor: float) -> Compound:
    def scale(recorder: Recorder, x: Symbol) -> Symbol:
        args = recorder.operands(ops.multiply, (x, factor))
        return recorder.emit(ops.multiply, args)

    return scale


def _exp2(recorder: Recorder, x: Symbol) -> Symbol:
    args = recorder.operands(ops.pow, (2.0, x))
    return recorder.emit(ops.pow, args)


def _known_of(op: Op) -> Compound:
    """Fmax and fmin: of the two, the one that is no NaN."""

    def choose(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
        both = recorder.emit(op, (x, y))
        left = recorder.emit(ops.where, (recorder.emit(ops.is_nan, (x,)), y, both))
        return recorder.emit(ops.where, (recorder.emit(ops.is_nan, (y,)), x, left))

    return choose


def _float_power(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    wide = DType.complex128 if x.dtype.is_complex or y.dtype.is_complex else DType.float64
    args = recorder.cast(x, wide, "lhs", "pow"), recorder.cast(y, wide, "rhs", "pow")
    return recorder.emit(ops.pow, args)


def _vecdot(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    x = recorder.emit(ops.conj, (x,)) if x.dtype.is_complex else x
    found = recorder.emit(ops.multiply, (x, y))
    return recorder.emit(ops.sum, (found,), axis=(found.rank - 1,), keepdims=False, dtype=None)


COMPOUNDS: dict[np.ufunc, Compound] = {
    np.fabs: _in_floats(ops.abs),
    np.rint: _in_floats(ops.round),
    np.deg2rad: _scaled(math.pi / 180),
    np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi),
    np.degrees: _scaled(180 / math.pi),
    np.exp2: _exp2,
    np.fmax: _known_of(ops.maximum),
    np.fmin: _known_of(ops.minimum),
    np.float_power: _float_power,
    np.vecdot: _vecdot,
}
