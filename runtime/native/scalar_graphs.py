"""Code generation for loops over scalars: one run of a graph as straight code.

Elementwise instructions come from `NativeCode`. Reads and writes of arrays keep the graph's order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.ir.liveness import last_uses
from graphir.ops.op import Op
from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.native.abi import loop_of
from graphir.runtime.native.assembly import Vector, splat, stored_type, where
from graphir.runtime.native.emitters import LlvmValue, emitted, has_code
from graphir.runtime.native.instruction_selection import NativeCode
from graphir.runtime.native.probe import extensions
from graphir.runtime.native.region_writer import UnsupportedError
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region, source_of

if TYPE_CHECKING:
    from graphir.runtime.native.scalar_loops import LoopWriter


Lowered: TypeAlias = Callable[[Graph], tuple[Graph, Any]]
"""A function that maps a graph of control flow to its lowered form, and to such a function for the
graphs inside."""


class LastStore(NamedTuple):
    """The address and the value of the last element that was written to a memory."""

    address: str
    value: LlvmValue


@dataclass(eq=False, slots=True)
class LoopMemory:
    """The memory of an array. Each write makes a new version; only the last one may be read."""

    version: int = 0
    last: LastStore | None = None


class LoopArray(NamedTuple):
    """An array: a version of a memory, or a view of one.

    `address`, `sizes` and `strides` (in bytes) are LLVM values. A view that a `gather` of one row
    made has the `row` that it is: the indices of the symbols of array and place, and the axis.
    """

    memory: LoopMemory
    version: int
    dtype: Storage
    address: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    row: tuple[int, int, int] | None = None
    is_whole: bool = False


class Patch(NamedTuple):
    """A row of an array with one other element: its address and its value."""

    row: tuple[int, int, int]
    array: LoopArray
    address: str
    value: LlvmValue


Value: TypeAlias = "LlvmValue | LoopArray | Patch | list[Value]"


def storage_of(symbol: Symbol) -> Storage:
    """Return the dtype of a symbol's elements in memory."""
    return symbol.graph.concrete_dtype(symbol.dtype).storage


def is_single(symbol: Symbol) -> bool:
    """Whether a symbol has one element."""
    return type(symbol.type) is TensorType and all(size == 1 for size in symbol.shape)


control = ops.control


class GraphWriter:
    """The writer of one run of a lowered graph."""

    def __init__(self, graphs: LoopWriter, graph: Graph, lowered: Lowered) -> None:
        self.graphs, self.text, self.lowered = graphs, graphs.text, lowered
        self.graph_ = graph
        last = last_uses(graph)
        self.symbols = [symbol for symbol in graph.symbols if last[symbol.index] >= 0]
        inner = [symbol for symbol in self.symbols if _is_inner(symbol)]
        indices = {symbol.index for symbol in inner}
        read = [
            source_of(arg).index
            for symbol in self.symbols
            if symbol.index not in indices
            for arg in symbol.args
        ]
        outside = indices.intersection([*read, *[output.index for output in graph.outputs]])
        self.code = NativeCode(Region((), inner), outside)
        if len(self.code.instructions) > COST.INSTRUCTIONS:
            raise UnsupportedError(f"more than {COST.INSTRUCTIONS} instructions")
        self.text.features |= extensions(self.code.calls)
        self._inner = indices
        self._producers = {entry[2]: entry for entry in self.code.instructions}
        self._registers: dict[int, LlvmValue] = {}
        self._values: dict[int, Any] = {}

    def outputs(self, arguments: Sequence[Value]) -> list[Value]:
        """Write the graph for some arguments, and return its outputs."""
        for symbol, argument in zip(self.graph_.inputs, arguments, strict=True):
            self._values[symbol.index] = argument
        for symbol in self.symbols:
            if symbol.index in self._inner:
                self._register(self.code.register(symbol))
            elif symbol.op not in (ops.input, ops.constant, ops.full):
                self._values[symbol.index] = self._result(symbol)
        return [self._value(symbol) for symbol in self.graph_.outputs]

    # -- values

    def _value(self, symbol: Symbol) -> Any:
        """Return a symbol's value in the form in which memory has it."""
        symbol = source_of(symbol)
        if symbol.index in self._inner:
            dtype = stored_type(storage_of(symbol))
            return self._register(self.code.outs[symbol]).view(dtype)
        if symbol.op is ops.constant:
            return self._constant(symbol)
        if symbol.index not in self._values:
            raise UnsupportedError(symbol.op.name)
        return self._values[symbol.index]

    def _scalar(self, symbol: Symbol) -> LlvmValue:
        value = self._value(symbol)
        if not isinstance(value, LlvmValue):
            raise UnsupportedError(f"an array of {symbol.type}")
        return value

    def _register(self, number: int) -> LlvmValue:
        """Return the value of a register; the first use writes its instruction."""
        code = self.code
        base = code.bases[number]
        value = self._registers.get(base)
        if value is None:
            dtype = code.dtypes[base]
            if base in code.constants:
                constant = code.constants[base]
                value = LlvmValue(self.text, splat(constant, dtype), dtype, constant)
            elif base in code.inputs:
                value = self._scalar(code.inputs[base]).view(dtype)
            else:
                function, args, _, symbol = self._producers[base]
                value = self._instruction(function, [*map(self._register, args)], dtype, symbol)
            self._registers[base] = value
        return value.view(code.dtypes[number])

    def _instruction(
        self, function: Any, args: Sequence[LlvmValue], dtype: Storage, symbol: Symbol
    ) -> LlvmValue:
        dtypes = tuple([arg.dtype for arg in args])
        if function in DIVISIONS and dtype.kind in "iu" and dtypes == (dtype, dtype):
            return DIVISIONS[function](*args)
        if has_code(function, (*dtypes, dtype), self.text.features):
            result = emitted(function, dtype, args)
            assert result is not None
            return result
        loop = loop_of(function, *dtypes, dtype) if isinstance(function, np.ufunc) else None
        if loop is None or any(operand_dtype.kind == "c" for operand_dtype in (*dtypes, dtype)):
            name = getattr(function, "__name__", symbol.op.name)
            raise UnsupportedError(f"{name} of {', '.join(map(str, dtypes))}")
        lines, at = self.text.lines, "%values"
        for k, operand_dtype in enumerate((*dtypes, dtype)):
            at = self.text.op(f"getelementptr i64, ptr %values, i64 {k}")
            if k < len(args):
                lines.append(f"store {args[k].view(stored_type(operand_dtype))}, ptr {at}, align 8")
            lines.append(
                f"put ptr {at}, %operands[{k}]\nput i64 {operand_dtype.itemsize}, %sizes[{k}]"
            )
        call, data = map(self.text.pointer, loop)
        lines.append("store i64 1, ptr %length")
        lines.append(f"call void {call}(ptr %operands, ptr %length, ptr %sizes, ptr {data})")
        return self.graphs.load(dtype, at).view(dtype)

    # -- symbols besides elementwise ones

    def _result(self, symbol: Symbol) -> Any:
        """Write a symbol, and return its value."""
        write = _WRITERS.get(symbol.op)
        if write is None:
            raise UnsupportedError(f"{symbol.op.name} of {', '.join(map(str, symbol.args))}")
        return write(self, symbol)

    def _constant(self, symbol: Symbol) -> Value:
        """Return a constant of one element."""
        array = np.asarray(symbol.attrs["value"])
        if array.size != 1:
            raise UnsupportedError("a constant array")
        dtype = stored_type(storage_of(symbol))
        value = array.astype(storage_of(symbol)).reshape(()).view(dtype)
        return LlvmValue(self.text, splat(value, dtype), dtype)

    def view(self, symbol: Symbol) -> Value:
        """Return one element in another shape."""
        value = self._value(symbol.args[0])
        if isinstance(value, LlvmValue) and is_single(symbol):
            return value
        raise UnsupportedError(f"{symbol.op.name} of arrays")

    def part(self, symbol: Symbol) -> Value:
        """Return a part of a tuple."""
        return self._value(symbol.args[0])[symbol.attrs["index"]]

    def control(self, symbol: Symbol) -> list[Value]:
        """Write a loop or a branch in the graph."""
        operands = [self._value(arg) for arg in symbol.args]
        if symbol.op is control.while_loop:
            return self.graphs.while_loop(symbol, operands, self.lowered)
        if symbol.op is control.cond:
            return self.graphs.cond(symbol, operands, self.lowered)
        carries: int = symbol.attrs["carries"]
        rows = operands[carries : carries + symbol.attrs["scanned"]]
        if len(symbol.type.parts) > carries or not rows or not isinstance(rows[0], LoopArray):
            raise UnsupportedError("a scan with results in a loop")
        if len(rows) > 1:
            raise UnsupportedError("a scan of several arrays in a loop")
        return self.graphs.scan(symbol, operands, (), rows[0].sizes[0], self.lowered)

    def gather(self, symbol: Symbol) -> Value:
        """Return the element or the row of an array at a computed place."""
        array, places = symbol.args
        x = self._current(array)
        axis: int = symbol.attrs["axis"]
        if not is_single(places) or places.rank > 1:
            raise UnsupportedError("a gather of rows")
        row = (source_of(array).index, source_of(places).index, axis) if x.is_whole else None
        address = self.graphs.element(x, self._place(places, x.sizes[axis]), axis)
        if all(size == "1" for size in (*x.sizes[:axis], *x.sizes[axis + 1 :])):
            return self.graphs.read(x, address)
        sizes, strides = ([*axes] for axes in (x.sizes, x.strides))
        sizes[axis : axis + 1] = ["1"] * places.rank
        if not places.rank:
            del strides[axis]
        return LoopArray(x.memory, x.version, x.dtype, address, tuple(sizes), tuple(strides), row)

    def item(self, symbol: Symbol) -> Value:
        """Return an element of an array at places that are constant."""
        return self._at(self._current(symbol.args[0]), symbol.attrs["index"])

    def _at(self, x: LoopArray, index: Sequence[int]) -> LlvmValue:
        return self.graphs.read(x, self._address(x, index))

    def _address(self, x: LoopArray, index: Sequence[int]) -> str:
        for axis, place in enumerate(index):
            if place < 0:
                raise UnsupportedError("a place from the end")
            self.graphs.require(self.text.op(f"icmp ult i64 {place}, {x.sizes[axis]}"))
            x = x._replace(address=self.graphs.element(x, f"{place}", axis))
        return x.address

    def _place(self, places: Symbol, size: str) -> str:
        """Return a place that may count from the end, as NumPy's; leave unless it is in range."""
        index, text = self._scalar(places), self.text
        if places.dtype.family == "bool":
            raise UnsupportedError("a place that is bool")
        number = self.graphs.integer(index)
        if index.dtype.kind == "i":
            below = text.op(f"icmp slt i64 {number}, 0")
            number = text.op(f"select i1 {below}, i64 $(add i64 {number}, {size}), i64 {number}")
        self.graphs.require(text.op(f"icmp ult i64 {number}, {size}"))
        return number

    def _current(self, symbol: Symbol) -> LoopArray:
        """Return an array that no write has replaced."""
        x = self._value(symbol)
        if not isinstance(x, LoopArray) or x.version != x.memory.version:
            raise UnsupportedError(f"an older version of {symbol.type}")
        return x

    def index_update(self, symbol: Symbol) -> Value:
        """Write an element at a computed place."""
        array, updates, places = symbol.args
        x, axis = self._current(array), symbol.attrs["axis"]
        value = self._value(updates)
        if not is_single(places) or places.rank > 1:
            raise UnsupportedError("an update of rows")
        if isinstance(value, Patch):
            row = (source_of(array).index, source_of(places).index, axis)
            if value.row != row or value.array.version != x.version or not x.is_whole:
                raise UnsupportedError("an update of rows")
            return self._store(x, value.address, value.value)
        axis = axis or 0  # an array of one axis is flat
        others = (*x.sizes[:axis], *x.sizes[axis + 1 :])
        if any(size != "1" for size in others) or not isinstance(value, LlvmValue):
            raise UnsupportedError("an update of rows")
        address = self.graphs.element(x, self._place(places, x.sizes[axis]), axis)
        return self._update(x, address, value)

    def slice_update(self, symbol: Symbol) -> Value:
        """Write an element at a place that is constant."""
        x, value = self._current(symbol.args[0]), self._value(symbol.args[1])
        start, stop = symbol.attrs["start"], symbol.attrs["stop"]
        both = zip(start, stop, strict=True)
        if not isinstance(value, LlvmValue) or any(
            not isinstance(a, int) or not isinstance(b, int) or b - a != 1 for a, b in both
        ):
            raise UnsupportedError("an update of rows")
        return self._update(x, self._address(x, start), value)

    def _update(self, x: LoopArray, address: str, value: LlvmValue) -> Value:
        if x.is_whole:
            return self._store(x, address, value)
        if x.row is None:
            raise UnsupportedError("an update of a view")
        return Patch(x.row, x, address, value)

    def _store(self, x: LoopArray, address: str, value: LlvmValue) -> LoopArray:
        self.text.lines.append(f"store {value}, ptr {address}, align 1")
        x.memory.version += 1
        x.memory.last = LastStore(address, value)
        return x._replace(version=x.memory.version, row=None)


def _is_inner(symbol: Symbol) -> bool:
    """Whether NativeCode computes a symbol: it is elementwise, of one element."""
    if symbol.op.kind not in ("elementwise", "cast"):
        return False
    if not is_single(symbol):
        raise UnsupportedError(f"{symbol.op.name} of arrays")
    if symbol.op is ops.pow and symbol.dtype.is_float and not symbol.rank:
        raise UnsupportedError("a power of 0-d floats")
    if symbol.op is ops.pow and not symbol.dtype.is_float:
        raise UnsupportedError("a power of integers")
    return True


_WRITERS: Mapping[Op, Callable[[GraphWriter, Symbol], Any]] = {
    ops.reshape: GraphWriter.view,
    ops.squeeze: GraphWriter.view,
    ops.unsqueeze: GraphWriter.view,
    ops.broadcast_to: GraphWriter.view,
    ops.gather: GraphWriter.gather,
    ops.item: GraphWriter.item,
    ops.index_update: GraphWriter.index_update,
    ops.slice_update: GraphWriter.slice_update,
    control.part: GraphWriter.part,
    control.while_loop: GraphWriter.control,
    control.scan: GraphWriter.control,
    control.cond: GraphWriter.control,
}


def _divided(divide: str, x: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
    """Return whether y is 0, and quotient and remainder, toward zero, by a y that is no trap."""
    signed = x.dtype.kind == "i"
    unfit = zero = np.equal(y, x.dtype.type(0))
    if signed:
        least = x.dtype.type(np.iinfo(x.dtype).min)
        unfit = zero | (np.equal(x, least) & np.equal(y, x.dtype.type(-1)))
    safe = where(unfit, x.dtype.type(1), y)
    prefix = "s" if signed else "u"
    return zero, safe, x.emit_value(f"{prefix}{divide} {x.type} {x.name}, {safe.name}", x.dtype)


def _is_below(rest: Vector, y: Vector) -> Vector:
    """Whether the quotient toward zero is above the floor."""
    none = rest.dtype.type(0)
    return np.not_equal(rest, none) & np.less(rest ^ y, none)


def _bits(y: Vector) -> int | None:
    """Return the bits below a constant that is a power of two; None for other divisors."""
    value = 0 if y.number is None else int(y.number)
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _floor_divide(x: Vector, y: Vector) -> Vector:
    bits = _bits(y)
    if bits is not None:
        shift, count = "ashr" if x.dtype.kind == "i" else "lshr", splat(bits, x.dtype)
        return x.emit_value(f"{shift} {x.type} {x.name}, {count}", x.dtype)
    zero, safe, quotient = _divided("div", x, y)
    if x.dtype.kind == "i":
        rest = x - quotient * safe
        quotient = where(_is_below(rest, safe), quotient - x.dtype.type(1), quotient)
    return where(zero, x.dtype.type(0), quotient)


def _remainder(x: Vector, y: Vector) -> Vector:
    bits = _bits(y)
    if bits is not None:
        return x & x.dtype.type((1 << bits) - 1)
    zero, safe, rest = _divided("rem", x, y)
    if x.dtype.kind == "i":
        rest = where(_is_below(rest, safe), rest + safe, rest)
    return where(zero, x.dtype.type(0), rest)


DIVISIONS: Mapping[Any, Callable[[Vector, Vector], Vector]] = {
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
}
"""The emitters of the divisions, for two integers of one dtype."""
