"""Field offsets of NumPy's public C structures, in 64-bit words, and checks of these offsets."""

from __future__ import annotations

import ctypes
from ctypes import PYFUNCTYPE, c_void_p, py_object
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.program.codegen.tracing import Storage

# PyUFuncObject of numpy/_core/include/numpy/ufuncobject.h: two counts fill one word
NIN_NOUT, NARGS, FUNCTIONS, LOOP_DATA, NTYPES = 2, 3, 4, 5, 6
# PyArrayObject_fields of numpy/_core/include/numpy/ndarraytypes.h
TYPE, DATA, NDIM, DIMS, STRIDES, DTYPE, FLAGS = 1, 2, 3, 4, 5, 7, 8
ALIGNED, PLAIN = 0x100, 0x101  # NPY_ARRAY_ALIGNED, and with NPY_ARRAY_C_CONTIGUOUS
SCALAR = 2  # the value of a number in numpy/_core/include/numpy/arrayscalars.h
EMPTY = 184  # PyArray_Empty in numpy/_core/code_generators/numpy_api.py
ARRAY_FUNCTIONS = 365  # PyDataType_GetArrFuncs, in the same table
# PyArray_ArrFuncs of numpy/_core/include/numpy/ndarraytypes.h, and NPY_STABLESORT in its arrays
SORTS, ARGSORTS, STABLE = 33, 36, 2
FASTCALL = 0x80  # METH_FASTCALL of CPython's Include/methodobject.h


def words(address: int) -> Any:
    """Return the 64-bit words at an address as an indexable pointer."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))


def low(word: int) -> int:
    """Return the number in the low 32 bits of a word; the number must not be negative."""
    return word & 0xFFFFFFFF


def python(name: str, result: Any, *args: Any) -> Any:
    """Return a function of CPython's C API, whose calls hold the GIL."""
    return ctypes.PYFUNCTYPE(result, *args)((name, ctypes.pythonapi))


def numpy_api(index: int) -> int:
    """Return the address of a function of NumPy's C API, by its index in the table of the API."""
    table = python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API
    return words(table(capsule, None))[index]


def ufuncs_are_as_declared() -> bool:
    """Whether the fields of ufuncs lie at the offsets of the header.

    The check compares the fields with the attributes that Python exposes.
    """
    for ufunc in (np.add, np.exp, np.isnan):
        fields = words(id(ufunc))
        counts = fields[NIN_NOUT], low(fields[NARGS]), low(fields[NTYPES])
        if counts != (ufunc.nin | ufunc.nout << 32, ufunc.nargs, ufunc.ntypes):
            return False
    return True


def arrays_are_as_declared() -> bool:
    """Whether the fields of arrays and of scalars lie at the offsets of the headers.

    The check compares the fields of an array with the attributes that Python exposes.
    """
    array = np.zeros((3, 5, 7), np.float32)
    fields = words(id(array))
    pointers = fields[TYPE], fields[DATA], fields[DTYPE], fields[STRIDES]
    strides = fields[DIMS] + 8 * array.ndim  # NumPy stores the strides right after the dims
    expected = id(np.ndarray), array.ctypes.data, id(array.dtype), strides
    numbers = low(fields[NDIM]), low(fields[FLAGS])
    number = np.float64(1)
    holds = words(id(number))[SCALAR] == int(number.view(np.int64))
    return pointers == expected and numbers == (3, array.flags.num) and holds


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
