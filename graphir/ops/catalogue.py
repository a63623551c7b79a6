"""The catalogue of ops, one line each. kernels.py holds each op's computation, under the op's name.

An op has the name that the Array API standard gives it, else NumPy's name, else MAX's. Results of
floats follow IEEE 754 and NumPy on C-contiguous operands; integers wrap.
"""

from __future__ import annotations

from reprlib import repr as brief
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.errors import GraphError
from graphir.ops import attributes as at
from graphir.ops import dtype_rules as sig
from graphir.ops import shape_rules as shapes
from graphir.ops.op import CATALOGUE, OPTIONAL, Attr, GraphValue, Op, Signature

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol
    from graphir.ops import op_calls as calls
    from graphir.ops.dims import DimLike

_AXIS = Attr("axis", at.axis, -1)
_AXES = Attr("axis", at.axes, None)
_KEEP = Attr("keepdims", at.flag, False)
_DTYPE = Attr("dtype", at.optional_dtype, None)
_SHAPE = Attr("shape", at.shape)
_LITERAL = Attr("literal", at.optional_number, None)


def _op(*facts: Any, **more: Any) -> Any:
    """Return an Op; each assignment names the type of its calls, for type checkers."""
    return Op(*facts, **more)


def _unary(name: str, signature: Signature, doc: str, **facts: Any) -> calls.UnaryOp:
    return _op(name, ("x",), signature, shapes.same, doc, **facts)


def _binary(name: str, signature: Signature, doc: str, **facts: Any) -> calls.BinaryOp:
    return _op(name, ("lhs", "rhs"), signature, shapes.broadcast, doc, **facts)


def _reduction(name: str, signature: Signature, doc: str, *attrs: Attr, **facts: Any) -> Any:
    attrs = (_AXES, _KEEP, *attrs)
    return Op(name, ("x",), signature, shapes.reduced, doc, attrs, "reduction", **facts)


def _locator(name: str, doc: str) -> Any:
    attrs = (Attr("axis", at.optional_axis, None), _KEEP, _DTYPE)
    return Op(name, ("x",), sig.POSITION, shapes.located, doc, attrs, "reduction")


def _rowwise(name: str, signature: Signature, doc: str, *attrs: Attr, **facts: Any) -> Any:
    attrs = (_AXIS, *attrs)
    return Op(name, ("x",), signature, shapes.at_least_1d, doc, attrs, "rowwise", **facts)


def _movement(
    name: str, shape: Any, doc: str, *attrs: Attr, operands: Any = ("x",), **more: Any
) -> Any:
    signature = more.pop("signature", sig.SAME)
    return Op(name, operands, signature, shape, doc, attrs, "movement", **more)


def _creation(name: str, shape: Any, doc: str, *attrs: Attr) -> Any:
    return Op(name, (), sig.CREATION, shape, doc, (Attr("dtype", at.dtype), *attrs), "creation")


# -- arithmetic
add = _binary("add", sig.ARITHMETIC, "x + y; of bools, or.", commutative=True, cheap=True)
subtract = _binary("subtract", sig.ARITHMETIC, "x - y.", cheap=True)
multiply = _binary(
    "multiply", sig.ARITHMETIC, "x * y; of bools, and.", commutative=True, cheap=True
)
divide = _binary("divide", sig.DIVISION, "x / y in the float the rules name.")
floor_divide = _binary("floor_divide", sig.REAL_ARITHMETIC, "floor(x / y); integer x // 0 is 0.")
remainder = _binary("remainder", sig.REAL_ARITHMETIC, "x - y * floor(x / y); integer x % 0 is 0.")
fmod = _binary("fmod", sig.REAL_ARITHMETIC, "C's remainder, signed as x; of integers by 0, 0.")
pow = _binary(
    "pow",
    sig.ARITHMETIC,
    "x ** y, x * x in arrays where y is 2; a negative integer exponent is an error.",
)
maximum = _binary("maximum", sig.ORDERING, "The greater; NaN if either is.", cheap=True)
minimum = _binary("minimum", sig.ORDERING, "The lesser; NaN if either is.", cheap=True)
negative = _unary("negative", sig.ARITHMETIC, "-x.", cheap=True)
positive = _unary("positive", sig.ARITHMETIC, "+x.")
abs = _unary("abs", sig.MAGNITUDE, "`|x|`; of a complex, its magnitude.", cheap=True)
sign = _unary("sign", sig.ARITHMETIC, "-1, 0 or 1; of a complex z, `z / |z|`; NaN of NaN.")
square = _unary("square", sig.ARITHMETIC, "x * x.")
reciprocal = _unary("reciprocal", sig.FLOATING, "1 / x; of an integer truncated, and 0 of 0.")
relu = _unary("relu", sig.REAL_ARITHMETIC, "max(x, 0).")

# -- rounding
floor = _unary("floor", sig.REAL_ARITHMETIC, "The greatest integer not above x.")
ceil = _unary("ceil", sig.REAL_ARITHMETIC, "The least integer not below x.")
trunc = _unary("trunc", sig.REAL_ARITHMETIC, "x without its fraction.")
round = _unary("round", sig.ARITHMETIC, "The nearest integer, ties to even.")

# -- functions of floats
sqrt = _unary("sqrt", sig.FLOATING, "The square root.")
cbrt = _unary("cbrt", sig.REAL_FLOATING, "The cube root; of a negative number negative.")
rsqrt = _unary("rsqrt", sig.FLOATING, "1 / sqrt(x), two roundings.")
exp = _unary("exp", sig.FLOATING, "e**x.")
expm1 = _unary("expm1", sig.FLOATING, "e**x - 1.")
log = _unary("log", sig.FLOATING, "The natural logarithm.")
log1p = _unary("log1p", sig.FLOATING, "log(1 + x).")
log2 = _unary("log2", sig.FLOATING, "The logarithm to base 2.")
log10 = _unary("log10", sig.FLOATING, "The logarithm to base 10.")
sin = _unary("sin", sig.FLOATING, "The sine of radians.")
cos = _unary("cos", sig.FLOATING, "The cosine of radians.")
tan = _unary("tan", sig.FLOATING, "The tangent of radians.")
asin = _unary("asin", sig.FLOATING, "The inverse sine, in radians.")
acos = _unary("acos", sig.FLOATING, "The inverse cosine, in radians.")
atan = _unary("atan", sig.FLOATING, "The inverse tangent, in radians.")
deg2rad = _unary(
    "deg2rad", sig.REAL_FLOATING, "Degrees in radians: x * (pi / 180).", numpy="radians"
)
sinh = _unary("sinh", sig.FLOATING, "The hyperbolic sine.")
cosh = _unary("cosh", sig.FLOATING, "The hyperbolic cosine.")
tanh = _unary("tanh", sig.FLOATING, "The hyperbolic tangent.")
asinh = _unary("asinh", sig.FLOATING, "The inverse hyperbolic sine.")
acosh = _unary("acosh", sig.FLOATING, "The inverse hyperbolic cosine.")
atanh = _unary("atanh", sig.FLOATING, "The inverse hyperbolic tangent.")
erf = _unary("erf", sig.REAL_FLOATING, "The error function.")
sigmoid = _unary("sigmoid", sig.REAL_FLOATING, "1 / (1 + exp(-x)).")
silu = _unary("silu", sig.REAL_FLOATING, "x * sigmoid(x).")
softplus = _unary("softplus", sig.REAL_FLOATING, "log(1 + exp(x)) without overflow.")
gelu: calls.GeluOp = _op(
    "gelu",
    ("x",),
    sig.REAL_FLOATING,
    shapes.same,
    "x * Phi(x): by erf, by tanh, or quickly by a sigmoid.",
    (Attr("approximate", at.choice("none", "tanh", "quick"), "none"),),
)
atan2 = _binary("atan2", sig.REAL_FLOATING, "The angle of the point (y, x), in radians.")
hypot = _binary("hypot", sig.REAL_FLOATING, "sqrt(x*x + y*y) without overflow on the way.")
logaddexp = _binary("logaddexp", sig.REAL_FLOATING, "log(exp(x) + exp(y)).")
heaviside = _binary("heaviside", sig.REAL_FLOATING, "0 of negative x, 1 of positive, y of 0.")
copysign = _binary("copysign", sig.REAL_FLOATING, "The magnitude of x with the sign of y.")
nextafter = _binary("nextafter", sig.STEP, "The float after x towards y, in their dtype.")

# -- predicates, comparison, logic
is_nan = _unary("is_nan", sig.PREDICATE, "Whether x is NaN.", numpy="isnan")
is_inf = _unary("is_inf", sig.PREDICATE, "Whether x is an infinity.", numpy="isinf")
is_finite = _unary(
    "is_finite", sig.PREDICATE, "Whether x is neither NaN nor an infinity.", numpy="isfinite"
)
signbit = _unary("signbit", sig.SIGN_PREDICATE, "Whether the sign is set, of -0.0 and NaN too.")
equal = _binary(
    "equal", sig.COMPARISON, "x == y, compared at their join.", commutative=True, cheap=True
)
not_equal = _binary(
    "not_equal", sig.COMPARISON, "x != y at their join.", commutative=True, cheap=True
)
less = _binary("less", sig.ORDER, "x < y, compared at their join.", cheap=True)
less_equal = _binary("less_equal", sig.ORDER, "x <= y, compared at their join.", cheap=True)
greater = _binary("greater", sig.ORDER, "x > y, compared at their join.", cheap=True)
greater_equal = _binary("greater_equal", sig.ORDER, "x >= y, compared at their join.", cheap=True)
logical_and = _binary("logical_and", sig.LOGICAL, "Both are true.", commutative=True, cheap=True)
logical_or = _binary("logical_or", sig.LOGICAL, "Either is true.", commutative=True, cheap=True)
logical_xor = _binary("logical_xor", sig.LOGICAL, "Just one is true.", commutative=True)
logical_not = _unary("logical_not", sig.LOGICAL, "It is false.", cheap=True)

# -- bits
bitwise_and = _binary("bitwise_and", sig.BITWISE, "x & y.", commutative=True, cheap=True)
bitwise_or = _binary("bitwise_or", sig.BITWISE, "x | y.", commutative=True, cheap=True)
bitwise_xor = _binary("bitwise_xor", sig.BITWISE, "x ^ y.", commutative=True, cheap=True)
bitwise_invert = _unary("bitwise_invert", sig.BITWISE, "~x.", cheap=True)
left_shift = _binary(
    "left_shift",
    sig.SHIFT,
    "x << y; 0 where y is negative or past the width.",
    cheap=True,
    numpy="bitwise_left_shift",
)
right_shift = _binary(
    "right_shift",
    sig.SHIFT,
    "x >> y; past the width 0, or -1 of negatives.",
    cheap=True,
    numpy="bitwise_right_shift",
)

# -- selection and conversion
where: calls.WhereOp = _op(
    "where",
    ("condition", "x", "y"),
    sig.SELECT,
    shapes.broadcast,
    "x where the condition is true, else y.",
)
clip: calls.ClipOp = _op(
    "clip", ("x", "low", "high"), sig.CLIP, shapes.broadcast, "min(max(x, low), high)."
)
cast: calls.CastOp = _op(
    "cast",
    ("x",),
    sig.CAST,
    shapes.same,
    "x in another dtype, rounded once; floats to integers truncate and saturate.",
    (Attr("to", at.dtype),),
    "cast",
)

# -- complex numbers
real = _unary("real", sig.PART, "The real part.")
imag = _unary("imag", sig.PART, "The imaginary part; 0 of a real number.")
conj = _unary("conj", sig.SAME, "The complex conjugate.")
as_complex = _binary("as_complex", sig.COMPLEX_OF, "x + y*i from real x and y.")

# -- reductions
sum: calls.SumOp = _reduction(
    "sum", sig.ACCUMULATION, "The sum, pairwise as NumPy adds.", _DTYPE, numpy="add.reduce"
)
numpy_sum: calls.MaskedSumOp = _op(
    "numpy_sum",
    ("x", "mask"),
    sig.MASKED_ACCUMULATION,
    shapes.numpy_sum,
    "The sum of x where a mask is true, in NumPy's order: with where=, of x[mask], of strided x.",
    (
        *(_AXES, _KEEP, _DTYPE, Attr("selection", at.flag, False)),
        *(Attr("layout", at.sum_layout, None), Attr("buffered", at.flag, False)),
        Attr("initial", at.optional_number, None),
    ),
    "reduction",
)
prod: calls.SumOp = _reduction(
    "prod", sig.ACCUMULATION, "The product.", _DTYPE, numpy="multiply.reduce"
)
max: calls.ReductionOp = _reduction(
    "max",
    sig.ORDERING,
    "The greatest; NaN if any is; 0.0 is above -0.0.",
    numpy="amax maximum.reduce",
)
min: calls.ReductionOp = _reduction(
    "min", sig.ORDERING, "The least; NaN if any is; -0.0 is below 0.0.", numpy="amin minimum.reduce"
)
mean: calls.ReductionOp = _reduction("mean", sig.MEAN, "The arithmetic mean.")
var: calls.VarianceOp = _reduction(
    "var", sig.SPREAD, "The variance over n - correction.", Attr("correction", at.integer, 0)
)
std: calls.VarianceOp = _reduction(
    "std", sig.SPREAD, "The square root of var.", Attr("correction", at.integer, 0)
)
any: calls.ReductionOp = _reduction(
    "any", sig.LOGICAL, "Whether any is true.", numpy="logical_or.reduce"
)
all: calls.ReductionOp = _reduction(
    "all", sig.LOGICAL, "Whether all are true.", numpy="logical_and.reduce"
)
argmax: calls.LocatorOp = _locator(
    "argmax", "The place of the first greatest; the flat one where axis is None."
)
argmin: calls.LocatorOp = _locator(
    "argmin", "The place of the first least; the flat one where axis is None."
)
cumulative_sum: calls.CumulativeOp = _rowwise(
    "cumulative_sum",
    sig.ACCUMULATION,
    "Sums from the first on.",
    _DTYPE,
    numpy="cumsum add.accumulate",
)
cumulative_prod: calls.CumulativeOp = _rowwise(
    "cumulative_prod",
    sig.ACCUMULATION,
    "Products so far.",
    _DTYPE,
    numpy="cumprod multiply.accumulate",
)

# -- rows: softmax, norms, sorting
softmax: calls.RowOp = _rowwise(
    "softmax", sig.REAL_FLOATING, "exp(x - max) / sum of it, along an axis."
)
logsoftmax: calls.RowOp = _rowwise(
    "logsoftmax", sig.REAL_FLOATING, "log(softmax(x)), computed stably."
)
layer_norm: calls.LayerNormOp = _op(
    "layer_norm",
    ("x", "scale", "shift"),
    sig.REAL_FLOATING,
    shapes.layer_norm,
    "(x - mean) / sqrt(var + epsilon) * scale + shift, along the last axis.",
    (Attr("epsilon", at.positive, 1e-5),),
    "rowwise",
)
sort: calls.SortOp = _rowwise(
    "sort",
    sig.ORDERING,
    "Sorted, NaN last. Zeros of both signs keep their order, or have NumPy's if not stable.",
    Attr("descending", at.flag, False),
    Attr("stable", at.flag, True),
)
argsort: calls.ArgSortOp = _rowwise(
    "argsort",
    sig.POSITION,
    "The order that sorts. Equal values keep their order, or have NumPy's if not stable.",
    Attr("descending", at.flag, False),
    _DTYPE,
    Attr("stable", at.flag, True),
)
searchsorted: calls.SearchOp = _op(
    "searchsorted",
    ("x", "values"),
    sig.POSITION,
    shapes.searched,
    "Where values go into the sorted vector x.",
    (Attr("side", at.choice("left", "right"), "left"), _DTYPE),
    "rowwise",
)

# -- contractions
_PAIR = ("lhs", "rhs")
matmul: calls.MatMulOp = _op(
    "matmul",
    _PAIR,
    sig.ARITHMETIC,
    shapes.matmul,
    "The matrix product over the last two axes, batched.",
    (Attr("layout", at.product_layout, None),),
    "contraction",
)
tensordot: calls.TensorDotOp = _op(
    "tensordot",
    _PAIR,
    sig.ARITHMETIC,
    shapes.tensordot,
    "The product summed over axes.",
    (Attr("axes", at.contracted, 2),),
    "contraction",
)
outer: calls.BinaryOp = _op(
    "outer",
    _PAIR,
    sig.ARITHMETIC,
    shapes.outer,
    "All products of two vectors' elements.",
    (),
    "contraction",
)

# -- movement
reshape: calls.ShapeOp = _movement(
    "reshape", shapes.shape_attribute, "The same elements.", Attr("shape", at.new_shape)
)
broadcast_to: calls.ShapeOp = _movement(
    "broadcast_to", shapes.broadcast_to, "Repeated along axes of 1.", _SHAPE
)
rebind: calls.ShapeOp = _movement(
    "rebind", shapes.rebind, "The same, dims asserted at run time.", _SHAPE
)
transpose: calls.TransposeOp = _movement(
    "transpose",
    shapes.swapped,
    "Two axes exchanged.",
    Attr("axis1", at.axis, -2),
    Attr("axis2", at.axis, -1),
)
permute: calls.PermuteOp = _movement(
    "permute", shapes.permuted, "Axes reordered.", Attr("dims", at.permutation)
)
squeeze: calls.AxisOp = _movement(
    "squeeze", shapes.squeezed, "Without an axis of 1.", Attr("axis", at.axis)
)
unsqueeze: calls.AxisOp = _movement(
    "unsqueeze", shapes.unsqueezed, "With a new axis of 1.", Attr("axis", at.new_axis)
)
slice: calls.SliceOp = _movement(
    "slice",
    shapes.sliced,
    "The elements from start to stop by step, on every axis.",
    Attr("start", at.limits),
    Attr("stop", at.limits),
    Attr("step", at.per_axis),
)
affine_view: calls.AffineViewOp = _movement(
    "affine_view",
    shapes.affine_view,
    "The elements at origin + index @ steps: windows, diagonals, any view with strides.",
    _SHAPE,
    Attr("origin", at.limits),
    Attr("steps", at.axis_steps),
)
item: calls.ItemOp = _movement(
    "item", shapes.item, "One element, of rank 0.", Attr("index", at.limits)
)
slice_update: calls.SliceUpdateOp = _movement(
    "slice_update",
    shapes.slice_updated,
    "x with updates in place of the elements from start to stop by step.",
    Attr("start", at.limits),
    Attr("stop", at.limits),
    Attr("step", at.per_axis),
    operands=("x", "updates"),
    signature=sig.UPDATE,
)
flip: calls.FlipOp = _movement("flip", shapes.same, "Backwards along axes.", _AXES)
roll: calls.RollOp = _movement(
    "roll", shapes.same, "Shifted around an axis.", Attr("shift", at.integer), Attr("axis", at.axis)
)
pad: calls.PadOp = _movement(
    "pad",
    shapes.padded,
    "Surrounded by a value.",
    Attr("padding", at.pairs),
    Attr("value", at.number, 0),
    signature=sig.PADDING,
)
tile: calls.TileOp = _movement(
    "tile", shapes.tiled, "Repeated as a whole.", Attr("repeats", at.per_axis)
)
repeat: calls.RepeatOp = _movement(
    "repeat",
    shapes.repeated,
    "Each element repeated along an axis.",
    Attr("repeats", at.natural),
    Attr("axis", at.axis),
)
concat: calls.ConcatOp = _movement(
    "concat",
    shapes.concatenated,
    "One after another along an axis.",
    Attr("axis", at.axis, 0),
    signature=sig.JOIN,
    variadic=True,
)
stack: calls.ConcatOp = _movement(
    "stack",
    shapes.stacked,
    "Side by side along a new axis.",
    Attr("axis", at.new_axis, 0),
    signature=sig.JOIN,
    variadic=True,
)
gather: calls.GatherOp = _movement(
    "gather",
    shapes.gathered,
    "The slices that indices name along an axis.",
    Attr("axis", at.axis, 0),
    operands=("x", "indices"),
    signature=sig.LOOKUP,
)
take_along: calls.TakeAlongOp = _movement(
    "take_along",
    shapes.along,
    "The elements that indices name along an axis.",
    _AXIS,
    operands=("x", "indices"),
    signature=sig.LOOKUP,
)
scatter: calls.ScatterOp = _movement(
    "scatter",
    shapes.scattered,
    "x with updates at indices along an axis, the last winning.",
    _AXIS,
    operands=("x", "updates", "indices"),
    signature=sig.SCATTER,
)
index_update: calls.IndexUpdateOp = _movement(
    "index_update",
    shapes.index_updated,
    "x with updates in place of the slices that indices name, the last winning.",
    Attr("axis", at.optional_axis, None),
    operands=("x", "updates", "indices"),
    signature=sig.SCATTER,
)
index_add: calls.IndexUpdateOp = _op(
    "index_add",
    ("x", "updates", "indices"),
    sig.SCATTER,
    shapes.index_updated,
    "x with updates added to the slices that indices name, one after another; of bools, or.",
    (Attr("axis", at.optional_axis, None),),
    "rowwise",
)

# -- creation
input: calls.InputOp = _creation(
    "input", shapes.shape_attribute, "A value given when the graph runs.", _SHAPE
)
constant: calls.ConstantOp = _op(
    "constant",
    (),
    sig.CONSTANT,
    shapes.constant,
    "Known values; `literal` is the Python scalar that the program has there.",
    (
        Attr("dtype", at.dtype),
        Attr("value", at.constant),
        _LITERAL,
    ),
    "creation",
)
full: calls.FullOp = _creation(
    "full",
    shapes.shape_attribute,
    "One value everywhere; `literal` where it gave the dtype.",
    Attr("value", at.number),
    _SHAPE,
    _LITERAL,
)
range: calls.RangeOp = _creation(
    "range",
    shapes.ranged,
    "start + i * step, rounded once.",
    Attr("start", at.number),
    Attr("step", at.number),
    Attr("size", at.size),
)
eye: calls.EyeOp = _creation(
    "eye",
    shapes.eye,
    "Ones on a diagonal, zeros elsewhere.",
    Attr("rows", at.size),
    Attr("columns", at.size),
    Attr("offset", at.integer, 0),
)
shape_of: calls.SizesOp = _op(
    "shape_of",
    ("x",),
    sig.SIZES,
    shapes.rank_vector,
    "The sizes of the axes.",
    (_DTYPE,),
    "movement",
)

CATALOGUE.update({op.name: op for op in list(vars().values()) if isinstance(op, Op)})
_LIKE = {"pow": ("exp2", "float_power")}
OPTIONAL.update({
    op.name: (Attr("loop", at.numpy_loop(op.name, *_LIKE.get(op.name, ()))),)
    for op in CATALOGUE.values()
    if op.kind == "elementwise" and (op is clip or isinstance(getattr(np, op.name, None), np.ufunc))
})  # fmt: skip

# MAX's names for some of the ops.
sub, mul, div, mod = subtract, multiply, divide, remainder


def split(x: Symbol, sizes: int | list[DimLike], axis: int = 0) -> tuple[Symbol, ...]:
    """Return slices along an axis as a tuple; `sizes` is a list of dims, or each piece's size."""
    if not isinstance(x, GraphValue):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError("split takes a symbol", fix="g.constant(...) makes one", got=f"{brief(x)}")
    return x.split(sizes, axis)


NAMES = [*(name for name, value in vars().items() if isinstance(value, Op)), "split"]
"""The names of ops, with aliases, and of the functions composed of ops."""

if not TYPE_CHECKING:  # a type checker takes the names of the module
    __all__ = NAMES
