; Operations one after another, in one call (sequences.py). Kernels take (record, context, first,
; end), and inner loops (args, counts, steps, data): four words each, which every calling convention
; of 64-bit processors passes alike.
define void @sequence(ptr %record, ptr %table, i64 %first, i64 %end) "probe-stack"="inline-asm" {
entry:
  %bytes = get i64, %table[SequenceTable.scratch]
  %moves = get i64, %table[SequenceTable.moves]
  %count = get i64, %table[SequenceTable.operations]
  %scratch = alloca i8, i64 %bytes, align 64
  %inside = ptrtoint ptr %scratch to i64
  %head = getelementptr i64, ptr %table, i64 SequenceTable.words
  br label %move
move:
  %j = phi i64 [ 0, %entry ], [ %j1, %moved ]
  %at = phi ptr [ %head, %entry ], [ %at1, %moved ]
  br i1 $(icmp ult i64 %j, %moves), label %moved, label %operation
moved:
  %array = get i64, %at[AddressMove.array]
  %offset = get i64, %at[AddressMove.offset]
  %place = get i64, %at[AddressMove.word]
  %is_inside = icmp slt i64 %array, 0
  %number = select i1 %is_inside, i64 0, i64 %array
  %outside = get i64, %record[%number]
  %base = select i1 %is_inside, i64 %inside, i64 %outside
  put i64 $(add i64 %base, %offset), %record[%place]
  %at1 = getelementptr i64, ptr %at, i64 AddressMove.words
  %j1 = add i64 %j, 1
  br label %move
operation:
  %k = phi i64 [ 0, %move ], [ %k1, %operation ]
  %now = phi ptr [ %at, %move ], [ %now1, %operation ]
  %function = get ptr, %now[OperationCall.function]
  %from = get i64, %now[OperationCall.record_word]
  %x = get i64, %now[OperationCall.x]
  %y = get i64, %now[OperationCall.y]
  %z = get i64, %now[OperationCall.z]
  call void %function(ptr $(getelementptr i64, ptr %record, i64 %from), i64 %x, i64 %y, i64 %z)
  %now1 = getelementptr i64, ptr %now, i64 OperationCall.words
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %operation, label %exit
exit:
  ret void
}
