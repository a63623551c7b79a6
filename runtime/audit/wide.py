"""A graph in wide arithmetic: what a run would give if no narrow dtype rounded and none wrapped.

Floats are float64, complex numbers complex128, and integers int64, or float64 all of an array where
one does not fit. A cast is what it is for: to bool `!= 0`, a float that the user makes an integer
truncated, an integer made a float, a real number complex; what only represents values otherwise
leaves them as they are, and so does a promotion integers that float64 has not. Bits have no meaning
apart from their dtype, nor has the next float: the ops on those keep theirs. So what float64 and
complex128 round themselves is in no error.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, GraphirError, Op, Symbol, ops
from graphir.conversions import convert
from graphir.ir.inference_cache import infer
from graphir.location import CAST
from graphir.ops import dtype_rules as signatures
from graphir.ops.op import Inferred
from graphir.semantics.evaluation import apply
from passes.rewriter import origins_of
from runtime.audit.exact import numbers
from runtime.audit.measuring import blocks
from runtime.interpreter import ReferenceRun

Array: TypeAlias = NDArray[Any]

WIDE = {
    "bool": DType.bool,
    "int": DType.int64,
    "uint": DType.int64,
    "float": DType.float64,
    "complex": DType.complex128,
}
_ORDER = (DType.bool, DType.int64, DType.float64, DType.complex128)
_OWN = {signatures.BITWISE, signatures.SHIFT, signatures.STEP}
_GROWING = {
    *(ops.add, ops.subtract, ops.multiply, ops.pow, ops.negative, ops.abs, ops.square),
    *(ops.sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod),
    *(ops.matmul, ops.tensordot, ops.outer),
}
"""Ops of integers whose results may be beyond the range of their operands."""


def widen(array: Array, dtype: DType) -> Array:
    """The values of an array in their wide dtype; float64 rounds integers from 2**53 on."""
    wide = WIDE[dtype.family]
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        wide = DType.float64
    return convert(array, dtype, wide)


def wide_dtype(array: Array) -> DType:
    """The dtype of an array of wide values."""
    return DType.from_numpy(array.dtype)


class Effect(NamedTuple):
    """What `before`, of dtype `source`, became: `after`, of dtype `target`."""

    before: Array
    after: Array
    source: DType
    target: DType


class WideRun(ReferenceRun):
    """A run in wide arithmetic, beside one that has not begun.

    From that it has inputs, constants and what else is made of nothing; and the value of an op
    that has no result for wide operands: an index, say, that is in range only because it wrapped.
    `literals` are the numbers that the program writes for constants whose dtype rounds them, by the
    place of the constant; `pins` and `masks` as `Beyond` has them. `effects` are those that are
    kept for when the run beside has gone on, `lost` the places of symbols that have no value in
    wide arithmetic, and `rounded` those of integers that float64 rounded.
    """

    def __init__(
        self,
        beside: ReferenceRun,
        literals: Mapping[int, complex],
        pins: Mapping[int, Symbol],
        masks: Mapping[Symbol, Symbol],
    ) -> None:
        self.beside, self.literals, self.pins, self.masks = beside, literals, pins, masks
        self._pin_places = {pin.index for pin in pins.values()}
        graph = beside.graph
        self.rounded: set[int] = set()
        arrays = [self._widen(x) for x in graph.inputs]
        super().__init__(graph, arrays, beside.sizes, beside.kept_places)
        self.effects: dict[int, Effect] = {}
        self.lost: set[int] = set()
        self._inferences: dict[tuple[Any, ...], Inferred] = {}

    def walk(self, keep: bool = False) -> Iterator[Symbol]:
        """The symbols, each when it has been run beside and then here."""
        for _, symbol in zip(self.beside.walk(), super().walk(keep), strict=True):
            yield symbol

    def value(self, symbol: Symbol) -> Array:
        """The wide value of a symbol whose operands' are known."""
        if symbol.index in self.literals:
            number = _as_array(self.literals[symbol.index])
            return convert(number, wide_dtype(number), WIDE[symbol.dtype.family])
        if symbol.args:
            with suppress(GraphirError):
                return self.computed(symbol, [self.known(arg) for arg in symbol.args])
            self.lost.add(symbol.index)
        return self._widen(symbol)

    def _widen(self, symbol: Symbol) -> Array:
        """The value of a symbol in the run beside, in its wide dtype."""
        x = self.beside.known(symbol)
        wide = widen(x, self.beside.graph.stored(symbol))
        if x.dtype == np.uint64 and wide.dtype == np.float64:
            self.rounded.add(symbol.index)
        return wide

    def computed(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """What the op of a symbol makes of wide operands; GraphirError where it has no result."""
        try:
            return self._compute(symbol, operands)
        except GraphirError:
            floats = [_as_float(arg, x) for arg, x in zip(symbol.args, operands, strict=True)]
            if all(map(operator.is_, floats, operands)):
                raise
            return self._compute(symbol, floats)

    def _compute(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        if symbol.index in self._pin_places:
            return operands[-1]
        if symbol.op is ops.cast:
            return self.cast(symbol, operands[0])
        dtypes = tuple(map(wide_dtype, operands))
        if symbol.op.signature in _OWN:
            own = self.concrete(symbol)
            return widen(self._apply(symbol.op, own, dtypes, operands), own.type.dtype)
        inference = self._wide(symbol, dtypes)
        if symbol.op in _GROWING and inference.operands[0] is DType.int64:
            floats = self._wide(symbol, (DType.float64,) * len(dtypes))
            float_result = self._apply(symbol.op, floats, dtypes, operands)
            if not _surely_fits_int64(float_result):
                self.rounded.add(symbol.index)
                return float_result
        result = self._apply(symbol.op, inference, dtypes, operands)
        floats = symbol.dtype.is_integer and result.dtype == np.float64
        if floats and not _fits_float64(result[np.isfinite(result)]):
            self.rounded.add(symbol.index)
        return result

    def cast(self, symbol: Symbol, x: Array) -> Array:
        """What a cast is for, of wide values."""
        source, target = wide_dtype(x), WIDE[symbol.dtype.family]
        if target is DType.int64 and source is DType.float64:
            return _truncate(x) if _is_written(symbol) else x
        if target is DType.float64 and source is DType.int64 and not _is_written(symbol):
            return convert(x, source, target) if _fits_float64(x) else x
        return convert(x, source, target)

    def effect(self, site: Symbol) -> Effect:
        """What went into a cast in the run beside and what came out; or a number and a constant."""
        if site.index in self.effects:
            return self.effects[site.index]
        after, to = self.beside.known(site), self.graph.stored(site)
        if site.op is ops.cast:
            (x,) = site.args
            pin = self.pins.get(site.index)
            if pin is not None:
                at, pinned_value, _ = map(self.beside.known, (*pin.args[:2], site))
                after = np.where(at, pinned_value, after)
            return Effect(self.beside.known(x), after, self.graph.stored(x), to)
        number = _as_array(self.literals[site.index])
        return Effect(number, after, wide_dtype(number), to)

    def masked(self, site: Symbol, effect: Effect) -> Effect:
        """The part of an effect that the program asked for, by where=."""
        mask = self.masks.get(site)
        selection = None if mask is None else self.beside.values[mask.index]
        if selection is None:
            return effect
        at = np.broadcast_to(selection, effect.before.shape)
        return effect._replace(before=effect.before[at], after=effect.after[at])

    def is_same(self, symbol: Symbol, truth: bool) -> bool:
        """Whether a symbol has the same values in both runs; of a `truth` the same ones are 0."""
        parts = 1 + symbol.dtype.is_complex
        wide, beside = self.known(symbol), self.beside.known(symbol)
        storage = self.graph.stored(symbol)
        for at in blocks(wide.size):
            new = numbers(wide.reshape(-1)[at], wide_dtype(wide), parts)
            old = numbers(beside.reshape(-1)[at], storage, parts)
            if not (new.zero == old.zero if truth else new.identical(old)).all():
                return False
        return True

    def with_loss(self, site: Symbol, wide: Array) -> Array:
        """A wide value of a cast, off by what it lost: what came out less what the cast is for.

        So a fraction which the user truncates is no loss. Where the difference is not finite, the
        value is what came out; so it is where a number became a constant.
        """
        before, after, source, target = self.effect(site)
        if site.op is not ops.cast:
            return widen(after, target)
        dtype = _dtype_off(wide, before, after, source)
        result = np.empty(wide.shape, dtype.storage)
        flat = [array.reshape(-1) for array in (wide, before, after, result)]
        for at in blocks(wide.size):
            value, old, new, out = (array[at] for array in flat)
            terms = value, self.cast(site, widen(old, source)), widen(new, target)
            out[:] = _off(*(convert(term, wide_dtype(term), dtype) for term in terms))
        return result

    def _apply(
        self, op: Op, inference: Inferred, dtypes: Sequence[DType], operands: Sequence[Array]
    ) -> Array:
        return apply(op, inference, dtypes, operands, self.sizes, self.graph.tf32)

    def _wide(self, symbol: Symbol, dtypes: tuple[DType, ...]) -> Inferred:
        """What inference says where operands have such dtypes, those that join the widest."""
        key = (symbol.index, dtypes)
        inference = self._inferences.get(key)
        if inference is None:
            inference = self._inferences[key] = self._infer(symbol, dtypes)
        return inference

    def _infer(self, symbol: Symbol, dtypes: tuple[DType, ...]) -> Inferred:
        positions = symbol.op.signature.joined or range(len(dtypes))
        join = max((dtypes[i] for i in positions), key=_ORDER.index)
        types = [
            arg.type.cast(join if i in positions else WIDE[arg.dtype.family])
            for i, arg in enumerate(symbol.args)
        ]
        attrs = {name: value for name, value in symbol.attrs.items() if name != "dtype"}
        return infer(self.graph.rules, symbol.op, types, attrs)


def _fits_int64(x: Array) -> bool:
    return not x.size or bool(x.min() >= -(2.0**63) and x.max() < 2.0**63)


def _surely_fits_int64(x: Array) -> bool:
    """Whether integers are in the range of int64 that float64 has but for its rounding."""
    most = 2.0**63 - 2.0**53
    return not x.size or bool(x.min() >= -most and x.max() <= most)


def _fits_float64(x: Array) -> bool:
    """Whether float64 surely has some integers."""
    return not x.size or bool(x.min() >= -(2**53) and x.max() <= 2**53)


def _as_float(symbol: Symbol, x: Array) -> Array:
    """Integers that a float has become, as an op takes them that is of floats alone."""
    if symbol.dtype.family == "float" and x.dtype == np.int64:
        return convert(x, DType.int64, DType.float64)
    return x


def _truncate(x: Array) -> Array:
    """Whole numbers, NaN as 0: integers where all fit."""
    whole = np.where(np.isnan(x), 0.0, np.trunc(x))
    return whole.astype(np.int64) if _fits_int64(whole) else whole


def _is_written(cast: Symbol) -> bool:
    """Whether the user wrote a cast, for one of its uses at least."""
    return any(origin.rule == CAST for origin in origins_of(cast))


def _dtype_off(wide: Array, before: Array, after: Array, source: DType) -> DType:
    """The wide dtype that holds a value and a loss: int64 where neither can be larger."""
    if wide.dtype == np.int64 and not source.is_float and all(map(_fits_int64, (before, after))):
        return DType.int64
    return max(wide_dtype(wide), DType.float64, key=_ORDER.index)


def _off(value: Array, exact: Array, actual: Array) -> Array:
    # Where int64 wraps in the difference it wraps back in the sum.
    loss = actual - exact
    same = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
    return np.where(same, value, np.where(np.isfinite(loss), value + loss, actual))


def _as_array(number: complex) -> Array:
    """A Python number in 64 bits a part."""
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        number = float(number)
    return np.asarray(number)
