"""Products of symbolic arrays: BLAS rounds by the way the operands lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.hints import ArrayOrNumber
from graphir.ir.operands import symbols_of
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse, OrderError, TraceMemory
from graphir.numpy_api.arrays.operands import operand
from graphir.semantics.matrix_products import layout_of, may_be_gram, uses_blas

Array = NDArray[Any]

_MATRIX = 2
_HALVES = "the op adds the products of float16 in another order than NumPy"


def product(
    memory: TraceMemory, function: str, operands: Sequence[Any], values: Sequence[Any]
) -> Symbol | None:
    """Return the product of operands by NumPy's matmul or dot, with the layout that BLAS meets.

    `values` are the symbols of the operands. The result is None if the op matmul itself has
    NumPy's bits.
    """
    views = [_view(value) for value in operands]
    if any(view is None or not view.ndim for view in views):
        return None
    graph = memory.graph
    args = symbols_of(graph, ops.matmul, tuple(values))
    dtype = graph.infer(ops.matmul, args, {}).type.dtype.to_numpy()
    if dtype == np.float16 and memory.runs_here:
        raise OrderError(_HALVES, fix="use .astype(np.float32)")
    if not uses_blas(dtype):
        return None
    left, right = cast("list[Array]", views)
    is_gram = may_be_gram(left, right) and all(map(_is_argument, operands))
    memory.reads_layouts(LayoutUse.ALL if is_gram else LayoutUse.STRIDES)
    layout = layout_of(function, left, right, dtype)
    return None if layout is None else graph.apply(ops.matmul, args, {"layout": layout})


def check_output(out: ArrayOrNumber) -> None:
    """Raise OrderError if matmul would write to an array in another order than C."""
    view = _view(out)
    if view is not None and uses_blas(view.dtype) and not view.flags.c_contiguous:
        raise OrderError(
            "NumPy multiplies otherwise if the output is not in C order",
            fix="write out[...] = x @ y",
        )


def _check_scaled(memory: TraceMemory, name: str, args: Sequence[Any]) -> None:
    """Raise OrderError for products with one complex number, which BLAS rounds once, not twice."""
    values = [operand(memory, value) for value in args]
    shapes = [np.shape(value) for value in values]
    kinds = [
        x.dtype.to_numpy().kind if isinstance(x, Symbol) else np.asarray(x).dtype.kind
        for x in values
    ]
    if () in shapes and "c" in kinds and max(map(len, shapes)) <= _MATRIX:
        raise OrderError(
            f"np.{name} by a complex number has other bits than the product", fix="write x * y"
        )


def _is_argument(value: ArrayOrNumber) -> bool:
    """Whether a value views an argument, which the caller may pass twice."""
    symbol = value.cell.symbol if isinstance(value, ArrayValue) else None
    return symbol is not None and symbol.op is ops.input


def _view(value: ArrayOrNumber) -> Array | None:
    if isinstance(value, ArrayValue):
        return value.layout
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def of_function(
    memory: TraceMemory, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Symbol | None:
    """Return the result of a NumPy function that is one product; None for any other call."""
    if kwargs or len(args) != 2 or name not in ("dot", "inner", "vdot", "matmul"):
        return None
    operands = [*args]
    if name in ("dot", "inner"):
        _check_scaled(memory, name, args)
    left, right = map(_view, args)
    if left is None or right is None or not (left.ndim and right.ndim):
        return None
    if name in ("dot", "inner"):
        blas = uses_blas(np.result_type(left, right))
        single = left.size == right.size == 1 and max(left.ndim, right.ndim) <= _MATRIX
        if blas and single and np.result_type(left, right).kind == "f":
            return None  # a single product
        if right.ndim > _MATRIX:
            if not blas:
                return None
            raise OrderError(
                f"np.{name} with more than two axes on the right adds in an order of its own",
                got=f"{right.ndim} axes",
                fix="use x @ y, np.tensordot or np.vecdot",
            )
    if name == "inner":
        if right.ndim > 1:
            operands[1] = args[1].T
        name = "dot"
    elif name == "vdot":
        operands = [value.reshape(-1) for value in args]
        left, right = (cast("Array", _view(value)) for value in operands)
        if np.result_type(left, right).kind == "c":
            if left.flags.c_contiguous and right.flags.c_contiguous:
                return None
            raise OrderError(
                "np.vdot of strided complex vectors has other bits than that of copies",
                fix="pass x.copy()",
            )
        name = "matmul"
    return product(memory, name, operands, [operand(memory, value) for value in operands])
