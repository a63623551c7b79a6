"""A call of a small program without Python: guards, memory for the results, and the kernel.

The machine code of `call` is the same for all programs. What one of them is made of lies in a
record of 64-bit words, the data of the NumPy array that is the `self` of its built-in function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from runtime.native.vectors import words_of
from runtime.program.tracing import Storage

_NUMBERS = ("inputs", "outs", "elements", "words", "long")
_HEAD = ("type", "none", "empty", "kernel", "context", "template", *_NUMBERS)
_SPEC = 4
# PyArrayObject_fields of numpy/_core/include/numpy/ndarraytypes.h, in words
DATA, NDIM, DIMS, DTYPE, FLAGS = 2, 3, 4, 7, 8
_PLAIN = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_EMPTY = 184  # PyArray_Empty in numpy/_core/code_generators/numpy_api.py


class Spec(NamedTuple):
    """An array that is given, or made: its dtype and shape, and the word of a record for it."""

    dtype: Storage
    shape: tuple[int, ...]
    place: int


def assembly() -> str:
    """`call(self, args, nargs)` as METH_FASTCALL wants it: None where a guard fails."""
    words = [
        f"%{name} = get {'i64' if name in _NUMBERS else 'ptr'}, %record[{i}]"
        for i, name in enumerate(_HEAD)
    ]
    return words_of(_TEXT.replace("HEAD", "\n  ".join(words)))


_TEXT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @memcmp(ptr, ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define ptr @call(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %record = get ptr, %self[{DATA}]
  HEAD
  %given = alloca i64, i64 %words, align 16
  %specs = getelementptr i64, ptr %record, i64 {len(_HEAD)}
  %bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %given, ptr align 8 %template, i64 %bytes, i1 false)
  %all = icmp eq i64 %nargs, %inputs
  br i1 %all, label %first, label %other
first:
  %some = icmp ne i64 %inputs, 0
  br i1 %some, label %input, label %results
input:
  %i = phi i64 [ 0, %first ], [ %i1, %taken ]
  %object = get ptr, %args[%i]
  %kind = get ptr, %object[1]
  %is_array = icmp eq ptr %kind, %type
  br i1 %is_array, label %array, label %other
array:
  %spec = getelementptr [{_SPEC} x i64], ptr %specs, i64 %i
  %dtype = get ptr, %object[{DTYPE}]
  %wanted = get ptr, %spec[0]
  %ndim = get i32, %object[{NDIM}]
  %rank = get i32, %spec[1]
  %flags = get i32, %object[{FLAGS}]
  %both = and i32 %flags, {_PLAIN}
  %same_dtype = icmp eq ptr %dtype, %wanted
  %same_rank = icmp eq i32 %ndim, %rank
  %plain = icmp eq i32 %both, {_PLAIN}
  %ok1 = and i1 %same_dtype, %same_rank
  %ok2 = and i1 %ok1, %plain
  br i1 %ok2, label %sizes, label %other
sizes:
  %dims = get ptr, %object[{DIMS}]
  %shape = get ptr, %spec[2]
  %axes = zext i32 %rank to i64
  %length = shl i64 %axes, 3
  %flat = icmp eq i32 %rank, 0  ; whose dims are null: masked loads of none of it are slow
  %compared = select i1 %flat, ptr %shape, ptr %dims
  %differs = call i32 @memcmp(ptr %compared, ptr %shape, i64 %length)
  %same = icmp eq i32 %differs, 0
  br i1 %same, label %taken, label %other
taken:
  %place = get i64, %spec[3]
  %data = get ptr, %object[{DATA}]
  put ptr %data, %given[%place]
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %inputs
  br i1 %more, label %input, label %results
results:
  %single = icmp eq i64 %outs, 1
  br i1 %single, label %out, label %pack
pack:
  %packed = call ptr @PyTuple_New(i64 %outs)
  %unpacked = icmp eq ptr %packed, null
  br i1 %unpacked, label %failed, label %out
out:
  %holder = phi ptr [ null, %results ], [ %packed, %pack ], [ %holder, %put ]
  %o = phi i64 [ 0, %results ], [ 0, %pack ], [ %o1, %put ]
  %o_at = add i64 %o, %inputs
  %out_spec = getelementptr [{_SPEC} x i64], ptr %specs, i64 %o_at
  %out_dtype = get ptr, %out_spec[0]
  %out_rank = get i32, %out_spec[1]
  %out_shape = get ptr, %out_spec[2]
  %out_place = get i64, %out_spec[3]
  call void @Py_IncRef(ptr %out_dtype)
  %made = call ptr %empty(i32 %out_rank, ptr %out_shape, ptr %out_dtype, i32 0)
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %failed, label %keep
keep:
  %out_data = get ptr, %made[{DATA}]
  put ptr %out_data, %given[%out_place]
  br i1 %single, label %run, label %put
put:
  %ignored = call i32 @PyTuple_SetItem(ptr %holder, i64 %o, ptr %made)
  %o1 = add i64 %o, 1
  %more_outs = icmp ult i64 %o1, %outs
  br i1 %more_outs, label %out, label %run
run:
  %result = phi ptr [ %made, %keep ], [ %holder, %put ]
  %is_long = icmp ne i64 %long, 0
  br i1 %is_long, label %aside, label %here
here:
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  ret ptr %result
aside:
  %state = call ptr @PyEval_SaveThread()
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  call void @PyEval_RestoreThread(ptr %state)
  ret ptr %result
failed:
  %dropped = phi ptr [ null, %pack ], [ %holder, %out ]
  call void @Py_DecRef(ptr %dropped)  ; which may be null
  ret ptr null
other:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_FASTCALL = 0x80
_python: Any = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", _python)
)


def _numpy_api(index: int) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", _python)
    )
    capsule: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return table[index]


class Record(np.ndarray[Any, Any]):
    """The record of a function, which keeps alive what it points to."""

    kept: Any


def built_in(
    method: Any,
    kernel: Any,
    specs: Sequence[Spec],
    inputs: int,
    template: Sequence[int],
    elements: int,
    long: bool,
) -> Callable[..., Any]:
    """A function of so many inputs that gives the others of `specs`, or None where a guard fails.

    `template` is the kernel's record, but for the bases of inputs and results; a `long` call lets
    other threads run Python meanwhile.
    """
    words = np.array([*template, 0], np.int64)  # the last for inputs that are not read
    shapes = [np.array([*one.shape, 0], np.int64) for one in specs]
    arrays = [
        (id(one.dtype), len(one.shape), shape.ctypes.data, one.place)
        for one, shape in zip(specs, shapes, strict=True)
    ]
    values = {
        "type": id(np.ndarray),
        "none": id(None),
        "empty": _numpy_api(_EMPTY),
        "kernel": kernel.address,
        "context": ctypes.addressof(kernel.context),
        "template": words.ctypes.data,
        "inputs": inputs,
        "outs": len(specs) - inputs,
        "elements": elements,
        "words": len(words),
        "long": long,
    }
    head = [values[name] for name in _HEAD]
    record = np.array([*head, *np.ravel(arrays)], np.int64).view(Record)
    record.kept = method, kernel, specs, words, shapes
    return _new(ctypes.addressof(method), record, None)


def method(address: int) -> Any:
    """How Python knows `call`, by its address."""
    return _MethodDef(b"call", address, _FASTCALL, None)
