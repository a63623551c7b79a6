; A reduction of outer axes: a kernel reduces rows into each tile of the results. The record of the
; kernel follows the addresses of the results and of the rows (operations.py).
define void @fold(ptr %record, ptr %table, i64 %first, i64 %end) {
entry:
  %sums = get ptr, %record[FoldRecord.sums]
  %kernel = get ptr, %table[FoldTable.kernel]
  %context = get ptr, %table[FoldTable.context]
  %tiles = get i64, %table[FoldTable.tiles]
  %own = getelementptr i64, ptr %record, i64 FoldRecord.words
  put ptr $(get ptr, %record[FoldRecord.rows]), %own[0]
  put ptr %sums, %own[1]
  br label %tile
tile:
  %k = phi i64 [ 0, %entry ], [ %k1, %tile ]
  %ranges = getelementptr i64, ptr %table, i64 FoldTable.words
  %lanes = getelementptr i64, ptr %ranges, i64 $(mul i64 %k, LaneRange.words)
  put i64 $(get i64, %lanes[LaneRange.first]), %own[2]
  put i64 $(get i64, %lanes[LaneRange.count]), %own[3]
  call void %kernel(ptr %own, ptr %context, i64 %first, i64 %end)
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %tiles), label %tile, label %exit
exit:
  ret void
}

; The first values of results.
define void @start(ptr %record, ptr %values, i64 %first, i64 %bytes) {
  call void @llvm.memcpy.p0.p0.i64(ptr $(get ptr, %record[0]), ptr %values, i64 %bytes, i1 false)
  ret void
}
