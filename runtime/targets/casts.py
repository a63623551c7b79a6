"""What casts are in engines that compile: graphir.conversions over the values of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphir import DType
from graphir.conversions import Conversions, Step, plain, rounding

where: Callable[..., Any] = np.where


class EngineConversions(Conversions):
    """The steps of a cast over values that have NumPy's array protocol and astype of DTypes.

    Engines round 64 bits to 16 twice: their own conversions are taken to float32 and float64, and
    from float32 to less. Besides they are exact, and the exceptions are mended here.
    """

    natively = frozenset({DType.bool, DType.float32, DType.float64})

    def cast(self, source: DType, target: DType) -> Step:
        """The engine's own conversion; to bool a comparison."""
        if target is DType.bool:
            return lambda x: np.not_equal(x, 0)
        return lambda x: x.astype(target)

    def widen(self, source: DType) -> Step:
        """The engine's own conversion; XLA makes infinity of the NaN of float8_e8m0fnu."""
        wide = self.cast(source, plain(source))
        if source.format is None or source.format.specials != "scale":
            return wide
        return lambda x: where(np.equal(x.view(np.uint8), 0xFF), np.nan, wide(x))

    def narrow(self, target: DType, tf32: str) -> Step:
        """The engine's own conversion of values that it converts right."""
        settle: Step = rounding(target, tf32) if target.emulated else partial(self.settled, target)
        return lambda x: settle(x).astype(target)

    def settled(self, target: DType, x: Any) -> Any:
        """Float32 values whose conversion XLA folds as it computes it.

        Its folding drops signs and zeros on the way to float8_e8m0fnu, and makes 0 of what is not
        finite on the way to float4_e2m1fn. Bits tell signs, as comparisons flush subnormal numbers.
        """
        assert target.format is not None  # of a float
        if target.format.specials == "scale":
            return where(x.view(np.int32) > 0, x, np.nan)
        if target.format.specials == "finite":
            most = float(target.max)
            return where(np.not_equal(x, x), -0.0, np.minimum(np.maximum(x, -most), most))
        return x
