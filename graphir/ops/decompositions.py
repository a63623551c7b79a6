"""The decompositions of composite ops, each written once in terms of primitive ops.

A decomposition is a function `(p, *operands, **attributes)`. `p` is a namespace of the primitives
by name. `p.number(value, like)` is a number in the dtype of another value. `p.count(x, axes, less,
like)` is the number of elements along axes, minus `less`, but at least 0. The same lines run on
NumPy arrays, where they are the kernel (graphir/semantics/kernels.py), and on symbols, where they
rewrite a graph for a target (passes/decompose.py). Operands have the dtypes of a lowered graph.
`.dtype` is a DType or a NumPy dtype; `.shape` holds ints or, for symbols, named dims.

A decomposition returns None if the op is a primitive at these dtypes or attributes. The docstring
of a decomposition is its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

Axes = tuple[int, ...]
Sizes: TypeAlias = Sequence[Any]
"""Ints or, of symbols, named dims."""


class Tensor(Protocol):
    """An operand or a result: a NumPy array, or a symbol of a graph."""

    dtype: Any
    shape: Any

    def __neg__(self) -> Tensor: ...
    def __add__(self, other: Tensor, /) -> Tensor: ...
    def __sub__(self, other: Tensor, /) -> Tensor: ...
    def __mul__(self, other: Tensor, /) -> Tensor: ...
    def __truediv__(self, other: Tensor, /) -> Tensor: ...
    def __and__(self, other: Tensor, /) -> Tensor: ...
    def __or__(self, other: Tensor, /) -> Tensor: ...
    def __xor__(self, other: Tensor, /) -> Tensor: ...
    def __lt__(self, other: Tensor, /) -> Tensor: ...
    def __gt__(self, other: Tensor, /) -> Tensor: ...
    def __ge__(self, other: Tensor, /) -> Tensor: ...


class Primitives(Protocol):
    """The namespace `p` of a decomposition: the ops by their names, and two functions."""

    def number(self, value: float, like: Tensor, /) -> Tensor:
        """Return a number in the dtype of another value."""
        ...

    def count(self, x: Tensor, axes: Axes, less: int = 0, /, *, like: Tensor) -> Tensor:
        """Return the number of elements along axes minus `less`, at least 0."""
        ...

    def __getattr__(self, op: str, /) -> Callable[..., Tensor]: ...


class Decomposition(NamedTuple):
    """A composite op in terms of primitives.

    `ulps` bounds the difference between its result and the kernel's, in units of the last place of
    float32 and float64. 0 means that the decomposition has the kernel's bits. Bounded
    decompositions serve targets alone. An op without a kernel computes its decomposition.
    """

    function: Callable[..., Any]
    ulps: int = 0


DECOMPOSITIONS: dict[str, Decomposition] = {}
"""The decompositions by the names of their ops."""


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: register the function as the decomposition of the op with its name, at 0 ulps."""
    return bounded(0)(function)


def bounded(ulps: int, names: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: register a decomposition with an error bound in ulps, by its name or `names`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in (names or function.__name__).split():
            DECOMPOSITIONS[name] = Decomposition(function, ulps)
        return function

    return register


# -- arithmetic


@exact
def positive(p: Primitives, x: Tensor) -> Tensor:
    """The operand itself."""
    return x


@exact
def square(p: Primitives, x: Tensor) -> Tensor:
    """The product x * x."""
    return p.multiply(x, x)


@exact
def relu(p: Primitives, x: Tensor) -> Tensor:
    """0 for what is below, else the operand, of which -0.0 and NaN stay."""
    zero = p.number(0, x)
    return p.where(p.less(x, zero), zero, x)


@exact
def clip(p: Primitives, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The lesser of max(x, low) and high."""
    return p.minimum(p.maximum(x, low), high)


@exact
def abs(p: Primitives, x: Tensor) -> Tensor | None:  # noqa: A001 -- named as the op
    """The operand itself if its dtype has no negative numbers, else a primitive."""
    return x if x.dtype.kind in "bu" else None


@exact
def sign(p: Primitives, x: Tensor) -> Tensor | None:
    """-1, 0 or 1, and NaN for NaN. The sign of a complex number is a primitive."""
    kind = x.dtype.kind
    if kind in "bc":
        return x if kind == "b" else None
    zero, unity = p.number(0, x), p.number(1, x)
    if kind == "u":
        return p.minimum(x, unity)
    unit = p.where(x > zero, unity, p.where(x < zero, p.number(-1, x), zero))
    return unit if kind == "i" else p.where(p.equal(x, x), unit, x)


@exact
def remainder(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of y, even if it is 0: fmod, plus y where the signs differ."""
    rest, zero = p.fmod(x, y), p.number(0, x)
    floored = p.where(_crossed(p, rest, y, zero), rest + y, rest)
    if x.dtype.kind != "f":
        return floored
    return p.where(p.equal(rest, zero), p.copysign(zero, y), floored)


@exact
def floor_divide(p: Primitives, x: Tensor, y: Tensor) -> Tensor | None:
    """The floor of x / y, computed from the remainder as in NumPy; a primitive for integers."""
    if x.dtype.kind != "f":
        return None
    rest, zero, unity = p.fmod(x, y), p.number(0, x), p.number(1, x)
    below = (x - rest) / y
    quotient = p.where(_crossed(p, rest, y, zero), below - unity, below)
    floor = p.floor(quotient)
    nearest = p.where(quotient - floor > p.number(0.5, x), floor + unity, floor)
    ratio = x / y
    signed = p.where(p.equal(quotient, zero), p.copysign(zero, ratio), nearest)
    return p.where(p.equal(y, zero), ratio, signed)


def _crossed(p: Primitives, rest: Tensor, y: Tensor, zero: Tensor) -> Tensor:
    """Whether fmod is nonzero and its sign, the sign of x, differs from that of y."""
    return p.not_equal(rest, zero) & ((rest < zero) ^ (y < zero))


@exact
def reciprocal(p: Primitives, x: Tensor) -> Tensor | None:
    """The quotient 1 / x; for integers truncated, with 0 for 0; a primitive for complex numbers."""
    if x.dtype.kind == "c":
        return None
    unity = p.number(1, x)
    if x.dtype.kind in "iu":
        return p.where(p.equal(p.abs(x), unity), x, p.number(0, x))
    return p.divide(unity, x)


@bounded(0, "floor ceil")
def _round(p: Primitives, x: Tensor) -> Tensor | None:
    """The operand itself for integers and bools, else a primitive."""
    return x if x.dtype.kind in "biu" else None


@exact
def trunc(p: Primitives, x: Tensor) -> Tensor:
    """The operand rounded towards 0."""
    if x.dtype.kind in "biu":
        return x
    return p.where(x < p.number(0, x), p.ceil(x), p.floor(x))


@exact
def round(p: Primitives, x: Tensor) -> Tensor:  # noqa: A001 -- named as the op
    """Both parts rounded for a complex number; the operand itself for integers and bools."""
    if x.dtype.kind == "c":
        return _by_part(p, x, p.round)
    return _round(p, x)


def _by_part(p: Primitives, x: Tensor, function: Callable[[Any], Any]) -> Tensor:
    return p.as_complex(function(p.real(x)), function(p.imag(x)))


# -- functions of floats


@exact
def rsqrt(p: Primitives, x: Tensor) -> Tensor:
    """The reciprocal of sqrt(x), with two roundings."""
    return p.reciprocal(p.sqrt(x))


@bounded(3)
def log2(p: Primitives, x: Tensor) -> Tensor:
    """The natural logarithm times 1 / log(2)."""
    return _scaled(p, p.log(x), 1 / math.log(2))


@bounded(3)
def log10(p: Primitives, x: Tensor) -> Tensor:
    """The natural logarithm times 1 / log(10)."""
    return _scaled(p, p.log(x), 1 / math.log(10))


def _scaled(p: Primitives, x: Tensor, factor: float) -> Tensor:
    """The product with a real factor; a complex number is scaled by part."""
    if x.dtype.kind == "c":
        return _by_part(p, x, lambda part: part * p.number(factor, part))
    return x * p.number(factor, x)


@exact
def deg2rad(p: Primitives, x: Tensor) -> Tensor:
    """The product with pi / 180, rounded to the dtype of x."""
    return x * p.number(math.pi / 180, x)


@exact
def heaviside(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """The step function: 0 for negative x, 1 for positive x, y for x = 0, NaN for NaN."""
    zero, unity = p.number(0, x), p.number(1, x)
    step = p.where(x > zero, unity, p.where(x < zero, zero, x))
    return p.where(p.equal(x, zero), y, step)


@exact
def sigmoid(p: Primitives, x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) for negative x, so that exp never overflows."""
    unity, small = p.number(1, x), p.exp(-p.abs(x))
    return p.where(x >= p.number(0, x), unity, small) / (small + unity)


@exact
def silu(p: Primitives, x: Tensor) -> Tensor:
    """The product x * sigmoid(x); NaN for -inf (-inf * 0)."""
    return x * p.sigmoid(x)


@exact
def softplus(p: Primitives, x: Tensor) -> Tensor:
    """`max(x, 0) + log(1 + exp(-|x|))`, in which exp never overflows."""
    return p.maximum(x, p.number(0, x)) + p.log1p(p.exp(-p.abs(x)))


@exact
def gelu(p: Primitives, x: Tensor, approximate: str) -> Tensor | None:
    """The Gaussian error linear unit (Hendrycks and Gimpel, arXiv 1606.08415); NaN for -inf.

    "tanh": x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))); "quick": x * sigmoid(1.702 x);
    "none", x * Phi(x), is a primitive.
    """
    if approximate == "quick":
        return x * p.sigmoid(x * p.number(1.702, x))
    if approximate == "none":
        return None
    slope, cube, half, unity = (p.number(value, x) for value in _TANH_FORM)
    # One expression, because NumPy reuses the memory of unnamed temporaries for results.
    return x * half * (p.tanh((x + x * x * x * cube) * slope) + unity)


_TANH_FORM = (math.sqrt(2 / math.pi), 0.044715, 0.5, 1)


@bounded(3)
def hypot(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """The length of a vector, scaled by its longer component.

    The length is infinite if a component is infinite, even beside NaN.
    """
    x, y = p.abs(x), p.abs(y)
    zero, infinite = p.number(0, x), p.number(math.inf, x)
    longer, shorter = p.where(x > y, x, y), p.where(x > y, y, x)
    part = p.where(p.equal(longer + shorter, zero), zero, shorter / longer)
    length = longer * p.sqrt(part * part + p.number(1, x))
    return p.where(p.equal(x, infinite) | p.equal(y, infinite), infinite, length)


@bounded(4)
def logaddexp(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """`log(exp(x) + exp(y))`, as `max(x, y) + log(1 + exp(-|x - y|))`."""
    rest = p.log1p(p.exp(-p.abs(x - y)))
    return p.where(p.equal(x, y), x + p.number(math.log(2), x), p.maximum(x, y) + rest)


@exact
def copysign(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """The magnitude of x with the sign of y."""
    return p.where(p.logical_xor(p.signbit(x), p.signbit(y)), -x, x)


@bounded(2)
def cbrt(p: Primitives, x: Tensor) -> Tensor:
    """The cube root: pow, then a Newton step. Zeros, infinities and NaN stay themselves."""
    root = p.pow(p.abs(x), p.number(1 / 3, x))
    nearer = root - (root - p.abs(x) / (root * root)) * p.number(1 / 3, x)
    special = p.equal(x, p.number(0, x)) | p.logical_not(p.is_finite(x))
    return p.where(special, x, p.copysign(nearer, x))


# -- predicates and comparison


@exact
def is_nan(p: Primitives, x: Tensor) -> Tensor:
    """Whether x differs from itself."""
    return p.not_equal(x, x)


@exact
def is_inf(p: Primitives, x: Tensor) -> Tensor:
    """Whether the magnitude of x, or of a part of x, is infinite; False for integers."""
    if x.dtype.kind in "biu":
        return p.not_equal(x, x)
    if x.dtype.kind == "c":
        return p.is_inf(p.real(x)) | p.is_inf(p.imag(x))
    return p.equal(p.abs(x), p.number(math.inf, x))


@exact
def is_finite(p: Primitives, x: Tensor) -> Tensor:
    """Whether the magnitude of x, or of each part of x, is below infinity; True for integers."""
    if x.dtype.kind in "biu":
        return p.equal(x, x)
    if x.dtype.kind == "c":
        return p.is_finite(p.real(x)) & p.is_finite(p.imag(x))
    return p.less(p.abs(x), p.number(math.inf, x))


@exact
def signbit(p: Primitives, x: Tensor) -> Tensor | None:
    """Whether a number is negative; a primitive for floats, whose zeros and NaN have signs."""
    return None if x.dtype.kind == "f" else p.less(x, p.number(0, x))


def _comparison(name: str) -> None:
    @bounded(0, name)
    def compare(p: Primitives, x: Tensor, y: Tensor) -> Tensor | None:
        """The comparison of int64 and uint64, which is exact: by sign, and then as uint64."""
        if {str(x.dtype), str(y.dtype)} != {"int64", "uint64"}:
            return None
        compared = getattr(p, name)
        negative = [p.cast(unity < p.number(0, unity), to="int8") for unity in (x, y)]
        same = compared(*(p.cast(unity, to="uint64") for unity in (x, y)))
        return p.where(p.equal(*negative), same, compared(-negative[0], -negative[1]))


for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _comparison(_name)


# -- complex numbers


@exact
def real(p: Primitives, x: Tensor) -> Tensor | None:
    """The operand itself if its dtype is real, else a primitive."""
    return None if x.dtype.kind == "c" else x


@exact
def imag(p: Primitives, x: Tensor) -> Tensor | None:
    """Zeros if the operand's dtype is real, else a primitive."""
    return None if x.dtype.kind == "c" else p.broadcast_to(p.number(0, x), shape=x.shape)


@exact
def conj(p: Primitives, x: Tensor) -> Tensor:
    """The operand with its imaginary part negated; a real operand itself."""
    return p.as_complex(p.real(x), -p.imag(x)) if x.dtype.kind == "c" else x


# -- reductions and rows


@bounded(1)
def numpy_sum(
    p: Primitives,
    x: Tensor,
    mask: Tensor,
    axis: Axes,
    keepdims: bool,
    initial: Any = None,
    **order: Any,
) -> Tensor:
    """The start and the sum of x, with 0 where the mask is false, in the order of the op `sum`."""
    total = p.sum(p.where(mask, x, p.number(0, x)), axis=axis, keepdims=keepdims)
    return total if initial is None else p.add(total, p.number(initial, total))


@bounded(1)
def mean(p: Primitives, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    """The sum divided by the count. float32 holds counts up to 2**24 exactly."""
    return p.sum(x, axis=axis, keepdims=keepdims) / p.count(x, axis, like=x)


@bounded(1)
def var(p: Primitives, x: Tensor, axis: Axes, keepdims: bool, correction: int) -> Tensor:
    """The sum of `|x - mean|**2`, divided by n - correction for n elements."""
    centred = x - p.mean(x, axis=axis, keepdims=True)
    if x.dtype.kind == "c":
        squares = p.square(p.real(centred)) + p.square(p.imag(centred))
    else:
        squares = p.square(centred)
    if not correction:
        return p.mean(squares, axis=axis, keepdims=keepdims)
    return p.sum(squares, axis=axis, keepdims=keepdims) / p.count(x, axis, correction, like=squares)


@bounded(1)
def std(p: Primitives, x: Tensor, axis: Axes, keepdims: bool, correction: int) -> Tensor:
    """The square root of the variance."""
    return p.sqrt(p.var(x, axis=axis, keepdims=keepdims, correction=correction))


@exact
def argmax(p: Primitives, x: Tensor, axis: int | None, keepdims: bool) -> Tensor | None:
    """The place of the first greatest complex number, NaN before all; a primitive for others."""
    if x.dtype.kind != "c":
        return None
    hits = _hits(p, x, axis, p.max, -math.inf)
    return p.argmax(hits, axis=axis, keepdims=keepdims)


@exact
def argmin(p: Primitives, x: Tensor, axis: int | None, keepdims: bool) -> Tensor | None:
    """The place of the first least complex number, NaN before all; a primitive for others."""
    if x.dtype.kind != "c":
        return None
    misses = p.logical_not(_hits(p, x, axis, p.min, math.inf))
    return p.argmin(misses, axis=axis, keepdims=keepdims)


def _hits(
    p: Primitives, x: Tensor, axis: int | None, extreme: Callable[..., Any], end: float
) -> Tensor:
    """Whether complex numbers have the extreme real part and then imaginary part, or are NaN."""
    axes = tuple(range(len(x.shape))) if axis is None else (axis,)
    real, imag, nan = p.real(x), p.imag(x), p.not_equal(x, x)
    first = p.equal(real, extreme(real, axis=axes, keepdims=True))
    rest = p.where(first, imag, p.number(end, imag))
    hits = first & p.equal(rest, extreme(rest, axis=axes, keepdims=True))
    return p.where(p.any(nan, axis=axes, keepdims=True), nan, hits)


@exact
def softmax(p: Primitives, x: Tensor, axis: int) -> Tensor:
    """exp(x - max) / sum(exp(x - max)) along an axis; NaN if the maximum is infinite."""
    powers = p.exp(_below_max(p, x, axis))
    return powers / p.sum(powers, axis=(axis,), keepdims=True)


@exact
def logsoftmax(p: Primitives, x: Tensor, axis: int) -> Tensor:
    """(x - max) - log(sum(exp(x - max))) along an axis; NaN if the maximum is infinite."""
    shifted = _below_max(p, x, axis)
    return shifted - p.log(p.sum(p.exp(shifted), axis=(axis,), keepdims=True))


def _below_max(p: Primitives, x: Tensor, axis: int) -> Tensor:
    """The operand minus its maximum along an axis; the operand itself if the axis is empty."""
    size, padded = x.shape[axis], x
    if not isinstance(size, int):  # a named dim may be 0, and an empty axis has no maximum
        padding = [(int(i == axis), 0) for i in range(len(x.shape))]
        padded = p.pad(x, padding=padding, value=-math.inf)
    elif not size:
        return x
    return x - p.max(padded, axis=(axis,), keepdims=True)


@exact
def layer_norm(p: Primitives, x: Tensor, scale: Tensor, shift: Tensor, epsilon: float) -> Tensor:
    """(x - mean) / sqrt(var + epsilon) * scale + shift along the last axis, with var over n.

    `scale` and `shift` are vectors as long as that axis.
    """
    last = (len(x.shape) - 1,)
    centred = x - p.mean(x, axis=last, keepdims=True)
    variance = p.mean(centred * centred, axis=last, keepdims=True)
    normal = centred / p.sqrt(variance + p.number(epsilon, x))
    return p.add(p.multiply(normal, scale), shift)


@exact
def sort(
    p: Primitives, x: Tensor, axis: int, descending: bool, stable: bool = True
) -> Tensor | None:
    """The stable order. If descending, it is the ascending order reversed, so NaN comes first.

    A stable order that ascends is a primitive.
    """
    if not descending:
        return None if stable else p.sort(x, axis=axis)
    return p.flip(p.sort(x, axis=axis), axis=(axis,))


@exact
def argsort(
    p: Primitives, x: Tensor, axis: int, descending: bool, stable: bool = True
) -> Tensor | None:
    """The stable order. If descending, it is argsort of the reversed operand, reversed.

    Equal values keep their order. A stable order that ascends is a primitive.
    """
    if not descending:
        return None if stable else p.argsort(x, axis=axis)
    backwards = p.flip(p.argsort(p.flip(x, axis=(axis,)), axis=axis), axis=(axis,))
    return p.count(x, (axis,), 1, like=backwards) - backwards


# -- contractions


@exact
def outer(p: Primitives, x: Tensor, y: Tensor) -> Tensor:
    """The products of all pairs of the elements of two vectors."""
    return p.multiply(p.reshape(x, shape=(*x.shape, 1)), y)


@bounded(16)
def matmul(p: Primitives, x: Tensor, y: Tensor, layout: Any = None) -> Tensor | None:
    """The product in C order, of operands that lie in another; in C order a primitive."""
    return None if layout is None else p.matmul(x, y)


@exact
def tensordot(p: Primitives, x: Tensor, y: Tensor, axes: tuple[Axes, Axes]) -> Tensor:
    """The product of two matrices, whose rows and columns are the free axes.

    Each operand becomes a matrix by permute and reshape; the contracted axes form the inner axis.
    """
    left, right = axes
    rows = tuple(i for i in range(len(x.shape)) if i not in left)
    columns = tuple(i for i in range(len(y.shape)) if i not in right)
    product = p.matmul(_matrix(p, x, rows, left), _matrix(p, y, right, columns))
    if len(rows) == len(columns) == 1:
        return product
    return p.reshape(product, shape=(*(x.shape[i] for i in rows), *(y.shape[i] for i in columns)))


def _matrix(p: Primitives, x: Tensor, rows: Axes, columns: Axes) -> Tensor:
    shape, order = x.shape, rows + columns
    sizes = tuple(math.prod(shape[i] for i in axes) for axes in (rows, columns))
    if order != tuple(range(len(order))):
        x = p.permute(x, dims=order)
    return x if len(rows) == len(columns) == 1 else p.reshape(x, shape=sizes)
