"""The primitives of jax.lax in terms of ops: a row for each.

A row is the op itself, or a function that emits ops for an equation and returns their results. It
returns None for parameters that it does not cover: such an equation becomes the op `call`, as do
all primitives without a row. Sources: the operation semantics of XLA and jax/_src/lax of JAX 0.10
and 0.12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np

from graphir import DType, Graph, Op, Symbol, TensorType, ops
from graphir.ops.types import OpaqueType
from graphir.runtime.optional import optional
from graphir.runtime.sources.products import product_layout


class Parameters(dict[str, Any]):
    """The parameters of an equation, which remembers those that a row has read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read = set[str]()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter, or a default."""
        self.read.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def have_effect(self) -> bool:
        """Whether a parameter that no row has read may change values."""
        return any(
            value is not None and value is not False and value != ()
            for name, value in self.items()
            if name not in self.read and name not in _WITHOUT_EFFECT
        )


_WITHOUT_EFFECT = frozenset(
    {
        *("shape", "new_sizes", "dtype", "index_dtype", "preferred_element_type"),  # of the result
        *("sharding", "out_sharding", "indices_are_sorted", "unique_indices", "is_stable"),
        *("linear", "unroll", "_split_transpose"),
    }
)
"""The parameters that say what the types of the results say, or how JAX may compute."""


class Equation:
    """An equation of a jaxpr: its parameters, operands, and the types of its results."""

    def __init__(
        self, graph: Graph, params: Parameters, args: Sequence[Symbol], types: Sequence[Any]
    ) -> None:
        self.graph, self.params, self.args, self.types = graph, params, args, types

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return self.types[0]

    def emit(self, op: Op, *args: Symbol, **attrs: Any) -> Symbol:
        """Add an op on symbols to the graph."""
        return self.graph.emit(op, args, attrs)

    def number(self, value: complex, like: Symbol | TensorType) -> Symbol:
        """Return a 0-d constant of the dtype of `like`."""
        return self.graph.scalar(value, like.dtype if like.dtype.weak is False else None)


Row: TypeAlias = "Op | Callable[[Equation], Any]"

_ALIKE = """
    abs exp expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt
    rsqrt cbrt atan2 erf floor ceil square real imag conj is_finite nextafter
"""
"""The primitives with the names of their ops."""

_RENAMED = """
    add=add add_any=add add_jaxvals=add sub=subtract neg=negative
    eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal complex=as_complex
    and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_invert logistic=sigmoid
    shift_left=left_shift
"""

ROWS: dict[str, Row] = {
    **{name: ops.find(name) for name in _ALIKE.split()},
    **{name: ops.find(op) for name, op in (each.split("=") for each in _RENAMED.split())},
}
"""The rows, by the names of primitives."""

INLINED = {
    **dict.fromkeys(("jit", "pjit", "remat", "remat2", "checkpoint", "custom_lin"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call", "core_closed_call", "call"), "call_jaxpr"),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
"""The primitives that stand for the equations of their jaxpr, by the name of that parameter."""


def array_type(aval: Any) -> TensorType:
    """Return the type of an abstract value; opaque for values that are no arrays of numbers.

    A typed PRNG key has the type of its data, so that graphs hold arrays of numbers alone. A
    tangent of integers, a float0, is False, as in XLA.
    """
    if has_keys(aval):
        jax = optional("jax", "jax", "from_jax")
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    if is_float0(aval):
        return TensorType(DType.bool, aval.shape)
    try:
        dtype = DType.from_numpy(np.dtype(aval.dtype))
    except (AttributeError, TypeError, ValueError):
        return OpaqueType(str(aval))
    if getattr(aval, "weak_type", False):
        dtype = _weak_dtypes(optional("jax", "jax", "from_jax")).get(dtype, dtype)
    return TensorType(dtype, aval.shape)


def _weak_dtypes(jax: Any) -> Mapping[DType, DType]:
    """Return the weak dtypes of graphs by the dtypes that JAX has for their values.

    JAX holds other dtypes weak, too: the int32 indices of top_k with 64 bits on. A weak value of a
    graph has its default dtype alone.
    """
    if has_explicit_dtypes(jax):
        return {}
    wide = jax.config.jax_enable_x64
    return {
        DType.int64 if wide else DType.int32: DType.weak_int,
        DType.float64 if wide else DType.float32: DType.weak_float,
        DType.complex128 if wide else DType.complex64: DType.weak_complex,
    }


def drops_imaginary(source: DType, target: DType) -> bool:
    """Whether a library converts complex numbers by their real parts."""
    return source.is_complex and not target.is_complex and target is not DType.bool


def has_explicit_dtypes(jax: Any) -> bool:
    """Whether JAX has 64 bits where a program names them, and 32 by default.

    A weak dtype then has a default of 32 bits in graphs whose other dtypes may have 64, under the
    rules "jax"; so it is taken for its default.
    """
    mode = getattr(jax.config, "jax_explicit_x64_dtypes", "")
    is_allowed = getattr(mode, "name", mode).lower() == "allow"
    return is_allowed and not jax.config.jax_enable_x64


def has_keys(aval: Any) -> bool:
    """Whether an abstract value is an array of typed PRNG keys."""
    dtype = getattr(aval, "dtype", None)
    return not isinstance(dtype, np.dtype) and str(dtype).startswith("key<")


def is_float0(value: Any) -> bool:
    """Whether an abstract value or an array has the dtype float0."""
    return getattr(value, "dtype", None) == optional("jax", "jax", "from_jax").dtypes.float0


def known_shape(x: Symbol | TensorType) -> tuple[int, ...]:
    """Return a shape; the dims of jaxprs are known sizes."""
    return cast("tuple[int, ...]", x.shape)


MOVING = frozenset({"broadcast_in_dim", "expand_dims", "squeeze"})
"""The primitives by which JAX's functions broadcast an operand that they have converted."""

PROMOTING = frozenset(
    {"mul", "div", "pow", "max", "min", "select_n", "clamp", "shift_right_arithmetic"}
)
"""The primitives, beside those whose row is an op, to which JAX's functions promote operands."""


def row(*names: str) -> Callable[[Callable[[Equation], Any]], Callable[[Equation], Any]]:
    """Decorator: make a function the row of primitives."""

    def register(function: Callable[[Equation], Any]) -> Callable[[Equation], Any]:
        ROWS.update(dict.fromkeys(names, function))
        return function

    return register


# -- elementwise


@row("copy", "copy_p", "stop_gradient", "name", "sharding_constraint", "device_put")
@row("optimization_barrier", "pvary", "reshard")
def same(e: Equation) -> Any:
    """Return the operands; the parameters say where they lie, or what they are called."""
    e.params.read.update(e.params.keys())
    return e.args


@row("mul")
def _multiply(e: Equation) -> Any:
    return None if e.params.get("out_dtype") else e.emit(ops.multiply, *e.args)


@row("one_minus_square")
def _one_minus_square(e: Equation) -> Any:
    """(1 + x) * (1 - x), as JAX lowers it."""
    (x,) = e.args
    unit = e.number(1, x)
    return e.emit(ops.multiply, e.emit(ops.add, unit, x), e.emit(ops.subtract, unit, x))


@row("polynomial")
def _polynomial(e: Equation) -> Any:
    """The rule of Horner: the coefficients follow x, from the lowest degree on."""
    x, *coefficients, value = e.args
    e.params.get("unroll")
    for coefficient in reversed(coefficients):
        value = e.emit(ops.add, e.emit(ops.multiply, value, x), coefficient)
    return value


@row("div")
def _divide(e: Equation) -> Any:
    """Integers divide towards 0; -1 for a divisor of 0.

    XLA multiplies by the reciprocal of a divisor that it broadcasts (HandleDivide of its algebraic
    simplifier), but not of bfloat16, which it computes in float32, nor of complex numbers.
    """
    x, y = e.args
    if not e.type.dtype.is_integer:
        source = y.args[0] if y.op is ops.broadcast_to else y
        is_broadcast = prod(known_shape(source)) < prod(known_shape(e.type))
        if e.type.dtype in _RECIPROCAL and is_broadcast and not _is_power_of_two(source):
            return e.emit(ops.multiply, x, e.emit(ops.reciprocal, source))
        return e.emit(ops.divide, x, y)
    quotient, rest = e.emit(ops.floor_divide, x, y), e.emit(ops.remainder, x, y)
    zero = e.number(0, e.type)
    if e.type.dtype.family == "int":
        unlike = e.emit(ops.not_equal, e.emit(ops.less, x, zero), e.emit(ops.less, y, zero))
        up = e.emit(ops.logical_and, unlike, e.emit(ops.not_equal, rest, zero))
        quotient = e.emit(ops.where, up, e.emit(ops.add, quotient, e.number(1, e.type)), quotient)
    by_zero = e.emit(ops.bitwise_invert, zero)
    return e.emit(ops.where, e.emit(ops.equal, y, zero), by_zero, quotient)


_RECIPROCAL = (DType.float16, DType.float32, DType.float64, DType.weak_float)


def _is_power_of_two(x: Symbol) -> bool:
    """Whether x is a constant whose quotients are its products with the reciprocal."""
    if x.op is not ops.constant:
        return False
    mantissas, exponents = np.frexp(np.asarray(x.attrs["value"], np.float64))
    return bool(np.all((abs(mantissas) == 0.5) & (abs(exponents) < 13)))


@row("rem")
def _remainder(e: Equation) -> Any:
    """The remainder of division towards 0; x itself for an integer divisor of 0."""
    x, y = e.args
    rest = e.emit(ops.fmod, x, y)
    if not e.type.dtype.is_integer:
        return rest
    return e.emit(ops.where, e.emit(ops.equal, y, e.number(0, e.type)), x, rest)


@row("lt_to")
def _less_in_total_order(e: Equation) -> Any:
    return _is_less(e, *e.args)


@row("le_to")
def _less_equal_in_total_order(e: Equation) -> Any:
    return e.emit(ops.logical_not, _is_less(e, *reversed(e.args)))


def _is_less(e: Equation, x: Symbol, y: Symbol) -> Symbol:
    """X < y in the order of IEEE 754: -NaN, numbers, NaN; -0.0 is below 0.0."""
    less = e.emit(ops.less, x, y)
    if not x.dtype.is_float:
        return less
    signs = [e.emit(ops.signbit, z) for z in (x, y)]
    ends = [e.emit(ops.is_nan, z) for z in (x, y)]
    below = e.emit(ops.greater, *signs)
    zeros = e.emit(ops.logical_and, e.emit(ops.equal, x, y), below)
    numbers = e.emit(ops.logical_or, less, zeros)
    with_nan = e.emit(ops.where, ends[0], signs[0], e.emit(ops.logical_not, signs[1]))
    with_nan = e.emit(ops.where, e.emit(ops.logical_and, *ends), below, with_nan)
    return e.emit(ops.where, e.emit(ops.logical_or, *ends), with_nan, numbers)


@row("shift_right_logical")
def _shift_right(e: Equation) -> Any:
    return e.emit(ops.right_shift, *e.args) if e.type.dtype.family == "uint" else None


@row("shift_right_arithmetic")
def _shift_right_with_sign(e: Equation) -> Any:
    """XLA's shift copies the upper bit, of numbers without a sign too."""
    x, y = e.args
    shifted = e.emit(ops.right_shift, x, y)
    if e.type.dtype.family != "uint":
        return shifted
    ones = e.emit(ops.bitwise_invert, e.emit(ops.right_shift, e.emit(ops.bitwise_invert, x), y))
    has_upper_bit = e.emit(ops.greater, x, e.number(e.type.dtype.max // 2, x))
    return e.emit(ops.where, has_upper_bit, ones, shifted)


@row("round")
def _round(e: Equation) -> Any:
    (x,) = e.args
    if int(e.params["rounding_method"]):  # to even
        return e.emit(ops.round, x)
    whole = e.emit(ops.trunc, x)
    rest = e.emit(ops.abs, e.emit(ops.subtract, x, whole))
    away = e.emit(ops.add, whole, e.emit(ops.copysign, e.number(1, x), x))
    up = e.emit(ops.greater_equal, rest, e.number(0.5, x))
    return e.emit(ops.where, up, away, whole)


@row("exp2")
def _exp2(e: Equation) -> Any:
    return e.emit(ops.pow, e.number(2.0, e.type), *e.args)


@row("integer_pow")
def _integer_pow(e: Equation) -> Any:
    """Powers by squares and products, as XLA computes them."""
    (x,), exponent = e.args, e.params["y"]
    if not exponent:
        return e.emit(ops.broadcast_to, e.number(1, e.type), shape=e.type.shape)
    result: Symbol | None = None
    factor, left = x, abs(exponent)
    while left:
        if left & 1:
            result = factor if result is None else e.emit(ops.multiply, result, factor)
        left >>= 1
        if left:
            factor = e.emit(ops.multiply, factor, factor)
    assert result is not None
    return result if exponent > 0 else e.emit(ops.divide, e.number(1.0, e.type), result)


@row("pow")
def _power(e: Equation) -> Any:
    """XLA computes powers of complex numbers in polar form (EmitComplexPower)."""
    x, y = e.args
    if not e.type.dtype.is_complex:
        return e.emit(ops.pow, x, y)
    y = y if y.dtype.is_complex else e.emit(ops.cast, y, to=x.dtype)
    (a, b), (c, d) = ([e.emit(part, z) for part in (ops.real, ops.imag)] for z in (x, y))
    size, angle = e.emit(ops.abs, x), e.emit(ops.atan2, b, a)
    shrinking = e.emit(ops.exp, e.emit(ops.negative, e.emit(ops.multiply, d, angle)))
    length = e.emit(ops.multiply, e.emit(ops.pow, size, c), shrinking)
    turns = e.emit(ops.multiply, d, e.emit(ops.log, size))
    turn = e.emit(ops.add, e.emit(ops.multiply, c, angle), turns)
    parts = [e.emit(ops.multiply, length, e.emit(op, turn)) for op in (ops.cos, ops.sin)]
    zero, unit = e.number(0, a), e.number(1, a)

    def both(*tests: tuple[Symbol, Symbol]) -> Symbol:
        first, second = (e.emit(ops.equal, *test) for test in tests)
        return e.emit(ops.logical_and, first, second)

    is_one = e.emit(ops.logical_or, both((a, unit), (b, zero)), both((c, zero), (d, zero)))
    at_zero = e.emit(ops.logical_and, e.emit(ops.equal, a, zero), e.emit(ops.greater, c, zero))
    at_end = e.emit(ops.logical_or, at_zero, both((a, e.number(float("inf"), a)), (c, c)))
    is_real = e.emit(ops.logical_and, at_end, both((b, zero), (d, zero)))
    real = e.emit(ops.where, is_one, unit, e.emit(ops.where, is_real, length, parts[0]))
    imaginary = e.emit(ops.where, e.emit(ops.logical_or, is_one, is_real), zero, parts[1])
    return e.emit(ops.as_complex, real, imaginary)


@row("select_n")
def _select(e: Equation) -> Any:
    which, *cases = e.args
    if which.dtype is DType.bool:
        return e.emit(ops.where, which, *reversed(cases)) if len(cases) == 2 else cases[0]
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        here = e.emit(ops.equal, which, e.number(i, which))
        result = e.emit(ops.where, here, cases[i], result)
    return result


@row("sign")
def _sign(e: Equation) -> Any:
    """The sign of a zero is that zero."""
    (x,) = e.args
    sign = e.emit(ops.sign, x)
    return e.emit(ops.copysign, sign, x) if x.dtype.is_float else sign


@row("max")
def _maximum(e: Equation) -> Any:
    return _greater(e, ops.maximum, *e.args)


@row("min")
def _minimum(e: Equation) -> Any:
    return _greater(e, ops.minimum, *e.args)


def _greater(e: Equation, op: Op, x: Symbol, y: Symbol) -> Symbol:
    """Return the maximum or minimum; XLA has -0.0 below 0.0, the op takes the second of zeros.

    Complex numbers compare by real parts, if these are equal by imaginary ones (mlir._minmax_hlo).
    """
    if e.type.dtype.is_complex:
        wins = ops.greater if op is ops.maximum else ops.less
        (a, b), (c, d) = ([e.emit(part, z) for part in (ops.real, ops.imag)] for z in (x, y))
        tie = e.emit(ops.equal, a, c)
        return e.emit(
            ops.where,
            e.emit(ops.where, tie, e.emit(wins, b, d), e.emit(wins, a, c)),
            x,
            y,
        )
    if not e.type.dtype.is_float or _is_not_zero(x) or _is_not_zero(y):
        return e.emit(op, x, y)
    negative_wins = op is ops.minimum
    for first, second in ((x, y), (y, x)):
        is_constant = second.op is ops.constant and not second.rank
        if is_constant or not second.dtype.is_float:  # zeros of integers are positive
            is_negative = is_constant and bool(np.signbit(second.attrs["value"]))
            pair = (first, second) if is_negative == negative_wins else (second, first)
            return e.emit(op, *pair)
    cases = (y, x) if negative_wins else (x, y)
    zeros = e.emit(ops.where, e.emit(ops.signbit, y), *cases)
    return e.emit(ops.where, e.emit(ops.equal, x, y), zeros, e.emit(op, x, y))


def _is_not_zero(x: Symbol) -> bool:
    """Whether x is a constant without zeros."""
    x = x.args[0] if x.op is ops.broadcast_to else x
    return x.op is ops.constant and bool(np.all(np.asarray(x.attrs["value"]) != 0))


@row("clamp")
def _clamp(e: Equation) -> Any:
    low, x, high = e.args
    if not x.dtype.is_float or (_is_not_zero(low) and _is_not_zero(high)):
        return e.emit(ops.clip, x, low, high)
    return _greater(e, ops.minimum, _greater(e, ops.maximum, x, low), high)


@row("reduce_precision")
def _reduce_precision(e: Equation) -> Any:
    """Rounding of the mantissa; where the exponent has fewer bits, XLA has no subnormal numbers."""
    (x,), bits = e.args, (e.params["exponent_bits"], e.params["mantissa_bits"])
    own = _BITS.get(e.graph.concrete_dtype(x.dtype))
    if own == bits:
        return x
    if own != _BITS[DType.float32] or bits != _BITS[DType.bfloat16]:
        return None
    return e.emit(ops.cast, e.emit(ops.cast, x, to=DType.bfloat16), to=x.dtype)


_BITS = {
    DType.float16: (5, 10),
    DType.bfloat16: (8, 7),
    DType.float32: (8, 23),
    DType.float64: (11, 52),
}
"""The bits of exponents and mantissas."""


# -- movement


@row("reshape", "squeeze", "expand_dims")
def _reshape(e: Equation) -> Any:
    if e.params.get("dimensions") is not None and "new_sizes" in e.params:
        return None
    return e.emit(ops.reshape, e.args[0], shape=e.type.shape)


@row("broadcast_in_dim")
def _broadcast(e: Equation) -> Any:
    x, shape = e.args[0], [1] * e.type.rank
    for axis, size in zip(e.params["broadcast_dimensions"], known_shape(x), strict=True):
        shape[axis] = size
    spread = x if not x.rank or x.shape == tuple(shape) else e.emit(ops.reshape, x, shape=shape)
    if spread.shape == e.type.shape:
        return spread
    return e.emit(ops.broadcast_to, spread, shape=e.type.shape)


@row("transpose")
def _transpose(e: Equation) -> Any:
    return e.emit(ops.permute, e.args[0], dims=e.params["permutation"])


@row("rev")
def _reverse(e: Equation) -> Any:
    return e.emit(ops.flip, e.args[0], axis=e.params["dimensions"])


@row("concatenate")
def _concatenate(e: Equation) -> Any:
    return e.emit(ops.concat, *e.args, axis=e.params["dimension"])


@row("stack")
def _stack(e: Equation) -> Any:
    return e.emit(ops.stack, *e.args, axis=e.params["axis"])


@row("tile")
def _tile(e: Equation) -> Any:
    return e.emit(ops.tile, e.args[0], repeats=e.params["reps"])


@row("slice")
def _slice(e: Equation) -> Any:
    start, stop = e.params["start_indices"], e.params["limit_indices"]
    step = e.params["strides"] or (1,) * len(start)
    return e.emit(ops.slice, e.args[0], start=start, stop=stop, step=step)


@row("split")
def _split(e: Equation) -> Any:
    return e.args[0].split(list(e.params["sizes"]), e.params["axis"])


@row("unstack")
def _unstack(e: Equation) -> Any:
    (x,), axis = e.args, e.params["axis"]
    sizes: list[Any] = [1] * len(e.types)
    parts = x.split(sizes, axis)
    return [e.emit(ops.reshape, part, shape=e.type.shape) for part in parts]


@row("pad")
def _pad(e: Equation) -> Any:
    """Padding by an update of a slice; negative padding by a slice."""
    (x, value), config = e.args, [tuple(map(int, each)) for each in e.params["padding_config"]]
    shape = [
        max(low, 0) + size + max(size - 1, 0) * inner + max(high, 0)
        for size, (low, high, inner) in zip(known_shape(x), config, strict=True)
    ]
    start = [max(low, 0) for low, _, _ in config]
    step = [inner + 1 for _, _, inner in config]
    stop = [
        low + (size - 1) * by + 1 if size else low
        for low, size, by in zip(start, known_shape(x), step, strict=True)
    ]
    whole = e.emit(ops.broadcast_to, value, shape=shape)
    result = e.emit(ops.slice_update, whole, x, start=start, stop=stop, step=step)
    if any(low < 0 or high < 0 for low, high, _ in config):
        first = [max(-low, 0) for low, _, _ in config]
        last = [size - max(-high, 0) for size, (_, high, _) in zip(shape, config, strict=True)]
        result = e.emit(ops.slice, result, start=first, stop=last, step=[1] * len(first))
    return result


@row("iota")
def _iota(e: Equation) -> Any:
    axis, shape = e.params["dimension"], known_shape(e.type)
    places = e.emit(ops.range, dtype=e.type.dtype, start=0, step=1, size=shape[axis])
    column: list[Any] = [shape[axis] if i == axis else 1 for i in range(len(shape))]
    return e.emit(ops.broadcast_to, e.emit(ops.reshape, places, shape=column), shape=shape)


# -- reductions and rows


def _reduction(op: Op) -> Callable[[Equation], Any]:
    def reduce(e: Equation) -> Any:
        (x,), axes = e.args, tuple(e.params["axes"])
        if op in (ops.sum, ops.prod):
            return e.emit(op, x, axis=axes, dtype=e.type.dtype) if axes else x
        if 0 in [known_shape(x)[int(axis)] for axis in axes]:
            start = e.number(_extreme(x.dtype, least=op is ops.max), e.type)
            return e.emit(ops.broadcast_to, start, shape=e.type.shape)
        return e.emit(op, x, axis=axes) if axes else x

    return reduce


for _name in ("sum", "prod", "max", "min"):
    ROWS[f"reduce_{_name}"] = _reduction(ops.find(_name))


def _extreme(dtype: DType, least: bool) -> Any:
    """Return the least or greatest value of a dtype."""
    if dtype.is_integer:
        return dtype.min if least else dtype.max
    return not least if dtype is DType.bool else float("-inf" if least else "inf")


def _verdict(op: Op) -> Callable[[Equation], Any]:
    def reduce(e: Equation) -> Any:
        if e.type.dtype is not DType.bool:
            return None
        return e.emit(op, e.args[0], axis=tuple(e.params["axes"]))

    return reduce


ROWS["reduce_and"], ROWS["reduce_or"] = _verdict(ops.all), _verdict(ops.any)


def _locator(op: Op) -> Callable[[Equation], Any]:
    def locate(e: Equation) -> Any:
        (axis,) = e.params["axes"]
        return e.emit(op, e.args[0], axis=axis, dtype=e.type.dtype)

    return locate


ROWS["argmax"], ROWS["argmin"] = _locator(ops.argmax), _locator(ops.argmin)


def _cumulative(op: Op) -> Callable[[Equation], Any]:
    def accumulate(e: Equation) -> Any:
        axis, (x,) = e.params["axis"], e.args
        x = e.emit(ops.flip, x, axis=(axis,)) if e.params["reverse"] else x
        result = e.emit(op, x, axis=axis, dtype=e.type.dtype)
        return e.emit(ops.flip, result, axis=(axis,)) if e.params["reverse"] else result

    return accumulate


ROWS["cumsum"] = _cumulative(ops.cumulative_sum)
ROWS["cumprod"] = _cumulative(ops.cumulative_prod)


@row("sort")
def _sort(e: Equation) -> Any:
    axis, keys = e.params["dimension"], e.params["num_keys"]
    if len(e.args) == 1:
        return e.emit(ops.sort, e.args[0], axis=axis)
    if keys != 1:
        return None
    order = e.emit(ops.argsort, e.args[0], axis=axis)
    return [e.emit(ops.take_along, x, order, axis=axis) for x in e.args]


@row("dot_general")
def _dot_general(e: Equation) -> Any:
    """A batched product of matrices, of operands permuted and reshaped."""
    if "DotAlgorithm" in type(e.params.get("precision")).__name__:
        return None
    (x, y), ((summed_x, summed_y), (batch_x, batch_y)) = e.args, e.params["dimension_numbers"]
    free_x = [i for i in range(x.rank) if i not in (*summed_x, *batch_x)]
    free_y = [i for i in range(y.rank) if i not in (*summed_y, *batch_y)]
    to = e.type.dtype
    if e.graph.rules.answer(x.dtype, y.dtype) is not to:
        x, y = (z if z.dtype is to else e.emit(ops.cast, z, to=to) for z in (x, y))
    size = prod([known_shape(x)[int(i)] for i in summed_x])
    batch: list[Any] = [x.shape[i] for i in batch_x]
    rows, columns = prod(known_shape(x)[i] for i in free_x), prod(known_shape(y)[i] for i in free_y)
    left = _arranged(e, x, (*batch_x, *free_x, *summed_x), (*batch, rows, size))
    right = _arranged(e, y, (*batch_y, *summed_y, *free_y), (*batch, size, columns))
    product = e.emit(ops.matmul, left, right, layout=product_layout(left, right))
    return (
        product
        if product.shape == e.type.shape
        else e.emit(ops.reshape, product, shape=e.type.shape)
    )


def _arranged(e: Equation, x: Symbol, order: Sequence[int], shape: Sequence[Any]) -> Symbol:
    if tuple(order) != tuple(range(x.rank)):
        x = e.emit(ops.permute, x, dims=tuple(order))
    return x if x.shape == tuple(shape) else e.emit(ops.reshape, x, shape=tuple(shape))
