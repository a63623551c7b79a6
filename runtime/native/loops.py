"""NumPy's own inner loops, called without Python."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from runtime.program.tracing import Storage


class Loop(NamedTuple):
    """A loop `function(char **args, intp *n, intp *steps, void *data)` by its addresses."""

    function: int
    data: int


class UfuncFields(ctypes.Structure):
    """The beginning of a ufunc in memory."""

    # numpy/_core/include/numpy/ufuncobject.h, PyUFuncObject
    _fields_ = [
        ("refcount", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    ]


@cache
def loop_of(function: np.ufunc, *dtypes: Storage) -> Loop | None:
    """The loop of a ufunc for operands and a result of just these dtypes."""
    for k, types in enumerate(function.types):
        if [np.dtype(one) for one in types.replace("->", "")] == [*dtypes]:
            record = UfuncFields.from_address(id(function))
            return Loop(record.functions[k], record.data[k] or 0)
    return None
