"""The thresholds of the planner and of machine code: each with its unit and its benchmark.

A benchmark is a module of tests/benchmarks; W1 to W10 are its workloads. Change a figure only
together with a run of its benchmark, interleaved with the figure before.
"""

from __future__ import annotations

from typing import Final

# -- time, estimated

NUMPY_CHEAP: Final = 0.06
"""Nanoseconds an element of a cheap ufunc in a block in the cache: execution, W1, 10,000."""

NUMPY_UFUNC: Final = 0.3
"""Nanoseconds an element of any other ufunc, at least: execution, W2, 10,000."""

NUMPY_OTHER: Final = 1.5
"""Nanoseconds an element of a function that is no ufunc: execution, W5, 10,000."""

NATIVE_BYTE: Final = 0.01
"""Nanoseconds for a byte that a kernel reads or writes: native, W1, 10,000,000."""

NATIVE_LANE_BYTE: Final = 0.0025
"""Nanoseconds of an instruction for a byte of its result: native, W1, 10,000."""

NATIVE_LOOP: Final = 0.5
"""Nanoseconds an element of a loop of NumPy called by a kernel: native, W2, 10,000."""

NATIVE_CONVERSION: Final = 0.04
"""Nanoseconds an element of a conversion or a table: native, W4 and W5, 10,000."""

NATIVE_ROW: Final = 50
"""Nanoseconds for a row of less than a vector: native, the grids."""

NATIVE_ROW_LOOP: Final = 20
"""Nanoseconds for such a row and each function of it that is not cheap: native, the grids."""

# -- blocks

CACHE: Final = 3 << 19
"""Bytes that all slots of a block take, at most: execution, W1 to W6, 10,000,000."""

BLOCK_LEAST: Final = 1 << 14
"""Elements of a block, at least, however many slots it has: execution, W3."""

BLOCK_MOST: Final = 1 << 17
"""Elements of a block, at most: execution, W7, --threads 1 2."""

NATIVE_VECTOR: Final = 32
"""Elements of a vector in machine code, four registers of float32 with AVX2: native, W1."""

NATIVE_BLOCK: Final = 1024
"""Elements of a block in machine code, at most; loops of NumPy and sums read it on the stack:
native, W2 and W7."""

NATIVE_BLOCK_LEAST: Final = 128
"""Elements of such a block, at least; else the region stays in NumPy: native, W2."""

NATIVE_STACK: Final = 80 << 10
"""Bytes of the stack that the values between loops of NumPy take, at most: native, W2."""

BIT_ARITHMETIC: Final = 4096
"""Elements from which on casts by bit arithmetic beat one call of NumPy's own: execution, W4 to
W6, 1,000 and 10,000."""

# -- threads

SECOND_THREAD: Final = 300_000
"""Nanoseconds of work from which on a second thread pays for its start: execution,
--threads 1 2."""

RANGES_PER_THREAD: Final = 8
"""Ranges of a call for each thread, at most, so that a slow one has less: native, --threads 2."""

RANGE: Final = 50_000
"""Nanoseconds that a range takes, at least: native, --threads 2."""

RELEASED_LOCK: Final = 10_000
"""Nanoseconds of a kernel from which on other threads may run Python meanwhile: native, W1, 100."""

# -- when a plan is compiled

STRAIGHT_STEPS: Final = 64
"""Steps up to which a plan of small ones becomes one function of Python: compile, the plan."""

WRITTEN_SYMBOLS: Final = 400
"""Symbols up to which a region becomes source; to compile a line takes as long as 50 calls of it:
compile, the plan."""

COMPILE_COST: Final = 10e6
"""Nanoseconds in NumPy after which a region is compiled, what compiling takes: native, W1."""

COMPILE_COST_INSTRUCTION: Final = 0.5e6
"""Nanoseconds more for each instruction: native, W3."""

INSTRUCTIONS: Final = 1000
"""Instructions of a kernel, at most; other threads wait while LLVM is at work: native, W3."""

LOOK_CALLS: Final = 1024
"""Calls between two looks for machine code, at most: execution, W9 and W10, 0."""

LOOK_TIME: Final = 4e6
"""Nanoseconds in NumPy between two looks, at most: execution, W1, 10,000."""

STEPWISE: Final = 50_000
"""Nanoseconds in NumPy from which on machine code is worth steps, which take any strides: native,
the grids."""

COPIED_INPUTS: Final = 30_000
"""Nanoseconds that it takes to copy inputs so that their rows are long, or more: native, the
grids."""

PERIOD: Final = 1024
"""Elements of a broadcast operand that is copied until it fills a row, at most: native, the
grids."""

# -- what is kept

RECYCLED: Final = 1 << 20
"""Bytes from which on fresh memory, each page of which faults once, costs more than a look for old:
execution, --outputs fresh dropped."""

KEPT_RESULTS: Final = 1 << 28
"""Bytes of results that nobody holds which a program keeps: execution, --outputs dropped."""

KEPT_VIEWS: Final = 1024
"""Ways in which scratch memory of a lane is read that are kept: execution, W10."""

KEPT_WALKS: Final = 8
"""Lanes, or sizes of blocks, for which a long region keeps its calls: compile, the plan."""

KEPT_PLANS: Final = 64
"""Shapes of inputs for which a program keeps a plan: execution, W1, all sizes."""

KEPT_LAYOUTS: Final = 1024
"""Layouts of operands that are kept: native, the grids."""

KEPT_KERNELS: Final = 512
"""Kernels that are kept for those who ask again; one is about 50 KB: native, W1 to W10."""

LINKED_PIECES: Final = 32
"""Pieces of code after which there is a new linker: one keeps 10 KB of each, freed or not: native,
W1 to W10."""

DISK: Final = 256 << 20
"""Bytes of object code on disk, above which the oldest files go: native, W1 to W10."""

DISK_WRITES: Final = 64
"""Files written between two looks at what the disk holds: native, W1 to W10."""

OVERLAP: Final = 10_000
"""Candidates that NumPy tries to find out whether two strided arrays have an element in common:
execution, --outputs out=."""

LLVM_LEVEL: Final = 1
"""LLVM's level of code generation for kernels; 2 and 3 give the same code and take longer: native,
W1 to W10."""
