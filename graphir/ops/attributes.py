"""Normalization of op attributes: each function checks a value and returns its canonical form.

A function takes the value and the operands' types. Its first paragraph describes the value in the
help of the ops. A value that does not fit raises an error.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from graphir.dtypes import DType, DTypeLike
from graphir.errors import AxisError, GraphError, ShapeError
from graphir.hints import Flag, Int, Ints, Number, Pairs, Real
from graphir.ops.dims import (
    Dim,
    DimLike,
    Shape,
    ShapeLike,
    Size,
    product,
    quotient,
    shape_of,
    shape_text,
)
from graphir.ops.op import Types
from graphir.ops.types import TensorType, TupleType

Name = TypeVar("Name", bound=str)


def integer(value: Int, types: Types = ()) -> int:
    """A Python int; bools and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise GraphError("an int is needed", got=repr(value))
    return int(value)


def natural(value: Int, types: Types = ()) -> int:
    """A non-negative int, such as a count."""
    if (number := integer(value)) < 0:
        raise GraphError("a count is at least 0", got=str(number))
    return number


def flag(value: Flag, types: Types = ()) -> bool:
    """True or False."""
    if type(value) not in (bool, np.bool_):
        raise GraphError("True or False is needed", got=repr(value))
    return bool(value)


def several(value: Any) -> tuple[Any, ...]:
    """Return the items of a tuple or list, or a tuple of the value alone.

    Shapes, axes and repetitions accept both forms.
    """
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, (tuple, list)) else (value,)


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python scalar; return any other value unchanged."""
    return cast(Any, value).item() if isinstance(value, np.generic) else value


def number(value: Number, types: Types = ()) -> int | float | complex:
    """A Python scalar; a NumPy scalar is converted to a Python scalar."""
    scalar = plain(value)
    if not isinstance(scalar, (bool, int, float, complex)):
        raise GraphError("a number is needed here", got=f"{scalar!r}")
    return scalar


def optional_number(value: Number | None, types: Types = ()) -> int | float | complex | None:
    """A Python scalar or None."""
    return None if value is None else number(value)


def positive(value: Real, types: Types = ()) -> float:
    """A finite real number of at least 0."""
    value_ = number(value)
    if isinstance(value_, (bool, complex)) or not 0 <= value_ < float("inf"):
        raise GraphError("a number of at least 0 is needed", got=repr(value))
    return float(value_)


def choice(*names: Name) -> Callable[[Any, Types], Name]:
    """Return the normalization of an attribute whose value is one of `names`."""

    def normalize(value: Any, types: Types = ()) -> Name:
        if value not in names:
            raise GraphError(
                f"one of {', '.join(map(repr, names))} is needed here", got=f"{value!r}"
            )
        return value

    normalize.__doc__ = f"One of {', '.join(map(repr, names))}."
    normalize.__annotations__["value"] = f"Literal[{', '.join(map(repr, names))}]"
    return normalize


def dtype(value: DTypeLike, types: Types = ()) -> DType:
    """A DType, or any name of one."""
    return value if isinstance(value, DType) else DType(value)


def optional_dtype(value: DTypeLike | None, types: Types = ()) -> DType | None:
    """A DType or None."""
    return None if value is None else dtype(value)


def result_types(value: TupleType, types: Types = ()) -> TupleType:
    """The types of the results, as a TupleType."""
    if not isinstance(value, TupleType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError("a TupleType is needed", got=repr(value))
    return value


def size(value: DimLike, types: Types = ()) -> Size:
    """A dim: an int, a name or an expression of names."""
    return Dim.of(value)


def optional_size(value: DimLike | None, types: Types = ()) -> Size | None:
    """A dim or None."""
    return None if value is None else size(value)


def shape(value: ShapeLike, types: Types = ()) -> Shape:
    """A shape from one dim or a sequence of dims."""
    return shape_of(value)


def axis_within(value: Any, rank: int) -> int:
    """Return an axis of an array of this rank, counted from 0; raise AxisError for another one."""
    axis_ = integer(value)
    if not -rank <= axis_ < rank:
        raise AxisError(
            f"axis {axis_} is out of range for rank {rank}",
            fix=f"use an axis from {-rank} to {rank - 1}" if rank else (),
        )
    return axis_ % rank


def axis(value: Int, types: Types) -> int:
    """An axis of the first operand, counted from 0."""
    return axis_within(value, types[0].rank)


def optional_axis(value: Int | None, types: Types) -> int | None:
    """An axis of the first operand, or None."""
    return None if value is None else axis(value, types)


def new_axis(value: Int, types: Types) -> int:
    """The position of the new axis in the result."""
    return axis_within(value, types[0].rank + 1)


def _integers(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(integer(v) for v in cast("Sequence[Any]", value))
    return (integer(value),)


def axes(value: Ints | None, types: Types) -> tuple[int, ...]:
    """Distinct axes in ascending order; None means all."""
    rank = types[0].rank
    if value is None:
        return tuple(range(rank))
    axes_ = tuple(axis_within(v, rank) for v in _integers(value))
    if len(set(axes_)) != len(axes_):
        raise ShapeError("an axis is repeated", got=f"axis={value!r}")
    return tuple(sorted(axes_))


def permutation(value: Ints, types: Types) -> tuple[int, ...]:
    """Every axis of the first operand, each exactly once."""
    rank = types[0].rank
    order = tuple(axis_within(v, rank) for v in _integers(value))
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"the axes are a permutation of range({rank})", got=repr(value))
    return order


def per_axis(value: Ints, types: Types) -> tuple[int, ...]:
    """One count for each axis of the first operand."""
    counts = tuple(natural(v) for v in _integers(value))
    if len(counts) != types[0].rank:
        raise ShapeError(
            f"each of {types[0].rank} axes takes one count",
            got=f"{len(counts)} counts for {types[0]}",
        )
    return counts


def pairs(value: Pairs, types: Types) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis; an int or a single pair applies to all axes."""
    rank = types[0].rank
    sequence = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else (value, value)
    if all(isinstance(element, Integral) for element in sequence):
        sequence = [sequence] * rank
    if len(sequence) != rank or any(len(_integers(pair)) != 2 for pair in sequence):
        raise ShapeError(
            f"padding is (before, after) for each of the {rank} axes", got=f"{value!r}"
        )
    return tuple((natural(before), natural(after)) for before, after in cast("Any", sequence))


def limits(value: ShapeLike, types: Types) -> Shape:
    """One dim for each axis of the first operand."""
    dims = shape_of(value)
    if len(dims) != types[0].rank:
        raise ShapeError(
            f"each of {types[0].rank} axes takes one limit",
            got=f"{len(dims)} limits for {types[0]}",
        )
    return dims


def axis_steps(value: Sequence[Ints], types: Types) -> tuple[tuple[int, ...], ...]:
    """For each axis of the result, its steps along the axes of the operand, as ints."""
    sequence = tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else ()
    steps = tuple(_integers(axis_step) for axis_step in sequence)
    if not isinstance(value, (list, tuple)) or any(
        len(axis_step) != types[0].rank for axis_step in steps
    ):
        raise ShapeError(
            f"each axis of the result takes {types[0].rank} steps",
            got=f"{value!r} for {types[0]}",
        )
    return steps


def contracted(value: Pairs, types: Types) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of both operands that tensordot sums over: a count, or a pair of axis lists."""
    left, right = types[0].rank, types[1].rank
    if isinstance(value, (list, tuple)):
        both = cast("Sequence[Any]", value)
        if len(both) != 2:
            raise ShapeError("axes are an int or a pair of axis lists", got=f"{value!r}")
        return (
            tuple(axis_within(v, left) for v in _integers(both[0])),
            tuple(axis_within(v, right) for v in _integers(both[1])),
        )
    count = natural(cast("Int", value))
    if count > min(left, right):
        raise ShapeError(f"{count} axes cannot be contracted between {types[0]} and {types[1]}")
    return tuple(range(left - count, left)), tuple(range(count))


def product_layout(value: Sequence[Any] | None, types: Types) -> tuple[Any, ...] | None:
    """How the operands of a product lie in memory, which BLAS's rounding depends on.

    None is C order. Else the value has four parts: a NumPy function, "matmul" or "dot", the strides
    of both operands in elements, and whether the right operand is the left one's memory transposed.
    """
    if value is None:
        return None
    layout = tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else ()
    if len(layout) != 4 or layout[0] not in ("matmul", "dot"):
        raise GraphError(
            "a layout is None or four parts",
            got=f"{layout!r}",
            fix='use a form like ("matmul", (1, 3), (4, 1), False)',
        )
    return (layout[0], *_strides(layout[1:3], types), flag(layout[3]))


def sum_layout(value: Sequence[Any] | None, types: Types) -> tuple[Any, ...] | None:
    """How x and the mask lie in memory: the strides of both in elements; None is C order."""
    return None if value is None else _strides(value, types)


def numpy_loop(op: str, *others: str) -> Callable[[Any, Types], Any]:
    """Return the normalization of `loop`, NumPy's own loop of an op at strides of its operands.

    `others` are further ufuncs of NumPy that the op computes up to the last bits.
    """

    def normalize(value: Any, types: Types) -> Any:
        """A ufunc of NumPy, and the strides of its operands and of its results, in elements."""
        loop = tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else ()
        ufunc: Any = getattr(np, loop[0], None) if loop and loop[0] in (op, *others) else None
        if op == "clip" and ufunc is not None:
            ufunc = cast("Any", np)._core.umath.clip
        if len(loop) != 3 or not isinstance(ufunc, np.ufunc):
            raise GraphError(
                "a loop is a ufunc and the strides of operands and results",
                got=repr(loop),
                fix=f'use a form like ("{op}", ((-1,),), ())',
            )
        operands = _strides(loop[1], types[len(types) - ufunc.nin :])
        outs = tuple(tuple(_integers(output)) for output in several(loop[2]))
        if len(outs) > ufunc.nout:
            raise GraphError(f"{ufunc.__name__} has {ufunc.nout} results", got=repr(outs))
        return loop[0], operands, outs

    return normalize


def _strides(value: Any, types: Types) -> tuple[tuple[int, ...], ...]:
    """The strides of all operands, in elements."""
    operands = tuple(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else ()
    if len(operands) != len(types):
        raise GraphError("each operand needs strides", got=repr(operands))
    strides = tuple(tuple(_integers(operand_strides)) for operand_strides in operands)
    for operand_strides, operand in zip(strides, types, strict=True):
        if len(operand_strides) != operand.rank:
            raise ShapeError(
                f"{operand} needs {operand.rank} strides", got=str(len(operand_strides))
            )
    return strides


def new_shape(value: ShapeLike, types: Types) -> Shape:
    """The shape that reshape gives; at most one -1 stands for the remaining elements.

    The function raises ShapeError unless both shapes have provably equal sizes.
    """
    dims: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]
    free = [i for i, dim in enumerate(dims) if isinstance(dim, Integral) and dim == -1]
    fixed_dims = shape_of([1 if i in free else dim for i, dim in enumerate(dims)])
    total = types[0].size
    rest = quotient(total, product(fixed_dims)) if free else 1
    if len(free) > 1 or rest is None or (not free and product(fixed_dims) != total):
        text = shape_text(-1 if i in free else dim for i, dim in enumerate(fixed_dims))
        may_be = free or isinstance(product(fixed_dims) - total, Dim)
        raise ShapeError(
            f"{total} elements do not fill {text}",
            got=str(types[0]),
            fix="if they do, use .rebind(...) first" if may_be else (),
        )
    return tuple(rest if i in free else dim for i, dim in enumerate(fixed_dims))


def constant(value: object, types: Types = ()) -> np.ndarray[Any, Any]:
    """The values of a constant: a contiguous, read-only array."""
    if type(value) is np.ndarray and value.base is not None and is_frozen(value):
        return value
    array = np.asarray(value)
    if array.nbytes > _LARGE:  # then no later check copies it
        owner: Any = _FrozenMemory(array.shape, array.dtype)
        owner[...] = array
        owner.setflags(write=False)
        return owner.view(np.ndarray)
    array = np.array(array, order="C")
    array.setflags(write=False)
    return array


_LARGE = 4096
"""The size in bytes above which the values of a constant lie in memory that is never written."""


class _FrozenMemory(np.ndarray[Any, Any]):
    """The owner of the values of a large constant."""


class FrozenFile(mmap.mmap):
    """A file in memory that nobody changes while a graph has constants in it."""


def is_frozen(array: Any) -> bool:
    """Answer whether an array is in order, in memory that is never written, and needs no copy."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        return False
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        if isinstance(array, _FrozenMemory):
            return True
        array = array.base
    owner = array.obj if isinstance(array, memoryview) else array
    return isinstance(owner, (bytes, FrozenFile))


def with_dtypes(attrs: Mapping[str, Any], change: Callable[[DType], DType]) -> dict[str, Any]:
    """Return the attributes with `change` applied to each DType, and to the dtypes of each type."""

    def changed(value: Any) -> Any:
        if isinstance(value, DType):
            return change(value)
        return value.with_dtypes(change) if isinstance(value, TensorType) else value

    return {name: changed(value) for name, value in attrs.items()}
