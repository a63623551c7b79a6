"""StableHLO text in the making: types, constants, locations, and lines in the generic form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Location, Symbol, TensorType

ELEMENTS: dict[DType, str] = {
    DType.bool: "i1",
    DType.index: "ui64",
    DType.address: "ui64",
    DType.bfloat16: "bf16",
    DType.tensor_float32: "f32",
    **{d: f"f{d.bits}" for d in (DType.float16, DType.float32, DType.float64)},
    **{d: f"i{d.bits}" for d in DType if d.kind == "int" and not d.weak},
    **{d: f"ui{d.bits}" for d in DType if str(d).startswith("uint")},
    **{d: f"f{d.bits}{str(d).split('_')[1].upper()}" for d in DType if d.narrow and d.is_float},
    DType.complex64: "complex<f32>",
    DType.complex128: "complex<f64>",
}
"""How MLIR writes each element type."""


class Value(NamedTuple):
    """A value by its name, and its type."""

    name: str
    type: TensorType


def type_text(type_: TensorType) -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in type_.shape)}{ELEMENTS[type_.dtype]}>"


def ints(values: Iterable[Any]) -> str:
    """An array of 64-bit attributes."""
    listed = ", ".join(map(str, values))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def location_text(location: Location, why: str = "") -> str:
    """A place, and what is done there if that is not in the program."""
    place = f"{json.dumps(location.file)}:{location.line}:{location.column}"
    return f"loc({json.dumps(why)}({place}))" if why else f"loc({place})"


def reason(symbol: Symbol) -> str:
    """The uses that a cast serves."""
    return "; ".join(
        f"{one.operand} of {one.op}, {one.rule}: {one.source} -> {one.target}"
        for one in symbol.origins
    )


class Body:
    """The lines of a function; what is added has the location of the symbol at hand."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.location = "loc(unknown)"

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        type_: TensorType,
        *,
        region: str = "",
        **attrs: str,
    ) -> Value:
        """A line of an op of StableHLO; attributes are text."""
        new = Value(f"%{len(self.lines)}", type_)
        given = ", ".join(f"{key} = {value}" for key, value in attrs.items())
        types = ", ".join(type_text(one.type) for one in operands)
        self.lines.append(
            f'{new.name} = "stablehlo.{name}"({", ".join(one.name for one in operands)})'
            f"{f' <{{{given}}}>' if given else ''}{region} : ({types}) -> {type_text(type_)} "
            f"{self.location}"
        )
        return new

    def constant(self, array: NDArray[Any], dtype: DType) -> Value:
        """Known values."""
        type_ = TensorType(dtype, array.shape)
        if dtype is DType.bool:
            dense = json.dumps(array.tolist())
        else:
            dense = f'"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"'
        dense = dense if array.size else ""
        return self.op("constant", (), type_, value=f"dense<{dense}> : {type_text(type_)}")

    def number(self, value: Any, type_: TensorType) -> Value:
        """One number everywhere."""
        made = self.constant(np.asarray(value).astype(type_.dtype.storage), type_.dtype)
        return self.broadcast(made, type_)

    def broadcast(self, x: Value, type_: TensorType) -> Value:
        """The value in the shape of a type, by NumPy's rule."""
        type_ = type_.cast(x.type.dtype)
        if x.type is type_:
            return x
        first = type_.rank - x.type.rank
        places = ints(range(first, type_.rank))
        return self.op("broadcast_in_dim", [x], type_, broadcast_dimensions=places)

    def reduced(self, name: str, x: Value, init: Any, axis: tuple[int, ...]) -> Value:
        """The reduction over axes by an op of two operands."""
        dtype = x.type.dtype
        shape = tuple(size for i, size in enumerate(x.type.shape) if i not in axis)
        start, one = self.number(init, TensorType(dtype)), type_text(TensorType(dtype))
        region = (
            f" ({{ ^bb0(%a: {one}, %b: {one}): "
            f'%c = "stablehlo.{name}"(%a, %b) : ({one}, {one}) -> {one} '
            f'"stablehlo.return"(%c) : ({one}) -> () }})'
        )
        operands, made = [x, start], TensorType(dtype, shape)
        return self.op("reduce", operands, made, region=region, dimensions=ints(axis))
