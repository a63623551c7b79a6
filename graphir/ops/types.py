"""The static types of symbols: TensorType, TupleType for several values, and OpaqueType."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError
from graphir.ops.dims import Shape, ShapeLike, Size, product, shape_of, shape_text

_LOCK = Lock()
_TYPES: WeakValueDictionary[Any, TensorType] = WeakValueDictionary()


class TensorType:
    """A dtype and a shape of ints and symbolic dims: `TensorType("float32", (n, 3))`.

    Types are interned: equal types are the same object, so comparison and hash use identity.
    """

    __slots__ = ("__weakref__", "_cast", "dtype", "shape")

    dtype: DType
    shape: Shape
    _cast: dict[int, TensorType]  # by the code of a dtype

    def __new__(cls, dtype: DTypeLike, shape: ShapeLike = ()) -> TensorType:
        """Return the only object for this dtype and shape."""
        dtype, shape = dtype if isinstance(dtype, DType) else DType(dtype), shape_of(shape)
        key = dtype.code, shape
        existing = _TYPES.get(key)
        if existing is not None:
            return existing
        new = super().__new__(cls)
        new.dtype, new.shape = dtype, shape
        new._cast = {}
        with _LOCK:  # setdefault of a weak dictionary is not atomic
            return _TYPES.setdefault(key, new)

    def __reduce__(self) -> tuple[type[TensorType], tuple[DType, Shape]]:
        return TensorType, (self.dtype, self.shape)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements, an int or a symbolic dim."""
        return product(self.shape)

    def cast(self, dtype: DType) -> TensorType:
        """Return the type with the same shape and another dtype."""
        type_ = self._cast.get(dtype.code)
        if type_ is None:
            type_ = self._cast[dtype.code] = TensorType(dtype, self.shape)
        return type_

    def with_dtypes(self, change: Callable[[DType], DType]) -> TensorType:
        """Return the type with `change` applied to its dtype, or to those of its parts."""
        return self.cast(change(self.dtype))

    @property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of the parts of a tuple; of a tensor, the type itself alone."""
        return (self,)

    def __str__(self) -> str:
        return f"{self.dtype}{shape_text(self.shape)}"

    def __repr__(self) -> str:
        return f"TensorType({str(self.dtype)!r}, {shape_text(self.shape)})"


class NoTensorType(TensorType):
    """Base class of types without dtype and shape: to read one raises MissingTypeError."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("dtype", "shape", "rank", "size"):
            raise MissingTypeError(f"this value has no {name}", got=str(self), fix=self._fix)
        raise AttributeError(name)

    @property
    def _fix(self) -> str | tuple[()]:
        return ()


class OpaqueType(NoTensorType):
    """The type of a value that is no array, such as a random key; the op `call` takes and gives it.

    `name` is the library's name of the type. Types are interned, as TensorTypes are.
    """

    __slots__ = ("name",)

    def __new__(cls, name: str) -> OpaqueType:
        """Return the only object for this name."""
        new = object.__new__(cls)
        new.name = name
        with _LOCK:
            existing: Any = _TYPES.setdefault((cls, name), new)
        return existing

    def __reduce__(self) -> Any:
        return OpaqueType, (self.name,)

    def with_dtypes(self, change: Callable[[DType], DType]) -> OpaqueType:
        """Return the type itself."""
        return self

    def __str__(self) -> str:
        return f"opaque({json.dumps(self.name)})"

    def __repr__(self) -> str:
        return f"OpaqueType({self.name!r})"


class TupleType(NoTensorType):
    """The type of a symbol of control flow or of a call, whose value is a tuple.

    The op `part` gives the values. Types are interned, as TensorTypes are.
    """

    __slots__ = ("_parts",)

    def __new__(cls, parts: Iterable[TensorType]) -> TupleType:
        """Return the only object for the types of the parts."""
        key = tuple(parts)
        new = object.__new__(cls)
        new._parts = key
        with _LOCK:
            existing: Any = _TYPES.setdefault(key, new)
        return existing

    def __reduce__(self) -> Any:
        return TupleType, (self._parts,)

    @property
    def parts(self) -> tuple[TensorType, ...]:
        """The types of the parts."""
        return self._parts

    def with_dtypes(self, change: Callable[[DType], DType]) -> TupleType:
        """Return the type with `change` applied to the dtypes of its parts."""
        return TupleType(part.with_dtypes(change) for part in self._parts)

    @property
    def _fix(self) -> str:
        return "take a part: ops.part(x, 0)"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self._parts))})"

    def __repr__(self) -> str:
        return f"TupleType({self._parts!r})"


class MissingTypeError(GraphError, AttributeError):
    """The type has no dtype and no shape."""


def tensor_types(types: Iterable[TensorType]) -> tuple[TensorType, ...]:
    """Return one type or several as a tuple; raise GraphError for a value that is no TensorType."""
    result = (types,) if isinstance(types, TensorType) else tuple(types)
    for type_ in result:
        if type(type_) is not TensorType:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("in_types and out_types are TensorTypes", got=f"{type_!r}")
    return result
