"""NumPy's functions that are no ufuncs, on symbolic arrays.

NumPy itself computes with known values. A function that gives views runs on ndarrays with the
arguments' layouts; a result that shares their memory is a view of the argument. All other functions
become ops on symbols by the tables of numpy_api. A function without an entry runs in its own Python
body.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.hints import Array
from graphir.location import user_location
from graphir.numpy_api import dispatch
from graphir.numpy_api.arrays import library_calls
from graphir.numpy_api.arrays.blas_products import product_of_function
from graphir.numpy_api.arrays.boundary import numpys_error
from graphir.numpy_api.arrays.call_operands import (
    adopted,
    array_from,
    arrays_of,
    is_known,
    layouts,
    leaves,
    mapped,
    memory_among,
    plains,
    symbols,
    where_mask,
)
from graphir.numpy_api.arrays.call_results import (
    call_numpy,
    numpy_allocator,
    result_class_of,
    results,
    write_outputs,
)
from graphir.numpy_api.arrays.element_access import WRITING, assign, write_by_function
from graphir.numpy_api.arrays.makers import BODY_PARTS, traced_body
from graphir.numpy_api.arrays.memory import (
    ArrayValue,
    Cell,
    OrderError,
    TracedValue,
    TraceMemory,
    as_graph_error,
    plainly,
)
from graphir.numpy_api.arrays.order_checks import check_function
from graphir.numpy_api.arrays.ordered_sums import sum_of_function
from graphir.numpy_api.arrays.selections import SelectionValue
from graphir.numpy_api.functions import BODY_FUNCTIONS, FUNCTIONS
from graphir.numpy_api.reductions import reduction_in_order
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.semantics.library_calls import Function, Keywords
from graphir.semantics.sums import SumOrder

_VIEWS = (
    *("reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "swapaxes", "moveaxis"),
    *("rollaxis", "squeeze", "expand_dims", "broadcast_to", "broadcast_arrays", "flip", "flipud"),
    *("fliplr", "rot90", "diagonal", "diag", "split", "array_split", "hsplit", "vsplit", "dsplit"),
    *("unstack", "atleast_1d", "atleast_2d", "atleast_3d", "real", "imag", "meshgrid"),
    *("sliding_window_view", "astype"),
)
_FACTS = ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "result_type", "can_cast")
_LIKE = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}
_VIEWING = frozenset((*_VIEWS, *_FACTS, *_LIKE))
"""The functions whose results depend on layouts alone: views, or facts of shape and dtype."""


def call_function(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function that is no ufunc."""
    try:
        return _function_of_ops(function, args, kwargs)
    except Exception:  # of any kind: a call of the library replaces it, or it is raised
        outcome = library_calls.of_call(function, "__call__", args, kwargs)
        if outcome is None:
            raise
        return outcome[0]


def _function_of_ops(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function by ops, or by the Python body of the function."""
    memory = memory_among([args, kwargs])
    for leaf in leaves([args, kwargs]):
        if isinstance(leaf, SelectionValue):
            return _of_selection(memory, function, leaf, args, kwargs)
    if function in _CHECKED and not is_known(args, kwargs):
        error = numpys_error(function, args, kwargs)
        if error is not None:
            raise as_graph_error(error)
    if function in WRITING and write_by_function(memory, function, args, kwargs):
        return None
    if function is np.full_like and not is_known(args, kwargs):
        args, kwargs = bound(function, _full_like, args, kwargs)
        return _full_like(*args, **kwargs)
    if is_known(args, kwargs):
        return _filling(memory, function, call_numpy(memory, function, args, kwargs))
    if function is np.einsum and (view := _einsum_view(*args, **kwargs)) is not None:
        return view
    if function is np.diff and (same := _undifferenced(*args, **kwargs)) is not None:
        return same
    is_placed = all(array.layout is not None for array in arrays_of(args, kwargs))
    if function.__name__ in _VIEWING and is_placed:
        return _viewed(memory, function, args, kwargs)
    return _compute(memory, function, args, dict(kwargs))


def _compute(
    memory: TraceMemory, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of a NumPy function that computes, in `out` if that is given."""
    name = function.__name__
    out, where = kwargs.pop("out", None), kwargs.get("where", True)
    if where is True:
        kwargs.pop("where", None)
    elif name in _MASKED or isinstance(where, (ArrayValue, np.ndarray)):
        kwargs["where"] = where_mask(memory, where)
    if name == "astype":
        args, kwargs = bound(function, _astype, args, kwargs)
        return _astype(*args, **kwargs)
    if out is not None and function not in FUNCTIONS:
        kwargs["out"] = out
        out = None
    check_function(function, args, kwargs)
    result = sum_of_function(function, args, kwargs)
    if result is None:
        result = _by_its_body(memory, function, args, kwargs)
    if out is not None:
        casting = kwargs.get("casting", "same_kind")
        return write_outputs(memory, (out,), result, True, casting)
    call = function, args, kwargs
    return results(
        memory, result, None, partial(numpy_allocator, *call), partial(result_class_of, *call)
    )


def _of_selection(
    memory: TraceMemory,
    function: Function,
    selection: SelectionValue,
    args: Sequence[Any],
    kwargs: Keywords,
) -> Any:
    """Return a reduction of x[mask] over all elements or the first axis: that with where=mask."""
    takes = {"axis", "dtype", "initial", "ddof", "keepdims"}
    axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
    count = selection.mask.rank
    if (
        function not in SELECTION_REDUCTIONS
        or not args
        or args[0] is not selection
        or len(args) > 2
        or not {*kwargs} <= takes
        or kwargs.get("keepdims")
        or axis not in (None, 0, count - 1 - selection.symbol.rank)
    ):
        selection.refuse(f"np.{function.__name__} of x[mask]")
    settings = {key: value for key, value in symbols(kwargs).items() if key != "keepdims"}
    x = selection.symbol
    settings["axis"] = None if axis is None else tuple(range(count))
    settings["where"] = selection.whole_mask()
    name = function.__name__
    if function is np.count_nonzero:
        function, x = np.sum, x.cast(DType.bool).cast(DType.int64)
    if function in (np.sum, np.mean, np.var, np.std):
        if axis is None and not selection.in_order and x.dtype.is_inexact:
            raise OrderError("NumPy adds x[mask] as x lies in memory", fix="pass x.copy()")
        build, name = DirectAdder(memory.graph), function.__name__
        total = reduction_in_order(build, name, x, settings, SumOrder(selection=True))
        return results(memory, total, True)
    if name not in _EXTREMES or "initial" in settings:
        return results(memory, dispatch.call_function(memory.graph, function, (x,), settings), True)
    settings |= {"initial": selection.bound(name in ("min", "amin"))}
    extreme = dispatch.call_function(memory.graph, function, (x,), settings)
    return results(memory, selection.not_empty(extreme), True)


_EXTREMES = ("max", "amax", "min", "amin")


SELECTION_REDUCTIONS = frozenset(
    (
        *(np.sum, np.prod, np.max, np.amax, np.min, np.amin, np.any, np.all, np.mean),
        *(np.var, np.std, np.count_nonzero),
    )
)
"""The functions of x[mask] whose result has a known shape."""


def call_like(x: Any, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an array constructor with `like=x`; NumPy omits `like` from the call."""
    if any(isinstance(each, (TracedValue, SelectionValue)) for each in leaves([args, kwargs])):
        return call_function(function, args, kwargs)
    return adopted(x.memory, plainly(function, *args, **kwargs), ())


def _full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: Any = None,
) -> Any:
    """Return a new array, filled by assignment."""
    result = call_function(np.empty_like, (a, dtype, order), {"shape": shape})
    assign_all(result, fill_value)
    return result


def _astype(x: Any, dtype: DTypeLike, *, copy: bool = True) -> Any:
    return x.astype(dtype, copy=copy)


def _filling(memory: TraceMemory, function: Function, result: Any) -> Any:
    if function.__name__ in _LIKE and isinstance(result, ArrayValue):
        result.plain.fill(_LIKE[function.__name__])
        result.cell.fill = result.plain.dtype.type(_LIKE[function.__name__]).item()
    return result


_CHECKED = frozenset((np.place, np.putmask, np.copyto, np.select, np.compress, np.extract))
"""The functions of masks, whose errors for types and shapes NumPy itself raises."""


_MASKED = frozenset(("sum", "prod", "max", "min", "amax", "amin", "any", "all"))
"""The reductions whose `where=` counts by its truth alone."""


def _viewed(memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the result of a function of layouts: views of arguments, or copies by ops."""
    real = plainly(function, *layouts(args), **layouts(kwargs))
    name = function.__name__
    if name in _FACTS:
        return real
    if name == "reshape" and isinstance(args[0], ArrayValue):
        order = {"order": args[2]} if len(args) > 2 else {}
        array: Any = args[0]
        return array.reshape(*args[1:2], **order, **kwargs)
    if name in _LIKE:
        return _filling(memory, function, memory.plain_array(real))
    sources = arrays_of(args, kwargs)
    several = isinstance(real, (tuple, list))
    parts: list[Any] = list(cast("Any", real)) if several else [real]
    outputs: list[Any] = []
    copies: Any = None
    for at, part in enumerate(parts):
        is_array = type(part) is np.ndarray
        source = _owner(sources, part) if is_array else None
        if source is not None:
            outputs.append(source.of_view(part))
            continue
        if copies is None:
            result = dispatch.call_function(memory.graph, function, symbols(args), symbols(kwargs))
            copies = [*result] if isinstance(result, (tuple, list)) else [result]  # pyright: ignore
        outputs.append(
            memory.array(Cell(memory, part, copies[at]))
            if is_array
            else memory.value_of(copies[at], True)
        )
    if not several:
        return outputs[0]
    return tuple(outputs) if isinstance(real, tuple) else outputs


def _einsum_view(*args: Any, **kwargs: Any) -> ArrayValue | None:
    """Return np.einsum of one array without a sum, which is a view as NumPy makes it; else None."""
    sources = arrays_of(args, kwargs)
    if len(sources) != 1 or sources[0].layout is None or kwargs.get("out") is not None:
        return None
    real = plainly(np.einsum, *layouts(args), **layouts(kwargs))
    is_view = type(real) is np.ndarray and np.may_share_memory(real, sources[0].plain)
    return sources[0].of_view(real) if is_view else None


def _undifferenced(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    """Return the operand of np.diff(a, n=0); else None."""
    return a if not isinstance(n, TracedValue) and n == 0 else None


def _owner(sources: Sequence[ArrayValue], part: Array) -> ArrayValue | None:
    for source in sources:
        if np.may_share_memory(source.plain, part):
            return source
    return None


def _by_its_body(
    memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Keywords
) -> Any:
    """Call a function by its table entry, or run the Python body that NumPy gives the function.

    The functions inside the body receive symbolic arrays.
    """
    result = product_of_function(memory, function.__name__, args, kwargs)
    if result is not None:
        return result
    in_order = all(array.in_order and array.is_aligned for array in arrays_of(args, kwargs))
    by_body_first = not in_order or function.__name__ in _CONTRACTING
    if by_body_first and (outcome := _of_body(memory, function, args, kwargs)) is not None:
        return outcome[0]
    try:
        return dispatch.call_function(memory.graph, function, symbols(args), symbols(kwargs))
    except GraphirError:
        outcome = None if by_body_first else _of_body(memory, function, args, kwargs)
        if outcome is None:
            raise
        return outcome[0]


_CONTRACTING = frozenset(("tensordot", "cov", "corrcoef", "norm"))
"""The functions whose bodies transpose the operands of a product."""


def _of_body(
    memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Keywords
) -> tuple[Any] | None:
    """Return the result of a function's Python body in a tuple; None where it cannot run.

    The function raises OrderError where the body computes in an order that no op has.
    """
    body = traced_body(function)
    if body is None or function in memory.bodies or function.__name__ in _COMPILED:
        return None
    memory.bodies.add(function)
    refusal, since = memory.graph.trace_state.refusal, len(memory.graph.symbols)
    operands = symbols(args), symbols(kwargs)
    try:
        with memory.graph.at(user_location()):
            result = body(*mapped(concrete, args), **mapped(concrete, kwargs))
        steps = memory.graph.symbols[since:]
        dispatch.attribute_casts(function, body, *operands, symbols(result), steps)
        is_caught = memory.graph.trace_state.refusal is not refusal  # by the body
        return None if is_caught else (result,)
    except OrderError:
        raise
    except Exception:  # of any kind, where the body meets compiled code
        return None
    finally:
        memory.bodies.discard(function)
        memory.graph.trace_state.refusal = refusal


def _body_part(implementation: Function, original: Function) -> Any:
    """Return the stand-in of a private function of NumPy, by its implementation on symbols."""

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if is_known(args, kwargs):
            return original(*args, **({} if out is None else {"out": out}), **kwargs)
        memory = memory_among([args, kwargs])
        result = implementation(*symbols(args), **symbols(kwargs))
        if out is not None:
            return write_outputs(memory, (out,), result, True, "unsafe")
        return results(memory, result, None)

    return call


_COMPILED = frozenset(
    ("einsum", "einsum_path", "save", "savetxt", "array2string", "array_repr", "array_str")
)


def assign_all(x: ArrayValue, value: ArrayLike) -> None:
    """Set every element, as `x[...] = value` does."""
    x.check_writable()
    if is_known(x, value) and type(value) is not TracedNumber:
        plainly(operator.setitem, x.plain, ..., plains(value))
        x.cell.changed()
    else:
        assign(x, value)


BODY_PARTS.update(
    {name: partial(_body_part, function) for name, function in BODY_FUNCTIONS.items()}
)


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


def _converter_of(original: Function) -> Any:
    """Return the class of converters that stands in for NumPy's."""

    def converter(*operands: Any) -> Any:
        symbolic = any(isinstance(value, TracedValue) for value in operands)
        return _Converter(*operands) if symbolic else original(*operands)

    return converter


BODY_PARTS["_array_converter"] = _converter_of
