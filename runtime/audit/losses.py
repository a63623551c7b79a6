"""Losses in arithmetic: steps whose results wrapped, overflowed, cancelled, or absorbed operands.

Each step of the run is compared with the same op in wide arithmetic on the run's own operands. The
difference is the local loss of the step: a wrap, an overflow, an underflow, an absorbed operand, or
the roundings of a reduction. A cancellation loses nothing locally: its difference is exact, but the
errors of its operands are most of the result. So the result is compared with the wide run's.

A step counts as one kind of loss. The roundings of a single step are no loss; those of a step that
a loop repeats on its own results are an accumulation (see `find_accumulations`).

A first pass over the blocks of a step asks cheap questions, from the extents of its values: most
steps surely have plain roundings alone. A second pass examines the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import lazy
from graphir.ops import dtype_rules as signatures
from graphir.passes.analysis.casts import Measured, StepLoss
from graphir.public import DType, Symbol, ops
from graphir.runtime.audit.adjoints import is_finite
from graphir.runtime.audit.blocked_run import as_floats, inner, norm
from graphir.runtime.audit.double_double import Flags, numbers
from graphir.runtime.audit.effects import Effect, exceeds_range, mask_of
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.exactness import is_exact, is_wide
from graphir.runtime.audit.regions import Regions, SingleStep, SweepRegion
from graphir.runtime.audit.wide_run import Array, WideRun

Floats: TypeAlias = NDArray[Any]

_SUMS = (ops.add, ops.subtract)
_WHOLE = ("reduction", "contraction", "rowwise")
_COMPUTING = ("elementwise", *_WHOLE)
_BITS = 4
"""The bits that a cancellation or a reduction must lose to count: a factor of 16."""
_SMALL = 16
"""The most elements of the sums that are measured together."""
_REPEATS = 16
"""The steps at one place of a loop whose roundings count as an accumulation."""


class _Norms:
    """Euclidean norms of errors and of values, over finite elements, block by block."""

    def __init__(self) -> None:
        self.error = self.size = 0.0

    def add(self, actual: Floats, exact: Floats) -> None:
        finite = np.isfinite(actual) & np.isfinite(exact)
        if not finite.all():
            actual, exact = actual[finite], exact[finite]
        self.error = math.hypot(self.error, norm(np.abs(actual - exact)))
        self.size = math.hypot(self.size, norm(np.abs(exact)))

    @property
    def relative(self) -> float:
        """The norm of the errors divided by that of the values."""
        if not self.error or not self.size:
            return math.inf if self.error else 0.0
        return self.error / self.size


class _Evidence:
    """The facts about one step, added block by block: first whether it is suspect, then its losses.

    The suspicion: whether it is certain, the sums of squares of the operands that may be absorbed
    and of some of the roundings, and those of a sum's result and its operands. The losses: the
    number of elements, the measurements by kind, the sums of squares of the local loss and of
    absorbed operands, and the greatest share that an operand lost.
    """

    def __init__(self) -> None:
        self.is_certain = False
        self.absorbable = self.roundings = 0.0
        self.squares = [0.0, 0.0, 0.0]
        self.elements = 0
        self.measures: dict[str, Measured] = {}
        self.lost = self.absorbed = self.share = 0.0

    @lazy
    def errors(self) -> list[_Norms]:
        """The errors of the result and of both operands against the wide run."""
        return [_Norms(), _Norms(), _Norms()]

    @lazy
    def local_error(self) -> _Norms:
        """The error of the result against that of its wide operands."""
        return _Norms()

    @property
    def may_absorb(self) -> bool:
        """Whether absorbed operands may be most of the local loss."""
        return self.absorbable > 0 and self.absorbable >= self.roundings / 2

    @property
    def may_cancel(self) -> bool:
        """Whether a sum may have more than _BITS bits less than its operands.

        It has not if it is not much smaller than these in the norm.
        """
        result, *operands = map(math.sqrt, self.squares)
        return not (math.isfinite(result) and 2 ** (_BITS - 1) * result > max(operands))

    def add(self, kind: str, measured: Measured) -> None:
        """Merge the measurement of one block."""
        other = self.measures.get(kind)
        if other is not None:
            worse = max(other, measured, key=attrgetter("relative"))
            measured = replace(worse, changed=other.changed + measured.changed)
        self.measures[kind] = measured

    def changes(self, eps: float) -> dict[str, float]:
        """Return the relative errors of a result by the kinds of losses of precision."""
        changes: dict[str, float] = {}
        if self.absorbed and self.absorbed >= self.lost / 2:
            changes["absorption"] = self.share
        error, *errors = (norms.relative for norms in self.errors)
        if max(errors) and error >= 2**_BITS * max(*errors, eps):
            changes["cancellation"] = error
        if self.local_error.relative >= 2**_BITS * eps:
            changes["accumulation"] = self.local_error.relative
        return {kind: change for kind, change in changes.items() if kind in self.measures}

    def loss(self, kind: str, bits: float, most: float) -> tuple[StepLoss, Measured]:
        """Return a kind of loss of so many bits, of `most`, and its measurement."""
        measured = self.measures.get(kind, Measured(0))
        measured = replace(measured, elements=self.elements, weight=bits / most)
        return cast(StepLoss, "overflow" if kind == "growth" else kind), measured


class LossySteps:
    """The steps of a run that lost values; the walk of the run calls `scan`.

    By symbol index, their kinds go into `kinds` and their measurements into `measures`. `regions`
    runs steps again.
    """

    def __init__(
        self,
        wide: WideRun,
        regions: Regions,
        kinds: dict[int, StepLoss],
        measures: dict[int, Measured],
    ) -> None:
        self.wide, self.regions, self.kinds, self.measures = wide, regions, kinds, measures
        self._repeated: dict[Any, list[Symbol]] = defaultdict(list)
        self._roundings: dict[int, Measured] = {}
        self._small: dict[int, list[Array]] = {}
        """The results and operands of repeated small sums, which are measured together."""
        self._evidence: dict[int, _Evidence] = {}

    def finish(self, item: SweepRegion | SingleStep) -> None:
        """Decide the losses of steps after `scan`, while the values of their operands exist."""
        suspects = [x for x in item.steps if self._is_suspect(x)]
        for run in item.block_runs(self.wide) if suspects else ():
            for symbol in suspects:
                self._examine(run, symbol)
        for symbol in item.steps:
            self._close(symbol)
        if isinstance(item, SingleStep):
            if item.symbol.index in self.wide.calls:
                self._note_call(item.symbol)
            self._repeat(item.symbol)

    def _note_call(self, symbol: Symbol) -> None:
        """Note the plain roundings of a library's call, unless it lost more, and what it received.

        The call on the operands of the run separates its own error from that of its operands.
        """
        if not self._target(symbol).is_inexact:
            return
        if symbol.index not in self.kinds:
            self._measure_roundings([symbol], [(self.wide, symbol)])
            if not self._roundings[symbol.index].changed:
                return
            self.kinds[symbol.index] = "rounding"
            self.measures[symbol.index] = self._roundings[symbol.index]
        norms = _Norms()
        arrays = self.wide.local(symbol), self.wide.cached_value(symbol)
        norms.add(*(as_floats(x, wide_dtype(x)) for x in arrays))
        measured = self.measures[symbol.index]
        self.measures[symbol.index] = replace(measured, received=norms.relative)

    def scan(self, run: WideRun, symbol: Symbol) -> None:
        """Ask of one block of a step whether it surely has plain roundings alone."""
        target, actual_run = self._target(symbol), run.actual_run
        if symbol.op.kind not in _COMPUTING or not symbol.args or target.family == "bool":
            return
        if is_exact(symbol) and not target.is_integer and not is_wide(target):
            return
        if not actual_run.cached_value(symbol).size:
            return
        if target.is_integer:
            is_suspect = not run.is_equal(symbol) and _may_wrap(run, symbol, target)
        elif is_wide(target):
            is_suspect = not is_finite(actual_run.cached_value(symbol))
        elif symbol.op in _SUMS:
            self._scan_sum(run, symbol, target)
            return
        else:
            is_suspect = symbol.op.kind in _WHOLE or not actual_run.extent(symbol).is_normal
        if is_suspect:
            self._evidence_of(symbol).is_certain = True

    def _evidence_of(self, symbol: Symbol) -> _Evidence:
        evidence = self._evidence.get(symbol.index)
        if evidence is None:
            evidence = self._evidence[symbol.index] = _Evidence()
        return evidence

    def _scan_sum(self, run: WideRun, symbol: Symbol, target: DType) -> None:
        """Ask of a sum whether it may absorb operands, cancel or overflow.

        The rounding of a sum is at most eps / 2 of its size, and absorbs operands of at most eps of
        it.
        """
        evidence, eps = self._evidence_of(symbol), 2.0 ** (1 - target.part.precision)
        values = (symbol, *symbol.args)
        extents = [run.actual_run.extent(x) for x in values]
        for i, x in enumerate(values):
            is_constant = run.actual_run.cached_value(x).size == 1
            squares = evidence.squares[i]
            evidence.squares[i] = run.actual_run.squares(x) + (0.0 if is_constant else squares)
        least = min(extent.least for extent in extents[1:])
        if not least > eps * extents[0].most:
            result, x, y = (np.abs(run.actual_run.native(value)) for value in values)
            small = np.minimum(x, y)
            absorbed = small[(small <= eps * result) & (small > 0)]
            evidence.absorbable += float(np.square(absorbed, dtype=np.float64).sum())
            if evidence.may_absorb:
                evidence.roundings += self._squares_of_roundings(run, symbol)

    @staticmethod
    def _squares_of_roundings(run: WideRun, symbol: Symbol) -> float:
        """Return the sum of the squares of the roundings of a sum; 0 if it is not finite."""
        result, x, y = (run.actual_run.floats(value) for value in (symbol, *symbol.args))
        roundings = result - (x - y if symbol.op is ops.subtract else x + y)
        squares = inner(roundings, np.conj(roundings))
        return squares if math.isfinite(squares) else 0.0

    def _is_suspect(self, symbol: Symbol) -> bool:
        """Whether a step may have lost more than plain roundings, after all blocks."""
        evidence = self._evidence.get(symbol.index)
        if evidence is None:
            return False
        is_lossy_sum = symbol.op in _SUMS and (evidence.may_absorb or evidence.may_cancel)
        return evidence.is_certain or is_lossy_sum

    def _examine(self, run: WideRun, symbol: Symbol) -> None:
        """Measure one block of a step that may have lost values."""
        step = self._step(run, symbol)
        effect = step.effect
        if effect.target.is_integer:
            if effect.source is not effect.target:
                step.note("wrap", _wrapped(effect))
            return
        step.note_nonfinite()
        if is_wide(effect.target):
            return
        if symbol.op in _SUMS:
            if step.evidence.may_absorb:
                step.note_absorption(step.operands)
            if step.evidence.may_cancel:
                step.note_cancellation()
            return
        if symbol.op is ops.index_add:
            step.note_absorption(step.added)
        if symbol.op.kind in _WHOLE:
            step.note_accumulation()
        step.note("underflow", (step.actual == 0) & (step.exact != 0))

    def _close(self, symbol: Symbol) -> None:
        """Decide the loss of a step after all its blocks."""
        evidence = self._evidence.pop(symbol.index, None)
        if evidence is None:
            return
        target = self._target(symbol)
        loss = _gravest_loss(evidence, target)
        if loss is not None:
            self.kinds[symbol.index], self.measures[symbol.index] = loss
        elif symbol.op in _SUMS and not target.is_integer:
            self._repeated[id(symbol.source), symbol.op].append(symbol)

    def find_accumulations(self) -> None:
        """Count the roundings of repeated steps, the last of which depends on the first.

        Those of products that the program widens count too.
        Steps that were not finished one by one run again.
        """
        reaches = self.regions.subject.reaches
        places = (sorted(x, key=attrgetter("index")) for x in self._repeated.values())
        repeated = [
            step
            for steps in places
            if len(steps) > _REPEATS and reaches(steps[0], steps[-1])
            for step in steps[_REPEATS:]
        ]
        for sums in self._alike(repeated):
            self._roundings.update(self._roundings_of(sums))
        products = self.regions.subject.widened_products.values()
        products = [x for x in products if x.index not in self.kinds]
        self._run_again([x for x in (*repeated, *products) if x.index not in self._roundings])
        for steps, kind in ((repeated, "accumulation"), (products, "rounding")):
            for step in steps:
                if self._roundings[step.index].changed:
                    self.kinds[step.index] = cast(StepLoss, kind)
                    self.measures[step.index] = self._roundings[step.index]

    def _alike(self, steps: Sequence[Symbol]) -> Collection[Sequence[Symbol]]:
        """Return the small sums among repeated steps, those of one op, dtype and shape together."""
        groups: dict[Any, list[Symbol]] = defaultdict(list)
        for step in steps:
            if step.index in self._small:
                groups[step.op, step.dtype, self._small[step.index][0].size].append(step)
        return groups.values()

    def _roundings_of(self, sums: Sequence[Symbol]) -> Iterator[tuple[int, Measured]]:
        """Yield by index the roundings of small sums, as `add_roundings` measures them."""
        target = self.wide.graph.storage_dtype(sums[0])
        values = zip(*(self._small[x.index] for x in sums), strict=True)
        actual, x, y = (as_floats(np.stack(rows), target) for rows in values)
        exact = x - y if sums[0].op is ops.subtract else x + y
        at, errors = _differing(exact, actual), _relative_errors(exact, actual)
        worst = np.where(at, errors, -1.0).argmax(axis=1)[:, None]
        weight = _error_bits(target) / target.part.precision
        columns = (np.take_along_axis(x, worst, 1).ravel() for x in (errors, exact, actual, x, y))
        rows = zip(at.sum(axis=1).tolist(), *(x.tolist() for x in columns), strict=True)
        for symbol, (count, error, before, after, *operands) in zip(sums, rows, strict=True):
            measured = Measured(
                at.shape[1], count, relative=error, worst=(before, after),
                operands=tuple(operands), weight=weight,
            ) if count else Measured(at.shape[1])  # fmt: skip
            yield symbol.index, measured

    def add_roundings(self, symbols: Iterable[Symbol]) -> None:
        """Measure the plain roundings of steps after the walk."""
        steps = list(symbols)
        self._run_again(steps)
        for step in steps:
            self.kinds[step.index] = "rounding"
            self.measures[step.index] = self._roundings[step.index]

    def _run_again(self, steps: Sequence[Symbol]) -> None:
        if steps:
            self._measure_roundings(steps, self.regions.passes(self.wide, steps))

    def _measure_roundings(
        self, steps: Sequence[Symbol], blocks: Iterable[tuple[WideRun, Symbol]]
    ) -> None:
        """Measure the plain roundings of steps over all their blocks."""
        for run, symbol in blocks:
            step = self._step(run, symbol)
            step.note("rounding", _differing(step.exact, step.actual))
        for symbol in steps:
            target, evidence = self._target(symbol), self._evidence.pop(symbol.index)
            loss = evidence.loss("rounding", _error_bits(target), target.part.precision)
            self._roundings[symbol.index] = loss[1]

    def _repeat(self, symbol: Symbol) -> None:
        """Note a rounded sum, which counts if its place repeats; the first ones are negligible."""
        steps = self._repeated.get((id(symbol.source), symbol.op), [])
        if not steps or steps[-1] is not symbol:
            return
        arrays = [self.wide.actual_run.cached_value(x) for x in (symbol, *symbol.args)]
        shape = arrays[0].shape
        if 0 < arrays[0].size <= _SMALL and mask_of(self.wide, symbol) is None:
            self._small[symbol.index] = [_spread(x, shape).reshape(-1) for x in arrays]
        elif len(steps) > _REPEATS:
            self._measure_roundings([symbol], [(self.wide, symbol)])

    def _step(self, run: WideRun, symbol: Symbol) -> _Step:
        """Return a block of a step; a step in wide arithmetic has no local loss."""
        target, actual = self._target(symbol), run.actual_run.cached_value(symbol)
        exact = actual if is_wide(target) else run.local(symbol)
        effect = Effect(exact, actual, wide_dtype(exact), target)
        return _Step(run, symbol, effect, self._evidence_of(symbol))

    def _target(self, symbol: Symbol) -> DType:
        return self.wide.graph.storage_dtype(symbol)


def _gravest_loss(evidence: _Evidence, target: DType) -> tuple[StepLoss, Measured] | None:
    """Return the gravest loss of a step with results of a dtype; None of plain roundings."""
    most, measures = target.part.precision, evidence.measures
    if not measures:
        return None
    grave = next((kind for kind in _GRAVE if kind in measures), None)
    if grave is not None:
        return evidence.loss(grave, most, most)
    if is_wide(target):
        return None
    eps = 2.0 ** (1 - most)
    changes = evidence.changes(eps)
    bits = {kind: _bits(min(change, 1.0), eps) for kind, change in changes.items()}
    if bits:
        kind = max(bits, key=bits.__getitem__)
        return evidence.loss(kind, bits[kind], most)
    return evidence.loss("underflow", most, most) if "underflow" in measures else None


_POSITIONS = (signatures.POSITION, signatures.BITWISE)
_GRAVE = ("wrap", "overflow", "invalid", "growth")
"""The losses that count before others, the gravest first; growth is an overflow in both runs."""


class _Step:
    """A block of a step: its exact and actual results as float64, its operands and evidence."""

    def __init__(self, run: WideRun, symbol: Symbol, effect: Effect, evidence: _Evidence) -> None:
        self.run, self.symbol, self.effect, self.evidence = run, symbol, effect, evidence
        self.eps = 2.0 ** (1 - effect.target.part.precision)
        mask = mask_of(run, symbol)
        self.mask = None if mask is None else np.broadcast_to(mask, effect.after.shape)
        size = effect.after.size if self.mask is None else np.count_nonzero(self.mask)
        evidence.elements += int(size)

    @lazy
    def exact(self) -> Floats:
        """The wide result on the run's operands."""
        return as_floats(self.effect.before, self.effect.source)

    @property
    def actual(self) -> Floats:
        """The result of the run."""
        return self.run.actual_run.floats(self.symbol)

    @lazy
    def operands(self) -> list[Floats]:
        """The operands of the run."""
        return [self.run.actual_run.floats(x) for x in self.symbol.args]

    @property
    def added(self) -> list[Floats]:
        """The operand that a scatter adds to, and the exact sum of what it adds to each element."""
        start = self.run.actual_run.floats(self.symbol.args[0])
        return [start, self.exact - start]

    @lazy
    def roundoff(self) -> Floats:
        """The size of the local loss; 0 where the result is not finite."""
        roundoff = np.abs(self.actual - self.exact)
        if is_finite(roundoff):
            return roundoff
        return np.where(np.isfinite(self.actual), roundoff, 0.0)

    def note(self, kind: str, at: Flags) -> None:
        """Add the elements `at` to the measurement of a kind of loss."""
        if self.mask is not None:
            at = at & self.mask
        if at.any():
            self.evidence.add(kind, self._measured(kind, at))

    def note_nonfinite(self) -> None:
        """Note overflows, and results that are not finite in wide arithmetic either.

        The latter count if all operands are finite.
        """
        infinite = ~np.isfinite(self.actual)
        if not infinite.any():
            return
        self.note("overflow", infinite & np.isfinite(self.exact))
        if self.symbol.op.kind != "elementwise":
            self.note("growth", infinite & all(np.isfinite(x).all() for x in self.operands))
            return
        nan = np.isnan(self.actual)
        for x in self.operands:
            nan = nan & ~np.isnan(x)
            infinite = infinite & np.isfinite(x)
        self.note("invalid", nan)
        if self.symbol.op in _GROWING:
            self.note("growth", infinite)

    def note_absorption(self, operands: Sequence[Floats]) -> None:
        """Note the loss of smaller operands; it counts if it is most of the local loss."""
        small = np.minimum(*(np.abs(x) for x in operands))
        at = (small > 0) & (self.roundoff >= small / 2)
        self.evidence.lost += float(np.square(self.roundoff).sum())
        losses = self.roundoff[at]
        if losses.size:
            self.evidence.absorbed += float(np.square(losses).sum())
            share = float((losses / np.broadcast_to(small, at.shape)[at]).max())
            self.evidence.share = max(self.evidence.share, share)
        self.note("absorption", at)

    def note_cancellation(self) -> None:
        """Note the loss of a sum whose result is much less exact than its operands.

        Errors are norms over all elements, so that single small elements do not count.
        """
        wide, *operands = (self._wide(x) for x in (self.symbol, *self.symbol.args))
        pairs = zip((self.actual, *self.operands), (wide, *operands), strict=True)
        for norms, pair in zip(self.evidence.errors, pairs, strict=True):
            norms.add(*pair)
        self.note("cancellation", np.abs(self.actual - wide) > 2**_BITS * self.eps * np.abs(wide))

    def note_accumulation(self) -> None:
        """Note the roundings of a reduction, which count if they lost more than _BITS bits."""
        self.evidence.local_error.add(self.actual, self.exact)
        at = (self.roundoff > 2**_BITS * self.eps * np.abs(self.exact)) & np.isfinite(self.exact)
        self.note("accumulation", at)

    def _wide(self, symbol: Symbol) -> Floats:
        wide = self.run.cached_value(symbol)
        return as_floats(wide, wide_dtype(wide))

    def _measured(self, kind: str, at: Flags) -> Measured:
        """Return the measurement of the elements `at`, with the worst one and its operands."""
        run, symbol = self.run, self.symbol
        exact = self._wide(symbol) if kind == "cancellation" else self.exact
        count = int(np.count_nonzero(at))
        if 4 * count < at.size:
            places = np.flatnonzero(at)
            errors = _relative_errors(exact.reshape(-1)[places], self.actual.reshape(-1)[places])
            worst = int(errors.argmax())
            place, relative = int(places[worst]), float(errors[worst])
        else:
            errors = _relative_errors(exact, self.actual)
            if count < at.size:
                errors = errors * at if is_finite(errors) else np.where(at, errors, -1.0)
            place = int(errors.argmax())
            relative = float(errors.reshape(-1)[place])
        index = tuple(int(i) for i in np.unravel_index(place, at.shape))  # pyright: ignore
        operands = _operands(run, symbol, index)
        if kind == "absorption" and not operands:
            operands = tuple(_item(x[index]) for x in self.added)
        value = run.cached_value(symbol) if kind == "cancellation" else self.effect.before
        return Measured(
            0,
            count,
            relative=relative,
            worst=(_item(value[index]), _item(self.effect.after[index])),
            operands=operands,
        )


_GROWING = (ops.add, ops.subtract, ops.multiply, ops.square, ops.exp, ops.pow)
"""Elementwise ops without poles: an infinite result of finite operands exceeded the range."""


def _bits(error: float, eps: float) -> float:
    """Return the bits that a relative error takes of a result."""
    most = 1 - math.log2(eps)
    return max(0.0, min(most, math.log2(error / eps)) if error else 0.0)


def _may_wrap(run: WideRun, symbol: Symbol, target: DType) -> bool:
    """Whether the wide results of a step on integers may exceed their dtype."""
    if symbol.op.signature in _POSITIONS:
        return False
    exact = run.local(symbol)
    if wide_dtype(exact) is not DType.int64:
        return True
    return int(exact.min()) < target.min or int(exact.max()) > target.max


def _wrapped(effect: Effect) -> Flags:
    exact = numbers(effect.before.reshape(-1), effect.source).parts[0]
    return exceeds_range(exact, effect.target).reshape(effect.before.shape)


def _differing(exact: Floats, actual: Floats) -> Flags:
    differing = exact != actual
    return differing if is_finite(exact) else differing & ~(np.isnan(exact) & np.isnan(actual))


def _error_bits(target: DType) -> float:
    return 1.0 if target.format else target.precision


def _relative_errors(exact: Floats, actual: Floats) -> Floats:
    """Return the relative error of each element; infinite without an exact value that is finite."""
    with np.errstate(all="ignore"):
        errors = np.asarray(actual - exact)
        if np.iscomplexobj(errors):
            errors = np.abs(errors) / np.abs(exact)
        else:
            errors /= exact
            np.abs(errors, out=errors)
        if is_finite(errors):
            return errors
        errors = np.where(exact == 0, np.where(actual == exact, 0.0, np.inf), errors)
        return np.where(np.isnan(errors), np.inf, errors)


def _item(x: Array) -> complex:
    number = np.asarray(x)
    return number.item() if number.dtype.kind in "biufc" else float(number)


def _operands(wide: WideRun, symbol: Symbol, place: tuple[int, ...]) -> tuple[complex, ...]:
    """Return the operands of one element of an elementwise result; () of other ops."""
    if symbol.op.kind != "elementwise":
        return ()
    values = [wide.actual_run.cached_value(x) for x in symbol.args]
    shape = wide.actual_run.cached_value(symbol).shape
    return tuple(_item(_spread(x, shape)[place]) for x in values)


def _spread(x: Array, shape: tuple[int, ...]) -> Array:
    return x if x.shape == shape else np.broadcast_to(x, shape)
