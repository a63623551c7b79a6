"""Results that depend on the order of memory: NumPy adds along the axes as they lie there.

A sum runs over the axes in the order of their strides. BLAS rounds products by the way the operands
lie in memory. What no op computes in NumPy's order is
refused: einsum of floats, and functions of vectors that run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError
from graphir.hints import ArrayOrNumber
from graphir.ir.operands import symbols_of
from graphir.ir.symbol import Symbol
from graphir.numpy_api import reductions
from graphir.numpy_api.arrays.call_operands import (
    array_from,
    arrays_of,
    is_known,
    layouts,
    memory_among,
    operand,
    plains,
)
from graphir.numpy_api.arrays.memory import (
    ArrayValue,
    LayoutUse,
    OrderError,
    TracedValue,
    TraceMemory,
)
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.products import summed_labels
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.ops import control
from graphir.semantics.library_calls import Function, Keywords, has_odd_step
from graphir.semantics.matrix_products import layout_of, may_be_gram, uses_blas
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

_EXTREMES = (np.maximum, np.minimum, np.fmax, np.fmin)
"""The ufuncs whose reductions choose one of two equal zeros, otherwise for float16 than ops do."""


class _Order(NamedTuple):
    """What the code of a function that is no ufunc adds, rounds or compares otherwise than ops."""

    sum: Callable[..., Any] | None = None
    """The reduction that adds along the axes as they lie in memory. The function itself, or what
    one that skips NaN runs on a copy without NaN, which has its axes in the original's order."""
    compares_halves: bool = False
    """Whether it compares float16 in float16, where ops compute in float32."""
    rounds_halves: bool = False
    """Whether it rounds each step to float16, or to the dtype that `dtype=` names."""
    has_own_code: bool = False
    """Whether floats add, and zeros get their signs, by NumPy's partitions or products."""


_SUMS = np.sum, np.prod, np.mean, np.var, np.std
_COMPARING = np.sort, np.argsort, np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin
_ROUNDING = (
    *(np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod),
    *(np.nancumsum, np.nancumprod, np.linalg.matrix_power),
)
_OWN_CODE = (
    *(np.quantile, np.percentile, np.nanquantile, np.nanpercentile, np.nanmedian),
    *(np.convolve, np.correlate),
)
_ORDERS: dict[Callable[..., Any], _Order] = {
    **{function: _Order(sum=function) for function in _SUMS},
    np.nansum: _Order(sum=np.sum),
    np.nanprod: _Order(sum=np.prod),
    np.nanmean: _Order(sum=np.mean),
    np.nanvar: _Order(sum=np.var),
    np.nanstd: _Order(sum=np.std),
    **dict.fromkeys(_COMPARING, _Order(compares_halves=True)),
    **dict.fromkeys(_ROUNDING, _Order(rounds_halves=True)),
    **dict.fromkeys(_OWN_CODE, _Order(has_own_code=True)),
}
"""The functions that differ from ops; of_function checks einsum, clip and trace by themselves."""
_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {np.add: np.sum, np.multiply: np.prod}
_SETTINGS = frozenset(
    (
        *("axis", "dtype", "keepdims", "ddof", "correction", "where", "initial"),
        *("offset", "axis1", "axis2"),
    )
)
"""The parameters of the functions that add in the order of memory."""


def of_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the result of a reduction in the order of memory, or None for other calls.

    The function raises OrderError where no op computes in NumPy's order.
    """
    if is_known(inputs, kwargs):
        return None
    memory = memory_among([inputs, kwargs])
    if method == "__call__" and kwargs.get("dtype") is not None and memory.runs_here:
        op_has_bits = all(map(_is_plain, inputs)) and ufunc not in LIKE_POWERS
        if not op_has_bits or _has_own_loop(ufunc, inputs):
            raise OrderError("NumPy computes in a loop of its own", fix="leave out dtype=")
    if method in ("accumulate", "reduceat") or (method == "reduce" and ufunc in _EXTREMES):
        _check_halves_of(inputs[0], kwargs.get("dtype"))
    if method == "reduce" and ufunc in _REDUCTIONS:
        return _in_memory_order(_REDUCTIONS[ufunc], inputs, {"axis": 0, **kwargs})
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


def of_function(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the result of a function that adds in the order of memory, or None for other calls.

    The refusals come first: a sum in the order of memory leaves the function before later checks.
    """
    if kwargs.get("overwrite_input"):
        raise OrderError("NumPy leaves the order of the overwritten input open", fix="leave it out")
    if function is np.einsum:
        _check_einsum(*args, optimize=kwargs.get("optimize"))
    if function is np.clip:
        _check_bounds([*args[:3], *map(kwargs.get, ("a", "a_min", "a_max", "min", "max"))])
    order = _ORDERS.get(function, _Order())
    if order.compares_halves:
        _check_halves_of(args[0])
    if order.rounds_halves:
        _check_halves_of(args[0], kwargs.get("dtype", args[2] if len(args) > 2 else None))
    if order.has_own_code:
        _check_own_code(function.__name__, args[:2])
    if not kwargs.keys() <= _SETTINGS:
        return None
    if function is np.trace:
        return _trace(*args, **kwargs)
    return None if order.sum is None else _in_memory_order(function, args, kwargs)


def _check_own_code(name: str, operands: Sequence[Any]) -> None:
    """Raise OrderError for floats where `jit` can call NumPy's own code instead."""
    symbolic = [x for x in operands if isinstance(x, TracedValue) and x.memory.runs_here]
    if {_dtype_of(x).kind for x in symbolic} & {"f", "c"}:
        raise OrderError(f"np.{name} adds or orders zeros by its own code")


def _in_memory_order(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return a sum over the axes of an array in the order of its memory, as NumPy adds.

    The result is None where the op adds so. The order of checks:

    - Vectors, and operands other than arrays of a known layout, have no order of axes.
    - A function that skips NaN adds a copy, whose layout the later checks take. Integers have no
      NaN, and no copy.
    - Axes that lie in order, or are broadcast, leave the decision to the strides (`_strided`).
    - So do sums of axes out of order with a mask or a start. Such products have no op.
    - All other sums are those of the transpose whose axes lie in order.
    """
    x: Any = args[0] if args else None
    if not isinstance(x, ArrayValue) or len(args) > 2:
        return None
    array, view = cast("Any", x), x.layout
    if view is None or (view.ndim < 2 and view.flags.aligned):
        return None
    reduction = _ORDERS[function].sum
    if reduction is not function and reduction is not None:
        if not array.element.is_inexact:  # without NaN, nor copies
            return _in_memory_order(reduction, args, kwargs)
        view = np.empty_like(view)
    order = sorted(range(view.ndim), key=lambda i: -abs(view.strides[i]))
    if 0 in view.strides or order == [*range(view.ndim)]:
        return _strided(function, args, kwargs)
    whole = kwargs.get("where", True) is True and kwargs.get("initial") is None
    if not whole and function in _SUMS and function is not np.prod:
        return _strided(function, args, kwargs)
    if not whole and (function is not np.prod or array.element.is_inexact):
        raise OrderError(
            f"np.{function.__name__} with where= or initial= adds along the axes as they lie in "
            "memory",
            fix="pass x.copy()",
        )
    if not {*kwargs} <= {"axis", "dtype", "keepdims", "ddof"}:
        return None
    axis: Any = args[1] if len(args) > 1 else kwargs.get("axis")
    return _transposed(function, array, order, axis, kwargs)


def _transposed(
    function: Function, array: Any, order: Sequence[int], axis: Any, kwargs: Keywords
) -> Any:
    """Return a sum of an array by that of its transpose, whose axes `order` puts in order."""
    rank, keeps = len(order), bool(kwargs.get("keepdims"))
    reordered = array.transpose(order)
    if axis is None:
        result = function(reordered, **{**kwargs, "keepdims": False})
        return result.reshape((1,) * rank) if keeps else result
    several = cast("tuple[int, ...]", axis if isinstance(axis, tuple) else (axis,))
    axes = tuple(each % rank for each in several)
    places = tuple(order.index(each) for each in axes)
    result = function(reordered, **{**kwargs, "axis": places, "keepdims": True})
    result = result.transpose([order.index(each) for each in range(rank)])
    return result if keeps else result.squeeze(axes)[()]


def _strided(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return a sum of floats over a view whose strides decide how NumPy adds; None for others."""
    array, axis = args[0], args[1] if len(args) > 1 else kwargs.get("axis")
    view, where = array.layout, kwargs.get("where", True)
    axes = range(view.ndim) if axis is None else axes_of(array.read(), axis)
    is_rounded = array.element is DType.float16 and function is not np.mean
    if is_rounded and rounds_each_sum(view.shape, axes):
        raise OrderError(
            "NumPy rounds each step of a float16 sum along an axis before the last",
            fix="write x.sum(axis, dtype=np.float32).astype(np.float16)",
        )
    dtype = np.dtype(kwargs.get("dtype") or view.dtype)
    is_exact = dtype.kind not in "fc" and function is np.sum
    if is_exact or function is np.prod or function not in _SUMS:
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
    result = reductions.reduction_in_order(
        DirectAdder(memory.graph), function.__name__, array.read(), settings, order
    )
    return memory.value_of(result, scalar=True)


def _check_halves_of(x: Any, dtype: Any = None) -> None:
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
    None where the op serves. The first case that holds decides, and each needs those before it:

    - A generalized ufunc has no such loop.
    - NumPy cannot run where a graph may run elsewhere, or where a layout is unknown: the op serves,
      or floats are refused if the ufunc has none (LIKE_POWERS).
    - The op has the bits if no kind of value makes them differ (`_has_own_loop`), and all arrays
      lie as new ones do. This is the common case, so it comes before questions to NumPy.
    - NumPy has no loop for the dtypes: the op refuses them.
    - Integers are exact, beside np.reciprocal, which divides by zero as the processor does.
    - The layouts choose a loop, but an experiment finds in it the bits of contiguous operands.
    - NumPy's own loop computes, by an op `call`.
    """
    if ufunc.signature:
        return None
    values = (*inputs, *outs)
    if not memory.runs_here or any(isinstance(x, ArrayValue) and x.layout is None for x in values):
        return _without_loop(ufunc, inputs)
    differs_everywhere = ufunc in LIKE_POWERS or _has_own_loop(ufunc, inputs)
    if not differs_everywhere and all(map(_is_plain, values)):
        return None
    operands, results = layouts([*inputs]), layouts([*outs])
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None:
        return None
    if ufunc is not np.reciprocal and not any(dtype.kind in "fc" for dtype in dtypes):
        return None
    if not differs_everywhere and has_contiguous_bits(ufunc, operands, results):
        return None
    arguments = _loop_arguments(memory, inputs, operands, dtypes)
    attrs = call_attributes(ufunc, operands, results)
    parts = control.parts(memory.graph.emit(control.call, tuple(arguments), attrs))
    return tuple(parts) if ufunc.nout > 1 else parts[0]


def _loop_arguments(
    memory: TraceMemory, inputs: Sequence[Any], operands: list[Any], dtypes: Sequence[np.dtype[Any]]
) -> list[Symbol]:
    """Return the symbols that a loop takes; in `operands`, give traced numbers a dtype."""
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
    return arguments


def _without_loop(ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """Raise OrderError for floats if no op has the bits of a ufunc."""
    if ufunc not in LIKE_POWERS:
        return
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


Array = NDArray[Any]

# -- products, which BLAS rounds by the way the operands lie in memory

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


def product_of_function(
    memory: TraceMemory, name: str, args: Sequence[Any], kwargs: Keywords
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
    return matrix_product(memory, name, operands, [operand(memory, value) for value in operands])
