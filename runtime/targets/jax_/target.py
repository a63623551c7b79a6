"""The JAX target: a lowered graph as a function of jax.numpy, in which every cast is explicit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphir import DType, ExecutionError, Graph, Symbol, ops
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.runtime.binding import match_inputs, numpy_name, sizes_of
from graphir.runtime.optional import optional
from graphir.runtime.targets.emission import (
    emitter,
    lacking,
    live_arrays,
    live_symbols,
    require_no_calls,
    require_numpy_functions,
)
from graphir.runtime.targets.jax_.primitives import (
    COMPOSITES,
    CONTROL,
    JaxControl,
    cast_values,
    jnp_,
    table,
)
from graphir.semantics.evaluation import settings_of


def jax(graph: Graph) -> Callable[..., Any]:
    """Return a function of jax.numpy that computes the outputs of a graph, also under jax.jit.

    The target lowers the graph first, so arithmetic on bfloat16 and similar dtypes is in float32
    with a rounding after each op. The function runs under `numpy_dtype_promotion("strict")`, in
    which JAX promotes nothing. The caller passes inputs in order or by name, as to `interpret`.
    An index out of range, and an integer to a negative power, raise no error. JAX compiles the
    graphs of control flow, also outside jax.jit: there a product that is added to is not rounded
    first. Calls of JAX's own functions run. Raises ImportError without jax, and TargetError for
    dtypes that JAX arrays cannot have. A call raises TargetError for 64-bit dtypes while JAX's x64
    mode is off.
    """
    return function_of(lower_to_ops(graph))


def function_of(graph: Graph) -> Callable[..., Any]:
    """Return the function of a graph without lowering, which runs if all casts are explicit."""
    module = optional("jax", "jax", "the JAX target")
    require_no_calls("JAX", graph, "jax")
    require_numpy_functions("JAX", graph)
    graph = decompose(graph, COMPOSITES)
    symbols, arrays = list(live_symbols(graph)), list(live_arrays(graph))
    for symbol in arrays:
        _check(symbol)
        if symbol.op not in (ops.input, ops.cast, ops.control.part):
            emitter("JAX", table(), symbol)

    def run(*inputs: Any, **keywords: Any) -> Any:
        values = match_inputs(graph, inputs, keywords)
        _check_x64(module, arrays)
        with module.numpy_dtype_promotion("strict"):
            outputs = _values(graph, symbols, values)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    run.__name__ = run.__qualname__ = graph.name
    return run


def _check(symbol: Symbol) -> None:
    if symbol.dtype in _LACKING:
        raise lacking(
            "JAX", symbol, f"has no arrays of {symbol.dtype}", "cast to float8_e4m3fn or float32"
        )


_LACKING = (DType.float6_e2m3fn, DType.float6_e3m2fn)


def _check_x64(module: Any, symbols: Sequence[Symbol]) -> None:
    if module.config.jax_enable_x64:
        return
    for symbol in symbols:
        if symbol.dtype.part.storage.itemsize == 8:
            raise lacking(
                "JAX",
                symbol,
                f"makes {symbol.dtype} a dtype of 32 bits while x64 is off",
                "call it inside `with jax.enable_x64(True):`, or set JAX_ENABLE_X64=1; or build "
                "the graph under the rules 'jax_x32'",
            )


def _values(graph: Graph, symbols: Iterable[Symbol], inputs: Sequence[Any]) -> Sequence[Any]:
    arrays = [
        _entered(*triple) for triple in zip(graph.inputs, graph.input_names, inputs, strict=True)
    ]
    return _outputs(graph, symbols, arrays, sizes_of(graph, arrays))


def _outputs(
    graph: Graph, symbols: Iterable[Symbol], arrays: Sequence[Any], sizes: Mapping[str, int]
) -> Sequence[Any]:
    """Return the outputs of a graph, the main one or one of control flow, for some inputs.

    `symbols` are the live symbols.
    """
    values: dict[Symbol, Any] = dict(zip(graph.inputs, arrays, strict=True))
    for symbol in symbols:
        if symbol.op is not ops.input:
            values[symbol] = _value(symbol, [values[arg] for arg in symbol.args], sizes)
    return [values[symbol] for symbol in graph.outputs]


def _entered(symbol: Symbol, name: str, value: Any) -> Any:
    """Return an input as a JAX array, after checks of its dtype and rank."""
    array = jnp_().asarray(value)
    what = f"input {name!r} is {symbol.type}"
    theirs: Any = value if issubclass(type(value), (np.ndarray, np.generic)) else array
    for dtype in (theirs.dtype, array.dtype):  # without x64, JAX narrows 64-bit dtypes of NumPy
        if dtype != symbol.dtype.storage:
            fix = f"give .astype({numpy_name(symbol.dtype)})"
            raise ExecutionError(what, got=f"an array of {dtype}", fix=fix)
    if array.ndim != symbol.rank:
        raise ExecutionError(what, got=f"an array of shape {array.shape}")
    if symbol.dtype.emulated:
        return cast_values(array, DType.from_numpy(array.dtype), symbol.dtype, symbol.graph.tf32)
    return array


def _value(symbol: Symbol, values: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    op, tf32 = symbol.op, symbol.graph.tf32
    if op.kind == "control":
        return _control_value(symbol, values, sizes)
    if op is ops.cast:
        return cast_values(values[0], symbol.args[0].dtype, symbol.dtype, tf32)
    settings = settings_of(op, symbol.dtype, symbol.attrs, sizes, tf32)
    try:
        result = table()[op.name](*values, **settings)
    except NotImplementedError as error:
        raise lacking("JAX", symbol, str(error), "cast to another dtype first") from None
    if result.dtype == symbol.dtype.storage:
        return result
    return cast_values(result, DType.from_numpy(result.dtype), symbol.dtype, tf32)


def _control_value(symbol: Symbol, values: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """Return the results of control flow, a tuple of arrays, or one part of such a tuple."""
    if symbol.op is ops.control.part:
        return values[0][symbol.attrs["index"]]

    def run(graph: Graph, arrays: Sequence[Any]) -> Sequence[Any]:
        return _outputs(graph, live_symbols(graph), arrays, {**sizes, **sizes_of(graph, arrays)})

    return CONTROL[symbol.op.name](JaxControl(symbol, sizes, run), values)
