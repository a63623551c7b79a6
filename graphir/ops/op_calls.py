"""The calls of the catalogue's ops, for type checkers: a class for each list of parameters.

Names, order and defaults are those of the op's record; the type of an attribute is that which its
normalization in attributes.py takes. tests/graphir/ops/test_op_calls.py compares them. Nothing
imports this module at run time: there every op is an Op.
"""

# ruff: noqa: D101, D102

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from graphir.ops.op import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphir.dtypes import DTypeLike
    from graphir.hints import ArrayOrNumber, Flag, Int, Ints, Number, Pairs, Real
    from graphir.ir.symbol import Symbol
    from graphir.ops.dims import DimLike, ShapeLike


class BinaryOp(Op):
    def __call__(self, lhs: ArrayOrNumber, rhs: ArrayOrNumber) -> Symbol: ...


class UnaryOp(Op):
    def __call__(self, x: ArrayOrNumber) -> Symbol: ...


class GeluOp(Op):
    def __call__(
        self, x: ArrayOrNumber, approximate: Literal["none", "tanh", "quick"] = "none"
    ) -> Symbol: ...


class WhereOp(Op):
    def __call__(self, condition: ArrayOrNumber, x: ArrayOrNumber, y: ArrayOrNumber) -> Symbol: ...


class ClipOp(Op):
    def __call__(self, x: ArrayOrNumber, low: ArrayOrNumber, high: ArrayOrNumber) -> Symbol: ...


class CastOp(Op):
    def __call__(self, x: ArrayOrNumber, to: DTypeLike) -> Symbol: ...


class SumOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        axis: Ints | None = None,
        keepdims: Flag = False,
        dtype: DTypeLike | None = None,
    ) -> Symbol: ...


class MaskedSumOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        mask: ArrayOrNumber,
        axis: Ints | None = None,
        keepdims: Flag = False,
        dtype: DTypeLike | None = None,
        selection: Flag = False,
        layout: Sequence[Any] | None = None,
        buffered: Flag = False,
        initial: Number | None = None,
    ) -> Symbol: ...


class ReductionOp(Op):
    def __call__(
        self, x: ArrayOrNumber, axis: Ints | None = None, keepdims: Flag = False
    ) -> Symbol: ...


class VarianceOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        axis: Ints | None = None,
        keepdims: Flag = False,
        correction: Int = 0,
    ) -> Symbol: ...


class LocatorOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        axis: Int | None = None,
        keepdims: Flag = False,
        dtype: DTypeLike | None = None,
    ) -> Symbol: ...


class CumulativeOp(Op):
    def __call__(
        self, x: ArrayOrNumber, axis: Int = -1, dtype: DTypeLike | None = None
    ) -> Symbol: ...


class RowOp(Op):
    def __call__(self, x: ArrayOrNumber, axis: Int = -1) -> Symbol: ...


class LayerNormOp(Op):
    def __call__(
        self, x: ArrayOrNumber, scale: ArrayOrNumber, shift: ArrayOrNumber, epsilon: Real = 1e-05
    ) -> Symbol: ...


class SortOp(Op):
    def __call__(
        self, x: ArrayOrNumber, axis: Int = -1, descending: Flag = False, stable: Flag = True
    ) -> Symbol: ...


class ArgSortOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        axis: Int = -1,
        descending: Flag = False,
        dtype: DTypeLike | None = None,
        stable: Flag = True,
    ) -> Symbol: ...


class SearchOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        values: ArrayOrNumber,
        side: Literal["left", "right"] = "left",
        dtype: DTypeLike | None = None,
    ) -> Symbol: ...


class MatMulOp(Op):
    def __call__(
        self, lhs: ArrayOrNumber, rhs: ArrayOrNumber, layout: Sequence[Any] | None = None
    ) -> Symbol: ...


class TensorDotOp(Op):
    def __call__(self, lhs: ArrayOrNumber, rhs: ArrayOrNumber, axes: Pairs = 2) -> Symbol: ...


class ShapeOp(Op):
    def __call__(self, x: ArrayOrNumber, shape: ShapeLike) -> Symbol: ...


class TransposeOp(Op):
    def __call__(self, x: ArrayOrNumber, axis1: Int = -2, axis2: Int = -1) -> Symbol: ...


class PermuteOp(Op):
    def __call__(self, x: ArrayOrNumber, dims: Ints) -> Symbol: ...


class AxisOp(Op):
    def __call__(self, x: ArrayOrNumber, axis: Int) -> Symbol: ...


class SliceOp(Op):
    def __call__(
        self, x: ArrayOrNumber, start: ShapeLike, stop: ShapeLike, step: Ints
    ) -> Symbol: ...


class AffineViewOp(Op):
    def __call__(
        self, x: ArrayOrNumber, shape: ShapeLike, origin: ShapeLike, steps: Sequence[Ints]
    ) -> Symbol: ...


class ItemOp(Op):
    def __call__(self, x: ArrayOrNumber, index: ShapeLike) -> Symbol: ...


class SliceUpdateOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        updates: ArrayOrNumber,
        start: ShapeLike,
        stop: ShapeLike,
        step: Ints,
    ) -> Symbol: ...


class FlipOp(Op):
    def __call__(self, x: ArrayOrNumber, axis: Ints | None = None) -> Symbol: ...


class RollOp(Op):
    def __call__(self, x: ArrayOrNumber, shift: Int, axis: Int) -> Symbol: ...


class PadOp(Op):
    def __call__(self, x: ArrayOrNumber, padding: Pairs, value: Number = 0) -> Symbol: ...


class TileOp(Op):
    def __call__(self, x: ArrayOrNumber, repeats: Ints) -> Symbol: ...


class RepeatOp(Op):
    def __call__(self, x: ArrayOrNumber, repeats: Int, axis: Int) -> Symbol: ...


class ConcatOp(Op):
    def __call__(self, x: Sequence[ArrayOrNumber], axis: Int = 0) -> Symbol: ...


class GatherOp(Op):
    def __call__(self, x: ArrayOrNumber, indices: ArrayOrNumber, axis: Int = 0) -> Symbol: ...


class TakeAlongOp(Op):
    def __call__(self, x: ArrayOrNumber, indices: ArrayOrNumber, axis: Int = -1) -> Symbol: ...


class ScatterOp(Op):
    def __call__(
        self, x: ArrayOrNumber, updates: ArrayOrNumber, indices: ArrayOrNumber, axis: Int = -1
    ) -> Symbol: ...


class IndexUpdateOp(Op):
    def __call__(
        self,
        x: ArrayOrNumber,
        updates: ArrayOrNumber,
        indices: ArrayOrNumber,
        axis: Int | None = None,
    ) -> Symbol: ...


class InputOp(Op):
    def __call__(self, dtype: DTypeLike, shape: ShapeLike) -> Symbol: ...


class ConstantOp(Op):
    def __call__(
        self, dtype: DTypeLike, value: object, literal: Number | None = None
    ) -> Symbol: ...


class FullOp(Op):
    def __call__(
        self, dtype: DTypeLike, value: Number, shape: ShapeLike, literal: Number | None = None
    ) -> Symbol: ...


class RangeOp(Op):
    def __call__(self, dtype: DTypeLike, start: Number, step: Number, size: DimLike) -> Symbol: ...


class EyeOp(Op):
    def __call__(
        self, dtype: DTypeLike, rows: DimLike, columns: DimLike, offset: Int = 0
    ) -> Symbol: ...


class SizesOp(Op):
    def __call__(self, x: ArrayOrNumber, dtype: DTypeLike | None = None) -> Symbol: ...
