"""Casts in StableHLO, written out in the cases whose result StableHLO leaves to engines."""

from __future__ import annotations

from graphir import DType
from graphir.conversions import Step
from graphir.runtime.targets.casts import EngineConversions
from graphir.runtime.targets.stablehlo_.values import HloValue


class HloConversions(EngineConversions):
    """Casts with a barrier after each rounding below float32, as engines keep excess precision."""

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step from float32; a rounding that is written out needs no barrier."""
        narrow = super().narrow(target, tf32)
        return narrow if target.emulated else lambda x: narrow(x).op("optimization_barrier")


def cast_values(x: HloValue, to: DType, tf32: str = "even") -> HloValue:
    """Return the values in another dtype, rounded once as in graphir.conversions."""
    return HloConversions().convert(x, x.dtype, to, tf32)


def widened(x: HloValue) -> HloValue:
    """Return the values widened exactly to a dtype in which every engine computes."""
    return HloConversions().widen(x.dtype)(x)
