"""Contractions in StableHLO."""

from __future__ import annotations

from typing import Any

from graphir import DType, TensorType
from graphir.ops.shape_rules import broadcast_shapes
from graphir.runtime.targets.stablehlo_.casts import cast_values
from graphir.runtime.targets.stablehlo_.movement import axis_moved
from graphir.runtime.targets.stablehlo_.text import fields
from graphir.runtime.targets.stablehlo_.values import HloValue, Sizes


def matmul(x: HloValue, y: HloValue) -> HloValue:
    """Return the matrix product over the last two axes; the leading axes broadcast."""
    inner = max(y.rank - 2, 0)
    if x.rank < 3 or y.rank < 3:
        product = _product(x, y, ((), ()), ((x.rank - 1,), (inner,)))
        # For one matrix x and many y, the rows of x come before the batch axes of y.
        return axis_moved(product, 0, product.rank - 2) if x.rank == 2 and y.rank > 2 else product
    batch: Any = broadcast_shapes((x.type.shape[:-2], y.type.shape[:-2]))
    left, right = (operand.broadcast((*batch, *operand.shape[-2:])) for operand in (x, y))
    places = tuple(range(len(batch)))
    return _product(left, right, (places, places), ((left.rank - 1,), (right.rank - 2,)))


def _product(
    x: HloValue, y: HloValue, batch: tuple[Sizes, Sizes], sum_axes: tuple[Sizes, Sizes]
) -> HloValue:
    """Return a dot_general; for bools in int32, which counts the pairs that are both true."""
    if x.dtype is DType.bool:
        left, right = (cast_values(operand, DType.int32) for operand in (x, y))
        return _product(left, right, batch, sum_axes).ne(0)
    shape: Sizes = tuple(x.shape[i] for i in batch[0])
    free = [
        tuple(size for i, size in enumerate(operand.shape) if i not in (*some, *others))
        for operand, some, others in zip((x, y), batch, sum_axes, strict=True)
    ]
    if not all(x.shape[i] for i in sum_axes[0]):  # an empty sum, on which engines abort
        return x.number(0, (*shape, *free[0], *free[1]))
    dimensions = fields(
        "dot",
        lhs_batching_dimensions=batch[0],
        rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=sum_axes[0],
        rhs_contracting_dimensions=sum_axes[1],
    )
    exact = "#stablehlo<precision HIGHEST>"
    return x.body.emit(
        "dot_general",
        [x, y],
        TensorType(x.dtype, (*shape, *free[0], *free[1])),
        dot_dimension_numbers=dimensions,
        precision_config=f"[{exact}, {exact}]",
    )
