"""Dispatch of NumPy's ufuncs and functions on symbols: each call adds its ops to the graph.

`np.sin(x)` is `ops.sin(x)`. Arrays and numbers become constants, as beside an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NoReturn, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType, DTypeLike, numpy_code
from graphir.errors import GraphError, GraphirError, MissingOpError, PromotionError
from graphir.hints import ArrayOrNumber, Ints, NumPyCode
from graphir.ir.graph import Graph
from graphir.ir.literals import is_literal
from graphir.ir.operands import may_be_operand, symbols_of
from graphir.ir.operators.powers import power
from graphir.ir.symbol import Symbol
from graphir.location import INTERMEDIATE, NUMPY, CompoundLocation, Location, Origin, user_location
from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.products import strong
from graphir.numpy_api.reductions import UNSET, ReductionArguments, reduced
from graphir.numpy_api.signatures import bound, refuse, without_usual_axes
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.ufunc_methods import accumulated, reduced_at, reduced_by_ufunc
from graphir.numpy_api.ufuncs import (
    ACCUMULATIONS,
    COMPOUNDS,
    FUNCTION_OPS,
    OPS,
    PARTS,
    REAL,
    REDUCTIONS,
    DirectAdder,
    NamedOps,
)
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules
from graphir.promotion.operands import Number, Place

_NAMES_BY_OPS = {
    "nextafter": "spacing",
    "where": "nonzero argwhere flatnonzero extract select",
    "sort": "percentile quantile nanpercentile nanquantile nanmedian unique unique_all"
    " unique_counts unique_inverse unique_values",
    "sort, argsort": "partition argpartition sort_complex",
    "is_nan, where, argmax": "nanargmax nanargmin",
    "sort, equal, any": "union1d intersect1d setdiff1d setxor1d",
    "equal, sum": "histogram histogram2d histogramdd",
    "searchsorted": "digitize",
    "searchsorted, where": "piecewise",
    "multiply, sum": "trapezoid",
    "mean, matmul": "cov corrcoef",
    "outer, reshape": "kron",
    "multiply, add": "polyval",
    "cumulative_prod": "vander",
    "flip, transpose": "rot90",
    "concat": "insert bmat column_stack",
    "gather": "delete",
    "split": "array_split hsplit vsplit dsplit",
    "subtract, concat": "gradient ediff1d",
    "x.dtype": "result_type can_cast min_scalar_type common_type",
}
_NEAR = {name: near for near, names in _NAMES_BY_OPS.items() for name in names.split()}
"""The ops to suggest for functions that have none: what a program can write them with."""


OF_UNKNOWN_SIZE = frozenset(
    (
        *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"),
        *("argwhere", "flatnonzero", "extract", "union1d", "intersect1d", "setdiff1d", "setxor1d"),
        *("compress", "trim_zeros"),
    )
)
"""The functions whose result has a size that depends on values."""

_WRITERS = {
    **dict.fromkeys(("copyto", "put", "place", "putmask"), "x = np.where(mask, value, x)"),
    "put_along_axis": "x = ops.scatter(x, values, indices, axis)",
    "fill_diagonal": "x = np.where(np.eye(n, dtype=bool), value, x)",
    "at": "x = np.where(mask, np.add(x, values), x)",
}
"""The functions that write to an array, with the replacement to suggest for each."""


def call_ufunc(
    graph: Graph, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Add a ufunc, or a method of a ufunc such as `reduce`, to a graph and return the result.

    divmod gives two symbols. The function returns NotImplemented if an input is no operand. It
    raises GraphError, naming the nearest op, if no op computes the ufunc, and for out=, where= and
    similar arguments.
    """
    op = OPS[ufunc]
    if op is not None and method == "__call__" and not kwargs:
        if not all(map(may_be_operand, inputs)):
            return NotImplemented
        if ufunc in _COMPARISONS:
            inputs = tuple(map(_scalar, inputs))
        elif ufunc is np.power:
            base, exponent = inputs
            short = power(base, exponent, operator=False) if isinstance(base, Symbol) else None
            if short is not None:
                return short
            inputs = base, _exponent(graph, base, exponent)
        return graph.apply(op, _arrays(graph, inputs), {})
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    try:
        function = _METHODS.get(method)
        if function is None:
            _has_none(name)
        before = len(graph.symbols)
        entry = ufunc if method == "__call__" else getattr(ufunc, method)
        kwargs = dict(without_usual_axes(ufunc, kwargs))
        places, settings = bound(entry, function, inputs, kwargs, leading=3)
        result = function(graph, ufunc, name, *places, **settings)
        names = ("x",) if ufunc.nin == 1 else ("x1", "x2")
        arguments = {**dict(zip(names, inputs, strict=False)), **kwargs}
        _attribute_casts(name, arguments, result, graph.symbols[before:])
        return result
    except GraphirError as error:
        raise error.at(user_location(), f"np.{name}") from None


_COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}


def _scalar(operand: ArrayOrNumber) -> Any:
    """Return a 0-d array as a scalar.

    NumPy turns the scalar in `np.float32(2) < x` into a 0-d array.
    """
    return operand[()] if type(operand) is np.ndarray and not operand.ndim else operand


def _exponent(graph: Graph, base: ArrayOrNumber, exponent: ArrayOrNumber) -> Any:
    """Return an exponent of np.power, as an array if `**` would take a short cut.

    np.power has no short cuts: np.power(x, 2) of bools is int64, whereas x**2 is int8.
    """
    if not (is_literal(exponent) and isinstance(base, Symbol)):
        return exponent
    short = graph.ask(_has_shortcut, exponent, graph.rules, base.type)
    return strong(exponent) if short else exponent


def _has_shortcut(exponent: complex, rules: PromotionRules, base: TensorType) -> bool:
    return rules.shortcut(exponent, Place((base, Number(exponent)), 1, ops.pow.name))


def _arrays(graph: Graph, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a ufunc's inputs; Python numbers become arrays if all inputs are Python numbers.

    NumPy's functions convert Python numbers alone to arrays, whereas Python computes operators on
    them. So `np.add(k, 1)` has the dtype of an array of k, and `k + 1` is still a number.
    """
    for operand in inputs:
        if not (
            is_literal(operand)
            or (isinstance(operand, Symbol) and operand.weak and not operand.rank)
        ):
            return inputs
    if not graph.rules.of_numbers:
        return inputs
    whole = len(inputs) > 1 and all(isinstance(operand, int) for operand in inputs)
    return tuple(_array(graph, operand, whole) for operand in inputs)


def _array(graph: Graph, operand: ArrayOrNumber, whole: bool) -> Any:
    """Return a number as an array; several ints alone become int64, as in NumPy."""
    if type(operand) is TracedNumber:
        return operand.filled(graph.concrete_dtype(DType.weak_int)) if whole else operand.symbol()
    if not isinstance(operand, Symbol):
        return operand
    return operand.cast(graph.concrete_dtype(operand.dtype))


def call_function(
    graph: Graph, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Add a NumPy function that is no ufunc to the graph of its arguments and return the result.

    The function raises GraphError, naming the nearest op, if no op computes the function, and for
    arguments without an op.
    """
    try:
        return applied(graph, function, args, kwargs)
    except GraphirError as error:
        raise error.at(user_location(), f"np.{_name(function)}") from None


def applied(
    graph: Graph, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Do the work of `call_function`, with errors that name the failing op instead of the function.

    The location of several ops becomes compound (see `_compound`).
    """
    function_, before = FUNCTIONS.get(function) or FUNCTION_OPS[function], len(graph.symbols)
    if function_ is None:
        _has_none(_name(function))
    args, kwargs = bound(function, function_, args, kwargs)
    if "dtype" in kwargs:
        kwargs["dtype"] = numpy_code(kwargs["dtype"])
    try:
        result = function_(*args, **kwargs)
    except GraphirError:
        raise
    except Exception as error:  # a program can pass any argument
        takes = ", ".join(signature(function_).parameters)
        raise GraphError(f"of symbols it takes ({takes}): {error}") from error
    symbols = graph.symbols[before:]
    attribute_casts(function, function_, args, kwargs, result, symbols)
    _compound(symbols)
    return result


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def attribute_casts(
    function: Callable[..., Any],
    body: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
    symbols: Sequence[Symbol],
) -> None:
    """Give each cast that a NumPy function makes by itself an origin that names the function.

    `symbols` are those that the call of the function's `body` on `args` and `kwargs` has added. A
    cast to the call's `dtype=` is the user's own, and so are those of functions among the operands.
    """
    if any(x.op is ops.cast for x in symbols) and not any(map(callable, args)):
        arguments = signature(body).bind(*args, **kwargs).arguments
        _attribute_casts(_name(function), arguments, result, symbols)


def _attribute_casts(
    name: str, arguments: Mapping[str, Any], result: Any, symbols: Sequence[Symbol]
) -> None:
    whole = isinstance(result, tuple)
    parts = cast("tuple[object, ...]", result) if whole else (cast("object", result),)
    results = {id(_root(part)) for part in parts}
    for x in symbols:
        if x.op is ops.cast and all(origin.in_call for origin in x.origins):
            usual = "result" if id(x) in results else INTERMEDIATE
            x.source = origin_in_call(name, arguments, x.args[0], x.dtype, x.location, usual)


def origin_in_call(
    name: str,
    arguments: Mapping[str, Any],
    x: Symbol,
    to: DType,
    location: Location,
    usual: str = INTERMEDIATE,
) -> Location | tuple[Origin]:
    """Return the source of a cast of `x` that a NumPy function makes: an origin, or the location.

    The origin names the parameter of `x` among `arguments`, or else the `usual` operand. A cast to
    the call's `dtype=` is the user's own, which has its location alone.
    """
    dtype = arguments.get("dtype")
    if dtype is not None and DType(numpy_code(dtype)) is to:
        return location
    before, names = x.dtype, dict[int, str]()
    for parameter, value in arguments.items():
        parts = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
        names |= {id(part): f"{parameter}[{i}]" for i, part in enumerate(parts)}
        names[id(cast("object", value))] = parameter
    roots = {id(_root(value)): parameter for parameter, value in arguments.items()}
    while id(x) not in names and x.op.kind == "movement" and x.args:
        x = x.args[0]
    operand = names.get(id(x)) or roots.get(id(x), usual)
    return (Origin(operand, NUMPY + name, location, x.graph.rules.name, before, to),)


def _root(x: Any) -> Any:
    """Return the symbol whose elements a symbol only moves."""
    while isinstance(x, Symbol) and x.op.kind == "movement" and x.args:
        x = x.args[0]
    return x


def _compound(symbols: Sequence[Symbol]) -> None:
    """Mark the location of several ops of one call as compound.

    The operands of such ops are not the operands of the call.
    """
    if sum(each.op.kind != "creation" for each in symbols) > 1:
        for symbol in symbols:
            place = CompoundLocation.of(symbol.location)
            origins = tuple(origin._replace(location=place) for origin in symbol.origins)
            symbol.source = origins or place


def _has_none(name: str) -> NoReturn:
    last = name.rpartition(".")[2]
    if last in _WRITERS:
        raise MissingOpError(
            "writes to an array, and a symbol never changes", fix=f"write {_WRITERS[last]}"
        )
    outside = f"call np.{name} on arrays, outside of the traced function"
    fix = f"{outside}; the nearest: {_NEAR[name]}" if name in _NEAR else outside
    problem = "no op does this"
    if last in OF_UNKNOWN_SIZE:
        problem += ": the size of the result depends on values"
    raise MissingOpError(problem, fix=fix)


# -- a call of a ufunc, and its methods


def _call_ufunc(graph: Graph, ufunc: np.ufunc, name: str, *inputs: Any) -> Any:
    if not all(map(may_be_operand, inputs)):
        return NotImplemented
    if OPS[ufunc] is None and ufunc in PARTS:
        return tuple(graph.apply(op, inputs, {}) for op in PARTS[ufunc])
    if OPS[ufunc] is None and ufunc in COMPOUNDS:
        alike = ops.add if len(inputs) == 2 else ops.negative
        operands = symbols_of(graph, alike, inputs)
        if ufunc in REAL and operands[0].dtype.is_complex:
            what = f"it is not defined for {operands[0].dtype}"
            raise PromotionError(f"{what}, as in NumPy; {REAL[ufunc]}")
        return COMPOUNDS[ufunc](DirectAdder(graph), *operands)
    return graph.apply(_op_of(OPS, ufunc, name), _arrays(graph, inputs), {})


def _reduce(
    graph: Graph,
    ufunc: np.ufunc,
    name: str,
    x: Any,
    axis: Ints | None = 0,
    dtype: DTypeLike | NumPyCode | None = None,
    keepdims: bool = False,
    initial: ArrayOrNumber | None = UNSET,
    where: ArrayOrNumber = True,
) -> Symbol:
    op = REDUCTIONS.get(ufunc)
    if op is None:
        if initial is not UNSET or where is not True:
            refuse("where" if initial is UNSET else "initial")
        to = None if dtype is None else numpy_code(dtype)
        return _result_or_refusal(reduced_by_ufunc(ufunc, x, axis, to, keepdims), name)
    if dtype is not None and op not in (ops.sum, ops.prod):
        refuse("dtype")
    to = None if dtype is None else numpy_code(dtype)
    if initial is UNSET and where is True and to is None:
        return graph.apply(op, (x,), {"axis": axis, "keepdims": keepdims})
    (x,) = symbols_of(graph, ops.negative, (x,))
    arguments = ReductionArguments(axis, keepdims, to, initial, where)
    return reduced(DirectAdder(graph), op, x, arguments)


def _accumulate(
    graph: Graph,
    ufunc: np.ufunc,
    name: str,
    x: Any,
    axis: int = 0,
    dtype: DTypeLike | NumPyCode | None = None,
) -> Symbol:
    to = None if dtype is None else numpy_code(dtype)
    op = ACCUMULATIONS.get(ufunc)
    if op is None:
        return _result_or_refusal(accumulated(ufunc, x, axis, to), name)
    return graph.apply(op, (x,), {"axis": axis, "dtype": to})


def _reduce_at(
    graph: Graph,
    ufunc: np.ufunc,
    name: str,
    x: ArrayOrNumber,
    indices: ArrayOrNumber,
    axis: int = 0,
    dtype: DTypeLike | NumPyCode | None = None,
) -> Symbol:
    to = None if dtype is None else numpy_code(dtype)
    (x,) = symbols_of(graph, ops.negative, (x,))
    return _result_or_refusal(reduced_at(ufunc, x, indices, axis, to), name)


def _result_or_refusal(result: Symbol | None, name: str) -> Symbol:
    """Return a result; raise GraphError for a ufunc that has none."""
    return _has_none(name) if result is None else result


def _outer(graph: Graph, ufunc: np.ufunc, name: str, x: ArrayOrNumber, y: ArrayOrNumber) -> Symbol:
    op = _op_of(OPS, ufunc, name)
    x, y = symbols_of(graph, op, (strong(x), strong(y)))
    return graph.apply(op, (x.reshape(*x.shape, *(1,) * y.rank) if y.rank else x, y), {})


def _op_of(table: NamedOps, ufunc: np.ufunc, name: str) -> Op:
    return table[ufunc] or _has_none(name)


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call_ufunc,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduce_at,
    "outer": _outer,
}
