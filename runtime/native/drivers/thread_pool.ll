; The pool of threads. LLVM assembly with the abbreviations of `words_of` and `driver_text`.
; thread_pool.py has the table of the states of a worker and of who changes them.

; Take ranges and run them: first those of the own part of a thread, then those of other parts.
define internal void @ranges(ptr %job, i64 %number) {
entry:
  %parts = get i64, %job[JobHead.parts]
  %size = get i64, %job[JobHead.size]
  %block = get i64, %job[JobHead.block]
  %kernel = get ptr, %job[JobHead.kernel]
  %context = get ptr, %job[JobHead.context]
  %step = get i64, %job[JobHead.step]
  %records = get ptr, %job[JobHead.records]
  %is_backward = icmp ne i64 $(get i64, %job[JobHead.is_backward]), 0
  %record = getelementptr i64, ptr %records, i64 $(mul i64 %number, %step)
  br label %part
part:
  %k = phi i64 [ 0, %entry ], [ %k1, %taken ]
  %part_number = urem i64 $(add i64 %number, %k), %parts
  %counter = call ptr @part_of(ptr %job, i64 %part_number)
  %limit = get i64, %counter[JobPart.end]
  %both_ends = add i64 $(get i64, %counter[JobPart.first]), $(sub i64 %limit, 1)
  br label %take
take:
  %range = atomicrmw add ptr %counter, i64 1 seq_cst
  br i1 $(icmp slt i64 %range, %limit), label %run, label %taken
run:
  %mirror = sub i64 %both_ends, %range
  %place = select i1 %is_backward, i64 %mirror, i64 %range
  %first = mul i64 %place, %block
  %end = call i64 @llvm.smin(i64 $(add i64 %first, %block), i64 %size)
  call void %kernel(ptr %record, ptr %context, i64 %first, i64 %end)
  br label %take
taken:
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %parts), label %part, label %exit
exit:
  ret void
}

; The part of a job with a number.
define internal ptr @part_of(ptr %job, i64 %number) {
  %at = add i64 JobHead.words, $(mul i64 %number, JobPart.words)
  %part = getelementptr i64, ptr %job, i64 %at
  ret ptr %part
}

; Run the job that is the state of a worker, unless its caller has taken it back.
define internal void @run_job(ptr %worker, i64 %state) {
entry:
  %begins = cmpxchg ptr %worker, i64 %state, i64 State.WORKS seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %begins, 1), label %begin, label %exit
begin:
  %job = inttoptr i64 %state to ptr
  br label %find
find:
  %number = phi i64 [ 1, %begin ], [ %number1, %find ]
  %part = call ptr @part_of(ptr %job, i64 %number)
  %number1 = add i64 %number, 1
  br i1 $(icmp eq ptr $(get ptr, %part[JobPart.worker]), %worker), label %run, label %find
run:
  call void @ranges(ptr %job, i64 %number)
  store atomic i64 State.POLLS, ptr %worker seq_cst, align 8
  %holders = atomicrmw sub ptr %job, i64 1 seq_cst  ; the end of the job for its caller
  br label %exit
exit:
  ret void
}

; Wait for work without a processor. The answer is whether the thread of the worker ends.
define internal i1 @wait_for_lock(ptr %worker) {
entry:
  %lock = get ptr, %worker[Worker.lock]
  %pool = get ptr, %worker[Worker.pool]
  %acquire = get ptr, %pool[Pool.acquire]
  %tires = cmpxchg ptr %worker, i64 State.POLLS, i64 State.WAITS seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %tires, 1), label %wait, label %stay
wait:
  %woken = call i32 %acquire(ptr %lock, i64 WAIT_MICROSECONDS, i32 0)
  br i1 $(icmp eq i32 %woken, 1), label %stay, label %late
late:
  %leaves = cmpxchg ptr %worker, i64 State.WAITS, i64 State.ABSENT seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %leaves, 1), label %end, label %claimed
claimed:  ; a caller is about to release the lock
  %released = call i32 %acquire(ptr %lock, i64 -1, i32 0)
  br label %stay
stay:
  ret i1 0
end:
  ret i1 1
}

; The thread of a worker: it polls for jobs, and then waits for its lock.
define internal void @work(ptr %worker) {
entry:
  %pool = get ptr, %worker[Worker.pool]
  %polls = get i64, %pool[Pool.polls]
  %ends = getelementptr i64, ptr %pool, i64 Pool.ends
  br label %anew
anew:
  br label %poll
poll:
  %i = phi i64 [ 0, %anew ], [ %i1, %again ]
  %state = load atomic i64, ptr %worker acquire, align 8
  br i1 $(icmp ugt i64 %state, State.LAST), label %run, label %idle
run:
  call void @run_job(ptr %worker, i64 %state)
  br label %anew
idle:
  %i1 = add i64 %i, 1
  %is_end = icmp ne i64 $(load atomic i64, ptr %ends acquire, align 8), 0
  br i1 %is_end, label %end, label %more
end:
  %ended = cmpxchg ptr %worker, i64 %state, i64 State.ABSENT seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %ended, 1), label %exit, label %again
more:
  br i1 $(icmp ult i64 %i1, %polls), label %again, label %tired
again:
  PAUSE
  br label %poll
tired:
  br i1 $(call i1 @wait_for_lock(ptr %worker)), label %exit, label %anew
exit:
  ret void
}

; Give a job to a worker without one. The answer is 1 if the worker has the job now, else 0.
define internal i64 @give(ptr %job, ptr %worker, ptr %pool) {
entry:
  %word = ptrtoint ptr %job to i64
  %state = load atomic i64, ptr %worker acquire, align 8
  br i1 $(icmp ult i64 %state, State.WORKS), label %free, label %no
free:
  %given = cmpxchg ptr %worker, i64 %state, i64 %word seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %given, 1), label %wakes, label %no
wakes:
  switch i64 %state, label %yes [i64 State.ABSENT, label %start i64 State.WAITS, label %wake]
wake:
  %release = get ptr, %pool[Pool.release]
  call void %release(ptr $(get ptr, %worker[Worker.lock]))
  br label %yes
start:
  %new = get ptr, %pool[Pool.start_thread]
  %thread = call i64 %new(ptr @work, ptr %worker)
  br i1 $(icmp eq i64 %thread, -1), label %none, label %yes
none:  ; the system has no more threads
  store atomic i64 State.ABSENT, ptr %worker seq_cst, align 8
  br label %no
yes:
  ret i64 1
no:
  ret i64 0
}

; Give a job to as many workers as helpers, and return the number of workers that were asked.
define internal i64 @hand_out(ptr %job, i64 %helpers, ptr %pool) {
entry:
  %workers = getelementptr i64, ptr %pool, i64 Pool.words
  %is_end = icmp ne i64 $(get i64, %pool[Pool.ends]), 0
  %limit = select i1 %is_end, i64 0, i64 %helpers
  %count = get i64, %pool[Pool.workers]
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %ask ]
  %n = phi i64 [ 0, %entry ], [ %n1, %ask ]
  br i1 $(and i1 $(icmp ult i64 %k, %count), $(icmp ult i64 %n, %limit)), label %ask, label %exit
ask:
  %had = atomicrmw add ptr %job, i64 1 seq_cst
  %worker = getelementptr i64, ptr %workers, i64 $(mul i64 %k, Worker.words)
  %part = call ptr @part_of(ptr %job, i64 $(add i64 %n, 1))
  put ptr %worker, %part[JobPart.worker]
  %gives = call i64 @give(ptr %job, ptr %worker, ptr %pool)
  %misses = atomicrmw sub ptr %job, i64 $(sub i64 1, %gives) seq_cst
  %n1 = add i64 %n, %gives
  %k1 = add i64 %k, 1
  br label %next
exit:
  ret i64 %k
}

; Take a job back from those of the first workers that have not begun it.
define internal void @take_back(ptr %job, i64 %count, ptr %pool) {
entry:
  %word = ptrtoint ptr %job to i64
  %workers = getelementptr i64, ptr %pool, i64 Pool.words
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %take ]
  br i1 $(icmp ult i64 %k, %count), label %take, label %exit
take:
  %worker = getelementptr i64, ptr %workers, i64 $(mul i64 %k, Worker.words)
  %takes = cmpxchg ptr %worker, i64 %word, i64 State.POLLS seq_cst seq_cst
  %fewer = zext i1 $(extractvalue {i64, i1} %takes, 1) to i64
  %holders = atomicrmw sub ptr %job, i64 %fewer seq_cst
  %k1 = add i64 %k, 1
  br label %next
exit:
  ret void
}

; Wait until no worker has a job.
define internal void @wait_for_holders(ptr %job, ptr %pool) {
entry:
  %polls = get i64, %pool[Pool.polls]
  %relax = get ptr, %pool[Pool.relax]
  br label %wait
wait:
  %i = phi i64 [ 0, %entry ], [ %i1, %pause ], [ %i1, %yield ]
  %i1 = add i64 %i, 1
  br i1 $(icmp eq i64 $(load atomic i64, ptr %job acquire, align 8), 0), label %exit, label %busy
busy:
  br i1 $(icmp ult i64 %i, %polls), label %pause, label %yield
pause:
  PAUSE
  br label %wait
yield:  ; the processor of a worker may have to run something else
  %unused = call i32 %relax()
  br label %wait
exit:
  ret void
}

; Run a job on this thread and on helpers.
define void @share(ptr %job, i64 %helpers, ptr %pool) {
  %count = call i64 @hand_out(ptr %job, i64 %helpers, ptr %pool)
  call void @ranges(ptr %job, i64 0)
  call void @take_back(ptr %job, i64 %count, ptr %pool)
  call void @wait_for_holders(ptr %job, ptr %pool)
  ret void
}

; Pause some times. The time that this takes says how often a worker polls.
define void @pauses(i64 %count) {
entry:
  br label %pause
pause:
  %i = phi i64 [ 0, %entry ], [ %i1, %pause ]
  PAUSE
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %count), label %pause, label %exit
exit:
  ret void
}
