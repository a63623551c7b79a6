"""Code generation for loops over scalars: basic blocks, loops and branches.

The carries of a loop are in registers. A loop looks for signals every LOOP_STEPS turns, its own and
those of the loops in it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from graphir.passes.rewriter import bodies_of
from graphir.public import Graph, Symbol, ops
from graphir.runtime.native.assembly import VectorWriter, lane, splat, stored_type
from graphir.runtime.native.emitters import LlvmValue
from graphir.runtime.native.region_writer import UnsupportedError
from graphir.runtime.native.scalar_loops.graph_writer import (
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


class LoopWriter:
    """The writer of the code of loops, and of the graphs in them."""

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
