"""The JAX target: a lowered graph as a function of jax.numpy, in which every cast is explicit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphir.hints import ArrayOrNumber
from graphir.import_names import optional
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.public import DType, ExecutionError, Graph, Symbol, ops
from graphir.runtime.binding import match_inputs, numpy_name, sizes_of
from graphir.runtime.targets.emission import (
    emitter,
    evaluate_graph,
    lacking,
    live_arrays,
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
    arrays = list(live_arrays(graph))
    for symbol in arrays:
        if symbol.dtype in _LACKING:
            why = f"has no arrays of {symbol.dtype}"
            raise lacking("JAX", symbol, why, "cast to float8_e4m3fn or float32")
        if symbol.op not in (ops.input, ops.cast, ops.control.part):
            emitter("JAX", table(), symbol)

    def run(*inputs: ArrayOrNumber, **keywords: ArrayOrNumber) -> Any:
        values = match_inputs(graph, inputs, keywords)
        _check_x64(module, arrays)
        with module.numpy_dtype_promotion("strict"):
            triples = zip(graph.inputs, graph.input_names, values, strict=True)
            entered = [_entered(*triple) for triple in triples]
            outputs = _outputs(graph, sizes_of(graph, entered), entered)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    run.__name__ = run.__qualname__ = graph.name
    return run


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


def _entered(symbol: Symbol, name: str, value: ArrayOrNumber) -> Any:
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


def _outputs(graph: Graph, sizes: Mapping[str, int], arrays: Sequence[Any]) -> Sequence[Any]:
    """Return the outputs of a graph, the main one or one of control flow, for some inputs."""
    values = dict(zip(graph.inputs, arrays, strict=True))
    return evaluate_graph(graph, values, partial(_value, sizes))


def _value(sizes: Mapping[str, int], symbol: Symbol, values: Sequence[Any]) -> Any:
    op, tf32 = symbol.op, symbol.graph.tf32
    if op.kind == "control":

        def run(graph: Graph, arrays: Sequence[Any]) -> Sequence[Any]:
            return _outputs(graph, {**sizes, **sizes_of(graph, arrays)}, arrays)

        return CONTROL[op.name](JaxControl(symbol, sizes, run), values)
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
