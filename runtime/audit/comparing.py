"""The error of an output against its wide value, and the share of one cast in that error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from passes.analysis.casts import OutputError
from runtime.audit.exact import Flags, Numbers, numbers
from runtime.audit.measuring import blocks
from runtime.audit.wide import wide_dtype

_Fault: TypeAlias = Callable[[Numbers, Numbers], Flags]


class Output(NamedTuple):
    """An output of a run and its wide value, compared block by block."""

    name: str
    dtype: DType
    real: NDArray[Any]
    wide: NDArray[Any]
    modulus: float = 0.0
    """The modulus of rounded wide integers (see runtime.audit.congruence); 0 for exact values."""

    def error(self) -> OutputError:
        """Return the error of the output against the wide value, without shares."""
        near = self.modulus / 2
        blocks_compared = [_compare(real, wide, near) for real, wide, _ in self._blocks(self.real)]
        largest = max((block.largest for block in blocks_compared), default=0.0)
        finite = sum(block.finite for block in blocks_compared)
        squares = self._products(self.real, largest)[1]
        return OutputError(
            name=self.name,
            dtype=str(self.dtype),
            elements=self.real.size,
            differing=sum(block.differing for block in blocks_compared),
            broken=sum(block.broken for block in blocks_compared),
            largest=largest,
            rms=largest * math.sqrt(squares / finite) if squares else largest,
            relative=max((block.relative for block in blocks_compared), default=0.0),
            norm=self._norm(math.sqrt(squares) * largest),
        )

    def _norm(self, error: float) -> float:
        """Return an error in the Euclidean norm, divided by the norm of the wide value."""
        sizes = [x[1].at(x[0].finite & x[1].finite).sizes() for x in self._blocks(self.real)]
        scale = max((float(size.max(initial=0.0)) for size in sizes), default=0.0)
        if not error or not scale:
            return math.inf if error else 0.0
        return error / scale / math.sqrt(sum(float(np.square(x / scale).sum()) for x in sizes))

    def unknown(self) -> OutputError:
        """Return an OutputError with unknown figures."""
        return OutputError.unknown(self.name, str(self.dtype), self.real.size)

    def seed(self, error: OutputError) -> NDArray[Any]:
        """Return e / <e, e> for the error e of the output; 0 where either side is not finite.

        The product with an effect d on the output is then <d, e> / <e, e>. Complex numbers are
        conjugates, for the real part of the product.
        """
        scale = error.largest or 1.0
        errors: list[NDArray[Any]] = []
        for real, wide, _ in self._blocks(self.real):
            parts = [
                np.where(real.finite & wide.finite, x.high / scale, 0.0)
                for x in real.minus(wide).parts
            ]
            errors.append(parts[0] if len(parts) == 1 else parts[0] - 1j * parts[1])
        whole = np.concatenate(errors).reshape(self.real.shape)
        squares = float(np.square(np.abs(whole)).sum())
        return whole / (squares or 1.0) / scale

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
        """Yield blocks of the output, its wide value and `other` (or the output itself)."""
        parts = 1 + self.dtype.is_complex
        dtypes = self.dtype, wide_dtype(self.wide)
        dtypes = *dtypes, self.dtype if other is self.real else wide_dtype(other)
        flat = self.real.reshape(-1), self.wide.reshape(-1), other.reshape(-1)
        for at in blocks(self.real.size):
            real, wide, other_part = (
                numbers(x[at], dtype, parts) for x, dtype in zip(flat, dtypes, strict=True)
            )
            yield real, wide, other_part

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
    """The comparison of one block of an output; `finite` counts elements finite on both sides."""

    differing: int
    broken: int
    finite: int
    largest: float
    relative: float


def _compare(real: Numbers, wide: Numbers, near: float) -> _Compared:
    differing, finite = _differing(real, wide), real.finite & wide.finite
    if near:
        differing &= ~finite | (real.minus(wide).sizes() >= near)
    errors = np.flatnonzero(differing & finite)
    error, of = real.at(errors).minus(wide.at(errors)), wide.at(errors)
    nonzero = ~of.zero
    return _Compared(
        int(np.count_nonzero(differing)),
        int(np.count_nonzero(_non_finite_mismatch(real, wide))),
        int(np.count_nonzero(finite)),
        float(error.sizes().max(initial=0.0)),
        float(error.at(nonzero).relative(of.at(nonzero)).max(initial=0.0)),
    )


def _differing(these: Numbers, wide: Numbers) -> Flags:
    return ~these.same(wide)


def _non_finite_mismatch(these: Numbers, wide: Numbers) -> Flags:
    return wide.finite & ~these.finite


def _dot(numbers_: Numbers, other: Numbers, scale: float) -> float:
    pairs = zip(numbers_.parts, other.parts, strict=True)
    # Not by BLAS, whose threads wait for one another on short arrays.
    return float(sum(((x.high / scale) * (y.high / scale)).sum() for x, y in pairs))
