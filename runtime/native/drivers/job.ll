; A job of threads: its words, in scratch memory, get the addresses that the record has. The record
; ends with the scratch memory, whose address becomes that of the job's own scratch memory.
define void @job(ptr %record, ptr %table, i64 %bytes, i64 %relocations) {
entry:
  %share = get ptr, %table[JobTable.share]
  %pool = get ptr, %table[JobTable.pool]
  %helpers = get i64, %table[JobTable.helpers]
  %last = get i64, %table[JobTable.scratch_word]
  %memory = add i64 $(get i64, %record[%last]), LAST_IN_PAGE
  %own = and i64 %memory, $(xor i64 LAST_IN_PAGE, -1)
  %words = inttoptr i64 %own to ptr
  put i64 $(add i64 %own, $(get i64, %table[JobTable.words_bytes])), %record[%last]
  %template = get ptr, %table[JobTable.template]
  %turn = get i64, %table[JobTable.turn]
  %way = xor i64 $(get i64, %template[JobHead.is_backward]), %turn
  put i64 %way, %template[JobHead.is_backward]
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %template, i64 %bytes, i1 false)
  %list = getelementptr i64, ptr %table, i64 JobTable.words
  br label %relocate
relocate:
  %k = phi i64 [ 0, %entry ], [ %k1, %relocate ]
  %pair = getelementptr i64, ptr %list, i64 $(mul i64 %k, RelocationPair.words)
  %position = get i64, %pair[RelocationPair.word]
  %number = get i64, %pair[RelocationPair.memory]
  %is_own = icmp slt i64 %number, 0
  %place = select i1 %is_own, i64 0, i64 %number
  %address = select i1 %is_own, i64 %own, i64 $(get i64, %record[%place])
  %old = get i64, %words[%position]
  put i64 $(add i64 %old, %address), %words[%position]
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %relocations), label %relocate, label %done
done:
  call void %share(ptr %words, i64 %helpers, ptr %pool)
  ret void
}
