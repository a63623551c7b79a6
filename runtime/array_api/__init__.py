"""The Array API standard 2025.12 as a namespace of lazy arrays.

`from graphir.runtime import array_api as xp`. The functions record ops, and infer dtypes and shapes
at once; the arrays compute when the program asks for a value. A combination of dtypes that the
standard leaves undefined raises TypeError.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphir.public import DType
from graphir.runtime.array_api import dtypes, functions
from graphir.runtime.array_api.array import Array, Device, no_name
from graphir.runtime.array_api.dtypes import *  # noqa: F403
from graphir.runtime.array_api.dtypes import __array_namespace_info__
from graphir.runtime.array_api.functions import *  # noqa: F403
from graphir.runtime.array_api.functions import fft, linalg

__array_api_version__ = "2025.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

bool = DType.bool
int8, int16, int32, int64 = DType.int8, DType.int16, DType.int32, DType.int64
uint8, uint16, uint32, uint64 = DType.uint8, DType.uint16, DType.uint32, DType.uint64
float32, float64 = DType.float32, DType.float64
complex64, complex128 = DType.complex64, DType.complex128

__all__: list[str] = [
    "Array", "Device", "__array_api_version__", "__array_namespace_info__", "bool", "complex64",
    "complex128", "e", "fft", "float32", "float64", "inf", "int8", "int16", "int32", "int64",
    "linalg", "nan", "newaxis", "pi", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
__all__ += dtypes.__all__
__all__ += functions.__all__

globals().pop("array", None)  # the submodule `array`: no namesake of np.array here

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Array]:
        """The elementwise functions, which are derived from the ops' records."""
        ...
else:

    def __getattr__(name: str) -> object:
        raise AttributeError(no_name(name), name=name)
