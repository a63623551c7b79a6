"""Loops over scalars as machine code: `while_loop`, `scan` and `cond` whose values are 0-d.

A loop becomes one function, with its carries in registers. Its graphs may contain elementwise ops
on single elements, loops and branches of their own, and reads and writes of single elements of
arrays. A write needs no copy: the array is a carry, which the caller copies once, and nothing reads
an older version of it (see `_Memory`).

The function takes an array of 64-bit words: for each operand its value, or the address and the
sizes of an array, and then the addresses of the stacked results of a `scan`. It leaves the carries
in the words of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import PYFUNCTYPE, c_char, c_int64, c_void_p
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.compilation import LOCK, failure_reason, submit
from graphir.runtime.native.probe import engine
from graphir.runtime.native.region_writer import UnsupportedError
from graphir.runtime.native.scalar_loops.graph_writer import LoopArray, Lowered
from graphir.runtime.native.scalar_loops.loop_writer import LoopWriter
from graphir.runtime.program.tier import CompileBudget
from graphir.semantics.evaluation import contiguous

if TYPE_CHECKING:
    from graphir.runtime.program.program import Program

Operands: TypeAlias = Sequence[Any]

_END, _REFUSAL = 0, 1
_WORD = 8

_TEXT = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()
define internal void @resume(ptr %thread) {{
entry:
  %state = load ptr, ptr %thread, align 8
  br i1 $(icmp eq ptr %state, null), label %exit, label %take
take:
  call void @PyEval_RestoreThread(ptr %state)
  br label %exit
exit:
  ret void
}}
define internal i1 @poll(ptr %thread) {{
  call void @resume(ptr %thread)
  %signal = call i32 @PyErr_CheckSignals()
  %state = call ptr @PyEval_SaveThread()
  store ptr %state, ptr %thread, align 8
  ret i1 $(icmp ne i32 %signal, 0)
}}
define i64 @loop(ptr %state, ptr %context) "probe-stack"="inline-asm" {{
entry:
  %operands = alloca [8 x ptr], align 16
  %sizes = alloca [8 x i64], align 16
  %values = alloca [8 x i64], align 16
  %length = alloca i64, align 8
  %thread = alloca ptr, align 8
  store ptr null, ptr %thread, align 8
{body}
  call void @resume(ptr %thread)
  ret i64 {end}
refused:
  call void @resume(ptr %thread)
  ret i64 {refusal}
}}"""
"""The function of a loop. A loop that takes long releases the interpreter lock for good: to release
it for a moment, again and again, would wake waiting threads too late. A signal handler that raises
ends the loop: the caller, which holds the lock, raises its exception."""


class ScalarLoop:
    """An op of control flow as machine code, compiled once it pays.

    `why` is the reason if there is no such code, else "". With `now` the first call compiles it.
    """

    def __init__(self, symbol: Symbol, program: Program, now: bool) -> None:
        self._symbol, self._program, self._now = symbol, program, now
        self.why = "" if all(_is_word(type_) for type_ in symbol.type.parts) else "rows"
        self._budget, self._instructions = CompileBudget(), 0
        self.code: Any = None
        self._call: Callable[[Any, Any], int] | None = None
        self.context: Any = None

    def charge(self, time: float) -> None:
        """Charge nanoseconds that Python has spent on the loop."""
        self._budget.charge(time)

    @property
    def _is_earned(self) -> bool:
        """Whether Python has spent more time on the loop than a compilation takes, as now known."""
        return self._budget.covers(lambda: self._instructions)

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code; a loop that has earned it is compiled in the background.

        With `now`, the loop is compiled at once.
        """
        if self._call is None and not self.why and (self._now or self._is_earned):
            if self._now:
                self._compile()
            else:
                submit(self._compile)
        return self._call is not None

    @property
    def status(self) -> str:
        """What runs the loop, as text."""
        if self._call is not None:
            return "the whole loop is machine code"
        if self.why:
            return f"the loop stays in Python: {self.why}"
        return "the loop is in Python until machine code pays"

    def _compile(self) -> None:
        with LOCK:
            if self._call is not None or self.why:
                return
            try:
                text, addresses, self._instructions = self._write()
                if not (self._now or self._is_earned):
                    return
                code = engine().CompiledCode(text, "loop")
            except UnsupportedError as error:
                self.why = f"no machine code for {error}"
                return
            except Exception as error:  # any failure of LLVM: Python is the fallback
                self.why = failure_reason(error)
                return
            self.code = code
            self.context = (c_void_p * max(1, len(addresses)))(*addresses)
            self._call = PYFUNCTYPE(c_int64, c_void_p, c_void_p)(code.address)

    def _write(self) -> tuple[str, Sequence[int], int]:
        """Return the module, the addresses that its context has, and the number of instructions."""
        symbol, features = self._symbol, engine().processor().features
        graphs = LoopWriter(_lowered_by(self._program), features)
        text, place = graphs.text, 0
        operands: list[Any] = []
        for arg in symbol.args:
            operands.append(graphs.operand(arg, place))
            place += 1 + arg.rank
        count = len(symbol.type.parts)
        if symbol.op is ops.control.scan:
            carries: int = symbol.attrs["carries"]
            outs = [text.op(f"get ptr, %state[{place + k}]") for k in range(count - carries)]
            length = f"{text.op(f'get i64, %state[{place + len(outs)}]')}"
            results = graphs.scan(symbol, operands, outs, length)
        elif symbol.op is ops.control.while_loop:
            results = graphs.while_loop(symbol, operands)
        else:
            raise UnsupportedError("a branch outside of loops")
        place = 0
        for arg, result in zip(symbol.args, results, strict=False):
            if not isinstance(result, LoopArray):
                text.lines.append(f"put {result}, %state[{place}]")
            place += 1 + arg.rank
        body = _TEXT.format(body="\n".join(text.lines), end=_END, refusal=_REFUSAL)
        return words_of(body), [*text.context], len(text.lines)

    def run(self, operands: Operands, length: int | None) -> list[Any] | None:
        """Return the results for operands, the carries as NumPy scalars or arrays of their own.

        `length` is the number of rows of a `scan`. The answer is None if the loop reads beyond an
        array: Python then raises the error.
        """
        assert self._call
        symbol = self._symbol
        parts: Sequence[TensorType] = symbol.type.parts
        carries: int = symbol.attrs.get("carries", len(parts))
        values = [
            np.array(x, order="C") if k < carries and np.ndim(x) else contiguous(np.asarray(x))
            for k, x in enumerate(operands)
        ]
        words = bytearray()
        places: list[int] = []
        for x in values:
            places.append(len(words))
            words += _words(x)
        outs = [np.empty(length or 0, part.dtype.storage) for part in parts[carries:]]
        for out in outs:
            words += _words(out)[:_WORD]
        words += (length or 0).to_bytes(_WORD, "little")
        state = (c_char * len(words)).from_buffer(words)
        if self._call(state, self.context) == _REFUSAL:
            return None
        results = [
            x if x.ndim else np.frombuffer(words, x.dtype, 1, place)[0].copy()
            for x, place in zip(values[:carries], places, strict=False)
        ]
        return results + outs


def _words(x: np.ndarray[Any, Any]) -> bytes:
    """Return the words of an operand: its value, or its address and its sizes."""
    if not x.ndim:
        return x.tobytes().ljust(_WORD, b"\0")
    return np.array([x.ctypes.data, *x.shape], np.int64).tobytes()


def _is_word(type_: Any) -> bool:
    """Whether a result fits a word, or is an array of such elements."""
    return type(type_) is TensorType and not type_.dtype.is_complex


def _lowered_by(program: Program) -> Lowered:
    """Return the function that maps a graph of control flow to its lowered form.

    Its second result is the same function for the graphs inside.
    """

    def lowered(graph: Graph) -> tuple[Graph, Any]:
        body = program.body_program(graph)
        return body.lowered, _lowered_by(body)

    return lowered
