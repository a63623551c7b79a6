"""Products of matrices, which BLAS rounds by the way the operands lie in memory.

The op matmul has an attribute `layout`, which names the routine of BLAS that NumPy calls for
operands of these strides. A product that NumPy adds in another order raises OrderError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from graphir import ops
from graphir.hints import Array, ArrayOrNumber
from graphir.ir.operands import symbols_of
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.call_operands import operand
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse, OrderError, TraceMemory
from graphir.semantics.library_calls import Keywords
from graphir.semantics.matrix_products import layout_of, may_be_gram, uses_blas

_MATRIX = 2
_HALVES = "the op adds the products of float16 in another order than NumPy"


def matrix_product(
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


def check_product_output(out: ArrayOrNumber) -> None:
    """Raise OrderError if matmul would write to an array in another order than C."""
    view = _view(out)
    if view is not None and uses_blas(view.dtype) and not view.flags.c_contiguous:
        raise OrderError(
            "NumPy multiplies otherwise if the output is not in C order",
            fix="write out[...] = x @ y",
        )


def product_of_function(
    memory: TraceMemory, name: str, args: Sequence[Any], kwargs: Keywords
) -> Symbol | None:
    """Return the result of a NumPy function that is one product; None for any other call."""
    if kwargs or len(args) != 2 or name not in ("dot", "inner", "vdot", "matmul"):
        return None
    if name in ("dot", "inner"):
        _check_scaled(memory, name, args)
    left, right = map(_view, args)
    if left is None or right is None or not (left.ndim and right.ndim):
        return None
    if name == "matmul":
        return _product(memory, name, args)
    if name == "vdot":
        return _product_of_vectors(memory, args)
    if not _is_dot(name, left, right):
        return None
    transposed = name == "inner" and right.ndim > 1
    return _product(memory, "dot", (args[0], args[1].T if transposed else args[1]))


def _product(memory: TraceMemory, function: str, operands: Sequence[Any]) -> Symbol | None:
    values = [operand(memory, value) for value in operands]
    return matrix_product(memory, function, operands, values)


def _product_of_vectors(memory: TraceMemory, args: Sequence[Any]) -> Symbol | None:
    """Return np.vdot of real operands; None for complex ones, whose order the op has."""
    operands = [value.reshape(-1) for value in args]
    left, right = (cast("Array", _view(value)) for value in operands)
    if np.result_type(left, right).kind != "c":
        return _product(memory, "matmul", operands)
    if left.flags.c_contiguous and right.flags.c_contiguous:
        return None
    raise OrderError(
        "np.vdot of strided complex vectors has other bits than that of copies",
        fix="pass x.copy()",
    )


def _is_dot(name: str, left: Array, right: Array) -> bool:
    """Whether np.dot or np.inner computes a product of matrices in the order of np.dot.

    The function raises OrderError for floats with more than two axes on the right.
    """
    dtype = np.result_type(left, right)
    blas = uses_blas(dtype)
    is_single = left.size == right.size == 1 and max(left.ndim, right.ndim) <= _MATRIX
    if blas and is_single and dtype.kind == "f":
        return False  # a single product
    if right.ndim <= _MATRIX:
        return True
    if not blas:
        return False
    raise OrderError(
        f"np.{name} with more than two axes on the right adds in an order of its own",
        got=f"{right.ndim} axes",
        fix="use x @ y, np.tensordot or np.vecdot",
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
