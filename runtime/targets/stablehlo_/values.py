"""Builder of StableHLO text: a function body, values whose operators add lines to it, and casts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from textwrap import indent
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

from graphir.conversions import Step
from graphir.dtypes import DTypeLike
from graphir.hints import Number
from graphir.ops.shape_rules import broadcast_shapes
from graphir.public import DType, Location, Symbol, TensorType
from graphir.runtime.targets.emission import EngineConversions

ELEMENTS: dict[DType, str] = {
    DType.bool: "i1",
    DType.index: "ui64",
    DType.address: "ui64",
    DType.bfloat16: "bf16",
    **{d: f"f{d.bits}" for d in (DType.float16, DType.float32, DType.float64)},
    **{d: f"i{d.bits}" for d in DType if d.family == "int" and not d.weak},
    **{d: f"ui{d.bits}" for d in DType if str(d).startswith("uint")},
    **{d: f"f{d.bits}{str(d).split('_')[1].upper()}" for d in DType if d.narrow and d.is_float},
    DType.complex64: "complex<f32>",
    DType.complex128: "complex<f64>",
}
"""The text of each element type in MLIR but the emulated ones, whose values lie in f32."""


def type_text(type_: TensorType) -> str:
    """Return the text of a tensor type."""
    element = "f32" if type_.dtype.emulated else ELEMENTS[type_.dtype]
    return f"tensor<{''.join(f'{size}x' for size in type_.shape)}{element}>"


def signature_text(types: Iterable[TensorType]) -> str:
    """Return the text of types in parentheses."""
    return f"({', '.join(map(type_text, types))})"


def ints(values: Iterable[Any]) -> str:
    """Return the text of an array attribute of 64-bit integers."""
    text = ", ".join(map(str, values))
    return f"array<i64: {text}>" if text else "array<i64>"


def fields(kind: str, **lists: Iterable[int] | int) -> str:
    """Return the text of a structured StableHLO attribute, without the fields of empty lists."""
    items = {name: value if isinstance(value, int) else [*value] for name, value in lists.items()}
    fields_text = ", ".join(f"{name} = {value}" for name, value in items.items() if value != [])
    return f"#stablehlo.{kind}<{fields_text}>"


# -- numbers

_HEXADECIMAL_FROM = 64  # elements: more are told by their bytes


def dense(array: NDArray[Any], dtype: DType) -> str:
    """Return the exact dense attribute of an array; equal elements become a single number."""
    text = ""
    if array.size:
        flat = np.ascontiguousarray(array).reshape(-1)
        patterns = flat.view(np.uint8).reshape(flat.size, -1)
        if bool((patterns == patterns[0]).all()):
            text = _number(flat[0], dtype)
        elif flat.size < _HEXADECIMAL_FROM or dtype.bits % 8 or dtype is DType.bool:
            text = _nested(array, dtype)
        else:
            text = f'"0x{flat.tobytes().hex().upper()}"'
    return f"dense<{text}> : {type_text(TensorType(dtype, array.shape))}"


def _nested(array: NDArray[Any], dtype: DType) -> str:
    if not array.ndim:
        return _number(array[()], dtype)
    return f"[{', '.join(_nested(np.asarray(row), dtype) for row in array)}]"


def _number(value: Any, dtype: DType) -> str:
    """Return the text of one number: decimal, or its bits if it is not finite."""
    if dtype.family == "bool":
        return "true" if value else "false"
    if dtype.is_integer:
        return str(int(value))
    if dtype.is_complex:
        return f"({_number(value.real, dtype.part)}, {_number(value.imag, dtype.part)})"
    if not math.isfinite(value):
        return f"0x{value.tobytes()[::-1].hex().upper()}"
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


# -- locations


def location_text(symbol: Symbol) -> str:
    """Return the `loc` of a symbol: its location, named by its layer if it has one.

    The `loc` of an inserted cast has a named location for each use that the cast serves, such as
    `lhs of add, max: int16 -> float32`; several uses are fused.
    """
    if not symbol.origins:
        return f"loc({_location_text(symbol.location.layer, symbol.location)})"
    uses = [
        _location_text(
            f"{origin.operand} of {origin.op}, {origin.rule}: {origin.source} -> {origin.target}",
            origin.location,
        )
        for origin in symbol.origins
    ]
    if len(uses) == 1:
        return f"loc({uses[0]})"
    return f"loc(fused<{json.dumps(symbol.op.name)}>[{', '.join(uses)}])"


def _location_text(name: str, location: Location) -> str:
    place = f"{_quoted(location.file)}:{location.line}:{location.column}"
    return f"{_quoted(name)}({place})" if name else place


def _quoted(text: str) -> str:
    """Return a string literal of MLIR, which escapes bytes."""
    characters = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode(errors="replace")
    )
    return f'"{"".join(characters)}"'


Sizes: TypeAlias = tuple[int, ...]


class HloBody:
    """The lines of a function body; each line has the location of the symbol that it computes.

    Each location is defined once, as an alias that the lines name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.location = "loc(unknown)"
        self._names = count()
        self._locations: dict[str, str] = {}

    def at(self, location: str) -> str:
        """Set the location of the next lines, and return the reference to it."""
        alias = self._locations.setdefault(location, f"#loc{len(self._locations)}")
        self.location = f"loc({alias})"
        return self.location

    @property
    def locations(self) -> list[str]:
        """The definitions of the location aliases."""
        return [f"{alias} = {location}" for location, alias in self._locations.items()]

    def line(
        self,
        name: str,
        operands: Sequence[HloValue],
        types: Sequence[TensorType],
        *regions: str,
        **attrs: str,
    ) -> list[HloValue]:
        """Add an op in MLIR's generic form, and return its results.

        A name without a dialect is an op of StableHLO.
        """
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
        """Add an op with one result, and return the result."""
        return self.line(name, operands, [type_], *regions, **attrs)[0]

    def constant(self, array: NDArray[Any], dtype: DType) -> HloValue:
        """Add a constant, stored as `dtype` is stored, and return it."""
        type_ = TensorType(dtype, array.shape)
        return self.emit("constant", (), type_, value=dense(array, dtype))

    def iota(self, dtype: DType, shape: Sizes, axis: int) -> HloValue:
        """Return an array whose elements are their own indices along an axis."""
        return self.emit("iota", (), TensorType(dtype, shape), iota_dimension=f"{axis} : i64")

    def region(
        self, types: Iterable[TensorType], function: Callable[..., HloValue | Sequence[HloValue]]
    ) -> str:
        """Return the MLIR region of a function: a block with parameters of `types` and a return."""
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


class HloValue(NDArrayOperatorsMixin):
    """A value of the body, by its name and type; operators add elementwise ops to the body.

    Operands broadcast as in NumPy. Operands share a dtype, and a Python number takes it.
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

    def number(self, value: ArrayLike, shape: Sizes = ()) -> HloValue:
        """Return a constant of this dtype whose elements all equal a number."""
        value_array = np.asarray(value).astype(self.dtype.storage)
        return self.body.constant(np.broadcast_to(value_array, shape), self.dtype)

    def op(self, name: str, *others: Any, to: DType | None = None, **attrs: str) -> HloValue:
        """Add an elementwise op on this value and others; the result has this dtype or `to`."""
        whole = together(self, self, *others)
        type_ = whole[0].type.cast(to or self.dtype)
        return self.body.emit(name, whole, type_, **attrs)

    def compare(self, direction: str, other: HloValue | Number) -> HloValue:
        """Return the mask of a comparison; `direction` is EQ, NE, LT, LE, GT or GE."""
        how = f"#stablehlo<comparison_direction {direction}>"
        return self.op("compare", other, to=DType.bool, comparison_direction=how)

    def convert(self, to: DType) -> HloValue:
        """Return the values in another dtype, with the conversion of the engine."""
        return self if self.dtype is to else self.op("convert", to=to)

    def astype(self, dtype: DTypeLike) -> HloValue:
        """Return the values in another dtype, with the conversion of the engine.

        Between dtypes of equal storage only the name of the dtype changes.
        """
        to = DType(dtype)
        if to.storage == self.dtype.storage:
            return HloValue(self.body, self.name, self.type.cast(to))
        made_complex = to.is_complex and not self.dtype.is_complex
        return self.op("complex", 0, to=to) if made_complex else self.op("convert", to=to)

    def view(self, dtype: DTypeLike) -> HloValue:
        """Return the bits, reinterpreted as another dtype."""
        return self.bitcast(DType(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> HloValue:
        """Add the op of an operator, or of a function of NumPy that graphir.conversions calls.

        A quotient is rounded once. XLA divides by a broadcast divisor through the product with its
        reciprocal, which is 0 for large divisors. A `select` on NaN hides from XLA that the divisor
        is a broadcast.
        """
        name = ufunc.__name__
        x, *others = inputs
        if not isinstance(x, HloValue):
            x = self.number(x, self.shape)
        if name in DIRECTIONS:
            return x.compare(DIRECTIONS[name], *others)
        if name == "divide" and x.dtype.is_float:
            others = [where(x.ne(x), x, *others)]
        return x.op(_UFUNCS.get(name, name), *others)

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> HloValue:
        """Add the op of np.where, the one function of NumPy that graphir.conversions dispatches."""
        return where(*args)

    def bitcast(self, to: DType) -> HloValue:
        """Return the bits, reinterpreted as another dtype."""
        return self.op("bitcast_convert", to=to)

    def broadcast(self, shape: Sizes, axes: Sequence[int] | None = None) -> HloValue:
        """Return the value broadcast to a shape.

        `axes` are the positions of this value's axes in that shape; by default the last ones.
        """
        if axes is None:
            axes = range(len(shape) - self.rank, len(shape))
        if self.shape == shape and [*axes] == [*range(self.rank)]:
            return self
        places, type_ = ints(axes), TensorType(self.dtype, shape)
        return self.body.emit("broadcast_in_dim", [self], type_, broadcast_dimensions=places)

    def reshape(self, shape: Sizes) -> HloValue:
        """Return the value in another shape, with the elements in row-major order."""
        same = self.shape == shape
        return self if same else self.body.emit("reshape", [self], TensorType(self.dtype, shape))

    def reduce(
        self, function: Callable[[HloValue, HloValue], HloValue], init: Any, axis: Iterable[int]
    ) -> HloValue:
        """Return the reduction over axes by a function of two values; `init` is neutral in it."""
        axes = tuple(axis)
        shape = tuple(size for i, size in enumerate(self.shape) if i not in axes)
        region = self.body.region([TensorType(self.dtype)] * 2, function)
        type_, operands = TensorType(self.dtype, shape), [self, self.number(init)]
        return self.body.emit("reduce", operands, type_, region, dimensions=ints(axes))

    def eq(self, other: HloValue | Number) -> HloValue:
        """Whether elements are equal."""
        return self.compare("EQ", other)

    def ne(self, other: HloValue | Number) -> HloValue:
        """Whether elements differ."""
        return self.compare("NE", other)


DIRECTIONS = {
    "equal": "EQ",
    "not_equal": "NE",
    "less": "LT",
    "less_equal": "LE",
    "greater": "GT",
    "greater_equal": "GE",
}
"""The directions of comparisons."""

_UFUNCS = {
    "negative": "negate",
    "absolute": "abs",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "invert": "not",
    "right_shift": "shift_right_logical",
}
"""The ops of NumPy's functions whose name differs."""


def together(like: HloValue, *operands: HloValue | Number) -> list[HloValue]:
    """Values and numbers, which are of the dtype of `like`, broadcast to one shape."""
    shapes = [operand.type.shape for operand in operands if isinstance(operand, HloValue)]
    shape = cast(Sizes, broadcast_shapes(shapes))
    return [
        operand.broadcast(shape) if isinstance(operand, HloValue) else like.number(operand, shape)
        for operand in operands
    ]


def where(condition: HloValue, x: Any, y: Any) -> HloValue:
    """Return the elements of x where the condition holds, else of y; x or y may be a number."""
    like = x if isinstance(x, HloValue) else y
    operands = together(like, condition, x, y)
    return like.body.emit("select", operands, operands[0].type.cast(like.dtype))


def _names(values: Iterable[HloValue]) -> str:
    return ", ".join(value.name for value in values)


class HloConversions(EngineConversions):
    """Casts with a barrier after each rounding below float32, as engines keep excess precision."""

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step from float32; a rounding that is written out needs no barrier."""
        narrow = super().narrow(target, tf32)
        return narrow if target.emulated else lambda x: narrow(x).op("optimization_barrier")


def cast_values(x: HloValue, to: DType, tf32: str = "even") -> HloValue:
    """Return the values in another dtype, rounded once as in graphir.conversions."""
    return HloConversions().convert(x, x.dtype, to, tf32)


def widened(x: HloValue) -> HloValue:
    """Return the values widened exactly to a dtype in which every engine computes."""
    return HloConversions().widen(x.dtype)(x)
