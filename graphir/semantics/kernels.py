"""Kernels on NumPy arrays: the table KERNELS has one function for each op of the catalogue.

A primitive op has a line in `PRIMITIVES`. A composite op without such a line runs its
decomposition on arrays.

A kernel is called `kernel(*arrays, **attributes)`. The arrays are C-contiguous and have the dtypes
that the op's signature names. These are dtypes in which NumPy itself computes: bool, integers of 8
to 64 bits, float32, float64, complex64, complex128. Movement ops take arrays of any storage dtype.
Attributes have their normal form, and symbolic dims are already ints. Only creation ops get
`dtype`. The `value` of `full` and `pad` is a 0-d array of the result's dtype.

A result is a new array; for 0-d operands it may be a NumPy scalar. Its dtype is that of the
operands, except for predicates and comparisons (bool) and positions (int64). Movement ops and
constants may return a view, perhaps read-only. Elementwise kernels that consist of ufuncs,
operators, np.where and .copy() alone can be traced, and then run without temporary arrays.

Kernels never promote: ufuncs run with casting="no", and the other kernels check dtypes. A TypeError
means that a cast is missing before the kernel. Integers wrap. A kernel raises ExecutionError for
values without a result. The caller silences floating point errors, with one
np.errstate(all="ignore").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from graphir.conversions import convert
from graphir.dtypes import DType, DTypeLike
from graphir.errors import ExecutionError, cast_first
from graphir.hints import Array
from graphir.ops import decompositions
from graphir.ops.catalogue import CATALOGUE
from graphir.ops.op import Op, find
from graphir.semantics import data_movement as movement
from graphir.semantics import matrix_products as products
from graphir.semantics import sorting, sums
from graphir.semantics import special_functions as functions
from graphir.semantics.data_movement import alike
from graphir.semantics.rounded_functions import ROUNDED_FUNCTIONS, multiply_add, rounded_erf

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


# -- A table of kernels by op name: primitives, and composite ops by their decompositions

Kernel: TypeAlias = Callable[..., Any]


class KernelTable(dict[str, Kernel]):
    """A dict of kernels by op name, in the order of the catalogue.

    The kernel of an op is its row in `kernels`, or its own kernel, or its decomposition on
    `primitives(table)`, the namespace that decompositions call. A missing name is looked up among
    the registered ops; KeyError if the op has no kernel.
    """

    def __init__(self, kernels: Mapping[str, Kernel], primitives: Callable[[Any], Any]) -> None:
        super().__init__()
        self.primitives = primitives(self)
        for name, op in CATALOGUE.items():
            kernel = kernels.get(name) or self._own(op)
            if kernel is not None:
                self[name] = kernel

    def __missing__(self, name: str) -> Kernel:
        kernel = self._own(find(name))
        if kernel is None:
            raise KeyError(name)
        self[name] = kernel
        return kernel

    def _own(self, op: Op) -> Kernel | None:
        if op.kernel is not None or op.decomposition is None:
            return op.kernel
        return partial(op.decomposition.function, self.primitives)


# -- Kernels on NumPy arrays: the table KERNELS has one function for each op of the catalogue


def _call(function: np.ufunc, *arrays: Array) -> Array:
    return function(*arrays, casting="no")


def ufunc(function: np.ufunc) -> Kernel:
    """Return a kernel that runs a ufunc with casting="no"."""
    return partial(_call, function)


def _call_alike(function: np.ufunc, *arrays: Array) -> Array:
    if {array.dtype for array in arrays} != _COMPARED_EXACTLY:
        alike(function.__name__, *arrays)
    return _call(function, *arrays)


_COMPARED_EXACTLY = {np.dtype(np.int64), np.dtype(np.uint64)}


def truth(function: np.ufunc) -> Kernel:
    """Return a kernel that runs a ufunc with a bool result on operands of one dtype.

    The kernel checks the dtypes itself, because some of these ufuncs accept mixed dtypes in spite
    of casting="no". NumPy compares int64 with uint64 exactly, so this pair is allowed.
    """
    return partial(_call_alike, function)


def _call_whole(function: np.ufunc, *arrays: Array) -> Array:
    # For an operand of stride 0, such as a broadcast or 0-d array, np.power takes a short cut with
    # other results: x ** 2 is then x * x.
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    whole = (np.array(np.broadcast_to(array, shape or 1), order="C") for array in arrays)
    return _call(function, *whole).reshape(shape)


def whole(function: np.ufunc) -> Kernel:
    """Return a kernel for a ufunc whose results depend on strides: it broadcasts operands first."""
    return partial(_call_whole, function)


# -- elementwise


def _pow(x: Array, y: Array) -> Array:
    """Compute np.power, and x * x (rounded once) where the base is real and the exponent is 2.

    Floats without axes are raised as NumPy raises its scalars: by the C library's pow, which has
    other bits than the loop over arrays, in 5 % of random powers of float64, 20 % of float32.
    Raises ExecutionError for an integer base and a negative integer exponent.
    """
    if x.size and y.size and y.dtype.kind == "i" and (least := y.min()) < 0:
        raise ExecutionError(
            f"{x.dtype} ** {least} is a fraction, which no integer is",
            fix=cast_first("float64"),
            op="pow",
        )
    if x.dtype.kind == "f" and not x.ndim and not y.ndim and x.dtype == y.dtype:
        return x[()] ** y[()]
    squares = np.equal(y, 2) if x.dtype.kind in "iuf" else np.False_
    if not squares.any():
        return _call_whole(np.power, x, y)
    square = _call(np.multiply, x, x)
    if squares.all():
        shape = np.broadcast_shapes(x.shape, y.shape)
        return square if x.shape == shape else np.broadcast_to(square, shape).copy()
    return np.where(squares, square, _call_whole(np.power, x, y))


def _round(function: np.ufunc, x: Array) -> Array:
    return x.copy() if x.dtype.kind in "biu" else _call(function, x)


def _signbit(x: Array) -> Array:
    return _call(np.signbit, x) if x.dtype.kind == "f" else _call(np.less, x, x.dtype.type(0))


def _where(condition: Array, x: Array, y: Array) -> Array:
    alike("where", x, y)
    return np.where(condition, x, y)


def _copy(x: Array) -> Array:
    return x.copy()


def _sign(x: Array) -> Array:
    return x.copy() if x.dtype == np.bool_ else _call(np.sign, x)


def _reciprocal(x: Array) -> Array:
    """Compute the decomposition of reciprocal, or np.reciprocal for complex numbers."""
    quotient = decompositions.reciprocal(ARRAYS, x)
    return _call(np.reciprocal, x) if quotient is None else quotient


def _real(x: Array) -> Array:
    return cast(Any, x).real.copy()


def _imag(x: Array) -> Array:
    return cast(Any, x).imag.copy()


def _conj(x: Array) -> Array:
    return _call(np.conjugate, x) if x.dtype.kind == "c" else x.copy()


def _as_complex(x: Array, y: Array) -> Array:
    alike("as_complex", x, y)
    dtype = np.complex64 if x.dtype == np.float32 else np.complex128
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), dtype)
    result.real, result.imag = x, y
    return result


# -- reductions and rows


def _reduce(function: np.ufunc, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(function.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims))


def _accumulate(function: np.ufunc, x: Array, axis: int) -> Array:
    return function.accumulate(x, axis=axis, dtype=x.dtype)


def _extreme(
    name: str, function: np.ufunc, x: Array, axis: tuple[int, ...], keepdims: bool
) -> Array:
    """Compute the maximum or minimum over axes, with 0.0 above -0.0 (IEEE 754-2019, 9.6).

    Among zeros of both signs NumPy's result depends on their places. Where the result is zero, the
    kernel compares bit patterns as integers, which order 0.0 above -0.0.
    """
    _not_empty(name, x, axis)
    extreme = _reduce(function, x, axis, keepdims)
    if x.dtype.kind != "f" or extreme.all():
        return extreme
    bits = _reduce(function, x.view(f"i{x.itemsize}"), axis, keepdims)
    zeros = np.where(bits == 0, 0.0, -0.0).astype(x.dtype)
    return np.where(extreme == 0, zeros, extreme)


def _locate(
    name: str, function: Callable[..., Any], x: Array, axis: int | None, keepdims: bool
) -> Array:
    _not_empty(name, x, tuple(range(x.ndim)) if axis is None else (axis,))
    return np.asarray(function(x, axis=axis, keepdims=keepdims), dtype=np.int64)


def _not_empty(name: str, x: Array, axes: tuple[int, ...]) -> None:
    if 0 not in x.shape:
        return
    empty = [axis for axis in axes if not x.shape[axis]]
    if empty:
        raise ExecutionError(
            f"the {name[-3:]}imum is undefined over an empty axis",
            op=name,
            got=f"shape {list(x.shape)}, axis={empty[0]}",
        )


def _searchsorted(x: Array, values: Array, side: Any) -> Array:
    alike("searchsorted", x, values)
    return np.asarray(np.searchsorted(x, values, side=side), dtype=np.int64)


# -- composite ops


class ArrayPrimitives:
    """The namespace of primitives that decompositions call on arrays: kernels by op name."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self.kernels = kernels

    def __getattr__(self, name: str) -> Kernel:
        """Return a kernel by name, and store it as an attribute.

        `reshape` and `permute` return C-contiguous copies, because matrix products have other bits
        on strided operands.
        """
        kernel = self.kernels[name]
        if name in ("reshape", "permute"):
            kernel = partial(_move, kernel)
        elif name in _FLOAT_UFUNCS and kernel is PRIMITIVES[name]:  # no cast can occur
            kernel = _FLOAT_UFUNCS[name]
        setattr(self, name, kernel)
        return kernel

    def number(self, value: Any, like: Array) -> Any:
        """Return a number as a scalar of the dtype of `like`."""
        return like.dtype.type(value)

    def count(self, x: Array, axes: tuple[int, ...], less: int = 0, *, like: Array) -> Any:
        """Return max(n - less, 0) as a scalar of the dtype of `like`, for n elements along axes."""
        size = math.prod(x.shape[axis] for axis in axes)
        return self.number(size - less if size > less else 0, like)

    def cast(self, x: Array, to: DTypeLike) -> Array:
        """Return the array converted as by the op `cast`, between dtypes that NumPy computes in."""
        return convert(x, DType.from_numpy(x.dtype), DType(to))

    def max(self, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        """Return the maximum over axes; among zeros of both signs either may result.

        That costs one pass, where the kernel of the op `max` takes two.
        """
        return np.asarray(np.maximum.reduce(x, axis=axis, keepdims=keepdims))


_FLOAT_UFUNCS: dict[str, Kernel] = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh}


def _move(kernel: Kernel, x: Array, **attrs: Any) -> Array:
    return np.asarray(kernel(x, **attrs), order="C")


def gelu_kernel(by_tail: Kernel, x: Array, approximate: str, primitives: Any = None) -> Array:
    """Compute gelu by its decomposition, or by the exact `by_tail` where there is none."""
    approximation = decompositions.gelu(primitives or ARRAYS, x, approximate)
    return by_tail(x) if approximation is None else approximation


def of_float32(function: Kernel, other: Kernel, x: Any) -> Any:
    """Compute one function of float32 and another of other dtypes.

    The first has many temporary arrays of float64. It computes large arrays block by block, so that
    these arrays stay in the cache.
    """
    if x.dtype != np.float32:
        return other(x)
    if not isinstance(x, np.ndarray) or x.size <= _BLOCK:
        return function(x)
    array = cast(Array, x)
    result = np.empty(array.shape, array.dtype)
    flat, out = array.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = function(flat[part])
    return result


_BLOCK = 8192
"""The elements of a block."""


_UFUNCS = """
add subtract multiply divide floor_divide remainder fmod maximum minimum negative abs square
sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan
sinh cosh tanh asinh acosh atanh copysign nextafter
bitwise_and bitwise_or bitwise_xor bitwise_invert left_shift right_shift
"""
_TRUTHS = """
equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor logical_not
"""
_MOVEMENTS = """
reshape broadcast_to rebind permute affine_view slice_update flip roll pad tile concat stack
gather take_along scatter index_update index_add constant full eye shape_of
"""

PRIMITIVES: dict[str, Kernel] = {
    **{name: ufunc(getattr(np, name)) for name in _UFUNCS.split()},
    **{name: truth(getattr(np, name)) for name in _TRUTHS.split()},
    **{name: getattr(movement, name) for name in _MOVEMENTS.split()},
    "pow": _pow,
    "positive": _copy,
    "sign": _sign,
    "reciprocal": _reciprocal,
    "floor": partial(_round, np.floor),
    "ceil": partial(_round, np.ceil),
    "trunc": partial(_round, np.trunc),
    "round": partial(_round, np.rint),
    "erf": partial(of_float32, rounded_erf, functions.erf),
    "gelu": partial(gelu_kernel, functions.gelu),
    "atan2": whole(np.arctan2),
    "hypot": whole(np.hypot),
    "logaddexp": whole(np.logaddexp),
    "is_nan": ufunc(np.isnan),
    "is_inf": ufunc(np.isinf),
    "is_finite": ufunc(np.isfinite),
    "signbit": _signbit,
    "where": _where,
    "real": _real,
    "imag": _imag,
    "conj": _conj,
    "as_complex": _as_complex,
    "sum": partial(_reduce, np.add),
    "numpy_sum": sums.numpy_sum,
    "prod": partial(_reduce, np.multiply),
    "max": partial(_extreme, "max", np.maximum),
    "min": partial(_extreme, "min", np.minimum),
    "mean": functions.mean,
    "var": functions.var,
    "any": partial(_reduce, np.logical_or),
    "all": partial(_reduce, np.logical_and),
    "argmax": partial(_locate, "argmax", np.ndarray.argmax),
    "argmin": partial(_locate, "argmin", np.ndarray.argmin),
    "cumulative_sum": partial(_accumulate, np.add),
    "cumulative_prod": partial(_accumulate, np.multiply),
    "sort": sorting.sort,
    "argsort": sorting.argsort,
    "searchsorted": _searchsorted,
    "matmul": products.matmul,
    "transpose": np.swapaxes,
    "squeeze": np.squeeze,
    "unsqueeze": np.expand_dims,
    "repeat": np.repeat,
    "slice": movement.sliced,
    "range": movement.ranged,
}
"""The kernels of primitive ops, and of the composite ops that NumPy computes faster by itself.

The ops of _UFUNCS and _TRUTHS have the names of ufuncs, those of _MOVEMENTS the names of functions.
"""

KERNELS = KernelTable(PRIMITIVES, ArrayPrimitives)
"""The kernel of each op by name: its primitive, else its decomposition on arrays."""

ARRAYS: ArrayPrimitives = KERNELS.primitives


def rounded_table(
    kernels: Mapping[str, Kernel],
    primitives: Callable[[Any], Any],
    fma: Callable[..., Any] = multiply_add,
    take: Callable[..., Any] = np.ndarray.take,
) -> KernelTable:
    """Return a table of kernels whose functions of float32 are correctly rounded.

    Composite ops call these functions too. `fma` computes x * y + z, and `take` looks up indices in
    a table: see graphir.semantics.rounded_functions.
    """
    table = KernelTable(kernels, primitives)
    for name, function in ROUNDED_FUNCTIONS.items():
        tools = {"fma": fma, "take": take} if name in ("sin", "cos") else {"fma": fma}
        table[name] = partial(of_float32, partial(function, **tools), table[name])
    table["gelu"] = partial(kernels["gelu"], primitives=table.primitives)
    return table


KERNEL_TABLES: Mapping[str, KernelTable] = {
    "numpy": KERNELS,
    "rounded": rounded_table(PRIMITIVES, ArrayPrimitives),
}
"""The tables of kernels by the setting `functions` of a graph."""


def kernel_of(symbol: Symbol) -> Kernel:
    """Return the kernel of a symbol's op under the settings of its graph."""
    return KERNEL_TABLES[symbol.graph.functions][symbol.op.name]
