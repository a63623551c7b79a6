"""LossRow: a step of arithmetic that lost values in an audited run, as a row beside the casts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

from graphir.loss import Loss, LossKind
from graphir.passes.analysis.casts.causes import Uses
from graphir.passes.analysis.casts.conversion import CastConversion, StepLoss
from graphir.passes.analysis.casts.fixes import loss_fix
from graphir.passes.analysis.casts.measured import Measured
from graphir.passes.analysis.casts.rows import CastRow
from graphir.public import DType, Symbol

_KINDS: Mapping[StepLoss, LossKind] = {
    "wrap": "range",
    "overflow": "range",
    "underflow": "underflow",
    "invalid": "special",
    "cancellation": "precision",
    "absorption": "precision",
    "accumulation": "precision",
    "rounding": "precision",
}


class LossRow(CastRow):
    """A step of arithmetic that lost values: `symbol` is the step, `measured` has its loss.

    The row has the properties of a cast row. Its operand is the result of the op, and its source
    and target are the dtype of the result.
    """

    def __init__(self, kind: StepLoss, symbol: Symbol, place: int, measured: Measured) -> None:
        conversion = _conversion(kind, symbol.op.name, symbol.graph.storage_dtype(symbol))
        super().__init__(conversion, symbol.location, symbol, place, Uses(symbol.graph, ()))
        self.measured = measured

    @property
    def user(self) -> Symbol | None:
        """The step itself."""
        return self.symbol

    @property
    def position(self) -> int:
        """The position of the result: -1."""
        return -1

    @cached_property
    def fix(self) -> str:
        """The code to type instead, in one line; "" if the source does not say."""
        return loss_fix(self)

    @property
    def bytes_added(self) -> int:
        """A loss allocates nothing."""
        return 0


@cache
def _conversion(kind: StepLoss, op: str, dtype: DType) -> CastConversion:
    loss = Loss((_KINDS[kind],))
    return CastConversion(kind, op, "result", kind, dtype, dtype, (dtype,), loss)
