"""Casts in StableHLO: what it leaves to engines is written out."""

from __future__ import annotations

from graphir import DType
from graphir.conversions import Step
from runtime.targets.casts import EngineConversions
from runtime.targets.stablehlo_.values import HloValue


class HloConversions(EngineConversions):
    """Casts that round below float32 behind a barrier: engines would keep more of a value."""

    def narrow(self, target: DType, tf32: str) -> Step:
        """From float32; a rounding that is written out needs no barrier."""
        narrow = super().narrow(target, tf32)
        return narrow if target.emulated else lambda x: narrow(x).op("optimization_barrier")


def converted(x: HloValue, to: DType, tf32: str = "even") -> HloValue:
    """The values in another dtype, rounded once, as graphir.conversions has it."""
    return HloConversions().converted(x, x.dtype, to, tf32)


def widened(x: HloValue) -> HloValue:
    """Exactly, in a dtype that every engine computes in."""
    return HloConversions().widen(x.dtype)(x)
