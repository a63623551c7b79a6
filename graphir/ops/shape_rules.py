"""The shape rules of ops: the result's shape from the operands' types and the attributes.

The first paragraph of a rule's docstring describes the shape in the help of the ops. Every rule
raises ShapeError for shapes that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphir.errors import ShapeError
from graphir.ops.dims import Dim, Shape, Size, shape_text
from graphir.ops.op import Attributes, Op, Types
from graphir.ops.types import TensorType


def broadcast_shapes(shapes: Iterable[Shape]) -> Shape:
    """Return the broadcast of shapes: trailing axes align, 1 stretches, equal dims agree.

    ShapeError names two dims that do not agree.
    """
    result: Shape = ()
    for shape in shapes:
        if shape == result:
            continue
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        lead = len(longer) - len(shorter)
        tail = tuple(
            _meet(a, b, result, shape) for a, b in zip(longer[lead:], shorter, strict=True)
        )
        result = longer[:lead] + tail
    return result


def _meet(a: Size, b: Size, left: Shape, right: Shape) -> Size:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    # A difference without a name is a nonzero int.
    may_agree = isinstance(a - b, Dim)
    raise ShapeError(
        f"shapes {shape_text(left)} and {shape_text(right)} do not broadcast: {a} meets {b}",
        fix=f"if {a} and {b} are equal, use .rebind({shape_text(left)})" if may_agree else (),
    )


def broadcast(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The broadcast of all operands' shapes."""
    return broadcast_shapes(t.shape for t in types)


def same(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of the first operand."""
    return types[0].shape


def reduced(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape without the reduced axes; keepdims puts 1 in their place."""
    axes, keep = attrs["axis"], attrs["keepdims"]
    shape = types[0].shape
    if keep:
        return tuple(1 if i in axes else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in axes)


def numpy_sum(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of a reduction of x, to whose shape the mask must broadcast.

    The sum of a selection takes all axes, or those before the axes along which the mask is 1.
    """
    x, mask = types
    if broadcast_shapes((x.shape, mask.shape)) != x.shape:
        raise ShapeError(f"the mask does not broadcast to x: {mask} and {x}")
    axes = attrs["axis"]
    if attrs["selection"] and len(axes) < x.rank:
        spread = mask.shape[len(axes) :]
        if axes != tuple(range(len(axes))) or mask.rank != x.rank or {*spread} - {1}:
            raise ShapeError(
                "the elements of a selection are added along the axes of its mask",
                got=f"axis={axes}, mask {mask} of {x}",
            )
    return reduced(op, types, attrs)


def located(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape without the axis (None: all axes); keepdims puts 1 in its place."""
    shape, axis = types[0].shape, attrs["axis"]
    if axis is None:
        return (1,) * len(shape) if attrs["keepdims"] else ()
    return shape[:axis] + ((1,) if attrs["keepdims"] else ()) + shape[axis + 1 :]


def at_least_1d(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of the operand, which must have at least one axis."""
    if not types[0].rank:
        raise ShapeError(f"{op.name} needs at least one axis", got=str(types[0]))
    return types[0].shape


def matmul(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The broadcast batch axes, then the rows of the first operand, the columns of the second."""
    a, b = types[0].shape, types[1].shape
    if types[0].rank == 0 or types[1].rank == 0:
        raise ShapeError(f"{op.name} needs at least one axis on both sides", fix="use * for 0-d")
    inner_a, inner_b = a[-1], b[-2:][0]
    if inner_a != inner_b:
        raise ShapeError(
            f"{op.name} of {shape_text(a)} and {shape_text(b)}: inner dims {inner_a} and {inner_b} "
            "differ",
            fix="transpose one, or .rebind(...) if they are equal",
        )
    batch = broadcast_shapes((a[:-2], b[:-2]))
    return batch + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def tensordot(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The axes that are not contracted, first the left operand's and then the right's."""
    axes: tuple[tuple[int, ...], tuple[int, ...]] = attrs["axes"]
    (left, right), a, b = axes, types[0].shape, types[1].shape
    if len({*left}) != len(left) or len({*right}) != len(right):
        raise ShapeError("an axis is repeated", op=op.name, got=f"{left} and {right}")
    if len(left) != len(right) or any(a[i] != b[j] for i, j in zip(left, right, strict=False)):
        raise ShapeError(
            f"contracted axes {left} and {right} differ in size",
            op=op.name,
            got=f"{shape_text(a)} and {shape_text(b)}",
        )
    return tuple(d for i, d in enumerate(a) if i not in left) + tuple(
        d for i, d in enumerate(b) if i not in right
    )


def outer(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The lengths of the two vectors."""
    if types[0].rank != 1 or types[1].rank != 1:
        raise ShapeError(
            "the operands are vectors",
            op=op.name,
            got=f"{types[0]} and {types[1]}",
            fix="use .reshape(-1) first",
        )
    return types[0].shape + types[1].shape


def layer_norm(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of x; scale and shift are vectors as long as its last axis."""
    x, *rest = (t.shape for t in types)
    if not x or any(shape != x[-1:] for shape in rest):
        shapes = " and ".join(map(shape_text, rest))
        raise ShapeError(
            f"scale and shift have shape {shape_text(x[-1:])}, the last axis of x",
            op=op.name,
            got=shapes,
        )
    return x


def shape_attribute(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The attribute shape."""
    return attrs["shape"]


def constant(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of the values; () for a literal."""
    shape: Shape = attrs["value"].shape
    if shape and attrs["literal"] is not None:
        raise ShapeError(
            "an array has no literal",
            got=f"{attrs['literal']!r} of {shape_text(shape)}",
            fix="leave the literal out",
        )
    return shape


def broadcast_to(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The attribute shape, to which the operand must broadcast."""
    target: Shape = attrs["shape"]
    if broadcast_shapes((types[0].shape, target)) != target:
        raise ShapeError(
            f"the operand does not broadcast to {shape_text(target)}", got=str(types[0])
        )
    return target


def rebind(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The attribute shape, which may differ from the operand's only where a dim is symbolic."""
    old, new = types[0].shape, attrs["shape"]
    never = [(a, b) for a, b in zip(old, new, strict=False) if type(a) is type(b) is int and a != b]
    if len(old) != len(new) or never:
        raise ShapeError(f"no operand of this type has shape {shape_text(new)}", got=str(types[0]))
    return new


def swapped(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with two axes exchanged."""
    i, j, dims = attrs["axis1"], attrs["axis2"], list(types[0].shape)
    dims[i], dims[j] = dims[j], dims[i]
    return tuple(dims)


def permuted(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with its axes in another order."""
    dims: tuple[int, ...] = attrs["dims"]
    return tuple(types[0].shape[i] for i in dims)


def squeezed(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape without an axis of size 1."""
    shape, axis = types[0].shape, attrs["axis"]
    if shape[axis] != 1:
        raise ShapeError(
            f"axis {axis} has size {shape[axis]}, and only an axis of size 1 is squeezed",
            got=str(types[0]),
        )
    return shape[:axis] + shape[axis + 1 :]


def unsqueezed(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with a new axis of size 1."""
    shape, axis = types[0].shape, attrs["axis"]
    return (*shape[:axis], 1, *shape[axis:])


def concatenated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The sum of the sizes along the axis; the other axes must be equal."""
    axis: int = attrs["axis"]
    first, total = types[0].shape, 0
    for t in types:
        if t.rank != len(first) or t.shape[:axis] + t.shape[axis + 1 :] != (
            first[:axis] + first[axis + 1 :]
        ):
            raise ShapeError(
                f"the operands differ in an axis other than {axis}",
                op=op.name,
                got=f"{types[0]} and {t}",
            )
        total = total + t.shape[axis]
    return (*first[:axis], total, *first[axis + 1 :])


def stacked(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operands' common shape with a new axis, as long as the number of operands."""
    axis, first = attrs["axis"], types[0].shape
    for t in types:
        if t.shape != first:
            raise ShapeError("the operands differ in shape", op=op.name, got=f"{types[0]} and {t}")
    return (*first[:axis], len(types), *first[axis:])


def sliced(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The length of start:stop:step for each axis."""
    axes = zip(attrs["start"], attrs["stop"], attrs["step"], types[0].shape, strict=True)
    return tuple(_length(*axis) for axis in axes)


def affine_view(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The attribute shape; the first and the last positions must lie in the operand."""
    shape: Shape = attrs["shape"]
    steps: tuple[tuple[int, ...], ...] = attrs["steps"]
    if len(steps) != len(shape):
        raise ShapeError(
            f"each axis of {shape_text(shape)} takes a vector of steps",
            op=op.name,
            got=f"{len(steps)} vectors",
        )
    if 0 in shape:
        return shape
    for axis, (first, size) in enumerate(zip(attrs["origin"], types[0].shape, strict=True)):
        low = high = first
        for step, count in zip(steps, shape, strict=True):
            reach = (count - 1) * step[axis]
            low, high = (low + reach, high) if step[axis] < 0 else (low, high + reach)
        beyond = isinstance(low, int) and low < 0
        if beyond or (isinstance(high - size, int) and high - size >= 0):
            raise ShapeError(
                f"the positions {low} to {high} exceed axis {axis} of {types[0]}", op=op.name
            )
    return shape


def item(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Rank 0."""
    for axis, (at, size) in enumerate(zip(attrs["index"], types[0].shape, strict=True)):
        if isinstance(size - at, int) and size - at < 1:
            raise ShapeError(f"index {at} is out of range for axis {axis} of {types[0]}")
    return ()


def slice_updated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of x; updates broadcast to the shape of the slice."""
    _fit(op, types[1], sliced(op, types, attrs))
    return types[0].shape


def index_updated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of x; updates broadcast to the indices' shape in place of the axis (None: all)."""
    axis, x, indices = attrs["axis"], types[0].shape, types[2].shape
    _fit(op, types[1], indices if axis is None else x[:axis] + indices + x[axis + 1 :])
    return x


def _fit(op: Op, updates: TensorType, shape: Shape) -> None:
    if broadcast_shapes((updates.shape, shape)) != shape:
        raise ShapeError(f"{op.name}: updates {updates} do not broadcast to {shape_text(shape)}")


def _length(start: Size, stop: Size, step: int, dim: Size) -> Size:
    if step < 1:
        raise ShapeError("the step of a slice is positive", got=f"{step}", fix="flip first")
    beyond = stop - dim
    if isinstance(beyond, int) and beyond > 0:
        raise ShapeError(f"the stop of a slice lies beyond an axis of {dim}", got=f"stop {stop}")
    span = stop - start
    if isinstance(span, int) and span < 0:
        raise ShapeError("a slice stops before its start", got=f"start {start}, stop {stop}")
    return span if step == 1 else (span + (step - 1)) // step


def gathered(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with the indices' shape in place of the axis."""
    axis, (x, indices) = attrs["axis"], (t.shape for t in types)
    return x[:axis] + indices + x[axis + 1 :]


def along(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The indices' shape, which must equal the operand's except on the axis."""
    _alike_but(attrs["axis"], op, types)
    return types[-1].shape


def scattered(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of x; updates and indices agree in shape, and with x except on the axis."""
    _alike_but(attrs["axis"], op, (types[0], types[2]))
    if types[1].shape != types[2].shape:
        raise ShapeError(
            "updates and indices differ in shape", op=op.name, got=f"{types[1]} and {types[2]}"
        )
    return types[0].shape


def _alike_but(axis: int, op: Op, types: Types) -> None:
    x, indices = types[0].shape, types[-1].shape
    if len(x) != len(indices) or x[:axis] + x[axis + 1 :] != indices[:axis] + indices[axis + 1 :]:
        raise ShapeError(
            f"the operand and the indices differ in an axis other than {axis}",
            op=op.name,
            got=f"{types[0]} and {types[-1]}",
        )


def searched(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape of the values to look up."""
    if types[0].rank != 1:
        raise ShapeError("the sorted operand has one axis", op=op.name, got=str(types[0]))
    return types[1].shape


def padded(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with each axis longer by its padding before and after."""
    return tuple(
        dim + (before + after)
        for dim, (before, after) in zip(types[0].shape, attrs["padding"], strict=True)
    )


def tiled(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with each axis multiplied by its repeats."""
    return tuple(dim * n for dim, n in zip(types[0].shape, attrs["repeats"], strict=True))


def repeated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The operand's shape with one axis multiplied by the repeats."""
    axis: int = attrs["axis"]
    shape = types[0].shape
    return (*shape[:axis], shape[axis] * attrs["repeats"], *shape[axis + 1 :])


def rank_vector(op: Op, types: Types, attrs: Attributes) -> Shape:
    """A vector with one element for each axis."""
    return (types[0].rank,)


def ranged(op: Op, types: Types, attrs: Attributes) -> Shape:
    """One axis, of the size in the attribute `size`."""
    return (attrs["size"],)


def eye(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The attributes rows and columns."""
    return attrs["rows"], attrs["columns"]
