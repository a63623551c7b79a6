"""The rules of MAX's published lattice."""

from __future__ import annotations

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.promotion.rules import PromotionRules

MAX_LATTICE = Lattice(
    "max",
    {
        DType.bool: [DType.int8, DType.uint8],
        DType.int8: [DType.int16],
        DType.int16: [DType.int32],
        DType.int32: [DType.int64],
        DType.int64: [DType.float16],
        DType.uint8: [DType.uint16, DType.int16],
        DType.uint16: [DType.uint32, DType.int32],
        DType.uint32: [DType.uint64, DType.int64],
        DType.uint64: [DType.float16],
        DType.index: [DType.uint64],
        DType.address: [DType.uint64],
        DType.float16: [DType.bfloat16],
        DType.bfloat16: [DType.float32],
        DType.float32: [DType.tensor_float32],
        DType.tensor_float32: [DType.float64],
    },
)
"""MAX 24.1, Mojo API reference, max.graph.type_promotion."""

MAX = PromotionRules(
    "max",
    "MAX's published lattice: total over 16 dtypes, every result the join.",
    MAX_LATTICE,
    "MAX 24.1 Mojo API reference, max.graph.type_promotion",
)
