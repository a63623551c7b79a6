"""The shape rules of ops: the shape of a result from the types of operands and attributes."""

from __future__ import annotations

from collections.abc import Iterable

from graphir.errors import ShapeError
from graphir.ops.dims import Dim, Shape, Size, shape_text
from graphir.ops.op import Attributes, Op, Types


def broadcast_shapes(shapes: Iterable[Shape]) -> Shape:
    """The shape that shapes have together: trailing axes align, 1 stretches, equal dims agree."""
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
    hint = ""
    if isinstance(a - b, Dim):  # a difference that is a number is never 0
        hint = f"; if {a} and {b} are equal, say so with .rebind({shape_text(left)})"
    raise ShapeError(
        f"shapes {shape_text(left)} and {shape_text(right)} do not broadcast: {a} meets {b}{hint}"
    )


def broadcast(op: Op, types: Types, attrs: Attributes) -> Shape:
    """All operands broadcast."""
    return broadcast_shapes(t.shape for t in types)


def same(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of the first operand."""
    return types[0].shape


def reduced(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Without the axes reduced, or with 1 in their place."""
    axes, keep = attrs["axis"], attrs["keepdims"]
    shape = types[0].shape
    if keep:
        return tuple(1 if i in axes else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in axes)


def located(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Of argmax and argmin: one axis goes, or all where the axis is None."""
    shape, axis = types[0].shape, attrs["axis"]
    if axis is None:
        return (1,) * len(shape) if attrs["keepdims"] else ()
    return shape[:axis] + ((1,) if attrs["keepdims"] else ()) + shape[axis + 1 :]


def at_least_1d(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of the operand, which has an axis to go along."""
    if not types[0].rank:
        raise ShapeError(f"{op.name} needs at least one axis", got=str(types[0]))
    return types[0].shape


def matmul(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Batch axes broadcast; the last two multiply."""
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
    """The axes that are not contracted, of both operands in turn."""
    axes: tuple[tuple[int, ...], tuple[int, ...]] = attrs["axes"]
    (left, right), a, b = axes, types[0].shape, types[1].shape
    if len({*left}) != len(left) or len({*right}) != len(right):
        raise ShapeError(f"tensordot: an axis is repeated in {left} and {right}")
    if len(left) != len(right) or any(a[i] != b[j] for i, j in zip(left, right, strict=False)):
        raise ShapeError(
            f"tensordot of {shape_text(a)} and {shape_text(b)} over axes {left} and {right}: "
            "contracted dims must agree in pairs"
        )
    return tuple(d for i, d in enumerate(a) if i not in left) + tuple(
        d for i, d in enumerate(b) if i not in right
    )


def outer(op: Op, types: Types, attrs: Attributes) -> Shape:
    """All pairs of two vectors' elements."""
    if types[0].rank != 1 or types[1].rank != 1:
        raise ShapeError(
            f"outer takes vectors, not {types[0]} and {types[1]}", fix=".reshape(-1) first"
        )
    return types[0].shape + types[1].shape


def layer_norm(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of x, whose last axis scale and shift have."""
    x, *rest = (t.shape for t in types)
    if not x or any(shape != x[-1:] for shape in rest):
        given = " and ".join(map(shape_text, rest))
        raise ShapeError(
            f"layer_norm of {shape_text(x)} takes scale and shift {shape_text(x[-1:])}, not {given}"
        )
    return x


def given(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape is an attribute."""
    return attrs["shape"]


def constant(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of the values."""
    return attrs["value"].shape


def broadcast_to(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape asked for, to which the operand must broadcast."""
    target: Shape = attrs["shape"]
    if broadcast_shapes((types[0].shape, target)) != target:
        raise ShapeError(f"{types[0]} does not broadcast to {shape_text(target)}")
    return target


def rebind(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The shape asked for, which sizes that are known must not contradict."""
    old, new = types[0].shape, attrs["shape"]
    never = [(a, b) for a, b in zip(old, new, strict=False) if type(a) is type(b) is int and a != b]
    if len(old) != len(new) or never:
        raise ShapeError(f"{types[0]} can never have shape {shape_text(new)}")
    return new


def swapped(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Two axes exchanged."""
    i, j, dims = attrs["axis1"], attrs["axis2"], list(types[0].shape)
    dims[i], dims[j] = dims[j], dims[i]
    return tuple(dims)


def permuted(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Axes in another order."""
    dims: tuple[int, ...] = attrs["dims"]
    return tuple(types[0].shape[i] for i in dims)


def squeezed(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Without an axis of 1."""
    shape, axis = types[0].shape, attrs["axis"]
    if shape[axis] != 1:
        raise ShapeError(
            f"axis {axis} of {types[0]} is {shape[axis]}, not 1, and cannot be squeezed"
        )
    return shape[:axis] + shape[axis + 1 :]


def unsqueezed(op: Op, types: Types, attrs: Attributes) -> Shape:
    """With an axis of 1 more."""
    shape, axis = types[0].shape, attrs["axis"]
    return (*shape[:axis], 1, *shape[axis:])


def concatenated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """One axis added up, the others equal."""
    axis: int = attrs["axis"]
    first, total = types[0].shape, 0
    for t in types:
        if t.rank != len(first) or t.shape[:axis] + t.shape[axis + 1 :] != (
            first[:axis] + first[axis + 1 :]
        ):
            raise ShapeError(f"concat along axis {axis}: {types[0]} and {t} differ elsewhere")
        total = total + t.shape[axis]
    return (*first[:axis], total, *first[axis + 1 :])


def stacked(op: Op, types: Types, attrs: Attributes) -> Shape:
    """A new axis as long as there are operands."""
    axis, first = attrs["axis"], types[0].shape
    for t in types:
        if t.shape != first:
            raise ShapeError(f"stack needs equal shapes; {types[0]} and {t} differ")
    return (*first[:axis], len(types), *first[axis:])


def sliced(op: Op, types: Types, attrs: Attributes) -> Shape:
    """What start, stop and step leave of each axis."""
    axes = zip(attrs["start"], attrs["stop"], attrs["step"], types[0].shape, strict=True)
    return tuple(_length(*axis) for axis in axes)


def _length(start: Size, stop: Size, step: int, dim: Size) -> Size:
    if step < 1:
        raise ShapeError(f"the step of a slice is positive, not {step}", fix="flip first")
    beyond = stop - dim
    if isinstance(beyond, int) and beyond > 0:
        raise ShapeError(f"a slice cannot end at {stop} on an axis of {dim}")
    span = stop - start
    if isinstance(span, int) and span < 0:
        raise ShapeError(f"a slice cannot end at {stop} before its start at {start}")
    return span if step == 1 else (span + (step - 1)) // step


def gathered(op: Op, types: Types, attrs: Attributes) -> Shape:
    """The indices' shape in place of one axis."""
    axis, (x, indices) = attrs["axis"], (t.shape for t in types)
    return x[:axis] + indices + x[axis + 1 :]


def along(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Of take_along: the indices' shape, which is the data's but for one axis."""
    _alike_but(attrs["axis"], op, types)
    return types[-1].shape


def scattered(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of the data; updates and indices agree, and with the data but on one axis."""
    _alike_but(attrs["axis"], op, (types[0], types[2]))
    if types[1].shape != types[2].shape:
        raise ShapeError(f"scatter: updates {types[1]} and indices {types[2]} differ in shape")
    return types[0].shape


def _alike_but(axis: int, op: Op, types: Types) -> None:
    x, indices = types[0].shape, types[-1].shape
    if len(x) != len(indices) or x[:axis] + x[axis + 1 :] != indices[:axis] + indices[axis + 1 :]:
        raise ShapeError(
            f"{op.name} along axis {axis}: {types[0]} and indices {types[-1]} differ elsewhere"
        )


def searched(op: Op, types: Types, attrs: Attributes) -> Shape:
    """That of the values looked up."""
    if types[0].rank != 1:
        raise ShapeError(f"searchsorted looks values up in a sorted vector, not in {types[0]}")
    return types[1].shape


def padded(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Each axis longer by what is put before and after."""
    return tuple(
        dim + (before + after)
        for dim, (before, after) in zip(types[0].shape, attrs["padding"], strict=True)
    )


def tiled(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Each axis a multiple."""
    return tuple(dim * n for dim, n in zip(types[0].shape, attrs["repeats"], strict=True))


def repeated(op: Op, types: Types, attrs: Attributes) -> Shape:
    """One axis a multiple."""
    axis: int = attrs["axis"]
    shape = types[0].shape
    return (*shape[:axis], shape[axis] * attrs["repeats"], *shape[axis + 1 :])


def rank_vector(op: Op, types: Types, attrs: Attributes) -> Shape:
    """One element for each axis."""
    return (types[0].rank,)


def ranged(op: Op, types: Types, attrs: Attributes) -> Shape:
    """As many elements as the attribute says."""
    return (attrs["size"],)


def eye(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Rows by columns."""
    return attrs["rows"], attrs["columns"]
