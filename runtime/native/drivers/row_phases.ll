; Kernels one after another on each block of rows (row_phases.py).

; A copy of rows, as a kernel whose elements are rows: of all bytes, or of some pieces of each row.
define internal void @copy(ptr %record, ptr %context, i64 %first, i64 %end) {
entry:
  %target = get ptr, %record[CopyRecord.target]
  %source = get ptr, %record[CopyRecord.source]
  %to_row = get i64, %record[CopyRecord.target_row]
  %from_row = get i64, %record[CopyRecord.source_row]
  %count = get i64, %record[CopyRecord.pieces]
  br i1 $(icmp eq i64 %count, 0), label %whole, label %row
whole:
  %to_all = getelementptr i8, ptr %target, i64 $(mul i64 %first, %to_row)
  %from_all = getelementptr i8, ptr %source, i64 $(mul i64 %first, %from_row)
  %all = mul i64 $(sub i64 %end, %first), %to_row
  call void @llvm.memcpy.p0.p0.i64(ptr %to_all, ptr %from_all, i64 %all, i1 false)
  br label %exit
row:
  %i = phi i64 [ %first, %entry ], [ %i1, %done ]
  %to = getelementptr i8, ptr %target, i64 $(mul i64 %i, %to_row)
  %from = getelementptr i8, ptr %source, i64 $(mul i64 %i, %from_row)
  %pieces = getelementptr i64, ptr %record, i64 CopyRecord.words
  br label %run
run:
  %k = phi i64 [ 0, %row ], [ %k1, %run ]
  %piece = getelementptr i64, ptr %pieces, i64 $(mul i64 %k, CopyPiece.words)
  %to_at = get i64, %piece[CopyPiece.target]
  %from_at = get i64, %piece[CopyPiece.source]
  %bytes = get i64, %piece[CopyPiece.bytes]
  %into = getelementptr i8, ptr %to, i64 %to_at
  %out_of = getelementptr i8, ptr %from, i64 %from_at
  call void @llvm.memcpy.p0.p0.i64(ptr %into, ptr %out_of, i64 %bytes, i1 false)
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %run, label %done
done:
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %end), label %row, label %exit
exit:
  ret void
}

define void @phases(ptr %table, ptr %unused, i64 %first, i64 %end) {
entry:
  %rows = get i64, %table[PhasesHead.rows]
  %ahead = get i64, %table[PhasesHead.ahead]
  %count = get i64, %table[PhasesHead.kernels]
  %moves = get i64, %table[PhasesHead.moves]
  %kernels = getelementptr i64, ptr %table, i64 PhasesHead.words
  %begin = sub i64 %first, %ahead
  br i1 $(icmp slt i64 %first, %end), label %block, label %exit
block:
  %a = phi i64 [ %begin, %entry ], [ %b, %next ]
  %b = add i64 %a, $(call i64 @llvm.smin(i64 %rows, i64 $(sub i64 %end, %a)))
  br label %phase
phase:
  %k = phi i64 [ 0, %block ], [ %k1, %done ]
  %at = phi ptr [ %kernels, %block ], [ %operand, %done ]
  %kernel = get ptr, %at[PhaseKernel.kernel]
  %context = get ptr, %at[PhaseKernel.context]
  %record = get ptr, %at[PhaseKernel.record]
  %elements = get i64, %at[PhaseKernel.row_elements]
  %low = get i64, %at[PhaseKernel.low]
  %high = get i64, %at[PhaseKernel.high]
  %start = get i64, %at[PhaseKernel.first]
  %stop = get i64, %at[PhaseKernel.end]
  %inner = get i64, %at[PhaseKernel.operands]
  %operands = getelementptr i64, ptr %at, i64 PhaseKernel.words
  %least = call i64 @llvm.smax(i64 %start, i64 $(add i64 %first, %low))
  %from = call i64 @llvm.smax(i64 %least, i64 $(add i64 %a, %high))
  %to = call i64 @llvm.smin(i64 %stop, i64 $(add i64 %b, %high))
  br label %move
move:
  %j = phi i64 [ 0, %phase ], [ %j1, %moved ]
  %operand = phi ptr [ %operands, %phase ], [ %after, %moved ]
  br i1 $(icmp ult i64 %j, %inner), label %moved, label %placed
moved:
  %place = get i64, %operand[PhaseOperand.word]
  %memory = get i64, %operand[PhaseOperand.memory]
  %row = get i64, %operand[PhaseOperand.row]
  put i64 $(sub i64 %memory, $(mul i64 %a, %row)), %record[%place]
  %after = getelementptr i64, ptr %operand, i64 PhaseOperand.words
  %j1 = add i64 %j, 1
  br label %move
placed:
  br i1 $(icmp slt i64 %from, %to), label %run, label %done
run:
  %function = select i1 $(icmp eq ptr %kernel, null), ptr @copy, ptr %kernel
  %from_element = mul i64 %from, %elements
  %to_element = mul i64 %to, %elements
  call void %function(ptr %record, ptr %context, i64 %from_element, i64 %to_element)
  br label %done
done:
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %phase, label %kept
kept:
  br i1 $(icmp slt i64 %b, %end), label %keep, label %exit
keep:
  %m = phi i64 [ 0, %kept ], [ %m1, %shift ]
  %window = phi ptr [ %operand, %kept ], [ %window1, %shift ]
  br i1 $(icmp ult i64 %m, %moves), label %shift, label %next
shift:
  %into = get ptr, %window[PhaseMove.memory]
  %distance = get i64, %window[PhaseMove.distance]
  %bytes = get i64, %window[PhaseMove.bytes]
  %out_of = getelementptr i8, ptr %into, i64 %distance
  call void @llvm.memmove.p0.p0.i64(ptr %into, ptr %out_of, i64 %bytes, i1 false)
  %window1 = getelementptr i64, ptr %window, i64 PhaseMove.words
  %m1 = add i64 %m, 1
  br label %keep
next:
  br label %block
exit:
  ret void
}
