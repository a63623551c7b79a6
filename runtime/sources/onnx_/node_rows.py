"""The ops of ONNX in terms of graphir's: a row for each (see graphir.runtime.sources.op_rows).

A row takes the inputs of the node, None for absent ones, and its attributes as keywords, with the
defaults of the op's schema. An op without a row is imported by the function body of its schema, if
it has one, before it becomes a call. Source: Operators.md, Operators-ml.md and Changelog.md of ONNX
1.23, from opset 7 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from graphir.location import INTERMEDIATE
from graphir.ops.dims import Size
from graphir.public import DType, GraphError, Op, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.static_values import positions
from graphir.runtime.sources.op_rows import (
    Attribute,
    Emitted,
    OpRows,
    RowCall,
    SymbolOrNone,
    product_layout,
)

if TYPE_CHECKING:
    from graphir.runtime.sources.onnx_.source import OnnxImporter


class NodeCall(RowCall):
    """A node of a model, with the version of its op: the opset in which this form appeared.

    `importer` adds the graphs that are among the attributes, `outer` is the op whose function has
    the node, or "", and `by_pass` the exporter's pass that has added the node, or "".
    """

    types: Sequence[TensorType | None]

    def __init__(self, importer: OnnxImporter, op: str, version: int, by_pass: str = "") -> None:
        super().__init__(importer.graph, op, ())
        self.importer, self.version, self.by_pass = importer, version, by_pass
        self.static, self.outer = importer.static, importer.outer_op

    def __call__(self, op: Op, *operands: Symbol | complex, **attrs: Attribute) -> Symbol:
        """Add an op on symbols and Python numbers, which take the dtype of the first symbol."""
        like = next(x for x in operands if isinstance(x, Symbol))
        args = [x if isinstance(x, Symbol) else self.number(x, like) for x in operands]
        return self.graph.emit(op, tuple(args), attrs)

    def number(self, value: complex, like: Symbol) -> Symbol:
        """Return a 0-d constant of the dtype of `like`, to which the number is rounded."""
        array = np.asarray(value).astype(like.dtype.storage)
        return self.graph.constant_of((like.dtype, array))

    def cast(self, x: Symbol, dtype: DType, operand: str = INTERMEDIATE) -> Symbol:
        """Return a symbol in a dtype, for a conversion that the op itself makes."""
        return self.graph.cast_for(x, dtype, operand, f"onnx.{self.outer or self.name}")

    def ints(self, x: Symbol | Sequence[int] | None) -> list[Any]:
        """Return the values of an attribute, or of an input; GraphError if they are unknown."""
        if x is None or not isinstance(x, Symbol):
            return [*(x or ())]
        value = self.static.of(x)
        if value is None:
            raise GraphError(f"the values of an input of {self.name} are unknown", got=str(x.type))
        flat: list[Any] = value.ravel().tolist()
        return flat

    def take(self, x: Symbol, places: Symbol, axis: int) -> Symbol:
        """Return the elements at places along an axis; other axes may be longer than the places."""
        for i, (whole, size) in enumerate(zip(x.shape, places.shape, strict=True)):
            x = x if i == axis or whole == size else self.cut(x, i, 0, size)
        return self(ops.take_along, x, places, axis=axis)

    def line(self, size: int, axis: int, rank: int) -> Symbol:
        """Return the constant 0, 1, ... of a rank, along an axis."""
        return self.along(self.constant(positions(size)), axis, rank)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the first; GraphError for one that is out of range."""
    if not -rank <= axis < rank:
        raise GraphError(f"an axis is from {-rank} to {rank - 1}", got=str(axis))
    return axis % rank


_PLAIN = """
    Abs=abs Acos=acos Acosh=acosh Asin=asin Asinh=asinh Atan=atan Atanh=atanh Ceil=ceil Cos=cos
    Cosh=cosh Erf=erf Exp=exp Floor=floor Log=log Neg=negative Reciprocal=reciprocal Relu=relu
    Round=round Sigmoid=sigmoid Sign=sign Sin=sin Sinh=sinh Softplus=softplus Sqrt=sqrt Tan=tan
    Tanh=tanh Not=logical_not IsNaN=is_nan BitwiseNot=bitwise_invert
    Add=add Sub=subtract Mul=multiply Equal=equal Less=less Greater=greater LessOrEqual=less_equal
    GreaterOrEqual=greater_equal And=logical_and Or=logical_or Xor=logical_xor
    BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor
    MatMul=matmul Where=where
"""

ROWS = OpRows(_PLAIN)
row = ROWS.row


# -- elementwise


@row("Identity")
def _identity(e: NodeCall, x: Symbol) -> Emitted:
    return x


@row("Div")
def _div(e: NodeCall, x: Symbol, y: Symbol) -> Emitted:
    """Integers divide towards 0."""
    if not x.dtype.is_integer:
        return e(ops.divide, x, y)
    sizes = [e.static.of(operand) for operand in (x, y)]
    are_natural = all(value is not None and _is_natural(value) for value in sizes)
    return e.divide_integers(x, y, are_natural or x.dtype.family != "int")


def _is_natural(value: Any) -> bool:
    """Whether no size is negative; a dim is none."""
    return all(not isinstance(x, int) or x >= 0 for x in value.ravel().tolist())


@row("Mod")
def _mod(e: NodeCall, x: Symbol, y: Symbol, fmod: int) -> Emitted:
    return e(ops.fmod if fmod else ops.remainder, x, y)


@row("Pow")
def _pow(e: NodeCall, x: Symbol, y: Symbol) -> Emitted:
    """The result has the dtype of the base."""
    if x.dtype is y.dtype or x.dtype.is_float:
        return e(ops.pow, x, e.cast(y, x.dtype))
    wide = DType.float64 if y.dtype.is_float else DType.int64
    return e.cast(e(ops.pow, e.cast(x, wide), e.cast(y, wide)), x.dtype)


def _folded(op: Op, e: NodeCall, *args: Symbol) -> Symbol:
    return reduce(partial(e, op), args)


ROWS["Max"], ROWS["Min"] = partial(_folded, ops.maximum), partial(_folded, ops.minimum)
ROWS["Sum"] = partial(_folded, ops.add)


@row("Mean")
def _mean_of(e: NodeCall, *args: Symbol) -> Emitted:
    return e(ops.divide, _folded(ops.add, e, *args), float(len(args)))


@row("Clip")
def _clip(
    e: NodeCall, x: Symbol, low: SymbolOrNone = None, high: SymbolOrNone = None, **bounds: Attribute
) -> Emitted:
    low, high = bounds.get("min", low), bounds.get("max", high)
    if low is not None:
        x = e(ops.maximum, x, low)
    return x if high is None else e(ops.minimum, x, high)


@row("Dropout")
def _dropout(
    e: NodeCall,
    x: Symbol,
    share: SymbolOrNone = None,
    training: SymbolOrNone = None,
    **attrs: Attribute,
) -> Emitted:
    rate = share if share is None else e.static.of(share)
    is_training = False if training is None else e.static.of(training)
    if is_training is None or (is_training and (rate is None or rate.item())):
        return None
    mask = DType.bool if e.version > 9 else x.dtype
    return [x, e.spread(e.graph.constant_of((mask, np.ones((), mask.storage))), x.shape)]


@row("LeakyRelu")
def _leaky_relu(e: NodeCall, x: Symbol, alpha: float) -> Emitted:
    return e(ops.where, e(ops.less, x, 0), e(ops.multiply, x, alpha), x)


@row("PRelu")
def _prelu(e: NodeCall, x: Symbol, slope: Symbol) -> Emitted:
    return e(ops.where, e(ops.less, x, 0), e(ops.multiply, x, slope), x)


@row("Elu")
def _elu(e: NodeCall, x: Symbol, alpha: float) -> Symbol:
    return e(ops.where, e(ops.less, x, 0), e(ops.multiply, e(ops.expm1, x), alpha), x)


@row("Selu")
def _selu(e: NodeCall, x: Symbol, alpha: float, gamma: float) -> Emitted:
    return e(ops.multiply, _elu(e, x, alpha), gamma)


@row("HardSigmoid")
def _hard_sigmoid(e: NodeCall, x: Symbol, alpha: float, beta: float) -> Emitted:
    line = e(ops.add, e(ops.multiply, x, alpha), beta)
    return e(ops.clip, line, 0, 1)


@row("Gelu")
def _gelu(e: NodeCall, x: Symbol, approximate: str) -> Emitted:
    return e(ops.gelu, x, approximate=approximate)


@row("IsInf")
def _is_inf(e: NodeCall, x: Symbol, detect_negative: int, detect_positive: int) -> Emitted:
    if detect_negative and detect_positive:
        return e(ops.is_inf, x)
    return e(ops.equal, x, inf if detect_positive else -inf if detect_negative else np.nan)


@row("BitShift")
def _bit_shift(e: NodeCall, x: Symbol, y: Symbol, direction: str) -> Emitted:
    return e(ops.left_shift if direction == "LEFT" else ops.right_shift, x, y)


# -- reductions


def _axes(e: NodeCall, x: Symbol, axes: SymbolOrNone, keepdims: int, noop: int) -> dict[str, Any]:
    places = tuple(axis_of(axis, x.rank) for axis in e.ints(axes))
    if not places and not noop:
        places = tuple(range(x.rank))
    return {"axis": places, "keepdims": bool(keepdims)}


Step: TypeAlias = Callable[[NodeCall, Symbol], Symbol]


def _reduction(
    op: Op,
    before: Step | None,
    after: Step | None,
    e: NodeCall,
    x: Symbol,
    axes: SymbolOrNone = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Emitted:
    """A reduction of `before(x)`, then `after`; the greatest of an empty row is -inf."""
    places = _axes(e, x, axes, keepdims, noop_with_empty_axes)
    dtype = x.dtype
    x = x if before is None else before(e, x)
    if op in (ops.max, ops.min):
        if dtype is DType.bool:
            op = ops.any if op is ops.max else ops.all
        else:
            x = _never_empty(e, op, x, places["axis"])
    pinned = {"dtype": x.dtype} if op in (ops.sum, ops.prod) else {}
    result = e(op, x, **places, **pinned) if x.rank else x
    result = result if after is None else after(e, result)
    return e.cast(result, dtype)


def _never_empty(e: NodeCall, op: Op, x: Symbol, axes: Sequence[int]) -> Symbol:
    """Return x with the least value (of min the greatest) behind reduced axes that may be empty.

    ONNX gives that value for an empty row, and NumPy none.
    """
    least, greatest = (-inf, inf) if x.dtype.is_float else (x.dtype.min, x.dtype.max)
    may_be_empty = [
        axis for axis in axes if not isinstance(x.shape[axis], int) or not x.shape[axis]
    ]
    if not may_be_empty:
        return x
    padding = [(0, int(axis in may_be_empty)) for axis in range(x.rank)]
    return e(ops.pad, x, padding=padding, value=least if op is ops.max else greatest)


def _in_float(e: NodeCall, x: Symbol) -> Symbol:
    return x if x.dtype.is_float else e.cast(x, DType.float64)


def _float_of(op: Op, e: NodeCall, x: Symbol) -> Symbol:
    return e(op, _in_float(e, x))


def _magnitude(e: NodeCall, x: Symbol) -> Symbol:
    return e(ops.abs, x)


def _square(e: NodeCall, x: Symbol) -> Symbol:
    return e(ops.square, x)


for _name, _op, _before, _after in (
    ("ReduceSum", ops.sum, None, None),
    ("ReduceProd", ops.prod, None, None),
    ("ReduceMax", ops.max, None, None),
    ("ReduceMin", ops.min, None, None),
    ("ReduceMean", ops.mean, _in_float, None),
    ("ReduceL1", ops.sum, _magnitude, None),
    ("ReduceL2", ops.sum, _square, partial(_float_of, ops.sqrt)),
    ("ReduceLogSum", ops.sum, None, partial(_float_of, ops.log)),
    ("ReduceSumSquare", ops.sum, _square, None),
):
    ROWS[_name] = partial(_reduction, _op, _before, _after)


@row("ReduceLogSumExp")
def _log_sum_exp(
    e: NodeCall,
    x: Symbol,
    axes: SymbolOrNone = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Emitted:
    """Log(sum(exp(x - max))) + max, which does not overflow."""
    places = _axes(e, x, axes, 1, noop_with_empty_axes)
    dtype, shape = x.dtype, e.type.shape
    if not x.rank or not places["axis"]:
        return x
    x = _in_float(e, x)
    if 0 in [x.shape[axis] for axis in cast("Sequence[int]", places["axis"])]:
        return e.cast(e.spread(e.number(-inf, x), shape), dtype)
    most = e(ops.max, _never_empty(e, ops.max, x, places["axis"]), **places)
    most = e(ops.where, e(ops.is_finite, most), most, e.number(0, most))
    total = e(ops.sum, e(ops.exp, e(ops.subtract, x, most)), dtype=x.dtype, **places)
    return e.cast(e.shaped(e(ops.add, e(ops.log, total), most), shape), dtype)


def _locator(
    op: Op, e: NodeCall, x: Symbol, axis: int, keepdims: int, select_last_index: int = 0
) -> Emitted:
    axis = axis_of(axis, x.rank)
    if not select_last_index:
        return e(op, x, axis=axis, keepdims=bool(keepdims), dtype=DType.int64)
    place = e(op, e(ops.flip, x, axis=(axis,)), axis=axis, keepdims=bool(keepdims))
    size = x.shape[axis]
    if not isinstance(size, int):
        return None
    return e(ops.subtract, e.number(size - 1, place), place)


ROWS["ArgMax"], ROWS["ArgMin"] = partial(_locator, ops.argmax), partial(_locator, ops.argmin)


def _cumulative(
    op: Op, e: NodeCall, x: Symbol, axis: Symbol, exclusive: int, reverse: int
) -> Emitted:
    place = axis_of(e.ints(axis)[0], x.rank)
    x = e(ops.flip, x, axis=(place,)) if reverse else x
    if exclusive:
        padding = [(int(i == place), 0) for i in range(x.rank)]
        longer = e(ops.pad, x, padding=padding, value=int(op is ops.cumulative_prod))
        x = e.cut(longer, place, 0, x.shape[place])
    result = e(op, x, axis=place, dtype=x.dtype)
    return e(ops.flip, result, axis=(place,)) if reverse else result


ROWS["CumSum"] = partial(_cumulative, ops.cumulative_sum)
ROWS["CumProd"] = partial(_cumulative, ops.cumulative_prod)


def _rowwise(op: Op, e: NodeCall, x: Symbol, axis: int) -> Emitted:
    """Softmax along an axis; before opset 13, of the matrix whose rows are the axes before it."""
    if e.version >= 13:
        return e(op, x, axis=axis)
    matrix = e.shaped(x, matrix_shape(x, axis))
    return e.shaped(e(op, matrix, axis=1), x.shape)


def matrix_shape(x: Symbol, axis: int) -> tuple[Size, Size]:
    """Return the shape of a matrix whose rows are the axes before an axis."""
    place = axis + x.rank if axis < 0 else axis
    head, tail = (TensorType(x.dtype, part).size for part in (x.shape[:place], x.shape[place:]))
    return head, tail


ROWS["Softmax"] = partial(_rowwise, ops.softmax)
ROWS["LogSoftmax"] = partial(_rowwise, ops.logsoftmax)


@row("Hardmax")
def _hardmax(e: NodeCall, x: Symbol, axis: int) -> Emitted:
    matrix = x if e.version >= 13 else e.shaped(x, matrix_shape(x, axis))
    axis = axis_of(axis, x.rank) if e.version >= 13 else 1
    size = cast("Any", matrix.shape[axis])
    places = e(ops.argmax, matrix, axis=axis, keepdims=True, dtype=DType.int64)
    line = e.line(size, axis, matrix.rank)
    return e.shaped(e(ops.cast, e(ops.equal, places, line), to=x.dtype), x.shape)


@row("TopK")
def _top_k(
    e: NodeCall, x: Symbol, k: Symbol | int, *, axis: int, largest: int = 1, **_: Attribute
) -> Emitted:
    count = e.ints(k)[0] if isinstance(k, Symbol) else k
    axis = axis_of(axis, x.rank)
    order = e(ops.argsort, x, axis=axis, descending=bool(largest), dtype=DType.int64)
    order = e.cut(order, axis, 0, count)
    return [e.take(x, order, axis), order]


# -- contractions


@row("Gemm")
def _gemm(
    e: NodeCall,
    a: Symbol,
    b: Symbol,
    c: SymbolOrNone = None,
    *,
    alpha: float,
    beta: float,
    transA: int,  # noqa: N803 -- names of ONNX
    transB: int,  # noqa: N803
) -> Emitted:
    a = e(ops.transpose, a) if transA else a
    b = e(ops.transpose, b) if transB else b
    product = e(ops.matmul, a, b, layout=product_layout(a, b))
    product = product if alpha == 1 else e(ops.multiply, product, alpha)
    if c is None or beta == 0:
        return product
    return e(ops.add, product, c if beta == 1 else e(ops.multiply, c, beta))


@row("Einsum")
def _einsum(e: NodeCall, *args: Symbol, equation: str) -> Emitted:
    return np.einsum(equation, *args)


# -- normalizations and pools


@row("BatchNormalization")
def _batch_normalization(
    e: NodeCall,
    x: Symbol,
    scale: Symbol,
    shift: Symbol,
    mean: Symbol,
    variance: Symbol,
    epsilon: float,
    momentum: float,
    training_mode: int = 0,
    **attrs: Attribute,
) -> Emitted:
    if not attrs.get("spatial", 1):  # before opset 9
        return None
    running: list[Symbol] = []
    if training_mode:
        axes = tuple(i for i in range(x.rank) if i != 1)
        wide = e.cast(x, mean.dtype)
        pairs = [(mean, e(ops.mean, wide, axis=axes)), (variance, e(ops.var, wide, axis=axes))]
        for old, new in pairs:
            share = e(ops.multiply, old, momentum)
            running.append(e(ops.add, share, e(ops.multiply, new, 1 - momentum)))
        mean, variance = pairs[0][1], pairs[1][1]
    column = (-1, *[1] * (x.rank - 2))
    wide = e.cast(x, mean.dtype)
    mean, variance, scale, shift = (
        e(ops.reshape, e.cast(p, mean.dtype), shape=column) if x.rank > 2 else e.cast(p, mean.dtype)
        for p in (mean, variance, scale, shift)
    )
    deviation = e(ops.sqrt, e(ops.add, variance, epsilon))
    normal = e(ops.divide, e(ops.subtract, wide, mean), deviation)
    return [e.cast(e(ops.add, e(ops.multiply, normal, scale), shift), x.dtype), *running]


@row("InstanceNormalization")
def _instance_normalization(
    e: NodeCall, x: Symbol, scale: Symbol, shift: Symbol, epsilon: float
) -> Emitted:
    normal = _standardized(e, x, 2, epsilon)[0]
    return _by_channel(e, normal, scale, shift)


@row("GroupNormalization")
def _group_normalization(
    e: NodeCall,
    x: Symbol,
    scale: Symbol,
    shift: Symbol,
    epsilon: float,
    num_groups: int,
    **attrs: Attribute,
) -> Emitted:
    if attrs.get("stash_type") != 1:
        return None
    n, channels, *sizes = x.shape
    groups = e.shaped(x, (n, num_groups, cast("int", channels) // num_groups, *sizes))
    normal = _standardized(e, e.cast(groups, DType.float32), 2, epsilon)[0]
    return _by_channel(e, e.shaped(e.cast(normal, x.dtype), x.shape), scale, shift)


@row("LayerNormalization")
def _layer_normalization(
    e: NodeCall,
    x: Symbol,
    scale: Symbol,
    shift: SymbolOrNone = None,
    *,
    axis: int,
    epsilon: float,
    stash_type: int,
) -> Emitted:
    if stash_type != 1:
        return None
    wide = e.cast(x, DType.float32)
    normal, mean, deviation = _standardized(e, wide, axis_of(axis, x.rank), epsilon)
    result = e(ops.multiply, e.cast(normal, x.dtype), scale)
    result = result if shift is None else e(ops.add, result, shift)
    return [result, mean, e(ops.reciprocal, deviation)]


def _standardized(e: NodeCall, x: Symbol, first: int, epsilon: float) -> list[Symbol]:
    """Return values less their mean, over their deviation, by the axes from `first` on; and both.

    The bodies of the schemas subtract squares, which leaves nothing of a small variance.
    """
    axes = tuple(range(first, x.rank))
    mean, variance = (e(op, x, axis=axes, keepdims=True) for op in (ops.mean, ops.var))
    deviation = e(ops.sqrt, e(ops.add, variance, epsilon))
    return [e(ops.divide, e(ops.subtract, x, mean), deviation), mean, deviation]


def _by_channel(e: NodeCall, x: Symbol, scale: Symbol, shift: Symbol) -> Symbol:
    """Return values scaled and shifted by the numbers of their channels, which are axis 1."""
    column = (-1, *[1] * (x.rank - 2))
    scale, shift = (e(ops.reshape, p, shape=column) for p in (scale, shift))
    return e(ops.add, e(ops.multiply, x, scale), shift)


@row("LpNormalization")
def _lp_normalization(e: NodeCall, x: Symbol, axis: int, p: int) -> Emitted:
    place, square = (axis_of(axis, x.rank),), e(ops.square if p == 2 else ops.abs, x)
    norm = e(ops.sum, square, axis=place, keepdims=True, dtype=x.dtype)
    norm = e(ops.sqrt, norm) if p == 2 else norm
    zero = e(ops.equal, norm, 0)
    return e(
        ops.where,
        zero,
        e.number(0, x),
        e(ops.divide, x, e(ops.where, zero, e.number(1, norm), norm)),
    )


def _global_pool(op: Op, e: NodeCall, x: Symbol) -> Emitted:
    return e(op, x, axis=tuple(range(2, x.rank)), keepdims=True)


ROWS["GlobalAveragePool"] = partial(_global_pool, ops.mean)
ROWS["GlobalMaxPool"] = partial(_global_pool, ops.max)


# -- the operator set ai.onnx.ml, which onnxruntime computes in float32, whatever the input


def _floats(e: NodeCall, values: Sequence[float]) -> Symbol:
    return e.constant(np.array(values, np.float32))


@row("Scaler")
def _scaler(e: NodeCall, x: Symbol, offset: Sequence[float], scale: Sequence[float]) -> Emitted:
    centered = e(ops.subtract, e.cast(x, DType.float32), _floats(e, offset))
    return e(ops.multiply, centered, _floats(e, scale))


@row("Normalizer")
def _normalizer(e: NodeCall, x: Symbol, norm: str) -> Emitted:
    x = e.cast(x, DType.float32)
    size = e(ops.multiply, x, x) if norm == "L2" else e(ops.abs, x)
    if norm == "MAX" or x.rank != 2:
        return None
    total = e(ops.sum, size, axis=1, keepdims=True)
    total = e(ops.sqrt, total) if norm == "L2" else total
    return e(ops.divide, x, e(ops.maximum, total, 1e-30))


@row("Imputer")
def _imputer(e: NodeCall, x: Symbol, **attrs: Attribute) -> Emitted:
    kind = "float" if x.dtype.is_float else "int64"
    values, missing = attrs.get(f"imputed_value_{kind}s"), attrs.get(f"replaced_value_{kind}", 0)
    if not values:
        return None
    is_missing = e(ops.is_nan, x) if missing != missing else e(ops.equal, x, missing)
    imputed = e.constant(np.array(values, x.dtype.storage))
    return e(ops.where, is_missing, e.spread(imputed, x.shape), x)


@row("Binarizer")
def _binarizer(e: NodeCall, x: Symbol, threshold: float) -> Emitted:
    return e.cast(e(ops.greater, x, threshold), x.dtype)


@row("ArrayFeatureExtractor")
def _array_feature_extractor(e: NodeCall, x: Symbol, places: Symbol) -> Emitted:
    columns = e(ops.gather, x, e.shaped(places, (places.size,)), axis=x.rank - 1)
    return columns if x.rank > 1 else e.shaped(columns, (1, places.size))


@row("LinearRegressor")
def _linear_regressor(
    e: NodeCall,
    x: Symbol,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    targets: int = 1,
    post_transform: str = "NONE",
) -> Emitted:
    if post_transform != "NONE" or x.rank != 2:
        return None
    weights = np.array(coefficients, np.float32).reshape(targets, -1).T
    score = e(ops.matmul, e.cast(x, DType.float32), e.constant(weights))
    return e(ops.add, score, _floats(e, intercepts)) if intercepts else score


@row("ZipMap")
def _zip_map(e: NodeCall, x: Symbol, **_: Attribute) -> Emitted:
    """The array itself: the graph has no maps."""
    return x
