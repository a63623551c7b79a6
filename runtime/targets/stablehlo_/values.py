"""StableHLO in the making: a body of lines, and values whose operators add lines to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from textwrap import indent
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir import DType, TensorType
from graphir.ops.shape_rules import broadcast_shapes
from runtime.targets.stablehlo_.text import dense, ints, signature_text, type_text

Sizes: TypeAlias = tuple[int, ...]


class HloBody:
    """The lines of a function; each has the location of the symbol at hand.

    Locations are told once, and referred to by name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.location = "loc(unknown)"
        self._names = count()
        self._locations: dict[str, str] = {}

    def at(self, location: str) -> str:
        """The reference to a location, at which from now on all is."""
        alias = self._locations.setdefault(location, f"#loc{len(self._locations)}")
        self.location = f"loc({alias})"
        return self.location

    @property
    def locations(self) -> list[str]:
        """The lines that tell what is referred to."""
        return [f"{alias} = {location}" for location, alias in self._locations.items()]

    def line(
        self,
        name: str,
        operands: Sequence[HloValue],
        types: Sequence[TensorType],
        *regions: str,
        **attrs: str,
    ) -> list[HloValue]:
        """An op in the generic form, of StableHLO if it names no dialect: its results."""
        new = f"%{next(self._names)}"
        names = [new] if len(types) == 1 else [f"{new}#{i}" for i in range(len(types))]
        results = f"{new}:{len(types)}" if len(types) > 1 else new
        full = name if "." in name else f"stablehlo.{name}"
        attributes_text = ", ".join(f"{key} = {value}" for key, value in attrs.items())
        parts = [f"<{{{attributes_text}}}>"] if attrs else []
        parts += [f"({', '.join(regions)})"] if regions else []
        signature = (
            f"{signature_text(operand.type for operand in operands)} -> {signature_text(types)}"
        )
        rest = " ".join([*parts, ":", signature, self.location])
        self.lines.append(f'{results} = "{full}"({_names(operands)}) {rest}')
        return [HloValue(self, *operand) for operand in zip(names, types, strict=True)]

    def emit(
        self,
        name: str,
        operands: Sequence[HloValue],
        type_: TensorType,
        *regions: str,
        **attrs: str,
    ) -> HloValue:
        """An op that has one result."""
        return self.line(name, operands, [type_], *regions, **attrs)[0]

    def constant(self, array: NDArray[Any], dtype: DType) -> HloValue:
        """Known values, in the storage of a dtype."""
        type_ = TensorType(dtype, array.shape)
        return self.emit("constant", (), type_, value=dense(array, dtype))

    def iota(self, dtype: DType, shape: Sizes, axis: int) -> HloValue:
        """At each element its place on an axis."""
        return self.emit("iota", (), TensorType(dtype, shape), iota_dimension=f"{axis} : i64")

    def region(
        self, types: Iterable[TensorType], function: Callable[..., HloValue | Sequence[HloValue]]
    ) -> str:
        """The lines that a function of values of these types adds, as a block that returns."""
        outside, self.lines = self.lines, []
        parameters = [HloValue(self, f"%{next(self._names)}", type_) for type_ in types]
        result = function(*parameters)
        results = [result] if isinstance(result, HloValue) else result
        return_line = f'"stablehlo.return"({_names(results)}) : '
        self.lines.append(
            f"{return_line}{signature_text(value.type for value in results)} -> () {self.location}"
        )
        inside, self.lines = indent("\n".join(self.lines), "  "), outside
        arguments = ", ".join(
            f"{value.name}: {type_text(value.type)} {self.location}" for value in parameters
        )
        return f"{{\n^bb0({arguments}):\n{inside}\n}}"


class HloValue:
    """A value by its name and type; operators compute on, elementwise, as NumPy broadcasts.

    Nothing is promoted: operands share a dtype, and a Python number takes it.
    """

    __slots__ = ("body", "name", "type")

    def __init__(self, body: HloBody, name: str, type_: TensorType) -> None:
        self.body, self.name, self.type = body, name, type_

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def shape(self) -> Sizes:
        """The sizes of the axes."""
        return cast(Sizes, self.type.shape)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.type.rank

    def number(self, value: Any, shape: Sizes = ()) -> HloValue:
        """One number of this dtype, everywhere in a shape."""
        value_array = np.asarray(value).astype(self.dtype.storage)
        return self.body.constant(np.broadcast_to(value_array, shape), self.dtype)

    def op(self, name: str, *others: Any, to: DType | None = None, **attrs: str) -> HloValue:
        """An elementwise op on this value and others, its result of this dtype or `to`."""
        whole = together(self, self, *others)
        type_ = whole[0].type.cast(to or self.dtype)
        return self.body.emit(name, whole, type_, **attrs)

    def compare(self, direction: str, other: Any) -> HloValue:
        """Whether elements are EQ, NE, LT, LE, GT or GE."""
        how = f"#stablehlo<comparison_direction {direction}>"
        return self.op("compare", other, to=DType.bool, comparison_direction=how)

    def convert(self, to: DType) -> HloValue:
        """The values in another dtype, as the engine converts."""
        return self if self.dtype is to else self.op("convert", to=to)

    def astype(self, dtype: Any) -> HloValue:
        """As the engine converts; of what is stored alike nothing but the dtype's name."""
        to = DType(dtype)
        if to.storage == self.dtype.storage:
            return HloValue(self.body, self.name, self.type.cast(to))
        made_complex = to.is_complex and not self.dtype.is_complex
        return self.op("complex", 0, to=to) if made_complex else self.op("convert", to=to)

    def view(self, dtype: Any) -> HloValue:
        """The bits as those of another dtype."""
        return self.bitcast(DType(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, x: HloValue, *y: Any) -> HloValue:
        """The functions of NumPy, besides operators, that conversions are made of."""
        if ufunc in (np.equal, np.not_equal):
            return x.compare("EQ" if ufunc is np.equal else "NE", *y)
        return x.op("abs" if ufunc is np.absolute else ufunc.__name__, *y)

    def __array_function__(self, function: Any, _: Any, args: Any, settings: Any) -> HloValue:
        """np.where."""
        return where(*args)

    def bitcast(self, to: DType) -> HloValue:
        """The bits as those of another dtype."""
        return self.op("bitcast_convert", to=to)

    def broadcast(self, shape: Sizes, axes: Sequence[int] | None = None) -> HloValue:
        """In another shape, of which `axes` are those of this value: by default the last."""
        if axes is None:
            axes = range(len(shape) - self.rank, len(shape))
        if self.shape == shape and [*axes] == [*range(self.rank)]:
            return self
        places, type_ = ints(axes), TensorType(self.dtype, shape)
        return self.body.emit("broadcast_in_dim", [self], type_, broadcast_dimensions=places)

    def reshape(self, shape: Sizes) -> HloValue:
        """The same elements in row-major order."""
        same = self.shape == shape
        return self if same else self.body.emit("reshape", [self], TensorType(self.dtype, shape))

    def reduce(
        self, function: Callable[[HloValue, HloValue], HloValue], init: Any, axis: Iterable[int]
    ) -> HloValue:
        """The values over axes, by a function of two of them that leaves `init` out."""
        axes = tuple(axis)
        shape = tuple(size for i, size in enumerate(self.shape) if i not in axes)
        region = self.body.region([TensorType(self.dtype)] * 2, function)
        type_, operands = TensorType(self.dtype, shape), [self, self.number(init)]
        return self.body.emit("reduce", operands, type_, region, dimensions=ints(axes))

    def __add__(self, other: Any) -> HloValue:
        return self.op("add", other)

    def __sub__(self, other: Any) -> HloValue:
        return self.op("subtract", other)

    def __mul__(self, other: Any) -> HloValue:
        return self.op("multiply", other)

    def __truediv__(self, other: Any) -> HloValue:
        """The quotient, rounded once.

        By what is broadcast XLA would divide as a product with the reciprocal, which is 0 beside
        great divisors. It does not see that a divisor which is x where x is NaN is one.
        """
        if self.dtype.is_float:
            other = where(self.ne(self), self, other)
        return self.op("divide", other)

    def __rtruediv__(self, other: Any) -> HloValue:
        return self.number(other, self.shape).op("divide", self)

    def __neg__(self) -> HloValue:
        return self.op("negate")

    def __and__(self, other: Any) -> HloValue:
        return self.op("and", other)

    def __or__(self, other: Any) -> HloValue:
        return self.op("or", other)

    def __xor__(self, other: Any) -> HloValue:
        return self.op("xor", other)

    def __rshift__(self, bits: int) -> HloValue:
        return self.op("shift_right_logical", bits)

    def __invert__(self) -> HloValue:
        return self.op("not")

    def __lt__(self, other: Any) -> HloValue:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> HloValue:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> HloValue:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> HloValue:
        return self.compare("GE", other)

    def eq(self, other: Any) -> HloValue:
        """Whether elements are equal."""
        return self.compare("EQ", other)

    def ne(self, other: Any) -> HloValue:
        """Whether elements differ."""
        return self.compare("NE", other)


def together(like: HloValue, *operands: Any) -> list[HloValue]:
    """Values and numbers, which are of the dtype of `like`, broadcast to one shape."""
    shapes = [operand.type.shape for operand in operands if isinstance(operand, HloValue)]
    shape = cast(Sizes, broadcast_shapes(shapes))
    return [
        operand.broadcast(shape) if isinstance(operand, HloValue) else like.number(operand, shape)
        for operand in operands
    ]


def where(condition: HloValue, x: Any, y: Any) -> HloValue:
    """Elements of x where the condition holds, else of y; one of the two may be a number."""
    like = x if isinstance(x, HloValue) else y
    operands = together(like, condition, x, y)
    return like.body.emit("select", operands, operands[0].type.cast(like.dtype))


def _names(values: Iterable[HloValue]) -> str:
    return ", ".join(value.name for value in values)
