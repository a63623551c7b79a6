"""TensorType: the static type of a symbol, a dtype and a shape."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from weakref import WeakValueDictionary

from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError
from graphir.ops.dims import Shape, ShapeLike, Size, product, shape_of, shape_text

_LOCK = Lock()
_TYPES: WeakValueDictionary[tuple[int, Shape], TensorType] = WeakValueDictionary()


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

    def __str__(self) -> str:
        return f"{self.dtype}{shape_text(self.shape)}"

    def __repr__(self) -> str:
        return f"TensorType({str(self.dtype)!r}, {shape_text(self.shape)})"


def tensor_types(types: Iterable[TensorType]) -> tuple[TensorType, ...]:
    """Return one type or several as a tuple; raise GraphError for a value that is no TensorType."""
    result = (types,) if isinstance(types, TensorType) else tuple(types)
    for type_ in result:
        if not isinstance(type_, TensorType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("in_types and out_types are TensorTypes", got=f"{type_!r}")
    return result
