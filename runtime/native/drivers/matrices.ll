; A kernel whose elements are the matrices of a product, by the inner loop of np.matmul.
define void @matrices(ptr %record, ptr %table, i64 %first, i64 %end) {
entry:
  %args = alloca [3 x ptr]
  %counts = alloca [4 x i64]
  %steps = getelementptr i64, ptr %table, i64 MatrixLoop.words
  br label %operand
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %operand ]
  %step = get i64, %steps[%k]
  put i64 $(add i64 $(get i64, %record[%k]), $(mul i64 %first, %step)), %args[%k]
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, 3), label %operand, label %call
call:
  put i64 $(sub i64 %end, %first), %counts[0]
  put i64 $(get i64, %table[MatrixLoop.rows]), %counts[1]
  put i64 $(get i64, %table[MatrixLoop.terms]), %counts[2]
  put i64 $(get i64, %table[MatrixLoop.columns]), %counts[3]
  %loop = get ptr, %table[MatrixLoop.function]
  %data = get ptr, %table[MatrixLoop.data]
  call void %loop(ptr %args, ptr %counts, ptr %steps, ptr %data)
  ret void
}
