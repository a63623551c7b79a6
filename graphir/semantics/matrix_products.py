"""The kernel of matmul, for operands in any memory layout: BLAS's rounding depends on it."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from graphir.errors import ExecutionError
from graphir.hints import Array
from graphir.semantics import integer_products

Strides: TypeAlias = tuple[int, ...]
Layout: TypeAlias = tuple[str, Strides, Strides, bool]
"""A NumPy function, the strides of its operands, and whether the right one is the left's mT."""

_MATRIX = 2


def matmul(x: Array, y: Array, layout: Layout | None = None, out: Array | None = None) -> Array:
    """Return NumPy's product of x and y, from copies in the layout where they lie in another.

    Large products of integers, whose bits no layout changes, are computed by BLAS. A product by
    NumPy's matmul goes into `out`, if there is such an array, which is in C order.
    """
    if layout is None:
        if x.dtype == y.dtype and integer_products.pays(x.shape, y.shape, x.dtype):
            exact = integer_products.product(x, y, x.dtype)
            if exact is not None:
                return exact
        return np.matmul(x, y, out, casting="no")
    function, left, right, is_gram = layout
    x_laid = laid_out(x, left)
    if is_gram:  # NumPy calls another function of BLAS for x @ x.mT of one memory
        y_laid = x_laid.swapaxes(-1, -2)
        is_view = may_be_gram(x_laid, y) and address(x_laid) == address(y)
        if not is_view and (y.shape != y_laid.shape or not _same(y, y_laid)):
            raise ExecutionError("by the layout the right operand is the left one transposed")
    else:
        y_laid = laid_out(y, right)
        shares = np.may_share_memory(x_laid, y_laid) and may_be_gram(x_laid, y_laid)
        if shares and address(x_laid) == address(y_laid):
            y_laid = y_laid.copy("K")
    return (
        np.dot(x_laid, y_laid)
        if function == "dot"
        else np.matmul(x_laid, y_laid, out, casting="no")
    )


def laid_out(array: Array, strides: Strides) -> Array:
    """Return the array in aligned memory with some strides, counted in elements.

    The result is the array itself where it has the strides: NumPy's products copy an array that is
    not aligned, and so read other strides. Raises ExecutionError if elements of different values
    would share memory.
    """
    steps = tuple([stride * array.itemsize for stride in strides])
    has_strides = steps == array.strides or all(
        size == 1 or old == new
        for size, old, new in zip(array.shape, array.strides, steps, strict=True)
    )
    if has_strides and array.flags.aligned:
        return array
    reaches = [step * (size - 1) for step, size in zip(steps, array.shape, strict=True) if size]
    start = -sum(reach for reach in reaches if reach < 0)
    span = start + sum(reach for reach in reaches if reach > 0) + array.itemsize
    memory = np.empty(span // array.itemsize, array.dtype)
    new: Array = np.ndarray(array.shape, array.dtype, memory.data, start, steps)
    new[...] = array
    if not _same(new, array):
        raise ExecutionError(
            "the strides of the layout put different elements into one place", got=str(strides)
        )
    return new


def strides_of(view: Array) -> Strides:
    """Return the strides in elements, or in bytes where elements are not whole steps apart."""
    is_aligned = all(step % view.itemsize == 0 for step in view.strides)
    return tuple(step // view.itemsize if is_aligned else step for step in view.strides)


def uses_blas(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy computes products of a dtype by BLAS; other products add in index order."""
    return dtype.char in "fdFD"


def blas_threads() -> int | None:
    """Return the number of threads that NumPy's BLAS uses for large products.

    The answer is None unless the BLAS is an OpenBLAS, which NumPy's extension module links to.
    """
    library = _blas()
    for name in _THREAD_COUNTS:
        if function := getattr(library, name, None):
            return int(function())
    return None


def blas_function(name: str) -> int:
    """Return the address of an internal function of NumPy's BLAS, an OpenBLAS; 0 if there is none.

    The answer is 0, too, for an OpenBLAS of another series than those whose functions are known.
    """
    library = _blas()
    for each in _CONFIGS:
        if config := getattr(library, each, None):
            config.restype = ctypes.c_char_p
            if config().startswith(_SERIES) and (function := getattr(library, name, None)):
                return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


@cache
def _blas() -> ctypes.CDLL | None:
    """Return the functions of NumPy's extension module and of the libraries that it links to."""
    try:
        return ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except (ImportError, OSError):
        return None


def _names(name: str) -> list[str]:
    """Return the names that a function of OpenBLAS has in the builds that NumPy links to."""
    return [f"{prefix}{name}{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]


_THREAD_COUNTS, _CONFIGS = _names("openblas_get_num_threads"), _names("openblas_get_config")

_SERIES = b"OpenBLAS 0.3."
"""How the description starts of an OpenBLAS whose internal functions are known."""


def layout_of(function: str, x: Array, y: Array, dtype: np.dtype[Any]) -> Layout | None:
    """Return the layout of a product in a dtype by a NumPy function; None for C order.

    Only the shapes, strides and addresses of x and y matter. Before it calls BLAS, matmul converts
    an operand of another dtype, or one that is not aligned, to C order, and dot keeps its order.
    """
    order: Any = "C" if function == "matmul" else "K"
    x, y = (a if _is_plain(a, dtype) else np.empty_like(a, dtype, order) for a in (x, y))
    is_gram = may_be_gram(x, y) and address(x) == address(y)
    # dot of more axes is a product of vectors for each element; it scales complex columns itself.
    as_matmul = x.ndim <= _MATRIX and (dtype.kind == "f" or x.shape[-1] > 1)
    in_order = x.flags.c_contiguous and y.flags.c_contiguous and not is_gram
    if in_order and (function == "matmul" or as_matmul):
        return None
    left, right = (tuple(step // dtype.itemsize for step in a.strides) for a in (x, y))
    return function, left, right, is_gram


def _is_plain(array: Array, dtype: np.dtype[Any]) -> bool:
    is_aligned = all(stride % dtype.itemsize == 0 for stride in array.strides)
    return array.dtype == dtype and array.flags.aligned and is_aligned


def may_be_gram(x: Array, y: Array) -> bool:
    """Whether y is x.mT if both start at one address."""
    if x.ndim < _MATRIX or x.dtype != y.dtype:
        return False
    transposed = x.swapaxes(-1, -2)
    return y.shape == transposed.shape and y.strides == transposed.strides


def address(array: Array) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]


def _same(x: Array, y: Array) -> bool:
    return x.tobytes() == y.tobytes()
