"""Array: the array object of the namespace, a mutable reference to a lazy symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from types import EllipsisType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphir.hints import Int
from graphir.ir.operators.in_place import check_writable
from graphir.ir.operators.powers import shortcut
from graphir.ops.op import Op
from graphir.promotion.scalars import WEAK
from graphir.public import DType, GraphError, GraphirError, ShapeError, TensorType, ops
from graphir.runtime.array_api.forcing import bounded, value_of
from graphir.runtime.array_api.lazy import TAPE, Lazy

if TYPE_CHECKING:
    from graphir.runtime.array_api.views import ArrayView


# -- Python's operators, with arrays and Python scalars on either side

Unary: TypeAlias = "Callable[[Any], Array]"
Binary: TypeAlias = "Callable[[Any, Any], Array]"


def _with_name(name: str, method: Callable[..., Any]) -> Any:
    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _unary(name: str, op: Op) -> Unary:
    def operate(self: Array, /) -> Array:
        return _operate(op, self)

    return _with_name(name, operate)


def _comparison(name: str, op: Op) -> Binary:
    def operate(self: Array, other: Array | complex, /) -> Array:
        return _operate(op, self, other)

    return _with_name(name, operate)


def _binary(name: str, op: Op) -> tuple[Binary, Binary, Binary]:
    """Return the methods of `x + y`, of its reflected form and of `x += y`."""

    def reflected(self: Array, other: Array | complex, /) -> Array:
        return _operate(op, other, self)

    def write(self: Array, other: Array | complex, /) -> Array:
        return _assign_in_place(self, getattr(self, f"__{name}__")(other))

    return _comparison(name, op), _with_name(f"r{name}", reflected), _with_name(f"i{name}", write)


class ArrayOperators:
    """The operators of Array: each operator, its reflected form, and its in-place form."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType] -- `==` is elementwise, and `+=` changes
    __array_ufunc__ = None  # NumPy's operators leave it to these

    __add__, __radd__, __iadd__ = _binary("add", ops.add)
    __sub__, __rsub__, __isub__ = _binary("sub", ops.subtract)
    __mul__, __rmul__, __imul__ = _binary("mul", ops.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary("truediv", ops.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floordiv", ops.floor_divide)
    __mod__, __rmod__, __imod__ = _binary("mod", ops.remainder)
    _pow, __rpow__, __ipow__ = _binary("pow", ops.pow)
    __matmul__, __rmatmul__, __imatmul__ = _binary("matmul", ops.matmul)
    __and__, __rand__, __iand__ = _binary("and", ops.bitwise_and)
    __or__, __ror__, __ior__ = _binary("or", ops.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary("xor", ops.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary("lshift", ops.left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary("rshift", ops.right_shift)
    __lt__ = _comparison("lt", ops.less)
    __le__ = _comparison("le", ops.less_equal)
    __gt__ = _comparison("gt", ops.greater)
    __ge__ = _comparison("ge", ops.greater_equal)
    __neg__ = _unary("neg", ops.negative)
    __pos__ = _unary("pos", ops.positive)
    __abs__ = _unary("abs", ops.abs)
    __invert__ = _unary("invert", ops.bitwise_invert)

    def __eq__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _operate(ops.equal, self, other)

    def __ne__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _operate(ops.not_equal, self, other)

    def __pow__(self, other: Array | complex, /) -> Array:
        return _power(self, other)


# -- the array

SCALARS = tuple(WEAK)
"""The types of Python scalars, which take the dtype of an array beside them."""
_NONE: Mapping[str, Any] = {}

_KeyEntry: TypeAlias = "Int | slice[Any, Any, Any] | EllipsisType | Array | None"
Key: TypeAlias = "_KeyEntry | tuple[_KeyEntry, ...]"
"""The key of `x[key]`, as the standard defines it."""

Device = str
CPU: Device = "cpu"


def device_of(device: str | None) -> Device:
    """Return the device of an argument; None means the CPU. Raise ValueError for another one."""
    if device is not None and device != CPU:
        raise GraphError(f"unknown device {device!r}", fix=f"use {CPU!r}")
    return CPU


class Array(ArrayOperators):
    """An array of the Array API standard 2025.12, created by the functions of the namespace.

    An op records a lazy symbol and infers its dtype and shape at once. The array computes its value
    for bool(), int(), float(), complex(), NumPy, printing, and ops whose result shape depends on
    values. `symbol` is the array's present symbol; item assignment and in-place operators replace
    it. NumPy's views are views here too (slices, transposed and flipped arrays): a write to the
    view or to its base changes both.
    """

    __slots__ = ("__weakref__", "_symbol", "changes", "part")

    def __init__(self, symbol: Lazy, part: ArrayView | None = None) -> None:
        if symbol.__class__ is not Lazy:
            raise TypeError("an Array is not made directly; call asarray(...)")
        self._symbol, self.part, self.changes = symbol, part, 0

    @property
    def symbol(self) -> Lazy:
        """The symbol of the array's present value."""
        part = self.part
        if part is not None and part.changes_seen != (changes := part.base.changes):
            self._symbol = TAPE.constant(part.of(value_of(part.base.symbol)))
            part.changes_seen = changes  # last, so that an exception above leaves the change unseen
        return self._symbol

    @symbol.setter
    def symbol(self, symbol: Lazy) -> None:
        if self.part is not None:
            from graphir.runtime.array_api.views import write

            write(self, ..., value_of(symbol))
        else:
            self._symbol = symbol
            self.changes += 1

    # -- attributes that need no computation

    @property
    def type(self) -> TensorType:
        """The dtype and the shape."""
        return self._symbol.type

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._symbol.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return cast("tuple[int, ...]", self._symbol.type.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._symbol.type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return cast(int, self._symbol.type.size)

    @property
    def device(self) -> str:
        """The device of the array: "cpu"."""
        return CPU

    @property
    def T(self) -> Array:  # noqa: N802 -- the standard's name
        """The transposed matrix, a view; raises ShapeError unless the array has two axes."""
        if self.ndim != 2:
            raise ShapeError(
                ".T takes matrices", got=f"shape {self.shape}", fix="use .mT or permute_dims"
            )
        return self._transpose()

    @property
    def mT(self) -> Array:  # noqa: N802 -- the standard's name
        """The array with its last two axes exchanged, a view; ShapeError for fewer than two."""
        if self.ndim < 2:
            raise ShapeError(".mT takes matrices", got=f"shape {self.shape}")
        return self._transpose()

    def _transpose(self) -> Array:
        from graphir.runtime.array_api.views import view

        return view(ops.transpose, self)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return the namespace; raise ValueError for an unsupported version of the standard."""
        from graphir.runtime import array_api

        if api_version not in (None, *_VERSIONS):
            raise GraphError(
                f"version {api_version!r} of the standard is not supported",
                fix=f"give one of {', '.join(_VERSIONS)}",
            )
        return array_api

    def to_device(self, device: str | None, /, *, stream: int | None = None) -> Array:
        """Return the array itself, since there is one device; ValueError for another device."""
        device_of(device)
        if stream is not None:
            raise GraphError(
                "stream is None, since the CPU has no streams", got=f"stream={stream!r}"
            )
        return self

    # -- items

    def __getitem__(self, key: Key, /) -> Array:
        from graphir.runtime.array_api.indexing import item

        return item(self, key)

    def __setitem__(self, key: Key, value: Array | complex, /) -> None:
        from graphir.runtime.array_api.indexing import assign

        assign(self, key, value)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d array has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("a 0-d array is not iterable")
        return (self[i] for i in range(self.shape[0]))

    # -- values

    def __bool__(self) -> bool:
        return bool(self._item("bool"))

    def __int__(self) -> int:
        return int(self._item("int", "complex"))

    def __float__(self) -> float:
        return float(self._item("float", "complex"))

    def __complex__(self) -> complex:
        return complex(self._item("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"an index is an integer, not {self.dtype}")
        return int(self._item("index"))

    def _item(self, what: str, lacking: str = "") -> Any:
        if self.shape:
            way = "reduce it by any(x) or all(x)" if what == "bool" else "take one element, x[i]"
            raise TypeError(f"{what}() of an array of shape {self.shape}, which is not 0-d; {way}")
        if self.dtype.family == lacking:
            raise TypeError(f"{what}() of {self.dtype}; take .real or abs() first")
        return value_of(self.symbol).item()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return a copy of the values; with copy=False, a read-only view."""
        value = value_of(self.symbol)
        if copy is not False:
            return np.array(value, dtype)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            raise ValueError(f"{self.dtype} to {dtype} needs a copy")
        return _share_buffer(value)

    def __dlpack__(
        self,
        /,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of a copy; with copy=False, of memory that is marked read-only.

        DLPack 1.0 introduced the read-only mark. So a capsule with copy=False has at least version
        1.0, whatever `max_version` says; the standard lets its consumer check. Raises BufferError
        for another device.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"there is no device {dl_device!r}; the array is on the CPU")
        if copy is False:
            max_version = max(max_version or _PAIR, _PAIR)
        return self.__array__(copy=copy).__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self, /) -> tuple[Any, int]:
        """Return DLPack's device pair (CPU, 0)."""
        return np.empty(0).__dlpack_device__()

    def __repr__(self) -> str:
        values = np.array2string(value_of(self.symbol), separator=", ", prefix="Array(")
        return f"Array({values}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(value_of(self.symbol))

    def __format__(self, spec: str) -> str:
        return str(self) if self.shape else format(self._item("format"), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (value_of(self.symbol),)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(no_method(name), name=name, obj=self)


_OPERAND_TYPES = (Array, *SCALARS, np.ndarray, np.generic)
"""The operand types that ops accept or refuse; for others Python asks the reflected operator."""

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The released versions of the standard up to the one that the namespace follows."""
_PAIR = (1, 0)
"""The first version of DLPack with a read-only mark."""

_BY_IDENTITY = (ops.equal, ops.not_equal)
"""The ops for which Python would compare identities after NotImplemented, so they raise."""


def _operate(op: Op, *operands: Any) -> Any:
    """Record an op; return NotImplemented for operands other than arrays and scalars."""
    for operand in operands:
        if not isinstance(operand, _OPERAND_TYPES) and op not in _BY_IDENTITY:
            return NotImplemented
    return record(op, *operands)


def _power(x: Any, exponent: Array | complex) -> Any:
    short = shortcut(TAPE.rules, x.type, exponent)
    if short is None or short.dtype is not x.type.dtype:
        return _operate(ops.pow, x, exponent)
    return _operate(short.op, x)


def _assign_in_place(x: Array, result: Array) -> Any:
    """Replace the value of an array by a result of the same dtype and shape."""
    if result is NotImplemented:
        return result
    old, new = x.type, result.type
    if new is not old:
        check_writable(TAPE.rules, result.symbol.op, old, new)
    x.symbol = result.symbol
    return x


def record(op: Op, *operands: Array | complex, **attrs: Any) -> Array:
    """Record an op on arrays and Python scalars; raise TypeError for other operands."""
    return Array(
        bounded(TAPE.record(op, [_symbol(operand, op) for operand in operands], attrs or _NONE))
    )


def _symbol(operand: Any, op: Op) -> Any:
    if operand.__class__ is Array:
        return operand.symbol
    if isinstance(operand, SCALARS):
        return operand
    raise TypeError(
        f"{op.name} takes arrays of this namespace and Python scalars, not "
        f"{type(operand).__name__}; asarray(...) makes one of it"
    )


def values(x: Any) -> NDArray[Any]:
    """Return the values of an array, which the caller must not modify; TypeError unless Array."""
    return value_of(array_of(x).symbol)


def array_of(x: Any) -> Array:
    """Return the argument if it is an Array; raise TypeError otherwise."""
    if not isinstance(x, Array):
        raise TypeError(
            f"an array of this namespace is needed, not {type(x).__name__}; asarray(...) makes one"
        )
    return x


def array_of_values(value: NDArray[Any]) -> Array:
    """Return an Array of these values, which the caller must not modify from now on."""
    return Array(TAPE.constant(value))


def with_name(function: Callable[..., Any], name: str, doc: str) -> Any:
    """Set the name and the docstring of a generated function of the namespace, and return it."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def eager(function: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """Apply a NumPy function to the values of arrays; return an Array, or a tuple of Arrays."""
    plain = {name: _plain(value) for name, value in settings.items()}
    with np.errstate(all="ignore"):
        result = function(*map(_plain, args), **plain)
    if isinstance(result, tuple):
        return tuple([array_of_values(value) for value in cast("Sequence[Any]", result)])
    return array_of_values(result)


def _plain(value: Any) -> Any:
    return value_of(value.symbol) if isinstance(value, Array) else value


def _share_buffer(value: NDArray[Any]) -> NDArray[Any]:
    view = value.view()
    view.flags.writeable = False
    return view


def _restore(value: NDArray[Any]) -> Array:
    return array_of_values(value)


class LinAlgError(GraphirError, np.linalg.LinAlgError):
    """The error for a matrix without the requested decomposition, inverse or solution."""


def call_numpy(name: str, function: Callable[..., Any], *arrays: Array, **settings: Any) -> Any:
    """Apply a NumPy function to arrays; raise LinAlgError or another ValueError if it fails."""
    try:
        return eager(function, *arrays, **settings)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{_call_text(name, arrays)}: {error}") from None
    except (ValueError, IndexError) as error:
        raise GraphError(f"{_call_text(name, arrays)}: {error}") from None


def _call_text(name: str, arrays: tuple[Array, ...]) -> str:
    return f"{name} of {' and '.join(str(x.type) for x in arrays)}"


# -- names that the namespace lacks


def no_method(name: str) -> str:
    """Return the error text for an attribute that Array lacks, with the namespace's counterpart."""
    message = f"an Array has no {name!r}"
    if name in ("item", "tolist"):
        return f"{message}; float(x), int(x) or np.asarray(x).{name}()"
    if name == "copy":
        return f"{message}; call asarray(x, copy=True)"
    ours = None if name.startswith("_") else _ours(name)
    return f"{message}; call the namespace's {ours}(x, ...)" if ours else message


def no_name(name: str) -> str:
    """Return the error text for a name that the standard lacks, with its nearest counterpart."""
    message = f"the array API standard has no {name!r}"
    ours = None if name.startswith("_") else _ours(name)
    return f"{message}; {ours} is the nearest" if ours else message


_OTHERS = {
    "array": "asarray",
    "asanyarray": "asarray",
    "dot": "matmul",
    "transpose": "permute_dims",
}


@lru_cache  # libraries call hasattr(...) often
def _ours(name: str) -> str | None:
    """Return the standard's name of a NumPy function, or the nearest name, or None."""
    from graphir.runtime import array_api

    names = array_api.__all__
    if name in names or name in _OTHERS:
        return _OTHERS.get(name, name)
    function = getattr(np, name, None)
    for candidate in names:
        if function is not None and function is getattr(np, candidate, None):
            return candidate
    return next(iter(get_close_matches(name, names, 1, 0.8)), None)
