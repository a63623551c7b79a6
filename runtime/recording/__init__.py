"""Recording of ordinary NumPy programs as graphs, with the source line of every promotion.

A recorded program runs as always, and NumPy computes every value; its arrays and numbers also have
symbols in a graph. Read the files in this order, each group after the one above it.

What the program computes with:

1. `values`: recorded arrays and numbers, and the trace by which a view follows its base;
2. `arrays`: their classes, whose methods are in `numpy_.methods` and `numpy_.python_numbers`;
3. `structured`: the traces of structured arrays.

What keeps the graph:

4. `builder`: appends ops, constants, inputs, notes and opaque steps;
5. `recorder`: finds symbols of operands and wraps results; its parts are `recorder_state` (running
   calls, numbers, memory), `noted_results`, `program_arrays` and `leaving` (values that escape);
6. `sites`: the source line of each symbol;
7. `fallback`: what happens to a call that the recording cannot describe.

How calls of NumPy reach the recorder:

8. by dispatch: `numpy_.ufuncs` with `ufunc_ops`, `numpy_.functions` with `method_ops`, and
   `subscripts` for `x[key]`; `numpy_.dates` and `numpy_.objects` are for these dtypes;
9. by replacement of functions that do not dispatch: `numpy_.stand_ins` says how, then
   `numpy_.creation`, `numpy_.outside_data`, `numpy_.python_functions` and `numpy_.callbacks`;
   `numpy_.interception` puts them in place;
10. by other code of the program itself, for compiled code that reads numbers from memory:
    `numpy_.watched_code`, `numpy_.calls`, whose table says what is called instead, then
    `numpy_.memory_readers`, `numpy_.call_wrappers` and `numpy_.operand_proxies`.

What a run is made of:

11. `recording`: `record`, its result and sessions of many calls; `captured` finds the arrays of the
    program, `results` its outputs, and `flat_code` runs scripts and cells.
"""

from graphir.runtime.recording.builder import Note
from graphir.runtime.recording.recording import Recording, record

__all__ = ["Note", "Recording", "record"]
