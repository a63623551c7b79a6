"""The inner loops of NumPy's ufuncs, and the sorts of its dtypes, by their addresses."""

from __future__ import annotations

from ctypes import PYFUNCTYPE, c_void_p, py_object
from functools import cache
from typing import NamedTuple

import numpy as np

from graphir.runtime.native.abi.structs import (
    ARGSORTS,
    ARRAY_FUNCTIONS,
    FUNCTIONS,
    LOOP_DATA,
    SORTS,
    STABLE,
    numpy_api,
    words,
)
from graphir.runtime.program.codegen.tracing import Storage


class Loop(NamedTuple):
    """An inner loop `function(char **args, intp *n, intp *steps, void *data)`, by its addresses."""

    function: int
    data: int


@cache
def loop_of(function: np.ufunc, *dtypes: Storage) -> Loop | None:
    """Return the inner loop of a ufunc for operands and a result of exactly `dtypes`, or None."""
    for k, types in enumerate(function.types):
        if [np.dtype(code) for code in types.replace("->", "")] == [*dtypes]:
            fields = words(id(function))
            return Loop(words(fields[FUNCTIONS])[k], words(fields[LOOP_DATA])[k])
    return None


@cache
def sort_of(dtype: Storage, finds: bool, stable: bool) -> int:
    """Return the address of the sort of a dtype, or 0.

    It is `sort(void *start, npy_intp n, void *)`; or, if it `finds` the order of elements,
    `sort(void *start, npy_intp *places, npy_intp n, void *)`. Numbers ignore the last argument.
    """
    functions = PYFUNCTYPE(c_void_p, py_object)(numpy_api(ARRAY_FUNCTIONS))(dtype)
    return words(functions)[(ARGSORTS if finds else SORTS) + STABLE * stable]
