"""Calls of NumPy's own functions, for the op `call`.

Where NumPy reads an array matters for its bits: sums are added in the order of memory, and loops
differ by strides and alignment. A `NumPyCall` therefore lays out each operand as it lay in the
traced program, and calls the function that the program calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from graphir.errors import ExecutionError, GraphirError
from graphir.hints import Array

Function = Callable[..., Any]
"""A function of NumPy, or a handler of its calls."""
Keywords = Mapping[str, Any]
"""The keyword arguments of a call."""


class HandledError(ExecutionError):
    """An outcome of NumPy that a graph cannot follow: `jit` runs the function itself instead."""


def has_odd_step(array: Array) -> bool:
    """Whether a vector of one element, as x[:1][::-1], has another step than the next element.

    Such a vector is contiguous, but NumPy chooses the loop of a ufunc by the step.
    """
    return array.ndim == 1 and array.size == 1 and array.strides[0] != array.itemsize


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """How an array lies in memory: its strides, its first byte, and the bytes of the whole memory.

    `offset` counts from an aligned address.
    """

    strides: tuple[int, ...]
    offset: int
    size: int
    is_plain: bool
    """Whether the array is aligned and in row-major order."""

    @classmethod
    def of(cls, array: Array) -> MemoryLayout:
        """Return the layout of an array."""
        low, high = np.lib.array_utils.byte_bounds(array)
        first = array.__array_interface__["data"][0]
        shift = low % array.dtype.alignment
        flags = array.flags
        is_plain = flags.c_contiguous and flags.aligned and not has_odd_step(array)
        return cls(array.strides, first - low + shift, high - low + shift, is_plain)

    def laid_out(self, values: Array, copies: bool = False) -> Array:
        """Return values in memory of this layout; the array itself if it has the layout."""
        flags = values.flags
        if self.is_plain and flags.c_contiguous and flags.aligned and not copies:
            return np.array(values) if has_odd_step(values) else values
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return zeros in new memory of this layout."""
        memory: Any = np.zeros(self.size, np.uint8)
        return np.ndarray(shape, dtype, memory, self.offset, self.strides)


@dataclass(frozen=True, slots=True)
class OperandPlace:
    """The place of an operand of the op among the arguments of a function.

    `layout` is None for a NumPy scalar. The function writes to an `is_output` operand.
    """

    index: int
    layout: MemoryLayout | None = None
    is_output: bool = False

    def value(self, operands: Sequence[Any]) -> Any:
        """Return the argument of the function for the operands of the op."""
        operand = np.asarray(operands[self.index])
        if self.layout is None:
            return operand[()]
        # Writable, since np.convolve and others copy an array that is read-only.
        return self.layout.laid_out(operand, self.is_output)


@dataclass(frozen=True, slots=True)
class NewArrayPlace:
    """The place of a new array, to which a function writes a result, among its arguments."""

    layout: MemoryLayout
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class NumPyCall:
    """A call of a function or ufunc of NumPy, with an `OperandPlace` for each operand.

    The results are those of the function, one by one, and then the new values of the operands to
    which it writes. `raises` says whether values decide if the function raises an error, and
    `is_handled` whether an error changes what the program does, or had done before. `usual` are
    the dtypes and shapes of the results, if they depend on values; others raise HandledError.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        raises: bool,
        is_handled: bool = False,
        usual: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
    ) -> None:
        self.inside = "" if function is np.ndarray.view else None  # of views, which convert nothing
        self.function, self.args, self.kwargs = function, args, kwargs
        self.raises, self.is_handled, self.usual = raises, is_handled, usual
        values = [*args, *kwargs.values()]
        self._is_flat = not any(isinstance(x, (tuple, list, dict, slice)) for x in values)
        places = {x.index: x for x in leaves(values) if type(x) is OperandPlace}
        self._places = [places[index] for index in sorted(places)]

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Return the results; an error of NumPy is an ExecutionError of NumPy's class as well."""
        values = [place.value(operands) for place in self._places]

        def argument(leaf: Any) -> Any:
            kind: Any = cast("object", type(leaf))
            if kind is OperandPlace:
                return values[leaf.index]
            return leaf.layout.empty(leaf.shape, leaf.dtype) if kind is NewArrayPlace else leaf

        if self._is_flat:
            args = [argument(value) for value in self.args]
            kwargs = {key: argument(value) for key, value in self.kwargs.items()}
        else:
            args, kwargs = mapped(argument, [[*self.args], dict(self.kwargs)])
        try:
            with np.errstate(all="ignore"):
                result = self.function(*args, **kwargs)
        except Exception as error:
            if self.is_handled:
                text = f"{type(error).__name__}: {error}"
                raise HandledError("the program handles an error", reason=text) from None
            raise _as_execution_error(error) from None
        outputs = [values[place.index] for place in self._places if place.is_output]
        news = (*new_leaves(result, values), *outputs)
        if self.usual is not None and self.usual != [(x.dtype, x.shape) for x in news]:
            raise HandledError("values decide the shapes of the results")
        return tuple([np.asarray(value, order="C") for value in news])


def new_leaves(result: Any, arguments: Iterable[Any]) -> list[Any]:
    """Return the results of a call, one by one, without None and arguments that it returns."""
    arrays = {id(value) for value in arguments if issubclass(type(value), np.ndarray)}
    return [leaf for leaf in leaves(result) if leaf is not None and id(leaf) not in arrays]


def mapped(leaf: Callable[[Any], Any], value: Any) -> Any:
    """Return the same tuples, lists, dicts and slices, with `leaf(value)` for each leaf value."""
    kind: Any = cast("object", type(value))
    if isinstance(value, (list, tuple)):
        items: Any = [mapped(leaf, item) for item in cast("Sequence[Any]", value)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if kind is dict:
        return {key: mapped(leaf, item) for key, item in value.items()}
    if kind is slice:
        return slice(leaf(value.start), leaf(value.stop), leaf(value.step))
    return leaf(value)


def leaves(value: Any) -> Iterator[Any]:
    """Yield all leaf values of tuples, lists, dicts and slices."""
    kind: Any = cast("object", type(value))
    if issubclass(kind, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif issubclass(kind, dict):
        yield from leaves(list(value.values()))
    elif kind is slice:
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _as_execution_error(error: Exception) -> Exception:
    """Return an error of NumPy as an ExecutionError that derives from NumPy's class too."""
    if isinstance(error, (ExecutionError, MemoryError)):
        return error
    if issubclass(ExecutionError, type(error)):
        return ExecutionError(str(error))
    return joint_class(ExecutionError, type(error))(str(error))


@lru_cache(256)
def joint_class(ours: type[GraphirError], numpys: type[Exception]) -> Any:
    """Return the class of errors that are of both classes, under the name of NumPy's."""
    fields = {"__doc__": numpys.__doc__, "__reduce__": _reduce, "__module__": numpys.__module__}
    return type(numpys.__name__, (ours, numpys), fields)


def _reduce(error: Any) -> Any:
    return restored, (*type(error).__bases__, error.args, vars(error))


def restored(
    ours: type[GraphirError], numpys: type[Exception], args: Any, fields: Mapping[str, Any]
) -> Any:
    """Return an error of both classes, with its arguments and fields."""
    kind: Any = joint_class(ours, numpys)
    error: Any = kind.__new__(kind)
    error.args = args
    cast("dict[str, Any]", vars(error)).update(fields)
    return error
