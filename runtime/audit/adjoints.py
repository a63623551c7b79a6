"""The adjoints of ops: from the adjoint of a result to the adjoints of its operands.

The slope of an elementwise op is a difference between the two runs, one operand after another:
(f(real) - f(wide)) / (real - wide). So the errors that pass through the operands sum to the error
of the result, also across kinks, branches and large errors (A. Shrikumar et al., Learning important
features through propagating activation differences, 2017). Bilinear ops have their slopes at the
mean of both runs, which is the same. Where an operand has no error, the slope is the difference
over a small step. Of complex numbers, the real part of adjoint * error counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import lazy
from graphir.passes.decompose import decompose
from graphir.public import DType, Graph, Op, Symbol, TensorType, ops
from graphir.runtime.audit.library_calls import CallResult
from graphir.runtime.audit.wide_arithmetic import OF_RUN
from graphir.runtime.interpreter import ReferenceRun
from graphir.semantics import data_movement as movement
from graphir.semantics.evaluation import Evaluation

Array: TypeAlias = NDArray[Any]

_NOISE = 2.0**-30
"""The relative error of an operand below which rounding in float64 spoils a difference."""
_STEP = 2.0**-20
"""The relative step of a derivative."""


@dataclass(eq=False)
class StepValues:
    """One op on the operands of both runs, as float64 or complex128, whole or in a block.

    `read_wide` and `read_real` read an operand of a run, when a rule first asks for the operands;
    `read_wide(-1)` is the result of the wide run. Only the operands in `erring` have errors: others
    are the same object in both runs. `evaluate` applies the op to operands in wide arithmetic.
    `settings` are the op's attributes as keyword arguments of a kernel. `call` is the library's
    call of which the symbol is a result.
    """

    symbol: Symbol
    read_wide: Callable[[int], Array]
    read_real: Callable[[int], Array]
    erring: Container[int]
    evaluate: Callable[[Sequence[Array]], Array]
    settings: Mapping[str, Any]
    call: CallResult | None = None
    pulled: tuple[Array, Sequence[Array | None] | None] | None = None
    """The last adjoint that a rule pulled through the call, and those of the operands."""

    @lazy
    def real(self) -> list[Array]:
        """The operands of the reference run."""
        return [self.read_real(i) for i in range(len(self.symbol.args))]

    @lazy
    def wide(self) -> list[Array]:
        """The operands of the wide run."""
        real = self.real
        return [self.read_wide(i) if i in self.erring else x for i, x in enumerate(real)]

    @lazy
    def result(self) -> Array:
        """The result of the wide run."""
        return self.read_wide(-1)

    @lazy
    def local(self) -> Array:
        """The wide result of the operands of the real run."""
        return self.evaluate(self.real)

    def middle(self, at: int) -> Array:
        """Return the mean of an operand over both runs; that of the wide run if it is finite."""
        wide, real = self.wide[at], self.real[at]
        if wide is real:
            return wide
        mean = wide + real
        mean *= 0.5
        return mean if is_finite(mean) else np.where(np.isfinite(mean), mean, wide)


def slope(step: StepValues, at: int) -> Array | complex:
    """Return the slope of an elementwise op in one operand."""
    rule = _SLOPES.get(step.symbol.op, _secant)
    return rule(step, at) if callable(rule) else rule[at]


def unit_slope(symbol: Symbol, at: int) -> bool:
    """Whether the slope of an elementwise op in an operand is 1."""
    rule = _SLOPES.get(symbol.op)
    return not (rule is None or callable(rule)) and rule[at] == 1


def is_finite(array: Array) -> bool:
    """Whether all elements are finite; False also if their sum exceeds the range of float64."""
    total: Any = np.add.reduce(array, axis=None)
    return bool(np.isfinite(total))


def finite(array: Array) -> Array:
    """Return an array with 0 in place of elements that are not finite."""
    return array if is_finite(array) else np.where(np.isfinite(array), array, 0.0)


def pull(step: StepValues, adjoint: Array, at: int) -> Array | None:
    """Return the adjoint of one operand of an op that is not elementwise; None without a rule."""
    op = step.symbol.op
    if step.call is not None:
        return _pull_call(step, adjoint, at)
    rule = _RULES.get(op, _pull_movement if op.kind == "movement" else None)
    if rule is None:
        return _pull_composite(step, adjoint, at)
    return rule(step, adjoint, at)


def real_part(array: Any) -> Array:
    """Return the real part of an array."""
    return array.real


def unbroadcast(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum an array over the axes along which an operand of `shape` was broadcast."""
    if array.shape == shape:
        return array
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and array.shape[i] != 1)
    return array.sum(axis=axes, keepdims=True)


def _secant(step: StepValues, at: int) -> Array:
    """Return the difference of an op between both runs in one operand, divided by its error."""
    wide, real = step.wide[at], step.real[at]
    size, error = np.abs(wide), real - wide
    counts = np.abs(error) > size * _NOISE
    if not is_finite(error):
        counts &= np.isfinite(error)
    same = [x is y for x, y in zip(step.wide, step.real, strict=True)]
    if counts.all():
        point = real
        after = step.local if all(same[at + 1 :]) else None
    else:
        point = np.where(counts, real, wide + np.where(size > 0, size, 1.0) * _STEP)
        error, after = point - wide, None
    if after is None:
        after = step.evaluate([*step.real[:at], point, *step.wide[at + 1 :]])
    is_first = all(same[:at])
    before = step.result if is_first else step.evaluate([*step.real[:at], *step.wide[at:]])
    return finite((after - before) / error)


def _multiply(step: StepValues, at: int) -> Array:
    return step.middle(1 - at)


def _divide(step: StepValues, at: int) -> Array:
    (wide, real), x = (run[1] for run in (step.wide, step.real)), step.middle(0)
    if at == 0:
        return finite(1 / wide if wide is real else (1 / wide + 1 / real) / 2)
    return finite(-x / (wide * real))


def _square(step: StepValues, at: int) -> Array:
    return 2 * step.middle(at)


def _where(step: StepValues, at: int) -> Array:
    if at == 0:
        return step.middle(1) - step.middle(2)
    condition = step.middle(0)
    return condition if at == 1 else 1 - condition


_SLOPES: dict[Op, Callable[[StepValues, int], Array] | tuple[complex, ...]] = {
    ops.add: (1.0, 1.0),
    ops.subtract: (1.0, -1.0),
    ops.negative: (-1.0,),
    ops.positive: (1.0,),
    ops.real: (1.0,),
    ops.imag: (-1j,),
    ops.as_complex: (1.0, 1j),
    ops.multiply: _multiply,
    ops.divide: _divide,
    ops.square: _square,
    ops.where: _where,
}


def _spread(step: StepValues, adjoint: Array) -> Array:
    """Return the adjoint of a reduction with one element along the reduced axes."""
    axes, shape = step.settings["axis"], step.wide[0].shape
    return adjoint.reshape([1 if i in axes else size for i, size in enumerate(shape)])


def _sum(step: StepValues, adjoint: Array, at: int) -> Array:
    return np.broadcast_to(_spread(step, adjoint), step.wide[at].shape)


def _mean(step: StepValues, adjoint: Array, at: int) -> Array:
    return _sum(step, adjoint / _count(step), at)


def _count(step: StepValues) -> int:
    return max(math.prod(step.wide[0].shape[i] for i in step.settings["axis"]), 1)


def _var(step: StepValues, adjoint: Array, at: int) -> Array:
    x, count = step.middle(at), _count(step) - step.settings["correction"]
    centred = np.conj(x - x.mean(axis=tuple(step.settings["axis"]), keepdims=True))
    return _spread(step, adjoint) * centred * (2 / count if count > 0 else 0.0)


def _extreme(step: StepValues, adjoint: Array, at: int) -> Array:
    x, axes = step.wide[at], tuple(step.settings["axis"])
    extreme = (np.max if step.symbol.op is ops.max else np.min)(x, axis=axes, keepdims=True)
    mask = x == extreme
    return _spread(step, adjoint) * (mask / np.maximum(mask.sum(axis=axes, keepdims=True), 1))


def _prod(step: StepValues, adjoint: Array, at: int) -> Array:
    x = step.middle(at)
    product = x.prod(axis=tuple(step.settings["axis"]), keepdims=True)
    return finite(_spread(step, adjoint) * product / x)


def _cumulative_sum(step: StepValues, adjoint: Array, at: int) -> Array:
    axis = step.settings["axis"]
    return np.flip(np.cumsum(np.flip(adjoint, axis), axis), axis)


def _sort(step: StepValues, adjoint: Array, at: int) -> Array:
    axis, descending = step.settings["axis"], step.settings["descending"]
    places = np.argsort(step.wide[at], axis=axis, kind="stable")
    result = np.zeros(step.wide[at].shape, adjoint.dtype)
    ordered = np.flip(adjoint, axis) if descending else adjoint
    np.put_along_axis(result, places, ordered, axis)
    return result


def _matmul(step: StepValues, adjoint: Array, at: int) -> Array:
    other, shape = step.middle(1 - at), step.wide[at].shape
    if step.wide[0].ndim == 1:
        adjoint = np.expand_dims(adjoint, -2 if step.wide[1].ndim > 1 else -1)
    if step.wide[1].ndim == 1:
        adjoint = np.expand_dims(adjoint, -1)
    if at == 0:
        matrix = other[:, None] if other.ndim == 1 else other
        result = adjoint @ np.swapaxes(matrix, -1, -2)
        return unbroadcast(result, shape if len(shape) > 1 else (1, *shape)).reshape(shape)
    matrix = other[None, :] if other.ndim == 1 else other
    result = np.swapaxes(matrix, -1, -2) @ adjoint
    return unbroadcast(result, shape if len(shape) > 1 else (*shape, 1)).reshape(shape)


def _reshape(step: StepValues, adjoint: Array, at: int) -> Array:
    return adjoint.reshape(step.wide[at].shape)


def _broadcast(step: StepValues, adjoint: Array, at: int) -> Array:
    return unbroadcast(adjoint, step.wide[at].shape)


def _slice(step: StepValues, adjoint: Array, at: int) -> Array:
    result = np.zeros(step.wide[at].shape, adjoint.dtype)
    movement.sliced(result, **step.settings)[...] = adjoint
    return result


def _item(step: StepValues, adjoint: Array, at: int) -> Array:
    result = np.zeros(step.wide[at].shape, adjoint.dtype)
    result[step.settings["index"]] = adjoint
    return result


def _slice_update(step: StepValues, adjoint: Array, at: int) -> Array:
    if at == 1:
        return unbroadcast(movement.sliced(adjoint, **step.settings), step.wide[at].shape)
    result = adjoint.copy()
    movement.sliced(result, **step.settings)[...] = 0
    return result


def _index_add(step: StepValues, adjoint: Array, at: int) -> Array | None:
    if at != 1:
        return adjoint if at == 0 else None  # of the indices
    axis, indices = step.settings["axis"], step.wide[2]
    flat = adjoint.reshape(-1) if axis is None else adjoint
    return unbroadcast(movement.gather(flat, indices, axis or 0), step.wide[at].shape)


def _stack(step: StepValues, adjoint: Array, at: int) -> Array:
    return np.take(adjoint, at, axis=step.settings["axis"])


def _pull_movement(step: StepValues, adjoint: Array, at: int) -> Array | None:
    """Return the adjoint of an operand that an op moves, by moving the numbers of its places."""
    if step.symbol.op.operand(at) == "indices":
        return None
    operands: list[Array] = [
        x if step.symbol.op.operand(i) == "indices" else np.zeros(x.shape)
        for i, x in enumerate(step.wide)
    ]
    fixed = step.evaluate(operands)
    size = step.wide[at].size
    operands[at] = np.arange(1.0, size + 1).reshape(step.wide[at].shape)
    places = finite(step.evaluate(operands) - fixed).astype(np.int64).reshape(-1)
    values: Any = adjoint.reshape(-1)
    parts = [np.bincount(places, part, size + 1)[1:] for part in (values.real, values.imag)]
    result = parts[0] + 1j * parts[1] if np.iscomplexobj(adjoint) else parts[0]
    return result.reshape(step.wide[at].shape)


_RULES: dict[Op, Callable[[StepValues, Array, int], Array | None]] = {
    ops.sum: _sum,
    ops.mean: _mean,
    ops.var: _var,
    ops.max: _extreme,
    ops.min: _extreme,
    ops.prod: _prod,
    ops.cumulative_sum: _cumulative_sum,
    ops.sort: _sort,
    ops.matmul: _matmul,
    ops.reshape: _reshape,
    ops.squeeze: _reshape,
    ops.unsqueeze: _reshape,
    ops.rebind: _reshape,
    ops.broadcast_to: _broadcast,
    ops.slice: _slice,
    ops.item: _item,
    ops.slice_update: _slice_update,
    ops.index_add: _index_add,
    ops.stack: _stack,
}


def _pull_call(step: StepValues, adjoint: Array, at: int) -> Array | None:
    """Return the adjoint of an operand of a library's call, by the library's own derivatives.

    The slopes are those at the mean of both runs: exact of convolutions, which are bilinear.
    """
    if step.pulled is None or step.pulled[0] is not adjoint:
        assert step.call is not None
        operands = [
            step.middle(i)
            if x.dtype.is_inexact
            else step.wide[i].astype(np.bool_ if x.dtype is DType.bool else np.int64)
            for i, x in enumerate(step.symbol.args)
        ]
        step.pulled = adjoint, step.call.call.adjoints(operands, step.call.place, adjoint)
    parts = step.pulled[1]
    return None if parts is None else parts[at]


def _pull_composite(step: StepValues, adjoint: Array, at: int) -> Array | None:
    """Return the adjoint of an operand of a composite op, by its decomposition in float64."""
    if any(np.iscomplexobj(x) for x in step.wide) or step.symbol.op.decomposition is None:
        return None
    attrs = tuple((name, x) for name, x in step.symbol.attrs.items() if name not in OF_RUN)
    graph = _decomposition(step.symbol.op, attrs, tuple(x.shape for x in step.wide))
    if any(symbol.op is step.symbol.op for symbol in graph.symbols):
        return None
    runs = [ReferenceRun(graph, list(arrays), {}) for arrays in (step.wide, step.real)]
    for run in runs:
        for _ in run.walk(keeps=True):
            pass
    adjoints: dict[int, Array] = {graph.outputs[0].index: adjoint}
    depends = {graph.inputs[at].index}
    for symbol in graph.symbols:
        if not depends.isdisjoint(x.index for x in symbol.args):
            depends.add(symbol.index)
    for symbol in reversed(graph.symbols):
        if symbol.args and symbol.index in depends and symbol.index in adjoints:
            inner = _inner_step(symbol, *runs)
            passed = adjoints.pop(symbol.index)
            for i, x in enumerate(symbol.args):
                if x.index in depends:
                    part = _pull_inner(inner, passed, i)
                    if part is None:
                        return None
                    adjoints[x.index] = part + adjoints.get(x.index, 0.0)
    return adjoints.get(graph.inputs[at].index)


def _pull_inner(step: StepValues, adjoint: Array, at: int) -> Array | None:
    op = step.symbol.op
    if op is ops.cast:
        return adjoint
    if op.kind == "elementwise":
        return unbroadcast(adjoint * slope(step, at), step.wide[at].shape)
    return pull(step, adjoint, at)


def _inner_step(symbol: Symbol, wide: ReferenceRun, real: ReferenceRun) -> StepValues:
    inference = wide.concrete(symbol)

    def evaluate(operands: Sequence[Array]) -> Array:
        dtypes = [DType.from_numpy(x.dtype) for x in operands]
        return Evaluation(symbol.op, inference, dtypes, {})(operands)

    def floats(run: ReferenceRun, x: Symbol) -> Array:
        return run.cached_value(x).astype(np.float64)

    values = (*symbol.args, symbol)
    return StepValues(
        symbol,
        lambda at: floats(wide, values[at]),
        lambda at: floats(real, values[at]),
        range(len(symbol.args)),
        evaluate,
        dict(symbol.attrs),
    )


@lru_cache(maxsize=256)
def _decomposition(
    op: Op, attrs: tuple[tuple[str, Any], ...], shapes: tuple[tuple[int, ...], ...]
) -> Graph:
    """Return a composite op in float64 as a graph of ops that have rules."""
    graph = Graph(op.name, rules="numpy")
    operands = [graph.input(TensorType(DType.float64, shape)) for shape in shapes]
    graph.output(graph.apply(op, operands, dict(attrs)))
    return decompose(graph, keep=_RULED_OPS)


_RULED_OPS = frozenset(
    op.name
    for op in ops.CATALOGUE.values()
    if op in _RULES or op.kind in ("elementwise", "movement")
)
"""The ops that have rules of their own."""
