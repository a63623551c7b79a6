"""The ops of ATen in terms of graphir's: a row for each, by the name without overload.

A row takes the arguments of the op's schema, with symbols for tensors (see
graphir.runtime.sources.op_rows). PyTorch decomposes an op without a row before it becomes a call.
Source: native_functions.yaml of PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.location import LEGALIZE
from graphir.promotion.scalars import round_scalar
from graphir.public import DType, Graph, Op, Symbol, ops
from graphir.runtime.sources.op_rows import (
    Attribute,
    Emitted,
    OpRows,
    RowCall,
    SymbolOrNone,
    product_layout,
)
from graphir.runtime.sources.torch_.decompositions import name_of
from graphir.runtime.sources.torch_.tensors import Tensor, Torch, tensors_in, type_of

Operand: TypeAlias = Any
"""A symbol, or a Python number, of an argument that PyTorch takes as either."""

Axes: TypeAlias = "int | Sequence[int] | None"

HALVES = (DType.float16, DType.bfloat16)
"""The dtypes whose elements PyTorch's kernels compute with in float32, the "opmath" dtype."""


class AtenRun(NamedTuple):
    """An op of ATen that has run: its arguments as symbols and as tensors, and its results."""

    torch: Torch
    op: Torch
    operands: tuple[Sequence[Any], Mapping[str, Any]]
    real: tuple[Sequence[Any], Mapping[str, Any]]
    results: Sequence[Tensor]

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return tensors_in(self.torch, self.real)


class AtenCall(RowCall):
    """A call of an op of ATen. `convert` returns a symbol in a dtype, with an origin in the op."""

    def __init__(
        self, graph: Graph, run: AtenRun, convert: Callable[[Symbol, DType, str], Symbol]
    ) -> None:
        super().__init__(graph, name_of(run.op), [type_of(x) for x in run.results])
        self.overload: str = run.op._overloadname
        self._run, self._convert = run, convert

    def __call__(self, op: Op, *operands: Operand, **attrs: Attribute) -> Symbol:
        """Add an op on symbols and Python numbers to the graph."""
        return self.graph.apply(op, operands, attrs)

    def cast(self, x: Symbol, to: DType) -> Symbol:
        """Return a symbol in a dtype, for a conversion that the op itself makes."""
        return self._convert(x, to, f"torch.{self.name}")

    @property
    def results(self) -> Sequence[Tensor]:
        """The tensors of the run."""
        return self._run.results

    def vectors(self, wide: bool) -> bool | NDArray[np.bool_]:
        """Return where the kernel computes in vectors, `wide` if it is compiled for AVX512.

        That is everywhere, nowhere, or a mask.
        """
        has_avx512 = wide and self._run.torch.backends.cpu.get_cpu_capability() == "AVX512"
        return vector_places(self.results[0], self._run.tensors, 512 if has_avx512 else 256)

    def onednn(self, is_elementwise: bool) -> bool:
        """Return whether oneDNN computes convolutions, or elementwise functions of the operands."""
        operands = self._run.tensors if is_elementwise else ()
        are_dense = all(x.is_contiguous() and x.numel() > 1 for x in operands)
        return are_dense and _has_onednn(self._run.torch, self.results[0].dtype)

    @property
    def is_half(self) -> bool:
        """Whether the first result is of 16 bits, and PyTorch's kernel computes in 32."""
        return self.type.dtype in HALVES

    def wide(self, x: Operand) -> Any:
        """Return an operand of a kernel of halves in the dtype in which the kernel computes.

        A tensor of another dtype than a half enters such a kernel converted to the result's dtype,
        unless it has no axes (see `scalar`).
        """
        if not isinstance(x, Symbol):
            return x
        return self.inside(self.cast(x, self.type.dtype), DType.float32)

    def scalar(self, x: Operand) -> Any:
        """Return a number, or a tensor without axes, in float32 without a rounding to a half."""
        if not isinstance(x, Symbol) or x.dtype is self.type.dtype:
            return self.wide(x)
        return self.cast(x, DType.float32)

    def operand(self, x: Operand) -> Symbol:
        """Return an operand in the dtype of the result."""
        if isinstance(x, Symbol):
            return self.cast(x, self.type.dtype)
        return self.graph.scalar(self.half_number(x), self.type.dtype)

    def half_number(self, number: Operand) -> Operand:
        """Return a Python number as the result's dtype holds it."""
        return round_scalar(number, self.type.dtype)

    def narrow(self, x: Symbol) -> Symbol:
        """Return a result of a kernel of halves, rounded once."""
        return self.inside(x, self.type.dtype, "result")

    def by_place(
        self, vector: Callable[[], Symbol], element: Callable[[], Symbol], wide: bool = False
    ) -> Symbol:
        """Return what a kernel computes in vectors, or element by element, by the place.

        The elements that fill no two vectors, and those with strides, run in a second loop, which
        some kernels write in another way.
        """
        where = self.vectors(wide) if self.type.dtype.is_float else True
        if isinstance(where, bool):
            return vector() if where else element()
        return self(ops.where, self.constant(where), vector(), element())

    def inside(self, x: Symbol, to: DType, operand: str = "x") -> Symbol:
        """Return a cast inside of a kernel, such as `legalize` inserts."""
        return self.graph.cast_for(x, to, operand, self.name, LEGALIZE)

    def multiply_add(self, left: Symbol, right: Symbol, addend: Symbol) -> Symbol:
        """Return left * right + addend of float32, fused.

        The product is exact in float64. The sum is rounded twice, which shows where float64 holds
        a product just between two numbers of float32 and nothing of the addend, as in 3e30 + 1.
        """
        left, right, addend = (self.inside(x, DType.float64) for x in (left, right, addend))
        exact = self(ops.add, self(ops.multiply, left, right), addend)
        return self.inside(exact, DType.float32)

    def places(self, places: ArrayLike) -> Symbol:
        """Return a constant of indices."""
        return self.constant(np.array(places, np.int64), DType.int64)


_PLAIN = """
    abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor log log10 log1p log2
    neg=negative relu sigmoid sin sinh sqrt tan tanh trunc silu square
    isnan=is_nan isinf=is_inf signbit logical_not bitwise_not=bitwise_invert deg2rad positive
    real imag _conj=conj _conj_physical=conj conj_physical=conj _neg_view=negative
    resolve_conj=positive
    fmod atan2 eq=equal ne=not_equal lt=less
    le=less_equal gt=greater ge=greater_equal logical_and logical_or logical_xor bitwise_and
    bitwise_or bitwise_xor and=bitwise_and or=bitwise_or xor=bitwise_xor hypot logaddexp copysign
    nextafter bitwise_left_shift=left_shift bitwise_right_shift=right_shift
    lshift=left_shift rshift=right_shift complex=as_complex
"""

_WITHOUT_EFFECT = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit", "generator")
)
"""The arguments of ops that change no values."""

ROWS = OpRows(_PLAIN, _WITHOUT_EFFECT)
row = ROWS.row


def vector_places(
    result: Tensor, operands: Sequence[Tensor], bits: int
) -> bool | NDArray[np.bool_]:
    """Return where a kernel computes in vectors of `bits`: True, False, or a mask.

    Operands of another dtype than the result's are converted before. The loop runs along the inner
    axes over which no operand jumps, two vectors at a time.
    Source: vectorized_loop of aten/src/ATen/native/cpu/Loops.h. Loops of several threads, which
    split results of more than 32,768 elements, have more ends.
    """
    shape: Sequence[int] = result.shape
    width: int = 2 * bits // (8 * result.element_size())
    strides = [x.expand(shape).stride() for x in operands if x.dim()]
    order = sorted(range(len(shape)), key=lambda axis: [x[axis] for x in strides], reverse=True)
    if not strides or any(x[order[-1]] not in (0, 1) for x in strides):
        return False
    size = 1
    for axis in reversed(order):
        if any(x[axis] != x[order[-1]] * size for x in strides):
            break
        size *= shape[axis]
    end = size - size % width
    if end in (0, size):
        return bool(end)
    mask = np.arange(int(np.prod(shape))) % size < end
    return mask.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def _has_onednn(torch: Torch, dtype: Torch) -> bool:
    """Whether oneDNN computes functions of a dtype on this processor."""
    kinds = {torch.bfloat16: "bf16", torch.float16: "fp16"}
    if dtype not in kinds or not torch.backends.mkldnn.is_available():
        return torch.backends.mkldnn.is_available()
    return getattr(torch.ops.mkldnn, f"_is_mkldnn_{kinds[dtype]}_supported")()


def sizes(x: Symbol) -> tuple[int, ...]:
    """Return a shape; the dims of a recording are known sizes."""
    return cast("tuple[int, ...]", x.shape)


# -- elementwise


@row("sign", "sgn", "heaviside")
def _sign(e: AtenCall, x: Symbol, *values: Attribute) -> Emitted:
    """Return the sign or the step function: of NaN it is 0."""
    result = e(ops.heaviside if values else ops.sign, x, *values)
    return e(ops.where, e(ops.is_nan, x), 0, result) if x.dtype.is_float else result


@row("where")
def _where(e: AtenCall, condition: Symbol, *cases: Attribute) -> Emitted:
    return e(ops.where, condition, *cases) if cases else None


@row("clamp", "clamp_min")
def _clamp(
    e: AtenCall, x: Symbol, low: Operand = None, high: Operand = None, **bounds: Attribute
) -> Emitted:
    low, high = bounds.get("min", low), bounds.get("max", high)
    if e.type.dtype.is_float:  # beside a bound of 0, -0.0 stays
        if _is_zero(low):
            x, low = e(ops.relu, e.cast(x, e.type.dtype)), None
        if _is_zero(high):
            x, high = e(ops.where, e(ops.greater, x, 0), high, x), None
    if low is not None and high is not None:
        return e(ops.clip, x, low, high)
    if low is not None:
        return e(ops.maximum, x, low)
    return x if high is None else e(ops.minimum, x, high)


def _is_zero(bound: Operand) -> bool:
    return not isinstance(bound, Symbol) and bound == 0


@row("exp2")
def _exp2(e: AtenCall, x: Symbol) -> Emitted:
    return e(ops.pow, 2.0, x)


@row("view_as_real")
def _view_as_real(e: AtenCall, x: Symbol) -> Emitted:
    return e(ops.stack, e(ops.real, x), e(ops.imag, x), axis=x.rank)


@row("view_as_complex")
def _view_as_complex(e: AtenCall, x: Symbol) -> Emitted:
    parts = [e.shaped(e.cut(x, x.rank - 1, i, i + 1), x.shape[:-1]) for i in (0, 1)]
    return e(ops.as_complex, *parts)


@row("polar")
def _polar(e: AtenCall, size: Symbol, angle: Symbol) -> Emitted:
    parts = (e(ops.multiply, size, e(op, angle)) for op in (ops.cos, ops.sin))
    return e(ops.as_complex, *parts)


@row("angle")
def _angle(e: AtenCall, x: Symbol) -> Emitted:
    if x.dtype.is_complex:
        return e(ops.atan2, e(ops.imag, x), e(ops.real, x))
    x = e.cast(x, e.type.dtype)
    turn = e(ops.where, e(ops.less, x, 0), e.graph.full(np.pi, x.shape, x.dtype), 0.0)
    return e(ops.where, e(ops.is_nan, x), x, turn)


@row("_trilinear")
def _trilinear(e: AtenCall, x: Symbol, y: Operand, z: Operand, *settings: Attribute) -> Emitted:
    operands = [x, y, z]
    for i, dims in enumerate(settings[:3]):
        for dim in dims:
            operands[i] = e(ops.unsqueeze, operands[i], axis=dim)
    product = e(ops.multiply, e(ops.multiply, operands[0], operands[1]), operands[2])
    return e(ops.sum, product, axis=tuple(settings[3]))


@row("clone", "detach", "alias", "lift_fresh", "lift_fresh_copy", "contiguous", "lift")
@row("resolve_neg")
def _same(e: AtenCall, x: Symbol) -> Emitted:
    return x


# -- creation


def _fill(value: Operand, e: AtenCall, *args: Attribute, **keywords: Attribute) -> Emitted:
    """A fill: the value is an argument's place, or itself in a tuple."""
    number = args[value] if isinstance(value, int) else value[0]
    if isinstance(number, Symbol):
        return e.spread(e.cast(number, e.type.dtype), e.type.shape)
    return e.graph.full(number, e.type.shape, e.type.dtype)


for _name in ("zeros", "zeros_like", "new_zeros", "zero", "empty", "empty_like", "new_empty"):
    ROWS[_name] = partial(_fill, (0,))
for _name in ("empty_strided", "new_empty_strided", "empty_permuted"):
    ROWS[_name] = partial(_fill, (0,))
for _name in ("ones", "ones_like", "new_ones"):
    ROWS[_name] = partial(_fill, (1,))
for _name, _place in {"full": 1, "full_like": 1, "fill": 1, "scalar_tensor": 0}.items():
    ROWS[_name] = partial(_fill, _place)
ROWS["new_full"] = partial(_fill, 2)


@row("arange")
def _arange(e: AtenCall, *limits: Attribute, dtype: Operand = None) -> Emitted:
    start, _, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
    if isinstance(start, float) or isinstance(step, float):
        return None
    return e(ops.range, dtype=e.type.dtype, start=start, step=step, size=e.type.shape[0])


@row("copy")
def _copy(e: AtenCall, x: Symbol, y: Operand, *_: Attribute) -> Emitted:
    return e.spread(e.cast(y, x.dtype), x.shape)


# -- reductions and rows


def axes_of(x: Symbol, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes of a reduction; all for None and ()."""
    dims = [dim] if isinstance(dim, int) else [*(dim or ())]
    return tuple(axis % max(x.rank, 1) for axis in dims) or tuple(range(x.rank))


def _reduction(
    op: Op, e: AtenCall, x: Symbol, dim: Axes = None, keepdim: bool = False, **more: Attribute
) -> Emitted:
    attrs: dict[str, Any] = {}
    if more.pop("dtype", None) is not None and x.dtype is not e.type.dtype:
        x = e.cast(x, e.type.dtype)
    if op in (ops.sum, ops.prod) and e.type.dtype.is_integer:
        attrs["dtype"] = e.type.dtype
    if not x.rank:
        x = e.shaped(x, (1,))
    return e.shaped(e(op, x, axis=axes_of(x, dim), keepdims=keepdim, **attrs), e.type.shape)


for _name in ("sum", "prod", "mean", "amax", "amin", "any", "all"):
    ROWS[_name] = partial(_reduction, ops.find({"amax": "max", "amin": "min"}.get(_name, _name)))


def _spread_of(
    op: Op, e: AtenCall, x: Symbol, dim: Axes = None, *args: Attribute, **keywords: Attribute
) -> Emitted:
    """Var and std: the correction is `unbiased` in older overloads."""
    if isinstance(dim, bool):
        dim, args = None, (dim, *args)
    unbiased = args[0] if args else keywords.get("unbiased", True)
    keepdim = args[1] if len(args) > 1 else keywords.get("keepdim", False)
    correction = keywords.get("correction")
    correction = int(unbiased) if correction is None else correction
    if correction != int(correction) or not x.rank:
        return None
    return e(op, x, axis=axes_of(x, dim), keepdims=keepdim, correction=int(correction))


ROWS["var"], ROWS["std"] = partial(_spread_of, ops.var), partial(_spread_of, ops.std)


def _extreme(
    op: Op, locate: Op, e: AtenCall, x: Symbol, dim: Operand = None, keepdim: bool = False
) -> Emitted:
    if isinstance(dim, Symbol):
        return e(ops.maximum if op is ops.max else ops.minimum, x, dim)
    if dim is None or not x.rank:
        return e(op, x, axis=tuple(range(x.rank))) if dim is None and x.rank else None
    values = e(op, x, axis=(dim % x.rank,), keepdims=keepdim)
    return [values, e(locate, x, axis=dim % x.rank, keepdims=keepdim)]


ROWS["max"] = partial(_extreme, ops.max, ops.argmax)
ROWS["min"] = partial(_extreme, ops.min, ops.argmin)


def _locator(op: Op, e: AtenCall, x: Symbol, dim: Axes = None, keepdim: bool = False) -> Emitted:
    return e(op, x, axis=dim, keepdims=keepdim) if x.rank else None


ROWS["argmax"], ROWS["argmin"] = partial(_locator, ops.argmax), partial(_locator, ops.argmin)


def _cumulative(op: Op, e: AtenCall, x: Symbol, dim: int, *, dtype: Operand = None) -> Emitted:
    if dtype is not None:
        x = e.cast(x, e.type.dtype)
    result = e(op, x, axis=dim, dtype=e.type.dtype)
    if op is ops.cumulative_sum and e.type.dtype.is_float:
        result = e(ops.add, result, 0.0)  # PyTorch adds to 0.0, so that none is -0.0
    return result


ROWS["cumsum"] = partial(_cumulative, ops.cumulative_sum)
ROWS["cumprod"] = partial(_cumulative, ops.cumulative_prod)


def _softmax(op: Op, e: AtenCall, x: Symbol, dim: int, half_to_float: bool = False) -> Emitted:
    return e(op, e.cast(x, e.type.dtype) if half_to_float else x, axis=dim)


ROWS["_softmax"] = partial(_softmax, ops.softmax)
ROWS["_log_softmax"] = partial(_softmax, ops.logsoftmax)


@row("sort")
def _sort(e: AtenCall, x: Symbol, *args: Attribute, **keywords: Attribute) -> Emitted:
    stable_first = "stable" in e.overload and args and not isinstance(args[0], int)
    args = args[1:] if stable_first or (args and isinstance(args[0], bool)) else args
    dim = args[0] if args else keywords.get("dim", -1)
    descending = args[1] if len(args) > 1 else keywords.get("descending", False)
    order = e(ops.argsort, x, axis=dim, descending=descending)
    return [e(ops.take_along, x, order, axis=dim), order] if x.rank else None


@row("topk")
def _topk(
    e: AtenCall, x: Symbol, k: int, dim: int = -1, largest: bool = True, *_: Attribute
) -> Emitted:
    if not x.rank:
        return None
    axis: int = dim % x.rank
    order = e(ops.argsort, x, axis=axis, descending=largest)
    order = e.cut(order, axis, 0, k)
    return [e(ops.take_along, x, order, axis=axis), order]


@row("native_layer_norm")
def _layer_norm(
    e: AtenCall, x: Symbol, shape: Operand, weight: SymbolOrNone, bias: SymbolOrNone, epsilon: float
) -> Emitted:
    if len(shape) != 1:
        return None
    wide = e.wide(x) if e.is_half else e.cast(x, e.result_type(1).dtype)
    mean = e(ops.mean, wide, axis=(-1,), keepdims=True)
    variance = e(ops.var, wide, axis=(-1,), keepdims=True)
    rstd = e(ops.rsqrt, e(ops.add, variance, epsilon))
    if e.is_half:  # fused, so that equal elements leave the rounding of their product
        shift = e(ops.negative, e(ops.multiply, mean, rstd))
        result = e.multiply_add(wide, rstd, shift)
        for op, operand in ((ops.multiply, weight), (ops.add, bias)):
            if operand is not None:
                result = e(op, result, e.inside(operand, DType.float32))
        moments = [e.inside(x, e.result_type(1).dtype, "result") for x in (mean, rstd)]
        return [e.narrow(result), *moments]
    if weight is not None and bias is not None:
        result = e(ops.layer_norm, x, weight, bias, epsilon=epsilon)
        return [result, mean, rstd]
    result = e(ops.multiply, e(ops.subtract, wide, mean), rstd)
    result = result if weight is None else e(ops.multiply, result, weight)
    result = result if bias is None else e(ops.add, result, bias)
    return [e.cast(result, e.type.dtype), mean, rstd]


@row("native_group_norm")
def _group_norm(
    e: AtenCall,
    x: Symbol,
    weight: SymbolOrNone,
    bias: SymbolOrNone,
    count: int,
    channels: int,
    size: int,
    groups: int,
    epsilon: float,
) -> Emitted:
    """The norm in the steps of PyTorch's kernel, so that equal elements leave its roundings.

    Source: aten/src/ATen/native/cpu/group_norm_kernel.cpp, whose sums of a product are fused.
    """
    if not (e.is_half or e.type.dtype is DType.float32) or not count * size:
        return None
    wide = e.wide(x) if e.is_half else e.cast(x, DType.float32)
    by_group = e.shaped(wide, (count, groups, channels // groups, size))
    exact = e.inside(by_group, DType.float64)  # whose mean of equal elements is their value
    mean, variance = (e(op, exact, axis=(2, 3), keepdims=True) for op in (ops.mean, ops.var))
    rstd = e(ops.divide, 1.0, e(ops.sqrt, e(ops.add, variance, epsilon)))
    mean, rstd = (e.inside(each, DType.float32) for each in (mean, rstd))
    if weight is None and bias is None:
        result = e(ops.multiply, e(ops.subtract, by_group, mean), rstd)
    else:
        shape = 1, groups, channels // groups, 1
        scale = rstd
        if weight is not None:
            scale = e(ops.multiply, rstd, e.shaped(e.inside(weight, DType.float32), shape))
        shift = e(ops.negative, e(ops.multiply, scale, mean))
        if bias is not None:
            addend = e.shaped(e.inside(bias, DType.float32), shape)
            shift = e.multiply_add(e(ops.negative, scale), mean, addend)
        result = e.multiply_add(by_group, scale, shift)
    result = e.shaped(result, e.type.shape)
    moments = [e.inside(e.shaped(y, (count, groups)), e.result_type(1).dtype) for y in (mean, rstd)]
    return [e.narrow(result) if e.is_half else result, *moments]


# -- contractions


@row("mm", "bmm", "mv", "dot", "matmul")
def _matmul(e: AtenCall, a: Symbol, b: Symbol) -> Emitted:
    return e(ops.matmul, a, b, layout=product_layout(a, b))


@row("addmm", "baddbmm", "addmv")
def _addmm(
    e: AtenCall, x: Symbol, a: Symbol, b: Symbol, *, beta: Operand = 1, alpha: Operand = 1
) -> Emitted:
    """The product of halves is rounded once, with the sum."""
    x, a, b = (e.wide(operand) if e.is_half else operand for operand in (x, a, b))
    product = _matmul(e, a, b)
    product = product if alpha == 1 else e(ops.multiply, product, alpha)
    total = e(ops.add, product, x if beta == 1 else e(ops.multiply, x, beta))
    return e.narrow(total) if e.is_half else total


# -- movement


@row("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "_reshape_alias", "flatten")
@row("squeeze_", "unsafe_view")
def _reshape(e: AtenCall, x: Symbol, *_: Attribute) -> Emitted:
    return None if e.overload == "dtype" else e.shaped(x, e.type.shape)


@row("permute")
def _permute(e: AtenCall, x: Symbol, dims: Sequence[int]) -> Emitted:
    return e(ops.permute, x, dims=[dim % x.rank for dim in dims])


@row("transpose")
def _transpose(e: AtenCall, x: Symbol, first: int, second: int) -> Emitted:
    return e(ops.transpose, x, axis1=first, axis2=second) if x.rank else x


@row("expand")
def _expand(e: AtenCall, x: Symbol, *_: Attribute) -> Emitted:
    return e.spread(x, e.type.shape)


def _limits(size: int, start: int | None, stop: int | None, step: int = 1) -> tuple[int, int, int]:
    return slice(start, stop, step).indices(size)


@row("slice")
def _slice(
    e: AtenCall, x: Symbol, dim: int = 0, start: Operand = None, end: Operand = None, step: int = 1
) -> Emitted:
    axis: int = dim % x.rank
    first, last, _ = _limits(sizes(x)[axis], start, end)
    return e.cut(x, axis, first, max(first, last), step)


@row("select")
def _select(e: AtenCall, x: Symbol, dim: int, index: int) -> Emitted:
    axis: int = dim % x.rank
    place = index % sizes(x)[axis]
    return e.shaped(e.cut(x, axis, place, place + 1), e.type.shape)


@row("slice_scatter")
def _slice_scatter(
    e: AtenCall, x: Symbol, y: Operand, dim: int = 0, start: Operand = None, *args: Attribute
) -> Emitted:
    end: Any
    step: Any
    end, step = (*args, *(None, 1)[len(args) :])
    axis: int = dim % x.rank
    first, last, by = [0] * x.rank, [*sizes(x)], [1] * x.rank
    first[axis], last[axis], by[axis] = _limits(sizes(x)[axis], start, end, step)
    return e(ops.slice_update, x, e.cast(y, x.dtype), start=first, stop=last, step=by)


def _concat(op: Op, e: AtenCall, tensors: Operand, dim: int = 0) -> Emitted:
    parts = [x for x in tensors if op is ops.stack or x.rank > 1 or x.shape != (0,)]
    return e(op, *parts, axis=dim)


ROWS["cat"], ROWS["stack"] = partial(_concat, ops.concat), partial(_concat, ops.stack)
ROWS["concat"] = ROWS["cat"]


@row("flip")
def _flip(e: AtenCall, x: Symbol, dims: Sequence[int]) -> Emitted:
    return e(ops.flip, x, axis=tuple(dims)) if x.rank and dims else x


@row("roll")
def _roll(e: AtenCall, x: Symbol, shifts: Sequence[int], dims: Sequence[int] = ()) -> Emitted:
    if not dims:
        flat = e.shaped(x, (int(np.prod(sizes(x))),))
        return e.shaped(e(ops.roll, flat, shift=shifts[0], axis=0), x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = e(ops.roll, x, shift=shift, axis=dim)
    return x


@row("constant_pad_nd")
def _pad(e: AtenCall, x: Symbol, pad: Operand, value: Operand = 0) -> Emitted:
    if any(p < 0 for p in pad):
        return None
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
    return e(ops.pad, x, padding=[(0, 0)] * (x.rank - len(pairs)) + pairs, value=value)
