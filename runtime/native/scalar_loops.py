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

from collections.abc import Callable, Collection, Sequence
from ctypes import PYFUNCTYPE, c_char, c_int64, c_void_p
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphir.passes.rewriter import bodies_of
from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.native.assembly import VectorWriter, lane, splat, stored_type, words_of
from graphir.runtime.native.compilation import LOCK, failure_reason, submit
from graphir.runtime.native.emitters import LlvmValue
from graphir.runtime.native.probe import engine
from graphir.runtime.native.region_writer import UnsupportedError
from graphir.runtime.native.scalar_graphs import (
    GraphWriter,
    LastStore,
    LoopArray,
    LoopMemory,
    Lowered,
    Value,
    storage_of,
)
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST
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


# -- code generation: basic blocks, loops and branches


class LoopWriter:
    """The writer of the code of loops, and of the graphs in them.

    The carries of a loop are in registers. A loop looks for signals every LOOP_STEPS turns, its own
    and those of the loops in it.
    """

    def __init__(self, lowered: Lowered, features: Collection[str]) -> None:
        self.lowered, self.text = lowered, VectorWriter(1, features)
        self.memories: list[LoopMemory] = []
        self.left = f"{COST.LOOP_STEPS}"
        self._labels = 0

    # -- basic blocks

    @property
    def block(self) -> str:
        """The label of the current basic block; an emitter may have begun blocks too."""
        for text in reversed(self.text.lines):
            for line in reversed(text.split("\n")):
                if line.endswith(":"):
                    return line[:-1]
        return "entry"

    def label(self, name: str) -> str:
        """Return a new label."""
        self._labels += 1
        return f"{name}_{self._labels}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.text.lines.append(f"{label}:")

    def branch(self, label: str) -> None:
        """Go to a block, and begin it."""
        self.text.lines.append(f"br label %{label}")
        self.start(label)

    def require(self, condition: str) -> None:
        """Leave the function unless an i1 holds."""
        within = self.label("within")
        self.text.lines.append(f"br i1 {condition}, label %{within}, label %refused")
        self.start(within)

    # -- values

    def operand(self, symbol: Symbol, place: int) -> Value:
        """Return an operand of the function, in its words from a number on."""
        dtype, text = storage_of(symbol), self.text
        if not symbol.rank:
            name = text.op(f"get {text.of(lane(stored_type(dtype)))}, %state[{place}]")
            return LlvmValue(text, name, stored_type(dtype))
        address = text.op(f"get ptr, %state[{place}]")
        sizes = [text.op(f"get i64, %state[{place + 1 + k}]") for k in range(symbol.rank)]
        return self.array(dtype, address, sizes)

    def array(self, dtype: Storage, address: str, sizes: Sequence[str]) -> LoopArray:
        """Return an array in C order in memory of its own."""
        strides: list[str] = [f"{dtype.itemsize}"]
        for size in reversed(sizes[1:]):
            strides.insert(0, self.text.op(f"mul i64 {strides[0]}, {size}"))
        self.memories.append(memory := LoopMemory())
        return LoopArray(memory, 0, dtype, address, tuple(sizes), tuple(strides), None, True)

    def load(self, dtype: Storage, address: str) -> LlvmValue:
        """Return an element in memory."""
        element = self.text.of(lane(stored_type(dtype)))
        name = self.text.op(f"load {element}, ptr {address}, align 1")
        return LlvmValue(self.text, name, stored_type(dtype))

    def read(self, array: LoopArray, address: str) -> LlvmValue:
        """Return an element of an array; the last one that was written is in a register.

        A processor predicts this branch, and so does not wait for the value to pass through memory.
        """
        last, text = array.memory.last, self.text
        if last is None:
            return self.load(array.dtype, address)
        before, elsewhere, after = self.block, self.label("elsewhere"), self.label("after")
        is_last = text.op(f"icmp eq ptr {address}, {last.address}")
        text.lines.append(f"br i1 {is_last}, label %{after}, label %{elsewhere}")
        self.start(elsewhere)
        value = self.load(array.dtype, address)
        self.branch(after)
        sources = f"[ {last.value.name}, %{before} ], [ {value.name}, %{elsewhere} ]"
        name = text.op(f"phi {value.type} {sources}")
        return LlvmValue(text, name, value.dtype)

    def integer(self, value: LlvmValue) -> str:
        """Return an integer or a truth value as an i64."""
        name = self.text.op(f"extractelement {value}, i64 0")
        if value.dtype.itemsize == 8:
            return name
        kind = "sext" if value.dtype.kind == "i" else "zext"
        return self.text.op(f"{kind} {value.lane} {name} to i64")

    # -- loops and branches

    def graph(self, graph: Graph, lowered: Lowered, arguments: Sequence[Value]) -> list[Value]:
        """Write a lowered graph, and return its outputs."""
        return GraphWriter(self, graph, lowered).outputs(arguments)

    def body(self, lowered: Lowered, graph: Graph, arguments: Sequence[Value]) -> list[Value]:
        """Write a graph of control flow."""
        return self.graph(*lowered(graph), arguments)

    def while_loop(
        self, symbol: Symbol, operands: Sequence[Value], lowered: Lowered | None = None
    ) -> list[Value]:
        """Write a `while_loop`, and return its results."""
        lowered = lowered or self.lowered
        condition, body = bodies_of(symbol)
        count = len(symbol.type.parts)
        loop = _Loop(self, operands[:count], _writes(body))
        values = [*loop.carries, *operands[count:]]
        (verdict,) = self.body(lowered, condition, values)
        if loop.has_writes:
            raise UnsupportedError("a condition that writes")
        assert isinstance(verdict, LlvmValue)
        go = self.text.op(f"extractelement {verdict.view(np.bool_)}, i64 0")
        loop.enter(go)
        loop.close(self.body(lowered, body, values))
        return [*loop.carries]

    def scan(
        self,
        symbol: Symbol,
        operands: Sequence[Value],
        outs: Sequence[str],
        length: str,
        lowered: Lowered | None = None,
    ) -> list[Value]:
        """Write a `scan`, and return its carries; the results go to the addresses `outs`."""
        lowered, text = lowered or self.lowered, self.text
        (body,) = bodies_of(symbol)
        carries: int = symbol.attrs["carries"]
        end = carries + symbol.attrs["scanned"]
        index = LlvmValue(text, splat(0, np.dtype(np.int64)), np.int64)
        loop = _Loop(self, [index, *operands[:carries]], _writes(body))
        number = text.op(f"extractelement {loop.carries[0]}, i64 0")
        loop.enter(text.op(f"icmp slt i64 {number}, {length}"))
        place = number
        if symbol.attrs["reverse"]:
            place = text.op(f"sub i64 $(sub i64 {length}, 1), {number}")
        rows: list[Value] = []
        for x in operands[carries:end]:
            if not isinstance(x, LoopArray) or len(x.sizes) != 1 or x.version != x.memory.version:
                raise UnsupportedError("a scan of rows")
            rows.append(self.load(x.dtype, self.element(x, place)))
        results = self.body(lowered, body, [*loop.carries[1:], *rows, *operands[end:]])
        for out, y in zip(outs, results[carries:], strict=True):
            if not isinstance(y, LlvmValue):
                raise UnsupportedError("a scan of rows")
            at = f"$(getelementptr {y.type}, ptr {out}, i64 {place})"
            text.lines.append(f"store {y}, ptr {at}, align 1")
        following = text.op(f"add {loop.carries[0]}, splat (i64 1)")
        loop.close([LlvmValue(text, following, np.int64), *results[:carries]])
        return [*loop.carries[1:]]

    def element(self, array: LoopArray, place: str, axis: int = 0) -> str:
        """Return the address of an element, or of a row, at a place along an axis."""
        offset = f"$(mul i64 {place}, {array.strides[axis]})"
        return self.text.op(f"getelementptr i8, ptr {array.address}, i64 {offset}")

    def cond(self, symbol: Symbol, operands: Sequence[Value], lowered: Lowered) -> list[Value]:
        """Write a `cond`, and return its results."""
        text, (choice, *arguments) = self.text, operands
        assert isinstance(choice, LlvmValue)
        branches = bodies_of(symbol)
        versions = [memory.version for memory in self.memories]
        index = self.integer(choice)
        signed = choice.dtype.kind == "i"
        if signed:
            index = text.op(f"call i64 @llvm.smax(i64 {index}, i64 0)")
        after, left = self.label("after"), self.left
        labels = [self.label("branch") for _ in branches]
        cases = " ".join([f"i64 {k}, label %{label}" for k, label in enumerate(labels[:-1])])
        text.lines.append(f"switch i64 {index}, label %{labels[-1]} [ {cases} ]")
        ends: list[tuple[str, str, list[Value]]] = []
        for label, branch in zip(labels, branches, strict=True):
            self.start(label)
            self.left = left
            results = self.body(lowered, branch, arguments)
            ends.append((self.block, self.left, results))
            text.lines.append(f"br label %{after}")
        self.start(after)
        if versions != [memory.version for memory in self.memories[: len(versions)]]:
            raise UnsupportedError("a branch that writes")
        sources = [f"[ {left}, %{label} ]" for label, left, _ in ends]
        self.left = text.op(f"phi i64 {', '.join(sources)}")
        return [
            self._merge_branches([(label, results[k]) for label, _, results in ends])
            for k in range(len(symbol.type.parts))
        ]

    def _merge_branches(self, values: Sequence[tuple[str, Value]]) -> Value:
        (_, first), *_ = values
        if isinstance(first, LoopArray) and all(
            isinstance(value, LoopArray) and value == first for _, value in values
        ):
            return first
        sources: list[str] = []
        for label, value in values:
            if not isinstance(value, LlvmValue):
                raise UnsupportedError("a choice of arrays")
            sources.append(f"[ {value.name}, %{label} ]")
        assert isinstance(first, LlvmValue)
        name = self.text.op(f"phi {first.type} {', '.join(sources)}")
        return LlvmValue(self.text, name, first.dtype)


def _writes(graph: Graph) -> bool:
    """Whether a graph, or a graph in it, writes an element of an array."""
    return any(
        symbol.op in (ops.index_update, ops.slice_update) or any(map(_writes, bodies_of(symbol)))
        for symbol in graph.symbols
    )


class _Loop:
    """A loop whose head is written: `carries` are the values there, also those after the loop."""

    def __init__(self, graphs: LoopWriter, initial: Sequence[Value], writes: bool) -> None:
        self.graphs, self.initial = graphs, initial
        text, before = graphs.text, graphs.block
        self._head, self._after = graphs.label("head"), graphs.label("after")
        graphs.branch(self._head)
        self._first = len(text.lines)
        self.carries: list[Value] = []
        for value in initial:
            if isinstance(value, LlvmValue):
                name = text.op(f"phi {value.type} [ {value.name}, %{before} ]")
                self.carries.append(LlvmValue(text, name, value.dtype))
            elif isinstance(value, LoopArray) and value.version == value.memory.version:
                self.carries.append(value)
            else:
                raise UnsupportedError("an older version of an array")
        arrays = [value for value in initial if isinstance(value, LoopArray)]
        self._stores = [self._last_store(array, before) for array in arrays if writes]
        self._left = text.op(f"phi i64 [ {graphs.left}, %{before} ]")
        graphs.left = self._left
        self._versions = [memory.version for memory in graphs.memories]

    def _last_store(self, array: LoopArray, before: str) -> tuple[LoopMemory, LastStore]:
        """Write the last store to an array at the head, and return it with the memory."""
        text, memory, dtype = self.graphs.text, array.memory, stored_type(array.dtype)
        none = LlvmValue(text, "zeroinitializer", dtype)
        address, value = memory.last or LastStore("null", none)
        address = text.op(f"phi ptr [ {address}, %{before} ]")
        name = text.op(f"phi {value.type} [ {value.name}, %{before} ]")
        memory.last = LastStore(address, LlvmValue(text, name, dtype))
        return memory, memory.last

    @property
    def has_writes(self) -> bool:
        """Whether a write came after the head."""
        memories = self.graphs.memories
        return self._versions != [memory.version for memory in memories[: len(self._versions)]]

    def enter(self, go: str) -> None:
        """Begin the body, where an i1 holds; every so many steps the loop handles signals."""
        graphs, text = self.graphs, self.graphs.text
        tick, poll, run = map(graphs.label, ("tick", "poll", "run"))
        self._exit = graphs.left
        text.lines.append(f"br i1 {go}, label %{tick}, label %{self._after}")
        graphs.start(tick)
        left = text.op(f"sub i64 {graphs.left}, 1")
        text.lines.append(f"br i1 $(icmp eq i64 {left}, 0), label %{poll}, label %{run}")
        graphs.start(poll)
        text.lines.append(f"br i1 $(call i1 @poll(ptr %thread)), label %refused, label %{run}")
        graphs.start(run)
        graphs.left = text.op(f"phi i64 [ {left}, %{tick} ], [ {COST.LOOP_STEPS}, %{poll} ]")

    def close(self, results: Sequence[Value]) -> None:
        """Go back to the head with the results of the body, and begin the code after the loop."""
        graphs, lines = self.graphs, self.graphs.text.lines
        arrays = [x.memory for x in self.initial if isinstance(x, LoopArray)]
        memories = {
            memory
            for memory, version in zip(graphs.memories, self._versions, strict=False)
            if memory.version != version
        }
        if any(arrays.count(memory) != 1 for memory in memories):
            raise UnsupportedError("a write into an array that is no carry")
        names: list[str] = []
        for k, (carry, result) in enumerate(zip(self.carries, results, strict=True)):
            if isinstance(carry, LlvmValue) and isinstance(result, LlvmValue):
                names.append(result.view(carry.dtype).name)
            elif isinstance(carry, LoopArray) and isinstance(result, LoopArray):
                last = carry._replace(version=carry.memory.version)
                if result._replace(row=None) != last._replace(row=None):
                    raise UnsupportedError("carries that change places")
                self.carries[k] = last
            else:
                raise UnsupportedError("a carry that is an array")
        for memory, head in self._stores:
            assert memory.last
            names += [memory.last.address, memory.last.value.name]
            memory.last = head
        block, at = graphs.block, self._first
        lines.append(f"br label %{self._head}")
        for name in (*names, graphs.left):
            lines[at] = f"{lines[at]}, [ {name}, %{block} ]"
            at += 1
        graphs.start(self._after)
        graphs.left = self._exit
