"""StableHLO text: element types, tensor types, numbers and locations as MLIR writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Location, Symbol, TensorType

ELEMENTS: dict[DType, str] = {
    DType.bool: "i1",
    DType.index: "ui64",
    DType.address: "ui64",
    DType.bfloat16: "bf16",
    **{d: f"f{d.bits}" for d in (DType.float16, DType.float32, DType.float64)},
    **{d: f"i{d.bits}" for d in DType if d.family == "int" and not d.weak},
    **{d: f"ui{d.bits}" for d in DType if str(d).startswith("uint")},
    **{d: f"f{d.bits}{str(d).split('_')[1].upper()}" for d in DType if d.narrow and d.is_float},
    **{d: "f32" for d in DType if d.emulated},
    DType.complex64: "complex<f32>",
    DType.complex128: "complex<f64>",
}
"""The text of each element type in MLIR."""


def type_text(type_: TensorType) -> str:
    """Return the text of a tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in type_.shape)}{ELEMENTS[type_.dtype]}>"


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


def _nested(array: Any, dtype: DType) -> str:
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
