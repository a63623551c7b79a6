"""The thresholds of the planner and of machine code, each with its unit and its benchmark.

Modules read a threshold where they use it, as `COST.CACHE`, and keep no copy of it from their
import: tests can then change all thresholds at once. A threshold of size is a number of elements,
bytes, terms or nanoseconds.

A benchmark is a module of tests/benchmarks, followed by its workloads (W1 to W10) and, as a
number, the elements of a workload. Change a figure only together with a run of its benchmark that
interleaves the old and the new figure.
"""

from __future__ import annotations

from typing import Final, TypeAlias

# -- facts of machine code, of the processor and of the disk, which no path starts or ends at

NATIVE_VECTOR: Final = 32
"""Elements of a vector in machine code, which are four AVX2 registers of float32: native, W1."""

NATIVE_SIDE: Final = 4
"""Rows side by side in machine code that reduces rows; a vector has eight lanes of each, which is
how NumPy adds: whole_programs, layer_norm and rms_norm."""

NATIVE_BLOCK_LEAST: Final = 128
"""The least elements of a block in machine code, whose sum NumPy does not halve again; a region
that needs smaller ones stays in NumPy: native, W2."""

NATIVE_STACK: Final = 80 << 10
"""The most bytes of stack for values between NumPy's inner loops: native, W2."""

LINE: Final = 64
"""The bytes of a line of the cache, and of a vector: native, --threads 2."""

PAGE: Final = 4096
"""The bytes between what two threads write, since a core fetches lines ahead within a page: native,
--threads 2."""

POLL_SECONDS: Final = 50e-6
"""Seconds for which a worker of machine code polls for a job: whole_programs, relu_layers."""

WAIT_MICROSECONDS: Final = 20_000
"""Microseconds for which it waits after that, before its thread ends: whole_programs, relu_layers.
"""

WORKERS: Final = 63
"""The largest number of workers of a process, one less than the threads of a machine of 64 cores:
native, --threads 2."""

STRIDE_KINDS: Final = {1: range(-8, 9), 2: range(-8, 9), 4: range(-4, 5)}
"""The strides in elements for which machine code is specialized, by the bytes of an element:
native, the grids.

For 30,000 elements, a sum with a strided operand takes by shuffles, and by loads of each element:
1.0 and 4.8 microseconds (uint8, stride 3), 1.5 and 4.9 (uint8, stride 8), 1.5 and 5.0 (int16,
stride 3), 2.9 and 5.5 (int16, stride 8), 3.0 and 4.6 (float32, stride 3), 4.1 and 5.1 (float32,
stride 4). Above that, and for float64 from stride 3 on, shuffles save nothing.
"""

OTHER_STRIDE_KINDS: Final = range(-1, 3)
"""The same for elements of other sizes: native, the grids."""

KEPT_LAYOUTS: Final = 1024
"""The most layouts of operands in the cache: native, the grids."""

LINKED_PIECES: Final = 32
"""Pieces of code after which a new linker replaces the old one. A linker keeps 10 KB of each piece,
even of freed ones: native, W1 to W10."""

DISK: Final = 256 << 20
"""Bytes of object code on disk above which the cache deletes its oldest files: native, W1 to W10.
"""

DISK_WRITES: Final = 64
"""Files that a process writes between two checks of the cache's size: native, W1 to W10."""

LLVM_LEVEL: Final = 1
"""LLVM's level of code generation for kernels; levels 2 and 3 emit the same code and take longer:
native, W1 to W10."""

Elements: TypeAlias = int
Bytes: TypeAlias = int
Terms: TypeAlias = int
"""Multiplications of a product."""

Nanoseconds: TypeAlias = float
Count: TypeAlias = int
"""A number of steps, calls, symbols, instructions or kept objects."""

Rate: TypeAlias = float
"""A time or a size for each element, or a ratio of two sizes."""


class CostModel:
    """The thresholds; the annotation of each one is its unit."""

    # -- estimated times

    NUMPY_CHEAP: Rate = 0.06
    """Nanoseconds per element of a cheap ufunc on a block in the cache: execution, W1, 10,000."""

    NUMPY_UFUNC: Rate = 0.3
    """The least nanoseconds per element of any other ufunc: execution, W2, 10,000."""

    NUMPY_OTHER: Rate = 1.5
    """Nanoseconds per element of a function that is not a ufunc: execution, W5, 10,000."""

    NUMPY_SORT: Rate = 1.5
    """The least nanoseconds per element of a sort of rows: kernels, sorts."""

    NATIVE_BYTE: Rate = 0.01
    """Nanoseconds per byte that a kernel reads or writes: native, W1, 10,000,000."""

    NATIVE_LANE_BYTE: Rate = 0.0025
    """Nanoseconds of an instruction per byte of its result: native, W1, 10,000."""

    NATIVE_LOOP: Rate = 0.5
    """Nanoseconds per element of a NumPy inner loop that a kernel calls, or of exp and log in
    vector code: native, W2, 10,000."""

    NATIVE_CONVERSION: Rate = 0.04
    """Nanoseconds per element of a conversion or a table lookup: native, W4 and W5, 10,000."""

    NATIVE_ROW: Rate = 50
    """Nanoseconds per row that is shorter than a vector: native, the grids."""

    NATIVE_ROW_LOOP: Rate = 20
    """Nanoseconds per row shorter than a vector, for each function that is not cheap: native, the
    grids."""

    PRODUCT_TERM: Rate = 0.01
    """Nanoseconds per term of a product of integers in machine code: kernels, products."""

    PYTHON_STEP: Rate = 2000
    """Nanoseconds that the Python function of a plan takes for a small step: calls, softmax."""

    NUMPY_CALL: Rate = 300
    """Nanoseconds that Python takes for the call of a ufunc: execution, W10, 1,000."""

    NUMPY_TERM: Rate = 0.05
    """Nanoseconds per term of a small product of floats by BLAS: calls, products."""

    BLAS_TERM: Rate = 0.005
    """Nanoseconds per multiplication in a product by BLAS on one core, and per byte of an element:
    whole_programs, attention."""

    BLAS_THREADS: Terms = 1 << 19
    """The most multiplications of a product that OpenBLAS computes on one thread: whole_programs,
    attention."""

    BLAS_VECTOR_THREADS: Terms = 9216
    """The most multiplications of a matrix with a vector that OpenBLAS computes on one thread:
    whole_programs, tone_curve."""

    PANEL_LEAST: Terms = 1 << 23
    """The least multiplications of a matrix that pay for threads of machine code in place of
    BLAS's, whose call costs 15 microseconds less: whole_programs, relu_layers."""

    PANEL_MOST: Terms = 1 << 30
    """The multiplications from which the threads of BLAS cost nothing: whole_programs,
    relu_layers."""

    PANEL_ROWS: Rate = 2
    """How many columns for each row such a product has at most if threads share its rows, and not
    its columns: whole_programs, relu_layers."""

    COLUMN_BYTE: Rate = 0.05
    """Nanoseconds per byte of a reduction of outer axes in machine code: whole_programs,
    standardized_columns."""

    ACCUMULATION_STEP: Rate = 0.2
    """Nanoseconds per element of a cumulative sum or product in machine code, of many lines:
    thresholds."""

    COLUMN_ELEMENTS: Elements = 1 << 14
    """The least elements of a reduction of outer axes in machine code of its own, since its call
    costs 10 microseconds more than NumPy's: whole_programs, column_moments."""

    COLUMN_BLOCK: Bytes = 1 << 15
    """The most bytes of scratch memory of a block of rows whose columns machine code reduces:
    thresholds."""

    # -- blocks

    BATCH: Bytes = 12 << 20
    """The bytes of the values between the products of a batch from which one thread computes a few
    matrices at a time: whole_programs, tone_curve."""

    BATCH_ROWS: Bytes = 1 << 17
    """The most bytes of the values of small matrices that machine code computes before the next:
    whole_programs, tone_curve."""

    CACHE: Bytes = 3 << 19
    """The most bytes that all slots of a block take together: execution, W1 to W6, 10,000,000."""

    NATIVE_ROWS: Bytes = 1 << 14
    """The most bytes of a block of rows in machine code, over all of its phases, which the inner
    cache holds: whole_programs, layer_norm and softmax."""

    NATIVE_LONG_ROWS: Bytes = 1 << 19
    """The same if one row takes more than NATIVE_ROWS: whole_programs, rms_norm."""

    NATIVE_WINDOWS: Bytes = 3 << 18
    """The most bytes of a block of rows over all stages of a wavefront in machine code, with the
    rows that the next block reads again: whole_programs, blur_steps and heat_steps."""

    COPIED: Rate = 4
    """The most bytes that a wavefront copies because of updates, for each byte of a region's
    results: whole_programs, heat_steps."""

    WAVEFRONT_SEEDS: Count = 16
    """The most regions of a plan that are tried as the first one of a wavefront: updates,
    thomas_rows."""

    HALO: Rate = 0.04
    """The elements that the ranges of a wavefront compute again, as a part of all elements, below
    which a thread gets several ranges: whole_programs, heat_steps."""

    MOST_HALO: Rate = 0.3
    """The same, below which a second thread pays: whole_programs, heat_steps."""

    BLOCK_LEAST: Elements = 1 << 14
    """The least elements of a block, for any number of slots: execution, W3."""

    BLOCK_MOST: Elements = 1 << 17
    """The most elements of a block: execution, W7, --threads 1 2."""

    ONE_BLOCK: Nanoseconds = 40_000
    """Nanoseconds of work below which a region of at most BLOCK_MOST elements is one block, since
    the steps between blocks cost more than memory outside of the inner cache: updates,
    jacobi_1d."""

    NATIVE_BLOCK: Elements = 1024
    """The most elements of a block in machine code, which lies on the stack for NumPy's inner loops
    and for sums: native, W2 and W7."""

    BIT_ARITHMETIC: Elements = 4096
    """Elements above which casts by bit arithmetic are faster than one call of NumPy's own cast:
    execution, W4 to W6, 1,000 and 10,000."""

    ROW_START: Rate = 40
    """Elements that take as long as the start of a row in NumPy's loops: updates, heat_3d."""

    # -- threads

    SECOND_THREAD: Nanoseconds = 300_000
    """Nanoseconds of work above which a second thread pays for its start: execution, --threads 1
    2."""

    NATIVE_SECOND_THREAD: Nanoseconds = 50_000
    """The same in machine code, whose threads wait for work a while: native, --threads 2."""

    AWAKE_THREAD: Nanoseconds = 10_000
    """The same if the threads have just worked on other steps of a sequence: whole_programs,
    relu_layers."""

    RANGES_PER_THREAD: Count = 8
    """The most ranges per thread of a call; several ranges let a slow thread take fewer: native,
    --threads 2."""

    RANGE: Nanoseconds = 50_000
    """The least nanoseconds of work of a range: native, --threads 2."""

    SHARED_RANGE: Nanoseconds = 10_000
    """The same if machine code hands out the ranges: whole_programs, adam_step."""

    RELEASED_LOCK: Nanoseconds = 10_000
    """Nanoseconds of a kernel call above which it releases the interpreter lock: native, W1,
    100."""

    SEQUENCE_SCRATCH: Bytes = 64 << 10
    """The most bytes of scratch memory of a sequence, which lies on the stack: calls, layers."""

    SEQUENCE_MOVES: Elements = 1 << 10
    """The most elements that a sequence moves by a table of places: whole_programs, --small."""

    # -- when a plan is compiled

    STRAIGHT_STEPS: Count = 1 << 15
    """The most small steps that a plan joins into one Python function. A step takes less time to
    compile in one function than in a function of its own: updates, thomas."""

    HOISTED: Elements = 1 << 18
    """The most elements of ranges that a program keeps from planning, and of each value that
    follows from them: updates, cyclic_reduction."""

    HOISTED_GROWTH: Rate = 8
    """The most bytes of a value that follows from constants alone, for each byte of its operands,
    that a program keeps from planning: thresholds. A cast of int8 to float64 has eight."""

    HOISTED_BYTES: Bytes = 1 << 28
    """The most bytes of all these values, such as weights that a model has quantized; memory that
    a call would read anyway: thresholds."""

    COPIED_RUNS: Count = 16
    """The most runs of rows of which the copy of an updated array is made: updates, thomas_rows."""

    FREED: Elements = 512
    """The least elements of a value that a Python function of many steps frees after its last use,
    so that later values take memory in the cache: updates, jacobi_1d."""

    SCALAR_KERNELS: Count = 64
    """The most steps of a plan whose regions of 0-d values become machine code. In longer plans a
    call of a kernel costs more than the Python expressions: updates, thomas."""

    SCALARS: Count = 8
    """The fewest 0-d values of a region that become machine code in such a plan too, since the
    scale and the zero point of a dynamic quantization are twelve: thresholds."""

    SCALAR_BODY: Count = 16
    """The fewest 0-d values of a region in a graph of control flow that become machine code. The
    Python expressions of fewer cost less than a call of a kernel with its 0-d arrays:
    control_flow."""

    LOOP_STEPS: Count = 1 << 16
    """Steps of loops over scalars in machine code between two looks for signals: control_flow."""

    INLINED_LINES: Count = 200
    """The most statements of the bodies of a loop that becomes one Python function:
    control_flow."""

    LOOP_LOOK: Count = 256
    """Iterations of a loop in Python between two looks for machine code: control_flow."""

    IMPORT_COST: Nanoseconds = 2e6
    """Nanoseconds in NumPy after which a program imports the modules that write machine code; in a
    new process the import takes ten milliseconds: calls, fresh."""

    COMPILE_COST: Nanoseconds = 10e6
    """Nanoseconds in NumPy after which the tier compiles a region, since the compilation takes as
    long: native, W1."""

    COMPILE_COST_INSTRUCTION: Nanoseconds = 0.5e6
    """Nanoseconds that each instruction adds to COMPILE_COST: native, W3."""

    INSTRUCTIONS: Count = 1000
    """The most instructions of a kernel; other threads wait while LLVM compiles it: native, W3."""

    LONG_FUNCTION: Count = 20
    """The steps of a function above which a look-up in a table takes less time: native, W2 in
    bfloat16."""

    LOOK_CALLS: Count = 1024
    """The most calls between two looks for machine code: execution, W9 and W10, 0."""

    LOOK_STEPS: Count = 16
    """The calls between the first two looks for machine code of a plan of large steps, which have
    machine code of their own: whole_programs, blur_steps."""

    LOOK_TIME: Nanoseconds = 4e6
    """The most nanoseconds in NumPy between two looks for machine code: execution, W1, 10,000."""

    LOOK_REGION: Nanoseconds = 20_000
    """Nanoseconds in NumPy, for each region, between two looks for machine code: updates,
    eliminate."""

    FIRST_LOOKS: Count = 2
    """The looks of a plan after which its price is the least of two calls at least: thresholds."""

    SEQUENCE_TRIES: Count = 200
    """The looks for a sequence of regions that have earned machine code, by which the background
    has usually compiled their kernels: thresholds."""

    RARE_TRIES: Count = 32
    """How many looks after those there is another one: thresholds."""

    STEPWISE: Nanoseconds = 50_000
    """Nanoseconds of a call in NumPy above which machine code pays even step by step; steps take
    any strides: native, the grids."""

    STEPWISE_CALLS: Count = 4
    """The calls step by step after which the least time of one counts, not an estimate:
    thresholds."""

    STEP: Nanoseconds = 20_000
    """Nanoseconds that each further step costs when a plan runs step by step: updates,
    jacobi_1d."""

    COPIED_INPUTS: Nanoseconds = 30_000
    """Nanoseconds of overhead of short rows above which a kernel reads copies of its inputs, whose
    rows are long; the copies take at most as long: native, the grids."""

    SMALL_INPUT: Rate = 16
    """Elements of a region for each element of a strided input, from which a copy of the input
    pays: whole_programs, squared_distances."""

    PERIOD: Elements = 1024
    """The most elements of a broadcast operand that is copied repeatedly until it fills a row:
    native, the grids."""

    SLICED_ELEMENTS: Elements = 1 << 11
    """The least elements of a value whose slices are computed from slices of its operands:
    thresholds. NumPy takes a fraction of a microsecond for each slice of an operand, and as much
    for a smaller value: without the threshold, 64 elements take 1.26 of the time, 1,024 take
    1.07."""

    SLICED_LOADS: Rate = 2
    """The most bytes of operands for a byte of such a value if its slices are strided: thresholds.
    With two float32 operands of points in a plane, slices of operands take 0.7 to 1.1 of the time
    that slices of the result take; with four, 1.0 to 1.5."""

    OVERLAPPING_CASTS: Count = 9
    """The most slices that hold an element of an array that is cast to a wider dtype, if each slice
    is cast by itself: thresholds. Blurs of 3, 5 and 9 neighbours in 1,024 by 1,024 uint8 as float32
    then take 0.61, 0.71 and 0.99 of the time that they take from one cast, and 0.5 for 2,048 by
    2,048."""

    SHORT_AXIS: Count = 8
    """The most elements of a last axis that becomes part of a row in machine code although operands
    are broadcast along it; each of the elements takes a shuffle of a vector: whole_programs,
    tone_curve."""

    SPLIT_ROWS: Elements = 1024
    """The fewest rows of nine to 32 elements whose reduction is taken apart, since each element is
    an operand of its own: whole_programs, --small."""

    SPLIT_INSTRUCTIONS: Count = 400
    """The most elements of such rows in all symbols of a graph; each becomes an instruction, which
    takes half a millisecond to compile: whole_programs, squared_distances."""

    # -- sizes of caches and pools

    RECYCLED: Bytes = 1 << 20
    """The least bytes of a result whose memory is recycled. Each page of fresh memory faults once,
    which costs more than a search for old memory: execution, --outputs fresh dropped."""

    KEPT_RESULTS: Bytes = 1 << 28
    """The most bytes of unreferenced results that a program keeps: execution, --outputs dropped."""

    UNFIT_RESULTS: Count = 8
    """How often free memory is kept although another size is asked for: a program has results and
    scratch memory of several sizes in turn: whole_programs, relu_layers."""

    KEPT_VIEWS: Count = 1024
    """The most needs for which a workspace keeps views of its scratch memory: execution, W10."""

    KEPT_WALKS: Count = 8
    """The most layouts of operands for which a fused step keeps its machine code: compile, the
    plan."""

    KEPT_PLANS: Count = 64
    """The most sets of input shapes for which a program keeps a plan: execution, W1, all sizes."""

    KEPT_KERNELS: Count = 512
    """The most kernels that the cache keeps, beside those of live programs; a kernel takes about
    50 KB: native, W1 to W10."""

    OVERLAP: Count = 10_000
    """The most candidate solutions that NumPy tries in order to decide whether two strided arrays
    share an element: execution, --outputs out=."""


COST = CostModel()
"""The thresholds in use."""
