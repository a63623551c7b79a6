"""SymbolicArray and SymbolicScalar: the ndarrays and NumPy scalars of a traced function."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, Literal, NoReturn, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from graphir.errors import GraphError
from graphir.hints import Ints
from graphir.ir.graph import Graph
from graphir.ir.operators.in_place import refuse_write
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays import function_calls, ufunc_calls
from graphir.numpy_api.arrays.boundary import at_boundary, attributes_of, bounded
from graphir.numpy_api.arrays.builtin_stand_ins import hide_attributes
from graphir.numpy_api.arrays.call_operands import (
    adopted,
    array_from,
    cast_symbol,
    plains,
)
from graphir.numpy_api.arrays.element_access import get, put
from graphir.numpy_api.arrays.makers import is_taken_for_dtype
from graphir.numpy_api.arrays.memory import (
    ArrayAttributeError,
    ArrayTypeError,
    ArrayValue,
    Cell,
    LayoutUse,
    OrderError,
    ScalarValue,
    TraceMemory,
    plainly,
)
from graphir.numpy_api.arrays.selections import SelectionValue
from graphir.numpy_api.arrays.temporaries import set_experiment
from graphir.numpy_api.arrays.value_methods import (
    REDUCTIONS,
    DispatchProtocols,
    FunctionMethods,
    UnknownValueMethods,
    method_of,
    operator_method,
    refuse_conversion,
    stands_for,
    ufunc_protocol,
    unknown_values_error,
    with_functions,
)
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.view_steps import BitView, Pick
from graphir.ops.dims import ShapeLike
from graphir.semantics.library_calls import Keywords

_CLASS = type


def _moving(name: str) -> Callable[..., Any]:
    """Return a method that gives a view where NumPy gives a view, else a copy of the elements."""

    def method(self: SymbolicArray, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = plains(args), plains(kwargs)
        memory = self.memory
        if self.layout is None:
            return _unplaced(self, name, args, kwargs)
        real = plainly(getattr(self.plain, name), *args, **kwargs)
        if np.may_share_memory(real, self.plain) and real.size:
            return self.of_view(real)
        if self.is_known:
            return memory.plain_array(real)
        order = kwargs.get("order", next((value for value in args if isinstance(value, str)), "C"))
        if order == "C" or (order == "A" and not self.plain.flags.forc):
            symbol = memory.reshaped(self.read(), real.shape)
        else:
            places = np.empty_like(self.plain, dtype=np.intp)
            places[...] = np.arange(places.size).reshape(places.shape)
            if order == "K" and 0 in self.plain.strides:
                raise OrderError(
                    "order='K' is not followed in a broadcast array", fix="use order='C'"
                )
            symbol = Pick(getattr(places, name)(*args, **kwargs)).forward(memory, self.read())
        return memory.array(Cell(memory, real, symbol))

    vars(method)["__signature__"] = inspect.signature(getattr(np.ndarray, name))
    return method


def _unplaced(x: SymbolicArray, name: str, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Call a method on an array of unknown layout, and forbid later writes to the array.

    A view of unknown layout may share the memory, so a write could not update the view.
    """
    x.cell.frozen = x.cell.frozen or "it has views of unknown layout"
    method: Any = method_of(getattr(np, name, np.ravel))
    if name == "reshape" and kwargs.get("order", "C") == "C":
        return x.memory.value_of(x.read().reshape(*args))
    array = method(x, *args, **kwargs)
    array.cell.frozen = x.cell.frozen
    return array


@stands_for(np.ndarray, in_place=True)
class SymbolicArray(DispatchProtocols, FunctionMethods, UnknownValueMethods, ArrayValue):
    """An ndarray of a traced function, with NumPy's views, writes and dtypes.

    `isinstance(x, np.ndarray)` is true. Compiled code still cannot use the object as an ndarray: it
    calls `__array__`, which refuses an array without known values.
    """

    __slots__ = ()
    __array_priority__ = 0.0
    __array_finalize__ = None

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return np.ndarray

    # -- facts

    @property
    def dtype(self) -> Any:
        """The dtype as a NumPy dtype; an error where NumPy takes the array itself for a dtype."""
        if is_taken_for_dtype(_getframe(1)):
            return plainly(np.dtype, np.empty(0))
        return self.element.to_numpy()

    @dtype.setter
    def dtype(self, value: DTypeLike | None) -> NoReturn:
        refuse_write("dtype")

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes."""
        return self.dims

    @shape.setter
    def shape(self, value: ShapeLike) -> None:
        if self.is_argument:
            raise GraphError(
                "the caller's array would change its shape", fix="use x = x.reshape(shape)"
            )
        view = self.plain.view()
        plainly(setattr, view, "shape", plains(value))
        self._view, self._read = view, None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.dims)

    @property
    def size(self) -> Any:
        """The number of elements."""
        size: Any = 1
        for dim in self.dims:
            size = size * dim
        return size

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """The size of all elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes from an element to the next on each axis."""
        self.memory.reads_layouts(LayoutUse.ALL)
        return self.plain.strides

    @strides.setter
    def strides(self, value: Sequence[int]) -> NoReturn:
        refuse_write("strides")

    @property
    def flags(self) -> Any:
        """NumPy's flags of the memory layout."""
        self.memory.reads_layouts(LayoutUse.ALL)
        return self.plain.flags

    @property
    def base(self) -> Any:
        """The array whose memory this array views; None for an array with its own memory."""
        if self.is_argument:
            raise GraphError(
                "whether an argument is a view is no part of its signature", fix="pass a copy"
            )
        return None if self.layout is self.cell.layout else type(self)(self.cell)

    def setflags(
        self, write: bool | None = None, align: bool | None = None, uic: bool | None = None
    ) -> None:
        """Set NumPy's flags of this array."""
        self._view = self.plain.view()
        plainly(self._view.setflags, write=write, align=align, uic=uic)

    # -- elements

    def __getitem__(self, key: Any) -> Any:
        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        put(self, key, value)

    def __len__(self) -> int:
        if not self.dims:
            return plainly(len, np.empty(()))  # which raises NumPy's error
        return self.dims[0] if isinstance(self.dims[0], int) else len(self.read())

    def __iter__(self) -> Iterator[Any]:
        if not self.dims:
            return plainly(iter, np.empty(()))  # which raises NumPy's error
        if not isinstance(self.dims[0], int):
            return iter(self.read())
        return (self[i] for i in range(len(self)))

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return FlatValues(self)

    @flat.setter
    def flat(self, value: ArrayLike) -> None:
        FlatValues(self)[:] = value

    def item(self, *args: Ints) -> Any:
        """Return an element as a Python number; raise GraphError if the values are unknown."""
        return plainly(self.plain.item, *args) if self.is_known else float(cast("Any", self.read()))

    def tolist(self) -> Any:
        """Return the elements as Python numbers; raise GraphError if the values are unknown."""
        return self.plain.tolist() if self.is_known else self._values()

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """Return the bytes of the elements; raise GraphError if the values are unknown."""
        return self.plain.tobytes(order) if self.is_known else bytes(self._values())

    # -- views and copies

    dot = method_of(np.dot)
    argpartition = method_of(np.argpartition)

    reshape = _moving("reshape")
    ravel = _moving("ravel")
    flatten = _moving("flatten")
    transpose = _moving("transpose")
    swapaxes = _moving("swapaxes")
    squeeze = _moving("squeeze")
    diagonal = _moving("diagonal")

    @property
    def T(self) -> Any:  # noqa: N802 -- NumPy's name
        """The array with its axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Any:  # noqa: N802 -- the Array API's name
        """The array with its last two axes exchanged."""
        return self.swapaxes(-1, -2)

    def view(self, dtype: DTypeLike | None = None, type: type = np.ndarray) -> Any:  # noqa: A002 -- NumPy's name
        """Return another view of the same elements, or of the same bytes in another dtype."""
        dtype = None if dtype is np.ndarray else dtype
        kind: Any = dtype if isinstance(dtype, _CLASS) else object
        if type is not np.ndarray or issubclass(kind, np.ndarray):
            raise GraphError("graphs have no subclasses of ndarray", fix="use an ndarray")
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self.of_view(self.plain.view())
        view = plainly(self.plain.view, dtype)
        if view.dtype.kind not in "iufc" or not view.dtype.isnative:
            raise GraphError(
                f"a graph has no bytes of {self.dtype} as {view.dtype}", fix="use .astype(...)"
            )
        self.memory.reads_layouts(LayoutUse.ALL)
        step = BitView(self.dtype, view.dtype)
        return SymbolicArray(self.cell, view, view, (*self.steps, step))

    def copy(self, order: str = "C") -> Any:
        """Return a copy of the elements in its own memory."""
        return self._copied(order)

    def _copied(self, order: str) -> Any:
        memory = self.memory
        if self.is_known:
            copy = memory.plain_array(self.plain.copy(cast("Any", order)))
            copy.cell.fill = self.cell.fill
            return copy
        return self._laid_out(self.read(), order)

    def _laid_out(self, symbol: Symbol, order: str) -> Any:
        """Return a new array of a symbol, in the layout that `order` makes of this array's."""
        if self.layout is None or (self.in_order and order != "F"):
            return self.memory.value_of(symbol)
        dtype = symbol.dtype.to_numpy()
        plain = np.empty_like(self.plain, dtype, cast("Any", order), subok=False)
        return self.memory.array(Cell(self.memory, plain, symbol))

    def __copy__(self) -> Any:
        return self._copied("K")

    def __deepcopy__(self, _: dict[int, Any]) -> Any:
        return self._copied("K")

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return the elements in another dtype."""
        if self.is_known:
            real = plainly(self.plain.astype, dtype, order, casting, subok, copy)
            return adopted(self.memory, real, [self])
        symbol = self.read()
        new = symbol.astype(dtype) if not symbol.dtype.is_complex else _of_complex(symbol, dtype)
        source, to = symbol.dtype.to_numpy(), new.dtype.to_numpy()
        if not np.can_cast(source, to, cast("Any", casting)):
            raise ArrayTypeError(
                f"NumPy does not cast {source} to {to} with casting={casting!r}",
                op="astype",
                fix="use casting='unsafe'",
            )
        if new.dtype is symbol.dtype:
            return self if self.lies_in(order) and not copy else self._copied(order)
        return self._laid_out(new, order)

    @property
    def real(self) -> Any:
        """The real parts, as a view."""
        return function_calls.call_function(np.real, (self,), {})

    @real.setter
    def real(self, value: ArrayLike) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary parts: a view for complex numbers, read-only zeros for real ones."""
        if self.dtype.kind == "c" or self.is_known:
            return function_calls.call_function(np.imag, (self,), {})
        return self.memory.plain_array(cast("Any", self.plain).imag)

    @imag.setter
    def imag(self, value: ArrayLike) -> None:
        if self.dtype.kind != "c":
            raise ArrayTypeError(
                "a real array has no imaginary part to set",
                op="x.imag = y",
                fix="use x.astype(complex)",
            )
        self.imag[...] = value

    # -- writes

    def fill(self, value: ArrayLike) -> None:
        """Set every element to a number."""
        if np.ndim(value):
            raise GraphError("fill takes a number", fix="use x[...] = y", got="an array")
        function_calls.assign_all(self, value)

    def partition(
        self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
    ) -> None:
        """Put smaller elements before the elements at `kth`, and larger ones after, in place."""
        self[...] = np.partition(cast("Any", self), kth, axis, cast("Any", kind), order)

    def sort(
        self,
        axis: int = -1,
        kind: str | None = None,
        *,
        stable: bool | None = None,
        descending: bool | None = None,
    ) -> None:
        """Sort the elements in place."""
        settings = {"descending": descending} if descending else {}
        self[...] = function_calls.call_function(
            np.sort, (self, axis, kind), {"stable": stable, **settings}
        )

    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """Set elements by their positions in row-major order."""
        function_calls.call_function(np.put, (self, indices, values, mode), {})

    # -- values, which exist only if they are known

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        if not self.is_known:
            self._values()
        if dtype is not None or copy:
            return np.array(self.plain, dtype)
        real = self.plain.view()
        real.setflags(write=False)
        return real

    def _values(self) -> NoReturn:
        refuse_conversion(self)

    def __contains__(self, item: object) -> bool:
        return bool((self == item).any())  # pyright: ignore

    __hash__ = None  # pyright: ignore -- as an ndarray

    def __delitem__(self, key: Any) -> NoReturn:
        raise GraphError("NumPy deletes no elements of an array", fix="use np.delete")


def _of_array(name: str) -> Callable[..., Any]:
    """Return the method of a scalar that is that of an array without axes."""

    def method(self: SymbolicScalar, *args: Any, **kwargs: Any) -> Any:
        array: Any = self.memory.value_of(self.symbol)
        return getattr(array, name)(*args, **kwargs)[()]

    vars(method)["__signature__"] = inspect.signature(getattr(np.ndarray, name))
    return method


@stands_for(np.generic, in_place=False)
class SymbolicScalar(DispatchProtocols, FunctionMethods, UnknownValueMethods, ScalarValue):
    """A NumPy scalar of a traced function: an immutable number."""

    __slots__ = ()
    __array_priority__ = ufunc_calls.LEAST_PRIORITY

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return self.number_class or self.symbol.dtype.to_numpy().type

    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    strides: tuple[int, ...] = ()

    @property
    def dtype(self) -> Any:
        """The dtype as a NumPy dtype."""
        return self.symbol.dtype.to_numpy()

    @property
    def itemsize(self) -> int:
        """The size of the number in bytes."""
        return self.dtype.itemsize

    nbytes = itemsize

    base = None

    @property
    def flat(self) -> Any:
        """The number, as the element of an array."""
        return FlatValues(self._array())

    @property
    def T(self) -> Any:  # noqa: N802 -- NumPy's name
        """The scalar itself."""
        return self

    @property
    def real(self) -> Any:
        """The real part."""
        symbol = self.symbol
        return self.memory.value_of(symbol.real if symbol.dtype.is_complex else symbol, True)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.memory.value_of(self.symbol.imag, True)

    def _array(self) -> Any:
        return self.memory.value_of(self.symbol)

    reshape = _of_array("reshape")
    ravel = _of_array("ravel")
    flatten = _of_array("flatten")
    transpose = _of_array("transpose")
    squeeze = _of_array("squeeze")

    def copy(self, order: str = "C") -> Any:
        """Return the scalar itself, which is immutable."""
        return self

    __copy__ = copy

    def __deepcopy__(self, _: dict[int, Any]) -> Any:
        return self

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return the number in another dtype."""
        symbol = self.symbol
        if casting != "unsafe":
            return self._array().astype(dtype, order, casting)[()]
        new = symbol.astype(dtype) if not symbol.dtype.is_complex else _of_complex(symbol, dtype)
        return self.memory.value_of(new, scalar=True)

    def __getitem__(self, key: Any) -> Any:
        return self if type(key) is tuple and not key else self._array()[key]

    __iter__ = None

    def item(self, *args: Ints) -> Any:
        """Raise GraphError: the value of the number is unknown until the graph runs."""
        return float(cast("Any", self.read()))

    tolist = item

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_conversion(self)

    def __round__(self, digits: SupportsIndex | None = None) -> Any:
        if digits is None:
            raise GraphError(
                "the result is a Python int, known when the graph runs",
                fix="use np.round(x)",
            )
        return function_calls.call_function(np.round, (self, digits), {})

    def __hash__(self) -> int:
        raise unknown_values_error()


def _of_complex(symbol: Symbol, dtype: Any) -> Symbol:
    """Return a cast of complex numbers, from which NumPy keeps the real parts."""
    to = symbol.real.astype(dtype)
    return cast_symbol(symbol, to.dtype)


def _refused(what: str) -> Any:
    def refuse(self: SelectionValue, *_: Any, **__: Any) -> NoReturn:
        self.refuse(what)

    return refuse


@stands_for(np.ndarray, in_place=True)
@with_functions(REDUCTIONS)
class SymbolicSelection(DispatchProtocols, SelectionValue):
    """The result of x[mask] in a traced function."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore -- as an ndarray

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return np.ndarray

    @property
    def dtype(self) -> Any:
        """The dtype as a NumPy dtype."""
        return self.symbol.dtype.to_numpy()

    __getitem__ = _refused("[]")
    __len__ = _refused("len()")
    __iter__ = _refused("iteration")
    __array__ = _refused("np.asarray")

    def astype(self, dtype: Any) -> Any:
        """Return the selection in another dtype."""
        symbol = self.symbol.astype(dtype)
        return SymbolicSelection(self.memory, symbol, self.mask, self.in_order)

    def copy(self) -> Any:
        """Return the selection itself."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name not in attributes_of(self):
            raise ArrayAttributeError(f"numpy.ndarray object has no attribute {name!r}")
        self.refuse(f".{name}")


@bounded
class FlatValues:
    """`x.flat` of a symbolic array: its elements in row-major order."""

    def __init__(self, array: SymbolicArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        elements: Any = self._array.flatten()[key]
        return elements.copy() if isinstance(elements, SymbolicArray) else elements

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self._array
        places: Any = plainly(operator.getitem, np.arange(array.size), plains(key))
        if not np.isscalar(value):
            value = array_from(array.memory, value)
            if value.cell is array.cell:
                raise GraphError(
                    "values are of the array that they are put into", fix="pass a copy"
                )
            if value.size not in (1, places.size):
                raise GraphError(
                    f"each of {places.size} places takes one value", got=f"{value.size} values"
                )
            value = value.reshape(-1)
        put(array, np.unravel_index(places.reshape(-1), array.plain.shape), value)

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.flatten())


bounded(TracedNumber)  # whose module the boundary imports
hide_attributes(TracedNumber, np.generic)

_bound = at_boundary("an experiment", len)  # as `bounded` does with the methods above
set_experiment(
    lambda function, call: _bound(operator_method(function, call)),
    lambda call: _bound(ufunc_protocol(call)),
)


def memory_of(graph: Graph) -> TraceMemory:
    """Return a new memory for a trace into a graph."""
    return TraceMemory(graph, SymbolicArray, SymbolicScalar, SymbolicSelection)
