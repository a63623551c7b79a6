"""The Array API standard 2024.12 as a namespace of lazy arrays.

`from runtime import array_api as xp`. The functions record ops, and infer dtypes and shapes at
once; the arrays compute when the program asks for a value. A combination of dtypes that the
standard leaves undefined raises TypeError.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphir import DType
from runtime.array_api import wording
from runtime.array_api.array import Array
from runtime.array_api.devices import Device
from runtime.array_api.dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from runtime.array_api.functions import fft, linalg
from runtime.array_api.functions.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from runtime.array_api.functions.elementwise import FUNCTIONS as _ELEMENTWISE
from runtime.array_api.functions.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)
from runtime.array_api.functions.matrices import matmul, tensordot, vecdot
from runtime.array_api.functions.reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from runtime.array_api.functions.searching import (
    argsort,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from runtime.array_api.info import __array_namespace_info__

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

bool = DType.bool
int8, int16, int32, int64 = DType.int8, DType.int16, DType.int32, DType.int64
uint8, uint16, uint32, uint64 = DType.uint8, DType.uint16, DType.uint32, DType.uint64
float32, float64 = DType.float32, DType.float64
complex64, complex128 = DType.complex64, DType.complex128

__all__: list[str] = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_ELEMENTWISE,
    "Array",
    "Device",
    "__array_api_version__",
    "__array_namespace_info__",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "astype",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "concat",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "e",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "linalg",
    "linspace",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "nan",
    "newaxis",
    "nonzero",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "prod",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "searchsorted",
    "sort",
    "squeeze",
    "stack",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]
globals().update(_ELEMENTWISE)

globals().pop("array", None)  # the submodule `array`: no namesake of np.array here

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Array]:
        """The elementwise functions, which are derived from the ops' records."""
        ...
else:

    def __getattr__(name: str) -> object:
        raise AttributeError(wording.no_name(name), name=name)
