"""NumPy's public C structures by named fields of 64 bits, checks of them, and what they hold.

Machine code and Python read the same declarations: the fields of arrays, the inner loops of ufuncs,
and the sorts of dtypes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import PYFUNCTYPE, Structure, c_void_p, py_object
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.native.drivers.records import WordRecord, record, word
from graphir.runtime.program.codegen.tracing import Storage


@record
class UfuncObject(WordRecord):
    """PyUFuncObject of numpy/_core/include/numpy/ufuncobject.h: two counts fill one word."""

    fields = "references type nin_nout nargs functions loop_data ntypes"


@record
class ArrayObject(WordRecord):
    """PyArrayObject_fields of numpy/_core/include/numpy/ndarraytypes.h."""

    fields = "references type data ndim dims strides base dtype flags"


@record
class ScalarObject(WordRecord):
    """A number of numpy/_core/include/numpy/arrayscalars.h."""

    fields = "references type value"


class Flags(IntEnum):
    """NPY_ARRAY_ALIGNED, and the same with NPY_ARRAY_C_CONTIGUOUS."""

    ALIGNED = 0x100
    PLAIN = 0x101


EMPTY = 184  # PyArray_Empty in numpy/_core/code_generators/numpy_api.py
ARRAY_FUNCTIONS = 365  # PyDataType_GetArrFuncs, in the same table
# PyArray_ArrFuncs of numpy/_core/include/numpy/ndarraytypes.h, and NPY_STABLESORT in its arrays
SORTS, ARGSORTS, STABLE = 33, 36, 2
FASTCALL = 0x80  # METH_FASTCALL of CPython's Include/methodobject.h


def words(address: int) -> Any:
    """Return the 64-bit words at an address as an indexable pointer."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))


def fields_of(structure: type[Structure], address: int) -> Callable[[str], int]:
    """Return the function from the names of a structure's fields to their words in memory."""
    memory = words(address)
    return lambda name: memory[word(structure, name)]


def low(number: int) -> int:
    """Return the low 32 bits of a word; they must not be negative."""
    return number & 0xFFFFFFFF


def python(name: str, result: type[Any] | None, *args: type[Any]) -> Any:
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
        field = fields_of(UfuncObject, id(ufunc))
        counts = field("nin_nout"), low(field("nargs")), low(field("ntypes"))
        if counts != (ufunc.nin | ufunc.nout << 32, ufunc.nargs, ufunc.ntypes):
            return False
    return True


def arrays_are_as_declared() -> bool:
    """Whether the fields of arrays and of scalars lie at the offsets of the headers.

    The check compares the fields of an array with the attributes that Python exposes.
    """
    array = np.zeros((3, 5, 7), np.float32)
    field = fields_of(ArrayObject, id(array))
    pointers = field("type"), field("data"), field("dtype"), field("strides")
    strides = field("dims") + 8 * array.ndim  # NumPy stores the strides right after the dims
    expected = id(np.ndarray), array.ctypes.data, id(array.dtype), strides
    numbers = low(field("ndim")), low(field("flags"))
    number = np.float64(1)
    holds = fields_of(ScalarObject, id(number))("value") == int(number.view(np.int64))
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
            field = fields_of(UfuncObject, id(function))
            return Loop(words(field("functions"))[k], words(field("loop_data"))[k])
    return None


@cache
def sort_of(dtype: Storage, finds: bool, stable: bool) -> int:
    """Return the address of the sort of a dtype, or 0.

    It is `sort(void *start, npy_intp n, void *)`; or, if it `finds` the order of elements,
    `sort(void *start, npy_intp *places, npy_intp n, void *)`. Numbers ignore the last argument.
    """
    functions = PYFUNCTYPE(c_void_p, py_object)(numpy_api(ARRAY_FUNCTIONS))(dtype)
    return words(functions)[(ARGSORTS if finds else SORTS) + STABLE * stable]
