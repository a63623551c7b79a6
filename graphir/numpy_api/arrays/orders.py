"""Results that depend on the order of memory: NumPy adds along the axes as they lie there.

A sum runs over the axes in the order of their strides. What no op computes in NumPy's order is
refused: einsum of floats, and functions of vectors that run backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError
from graphir.hints import ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.memory import (
    ArrayValue,
    LayoutUse,
    OrderError,
    TracedValue,
    TraceMemory,
)
from graphir.numpy_api.arrays.operands import (
    array_from,
    arrays_of,
    is_known,
    layouts,
    memory_among,
    plains,
)
from graphir.numpy_api.einsum import summed_labels
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.reductions import masked
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.ops import control
from graphir.semantics.library_calls import Function, has_odd_step
from graphir.semantics.numpy_loops import (
    LIKE_POWERS,
    call_attributes,
    computes_halves_in_float32,
    has_contiguous_bits,
    is_of_processor,
    loop_dtypes,
    squares,
)
from graphir.semantics.sums import SumOrder, layout_of_sum, rounds_each_sum

_SUMS = frozenset(("sum", "prod", "mean", "var", "std"))
"""The reductions whose order of additions is that of memory."""
_SUMS_OF_COPIES = frozenset(f"nan{name}" for name in _SUMS)
"""The reductions of a copy without NaN, which has its axes in the order of the original's."""
_SUMMING: dict[np.ufunc, Any] = {np.add: np.sum, np.multiply: np.prod}
_EXTREMES = (np.maximum, np.minimum, np.fmax, np.fmin)
"""The ufuncs whose reductions choose one of two equal zeros, otherwise for float16 than ops do."""
_SETTINGS = frozenset(
    (
        *("axis", "dtype", "keepdims", "ddof", "correction", "where", "initial"),
        *("offset", "axis1", "axis2"),
    )
)
"""The parameters of the functions that add in the order of memory."""


def of_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a reduction in the order of memory, or None for other calls.

    The function raises OrderError where no op computes in NumPy's order.
    """
    if is_known(inputs, kwargs):
        return None
    memory = memory_among([inputs, kwargs])
    if method == "__call__" and kwargs.get("dtype") is not None and memory.runs_here:
        _check_loop(ufunc, inputs)
    if method in ("accumulate", "reduceat") or (method == "reduce" and ufunc in _EXTREMES):
        _check_halves_of(inputs[0], kwargs.get("dtype"))
    if method == "reduce" and ufunc in _SUMMING:
        return _in_memory_order(_SUMMING[ufunc], inputs, {"axis": 0, **kwargs})
    if ufunc.signature:
        _check_halves_of(inputs[0])
    if ufunc.__name__ in ("vecdot", "matvec", "vecmat"):
        for array in arrays_of(list(inputs)):
            if not array.in_order and not array.element.is_integer:
                raise OrderError(
                    f"np.{ufunc.__name__} of a strided array has other bits than that of its copy",
                    fix="pass x.copy()",
                )
    return None


def _check_loop(ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """Raise OrderError for a ufunc with dtype= where its loop may have bits that no op has."""
    has_bits = all(map(_is_plain, inputs)) and ufunc not in LIKE_POWERS
    if not has_bits or _has_own_loop(ufunc, inputs):
        raise OrderError("NumPy computes in a loop of its own", fix="leave out dtype=")


def of_function(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do the same for a function that is no ufunc."""
    if kwargs.get("overwrite_input"):
        raise OrderError("NumPy leaves the order of the overwritten input open", fix="leave it out")
    if function is np.einsum:
        _check_einsum(*args, optimize=kwargs.get("optimize"))
    if function.__name__ in _IN_HALVES:
        dtype = kwargs.get("dtype", args[2] if len(args) > 2 else None)
        _check_halves_of(args[0], dtype if "cum" in function.__name__ else None)
    if function.__name__ in _OWN_ORDERS:
        kinds = {
            _dtype_of(x).kind for x in args[:2] if isinstance(x, TracedValue) and x.memory.runs_here
        }
        if kinds & {"f", "c"}:
            raise OrderError(f"np.{function.__name__} adds or orders zeros by its own code")
    if function is np.clip:
        _check_bounds([*args[:3], *map(kwargs.get, ("a", "a_min", "a_max", "min", "max"))])
    if not kwargs.keys() <= _SETTINGS:
        return None
    if function is np.trace:
        return _trace(*args, **kwargs)
    sums = function.__name__ in _SUMS or function.__name__ in _SUMS_OF_COPIES
    return _in_memory_order(function, args, kwargs) if sums else None


def _in_memory_order(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a sum over the axes of an array in the order of its memory, as NumPy adds.

    The result is None for arrays whose axes lie in order.
    """
    x: Any = args[0] if args else None
    if not isinstance(x, ArrayValue) or len(args) > 2:
        return None
    array, view = cast("Any", x), x.layout
    if view is None or (view.ndim < 2 and view.flags.aligned):
        return None
    if function.__name__ in _SUMS_OF_COPIES:
        if not array.element.is_inexact:  # without NaN, nor copies
            return _in_memory_order(getattr(np, function.__name__[len("nan") :]), args, kwargs)
        view = np.empty_like(view)
    if 0 in view.strides:
        return _strided(function, args, kwargs)
    order = sorted(range(view.ndim), key=lambda i: -abs(view.strides[i]))
    if order == [*range(view.ndim)]:
        return _strided(function, args, kwargs)
    name = function.__name__
    whole = kwargs.get("where", True) is True and kwargs.get("initial") is None
    if not whole and name in _SUMS - {"prod"}:
        return _strided(function, args, kwargs)
    exact = name == "prod" and not array.element.is_inexact
    if not whole and not exact:
        raise OrderError(
            f"np.{name} with where= or initial= adds along the axes as they lie in memory",
            fix="pass x.copy()",
        )
    if not {*kwargs} <= {"axis", "dtype", "keepdims", "ddof"}:
        return None
    axis: Any = args[1] if len(args) > 1 else kwargs.get("axis")
    keeps = bool(kwargs.get("keepdims"))
    reordered = array.transpose(order)
    if axis is None:
        result = function(reordered, **{**kwargs, "keepdims": False})
        return result.reshape((1,) * view.ndim) if keeps else result
    several = cast("tuple[int, ...]", axis if isinstance(axis, tuple) else (axis,))
    axes = tuple(each % view.ndim for each in several)
    places = tuple(order.index(each) for each in axes)
    result = function(reordered, **{**kwargs, "axis": places, "keepdims": True})
    result = result.transpose([order.index(each) for each in range(view.ndim)])
    return result if keeps else result.squeeze(axes)[()]


def _strided(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a sum of floats over a view whose strides decide how NumPy adds; None for others."""
    array, axis = args[0], args[1] if len(args) > 1 else kwargs.get("axis")
    view, where = array.layout, kwargs.get("where", True)
    axes = range(view.ndim) if axis is None else axes_of(array.read(), axis)
    if array.element is DType.float16 and function is not np.mean:
        _check_halves(view, axes)
    dtype = np.dtype(kwargs.get("dtype") or view.dtype)
    is_exact = dtype.kind not in "fc" and function is np.sum
    if is_exact or function is np.prod or function.__name__ in _SUMS_OF_COPIES:
        return None
    memory: TraceMemory = array.memory
    mask: Any = where
    if isinstance(where, ArrayValue):
        mask, where = where.layout, where.read()
    layout = layout_of_sum(view, axes, np.asarray(mask))
    memory.reads_layouts(LayoutUse.STRIDES)
    buffered = not view.flags.aligned
    if layout is None and not buffered:
        return None
    settings = {**kwargs, "axis": tuple(axes), "where": where}
    order = SumOrder(layout=layout, buffered=buffered)
    result = masked.reduction_in_order(
        DirectAdder(memory.graph), function.__name__, array.read(), settings, order
    )
    return memory.value_of(result, scalar=True)


_IN_HALVES = frozenset(
    (
        *("sort", "argsort", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod"),
        *("nancumsum", "nancumprod", "max", "min", "amax", "amin", "nanmax", "nanmin"),
        "matrix_power",
    )
)
"""The functions that order or round float16 in float16, where ops compute in float32."""
_OWN_ORDERS = frozenset(
    (
        *("quantile", "percentile", "nanquantile", "nanpercentile", "nanmedian"),
        *("convolve", "correlate"),
    )
)
"""The functions of floats in which signs of zeros follow NumPy's partitions and products."""


def _check_halves_of(x: ArrayOrNumber, dtype: DTypeLike | None = None) -> None:
    """Raise OrderError for float16 where `jit` can call NumPy's own loop instead."""
    is_here = isinstance(x, TracedValue) and x.memory.runs_here
    if is_here and np.dtype(dtype or _dtype_of(x)) == np.float16:
        raise OrderError("no op computes in float16", fix="use .astype(np.float32)")


def _check_bounds(operands: Sequence[Any]) -> None:
    """Raise OrderError for np.clip where `jit` can call NumPy's loop, which chooses signs of zeros.

    The operands are the array and its bounds. Beside numbers without a dtype of their own, ops have
    NumPy's signs.
    """
    x, *bounds = operands = [value for value in operands if value is not None]
    is_here = any(isinstance(value, TracedValue) and value.memory.runs_here for value in operands)
    dtypes = [_dtype_of(value) for value in operands if type(value) is not TracedNumber]
    kinds = {dtype.kind for dtype in dtypes}
    if not is_here or not bounds or not kinds & {"f", "c"}:
        return
    weak = [type(bound) in (int, float, TracedNumber) for bound in bounds]
    is_of_ops = _dtype_of(x).kind == "f" and all(weak)
    if len(bounds) == 1:
        is_of_ops = np.float16 not in dtypes  # np.maximum or np.minimum
    zeros = [not is_known(bound) or (np.asarray(plains(bound)) == 0).any() for bound in bounds]
    if "c" in kinds or (any(zeros) and not is_of_ops):
        raise OrderError("NumPy's loops choose the signs of zeros", fix="use np.minimum(x, high)")


def _check_halves(view: NDArray[Any], axes: Sequence[int]) -> None:
    """Raise OrderError if NumPy would round each step of a sum of float16."""
    if rounds_each_sum(view.shape, axes):
        raise OrderError(
            "NumPy rounds each step of a float16 sum along an axis before the last",
            fix="write x.sum(axis, dtype=np.float32).astype(np.float16)",
        )


def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """Return the trace as NumPy adds it: a sum over a view of the diagonals."""
    diagonals = np.diagonal(a, offset, axis1, axis2)
    return np.sum(np.moveaxis(diagonals, -1, 0), axis=0, dtype=dtype, out=out)


def _check_einsum(subscripts: str | ArrayOrNumber, *operands: ArrayOrNumber, optimize: Any) -> None:
    """Raise OrderError if einsum would sum floats: its loops add in an order of their own.

    With `optimize` NumPy multiplies several factors in another order, two at a time.
    """
    if not isinstance(subscripts, str):
        raise GraphError("np.einsum takes subscripts as text here")
    is_reordered = bool(optimize) and len(operands) > _PAIR
    sums_floats = summed_labels(subscripts) and {_dtype_of(x).kind for x in operands} & {"f", "c"}
    if is_reordered or sums_floats:
        raise OrderError(
            "np.einsum multiplies and adds in an order of its own",
            fix="write x @ y, (x * y).sum(axis) or np.vecdot",
        )


_PAIR = 2


def _dtype_of(value: Any) -> np.dtype[Any]:
    if isinstance(value, Symbol):
        return value.dtype.to_numpy()
    return cast("Any", value).dtype if isinstance(value, TracedValue) else np.asarray(value).dtype


def of_loop(
    memory: TraceMemory, ufunc: np.ufunc, inputs: Sequence[Any], outs: Sequence[Any] = ()
) -> Any:
    """Return the results of a ufunc by NumPy's own loop, where it has other bits than the op.

    NumPy's loops round differently where the operands or results lie backwards, say. The result is
    None where the op has the bits, and in graphs that may run elsewhere.
    """
    if ufunc.signature:
        return None
    own_loop = ufunc in LIKE_POWERS or (memory.runs_here and _has_own_loop(ufunc, inputs))
    is_plain = not memory.runs_here or all(map(_is_plain, (*inputs, *outs)))
    if not own_loop and is_plain:
        return None
    arrays = [value for value in (*inputs, *outs) if isinstance(value, ArrayValue)]
    has_layout = all(array.layout is not None for array in arrays)
    operands: list[Any] = layouts([*inputs]) if has_layout else []
    dtypes = loop_dtypes(ufunc, operands) if has_layout else None
    if ufunc in LIKE_POWERS and not (memory.runs_here and has_layout):
        return _without_op(ufunc, inputs)
    is_exact = dtypes is None or not any(dtype.kind in "fc" for dtype in dtypes)
    if dtypes is None or (is_exact and ufunc is not np.reciprocal):
        return None
    results = layouts([*outs])
    if not own_loop and has_contiguous_bits(ufunc, operands, results):
        return None
    arguments: list[Symbol] = []
    for place, value in enumerate(inputs):
        if type(value) is TracedNumber:
            try:
                number = value.symbol()
            except PromotionError:  # an int of more than 64 bits, which NumPy rounds to the loop's
                operands[place] = concrete(value)
                continue
            operands[place] = dtypes[place].type(0)
            arguments.append(number.cast(DType.from_numpy(dtypes[place])))
        elif isinstance(value, TracedValue):
            arguments.append(value.read())
        elif type(value) not in (bool, int, float, complex):
            arguments.append(memory.graph.entering(value))
    attrs = call_attributes(ufunc, operands, results)
    parts = control.parts(memory.graph.emit(control.call, tuple(arguments), attrs))
    return tuple(parts) if ufunc.nout > 1 else parts[0]


def _without_op(ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """Raise OrderError for floats."""
    kinds = {_dtype_of(value).kind for value in inputs if type(value) is not TracedNumber}
    if ufunc is np.float_power or kinds & {"f", "c"}:
        name = f"np.{ufunc.__name__}"
        raise OrderError(f"no op has the bits of {name}", fix=LIKE_POWERS[ufunc])


def _has_own_loop(ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    """Whether NumPy's loop has results that the op of a ufunc has not, for all layouts."""
    arrays = (Symbol, TracedValue, np.ndarray, np.generic)
    dtypes = [_dtype_of(x) for x in inputs if isinstance(x, arrays)]
    if np.float16 in dtypes and not computes_halves_in_float32(ufunc):
        return True
    if any(is_of_processor(ufunc, dtype) for dtype in dtypes):
        return True
    return _squares(ufunc, inputs)


def _squares(ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    """Whether a power may have exponents 2 in an array, for which the op `pow` gives x * x.

    NumPy takes that short cut for an exponent without axes alone.
    """
    if ufunc is not np.power or len(inputs) < 2:
        return False
    exponent = inputs[1]
    if isinstance(exponent, ArrayValue):
        if not exponent.dims or exponent.element is DType.bool:
            return False
        return not exponent.is_known or squares(exponent.plain)
    return squares(exponent)


def _is_plain(value: Any) -> bool:
    if isinstance(value, ArrayValue):
        is_odd = value.layout is not None and has_odd_step(value.layout)
        return value.in_order and value.is_aligned and not is_odd
    return not issubclass(type(value), np.ndarray) or value.flags.c_contiguous


class _Converter:
    """The array converter of NumPy's Python code, which is compiled, for symbolic arrays."""

    def __init__(self, *operands: Any) -> None:
        memory = memory_among(operands)
        self._arrays = tuple(
            value if isinstance(value, TracedValue) else array_from(memory, value)
            for value in operands
        )

    def __getitem__(self, place: int) -> Any:
        """Return an operand as an array."""
        return self._arrays[place]

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert") -> tuple[Any, ...]:
        """Return the operands as arrays."""
        return self._arrays

    def wrap(self, result: Any, to_scalar: bool | None = None) -> Any:
        """Return the result."""
        return result


def converter_of(original: Function) -> Any:
    """Return the class of converters that stands in for NumPy's."""

    def converter(*operands: Any) -> Any:
        symbolic = any(isinstance(value, TracedValue) for value in operands)
        return _Converter(*operands) if symbolic else original(*operands)

    return converter
