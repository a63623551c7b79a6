"""Attribution of output errors to casts and lossy steps.

One backward sweep gives every site its share of every output's error, to first order (see
runtime.audit.sweep). For the sites of the largest shares, a wide run with the loss of the site
alone shows its effect on the outputs; `Output.share` turns the effect into the share.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.passes.analysis.casts import Measured, OutputError
from graphir.passes.analysis.explanations.causes import LossCause
from graphir.public import DType, GraphirError, Symbol
from graphir.runtime.audit.blocked_run import as_floats, inner, norm
from graphir.runtime.audit.double_double import Flags, Numbers, blocks, numbers
from graphir.runtime.audit.effects import with_loss
from graphir.runtime.audit.exact_arrays import numbers_at, wide_dtype
from graphir.runtime.audit.regions import Compute, Regions
from graphir.runtime.audit.subject import Subject
from graphir.runtime.audit.sweep import Sweep
from graphir.runtime.audit.trials import LossTrials
from graphir.runtime.audit.wide_run import Array, WideRun

LEAST = 30_000_000
"""The work of runs, in elements, that an audit may do besides its sweep: about 0.2 s."""
PART = 0.5
"""The same for large arrays, as a part of the work of one wide run."""
SYMBOL = 10_000
"""The work of one symbol besides its elements: the time of NumPy on so many elements."""
LINEAR = 2.0**-10
"""The relative error of an output below which the shares of the sweep are as good as of a run."""
VISIBLE = 2.0**-16
"""The relative error of an output whose plain roundings count: more than float32 usually leaves."""


class Blame:
    """The shares of a subject's sites in the errors of its outputs.

    `wide_run` has the values of the run without losses that `regions` says. A run of a site
    recomputes the dependents of the site; if it needs values that were not kept, the whole graph.
    The runs begin with the sites without a share, then come those of the largest shares. So the
    work is that of the program, times a constant. A site with neither a share of the sweep nor a
    run has an unknown share.
    """

    def __init__(
        self,
        subject: Subject,
        wide_run: WideRun,
        measures: Mapping[int, Measured],
        regions: Regions,
    ) -> None:
        self.subject, self.wide_run, self.measures = subject, wide_run, measures
        self.regions = regions
        self.roundings: dict[int, Symbol] = {}
        self.causes: Sequence[LossCause] = ()

    def shared(
        self, sites: Sequence[Symbol], outputs: Sequence[Output], errors: Sequence[OutputError]
    ) -> list[OutputError]:
        """Return the errors of the outputs with the shares of `sites`; other sites have share 0.

        An unknown share is None. `roundings` has, by index, the steps whose plain roundings explain
        more of an output's error than each site; these have shares too.
        """
        numbers = [i for i, error in enumerate(errors) if error.is_known]
        shares: dict[int, dict[int, float | None]] = {
            i: dict.fromkeys((site.index for site in self.subject.sites), 0.0) for i in numbers
        }
        wrong = {i: shares[i] for i in numbers if errors[i].differing}
        is_visible = any((errors[i].norm or 0.0) >= VISIBLE for i in wrong)
        swept = self._sweep(sites, outputs, wrong, errors) if sites or is_visible else {}
        if wrong and sites:
            self._measure(sites, outputs, errors, wrong)
        self._add_roundings(sites, swept, shares, errors)
        estimates = {i: {**swept.get(i, {}), **shares[i]} for i in wrong}
        self.causes = LossTrials(self, outputs, errors, estimates).causes()
        self._move_roundings(swept, shares)
        rest = {i: sum(parts.values()) for i, parts in swept.items()}
        return [
            replace(error, shares=shares[i], rounding=rest.get(i), roundings=swept.get(i))
            if i in shares
            else error
            for i, error in enumerate(errors)
        ]

    def _sweep(
        self,
        sites: Sequence[Symbol],
        outputs: Sequence[Output],
        shares: Mapping[int, dict[int, float | None]],
        errors: Sequence[OutputError],
    ) -> dict[int, dict[int, float]]:
        """Set the shares of the sites in the outputs whose errors are numbers.

        Returns the shares of all other steps, by output number and symbol index.
        """
        linear = [i for i in shares if not errors[i].broken]
        symbols = self.subject.graph.outputs
        seeds = [(symbols[i], outputs[i].seed(errors[i])) for i in linear]
        sweep = Sweep(self.wide_run, self.subject.live, self.measures, seeds)
        if linear:
            self.regions.backwards(sweep)
        for i, swept in zip(linear, sweep.shares, strict=True):
            for site in sites:
                unknown = site.index in sweep.unswept
                shares[i][site.index] = None if unknown else swept.get(site.index, 0.0)
        places = {site.index for site in sites}
        for i in shares.keys() - set(linear):
            shares[i].update(dict.fromkeys(places, None))
        return {
            i: {place: share for place, share in swept.items() if place not in places}
            for i, swept in zip(linear, sweep.shares, strict=True)
        }

    def _add_roundings(
        self,
        sites: Sequence[Symbol],
        swept: dict[int, dict[int, float]],
        shares: Mapping[int, dict[int, float | None]],
        errors: Sequence[OutputError],
    ) -> None:
        """Move roundings of the worst line of each output from `swept` to `roundings` and `shares`.

        They move if they explain more of the error than the sites of each line do. An output whose
        error no site explains has none, unless its error is visible.
        """
        symbols = self.subject.graph.symbols
        lines = {
            place: symbols[place].location.place[:2] for parts in swept.values() for place in parts
        }
        for i, parts in swept.items():
            rows, steps = defaultdict[Any, float](float), defaultdict[Any, float](float)
            for site in sites:
                rows[site.location.place[:2]] += shares[i][site.index] or 0.0
            for place, share in parts.items():
                steps[lines[place]] += share
            is_visible = any(rows.values()) or (errors[i].norm or 0.0) >= VISIBLE
            worst = max(steps, key=lambda line: abs(steps[line]), default=None)
            if is_visible and abs(steps[worst]) > max(map(abs, rows.values()), default=0.0):
                places = (
                    place for place, share in parts.items() if share and lines[place] == worst
                )
                self.roundings.update((place, symbols[place]) for place in places)
        self._move_roundings(swept, shares)

    def _move_roundings(
        self, swept: dict[int, dict[int, float]], shares: Mapping[int, dict[int, float | None]]
    ) -> None:
        """Move the shares of the steps of `roundings` from `swept` to `shares`."""
        for i, parts in swept.items():
            moved = (x for x in self.roundings if x not in shares[i])
            shares[i].update({place: parts.pop(place, 0.0) for place in moved})

    def _measure(
        self,
        sites: Sequence[Symbol],
        outputs: Sequence[Output],
        errors: Sequence[OutputError],
        shares: Mapping[int, dict[int, float | None]],
    ) -> None:
        """Replace the shares of the worst sites by those that a run each measures."""

        def worst(group: Sequence[Symbol]) -> tuple[float, float]:
            parts = [shares[i][site.index] for i in shares for site in group]
            share = max((math.inf if part is None else abs(part) for part in parts), default=0.0)
            return share, self._change(group)

        left = max(LEAST, PART * self.work(self.subject.live))
        small = all((errors[i].norm or 0.0) < LINEAR and not errors[i].broken for i in shares)
        for group in sorted(self.subject.together(sites), key=worst, reverse=True):
            if small and self.regions.has_blocks and worst(group)[0] < math.inf:
                break  # of large arrays, a run costs as much as the program and tells no more
            path = self.subject.path(group)
            left -= self.work(path)
            if left < 0:
                break
            values = self._with_losses(group, path)
            for i in shares:
                symbol = self.subject.graph.outputs[i]
                if symbol.index in values:
                    share = outputs[i].share(errors[i], values[symbol.index])
                    _distribute(share, group, shares[i])

    def work(self, symbols: Sequence[Symbol]) -> int:
        """Return the work of a run of symbols, in elements."""
        return sum(SYMBOL + self.subject.size_of(symbol) for symbol in symbols)

    def _change(self, group: Sequence[Symbol]) -> float:
        """Return the largest relative error of an element over a group of sites; NaN is inf."""
        errors = (self.measures[site.index].relative for site in group)
        return max(math.inf if math.isnan(error) else error for error in errors)

    def _with_losses(self, group: Sequence[Symbol], path: Sequence[Symbol]) -> Mapping[int, Array]:
        """Return the wide values of the outputs that depend on a group, with its losses."""
        places = {site.index for site in group}

        def compute(wide: WideRun, symbol: Symbol, values: dict[int, Array]) -> None:
            new = _again(wide, symbol, values)
            values[symbol.index] = with_loss(wide, symbol, new) if symbol.index in places else new

        return self.overlay(path, compute)

    def overlay(self, path: Sequence[Symbol], compute: Compute) -> Mapping[int, Array]:
        """Return other values of the outputs on a path: `compute` sets that of each symbol."""
        values = dict[int, Array]()
        if self.regions.fits and self.regions.has_blocks:
            self.regions.overlay(self.wide_run, {x.index for x in path}, values, compute)
            return values
        wide, symbols = self.wide_run, path
        if self.regions.fits:
            self.regions.complete(wide)
        else:
            wide, steps = self.subject.run(), {symbol.index for symbol in path}
            symbols = (symbol for symbol in wide.walk() if symbol.index in steps)
        for symbol in symbols:
            compute(wide, symbol, values)
            for arg in symbol.args:
                if self.subject.last[arg.index] == symbol.index:
                    values.pop(arg.index, None)
        return values


def _distribute(share: float, group: Sequence[Symbol], shares: dict[int, float | None]) -> None:
    """Set the shares of a group so that they sum to `share`, with the differences of the sweep."""
    parts = [shares[site.index] or 0.0 for site in group]
    rest = (share - sum(parts)) / len(group)
    for site, part in zip(group, parts, strict=True):
        shares[site.index] = part + rest if len(group) > 1 else share


def _again(wide: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
    """Recompute a symbol on changed operands; keep its wide value if the op fails on them."""
    if not any(x.index in values for x in symbol.args):
        return wide.cached_value(symbol)
    operands = [values[x.index] if x.index in values else wide.cached_value(x) for x in symbol.args]
    try:
        return wide.compute(symbol, operands)
    except GraphirError:
        return wide.cached_value(symbol)


_Fault: TypeAlias = Callable[[Numbers, Numbers], Flags]


class Output(NamedTuple):
    """An output of a run and its wide value, compared block by block."""

    name: str
    dtype: DType
    real: NDArray[Any]
    wide: NDArray[Any]
    rounds: int = 1
    """The rounds in which a program printed the output, along its first axis."""
    unit: str = ""
    """The NumPy dtype of dates, such as `datetime64[ms]`, whose counts are `real`."""

    @property
    def is_complex(self) -> bool:
        """Whether the output is complex, or the program dropped its imaginary part."""
        return self.dtype.is_complex or wide_dtype(self.wide).is_complex

    def error(self) -> OutputError:
        """Return the error of the output against the wide value, without shares."""
        blocks_compared = [self._compared(at) for at in blocks(self.real.size)]
        finite = sum(block.finite for block in blocks_compared)
        starts = zip(blocks(self.real.size), blocks_compared, strict=True)
        firsts = (at.start + block.first for at, block in starts if block.differing)
        first = next(firsts, None)
        largest = max((block.largest for block in blocks_compared), default=0.0)
        error = math.hypot(*(block.error for block in blocks_compared))
        size = math.hypot(*(block.size for block in blocks_compared))
        return OutputError(
            name=self.name,
            dtype=self.unit or str(self.dtype),
            elements=self.real.size,
            differing=sum(block.differing for block in blocks_compared),
            broken=sum(block.broken for block in blocks_compared),
            largest=largest,
            rms=largest * math.sqrt((error / largest) ** 2 / finite)
            if 0 < largest < math.inf
            else largest,
            relative=max((block.relative for block in blocks_compared), default=0.0),
            norm=(error / size if size else math.inf) if error else 0.0,
            rounds=self.rounds,
            first_round=None if first is None else first // (self.real.size // self.rounds) + 1,
        )

    def error_of(self, values: NDArray[Any]) -> OutputError:
        """Return the error of other values than those of the run."""
        return self._replace(real=values, dtype=DType(values.dtype)).error()

    def _compared(self, at: slice) -> _Compared:
        """Compare one block of the output with its wide value."""
        parts = 1 + self.is_complex
        real, wide = self.real.reshape(-1)[at], self.wide.reshape(-1)[at]
        if parts == 1 and self.dtype.exact_in(DType.float64):
            quick = _quick_comparison(as_floats(real, self.dtype), wide)
            if quick is not None:
                return quick
        return _compare(numbers(real, self.dtype, parts), numbers_at(wide, parts))

    def unknown(self) -> OutputError:
        """Return an OutputError with unknown figures."""
        return OutputError.unknown(self.name, self.unit or str(self.dtype), self.real.size)

    def seed(self, error: OutputError) -> NDArray[Any]:
        """Return e / <e, e> for the error e of the output; 0 where either side is not finite.

        The product with an effect d on the output is then <d, e> / <e, e>. Complex numbers are
        conjugates, for the real part of the product.
        """
        scale, squares = error.largest or 1.0, 0.0
        result = np.empty(self.real.shape, np.complex128 if self.is_complex else np.float64)
        for at, (real, wide, _) in zip(
            blocks(self.real.size), self._blocks(self.wide), strict=True
        ):
            finite = real.finite & wide.finite
            parts = [x.high / scale for x in real.minus(wide).parts]
            part = parts[0] if len(parts) == 1 else parts[0] - 1j * parts[1]
            part = part if finite.all() else np.where(finite, part, 0.0)
            squares += inner(part, np.conj(part))
            result.reshape(-1)[at] = part
        result /= (squares or 1.0) * scale
        return result

    def share(self, error: OutputError, other: NDArray[Any]) -> float:
        """Return the share of `error` that `other` has, the wide run with one cast's loss injected.

        For an output with broken elements, the share is the fraction of them that are broken in
        `other`. For bools, it is the fraction of the differing elements that differ in `other`. For
        numbers, it is <d, e> / <e, e> with e = output - wide and d = other - wide, over the
        elements that are finite in all three. To first order, e is the sum of the errors that each
        cast and each rounding op adds by itself, so that their shares sum to 1.
        """
        if error.broken:
            return self._part(other, _non_finite_mismatch)
        if self.dtype is DType.bool:
            return self._part(other, _differing)
        along, squares = self._products(other, error.largest or 0.0)
        return along / squares if squares else 0.0

    def _blocks(self, other: NDArray[Any]) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """Yield blocks of the output, its wide value and `other`."""
        parts, real = 1 + self.is_complex, self.real.reshape(-1)
        for at in blocks(self.real.size):
            here = numbers(real[at], self.dtype, parts)
            wide, another = (numbers_at(x.reshape(-1)[at], parts) for x in (self.wide, other))
            yield here, wide, another

    def _part(self, other: NDArray[Any], fault: _Fault) -> float:
        """Return the fraction of the output's faulty elements that are faulty in `other` too."""
        here = there = 0
        for real, wide, other_part in self._blocks(other):
            faulty = fault(real, wide)
            here += int(np.count_nonzero(faulty))
            there += int(np.count_nonzero(faulty & fault(other_part, wide)))
        return there / here if here else 0.0

    def _products(self, other: NDArray[Any], scale: float) -> tuple[float, float]:
        """Return <d, e> and <e, e> of `share`, divided by scale**2 against overflow."""
        along = squares = 0.0
        for real, wide, other_part in self._blocks(other) if 0 < scale < math.inf else ():
            places = np.flatnonzero(real.finite & wide.finite & other_part.finite)
            wide = wide.at(places)
            d, e = other_part.at(places).minus(wide), real.at(places).minus(wide)
            along += _dot(d, e, scale)
            squares += _dot(e, e, scale)
        return along, squares


class _Compared(NamedTuple):
    """The comparison of one block of an output; `finite` counts elements finite on both sides.

    `error` and `size` are the Euclidean norms of the error and of the wide value over these.
    """

    differing: int
    broken: int
    finite: int
    largest: float
    relative: float
    error: float
    size: float
    first: int
    """The place of the first element that differs, if one does."""


def _quick_comparison(real: NDArray[Any], wide: NDArray[Any]) -> _Compared | None:
    """Compare values that differ by less than half of them: then the differences are exact."""
    if wide.dtype != np.float64:
        return None
    error, size = np.abs(real - wide), np.abs(wide)
    largest = float(error.max())
    relative = float((error / np.maximum(size, _TINY)).max()) if largest else 0.0
    if not relative <= 0.5:  # also NaN
        return None
    differing = int(np.count_nonzero(error)) if largest else 0
    norms = norm(error), norm(size)
    return _Compared(differing, 0, real.size, largest, relative, *norms, int((error != 0).argmax()))


_TINY = 5e-324


def _compare(real: Numbers, wide: Numbers) -> _Compared:
    differing, finite = _differing(real, wide), real.finite & wide.finite
    errors = np.flatnonzero(differing & finite)
    error, of = real.at(errors).minus(wide.at(errors)), wide.at(errors)
    nonzero = ~of.zero
    sizes = error.sizes()
    return _Compared(
        int(np.count_nonzero(differing)),
        int(np.count_nonzero(_non_finite_mismatch(real, wide))),
        int(np.count_nonzero(finite)),
        float(sizes.max(initial=0.0)),
        float(error.at(nonzero).relative(of.at(nonzero)).max(initial=0.0)),
        norm(sizes),
        norm(wide.at(finite).sizes()),
        int(differing.argmax()),
    )


def _differing(these: Numbers, wide: Numbers) -> Flags:
    return ~these.same(wide)


def _non_finite_mismatch(these: Numbers, wide: Numbers) -> Flags:
    return wide.finite & ~these.finite


def _dot(numbers_: Numbers, other: Numbers, scale: float) -> float:
    pairs = zip(numbers_.parts, other.parts, strict=True)
    # Not by BLAS, whose threads wait for one another on short arrays.
    return float(sum(((x.high / scale) * (y.high / scale)).sum() for x, y in pairs))
