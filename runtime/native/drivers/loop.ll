; A loop over scalars: moves into its state and copies of arrays, the loop, and moves of results
; (operations.py). A move copies bytes from a source to a target, each of a `LoopStorage`.
define internal void @moves(ptr %record, ptr %state, ptr %table, i64 %from, i64 %to) {
entry:
  br label %head
head:
  %k = phi i64 [ %from, %entry ], [ %k1, %move ]
  br i1 $(icmp ult i64 %k, %to), label %move, label %exit
move:
  %at = getelementptr i64, ptr %table, i64 $(mul i64 %k, LoopMove.words)
  %a = get i64, %at[LoopMove.target]
  %b = get i64, %at[LoopMove.source]
  %of = get i64, %at[LoopMove.source_place]
  %bytes = get i64, %at[LoopMove.bytes]
  %in_a = getelementptr i64, ptr %state, i64 %a
  %in_b = getelementptr i64, ptr %state, i64 %b
  %word = getelementptr i64, ptr %record, i64 %b
  %outside = icmp eq i64 $(get i64, %at[LoopMove.target_place]), LoopStorage.ARRAY
  %is_array = icmp eq i64 %of, LoopStorage.ARRAY
  %a_address = select i1 %outside, i64 %a, i64 0
  %b_address = select i1 %is_array, i64 %b, i64 0
  %target = select i1 %outside, ptr $(get ptr, %record[%a_address]), ptr %in_a
  %inside = select i1 $(icmp eq i64 %of, LoopStorage.STATE), ptr %in_b, ptr %word
  %source = select i1 %is_array, ptr $(get ptr, %record[%b_address]), ptr %inside
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  %k1 = add i64 %k, 1
  br label %head
exit:
  ret void
}
define void @run(ptr %record, ptr %table, i64 %first, i64 %end) "probe-stack"="inline-asm" {
entry:
  %loop = get ptr, %table[LoopTable.loop]
  %context = get ptr, %table[LoopTable.context]
  %template = get ptr, %table[LoopTable.template]
  %bytes = get i64, %table[LoopTable.bytes]
  %status = get i64, %table[LoopTable.status_word]
  %moves = getelementptr i64, ptr %table, i64 LoopTable.words
  %state = alloca i8, i64 %bytes, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %template, i64 %bytes, i1 false)
  call void @moves(ptr %record, ptr %state, ptr %moves, i64 0, i64 %first)
  %answer = call i64 %loop(ptr %state, ptr %context)
  put i64 %answer, %record[%status]
  br i1 $(icmp eq i64 %answer, 0), label %results, label %exit
results:
  call void @moves(ptr %record, ptr %state, ptr %moves, i64 %first, i64 %end)
  br label %exit
exit:
  ret void
}
