"""Entries: machine code that runs a small program without Python, as a built-in function.

An entry checks guards on its inputs, allocates the results, and calls the kernel. All programs
share the machine code of `call`. The data of one program lie in a record of 64-bit words: first the
words that _HEAD names, then six words for each array, then the places of each pair of inputs that
must lie at different addresses. The record is the memory of the NumPy array
that is the `self` of the built-in function.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_void_p, py_object
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.native.abi.numpy_structs import (
    ALIGNED,
    DATA,
    DIMS,
    DTYPE,
    EMPTY,
    FASTCALL,
    FLAGS,
    NDIM,
    PLAIN,
    SCALAR,
    STRIDES,
    TYPE,
    numpy_api,
    python,
)
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.drivers.records import BACKWARD, NOT_SHARED, RECORDS, SharedRanges, job
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST

_POINTERS = ("type", "none", "empty", "maker", "kernel", "context", "template", "share", "pool")
_NUMBERS = (
    "bytes",
    "inputs",
    "outs",
    "shown",
    "arrays",
    "elements",
    "long",
    "pairs",
    "helpers",
    "room",
    "status",
)
_HEAD = (*_POINTERS, *_NUMBERS)


class Spec(NamedTuple):
    """An input or a result of an entry: its dtype, its shape, and its word in a kernel's record.

    `strides` are the strides in bytes of an input, or None for a contiguous array.
    """

    dtype: Storage
    shape: tuple[int, ...]
    place: int
    strides: tuple[int, ...] | None = None


def assembly() -> str:
    """Return the LLVM assembly of `call(self, args, nargs)`, a METH_FASTCALL function.

    The function returns None if a guard fails, and if an allocation fails. The caller then falls
    back to Python, which raises the MemoryError.
    """
    kinds = ["ptr" if name in _POINTERS else "i64" for name in _HEAD]
    head = [f"%{name} = get {kinds[i]}, %record[{i}]" for i, name in enumerate(_HEAD)]
    return words_of(_TEXT.replace("HEAD", "\n  ".join(head)))


_TEXT = f"""
declare i32 @memcmp(ptr, ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_GetSlice(ptr, i64, i64)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define ptr @call(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %record = get ptr, %self[{DATA}]
  HEAD
  %specs = getelementptr i64, ptr %record, i64 {len(_HEAD)}
  %job = alloca i8, i64 %bytes, align 16
  call void @llvm.memcpy(ptr align 8 %job, ptr align 8 %template, i64 %bytes, i1 false)
  %given = getelementptr i64, ptr %job, i64 %room
  br i1 $(icmp eq i64 %nargs, %inputs), label %results, label %other
results:
  %single = icmp eq i64 %outs, 1
  br i1 %single, label %array, label %pack
pack:
  %tuple = call ptr @PyTuple_New(i64 %outs)
  br i1 $(icmp eq ptr %tuple, null), label %other, label %array
array:
  %holder = phi ptr [ null, %results ], [ %tuple, %pack ], [ %holder, %there ]
  %i = phi i64 [ 0, %results ], [ 0, %pack ], [ %next, %there ]
  %spec = getelementptr [6 x i64], ptr %specs, i64 %i
  %dtype = get ptr, %spec[0]
  %rank = get i32, %spec[1]
  %shape = get ptr, %spec[2]
  %place = get i64, %spec[3]
  %steps = get ptr, %spec[4]
  br i1 $(icmp ult i64 %i, %inputs), label %guard, label %make
guard:
  %object = get ptr, %args[%i]
  %kind = get ptr, %object[{TYPE}]
  br i1 $(icmp eq ptr %kind, %type), label %fields, label %number
number:
  %boxed = getelementptr i64, ptr %object, i64 {SCALAR}
  br i1 $(icmp eq ptr %kind, $(get ptr, %spec[5])), label %there, label %other
fields:
  %same_dtype = icmp eq ptr $(get ptr, %object[{DTYPE}]), %dtype
  %same_rank = icmp eq i32 $(get i32, %object[{NDIM}]), %rank
  %strided = icmp ne ptr %steps, null
  %flags = select i1 %strided, i32 {ALIGNED}, i32 {PLAIN}
  %plain = icmp eq i32 $(and i32 $(get i32, %object[{FLAGS}]), %flags), %flags
  br i1 $(and i1 $(and i1 %same_dtype, %same_rank), %plain), label %dims, label %other
dims:
  %length = shl i64 $(zext i32 %rank to i64), 3
  %flat = icmp eq i32 %rank, 0  ; whose dims are null: masked loads of none of it are slow
  %its_dims = select i1 %flat, ptr %shape, ptr $(get ptr, %object[{DIMS}])
  %differs = call i32 @memcmp(ptr %its_dims, ptr %shape, i64 %length)
  br i1 $(icmp eq i32 %differs, 0), label %layout, label %other
layout:
  %its_data = get ptr, %object[{DATA}]
  br i1 %strided, label %strides, label %there
strides:
  %its_steps = get ptr, %object[{STRIDES}]
  %moves = call i32 @memcmp(ptr %its_steps, ptr %steps, i64 %length)
  br i1 $(icmp eq i32 %moves, 0), label %there, label %other
make:
  br i1 $(icmp eq ptr %steps, null), label %new, label %recycled
new:
  call void @Py_IncRef(ptr %dtype)
  %small = call ptr %empty(i32 %rank, ptr %shape, ptr %dtype, i32 0)
  br label %made_it
recycled:
  %large = call ptr @PyObject_CallObject(ptr %maker, ptr %steps)
  br label %made_it
made_it:
  %made = phi ptr [ %small, %new ], [ %large, %recycled ]
  br i1 $(icmp eq ptr %made, null), label %other, label %hold
hold:
  %new_data = get ptr, %made[{DATA}]
  br i1 %single, label %there, label %put
put:
  call i32 @PyTuple_SetItem(ptr %holder, i64 $(sub i64 %i, %inputs), ptr %made)
  br label %there
there:
  %found = phi ptr [ %object, %number ], [ %object, %layout ], [ %object, %strides ],
    [ %made, %hold ], [ %made, %put ]
  %data = phi ptr [ %boxed, %number ], [ %its_data, %layout ], [ %its_data, %strides ],
    [ %new_data, %hold ], [ %new_data, %put ]
  put ptr %data, %given[%place]
  %next = add i64 %i, 1
  br i1 $(icmp ult i64 %next, %arrays), label %array, label %run
run:
  %result = select i1 %single, ptr %found, ptr %holder
  %apart = getelementptr [6 x i64], ptr %specs, i64 %arrays
  br label %pair
pair:
  %k = phi i64 [ 0, %run ], [ %k1, %differ ]
  br i1 $(icmp ult i64 %k, %pairs), label %differ, label %call
differ:
  %both = getelementptr [2 x i64], ptr %apart, i64 %k
  %x = get i64, %both[0]
  %y = get i64, %both[1]
  %k1 = add i64 %k, 1
  %meets = icmp eq i64 $(get i64, %given[%x]), $(get i64, %given[%y])
  br i1 %meets, label %other, label %pair
call:
  br i1 $(icmp ne i64 %long, 0), label %aside, label %here
here:
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  br label %check
aside:
  %state = call ptr @PyEval_SaveThread()
  br i1 $(icmp eq i64 %helpers, 0), label %alone, label %together
alone:
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  br label %back
together:
  %way = xor i64 $(get i64, %template[{BACKWARD}]), 1
  put i64 %way, %template[{BACKWARD}]
  put i64 %way, %job[{BACKWARD}]
  put ptr %given, %job[{RECORDS}]
  call void %share(ptr %job, i64 %helpers, ptr %pool)
  br label %back
back:
  call void @PyEval_RestoreThread(ptr %state)
  br label %check
check:
  br i1 $(icmp eq i64 $(get i64, %given[%status]), 0), label %end, label %refused
end:
  br i1 $(icmp eq i64 %shown, %outs), label %whole, label %some
whole:
  ret ptr %result
some:  ; without the hidden results, which nothing references any more
  %only = icmp eq i64 %shown, 1
  br i1 %only, label %item, label %slice
item:
  %first_result = call ptr @PyTuple_GetItem(ptr %result, i64 0)
  call void @Py_IncRef(ptr %first_result)
  br label %parted
slice:
  %results_shown = call ptr @PyTuple_GetSlice(ptr %result, i64 0, i64 %shown)
  br label %parted
parted:
  %answer = phi ptr [ %first_result, %item ], [ %results_shown, %slice ]
  call void @Py_DecRef(ptr %result)
  ret ptr %answer
refused:
  br i1 $(icmp eq ptr $(call ptr @PyErr_Occurred()), null), label %other, label %raise
raise:
  call void @Py_DecRef(ptr %result)
  ret ptr null
other:
  %unused = phi ptr [ null, %entry ], [ null, %pack ], [ %holder, %number ],
    [ %holder, %fields ], [ %holder, %dims ], [ %holder, %strides ], [ %holder, %made_it ],
    [ %result, %differ ], [ %result, %refused ]
  call void @Py_DecRef(ptr %unused)  ; which may be null
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""


def _scalar(spec: Spec) -> int:
    """Return the type of NumPy's scalars that are inputs beside arrays of rank 0, or 0."""
    is_number = spec.dtype.isbuiltin == 1 and spec.dtype.kind in "biufc"
    return id(spec.dtype.type) if is_number and not spec.shape else 0


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


def built_in(
    call: Any,
    kernel: Any,
    specs: Sequence[Spec],
    inputs: int,
    template: Sequence[int],
    elements: int,
    long: bool,
    shared: SharedRanges = NOT_SHARED,
    make: Callable[..., Any] | None = None,
    apart: Sequence[tuple[int, int]] = (),
    status: int | None = None,
    hidden: int = 0,
) -> Callable[..., Any]:
    """Return a built-in function of `inputs` arrays that returns its results, or None.

    `specs` describes the inputs and then the results; `assembly` says when the answer is None.
    `call` is the compiled code of `assembly`. `template` is the record of the kernel, in which each
    call fills in the addresses of inputs and results. A `long` call releases the GIL while the
    kernel runs; `shared` says how threads share it. `make` makes the memory of large results from a
    shape and a dtype. `apart` are the pairs of inputs, by number, for which the answer is None if
    they lie at one address. `status` is the word of the record that the kernel sets if it refuses
    its operands: the answer then is None, or the exception that is set. The last `hidden` results
    are memory of the kernel, and no part of the answer.
    """
    # The next word takes the inputs that no kernel reads, and the last one is the usual status.
    head = job(kernel.address, ctypes.addressof(kernel.context), elements, shared)
    record_words = np.array([*head, *template, 0, 0], np.int64)
    shapes = [np.array([*spec.shape, 0], np.int64) for spec in specs]
    strides = [np.array(spec.strides or (), np.int64) for spec in specs]
    places = [steps.ctypes.data if len(steps) else 0 for steps in strides]
    making: list[tuple[Any, ...]] = []
    for k, spec in enumerate(specs[inputs:], inputs):
        if make and math.prod(spec.shape) * spec.dtype.itemsize >= COST.RECYCLED:
            making.append((spec.shape, spec.dtype))
            places[k] = id(making[-1])
    arrays = [
        (id(spec.dtype), len(spec.shape), shape.ctypes.data, spec.place, steps, _scalar(spec))
        for spec, shape, steps in zip(specs, shapes, places, strict=True)
    ]
    addresses = id(np.ndarray), id(None), numpy_api(EMPTY), id(make)
    context = ctypes.addressof(kernel.context)
    fields = kernel.address, context, record_words.ctypes.data, shared.function, shared.pool
    outs = len(specs) - inputs
    counts = record_words.nbytes, inputs, outs, outs - hidden, len(specs)
    pairs = [specs[number].place for pair in apart for number in pair]
    numbers = *counts, elements, long, len(apart), shared.helpers, len(head)
    numbers = *numbers, len(template) + 1 if status is None else status
    words = *addresses, *fields, *numbers, *np.ravel(arrays), *pairs
    record: Any = (ctypes.c_int64 * len(words))(*words)
    method = _MethodDef(b"call", call.address, FASTCALL, None)
    # The record lives as long as the function, and these objects as long as the record.
    record.references = call, method, kernel, specs, record_words, shapes, strides, make, making
    new = python("PyCFunction_NewEx", py_object, c_void_p, py_object, c_void_p)
    return new(ctypes.addressof(method), np.frombuffer(record, np.int64), None)
