"""The causes of output errors, found by trials.

A candidate is a source expression that lost values. A trial makes all executions of candidates
exact and runs their dependents again. An exact step computes from the operands of the run without
its own rounding, wrap or range. Its result is wide, and so are the results that take their dtype
from it by promotion. Every other step runs as in the program: stores and casts that the program
wrote narrow their wide operands, and narrow steps round and wrap.

The loss is the last candidate that removes an output's error alone; where none does, the smallest
set of candidates that does. A difference of nearly equal operands, which has no loss of its own,
counts with the errors of its operands, and comes after the losses before it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.conversions import convert
from graphir.location import INTERMEDIATE
from graphir.ops import dtype_rules as signatures
from graphir.passes.analysis.casts.sites import LARGE, is_modular, size_of
from graphir.passes.analysis.explanations.causes import LossCause
from graphir.passes.analysis.expressions import expression
from graphir.passes.analysis.rebuild import is_literal
from graphir.passes.rewriter import is_conversion, origins_of
from graphir.public import DType, GraphirError, Symbol, ops
from graphir.runtime.audit.blocked_run import as_floats
from graphir.runtime.audit.double_double import round_numbers
from graphir.runtime.audit.effects import TOTAL
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.wide_arithmetic import apply_cast, widen

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import OutputError
    from graphir.runtime.audit.blame import Blame, Output
    from graphir.runtime.audit.wide_run import Array, WideRun

Place: TypeAlias = Any
"""The source range of an expression, or the index of a symbol without one."""

TRIALS = 4.0
"""The work of trials, as a multiple of the work of one wide run: half of that of an audit."""
CURED = 0.1
"""A trial removes an error if this part of it is left at most."""
LEAST = 0.02
"""The least share of a candidate of a set, by estimate."""
SINGLE = 0.1
"""The least share of a candidate that is tried alone."""
HALF = 0.5
"""The share of a loss that is tried with others before a cancellation is the cause."""
SINGLE_EPS = 2.0**-23
"""The eps of float32: a narrower cast of floats counts in any case, another if it loses units."""
ZERO, FEW = 2.0**-40, 16.0
"""A difference of this part of its operands is zero, if its error is so many roundings at most."""
ROUNDINGS = 4.0
"""An error that no trial removes is the arithmetic, up to so many eps of its narrowest step."""
PAIR = 2
"""The most steps that are the cause of a small error: many that round are the arithmetic itself."""
SINGLES, MOST = 6, 12
"""The most candidates that are tried alone, and that are tried together."""


class LossTrials:
    """The trials of the candidates of an audit, of at most TRIALS times the work of a wide run.

    `shares` has, by number of output and index of symbol, the estimated shares of casts, lossy
    steps and plain roundings.
    """

    def __init__(
        self,
        blame: Blame,
        outputs: Sequence[Output],
        errors: Sequence[OutputError],
        shares: Mapping[int, Mapping[int, float | None]],
    ) -> None:
        self.blame, self.subject, self.measures = blame, blame.subject, blame.measures
        self.outputs, self.errors = outputs, errors
        self.shares = {i: dict(parts) for i, parts in shares.items()}
        self.work = TRIALS * blame.work(self.subject.live)
        self._trials: dict[frozenset[Place], _Outcome | None] = {}
        self._symbols: dict[Place, list[Symbol]] = {}
        steps = self.subject.facts.steps
        draws = (x for x in steps if x.keeps or x.what.startswith("jax.random_"))
        self._draws = {x.index for step in draws for x in step.results}

    def causes(self) -> list[LossCause]:
        """Return the causes of the errors that are to be explained, the gravest first."""
        sizes = {i: size_of(self.errors[i]) for i in self.shares if self.errors[i].differing}
        for symbol in self.subject.live if sizes else ():
            self._symbols.setdefault(_place(symbol), []).append(symbol)
        causes: dict[tuple[int, ...], LossCause] = {}
        for i in sorted(sizes, key=sizes.__getitem__, reverse=True):
            cause = self._cause(i)
            if cause is not None:
                key = tuple(step.index for step in cause.lossy)
                first = causes.setdefault(key, cause)
                causes[key] = replace(first, outputs=tuple(dict.fromkeys((*first.outputs, i))))
        return list(causes.values())

    def _cause(self, i: int) -> LossCause | None:
        if self.errors[i].broken and not any(self.shares[i].values()):
            # Losses that break an output only together have shares of 0 each: they are unknown.
            symbols = map(self.subject.graph.symbols.__getitem__, self.shares[i])
            lossy = [x.index for x in symbols if self._kind(x)]
            self.shares[i] = dict.fromkeys(lossy)
        totals = self._totals(i)
        places = [*totals]
        if self.errors[i].broken:  # rather by what left a range than by roundings before
            places = [x for x in places if self._breaks(x)] or places
        is_explained = size_of(self.errors[i]) >= LARGE
        accused = places if is_explained else [x for x in places if self._is_odd(x, i)]
        if not accused or self._is_zero(i, [x for x in places if abs(totals[x]) >= HALF]):
            return None
        least = SINGLE if is_explained else LEAST
        cures = [x for x in accused if abs(totals[x]) >= least][:SINGLES]
        cures = [x for x in cures if self._cures([x], i)]
        if self.errors[i].broken and not cures:
            cures = [x for x in self._vanished() if self._cures([x], i, 1.0)]
        cures.sort(key=lambda x: (self._tier(x), self._symbols[x][-1].index))
        chosen = cures[-1:]
        if not any(self._tier(x) == _OWN for x in chosen):
            rest = [x for x in places if self._tier(x) != _TOTAL][:MOST]
            lost = [x for x in accused if self._tier(x) == _OWN and abs(totals[x]) >= HALF]
            if lost or (is_explained and not cures):
                chosen = self._smallest_set(rest, i) or lost[:1] or chosen
        chosen = chosen or [max(accused, key=lambda x: (self._tier(x), abs(totals[x])))]
        chosen = sorted(chosen, key=lambda x: (not self._breaks(x), -abs(totals.get(x, 0.0))))
        is_cured = chosen == cures[-1:] or self._cures(chosen, i)
        outcome = self._trials.get(frozenset(chosen)) if is_cured else None
        if not is_explained and (outcome is None or len(chosen) > PAIR):
            return None
        before = size_of(self.errors[i])
        narrowest = max(eps(x.dtype) for place in places for x in self._lost(place, i))
        if outcome is None and before <= ROUNDINGS * narrowest:
            return None
        others = [x for x in cures if x not in chosen and self._tier(x) != _TOTAL]
        lossy, other_steps = (tuple(self._step(x, i) for x in group) for group in (chosen, others))
        after = before if outcome is None else outcome.sizes[i]
        return LossCause(
            outputs=(i,),
            lossy=lossy,
            others=other_steps,
            before=before,
            after=after,
            is_measured=outcome is not None,
        )

    # -- candidates

    def _totals(self, i: int) -> dict[Place, float]:
        """Return the shares of the expressions that lost values, the largest first.

        Draws are given; if most of the error is theirs, the answer is empty.
        """
        shares: dict[Place, float] = {}
        for index in self.shares[i]:
            place = _place(self.subject.graph.symbols[index])
            shares[place] = shares.get(place, 0.0) + self._share(i, index)
        shares = {
            x: shares[x]
            for x in sorted(shares, key=lambda x: abs(shares[x]), reverse=True)
            if abs(shares[x]) >= LEAST and not self._is_modular(x)
        }
        drawn = [x for x in shares if self._is_drawn(x)]
        if sum(abs(shares.pop(x)) for x in drawn) >= HALF:
            shares.clear()
        return shares

    def _share(self, i: int, index: int) -> float:
        """Return the share of a symbol; one of an output that broke may be unknown: half of it."""
        share = self.shares[i].get(index, 0.0)
        return HALF if share is None else share

    def _lost(self, place: Place, i: int) -> list[Symbol]:
        """Return the symbols of an expression with a share of an output's error, the worst first.

        A share counts by the part of the bits that the symbol lost.
        """

        def part(symbol: Symbol) -> float:
            measured = self.measures.get(symbol.index)
            return abs(self._share(i, symbol.index)) * (measured.weight if measured else 1.0)

        symbols = [x for x in self._symbols[place] if self._share(i, x.index)]
        return sorted(symbols, key=part, reverse=True)

    def _tier(self, place: Place) -> int:
        """Return the rank of what an expression lost: by itself, of its operands, by rounding."""
        kinds = {self._kind(x) for x in self._symbols[place]} - {"", "rounding"}
        return _OWN if kinds - TOTAL else _TOTAL if kinds else _ROUNDING

    def _kind(self, symbol: Symbol) -> str:
        measured = self.measures.get(symbol.index)
        is_cast = measured is not None and measured.changed
        return self.subject.kinds.get(symbol.index) or ("cast" if is_cast else "")

    def _breaks(self, place: Place) -> bool:
        """Whether values of an expression left the range of its dtype."""
        measures = [(self.measures.get(x.index), self._kind(x)) for x in self._symbols[place]]
        return any(
            kind in ("overflow", "wrap") or (x is not None and x.overflowed > 0)
            for x, kind in measures
        )

    def _is_drawn(self, place: Place) -> bool:
        """Whether an expression draws numbers: they are given, whatever their formula rounds."""
        return any(x.index in self._draws for x in self._symbols[place])

    def _vanished(self) -> list[Place]:
        """Return the expressions with a number that the dtype of its operands makes 0."""
        numbers = [
            self.subject.graph.symbols[i]
            for i, x in self.measures.items()
            if x.worst is not None and x.worst[0] and x.worst[1] == 0
        ]
        return list(dict.fromkeys(_place(x) for x in numbers if _is_number(x)))[:SINGLES]

    def _is_modular(self, place: Place) -> bool:
        wraps = {x.index for x in self._symbols[place] if self._kind(x) == "wrap"}
        return bool(wraps) and is_modular(self.subject.graph, wraps)

    def _is_odd(self, place: Place, i: int) -> bool:
        """Whether an expression lost values in a way that the program does not say."""
        symbols = self._lost(place, i)
        is_narrow = eps(self.outputs[i].dtype) > SINGLE_EPS
        products: Container[int] = () if is_narrow else self.subject.widened_products
        if any(self._stops(x) or x.index in products or self._is_undone(x, i) for x in symbols):
            return True
        largest = {(x.op, x.dtype): x for x in reversed(symbols)}.values()  # of all executions
        if any(self._kind(x) == "wrap" or self._narrows(x, i) for x in largest):
            return True
        # Steps that accumulate from a Python number, which the dtype of the others rounds.
        steps = [
            x for x in self._symbols[place] if x.op.kind == "elementwise" and not is_conversion(x)
        ]
        is_one_op = len({x.op.name for x in steps}) == 1
        return is_one_op and len(steps) > sum(any(map(_is_written, x.args)) for x in steps) == 1

    def _is_undone(self, symbol: Symbol, i: int) -> bool:
        """Whether a promotion undoes a cast, whose loss is more than the rounding of float32."""
        size = size_of(self.errors[i])
        return symbol.index in self.subject.report.undone_casts and size > FEW * SINGLE_EPS

    def _is_zero(self, i: int, places: Sequence[Place]) -> bool:
        """Whether an output is a difference of equal values, but for roundings."""
        steps = [x for place in places for x in self._symbols[place]]
        measures = [self.measures.get(x.index) for x in steps if self._kind(x) == "cancellation"]
        operands = [abs(number) for x in measures if x is not None for number in x.operands]
        dtype, wide = self.outputs[i].dtype, self.outputs[i].wide
        if not operands or not dtype.is_inexact:
            return False
        size = float(np.abs(as_floats(wide, wide_dtype(wide))).max(initial=0.0))
        error = self.errors[i].largest or 0.0
        return size <= ZERO * max(operands) and error <= FEW * eps(dtype) * max(operands)

    def _stops(self, symbol: Symbol) -> bool:
        """Whether a sum of integers in floats did not change by its smaller operand."""
        measured = self.measures.get(symbol.index)
        if self._kind(symbol) != "absorption" or measured is None:
            return False
        numbers = [abs(x) for x in measured.operands]
        return bool(numbers) and min(numbers) >= 1 and all(x == int(x) for x in numbers)

    def _narrows(self, symbol: Symbol, i: int) -> bool:
        """Whether a cast that the program did not write narrowed its values."""
        measured, target = self.measures.get(symbol.index), self.subject.graph.storage_dtype(symbol)
        if measured is None or self._kind(symbol) != "cast":
            return False
        if _is_number(symbol):  # lost more than a rounding, or became a neutral element
            became = None if measured.worst is None else measured.worst[1]
            return measured.relative > eps(target) or became in (0.0, 1.0)
        source = self.subject.graph.storage_dtype(symbol.args[0])
        if source.is_integer and target.is_inexact and self.errors[i].is_integer:
            return True
        kinds = {
            "asked" if x.in_call or x.operand == INTERMEDIATE else x.kind
            for x in origins_of(symbol)
        }
        if not symbol.shape or kinds - {"implicit", "assignment", "exporter"}:
            return False
        if source.is_integer and size_of(self.errors[i]) <= eps(self.outputs[i].dtype) / 2:
            return False  # no value of the answer's dtype is nearer
        greatest = 0.0 if measured.worst is None else abs(measured.worst[0])
        if not target.is_inexact or (eps(target) <= SINGLE_EPS and greatest * eps(target) < 1):
            return False
        return "assignment" not in kinds or not self._names_dtype(symbol)

    def _names_dtype(self, symbol: Symbol) -> bool:
        """Whether the program names the dtype of the array to which it assigns a cast."""
        users = (x for x in self.subject.live if x.args and x.args[-1] is symbol and _is_store(x))
        array = next(users, symbol)
        while array.args:
            array = array.args[0]
        source = None if array.op is ops.input else expression(array.location)
        return source is not None and str(symbol.dtype) in source.text

    def _step(self, place: Place, i: int) -> Symbol:
        """Return the symbol of an expression that lost most; plain roundings get a row."""
        symbols = self._lost(place, i)
        rows = [x for x in symbols or self._symbols[place] if self._kind(x)]
        if not rows:
            self.blame.roundings.update((x.index, x) for x in symbols)
        return (rows or symbols or self._symbols[place][-1:])[0]

    # -- trials

    def _cures(self, places: Collection[Place], i: int, limit: float = 0.0) -> bool:
        """Whether exact candidates remove the error of an output; False if no work is left.

        With a `limit`, what they leave is smaller than that.
        """
        key = frozenset(places)
        if key not in self._trials:
            self._trials[key] = self._trial(key)
        outcome, before = self._trials[key], min(size_of(self.errors[i]), 1.0)
        if outcome is None:
            return False
        is_left = most_left(before, self.outputs[i].dtype)
        return outcome.sizes[i] < limit if limit else outcome.sizes[i] <= is_left

    def _smallest_set(self, places: Sequence[Place], i: int) -> list[Place]:
        """Return candidates that remove an error together, and not one of them less; else none.

        Stores and casts that would narrow the exact values again become candidates.
        """
        chosen, lossy = list(places), set(places)
        while not self._cures(chosen, i):
            outcome = self._trials[frozenset(chosen)]
            new = [x for x in outcome.barriers if x not in chosen] if outcome else []
            if not new:
                return []
            chosen += new
        for place in reversed(chosen):
            rest = [x for x in chosen if x != place]
            if not lossy.isdisjoint(rest) and self._cures(rest, i):
                chosen = rest
        return chosen

    def _trial(self, places: frozenset[Place]) -> _Outcome | None:
        """Run a trial; None if no work is left."""
        exact = [x for place in places for x in self._symbols[place] if _computes(x)]
        path = self.subject.path(exact)
        self.work -= self.blame.work(path)
        if self.work < 0:
            return None
        is_total = {self._tier(x) for x in places} == {_TOTAL}
        given = {x.index for x in exact if is_total and self._kind(x) in TOTAL}
        trial = _Trial(path, {x.index for x in exact}, given)
        values = self.blame.overlay(path, trial.compute)
        sizes = {i: size_of(self.errors[i]) for i in self.shares}
        for i in sizes:
            output, symbol = self.outputs[i], self.subject.graph.outputs[i]
            if symbol.index in trial.wide:
                value = round_numbers(values[symbol.index])
                sizes[i] = size_of(output._replace(real=value, dtype=wide_dtype(value)).error())
            elif symbol.index in values:
                sizes[i] = size_of(output._replace(real=values[symbol.index]).error())
        return _Outcome(sizes, list(dict.fromkeys(map(_place, trial.barriers))))


class _Outcome(NamedTuple):
    """The sizes of the errors of outputs after a trial, and the places of its barriers."""

    sizes: Mapping[int, float]
    barriers: Sequence[Place]


_ROUNDING, _TOTAL, _OWN = range(3)


class _Trial:
    """One run of the dependents of exact symbols, all of which are in `path`.

    `wide` has the indices of the symbols with wide values, `barriers` the symbols that narrow wide
    operands. The symbols at `given` have the values of the wide run.
    """

    def __init__(
        self, path: Sequence[Symbol], exact: Collection[int], given: Collection[int]
    ) -> None:
        self.wide, self.given = set[int](), given
        self._free: dict[int, bool] = {}
        self.barriers: list[Symbol] = []
        for symbol in path:
            if symbol.dtype.family == "bool" or symbol.op.kind == "control":
                continue
            if symbol.index in exact or self._follows(symbol):
                self.wide.add(symbol.index)
            elif any(x.index in self.wide for x in symbol.args):
                self.barriers.append(symbol)

    def _follows(self, symbol: Symbol) -> bool:
        """Whether promotion gives the result of a step the dtype of its wide operands."""
        wide = [i for i, x in enumerate(symbol.args) if x.index in self.wide]
        if not wide or symbol.op.signature is signatures.POSITION:
            return False
        if is_conversion(symbol):
            return self._is_free(symbol)
        if _is_store(symbol):
            return wide[0] == 0
        return any(symbol.op.operand(i) != "indices" for i in wide)

    def _is_free(self, cast: Symbol) -> bool:
        """Whether no use of a cast is one that the program asks for; a cast may have many uses."""
        is_free = self._free.get(cast.index)
        if is_free is None:
            is_free = self._free[cast.index] = not any(map(_is_asked, origins_of(cast)))
        return is_free

    def compute(self, run: WideRun, symbol: Symbol, values: dict[int, Array]) -> None:
        """Compute the value of a symbol of the path from the changed values of its operands."""
        try:
            values[symbol.index] = self._value(run, symbol, values)
        except GraphirError:
            actual, is_wide = run.actual_run, symbol.index in self.wide
            values[symbol.index] = (actual.wide_value if is_wide else actual.cached_value)(symbol)

    def _value(self, run: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
        is_wide = symbol.index in self.wide
        if symbol.index in self.given or not symbol.args:
            return run.cached_value(symbol) if is_wide else run.actual_run.cached_value(symbol)
        takes_wide = any(x.index in self.wide for x in symbol.args) and not _is_store(symbol)
        if is_wide or takes_wide or symbol.index in run.calls:
            result = run.compute(symbol, [self._wide(run, x, values) for x in symbol.args])
            return result if is_wide else _narrow(run, result, symbol)
        operands = (self._own(run, x, values) for x in symbol.args)
        return run.actual_run.evaluate(symbol, list(operands))

    def _wide(self, run: WideRun, x: Symbol, values: Mapping[int, Array]) -> Array:
        """Return a wide operand: promotion would convert it to the wide dtype without a loss."""
        value = values.get(x.index)
        if value is not None:
            return value if x.index in self.wide else widen(value, run.graph.storage_dtype(x))
        if x.index in run.literals:
            return run.cached_value(x)
        is_free = is_conversion(x) and x.index not in run.actual_run.given and self._is_free(x)
        if is_free and (run.is_block or run.actual_run.values[x.args[0].index] is not None):
            return apply_cast(x, self._wide(run, x.args[0], values))
        return run.actual_run.wide_value(x)

    def _own(self, run: WideRun, x: Symbol, values: Mapping[int, Array]) -> Array:
        """Return an operand in its own dtype."""
        value = values.get(x.index)
        if value is None:
            return run.actual_run.cached_value(x)
        return _narrow(run, value, x) if x.index in self.wide else value


def _is_written(symbol: Symbol) -> bool:
    """Whether a symbol is a Python number that the program writes without a dtype."""
    return is_literal(symbol) or (is_conversion(symbol) and symbol.args[0].dtype.weak)


def _is_number(symbol: Symbol) -> bool:
    """Whether a symbol is a Python number in the dtype of other operands."""
    return symbol.op is ops.constant or _is_written(symbol)


def _is_asked(origin: Any) -> bool:
    """Whether the program asks for a cast, or an array to which it assigns does."""
    if origin.in_call or origin.operand == INTERMEDIATE:
        return False
    return origin.rule != "legalize" and origin.kind != "implicit"


def _is_store(symbol: Symbol) -> bool:
    """Whether a step writes to its first operand, whose dtype the result has."""
    if symbol.op.signature in (signatures.UPDATE, signatures.SCATTER) or symbol.location.in_place:
        return True
    if not symbol.shape or symbol.op.kind != "elementwise" or symbol.location.compound:
        return False
    source = expression(symbol.location)
    return source is not None and "=" in source.text and source.is_augmented


def _computes(symbol: Symbol) -> bool:
    """Whether a step may lose values, rather than move them."""
    return is_conversion(symbol) or symbol.op.kind != "movement" or _is_store(symbol)


def _narrow(run: WideRun, value: Array, symbol: Symbol) -> Array:
    storage, tf32 = run.graph.storage_dtype(symbol), run.graph.tf32
    value = round_numbers(value)
    return convert(value, wide_dtype(value), storage, tf32)


def _place(symbol: Symbol) -> Place:
    place = symbol.location.place
    return place if place[0] or place[1] else symbol.index


def most_left(error: float, dtype: DType) -> float:
    """Return the greatest error that a cure may leave of the error of an output of a dtype."""
    return max(error * CURED, min(error / 2, eps(dtype)))


def eps(dtype: DType) -> float:
    """Return the distance of a dtype's numbers at 1; 0 of integers."""
    return 2.0 ** (1 - dtype.part.precision) if dtype.is_inexact else 0.0
