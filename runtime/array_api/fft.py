"""The extension `fft`: Fourier transforms, which NumPy computes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphir import GraphError
from runtime.array_api.array import Array, eager, known
from runtime.array_api.creation import FLOAT
from runtime.array_api.devices import device_of
from runtime.array_api.dtypes import KINDS, dtype_of, require

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

_REAL, _COMPLEX = ("real floating",), ("complex floating",)


def _along_one(name: str, function: Callable[..., Any], kinds: tuple[str, ...], doc: str) -> Any:
    def call(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        require(name, x, *kinds)
        return eager(function, x, n=n, axis=axis, norm=norm)

    return _named(call, name, f"{doc} along an axis.")


def _along_several(
    name: str, function: Callable[..., Any], kinds: tuple[str, ...], doc: str
) -> Any:
    def call(
        x: Array,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Array:
        require(name, x, *kinds)
        if s is not None and axes is None:
            axes = range(x.ndim - len(s), x.ndim)
        return eager(function, x, s=s, axes=axes, norm=norm)

    return _named(call, name, f"{doc} along axes, the last len(s), or all.")


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


fft = _along_one("fft", np.fft.fft, _COMPLEX, "The transform")
ifft = _along_one("ifft", np.fft.ifft, _COMPLEX, "The inverse of fft")
rfft = _along_one("rfft", np.fft.rfft, _REAL, "The transform of real numbers")
irfft = _along_one("irfft", np.fft.irfft, _COMPLEX, "The inverse of rfft")
hfft = _along_one("hfft", np.fft.hfft, _COMPLEX, "The real transform of Hermitian values")
ihfft = _along_one("ihfft", np.fft.ihfft, _REAL, "The inverse of hfft")
fftn = _along_several("fftn", np.fft.fftn, _COMPLEX, "The transform")
ifftn = _along_several("ifftn", np.fft.ifftn, _COMPLEX, "The inverse of fftn")
rfftn = _along_several("rfftn", np.fft.rfftn, _REAL, "The transform of real numbers")
irfftn = _along_several("irfftn", np.fft.irfftn, _COMPLEX, "The inverse of rfftn")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of fft of n samples, `d` apart."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of rfft of n samples, `d` apart."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[..., Any], n: int, d: float, dtype: Any, device: Any) -> Array:
    device_of(device)
    to = dtype_of(dtype, FLOAT)
    if to not in KINDS["real floating"]:
        raise GraphError(f"frequencies are real floating, not {to}")
    return known(function(n, d).astype(to.storage))


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Frequency 0 moved to the middle."""
    require("fftshift", x, "real floating", "complex floating")
    return eager(np.fft.fftshift, x, axes=axes)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """The inverse of fftshift."""
    require("ifftshift", x, "real floating", "complex floating")
    return eager(np.fft.ifftshift, x, axes=axes)
