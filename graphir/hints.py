"""The types of arguments for type checkers: names as Literals, arrays by protocol.

A type checker refuses a text that is no name here. For a text from elsewhere, such as a rule set
that a program registers, there are `DType(text)` and `PromotionRules.find(text)`: they accept any
text, and raise GraphError for an unknown name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import array
    from collections.abc import Sequence
    from types import EllipsisType

    import numpy as np
    from numpy.typing import NDArray

    from graphir.ops.dims import Dim

# fmt: off
DTypeName: TypeAlias = Literal[
    "bool", "int8", "int16", "i16", "int32", "i32", "int64", "i64", "uint8", "uint16", "u16",
    "uint32", "u32", "uint64", "u64", "index", "address", "addr", "float16", "half", "bfloat16",
    "bf16", "float32", "f32", "single", "tensor_float32", "tf32", "tensor_float_32", "float64",
    "f64", "double", "complex64", "c64", "complex128", "c128", "weak_int", "i*", "weak_float",
    "f*", "weak_complex", "c*", "int2", "int4", "uint2", "uint4", "float8_e3m4", "f8e3m4",
    "float8_e4m3", "f8e4m3", "float8_e4m3b11fnuz", "f8e4m3b11", "float8_e4m3fn", "f8e4m3fn",
    "float8_e4m3fnuz", "f8e4m3fnuz", "float8_e5m2", "f8e5m2", "float8_e5m2fnuz", "f8e5m2fnuz",
    "float8_e8m0fnu", "f8e8m0fnu", "float6_e2m3fn", "f6e2m3fn", "float6_e3m2fn", "f6e3m2fn",
    "float4_e2m1fn", "f4e2m1fn",
]
"""The names of dtypes, with aliases and short names."""

NumPyCode: TypeAlias = Literal[
    "int", "uint", "float", "complex", "?", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8",
    "f2", "f4", "f8", "c8", "c16",
]
"""Names of dtypes that NumPy's methods read besides, in which numbers count bytes."""

CastKindName: TypeAlias = Literal[
    "lossy", "exact", "range", "sign", "precision", "underflow", "special", "to:*",
    "to:integer", "to:bool", "to:int", "to:uint", "to:float", "to:complex", "to:int8",
    "to:int16", "to:int32", "to:int64", "to:uint8", "to:uint16", "to:uint32", "to:uint64",
    "to:index", "to:address", "to:float16", "to:bfloat16", "to:float32", "to:tensor_float32",
    "to:float64", "to:complex64", "to:complex128", "to:weak_int", "to:weak_float",
    "to:weak_complex", "to:int2", "to:int4", "to:uint2", "to:uint4", "to:float8_e3m4",
    "to:float8_e4m3", "to:float8_e4m3b11fnuz", "to:float8_e4m3fn", "to:float8_e4m3fnuz",
    "to:float8_e5m2", "to:float8_e5m2fnuz", "to:float8_e8m0fnu", "to:float6_e2m3fn",
    "to:float6_e3m2fn", "to:float4_e2m1fn", "from:*", "from:integer", "from:bool", "from:int",
    "from:uint", "from:float", "from:complex", "from:int8", "from:int16", "from:int32",
    "from:int64", "from:uint8", "from:uint16", "from:uint32", "from:uint64", "from:index",
    "from:address", "from:float16", "from:bfloat16", "from:float32", "from:tensor_float32",
    "from:float64", "from:complex64", "from:complex128", "from:weak_int", "from:weak_float",
    "from:weak_complex", "from:int2", "from:int4", "from:uint2", "from:uint4",
    "from:float8_e3m4", "from:float8_e4m3", "from:float8_e4m3b11fnuz", "from:float8_e4m3fn",
    "from:float8_e4m3fnuz", "from:float8_e5m2", "from:float8_e5m2fnuz", "from:float8_e8m0fnu",
    "from:float6_e2m3fn", "from:float6_e3m2fn", "from:float4_e2m1fn", "*->*", "*->integer",
    "*->bool", "*->int", "*->uint", "*->float", "*->complex", "integer->*", "integer->integer",
    "integer->bool", "integer->int", "integer->uint", "integer->float", "integer->complex",
    "bool->*", "bool->integer", "bool->bool", "bool->int", "bool->uint", "bool->float",
    "bool->complex", "int->*", "int->integer", "int->bool", "int->int", "int->uint",
    "int->float", "int->complex", "uint->*", "uint->integer", "uint->bool", "uint->int",
    "uint->uint", "uint->float", "uint->complex", "float->*", "float->integer", "float->bool",
    "float->int", "float->uint", "float->float", "float->complex", "complex->*",
    "complex->integer", "complex->bool", "complex->int", "complex->uint", "complex->float",
    "complex->complex",
]
"""The kinds of casts in policies: losses, dtypes by name and family, families by family."""
# fmt: on


class _TypedArray(Protocol):
    """An array of NumPy or of another library, a scalar of NumPy, or a symbol."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Any: ...


class _Convertible(Protocol):
    """A value that np.asarray reads."""

    def __array__(self) -> Any: ...


class _Exportable(Protocol):
    """An array of another library that exports its memory by DLPack."""

    def __dlpack__(self) -> Any: ...


Array: TypeAlias = "NDArray[Any]"

ArrayOrNumber: TypeAlias = (
    "complex | _TypedArray | _Convertible | _Exportable | memoryview | array.array[Any]"
)
"""An operand of an op, and an input of a run. `complex` includes float, int and bool."""

Ties: TypeAlias = Literal["even", "away"]
"""How tensor_float32 rounds ties."""

Functions: TypeAlias = Literal["numpy", "rounded"]
"""Which results functions of float32 have: NumPy's, or correctly rounded ones."""

Number: TypeAlias = "complex | np.generic[Any]"
Real: TypeAlias = "float | np.floating[Any] | np.integer[Any]"
Int: TypeAlias = "int | np.integer[Any]"
Ints: TypeAlias = "Int | Sequence[Int]"
Pairs: TypeAlias = "Ints | Sequence[Ints]"
Flag: TypeAlias = "bool | np.bool"
Index: TypeAlias = "Int | Dim | slice[Any, Any, Any] | EllipsisType | None"
Indices: TypeAlias = "Index | tuple[Index, ...] | _TypedArray | Sequence[int]"
