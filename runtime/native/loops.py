"""What NumPy has in memory, as its headers declare it: the inner loops of its ufuncs."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from runtime.program.codegen.tracing import Storage

# PyUFuncObject of numpy/_core/include/numpy/ufuncobject.h, in words: two counts fill one
_NIN_NOUT, _NARGS, _FUNCTIONS, _DATA, _NTYPES = 2, 3, 4, 5, 6


class Loop(NamedTuple):
    """A loop `function(char **args, intp *n, intp *steps, void *data)` by its addresses."""

    function: int
    data: int


def words(address: int) -> Any:
    """The 64-bit words at an address, by number."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))


def low(word: int) -> int:
    """The number in the first 32 bits of a word, if it is not negative."""
    return word & 0xFFFFFFFF


def ufuncs_are_as_declared() -> bool:
    """Whether the fields of a ufunc lie where `loop_of` reads them: those that Python tells too."""
    for ufunc in (np.add, np.exp, np.isnan):
        found = words(id(ufunc))
        counts = found[_NIN_NOUT], low(found[_NARGS]), low(found[_NTYPES])
        if counts != (ufunc.nin | ufunc.nout << 32, ufunc.nargs, ufunc.ntypes):
            return False
    return True


@cache
def loop_of(function: np.ufunc, *dtypes: Storage) -> Loop | None:
    """The loop of a ufunc for operands and a result of just these dtypes."""
    for k, types in enumerate(function.types):
        if [np.dtype(one) for one in types.replace("->", "")] == [*dtypes]:
            found = words(id(function))
            return Loop(words(found[_FUNCTIONS])[k], words(found[_DATA])[k])
    return None
