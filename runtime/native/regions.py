"""A region as an LLVM module: loops over vectors, and between them NumPy's own over a block."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from runtime.native.code import NativeCode
from runtime.native.emitters import emitted, has_code
from runtime.native.loops import loop_of
from runtime.native.rows import BLOCKS, WIDTH, addresses, rows, splat
from runtime.native.vectors import Vectors, lane, words_of
from runtime.program.code import Instruction
from runtime.program.tracing import Storage

Kind: TypeAlias = int | None
"""The stride of an input along rows, in elements, if it is among KINDS; else None: any."""

KINDS = (0, 1, 2, -1)
_STACK, _MOST = 80 << 10, 1000
_SPLIT = 64
_WHOLE = (np.power, np.arctan2, np.hypot, np.logaddexp)
"""The ufuncs whose results depend on strides: see graphir.kernels.whole."""


class UnsupportedError(Exception):
    """A region is not all machine code; the message says why."""


class Kernel(NamedTuple):
    """`kernel(record, context, first, end)` as assembly, for elements first to end of the result.

    `record` is that of a Layout; `context` are the addresses of tables and of NumPy's loops.
    """

    text: str
    context: tuple[int, ...]


class Segment(NamedTuple):
    """Vector instructions, then calls of NumPy's loops that read what they made."""

    vectors: list[Instruction]
    loops: list[Instruction]


def memory(dtype: Storage) -> str:
    """The type of an element in memory."""
    found = lane(dtype)
    return "i8" if found == "i1" else found


def segments_of(code: NativeCode, features: Collection[str]) -> list[Segment]:
    """The instructions that matter, each as early as the loops that it waits for allow."""
    stage: dict[int, int] = {}
    found = [Segment([], [])]
    live = code.live([*code.results, *[register for register, _ in code.sums]])
    if len(live) > _MOST:  # others wait while LLVM is at work
        raise UnsupportedError(f"{len(live)} instructions in one region, more than {_MOST}")
    for one in live:
        function, args, out, symbol = one
        at = max([stage.get(code.bases[arg], 0) for arg in args], default=0)
        dtypes = [code.dtypes[register] for register in (*args, out)]
        if has_code(function, dtypes, features):
            found[at].vectors.append(one)
        elif isinstance(function, np.ufunc) and loop_of(function, *dtypes):
            found[at].loops.append(one)
            at += 1
        else:
            name = getattr(function, "__name__", symbol.op.name)
            raise UnsupportedError(f"{name} of {', '.join(map(str, dtypes[:-1]))}")
        stage[out] = at
        if at == len(found):
            found.append(Segment([], []))
    return found


class Writer:
    """The assembly of a region whose inputs are each of a kind.

    Its places, the operands that lie in memory, are inputs, then results, then sums.
    """

    def __init__(self, code: NativeCode, kinds: Sequence[Kind], features: Collection[str]) -> None:
        self.code, self.kinds = code, kinds
        self.dtypes, self.bases = code.dtypes, code.bases
        self.inputs = list(code.inputs)
        self.outs = [code.bases[one] for one in code.results]
        self.places = {base: i for i, base in enumerate((*self.inputs, *self.outs))}
        self.sums = [(code.bases[register], mean) for register, mean in code.sums]
        self.segments = segments_of(code, features)
        self.scratch = self._scratch()
        self.blocks = any(segment.loops for segment in self.segments)
        self.vectors = Vectors(WIDTH, features)
        room = sum(self.dtypes[base].itemsize for base in self.scratch)
        self.block = next((size for size in BLOCKS if room * (size + WIDTH) <= _STACK), 0)
        if not self.block:
            raise UnsupportedError(f"{len(self.scratch)} values between functions of NumPy")

    # -- what lies in memory

    def _scratch(self) -> dict[int, int]:
        """The values that another segment, a loop or a sum reads, by their slots."""
        made: dict[int, int] = {}
        kept = [base for base, _ in self.sums if not self._lies(base)]
        for number, segment in enumerate(self.segments):
            made |= {out: number for _, _, out, _ in segment.vectors}
            read = [self.bases[arg] for _, args, _, _ in segment.vectors for arg in args]
            kept += [base for base in read if made.get(base, number) != number]
            for function, args, out, _ in segment.loops:
                made[out] = -1
                read = [self.bases[arg] for arg in args]
                kept += [out, *[base for base in read if not self._lies(base, function)]]
        kept = [base for base in dict.fromkeys(kept) if base not in self.outs]
        return {base: slot for slot, base in enumerate(kept)}

    def _lies(self, base: int, function: object = np.power) -> bool:
        """Whether a value lies in memory from the beginning, as a function of NumPy wants it."""
        kind = self.kinds[self.places[base]] if base in self.inputs else None
        same = kind == 0 or base in self.code.constants
        return kind == 1 or (same and function not in _WHOLE)

    # -- the module

    def kernel(self) -> Kernel:
        """The whole of it."""
        lines: list[str] = []
        for self.vectors.width in (WIDTH, 1):
            lines += self._body()
        sums = [(lane(self.dtypes[base]), mean) for base, mean in self.sums]
        lines += rows(len(self.places), sums, self.block)
        text = words_of("\n".join([*lines, *sorted(self.vectors.declared), ""]))
        return Kernel(text, tuple(self.vectors.context))

    def _body(self) -> Iterator[str]:
        """Elements of a row, at least one whole vector, and their sums."""
        w, last = self.vectors.width, len(self.segments) - 1
        body = [line for number in range(last + 1) for line in self._segment(number)]
        yield (
            f"define internal void @body{w}(ptr %now, ptr %strides, ptr %context, "
            'i64 %begin, i64 %n, ptr %sums) "probe-stack"="inline-asm" {\nentry:'
        )
        yield from addresses("p", "%now", len(self.places))
        yield from addresses("c", "%context", len(self.vectors.context))
        for base, slot in self.scratch.items():
            yield f"%s{slot} = alloca [{self.block + w} x {memory(self.dtypes[base])}], align 64"
        yield "%operands = alloca [8 x ptr], align 16\n%sizes = alloca [8 x i64], align 16"
        yield "%length = alloca i64, align 8"
        yield from self._hoisted()
        yield f"%limit = add i64 %begin, %n\n%most = sub i64 %limit, {w}\nbr label %block\nblock:"
        yield f"%from = phi i64 [ %begin, %entry ], [ %end, %done{last} ]"
        yield "%start = call i64 @llvm.umin.i64(i64 %from, i64 %most)"
        yield "%rest = sub i64 %limit, %start"
        bound = self.block if self.blocks else "%rest"
        yield f"%count = call i64 @llvm.umin.i64(i64 %rest, i64 {bound})"
        yield f"%top = sub i64 %count, {w}\n%end = add i64 %start, %count\nbr label %before0"
        yield from body
        yield "%more = icmp ult i64 %end, %limit\nbr i1 %more, label %block, label %exit\nexit:"
        for k, (base, _) in enumerate(self.sums):
            kind = lane(self.dtypes[base])
            source, _, lines = self._operand(base, np.power, "%begin")
            yield from lines
            yield f"%sum{k} = getelementptr i64, ptr %sums, i64 {k}"
            yield f"call void @sum_{kind}(ptr {source}, i64 0, i64 %n, ptr %sum{k})"
        yield "ret void\n}"

    def _hoisted(self) -> Iterator[str]:
        """What is the same for all elements."""
        w = self.vectors.width
        for i, base in enumerate(self.inputs):
            kind = memory(self.dtypes[base])
            if self.kinds[i] == 0:
                yield f"%l{i} = load {kind}, ptr %p{i}, align 1"
                yield from splat(f"%x{i}", f"%l{i}", kind, w)
            elif self.kinds[i] is None:
                yield f"%st{i} = get i64, %strides[{i}]"
        for base, value in self.code.constants.items():
            bits = f"i{8 * value.dtype.itemsize}"
            yield f"%n{base} = alloca {bits}, align 16"
            yield f"store {bits} {int.from_bytes(value.tobytes(), 'little')}, ptr %n{base}"

    # -- segments

    def _segment(self, number: int) -> Iterator[str]:
        """The labels before, vec and done, each with the number."""
        segment = self.segments[number]
        given = [] if number else [one for one in self.scratch if self._is_given(one)]
        yield f"before{number}:"
        if segment.vectors or given:
            yield f"br label %vec{number}\nvec{number}:"
            lines, end = self._vectors(number, segment.vectors, given)
            yield f"%rel{number} = phi i64 [ 0, %before{number} ], [ %next{number}, %{end} ]"
            yield f"%in{number} = call i64 @llvm.umin.i64(i64 %rel{number}, i64 %top)"
            yield f"%at{number} = add i64 %start, %in{number}"
            yield from lines
            yield f"%next{number} = add i64 %rel{number}, {self.vectors.width}"
            yield f"%go{number} = icmp ult i64 %next{number}, %count"
            yield f"br i1 %go{number}, label %vec{number}, label %done{number}"
        else:
            yield f"br label %done{number}"
        yield f"done{number}:"
        for one in segment.loops:
            yield from self._call(one)
        if number + 1 < len(self.segments):
            yield f"br label %before{number + 1}"

    def _is_given(self, base: int) -> bool:
        return base in self.inputs or base in self.code.constants

    def _vectors(
        self, number: int, instructions: Sequence[Instruction], given: Sequence[int]
    ) -> tuple[list[str], str]:
        """The lines for one vector, and the label of the block in which they end."""
        code, end, split = self.vectors, f"vec{number}", 0
        code.lines = []
        values: dict[int, str] = {}

        def value(register: int) -> str:
            base = self.bases[register]
            if base not in values:
                values[base] = self._loaded(base, number)
            return code.read_as(values[base], self.dtypes[base], self.dtypes[register])

        for base in given:
            self._store(base, value(base), number)
        for function, args, out, _ in instructions:
            dtypes = [self.dtypes[register] for register in (*args, out)]
            made = emitted(code, function, dtypes, [value(arg) for arg in args])
            assert made is not None
            values[out] = made
            if out in self.outs or out in self.scratch:
                self._store(out, made, number)
            if len(code.lines) - split > _SPLIT:
                split = len(code.lines)
                end = f"v{number}_{split}"
                code.lines += [f"br label %{end}", f"{end}:"]
        return code.lines, end

    def _loaded(self, base: int, number: int) -> str:
        """A vector of a value that another segment, or nothing here, computes."""
        code, dtype, kind = self.vectors, self.dtypes[base], memory(self.dtypes[base])
        if base in self.code.constants:
            return code.splat(self.code.constants[base][()], dtype)
        stride = self.kinds[self.places[base]] if base in self.inputs else 1
        if stride == 0:
            found = f"%x{self.places[base]}"
        elif stride == 1:
            at = self._address(base, number)
            if base in self.inputs and (self.blocks or self.sums):
                self._prefetched(at, dtype.itemsize)
            found = code.op(f"load {code.of(kind)}, ptr {at}, align 1")
        else:
            found = self._gathered(self.places[base], kind, stride, number)
        if kind == lane(dtype):
            return found
        return code.op(f"icmp ne {code.of('i8')} {found}, zeroinitializer")

    def _prefetched(self, at: str, size: int) -> None:
        """Have memory bring the next block, while functions and sums are computed of this one."""
        code = self.vectors
        code.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for line in range(0, code.width * size, 64):
            ahead = code.op(f"getelementptr i8, ptr {at}, i64 {self.block * size + line}")
            code.lines.append(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")

    def _gathered(self, place: int, kind: str, stride: Kind, number: int) -> str:
        """A vector of an input that does not lie in one piece."""
        code, w = self.vectors, self.vectors.width
        if stride is None:
            start = code.op(f"mul i64 %at{number}, %st{place}")
            at = code.op(f"getelementptr i8, ptr %p{place}, i64 {start}")
            found = "poison"  # element by element: gathers of a processor take longer
            for k in range(w):
                one = code.op(f"load {kind}, ptr {at}, align 1")
                found = code.op(f"insertelement {code.of(kind)} {found}, {kind} {one}, i64 {k}")
                at = code.op(f"getelementptr i8, ptr {at}, i64 %st{place}")
            return found
        start = code.op(f"mul i64 %at{number}, {stride}")
        first = code.op(f"getelementptr {kind}, ptr %p{place}, i64 {start}")
        both: list[str] = []
        # Of stride 2 the second begins where it ends with the last element that is wanted.
        for after in (1 - w,) if stride < 0 else (0, w - 1):
            at = code.op(f"getelementptr {kind}, ptr {first}, i64 {after}")
            both.append(f"{code.of(kind)} " + code.op(f"load {code.of(kind)}, ptr {at}, align 1"))
        lanes = range(w - 1, -1, -1) if stride < 0 else (*range(0, w, 2), *range(w + 1, 2 * w, 2))
        mask = ", ".join(f"i32 {one}" for one in lanes)
        return code.op(f"shufflevector {both[0]}, {both[-1]}, <{w} x i32> <{mask}>")

    def _address(self, base: int, number: int) -> str:
        """Where the vector of a value lies in memory."""
        source, at = f"%p{self.places.get(base)}", f"%at{number}"
        if base in self.scratch:
            source, at = f"%s{self.scratch[base]}", f"%in{number}"
        return self.vectors.op(f"getelementptr {memory(self.dtypes[base])}, ptr {source}, i64 {at}")

    def _store(self, base: int, value: str, number: int) -> None:
        code, dtype = self.vectors, self.dtypes[base]
        if memory(dtype) != lane(dtype):
            value = code.op(f"zext {code.type(dtype)} {value} to {code.of('i8')}")
        at = self._address(base, number)
        code.lines.append(f"store {code.of(memory(dtype))} {value}, ptr {at}, align 1")

    def _call(self, one: Instruction) -> Iterator[str]:
        """NumPy's loop over the block."""
        function, args, out, _ = one
        registers = (*args, out)
        assert isinstance(function, np.ufunc)
        loop = loop_of(function, *[self.dtypes[register] for register in registers])
        assert loop
        call, data = map(self.vectors.pointer, loop)
        for k, register in enumerate(registers):
            address, stride, lines = self._operand(self.bases[register], function, "%start")
            yield from lines
            yield f"put ptr {address}, %operands[{k}]\nput i64 {stride}, %sizes[{k}]"
        yield "store i64 %count, ptr %length"
        yield f"call void {call}(ptr %operands, ptr %length, ptr %sizes, ptr {data})"

    def _operand(self, base: int, function: object, start: str) -> tuple[str, str, list[str]]:
        """The address and stride of an operand from an element on, and what computes it."""
        size = str(self.dtypes[base].itemsize)
        if base not in self.outs and not self._lies(base, function):
            return f"%s{self.scratch[base]}", size, []
        if base in self.code.constants:
            return f"%n{base}", "0", []
        place = self.places[base]
        if base in self.inputs:
            stride = self.kinds[place]
            size = f"%st{place}" if stride is None else str(stride * int(size))
        by, name = self.vectors.name(), self.vectors.name()
        lines = [
            f"{by} = mul i64 {start}, {size}",
            f"{name} = getelementptr i8, ptr %p{place}, i64 {by}",
        ]
        return name, size, lines
