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
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from graphir.passes.analysis.casts import Measured
from graphir.passes.rewriter import is_conversion
from graphir.public import DType, GraphirError, Symbol
from graphir.runtime.audit.adjoints import (
    Array,
    StepValues,
    finite,
    pull,
    real_part,
    slope,
    unbroadcast,
    unit_slope,
)
from graphir.runtime.audit.blocked_run import View, as_floats, inner
from graphir.runtime.audit.double_double import numbers, round_numbers
from graphir.runtime.audit.effects import TOTAL, effect_of, is_same
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.exactness import is_exact, is_wide
from graphir.runtime.audit.wide_arithmetic import is_written
from graphir.runtime.audit.wide_run import WideRun
from graphir.semantics.evaluation import settings_of

BLOCK = 1 << 16
"""The elements of a block: Python's time for a step is small beside that of the block."""


def may_round(symbol: Symbol, dtype: DType) -> bool:
    """Whether a step of arithmetic may round its result to a narrow float `dtype`."""
    is_float = dtype.is_inexact
    return is_float and symbol.op.computes and not is_wide(dtype) and not is_exact(symbol)


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
        self._passing: dict[int, list[int]] = {}
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
        elif is_conversion(symbol) or symbol.op.kind == "elementwise" or not symbol.args:
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
        for (number, adjoint), at in product(adjoints.items(), erring):
            part = pull(step, adjoint, at)
            if part is None:
                self._leave(symbol, [at])
            else:
                self.add(symbol.args[at], number, part)

    def _visit_blocks(
        self, symbol: Symbol, adjoints: Mapping[int, Array], erring: Sequence[int]
    ) -> None:
        is_site = symbol.index in self._sites
        passing = self._passing.get(symbol.index)
        if passing is None:
            passing = self._passing[symbol.index] = [i for i in erring if self._passes(symbol, i)]
        for i in passing:
            self._pass(symbol.args[i], adjoints)
        erring = [i for i in erring if i not in passing]
        if not (is_site or erring):
            return
        value = self.run.actual_run.cached_value
        if self.run.is_block or value(symbol).size <= BLOCK:
            self._visit_block(symbol, adjoints, erring, _same)
            return
        shapes = [value(x).shape for x in symbol.args]
        targets = {
            (i, number): self._target(symbol.args[i], number)
            for i, number in product(erring, adjoints)
        }
        for view in views(value(symbol).shape, shapes):
            self._visit_block(symbol, adjoints, erring, view, targets)

    def _visit_block(
        self,
        symbol: Symbol,
        adjoints: Mapping[int, Array],
        erring: Sequence[int],
        view: View,
        targets: Mapping[tuple[int, int], Array] | None = None,
    ) -> None:
        """Visit one block of a step; add the adjoints of its operands to blocks of `targets`."""
        step = self._step(symbol, view)
        if symbol.index in self._sites:
            error = self._error(step, view)
            for number, adjoint in adjoints.items():
                self._note(symbol, number, error, view(adjoint))
        for i in erring:
            operand = self.run.actual_run.cached_value(symbol.args[i])
            slopes, shape = slope(step, i), view(operand).shape
            for number, adjoint in adjoints.items():
                part = _times(view(adjoint), slopes, shape)
                if targets is None:
                    self.add(symbol.args[i], number, part, owned=True)
                else:
                    target = view(targets[i, number])
                    target += part if target.dtype.kind == "c" else real_part(part)

    def _passes(self, symbol: Symbol, at: int) -> bool:
        """Whether the adjoint of an operand is that of the result."""
        value = self.run.actual_run.cached_value
        same = value(symbol).shape == value(symbol.args[at]).shape
        return same and (_keeps_values(symbol) or unit_slope(symbol, at))

    def _leave(self, symbol: Symbol, erring: Sequence[int]) -> None:
        """Mark operands of an op without a rule, if errors pass through the op."""
        if not is_same(self.run, symbol, truth=False):
            self.unswept.update(symbol.args[i].index for i in erring)

    def _step(self, symbol: Symbol, view: View) -> StepValues:
        """Return a block of a step: the operands of both runs, the same where none has an error."""
        run, args = self.run, symbol.args
        are_indices = [symbol.op.operand(i) == "indices" for i in range(len(args))]

        def real(at: int) -> Array:
            if are_indices[at]:
                return view(run.cached_value(args[at]))
            return self._floats(args[at], view)

        def wide(at: int) -> Array:
            return _as_float(view(run.cached_value((*args, symbol)[at])))

        erring = {i for i, x in enumerate(args) if x.index in self.erring and not are_indices[i]}
        settings: Mapping[str, Any] = {}
        if view is _whole:
            sizes, tf32 = run.sizes, run.graph.tf32
            settings = settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, tf32)
        evaluate, call = partial(self._evaluate, symbol), run.calls.get(symbol.index)
        return StepValues(symbol, wide, real, erring, evaluate, settings, call)

    def _floats(self, symbol: Symbol, view: View) -> Array:
        """Return a block of values of the reference run as float64 or complex128."""
        actual_run = self.run.actual_run
        if self.run.is_block:
            return actual_run.floats(symbol)
        return as_floats(view(actual_run.cached_value(symbol)), self._storages[symbol.index])

    def _evaluate(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        return _as_float(self.run.compute(symbol, operands))

    def _error(self, step: StepValues, view: View) -> Array:
        """Return the local error of a step: its result less the wide result of its operands."""
        symbol, run = step.symbol, self.run
        source = target = self._storages[symbol.index]
        actual = run.actual_run.cached_value(symbol)
        if is_conversion(symbol):
            effect = effect_of(run, symbol)
            actual, source = effect.after, effect.source
            if source.is_integer and not source.exact_in(DType.float64) and _keeps_values(symbol):
                exact = numbers(view(effect.before).reshape(-1), source)
                error = numbers(view(actual).reshape(-1), target).minus(exact).parts[0].high
                return error.reshape(view(actual).shape)
        if not symbol.args or run.kinds.get(symbol.index) in TOTAL:
            expected = step.result
        elif step.call is not None:
            expected = _as_float(run.local(symbol))
        else:
            expected = step.real[0] if _keeps_values(symbol) else step.local
        is_value = actual is run.actual_run.cached_value(symbol)
        floats = (
            self._floats(symbol, view)
            if is_value
            else as_floats(view(actual), self._storages[symbol.index])
        )
        return floats - expected

    def _note(self, symbol: Symbol, number: int, error: Array, adjoint: Array) -> None:
        share = inner(error, adjoint)
        if not math.isfinite(share):
            share = inner(finite(error), finite(adjoint))
        shares = self.shares[number]
        shares[symbol.index] = shares.get(symbol.index, 0.0) + share

    def _target(self, symbol: Symbol, number: int) -> Array:
        """Return the array in which the adjoint of a symbol accumulates."""
        adjoints = self._adjoints.setdefault(symbol.index, {})
        if (symbol.index, number) not in self._owned:
            self._owned.add((symbol.index, number))
            dtype = np.complex128 if self._is_complex(symbol) else np.float64
            target = np.zeros(self.run.actual_run.cached_value(symbol).shape, dtype)
            if number in adjoints:
                target += adjoints[number]
            adjoints[number] = target
        return adjoints[number]

    def add(self, symbol: Symbol, number: int, part: Array, owned: bool = False) -> None:
        """Add a part of the adjoint of a symbol; the sweep may write to a part that it owns."""
        if not self._is_complex(symbol):
            part = real_part(part)
        adjoints, key = self._adjoints.setdefault(symbol.index, {}), (symbol.index, number)
        old = adjoints.get(number)
        if old is None:
            adjoints[number] = np.asarray(part)
        elif key in self._owned and (old.dtype == part.dtype or old.dtype.kind == "c"):
            np.add(old, part, out=old)
            return
        else:
            adjoints[number] = np.asarray(old + part)
        if old is not None or owned:
            self._owned.add(key)

    def _is_complex(self, symbol: Symbol) -> bool:
        """Whether the wide value is complex: also one that the program makes real by a cast."""
        return wide_dtype(self.run.cached_value(symbol)).is_complex

    def _pass(self, symbol: Symbol, adjoints: Mapping[int, Array]) -> None:
        for number, adjoint in adjoints.items():
            self.add(symbol, number, adjoint)


def _whole(array: Array) -> Array:
    return array


def _same(array: Array) -> Array:
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


def _times(adjoint: Array, slopes: Array | complex, shape: tuple[int, ...]) -> Array:
    """Return adjoint * slopes, summed over the axes along which `shape` broadcasts."""
    if shape or not adjoint.ndim or adjoint.dtype != np.float64:
        return unbroadcast(adjoint * slopes, shape)
    if np.ndim(slopes) == 0:
        return np.asarray(np.add.reduce(adjoint, axis=None) * slopes)
    if np.shape(slopes) == adjoint.shape and np.isrealobj(slopes):
        return np.asarray(inner(adjoint, np.asarray(slopes)))
    return unbroadcast(adjoint * slopes, shape)


def _keeps_values(symbol: Symbol) -> bool:
    """Whether a symbol is a cast that keeps its values in wide arithmetic."""
    if not is_conversion(symbol) or symbol.dtype.family == "bool":
        return False
    is_truncation = symbol.dtype.is_integer and not symbol.args[0].dtype.is_integer
    return not (is_truncation and is_written(symbol))


def _as_float(array: Array) -> Array:
    array = round_numbers(array)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)
