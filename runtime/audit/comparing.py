"""The error of an output against its wide value, and the share of one cast in that error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.passes.analysis.casts import OutputError
from graphir.runtime.audit.blocked_run import as_floats, inner, norm
from graphir.runtime.audit.exact import Flags, Numbers, numbers
from graphir.runtime.audit.exact_arrays import numbers_at, wide_dtype
from graphir.runtime.audit.measuring import blocks

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
