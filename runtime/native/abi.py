"""Access of machine code and ctypes to the C structures of CPython and NumPy.

All such access is in this module. Records declare the fields of NumPy's public structures by name,
64 bits each, and functions verify them: the fields of arrays, the inner loops of ufuncs, and the
sorts of dtypes, which machine code and Python read by the same declarations.
runtime/native/probe.py runs this verification, and a computation with each part, before any other
use of this module. GRAPHIR_NATIVE=0 in the environment, or `native="off"`, switches off the tier
and this module.

An entry is machine code that runs a small program without Python, as a built-in function. It checks
guards on its inputs, allocates the results, and calls the kernel. All programs share the machine
code of `call` (drivers/entry.ll). The data of one program lie in an `EntryRecord`, which is the
memory of the NumPy array that is the `self` of the built-in function.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from ctypes import PYFUNCTYPE, Structure, addressof, c_char_p, c_int, c_void_p, py_object
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.drivers.records import (
    NOT_SHARED,
    CallableCode,
    JobHead,
    SharedRanges,
    WordRecord,
    context_of,
    driver_text,
    job_words,
    record,
    word,
)
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST

# -- the structures of NumPy


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


# -- entries


@record
class EntryRecord(WordRecord):
    """The record of an entry: addresses, and then numbers. An `EntryArray` for each array follows.

    `empty` is PyArray_Empty, and `allocate` makes large results. `template` is a job of `bytes`
    bytes whose head has `head_words` words, before the record of the kernel. `results` counts the
    results, of which the answer has `results_shown`. `status` is the word of the kernel's record
    that is not 0 if the kernel refuses its operands.
    """

    fields = (
        "type none empty allocate kernel context template share pool bytes "
        "inputs results results_shown arrays elements releases_lock pairs helpers head_words status"
    )


@record
class EntryArray(WordRecord):
    """An input or a result: addresses of its dtype, shape and strides; its rank; its word.

    The strides are 0 for a contiguous input. Those of a result are the arguments of `allocate`, or
    0. `scalar` is the type of NumPy's scalars that are inputs too, or 0.
    """

    fields = "dtype rank shape word strides scalar"


@record
class DistinctPair(WordRecord):
    """The words of two inputs that must lie at different addresses; pairs follow the arrays."""

    fields = "first second"


class ArraySpec(NamedTuple):
    """An input or a result of an entry: its dtype, its shape, and its word in a kernel's record.

    `strides` are the strides in bytes of an input, or None for a contiguous array.
    """

    dtype: Storage
    shape: tuple[int, ...]
    word: int
    strides: tuple[int, ...] | None = None


class EntryCall(NamedTuple):
    """What an entry does: the arrays that it takes and gives, and how it runs the kernel.

    `specs` describe the inputs and then the results. `template` is the record of the kernel, in
    which each call fills in the addresses of inputs and results. A `long` call releases the GIL
    while the kernel runs; `shared` says how threads share it. `allocate` makes the memory of large
    results from a shape and a dtype. `distinct` are the pairs of inputs, by number, for which the
    answer is None if they lie at one address. `status` is the word of the record that the kernel
    sets if it refuses its operands: the answer then is None, or the exception that is set. The last
    `hidden` results are memory of the kernel, and no part of the answer.
    """

    specs: Sequence[ArraySpec]
    inputs: int
    template: Sequence[int]
    elements: int
    long: bool
    shared: SharedRanges = NOT_SHARED
    allocate: Callable[..., Any] | None = None
    distinct: Sequence[tuple[int, int]] = ()
    status: int | None = None
    hidden: int = 0


class _MethodDef(Structure):
    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


def assembly() -> str:
    """Return the LLVM assembly of `call(self, args, nargs)`, a METH_FASTCALL function.

    The function returns None if a guard fails, and if an allocation fails. The caller then falls
    back to Python, which raises the MemoryError.
    """
    own = EntryRecord, EntryArray, DistinctPair, JobHead
    return words_of(driver_text("drivers/entry.ll", *own, ArrayObject, ScalarObject, Flags))


def built_in(
    address: int, kernel: CallableCode, call: EntryCall, code: Any = None
) -> Callable[..., Any]:
    """Return a built-in function of arrays that returns its results, or None (see `assembly`).

    `address` is that of the compiled `assembly`, which lives as long as `code`.
    """
    specs, inputs, template, shared = call.specs, call.inputs, call.template, call.shared
    context = addressof(kernel.context)
    head = job_words(kernel.address, context, call.elements, shared)
    # The next word takes the inputs that no kernel reads, and the last one is the usual status.
    job = np.array([*head, *template, 0, 0], np.int64)
    shapes = [np.array([*spec.shape, 0], np.int64) for spec in specs]
    strides = [np.array(spec.strides or (), np.int64) for spec in specs]
    addresses = [steps.ctypes.data if len(steps) else 0 for steps in strides]
    requests = [_allocation(spec) if call.allocate else None for spec in specs[inputs:]]
    for k, request in enumerate(requests, inputs):
        addresses[k] = id(request) if request else addresses[k]
    arrays = [
        EntryArray(
            id(spec.dtype), len(spec.shape), shape.ctypes.data, spec.word, steps, _scalar_type(spec)
        )
        for spec, shape, steps in zip(specs, shapes, addresses, strict=True)
    ]
    entry = EntryRecord(
        type=id(np.ndarray),
        none=id(None),
        empty=numpy_api(EMPTY),
        allocate=id(call.allocate),
        kernel=kernel.address,
        context=context,
        template=job.ctypes.data,
        share=shared.function,
        pool=shared.pool,
        bytes=job.nbytes,
        inputs=inputs,
        results=len(specs) - inputs,
        results_shown=len(specs) - inputs - call.hidden,
        arrays=len(specs),
        elements=call.elements,
        releases_lock=call.long,
        pairs=len(call.distinct),
        helpers=shared.helpers,
        head_words=len(head),
        status=len(template) + 1 if call.status is None else call.status,
    )
    pairs = [DistinctPair(specs[x].word, specs[y].word) for x, y in call.distinct]
    memory: Any = context_of([entry, *arrays, *pairs])
    method = _MethodDef(b"call", address, FASTCALL, None)
    # The memory lives as long as the function, and these objects as long as the memory.
    memory.references = code, method, kernel, call, job, shapes, strides, requests
    new = python("PyCFunction_NewEx", py_object, c_void_p, py_object, c_void_p)
    return new(addressof(method), np.frombuffer(memory, np.int64), None)


def _allocation(spec: ArraySpec) -> tuple[tuple[int, ...], Storage] | None:
    """Return the arguments of `allocate` for a large result, or None."""
    is_large = math.prod(spec.shape) * spec.dtype.itemsize >= COST.RECYCLED
    return (spec.shape, spec.dtype) if is_large else None


def _scalar_type(spec: ArraySpec) -> int:
    """Return the type of NumPy's scalars that are inputs beside arrays of rank 0, or 0."""
    is_number = spec.dtype.isbuiltin == 1 and spec.dtype.kind in "biufc"
    return id(spec.dtype.type) if is_number and not spec.shape else 0
