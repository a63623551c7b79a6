"""The wide run of an audit: a graph in wide arithmetic, in step with a run in the program's dtypes.

The values that facts prove to be equal in both runs are computed once (see WideRun.is_equal).
Results of library calls are those of the same calls in wide arithmetic, under the guards of
runtime.audit.library_calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphir.conversions import convert
from graphir.passes.analysis.casts import StepLoss
from graphir.passes.rewriter import is_conversion
from graphir.public import DType, ExecutionError, Graph, GraphirError, Symbol
from graphir.runtime.audit import exact_arrays as exact
from graphir.runtime.audit.blocked_run import Array, BlockedRun, View
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.exactness import is_wide, keeps_equal
from graphir.runtime.audit.library_calls import CallRun, disagreement, is_choice
from graphir.runtime.audit.opaque import NO_VALUE, RecordedFacts
from graphir.runtime.audit.wide_arithmetic import (
    WIDE,
    WideArithmetic,
    apply_cast,
    floats_of,
    wide_operands,
    widen,
)
from graphir.runtime.binding import bind

if TYPE_CHECKING:
    from typing import Self


class RecordedRun(BlockedRun):
    """A run in the program's own dtypes, with the observed results of a recorded run.

    Without one, the result of a library's call is its wide result on the operands, rounded once.
    """

    def __init__(
        self, graph: Graph, arrays: Sequence[Array], sizes: dict[str, int], facts: RecordedFacts
    ) -> None:
        super().__init__(graph, arrays, sizes, facts.watched)
        self.facts = facts
        self._observed = {symbol.index: x for symbol, x in facts.observed.items()}
        places = {symbol.index: call for symbol, call in facts.calls.items()}
        self.call_run = CallRun(places, facts.as_dtype)

    def value(self, symbol: Symbol) -> Array:
        """Return the observed value of a symbol, or compute it."""
        value = self._observed.get(symbol.index)
        if value is not None:
            return value
        call, storage = self.call_run.calls.get(symbol.index), self.graph.storage_dtype(symbol)
        if call is None:
            return super().value(symbol)
        try:
            wide = self.call_run.result(symbol, wide_operands(self, symbol))
        except ExecutionError as error:
            self.call_run.failures[symbol.index] = error.summary
            return convert(call.real, DType.from_numpy(call.real.dtype), storage, self.graph.tf32)
        return convert(wide, wide_dtype(wide), storage, self.graph.tf32)

    def evaluate(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Compute a symbol on other operands of its dtypes; a pin has the value of its cast."""
        pins = self.facts.pins
        is_pin = bool(symbol.args) and pins.get(symbol.args[-1].index) is symbol
        return operands[-1] if is_pin else self._evaluation(symbol)(operands)

    def wide_value(self, symbol: Symbol) -> Array:
        """Return the value of a symbol in its wide dtype."""
        return widen(self.cached_value(symbol), self.graph.storage_dtype(symbol))


@np.errstate(all="ignore")
def refuted(graph: Graph, arrays: Sequence[Array], facts: RecordedFacts) -> RecordedFacts:
    """Return the same facts; calls that give other results than those of the run are refuted."""
    if not facts.calls:
        return facts
    run, calls = RecordedRun(graph, *bind(graph, arrays, {}), facts), dict(facts.calls)
    for symbol in run.walk():
        result = run.call_run.calls.get(symbol.index)
        if result is not None:
            try:
                local = run.call_run.result(symbol, wide_operands(run, symbol))
                actual = run.wide_value(symbol)
                reason = disagreement(local, actual, symbol, result.call.precision)
            except ExecutionError as error:
                reason = "" if is_choice(symbol) else error.summary
            calls[symbol] = result._replace(refuted=reason)
    return facts._replace(calls=calls)


class WideRun(BlockedRun):
    """A run in wide arithmetic, in step with a run in the program's dtypes, `actual_run`.

    The wide run takes from that run the inputs, the constants and the results of other ops without
    operands. It also takes the value of an op that fails on wide operands, such as an index that is
    in range only because it wrapped. `literals` maps the index of a constant to the Python number
    that its dtype rounds; `masks` is as in RecordedFacts. `kinds` has the kinds of the lossy steps,
    by symbol index (see runtime.audit.losses). `lost_places` maps the indices of symbols without a
    value in wide arithmetic to the reasons, `equal_places` has those of symbols that facts prove to
    be equal in both runs. `calls` has the results of library calls, and `choices` those results
    that wide arithmetic would choose otherwise (see runtime.audit.library_calls).
    """

    def __init__(
        self,
        actual_run: RecordedRun,
        literals: Mapping[int, complex],
        masks: Mapping[Symbol, Symbol],
        kinds: Mapping[int, StepLoss],
    ) -> None:
        self.actual_run, self.literals, self.masks, self.kinds = actual_run, literals, masks, kinds
        self.pins = actual_run.facts.pins
        self._pin_places = {pin.index for pin in self.pins.values()}
        graph, sizes = actual_run.graph, actual_run.sizes
        arrays = [self._widen(x) for x in graph.inputs]
        super().__init__(graph, arrays, sizes, actual_run.kept_places)
        self._arithmetic = WideArithmetic(graph, sizes, actual_run.concrete)
        self._reference_calls, self.calls = actual_run.call_run, actual_run.call_run.calls
        self.call_run, self._local_run = CallRun(self.calls), CallRun(self.calls)
        self.lost_places: dict[int, str] = {}
        self.choices: set[int] = set()
        self._locals: dict[int, Array] = {}
        self.equal_places = {x.index for x in graph.inputs}

    def block(self, operands: Iterable[Symbol], view: View) -> Self:
        """Return a run of one block, with one of the actual run."""
        operands = list(operands)
        run = super().block(operands, view)
        run.actual_run = self.actual_run.block(operands, view)
        run.equal_places = set(self.equal_places)
        return run

    def free(self, places: Iterable[int]) -> None:
        """Free values of a block in both runs."""
        super().free(places)
        self.actual_run.free(places)

    def reads(self, symbol: Symbol) -> Iterable[Symbol]:
        """Return the symbols whose wide values the wide value of a symbol is computed from."""
        return () if self.is_equal(symbol) else symbol.args

    def is_equal(self, symbol: Symbol) -> bool:
        """Whether facts prove that both runs have equal values of a symbol.

        The reference run has the value. The answer is right for the operands before the symbol.
        """
        if symbol.index in self.equal_places:
            return True
        if symbol.index in self._pin_places or symbol.index in self.literals:
            return False
        if not all(x.index in self.equal_places for x in symbol.args):
            return False
        if symbol.index in self.calls and not self._computes_wide(symbol):
            return False
        if symbol.args and not keeps_equal(symbol, self.actual_run):
            return False
        self.equal_places.add(symbol.index)
        return True

    def _computes_wide(self, symbol: Symbol) -> bool:
        """Whether a call has no operand that it may convert to float64 inside, as integers are."""
        if self._reference_calls.dtype is not None:
            return False
        storages = map(self.graph.storage_dtype, symbol.args)
        return all(is_wide(x) or x is DType.bool for x in storages)

    def walk(self, keeps: bool = False) -> Iterator[Symbol]:
        """Yield each live symbol after the reference run and then this run have computed it."""
        walks = self.actual_run.walk(keeps), super().walk(keeps)
        for _, symbol in zip(*walks, strict=True):
            yield symbol

    def value(self, symbol: Symbol) -> Array:
        """Compute the wide value of a symbol from its operands' wide values."""
        if symbol.index in self.literals:
            number = self.literal(symbol)
            return convert(number, wide_dtype(number), WIDE[symbol.dtype.family])
        if symbol.args and not self.is_equal(symbol):
            is_call = symbol.index in self.calls
            operands = [(self._decided if is_call else self.cached_value)(x) for x in symbol.args]
            try:
                result = self.compute(symbol, operands)
                return self._checked(symbol, operands, result) if is_call else result
            except GraphirError as error:
                if is_call and is_choice(symbol):  # of another number of elements
                    self.choices.add(symbol.index)
                    return self._widen(symbol)
                is_limit = error.problem in (exact.TOO_MANY, exact.TOO_LONG)
                reason = error.summary if is_call or is_limit else NO_VALUE
                self.lost_places[symbol.index] = reason
        return self._widen(symbol)

    def _decided(self, symbol: Symbol) -> Array:
        """Return an operand of a call: bools are choices, of which the run's count."""
        value = self.cached_value(symbol)
        if symbol.dtype is not DType.bool or symbol.index in self.equal_places:
            return value
        actual = self._widen(symbol)
        if not np.array_equal(value, actual):
            self.choices.add(symbol.index)
        return actual

    def _checked(self, symbol: Symbol, operands: Sequence[Array], result: Array) -> Array:
        """Return a wide result of a call; ExecutionError if it is no result of the same call.

        Of choices, the answer is the run's (see runtime.audit.library_calls).
        """
        actual, local = self._widen(symbol), result
        if not all(x.index in self.equal_places for x in symbol.args):
            local = self._local_run.local(symbol, partial(wide_operands, self.actual_run))
            if not is_choice(symbol) and self.call_run.differs_by_choice(
                symbol, operands, self._local_run
            ):
                raise ExecutionError("chooses otherwise on operands without errors")
        reference, call = self._reference_calls, self.calls[symbol.index].call
        difference = reference.failures.get(symbol.index)
        if reference.dtype is None:
            difference = difference or disagreement(local, actual, symbol, call.precision)
        if difference:
            raise ExecutionError(difference)
        self._locals[symbol.index] = local
        if not is_choice(symbol):
            return result
        if not np.array_equal(result, actual):
            self.choices.add(symbol.index)
        return actual

    def _widen(self, symbol: Symbol) -> Array:
        return self.actual_run.wide_value(symbol)

    def literal(self, symbol: Symbol) -> Array:
        """Return the Python number of a constant as a 0-d array: int64, float64 or complex128."""
        number = self.literals[symbol.index]
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            number = float(number)
        return np.asarray(number)

    def compute(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply a symbol's op to wide operands; raise GraphirError if the op fails."""
        if symbol.index in self._pin_places:
            return operands[-1]
        if is_conversion(symbol):
            return apply_cast(symbol, operands[0])
        if symbol.index in self.calls:
            return self.call_run.result(symbol, floats_of(symbol, operands))
        return self._arithmetic.apply(symbol, operands)

    def local(self, symbol: Symbol) -> Array:
        """Return the wide result of a symbol's op on the operands of the reference run.

        If the op fails on them, or the operands and the wide run's are equal, the result is that of
        the wide run.
        """
        if symbol.index in self._locals:
            return self._locals[symbol.index]
        if all(x.index in self.equal_places for x in symbol.args):
            return self.cached_value(symbol)
        try:
            return self.compute(symbol, wide_operands(self.actual_run, symbol))
        except GraphirError:
            return self.cached_value(symbol)
