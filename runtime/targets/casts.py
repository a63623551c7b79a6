"""Casts in compiling engines: graphir.conversions over the values of each engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphir import DType
from graphir.conversions import Conversions, Step, plain, rounding

where: Callable[..., Any] = np.where


class EngineConversions(Conversions):
    """The steps of a cast over values that have NumPy's array protocol, and `astype` of a DType.

    Engines round 64-bit floats to 16 bits twice. The steps therefore use an engine's conversion
    only to float32 and float64, and from float32 to narrower formats. These conversions are
    correct, except in the cases that this class corrects.
    """

    natively = frozenset({DType.bool, DType.float32, DType.float64})

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of the engine's own conversion; a cast to bool is a comparison with 0."""
        if target is DType.bool:
            return lambda x: np.not_equal(x, 0)
        return lambda x: x.astype(target)

    def widen(self, source: DType) -> Step:
        """Return the step of the engine's own conversion to a wider dtype.

        XLA converts the NaN of float8_e8m0fnu to infinity, which the step corrects.
        """
        wide = self.cast(source, plain(source))
        if source.format is None or source.format.specials != "scale":
            return wide
        return lambda x: where(np.equal(x.view(np.uint8), 0xFF), np.nan, wide(x))

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step of the engine's own conversion, after `settled` or a rounding.

        The engine converts the values of that first part correctly.
        """
        settle: Step = rounding(target, tf32) if target.emulated else partial(self.settled, target)
        return lambda x: settle(x).astype(target)

    def settled(self, target: DType, x: Any) -> Any:
        """Return float32 values that XLA's constant folding converts as its compiled code does.

        For float8_e8m0fnu the folding drops signs and zeros; for float4_e2m1fn it converts
        non-finite values to 0. The test of signs is by bits, as comparisons flush subnormals.
        """
        assert target.format is not None  # a float dtype has a format
        if target.format.specials == "scale":
            return where(x.view(np.int32) > 0, x, np.nan)
        if target.format.specials == "finite":
            most = float(target.max)
            return where(np.not_equal(x, x), -0.0, np.minimum(np.maximum(x, -most), most))
        return x
