"""One backward sweep over a run: the share of every local error in the errors of the outputs.

The error of an output is, to first order, the sum over all steps of a step's local error times the
derivative of the output by the step's result, its adjoint (S. Linnainmaa, Taylor expansion of the
accumulated rounding error, BIT 16, 1976). The sweep starts at each output from e / <e, e>, where e
is the output's error, so that the sum of adjoint * local error over the elements of a step is the
share of the step. The slopes of steps are differences between the two runs (see
runtime.audit.adjoints): the shares of all steps sum to 1, unless a step has no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from graphir import DType, GraphirError, Symbol, ops
from graphir.conversions import convert
from graphir.semantics.evaluation import settings_of
from passes.analysis.casts import Measured
from runtime.audit.adjoints import (
    Array,
    StepValues,
    finite,
    pull,
    real_part,
    slope,
    unbroadcast,
    unit_slope,
)
from runtime.audit.exact import numbers
from runtime.audit.wide import TOTAL, WideRun, is_written

EXACT_OPS = {
    *(ops.where, ops.maximum, ops.minimum, ops.negative, ops.positive, ops.abs, ops.sign, ops.relu),
    *(ops.floor, ops.ceil, ops.trunc, ops.round, ops.copysign, ops.clip, ops.max, ops.min),
    *(ops.real, ops.imag, ops.conj, ops.as_complex, ops.sort, ops.heaviside),
}
"""Ops that compute without rounding."""

BLOCK = 1 << 16
"""The elements of a block: Python's time for a step is small beside that of the block."""


def is_wide(dtype: DType) -> bool:
    """Whether values of a dtype are those of wide arithmetic."""
    return dtype is DType.float64 or dtype is DType.complex128


def may_round(symbol: Symbol, dtype: DType) -> bool:
    """Whether a step of arithmetic may round its result to a narrow float `dtype`."""
    is_float = dtype.is_float or dtype.is_complex
    return is_float and symbol.op.computes and not is_wide(dtype) and symbol.op not in EXACT_OPS


class Sweep:
    """The adjoints of a run's symbols; `visit` takes the symbols from the last to the first.

    `measures` has the casts, literals and lossy steps of the run, by symbol index. `seeds` has the
    symbol of each output and the adjoint to start from. `shares` has, for each seed, the shares by
    symbol index. `unswept` has the indices of the symbols whose errors pass through an op without a
    rule; these symbols have no share. `erring` has the indices of the symbols that may have errors.
    """

    def __init__(
        self,
        run: WideRun,
        live: Sequence[Symbol],
        measures: Mapping[int, Measured],
        seeds: Sequence[tuple[Symbol, Array]],
    ) -> None:
        self.run = run
        self._storages = {x.index: run.graph.storage_dtype(x) for x in live}
        self._sites = {place for place, measure in measures.items() if measure.changed}
        self._sites |= {x.index for x in live if may_round(x, self._storages[x.index])}
        self.erring = set(self._sites)
        for symbol in live:
            for x in symbol.args:
                if x.index in self.erring:
                    self.erring.add(symbol.index)
                    break
        self.shares: list[dict[int, float]] = [{} for _ in seeds]
        self.unswept: set[int] = set()
        self._adjoints: dict[int, dict[int, Array]] = {}
        self._owned: set[tuple[int, int]] = set()
        for number, (symbol, adjoint) in enumerate(seeds):
            self.add(symbol, number, adjoint)

    def take(self, symbol: Symbol) -> dict[int, Array]:
        """Return and forget the adjoints of a symbol, by the number of the seed."""
        adjoints = self._adjoints.pop(symbol.index, {})
        self._owned.difference_update((symbol.index, number) for number in adjoints)
        return adjoints

    def give(self, place: int, adjoints: dict[int, Array]) -> None:
        """Set the adjoints of a symbol, which the sweep must not write to."""
        self._adjoints[place] = adjoints

    def visit(self, symbol: Symbol) -> None:
        """Compute the shares of a symbol, and pass its adjoints to its operands."""
        adjoints = self.take(symbol)
        erring = [i for i, x in enumerate(symbol.args) if x.index in self.erring]
        if symbol.index in self.unswept:
            self.unswept.update(symbol.args[i].index for i in erring)
        elif adjoints and symbol.index in self.erring:
            try:
                self._visit(symbol, adjoints, erring)
            except GraphirError:  # the op fails on a step of its operands
                self._leave(symbol, erring)

    def _visit(self, symbol: Symbol, adjoints: Mapping[int, Array], erring: Sequence[int]) -> None:
        if symbol.args and self.run.pins.get(symbol.args[-1].index) is symbol:
            self._pass(symbol.args[-1], adjoints)
        elif symbol.index in self.run.congruent_places:
            self._leave(symbol, erring)
        elif symbol.op is ops.cast or symbol.op.kind == "elementwise" or not symbol.args:
            self._visit_blocks(symbol, adjoints, erring)
        else:
            self._visit_whole(symbol, adjoints, erring)

    def _visit_whole(
        self, symbol: Symbol, adjoints: Mapping[int, Array], erring: Sequence[int]
    ) -> None:
        step = self._step(symbol, _whole)
        if symbol.index in self._sites:
            error = self._error(step, _whole)
            for number, adjoint in adjoints.items():
                self._note(symbol, number, error, adjoint)
        for at, (number, adjoint) in product(erring, adjoints.items()):
            part = pull(step, adjoint, at)
            if part is None:
                self._leave(symbol, [at])
            else:
                self.add(symbol.args[at], number, part)

    def _visit_blocks(
        self, symbol: Symbol, adjoints: Mapping[int, Array], erring: Sequence[int]
    ) -> None:
        is_site = symbol.index in self._sites
        shape = self.run.cached_value(symbol).shape
        for i in [i for i in erring if self._passes(symbol, i)]:
            self._pass(symbol.args[i], adjoints)
        erring = [i for i in erring if not self._passes(symbol, i)]
        if not (is_site or erring):
            return
        parts = [
            (i, adjoint, self._target(symbol.args[i], number))
            for i, (number, adjoint) in product(erring, adjoints.items())
        ]
        for view in views(shape, [self.run.cached_value(x).shape for x in symbol.args]):
            step = self._step(symbol, view)
            if is_site:
                error = self._error(step, view)
                for number, adjoint in adjoints.items():
                    self._note(symbol, number, error, view(adjoint))
            slopes = {i: slope(step, i) for i in erring}
            for i, adjoint, target in parts:
                part, target_block = view(adjoint) * slopes[i], view(target)
                part = unbroadcast(part, target_block.shape)
                target_block += part if target.dtype.kind == "c" else real_part(part)

    def _passes(self, symbol: Symbol, at: int) -> bool:
        """Whether the adjoint of an operand is that of the result."""
        same = self.run.cached_value(symbol).shape == self.run.cached_value(symbol.args[at]).shape
        return same and (_keeps_values(symbol) or unit_slope(symbol, at))

    def _leave(self, symbol: Symbol, erring: Sequence[int]) -> None:
        """Mark operands of an op without a rule, if errors pass through the op."""
        if not self.run.is_same(symbol, truth=False):
            self.unswept.update(symbol.args[i].index for i in erring)

    def _step(self, symbol: Symbol, view: View) -> StepValues:
        """Return a block of a step: the operands of both runs, the same where none has an error."""
        wide: list[Array] = []
        real: list[Array] = []
        for i, x in enumerate(symbol.args):
            value = view(self.run.cached_value(x))
            wide.append(value if symbol.op.operand(i) == "indices" else _as_float(value))
            real.append(wide[-1])
            if x.index in self.erring and symbol.op.operand(i) != "indices":
                value = view(self.run.beside.cached_value(x))
                real[-1] = self._as_float(value, x)
        settings: Mapping[str, Any] = {}
        if view is _whole:
            sizes, tf32 = self.run.sizes, self.run.graph.tf32
            settings = settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, tf32)
        result = _as_float(view(self.run.cached_value(symbol)))
        return StepValues(symbol, wide, real, result, lambda x: self._evaluate(symbol, x), settings)

    def _evaluate(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        rounded_places = set(self.run.rounded_places)
        try:
            return _as_float(self.run.compute(symbol, operands))
        finally:
            self.run.rounded_places = rounded_places

    def _error(self, step: StepValues, view: View) -> Array:
        """Return the local error of a step: its result less the wide result of its operands."""
        symbol, run = step.symbol, self.run
        source = target = self._storages[symbol.index]
        actual = run.beside.cached_value(symbol)
        if symbol.op is ops.cast:
            effect = run.effect(symbol)
            actual, source = effect.after, effect.source
            if not source.exact_in(DType.float64) and _keeps_values(symbol):
                exact = numbers(view(effect.before).reshape(-1), source)
                error = numbers(view(actual).reshape(-1), target).minus(exact).parts[0].high
                return finite(error.reshape(view(actual).shape))
        if not symbol.args or run.kinds.get(symbol.index) in TOTAL:
            expected = step.result
        else:
            expected = step.real[0] if _keeps_values(symbol) else step.local
        return finite(self._as_float(view(actual), symbol) - expected)

    def _as_float(self, value: Array, symbol: Symbol) -> Array:
        """Return values of a symbol in the reference run as float64 or complex128."""
        storage = self._storages[symbol.index]
        return convert(value, storage, DType.complex128 if storage.is_complex else DType.float64)

    def _note(self, symbol: Symbol, number: int, error: Array, adjoint: Array) -> None:
        # Not by BLAS, whose threads wait for one another on short arrays.
        share = float(np.add.reduce(error * adjoint, axis=None).real)
        shares = self.shares[number]
        shares[symbol.index] = shares.get(symbol.index, 0.0) + share

    def _target(self, symbol: Symbol, number: int) -> Array:
        """Return the array in which the adjoint of a symbol accumulates."""
        adjoints = self._adjoints.setdefault(symbol.index, {})
        if (symbol.index, number) not in self._owned:
            self._owned.add((symbol.index, number))
            dtype = np.complex128 if symbol.dtype.is_complex else np.float64
            target = np.zeros(self.run.cached_value(symbol).shape, dtype)
            if number in adjoints:
                target += adjoints[number]
            adjoints[number] = target
        return adjoints[number]

    def add(self, symbol: Symbol, number: int, part: Array) -> None:
        """Add a part of the adjoint of a symbol."""
        if not symbol.dtype.is_complex:
            part = real_part(part)
        adjoints = self._adjoints.setdefault(symbol.index, {})
        if number in adjoints:
            target = self._target(symbol, number)
            target += part
        else:
            adjoints[number] = part

    def _pass(self, symbol: Symbol, adjoints: Mapping[int, Array]) -> None:
        for number, adjoint in adjoints.items():
            self.add(symbol, number, adjoint)


View = Callable[[Array], Array]
"""A function from an array of a step to its part in one block."""


def _whole(array: Array) -> Array:
    return array


def _the_element(array: Array) -> Array:
    return array.reshape(1)


def views(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> Iterator[View]:
    """Yield the blocks of an elementwise step: of the flat arrays, or of rows where it broadcasts.

    The part of an operand with one element is the operand without axes.
    """
    size = math.prod(shape)
    if size == 1 and all(math.prod(x) == 1 for x in operands):
        yield _the_element
    elif all(x == shape or math.prod(x) == 1 for x in operands):

        def flat(array: Array, at: slice) -> Array:
            return array.reshape(-1)[at] if array.size == size else array.reshape(())

        for start in range(0, size, BLOCK):
            yield lambda array, at=slice(start, start + BLOCK): flat(array, at)
    elif size:
        rows = max(1, BLOCK * shape[0] // size)
        for start in range(0, shape[0], rows):

            def some_rows(array: Array, at: slice = slice(start, start + rows)) -> Array:
                has_rows = array.ndim == len(shape) and array.shape[0] == shape[0]
                return array[at] if has_rows else array

            yield some_rows


def _keeps_values(symbol: Symbol) -> bool:
    """Whether a symbol is a cast that keeps its values in wide arithmetic."""
    if symbol.op is not ops.cast or symbol.dtype.family == "bool":
        return False
    is_truncation = symbol.dtype.is_integer and not symbol.args[0].dtype.is_integer
    return not (is_truncation and is_written(symbol))


def _as_float(array: Array) -> Array:
    return array if array.dtype.kind in "fc" else array.astype(np.float64)
