"""The JAX target: a lowered graph as a function of jax.numpy, in which every cast is explicit."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (JAX is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphir.conversions import Step
from graphir.dtypes import DTypeLike
from graphir.hints import ArrayOrNumber
from graphir.import_names import optional
from graphir.ops.dims import evaluate
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.public import DType, ExecutionError, Graph, Symbol, ops
from graphir.runtime.binding import match_inputs, numpy_name, sizes_of
from graphir.runtime.targets.emission import (
    EngineConversions,
    emitter,
    evaluate_graph,
    lacking,
    live_arrays,
    op_names,
    require_no_calls,
    require_numpy_functions,
)
from graphir.semantics.evaluation import settings_of
from graphir.semantics.kernels import KERNELS


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


# -- the functions of jax.numpy and jax.lax for ops, casts and control flow

JaxArray: TypeAlias = Any
"""A jax.Array, of which the project's own environment has no type."""


class JaxValue(NDArrayOperatorsMixin):
    """A JAX array on which NumPy's functions dispatch to jax.numpy; numbers take its dtype."""

    def __init__(self, array: JaxArray) -> None:
        self.array, self.dtype = array, array.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> JaxValue:
        return JaxValue(getattr(jnp_(), ufunc.__name__)(*map(self._lifted, inputs)))

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> JaxValue:
        """Return np.where by jax.numpy, the only function that casts use."""
        condition, *choose = args
        like = next(x for x in choose if isinstance(x, JaxValue))
        return JaxValue(jnp_().where(condition.array, *map(like._lifted, choose)))

    def _lifted(self, x: JaxArray) -> Any:
        return x.array if isinstance(x, JaxValue) else np.asarray(x).astype(self.dtype)

    def view(self, dtype: DTypeLike) -> JaxValue:
        """Return the same bits read as another dtype of the same width."""
        return JaxValue(lax_().bitcast_convert_type(self.array, np.dtype(dtype)))

    def astype(self, dtype: DTypeLike) -> JaxValue:
        """Return the array in another dtype by XLA's conversion."""
        return JaxValue(self.array.astype(np.dtype(dtype)))


class JaxConversions(EngineConversions):
    """Casts of JAX arrays. XLA's truncation of floats to integers saturates, and maps NaN to 0."""

    def saturate(self, target: DType) -> Step:
        """Return the step of XLA's own conversion."""
        return lambda x: x.astype(target)

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the narrowing step with a barrier; without it XLA may keep excess precision."""
        narrow = super().narrow(target, tf32)
        return lambda x: JaxValue(lax_().optimization_barrier(narrow(x).array))


def cast_values(x: JaxArray, source: DType, target: DType, tf32: str) -> Any:
    """Return the values of an array in another dtype, rounded once as in graphir.conversions."""
    return JaxConversions().convert(JaxValue(x), source, target, tf32).array


def jnp_() -> Any:
    """Return the module jax.numpy. Raises ImportError without jax."""
    return optional("jax.numpy", "jax", "the JAX target")


def lax_() -> Any:
    """Return the module jax.lax. Raises ImportError without jax."""
    return optional("jax.lax", "jax", "the JAX target")


# -- ops whose jax.numpy function has another meaning


def _by_zero(function: Callable[..., Any], x: JaxArray, y: JaxArray) -> Any:
    """Return a quotient or remainder; for integers it is 0 where the divisor is 0."""
    jnp = jnp_()
    if jnp.issubdtype(x.dtype, jnp.floating):
        return function(x, y)
    zero, unit = jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    return jnp.where(y == zero, zero, function(x, jnp.where(y == zero, unit, y)))


def _divide(x: JaxArray, y: JaxArray) -> Any:
    """Return the quotient, rounded once.

    XLA turns a division by a broadcast divisor into a product with the reciprocal, which is 0 for a
    large divisor. The `where`, which selects x where x is NaN, hides the broadcast from XLA and
    keeps the quotient.
    """
    jnp = jnp_()
    if jnp.issubdtype(x.dtype, jnp.floating):
        y = jnp.where(x != x, x, y)
    return jnp.divide(x, y)


def _fmod(x: JaxArray, y: JaxArray) -> Any:
    return _by_zero(lax_().rem, *jnp_().broadcast_arrays(x, y))


def _pow(x: JaxArray, y: JaxArray) -> Any:
    """Return x ** y, with x * x for floats where y is 2; integers wrap."""
    jnp = jnp_()
    if jnp.issubdtype(x.dtype, jnp.integer):
        return _integer_pow(x, y)
    two = y == jnp.asarray(2, y.dtype)
    return jnp.where(two, x * x, jnp.power(x, y))


def _integer_pow(x: JaxArray, y: JaxArray) -> Any:
    """Return x ** y modulo 2**bits by squaring; jnp.power deviates for large exponents."""
    jnp, lax = jnp_(), lax_()
    unit, power = jnp.ones((), x.dtype), jnp.ones_like(x)
    for bit in range(8 * x.dtype.itemsize - jnp.issubdtype(y.dtype, jnp.signedinteger)):
        rest = lax.shift_right_logical(y, lax.full_like(y, bit))
        power = power * jnp.where(rest & unit == unit, x, unit)
        x = x * x
    return power


def _pad(x: JaxArray, padding: Sequence[tuple[int, int]], value: JaxArray) -> Any:
    return jnp_().pad(x, padding, constant_values=jnp_().asarray(value))


def _slice(x: JaxArray, start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> Any:
    return x[(*map(slice, start, stop, step), ...)]


def _slice_update(
    x: JaxArray, updates: JaxArray, start: Sequence[int], stop: Sequence[int], step: Sequence[int]
) -> Any:
    return x.at[(*map(slice, start, stop, step), ...)].set(updates)


def _places(x: JaxArray, indices: JaxArray, axis: int) -> Any:
    jnp = jnp_()
    wide = indices.astype(jnp.int64 if x.shape[axis] >= 2**31 else jnp.int32)
    return jnp.where(wide < 0, wide + np.asarray(x.shape[axis], wide.dtype), wide)


def _pick(function: Callable[..., Any], x: JaxArray, indices: JaxArray, axis: int) -> Any:
    return function(x, _places(x, indices, axis), axis=axis, mode="clip")


def _scatter(x: JaxArray, updates: JaxArray, indices: JaxArray, axis: int) -> Any:
    """Return x with updates at indices, applied in order along the axis so that the last wins."""
    jnp = jnp_()
    places = jnp.moveaxis(_places(x, indices, axis), axis, 0)
    rows, result = jnp.moveaxis(updates, axis, 0), jnp.moveaxis(x, axis, 0)
    here = jnp.arange(x.shape[axis], dtype=places.dtype).reshape(-1, *[1] * (x.ndim - 1))
    for i in range(places.shape[0]):
        result = jnp.where(here == places[i], rows[i], result)
    return jnp.moveaxis(result, 0, axis)


def _index_add(x: JaxArray, updates: JaxArray, indices: JaxArray, axis: int | None) -> Any:
    if axis is None:
        return _index_add(x.reshape(-1), updates, indices, 0).reshape(x.shape)
    at = x.at[(*[slice(None)] * axis, _places(x, indices, axis))]
    return at.max(updates) if x.dtype == bool else at.add(updates)


def _concat(*arrays: JaxArray, axis: int) -> Any:
    """Return the concatenation of arrays.

    XLA aborts on dtypes narrower than a byte, so these are widened exactly before and narrowed
    after the concatenation.
    """
    jnp, dtype = jnp_(), DType.from_numpy(arrays[0].dtype)
    if dtype.bits >= 8 or dtype is DType.bool:
        return jnp.concatenate(arrays, axis)
    wide = [x.astype(jnp.float32 if dtype.is_float else jnp.int8) for x in arrays]
    return jnp.concatenate(wide, axis).astype(dtype.storage)


def _rebind(x: JaxArray, shape: tuple[int, ...]) -> Any:
    return KERNELS["rebind"](x, shape)  # shapes are static during JAX's tracing


def _create(name: str, **settings: Any) -> Any:
    """Return the result of an op without operands, computed by NumPy."""
    value = KERNELS[name](**settings)
    return jnp_().asarray(value)


def _as_complex(x: JaxArray, y: JaxArray) -> Any:
    return lax_().complex(*jnp_().broadcast_arrays(x, y))


@cache
def table() -> Mapping[str, Callable[..., Any]]:
    """Return the table of the function of each op. Raises ImportError without jax."""
    jnp, lax = jnp_(), lax_()
    special, nn = (
        optional(f"jax.{name}", "jax", "the JAX target") for name in ("scipy.special", "nn")
    )
    return {
        **{name: getattr(jnp, name) for name in _SAME},
        **{name: partial(_create, name) for name in ("constant", "full", "range", "eye")},
        "divide": _divide,
        "floor_divide": partial(_by_zero, jnp.floor_divide),
        "fmod": _fmod,
        "pow": _pow,
        "reciprocal": lambda x: jnp.ones((), x.dtype) / x,
        "erf": special.erf,
        "sigmoid": special.expit,
        "gelu": lambda x, approximate: x * 0.5 * special.erfc(x * -math.sqrt(0.5)),
        "as_complex": _as_complex,
        "sum": lambda x, axis, keepdims: jnp.sum(x, axis, x.dtype, keepdims=keepdims),
        "prod": lambda x, axis, keepdims: jnp.prod(x, axis, x.dtype, keepdims=keepdims),
        "cumulative_sum": lambda x, axis: jnp.cumsum(x, axis, x.dtype),
        "cumulative_prod": lambda x, axis: jnp.cumprod(x, axis, x.dtype),
        "softmax": nn.softmax,
        "logsoftmax": nn.log_softmax,
        "sort": lambda x, axis, descending, stable: jnp.sort(x, axis=axis, stable=True),
        "argsort": lambda x, axis, descending, stable: jnp.argsort(x, axis=axis, stable=True),
        "searchsorted": lambda x, values, side: jnp.searchsorted(x, values, side=side),
        "matmul": partial(jnp.matmul, precision=lax.Precision.HIGHEST),
        "rebind": _rebind,
        "permute": lambda x, dims: jnp.transpose(x, dims),
        "slice": _slice,
        "slice_update": _slice_update,
        "flip": lambda x, axis: jnp.flip(x, axis),
        "roll": lambda x, shift, axis: jnp.roll(x, shift, axis),
        "pad": _pad,
        "concat": _concat,
        "gather": partial(_pick, jnp.take),
        "take_along": partial(_pick, jnp.take_along_axis),
        "scatter": _scatter,
        "index_add": _index_add,
        "shape_of": lambda x: jnp.asarray(np.array(x.shape, np.int64)),
    }


_SAME = op_names(
    "add subtract multiply maximum minimum negative abs sign floor ceil round sqrt exp expm1 log "
    "log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot cbrt "
    "logaddexp copysign nextafter real imag where reshape broadcast_to max min any all argmax "
    "argmin logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor "
    "bitwise_invert left_shift right_shift equal not_equal less less_equal greater greater_equal "
    "signbit"
)
COMPOSITES = op_names(
    "sigmoid softmax logsoftmax hypot cbrt logaddexp log2 log10 copysign roll slice_update"
)
"""The composite ops for which JAX has functions of its own, which are faster or more accurate."""


Arrays: TypeAlias = Sequence[JaxArray]


class JaxControl(NamedTuple):
    """A call of an op of control flow: its symbol, and the sizes of named dims.

    `run(graph, arrays)` returns the outputs of a graph.
    """

    symbol: Symbol
    sizes: Mapping[str, int]
    run: Callable[[Graph, Arrays], Arrays]


def _cond(call: JaxControl, operands: Arrays) -> Arrays:
    """Return the results of lax.switch, whose index is clamped before JAX narrows it to int32."""
    branches: Sequence[Graph] = call.symbol.attrs["branches"]
    index, dtype = operands[0], call.symbol.args[0].dtype
    if dtype.narrow:
        index = index.astype(np.int32)
    elif dtype is not DType.bool:
        last = min(len(branches) - 1, int(dtype.max))
        index = jnp_().clip(index, np.zeros((), index.dtype), np.asarray(last, index.dtype))
    functions = [partial(_results, call, branch) for branch in branches]
    return lax_().switch(index.astype(np.int32), functions, *operands[1:])


def _results(call: JaxControl, graph: Graph, *arrays: JaxArray) -> Arrays:
    return tuple(call.run(graph, arrays))


def _while_loop(call: JaxControl, operands: Arrays) -> Arrays:
    condition, body = call.symbol.attrs["condition"], call.symbol.attrs["body"]
    count = len(body.outputs)
    captured = operands[count:]

    def verdict(values: Arrays) -> Any:
        return call.run(condition, [*values, *captured])[0]

    def step(values: Arrays) -> Arrays:
        return _results(call, body, *values, *captured)

    return lax_().while_loop(verdict, step, tuple(operands[:count]))


def _scan(call: JaxControl, operands: Arrays) -> Arrays:
    attrs = call.symbol.attrs
    body, carries, ends = attrs["body"], attrs["carries"], attrs["carries"] + attrs["scanned"]
    captured = operands[ends:]

    def step(values: Arrays, rows: Arrays) -> tuple[Arrays, Arrays]:
        outputs = _results(call, body, *values, *rows, *captured)
        return outputs[:carries], outputs[carries:]

    rows = tuple(operands[carries:ends])
    length = None if rows else evaluate(attrs["length"], call.sizes)
    values, stacked = lax_().scan(step, tuple(operands[:carries]), rows, length, attrs["reverse"])
    return *values, *stacked


def _call(call: JaxControl, operands: Arrays) -> Arrays:
    """Return the results of a function of JAX, which takes and gives JAX arrays in `run`."""
    return call.symbol.attrs["callee"].function.run(*operands)


CONTROL: Mapping[str, Callable[[JaxControl, Arrays], Arrays]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "call": _call,
}
"""The function of each op of control flow."""
