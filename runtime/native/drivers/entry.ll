; call(self, args, nargs), a METH_FASTCALL function: it checks the inputs, allocates the results, and
; calls the kernel (abi.py). The answer is None if a check or an allocation fails.
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

define ptr @call(ptr %self, ptr %args, i64 %nargs) {
entry:
  %record = get ptr, %self[ArrayObject.data]
  %type = get ptr, %record[EntryRecord.type]
  %none = get ptr, %record[EntryRecord.none]
  %empty = get ptr, %record[EntryRecord.empty]
  %maker = get ptr, %record[EntryRecord.allocate]
  %template = get ptr, %record[EntryRecord.template]
  %bytes = get i64, %record[EntryRecord.bytes]
  %inputs = get i64, %record[EntryRecord.inputs]
  %outs = get i64, %record[EntryRecord.results]
  %arrays = get i64, %record[EntryRecord.arrays]
  %pairs = get i64, %record[EntryRecord.pairs]
  %specs = getelementptr i64, ptr %record, i64 EntryRecord.words
  %job = alloca i8, i64 %bytes, align 16
  call void @llvm.memcpy(ptr align 8 %job, ptr align 8 %template, i64 %bytes, i1 false)
  %given = getelementptr i64, ptr %job, i64 $(get i64, %record[EntryRecord.head_words])
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
  %spec = getelementptr i64, ptr %specs, i64 $(mul i64 %i, EntryArray.words)
  %dtype = get ptr, %spec[EntryArray.dtype]
  %rank = get i32, %spec[EntryArray.rank]
  %shape = get ptr, %spec[EntryArray.shape]
  %place = get i64, %spec[EntryArray.word]
  %steps = get ptr, %spec[EntryArray.strides]
  br i1 $(icmp ult i64 %i, %inputs), label %guard, label %make
guard:
  %object = get ptr, %args[%i]
  %kind = get ptr, %object[ArrayObject.type]
  br i1 $(icmp eq ptr %kind, %type), label %fields, label %number
number:
  %boxed = getelementptr i64, ptr %object, i64 ScalarObject.value
  br i1 $(icmp eq ptr %kind, $(get ptr, %spec[EntryArray.scalar])), label %there, label %other
fields:
  %same_dtype = icmp eq ptr $(get ptr, %object[ArrayObject.dtype]), %dtype
  %same_rank = icmp eq i32 $(get i32, %object[ArrayObject.ndim]), %rank
  %strided = icmp ne ptr %steps, null
  %flags = select i1 %strided, i32 Flags.ALIGNED, i32 Flags.PLAIN
  %plain = icmp eq i32 $(and i32 $(get i32, %object[ArrayObject.flags]), %flags), %flags
  br i1 $(and i1 $(and i1 %same_dtype, %same_rank), %plain), label %dims, label %other
dims:
  %length = shl i64 $(zext i32 %rank to i64), 3
  %flat = icmp eq i32 %rank, 0  ; whose dims are null: masked loads of none of it are slow
  %its_dims = select i1 %flat, ptr %shape, ptr $(get ptr, %object[ArrayObject.dims])
  %differs = call i32 @memcmp(ptr %its_dims, ptr %shape, i64 %length)
  br i1 $(icmp eq i32 %differs, 0), label %layout, label %other
layout:
  %its_data = get ptr, %object[ArrayObject.data]
  br i1 %strided, label %strides, label %there
strides:
  %its_steps = get ptr, %object[ArrayObject.strides]
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
  %new_data = get ptr, %made[ArrayObject.data]
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
  %distinct = getelementptr i64, ptr %specs, i64 $(mul i64 %arrays, EntryArray.words)
  br label %pair
pair:
  %k = phi i64 [ 0, %run ], [ %k1, %differ ]
  br i1 $(icmp ult i64 %k, %pairs), label %differ, label %call
differ:
  %both = getelementptr i64, ptr %distinct, i64 $(mul i64 %k, DistinctPair.words)
  %x = get i64, %both[DistinctPair.first]
  %y = get i64, %both[DistinctPair.second]
  %k1 = add i64 %k, 1
  %meets = icmp eq i64 $(get i64, %given[%x]), $(get i64, %given[%y])
  br i1 %meets, label %other, label %pair
call:
  call void @run(ptr %record, ptr %job, ptr %given)
  %status = get i64, %record[EntryRecord.status]
  br i1 $(icmp eq i64 $(get i64, %given[%status]), 0), label %end, label %refused
end:
  %shown = get i64, %record[EntryRecord.results_shown]
  br i1 $(icmp eq i64 %shown, %outs), label %whole, label %some
whole:
  ret ptr %result
some:  ; without the hidden results, which nothing references any more
  br i1 $(icmp eq i64 %shown, 1), label %item, label %slice
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
}

; Run the kernel; a long call releases the interpreter lock, and may have helpers.
define internal void @run(ptr %record, ptr %job, ptr %given) {
entry:
  %kernel = get ptr, %record[EntryRecord.kernel]
  %context = get ptr, %record[EntryRecord.context]
  %elements = get i64, %record[EntryRecord.elements]
  %helpers = get i64, %record[EntryRecord.helpers]
  br i1 $(icmp ne i64 $(get i64, %record[EntryRecord.releases_lock]), 0), label %long, label %short
short:
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  ret void
long:
  %state = call ptr @PyEval_SaveThread()
  br i1 $(icmp eq i64 %helpers, 0), label %alone, label %together
alone:
  call void %kernel(ptr %given, ptr %context, i64 0, i64 %elements)
  br label %back
together:
  %template = get ptr, %record[EntryRecord.template]
  %way = xor i64 $(get i64, %template[JobHead.is_backward]), 1
  put i64 %way, %template[JobHead.is_backward]
  put i64 %way, %job[JobHead.is_backward]
  put ptr %given, %job[JobHead.records]
  %share = get ptr, %record[EntryRecord.share]
  call void %share(ptr %job, i64 %helpers, ptr $(get ptr, %record[EntryRecord.pool]))
  br label %back
back:
  call void @PyEval_RestoreThread(ptr %state)
  ret void
}
