; A kernel whose elements are calls of kernels (thread_pool.py).
define void @calls(ptr %own, ptr %unused, i64 %first, i64 %end) {
entry:
  %table = get ptr, %own[CallsRecord.calls]
  %scratch = get i64, %own[CallsRecord.scratch]
  %place = get i64, %own[CallsRecord.scratch_word]
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i1, %call ]
  %at = getelementptr i64, ptr %table, i64 $(mul i64 %i, JobCall.words)
  %kernel = get ptr, %at[JobCall.kernel]
  %record = get ptr, %at[JobCall.record]
  %context = get ptr, %at[JobCall.context]
  %from = get i64, %at[JobCall.first]
  %to = get i64, %at[JobCall.end]
  br i1 $(icmp slt i64 %place, 0), label %call, label %placed
placed:
  put i64 %scratch, %record[%place]
  br label %call
call:
  call void %kernel(ptr %record, ptr %context, i64 %from, i64 %to)
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %end), label %next, label %exit
exit:
  ret void
}
