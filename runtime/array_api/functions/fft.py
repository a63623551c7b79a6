"""The extension `fft`: NumPy computes Fourier transforms eagerly; shifts are recorded ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphir.dtypes import DTypeLike
from graphir.public import PromotionError
from graphir.runtime.array_api.array import Array, array_of_values, call_numpy, with_name
from graphir.runtime.array_api.dtypes import KINDS, device_of, dtype_of, require
from graphir.runtime.array_api.expansions import expanded
from graphir.runtime.array_api.functions.creation import FLOAT

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip

Transform: TypeAlias = Callable[..., Array]

_REAL, _COMPLEX = "real floating", "complex floating"


def _along_one(name: str, kind: str, doc: str) -> Transform:
    def call(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        return _transform(name, kind, x, n=n, axis=axis, norm=norm)

    return with_name(call, name, f"{doc} along an axis.")


def _along_several(name: str, kind: str, doc: str) -> Transform:
    def call(
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Array:
        if s is not None and axes is None:
            axes = range(-len(s), 0)
        return _transform(name, kind, x, s=s, axes=axes, norm=norm)

    return with_name(call, name, f"{doc} along axes, the last len(s), or all.")


def _transform(name: str, kind: str, x: Array, **settings: Any) -> Array:
    require(name, x, kind)
    return call_numpy(name, getattr(np.fft, name), x, **settings)


fft = _along_one("fft", _COMPLEX, "The transform")
ifft = _along_one("ifft", _COMPLEX, "The inverse of fft")
rfft = _along_one("rfft", _REAL, "The transform of real numbers, its first half")
irfft = _along_one("irfft", _COMPLEX, "The inverse of rfft")
hfft = _along_one("hfft", _COMPLEX, "The real transform of the first half of Hermitian values")
ihfft = _along_one("ihfft", _REAL, "The inverse of hfft")
fftn = _along_several("fftn", _COMPLEX, "The transform")
ifftn = _along_several("ifftn", _COMPLEX, "The inverse of fftn")
rfftn = _along_several("rfftn", _REAL, "The transform of real numbers, its half on the last axis")
irfftn = _along_several("irfftn", _COMPLEX, "The inverse of rfftn")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return the frequencies of fft for n samples with spacing d, in cycles per unit of d."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return the frequencies of rfft for n samples with spacing d, in cycles per unit of d."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(
    function: Callable[..., Any], n: int, d: float, dtype: DTypeLike | None, device: str | None
) -> Array:
    device_of(device)
    to = dtype_of(dtype, FLOAT)
    if to not in KINDS[_REAL]:
        raise PromotionError(f"frequencies are {_REAL}", got=f"{to}")
    return array_of_values(function(n, d).astype(to.storage))


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 to the middle of `axes`; None means all axes."""
    require("fftshift", x, _REAL, _COMPLEX)
    return expanded(np.fft.fftshift, x, axes)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Undo fftshift: move frequency 0 from the middle of `axes` to their start."""
    require("ifftshift", x, _REAL, _COMPLEX)
    return expanded(np.fft.ifftshift, x, axes)
