"""Trees of the arguments and results of a traced function: nested tuples, lists and dicts.

A tree has the structure of the values, with a Slot for each value that the graph takes or gives, a
NumberSlot for each number that varies from call to call, and a Static for any other value. A leaf
is a value without items, or a pair of a dtype and a shape, which stands for a type (`type_of`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from graphir.dtypes import DType
from graphir.errors import GraphError, GraphirError
from graphir.ir.foreign_arrays import is_foreign_array, to_numpy_array
from graphir.numpy_api.traced_numbers import concrete
from graphir.ops.dims import shape_of
from graphir.ops.types import TensorType
from graphir.promotion.scalars import WEAK


@dataclass(frozen=True, slots=True)
class Slot:
    """In a tree: the position of a value among the inputs or outputs of a graph.

    `form` says what the function returns for an output: None for an array, np.generic for a NumPy
    scalar, or the class of a Python number.
    """

    index: int
    form: type | None = None

    def of(self, value: Any) -> Any:
        """Return a run's output in the form in which the function returns it."""
        if self.form is None:
            return value
        return value[()] if self.form is np.generic else value.item()


@dataclass(frozen=True, slots=True)
class NumberSlot:
    """In a tree: the position of a number among the numbers that vary from call to call."""

    index: int


@dataclass(frozen=True, slots=True)
class Varying:
    """Among the types for `trace_into`: a Python number that varies from call to call."""

    value: int | float | complex


@dataclass(frozen=True, slots=True)
class Static:
    """In a tree, and among the types for `trace`: a fixed value that is no input or output."""

    value: Any


def mapped(leaf: Callable[[Any, str], Any], value: Any, path: str) -> Any:
    """Return the same nested tuples, lists and dicts, with `leaf(value, path)` for each leaf value.

    A pair of a dtype and a shape is a leaf.
    """
    items = None if is_pair(value) else children(value)
    if items is None:
        return leaf(value, path)
    values = [mapped(leaf, item, f"{path}_{key}" if path else str(key)) for key, item in items]
    return like(value, values)


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the items of a tuple, list or dict by position or key; None for a leaf."""
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    if isinstance(value, (tuple, list)):
        several = cast("Sequence[Any]", value)
        names: Any = getattr(several, "_fields", range(len(several)))
        return list(zip(names, several, strict=True))
    return None


def like(value: Any, values: Iterable[Any]) -> Any:
    """Return a container of the same type, names and keys with other values."""
    if isinstance(value, dict):
        return dict(zip(map(concrete, cast("dict[Any, Any]", value)), values, strict=True))
    kind: Any = cast("object", type(value))
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def filled(tree: Any, values: Sequence[Any]) -> Any:
    """Return a tree with values for its Slots, and with the values of its Statics."""
    return mapped(
        lambda leaf, _: leaf.of(values[leaf.index]) if type(leaf) is Slot else leaf.value, tree, ""
    )


def match(tree: Any, value: Any, values: dict[Slot | NumberSlot, Any], path: str) -> None:
    """Add the values at the slots of a tree to `values`.

    The function raises GraphError, with the `path` to the place, if the structures differ.
    """
    if isinstance(tree, (Slot, NumberSlot)):
        values[tree] = value
        return
    inside, children_given = children(tree), children(value)
    if inside is None:
        return  # a static value
    if children_given is None or [key for key, _ in inside] != [key for key, _ in children_given]:
        raise GraphError(
            f"{path} differ in structure from those of the trace",
            fix="trace again with arguments of this structure",
        )
    for (key, subtree), (_, other) in zip(inside, children_given, strict=True):
        match(subtree, other, values, f"{path}[{key!r}]")


def values_of_kind(values: Mapping[Any, Any], kind: type) -> list[Any]:
    """Return the values at slots of a kind, in their order."""
    return [values[kind(i)] for i in range(len(values)) if kind(i) in values]


# -- leaves


def type_of(value: Any) -> TensorType | None:
    """Return the type that an argument of `trace` stands for, or None for a static value."""
    if isinstance(value, TensorType):
        return value
    if isinstance(value, (DType, np.dtype)):
        return TensorType(cast(Any, value))
    if isinstance(value, type):
        if value in WEAK:
            return TensorType(WEAK[value])
        return TensorType(cast(Any, value)) if issubclass(value, np.generic) else None
    if is_pair(value):
        return TensorType(*value)
    if is_foreign_array(cast("type[Any]", type(value))):
        usual = isinstance(getattr(value, "dtype", None), (np.dtype, DType))
        value = value if usual else to_numpy_array(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return TensorType(value.dtype, value.shape)
    return None


def is_pair(value: Any) -> bool:
    """Whether a value is, or is meant as, a pair of a dtype and a tuple or list of dims."""
    if type(value) is not tuple or len(cast("tuple[Any, ...]", value)) != 2:
        return False
    dtype, shape = cast("tuple[Any, Any]", value)
    if isinstance(dtype, str) and DTYPE_NAME.fullmatch(dtype):
        return isinstance(shape, (tuple, list))
    if not isinstance(shape, (tuple, list)) or not isinstance(dtype, (str, type, DType, np.dtype)):
        return False
    try:
        DType(cast(Any, dtype))
        shape_of(cast(Any, shape))
    except (GraphirError, TypeError, ValueError):
        return False
    return True


DTYPE_NAME = re.compile(r"(u?int|b?float|complex)[0-9]+\w*|bool|half|single|double")
"""The spelling of a dtype's name; text of this form is meant as a dtype even if no dtype has it."""
