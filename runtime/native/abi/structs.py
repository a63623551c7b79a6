"""The structures of NumPy that headers declare, in 64-bit words, and whether they are so here."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

# PyUFuncObject of numpy/_core/include/numpy/ufuncobject.h: two counts fill one word
NIN_NOUT, NARGS, FUNCTIONS, LOOP_DATA, NTYPES = 2, 3, 4, 5, 6
# PyArrayObject_fields of numpy/_core/include/numpy/ndarraytypes.h
TYPE, DATA, NDIM, DIMS, STRIDES, DTYPE, FLAGS = 1, 2, 3, 4, 5, 7, 8
PLAIN = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
EMPTY = 184  # PyArray_Empty in numpy/_core/code_generators/numpy_api.py
FASTCALL = 0x80  # METH_FASTCALL of CPython's Include/methodobject.h


def words(address: int) -> Any:
    """The 64-bit words at an address, by number."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))


def low(word: int) -> int:
    """The number in the first 32 bits of a word, if it is not negative."""
    return word & 0xFFFFFFFF


def python(name: str, result: Any, *args: Any) -> Any:
    """A function of CPython's C API, which holds the GIL."""
    return ctypes.PYFUNCTYPE(result, *args)((name, ctypes.pythonapi))


def numpy_api(index: int) -> int:
    """The address of a function of NumPy's C API."""
    table = python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API
    return words(table(capsule, None))[index]


def ufuncs_are_as_declared() -> bool:
    """Whether the fields of a ufunc that Python tells too lie where the header has them."""
    for ufunc in (np.add, np.exp, np.isnan):
        fields = words(id(ufunc))
        counts = fields[NIN_NOUT], low(fields[NARGS]), low(fields[NTYPES])
        if counts != (ufunc.nin | ufunc.nout << 32, ufunc.nargs, ufunc.ntypes):
            return False
    return True


def arrays_are_as_declared() -> bool:
    """Whether the fields of an array whose values Python tells lie where the header has them."""
    array = np.zeros((3, 5, 7), np.float32)
    fields = words(id(array))
    pointers = fields[TYPE], fields[DATA], fields[DTYPE], fields[STRIDES]
    strides = fields[DIMS] + 8 * array.ndim  # which follow the dims
    expected = id(np.ndarray), array.ctypes.data, id(array.dtype), strides
    return pointers == expected and (low(fields[NDIM]), low(fields[FLAGS])) == (3, array.flags.num)
