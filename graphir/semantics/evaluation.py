"""The evaluation of one op on arrays, shared by the interpreter and constant folding.

Evaluation has four steps. Each operand is converted to the dtype that the op's signature demands.
Operands of an op that computes are widened exactly to a machine dtype. The kernel runs. The result
is rounded once to the dtype of the symbol.
"""

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
from graphir.ops.op import Inference, Op
from graphir.promotion.scalars import scalar
from graphir.semantics.kernels import KERNELS


def machine(dtype: DType) -> DType:
    """Return the dtype in which arithmetic on values of `dtype` happens.

    Float formats narrower than float32 widen exactly to float32, compute there, and round once
    more. For their precision p <= 11 bits this double rounding is innocuous: sums, products,
    quotients and square roots in the normal range are correctly rounded (Figueroa, "When is double
    rounding innocuous?", 1995). In float32's subnormal range results of tensor_float32 and bfloat16
    are rounded twice, with an error of at most 2**-150 more than half a unit in the last place.
    """
    return _MACHINE[dtype.code]


def _computes_in(dtype: DType) -> DType:
    if dtype.weak:
        return dtype
    if dtype.format and dtype.format.specials == "scale":
        return DType.float64  # products of e8m0 values reach 2**-254, which underflows in float32
    return plain(dtype)


_MACHINE = [_computes_in(dtype) for dtype in DType]


def apply(
    op: Op,
    inference: Inference,
    sources: Sequence[DType],
    values: Sequence[NDArray[Any]],
    sizes: Mapping[str, int],
    tf32: str = "even",
) -> NDArray[Any]:
    """Compute an op on arrays; return a C-contiguous array in the storage of the result's dtype.

    `sources` are the dtypes of `values`. Each value is converted to the dtype that the op's
    signature demands, and widened to a machine dtype if the op computes. The result is rounded
    once. `sizes` maps symbolic dims to ints. Raises ExecutionError for values that the op cannot
    compute with. Call inside `np.errstate(all="ignore")`.
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
    except (ValueError, OverflowError, MemoryError) as error:  # an array too large for NumPy
        raise ExecutionError(str(error) or "out of memory") from None
    made_as = machine(result) if op.computes else result
    if value_computed.dtype != made_as.storage:  # indices and sizes: the kernel returns int64
        made_as = DType.from_numpy(value_computed.dtype)
    return contiguous(convert(value_computed, made_as, result, tf32))


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in C order and aligned, as a copy where necessary.

    Alignment matters for bits: NumPy reduces an unaligned array in blocks of some thousand
    elements, and so adds in another order.
    """
    result = np.asarray(array, order="C")
    return result if result.flags.aligned else result.copy()


def settings_of(
    op: Op, result: DType, attrs: Mapping[str, Any], sizes: Mapping[str, int], tf32: str
) -> dict[str, Any]:
    """Convert an op's attributes to a kernel's keyword arguments.

    Symbolic dims become ints by `sizes`, and numbers become 0-d arrays in the dtype of the result.
    """
    settings = {name: _bound(value, sizes) for name, value in attrs.items()}
    settings.pop("literal", None)
    if settings.get("layout", 0) is None:
        del settings["layout"]
    if op.kind != "creation":
        settings.pop("dtype", None)
    if op is ops.full or op is ops.pad:
        settings["value"] = scalar(settings["value"], result, tf32)
    if "value" in settings:  # the value carries its dtype
        settings.pop("dtype", None)
    return settings


def _bound(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, Dim):
        return evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(_bound(item, sizes) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value
