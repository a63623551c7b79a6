; A kernel whose elements are calls of BLAS (float_products.py). A call sets the first words of the
; record of the function, which has the others already.
define void @products(ptr %record, ptr %unused, i64 %first, i64 %end) {
entry:
  %multiply = get ptr, %record[BlasRecord.function]
  %calls = get ptr, %record[BlasRecord.calls]
  %left_blocks = get ptr, %record[BlasRecord.left_blocks]
  %right_blocks = get ptr, %record[BlasRecord.right_blocks]
  %arguments = getelementptr i64, ptr %record, i64 BlasRecord.words
  br label %matrix
matrix:
  %i = phi i64 [ %first, %entry ], [ %i1, %matrix ]
  %call = getelementptr i64, ptr %calls, i64 $(mul i64 %i, BlasCall.words)
  %bytes = mul i64 8, BlasCall.words
  call void @llvm.memcpy.p0.p0.i64(ptr %arguments, ptr %call, i64 %bytes, i1 false)
  %unread = call i32 %multiply(ptr %arguments, ptr null, ptr null, ptr %left_blocks,
    ptr %right_blocks, i64 0)
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %end), label %matrix, label %exit
exit:
  ret void
}
