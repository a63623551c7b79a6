"""The grammar of dims, types and attribute values. The parser never evaluates text as Python.

A recursive-descent parser reads the tokens. Bounds on the depth and on the size of a dim keep its
time and memory small.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ops import attributes as at
from graphir.ops.dims import Dim, Shape, Size, total
from graphir.ops.lexer import Tokens
from graphir.ops.op import Attr
from graphir.ops.types import OpaqueType, TensorType, TupleType

T = TypeVar("T")

DEPTH = 64
"""The maximum depth of brackets, and number of axes of a shape."""
LARGEST_DIM = 1000
"""The maximum size of a dim: its tokens, and the terms of each product of sums in it."""

_WORDS = {"true": True, "false": False, "none": None}
_LISTS_OF_DIMS = {at.shape, at.limits, at.new_shape}


class StoredConstant(NamedTuple):
    """The name of a constant whose values are stored outside of the text."""

    name: str


class Values(Tokens):
    """The part of the parser that needs no graph: dims, types and attribute values."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._types: dict[tuple[str, ...], TensorType] = {}
        self._dim_start = 0

    def type(self) -> TensorType:
        """Read the type of a tensor, of an opaque value, or of a tuple in parentheses."""
        if not self.take("("):
            return self._part_type()
        return TupleType(self.separated(self._part_type, ")"))

    def _part_type(self) -> TensorType:
        if not self.take("opaque"):
            return self.tensor_type()
        self.expect("(")
        name = self.string("the name of a type in quotes")
        self.expect(")")
        return OpaqueType(name)

    def tensor_type(self) -> TensorType:
        """Read a dtype and a shape; a type that occurred before is found by its tokens."""
        start = self.at
        try:
            key = tuple(self.tokens[start : self.tokens.index("]", start) + 1])
        except ValueError:
            key = ()
        if (cached := self._types.get(key)) is not None:
            self.at += len(key)
            return cached
        dtype, shape = self.dtype(), self.shape()
        type_ = self.attempt(start, TensorType, dtype, shape)
        return self._types.setdefault(tuple(self.tokens[start : self.at]), type_)

    def dtype(self) -> DType:
        """Read a dtype by any of its names."""
        start = self.at
        return self.attempt(start, DType, self.name("a dtype"))

    def shape(self) -> Shape:
        """Read the dims of a shape in brackets."""
        start = self.at
        self.expect("[", " and the dims of a shape")
        dims = self.separated(self.dim, "]")
        if len(dims) > DEPTH or prod(map(_terms, dims)) > LARGEST_DIM:
            limit = f"{DEPTH} axes, and {LARGEST_DIM} terms in its size"
            self.fail(f"a shape has at most {limit}", start)
        return tuple(dims)

    def dim(self) -> Size:
        """Read an int, a name, or an expression of both with + - * // and parentheses."""
        self._dim_start = self.at
        return self._sum(0)

    def _sum(self, depth: int) -> Size:
        terms = [self._term(depth) * -1 if self.take("-") else self._term(depth)]
        while (sign := self.tokens[self.at]) in ("+", "-"):
            self.at += 1
            term = self._term(depth)
            terms.append(term if sign == "+" else term * -1)
        return total(terms) if len(terms) > 1 else terms[0]

    def _term(self, depth: int) -> Size:
        start, value = self.at, self._factor(depth)
        while (sign := self.tokens[self.at]) in ("*", "//"):
            self.at += 1
            factor = self._factor(depth)
            if sign == "//":
                value = self.attempt(start, _over, value, factor)
                continue
            if _terms(value) * _terms(factor) > LARGEST_DIM:
                self._fail_dim()
            value = value * factor
        return value

    def _factor(self, depth: int) -> Size:
        start = self.at
        if start - self._dim_start > LARGEST_DIM:
            self._fail_dim()
        if self.take("("):
            if depth == DEPTH:
                self.fail(f"brackets nested more than {DEPTH} deep", start)
            value = self._sum(depth + 1)
            self.expect(")", " or an operator")
            return value
        if self.tokens[start][:1].isdigit():
            return self.natural("a dim")
        return Dim({(self.name("a dim: a name, an int or an expression"),): 1})

    def _fail_dim(self) -> NoReturn:
        self.fail(f"a dim with too many terms; at most {LARGEST_DIM} are read", self._dim_start)

    def attribute(self, attr: Attr) -> Any:
        """Read the value of an attribute in the form that its normalization expects."""
        if attr.normalize in _LISTS_OF_DIMS:
            return self.shape()
        if attr.normalize is at.result_types:
            return self.type()
        if attr.normalize in (at.size, at.optional_size):  # a text leaves out None
            return self.dim()
        if attr.normalize is at.optional_dtype and self.take("none"):
            return None
        if attr.normalize in (at.dtype, at.optional_dtype):
            return self.dtype()
        if attr.normalize is at.constant and self.take("npz"):
            return self._stored_array()
        return self.value()

    def _stored_array(self) -> StoredConstant:
        self.expect("(")
        name = self.string("the name of a constant in quotes")
        self.expect(")")
        return StoredConstant(name)

    def value(self, depth: int = 0) -> Any:
        """Read a number, true, false, none, a string, or a list of values."""
        token = self.tokens[self.at]
        if token == "[":
            return self._list(depth)
        if token[:1] == '"':
            return self.string("a value")
        if token in _WORDS:
            self.at += 1
            return _WORDS[token]
        return self._complex() if token == "complex" else self.number()

    def _list(self, depth: int) -> tuple[Any, ...]:
        if depth == DEPTH:
            self.fail(f"brackets nested more than {DEPTH} deep")
        self.expect("[")
        return tuple(self.separated(lambda: self.value(depth + 1), "]"))

    def _complex(self) -> complex:
        start = self.at
        self.expect("complex")
        self.expect("(")
        real = self.attempt(start, float, self.number())
        self.expect(",", " and an imaginary part")
        imaginary = self.attempt(start, float, self.number())
        self.expect(")")
        return complex(real, imaginary)


def array_of_text(tuples: Any, type_: TensorType) -> NDArray[Any]:
    """Return the array of nested tuples of values; the values must have the type exactly.

    Text is exact, so the function never rounds: each value must be representable in the dtype. It
    raises ShapeError or GraphError for values of another type.
    """
    if any(isinstance(dim, Dim) for dim in type_.shape):
        raise ShapeError("the axes of a constant must have known sizes", got=str(type_))
    array = _exact(_flat(tuples, type_.shape, type_), type_.dtype)
    try:
        return array.reshape(cast("tuple[int, ...]", type_.shape))
    except ValueError as error:  # NumPy limits sizes, even beside an axis of 0
        raise ShapeError(f"no constant has type {type_}", reason=str(error)) from None


def stored_array(value: Any, type_: TensorType) -> NDArray[Any]:
    """Return an array that is stored beside a text, by value or as raw bits.

    The function raises GraphError unless the array has the type.
    """
    storage = type_.dtype.storage
    if not isinstance(value, np.ndarray):
        raise GraphError(
            f"a constant of type {type_} is a NumPy array", got=f"{type(value).__name__}"
        )
    array = cast("NDArray[Any]", value)
    if is_foreign(storage) and array.dtype == bits_of(storage):
        if type_.dtype.bits < 8 and (array >> type_.dtype.bits).any():
            raise GraphError(f"its bytes have bits beyond those of {type_.dtype}")
        array = array.view(storage)
    if array.dtype != storage or array.shape != type_.shape:
        raise GraphError(
            f"a constant of type {type_} is stored as "
            f"{bits_of(storage) if is_foreign(storage) else storage}",
            got=f"an array of {array.dtype}{list(array.shape)}",
        )
    return array


def is_foreign(storage: np.dtype[Any]) -> bool:
    """Whether a NumPy dtype belongs to ml_dtypes; .npy files cannot name such a dtype."""
    return storage.isbuiltin == 2


def bits_of(storage: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned integer dtype that stores the raw bits of a dtype."""
    return np.dtype(f"u{storage.itemsize}")


def _over(a: Size, b: Size) -> Size:
    if not isinstance(b, int) or b < 1:
        raise ShapeError("a dim is divided by positive ints only", got=f"{b}")
    return a // b


def _terms(dim: Size) -> int:
    return len(dim.terms) if isinstance(dim, Dim) else 1


def _flat(tuples: Any, shape: Shape, type_: TensorType) -> list[Any]:
    """Return the leaves of nested tuples of the given shape, in order."""
    if not shape:
        if isinstance(tuples, tuple):
            raise ShapeError(f"the values of a constant of type {type_} are nested deeper than it")
        return [tuples]
    if not isinstance(tuples, tuple) or len(tuples) != shape[0]:  # pyright: ignore[reportUnknownArgumentType]
        count_text = f"{len(tuples)} values" if isinstance(tuples, tuple) else "one value"  # pyright: ignore[reportUnknownArgumentType]
        raise ShapeError(f"{count_text} for an axis of {shape[0]} in a constant of type {type_}")
    return [leaf for part in tuples for leaf in _flat(part, shape[1:], type_)]  # pyright: ignore[reportUnknownVariableType]


def _exact(values: list[Any], dtype: DType) -> NDArray[Any]:
    for value in values:
        if not _is_of_kind(value, dtype):
            raise GraphError(f"{value!r} is not a value of {dtype}")
    if dtype.format is None:
        wide = {"bool": np.bool_, "uint": np.uint64}.get(dtype.family, np.int64)
        return np.array(values, wide).astype(dtype.storage)
    source = DType.complex128 if dtype.is_complex else DType.float64
    exact = np.array(values, source.storage)
    array = convert(exact, source, dtype)
    back = convert(array, dtype, source)
    a, b = exact.view(np.float64), back.view(np.float64)
    same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    inexact = ~same.reshape(len(values), 2 if dtype.is_complex else 1).all(axis=1)
    if inexact.any():
        value, near = exact[inexact][0].item(), back[inexact][0].item()
        raise GraphError(
            f"{value!r} is not a value of {dtype}", fix=f"the nearest value is {near!r}"
        )
    return array


def _is_of_kind(value: Any, dtype: DType) -> bool:
    """Whether a value is a number of the dtype's kind; an int must also be in range."""
    if dtype is DType.bool or isinstance(value, (bool, str, tuple, type(None))):
        return dtype is DType.bool and isinstance(value, bool)
    if dtype.is_integer:
        return isinstance(value, int) and dtype.min <= value <= dtype.max
    if isinstance(value, complex):
        return dtype.is_complex
    return isinstance(value, float) or (abs(value) < 2**1000 and float(value) == value)


def read_dim(text: str) -> Size:
    """Return the dim that a whole text stands for; raise ParseError for other text."""
    reader = Values(text)
    return _whole(reader, reader.dim(), "an operator or the end")


def read_type(text: str) -> TensorType:
    """Return the type that a whole text stands for, as in `float32[8, n]`; else ParseError."""
    reader = Values(text)
    return _whole(reader, reader.tensor_type(), "the end")


def _whole(reader: Values, value: T, expected: str) -> T:
    if reader.tokens[reader.at]:
        reader.expected(expected)
    return value
