"""What one op computes on values: the meaning that the interpreter and constant folding share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.conversions import convert, plain
from graphir.dtypes import DType
from graphir.errors import ExecutionError
from graphir.ops.dims import Dim, evaluate
from graphir.ops.op import Inferred, Op
from graphir.promotion.scalars import scalar
from graphir.semantics.kernels import KERNELS


def machine(dtype: DType) -> DType:
    """The dtype in which arithmetic on values of `dtype` happens.

    Float formats narrower than float32 widen to it exactly, compute, and round once more: for
    their p <= 11 bits, sums, products, quotients and square roots in the normal range come out
    correctly rounded all the same (Figueroa, "When is double rounding innocuous?", 1995). In
    float32's subnormal range tensor_float32 and bfloat16 are rounded twice: by at most 2**-150 more
    than half a unit in the last place.
    """
    return _MACHINE[dtype.code]


def _computes_in(dtype: DType) -> DType:
    if dtype.weak:
        return dtype
    if dtype.format and dtype.format.specials == "scale":
        return DType.float64  # products of its values reach 2**-254, which float32 takes for 0
    return plain(dtype)


_MACHINE = [_computes_in(dtype) for dtype in DType]


def apply(
    op: Op,
    inference: Inferred,
    sources: Sequence[DType],
    values: Sequence[NDArray[Any]],
    sizes: Mapping[str, int],
    tf32: str = "even",
) -> NDArray[Any]:
    """The value of an op: C-contiguous, in the storage of its result's dtype.

    `sources` are the dtypes that the values have; each is converted to the dtype that the op's
    signature demands, widened to a machine dtype where the op computes, and the result rounded
    once. `sizes` binds symbolic dims. Raises ExecutionError for values the op cannot compute with.
    Call inside `np.errstate(all="ignore")`.
    """
    result = inference.type.dtype
    operands = [
        convert(value, source, operand_dtype, tf32)
        for value, source, operand_dtype in zip(values, sources, inference.operands, strict=True)
    ]
    if op is ops.cast:
        return contiguous(convert(operands[0], inference.operands[0], result, tf32))
    if op.computes:
        operands = [
            contiguous(convert(value, operand_dtype, machine(operand_dtype)))
            for value, operand_dtype in zip(operands, inference.operands, strict=True)
        ]
    settings = settings_of(op, result, inference.attrs, sizes, tf32)
    try:
        value_computed = np.asarray(KERNELS[op.name](*operands, **settings))
    except ExecutionError:
        raise
    except (ValueError, OverflowError, MemoryError) as error:  # sizes beyond all bounds
        raise ExecutionError(str(error) or "out of memory") from None
    made_as = machine(result) if op.computes else result
    if value_computed.dtype != made_as.storage:  # places and sizes, which NumPy gives as int64
        made_as = DType.from_numpy(value_computed.dtype)
    return contiguous(convert(value_computed, made_as, result, tf32))


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """In C order and aligned: NumPy reduces unaligned arrays some thousand elements at a time."""
    result = np.asarray(array, order="C")
    return result if result.flags.aligned else result.copy()


def settings_of(
    op: Op, result: DType, attrs: Mapping[str, Any], sizes: Mapping[str, int], tf32: str
) -> dict[str, Any]:
    """The attributes as kernels take them: dims bound, numbers in the dtype of the result."""
    settings = {name: _bound(value, sizes) for name, value in attrs.items()}
    settings.pop("literal", None)
    if op.kind != "creation":
        settings.pop("dtype", None)
    if op is ops.full or op is ops.pad:
        settings["value"] = scalar(settings["value"], result, tf32)
    if "value" in settings:  # which has its dtype
        settings.pop("dtype", None)
    return settings


def _bound(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, Dim):
        return evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(_bound(item, sizes) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value
