"""The evaluation of one op on arrays, shared by the interpreter and constant folding.

Evaluation has four steps. Each operand is converted to the dtype that the op's signature demands.
Operands of an op that computes are widened exactly to a machine dtype. The kernel runs. The result
is rounded once to the dtype of the symbol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.conversions import convert, plain, same_value
from graphir.dtypes import DType, by_dtype
from graphir.errors import ExecutionError, OutOfMemoryError
from graphir.ops.dims import Dim, evaluate
from graphir.ops.op import Inference, Op
from graphir.promotion.scalars import scalar
from graphir.semantics.kernels import KERNEL_TABLES
from graphir.semantics.numpy_loops import run_loop
from graphir.semantics.rounded_functions import ROUNDED_FUNCTIONS


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


_MACHINE = by_dtype(_computes_in)


def computes_narrowly(op: Op, attrs: Mapping[str, Any], dtypes: Sequence[DType]) -> bool:
    """Whether an op on operands of some dtypes computes in these, narrow or not, as NumPy does.

    Loops of NumPy do, and unstable sorts of float16, which leave equal values as NumPy does.
    Sums at indices round each sum to their dtype, as NumPy, JAX and torch do.
    """
    if op is ops.index_add:
        return not dtypes[0].emulated
    return "loop" in attrs or (
        op in (ops.sort, ops.argsort) and not attrs["stable"] and dtypes[0] is DType.float16
    )


def machine_of(op: Op, dtype: DType, functions: str) -> DType:
    """Return the dtype in which an op computes on values of `dtype`, by a graph's `functions`.

    Correctly rounded functions of narrow floats compute in float64. Of no value of such a dtype
    does the exact result lie so near to the middle of two neighbours that rounding float64 fails,
    whereas a result rounded to float32 may lie in the middle itself.
    """
    wide = machine(dtype)
    is_rounded = functions == "rounded" and op.name in ROUNDED_FUNCTIONS
    return DType.float64 if is_rounded and wide is not dtype and dtype.is_float else wide


class Evaluation:
    """One op on operands of given dtypes: its conversions, kernel and settings, chosen once.

    `sources` are the dtypes of the operands. Each operand is converted to the dtype that the op's
    signature demands, and widened to a machine dtype if the op computes. The result is rounded
    once. `sizes` maps symbolic dims to ints. `tf32` and `functions` are settings of the graph.
    """

    __slots__ = ("_casts", "_kernel", "_made_as", "_result", "_settings", "_tf32", "_widens")

    def __init__(
        self,
        op: Op,
        inference: Inference,
        sources: Sequence[DType],
        sizes: Mapping[str, int],
        tf32: str = "even",
        functions: str = "numpy",
    ) -> None:
        self._result, self._tf32 = inference.type.dtype, tf32
        pairs = [*enumerate(zip(sources, inference.operands, strict=True))]
        loop = inference.attrs.get("loop")
        is_narrow = computes_narrowly(op, inference.attrs, inference.operands)
        self._widens = op.computes and not is_narrow
        if op is ops.cast:
            self._kernel, self._settings = same_value, {}
            pairs.append((0, (inference.operands[0], self._result)))
        elif loop is not None:
            self._kernel, self._settings = partial(run_loop, loop), {}
        else:
            self._kernel = KERNEL_TABLES[functions][op.name]
            self._settings = settings_of(op, self._result, inference.attrs, sizes, tf32)
        if self._widens:
            pairs += [
                (i, (dtype, machine_of(op, dtype, functions)))
                for i, dtype in enumerate(inference.operands)
            ]
        self._casts = [(i, *pair) for i, pair in pairs if pair[0] is not pair[1]]
        self._made_as = machine_of(op, self._result, functions) if self._widens else self._result

    def __call__(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the result for some operands, C-contiguous in the storage of the result's dtype.

        Raises ExecutionError for values that the op cannot compute with, and OutOfMemoryError. Call
        inside `np.errstate(all="ignore")`.
        """
        try:
            return self._result_of(values)
        except MemoryError as error:
            raise OutOfMemoryError.of(error) from None

    def _result_of(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        operands = [*values]
        for i, source, target in self._casts:
            operands[i] = convert(operands[i], source, target, self._tf32)
        if self._widens:
            operands = [contiguous(value) for value in operands]
        try:
            value_computed = np.asarray(self._kernel(*operands, **self._settings))
        except (ExecutionError, MemoryError):
            raise
        except (ValueError, OverflowError) as error:  # an array too large for NumPy
            raise ExecutionError(str(error)) from None
        made_as = self._made_as
        if value_computed.dtype != made_as.storage:  # indices and sizes: the kernel returns int64
            made_as = DType.from_numpy(value_computed.dtype)
        if made_as is not self._result:
            value_computed = convert(value_computed, made_as, self._result, self._tf32)
        return contiguous(value_computed)


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
    settings.pop("loop", None)  # no parameter of kernels: see run_loop
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
