"""A region as an LLVM module: loops over vectors, and between them NumPy's own over a block."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.native.code import NativeCode
from runtime.native.emitters import emitted
from runtime.native.loops import loop_of
from runtime.native.vectors import Vectors, lane
from runtime.program.code import Instruction
from runtime.program.tracing import Storage

BLOCK = 1024
"""The elements between two of NumPy's loops, for which the values that they read are kept."""

_STACK = 1 << 18
_LINES = 64
_WHOLE = (np.power, np.arctan2, np.hypot, np.logaddexp)
"""The ufuncs whose results depend on strides: see kernels.whole."""


class UnsupportedError(Exception):
    """A region is not all machine code; the message says why."""


class Kernel(NamedTuple):
    """`kernel(args, strides, steps, context, outer, inner)` as assembly.

    It computes `outer` rows of `inner` elements. `args` are the addresses of inputs, then of outs;
    `steps` the bytes from one row of each to the next, `strides` those from one element of an input
    of kind "step" to the next, `context` the addresses of functions and tables that are named here.
    """

    text: str
    context: tuple[Hashable, ...]


def memory(dtype: Storage) -> str:
    """The type of an element in memory."""
    found = lane(dtype)
    return "i8" if found == "i1" else found


class Segment:
    """Vector instructions, then calls of NumPy's loops that read what they made."""

    def __init__(self) -> None:
        self.vectors: list[Instruction] = []
        self.loops: list[Instruction] = []


def segments_of(code: NativeCode, features: Collection[str]) -> list[Segment]:
    """The instructions that matter, each as early as the loops that it waits for allow."""
    stage: dict[int, int] = {}
    found = [Segment()]
    for one in _live(code):
        function, args, out, _ = one
        at = max([stage.get(code.bases[arg], 0) for arg in args], default=0)
        dtypes = [code.dtypes[register] for register in (*args, out)]
        if emitted(Vectors(1, features), function, dtypes, ["%x"] * len(args)) is not None:
            found[at].vectors.append(one)
        elif loop_of(function, dtypes):
            found[at].loops.append(one)
            at += 1
        else:
            raise UnsupportedError(f"{_name(one)} of {', '.join(map(str, dtypes[:-1]))}")
        stage[out] = at
        if at == len(found):
            found.append(Segment())
    return found


def _name(one: Instruction) -> str:
    return getattr(one[0], "__name__", one[3].op.name)


def _live(code: NativeCode) -> list[Instruction]:
    used = {code.bases[register] for register in (*code.results, *code.sums)}
    found: list[Instruction] = []
    for one in reversed(code.instructions):
        if one[2] in used:
            used.update([code.bases[arg] for arg in one[1]])
            found.append(one)
    return found[::-1]


class Writer:
    """The assembly of a region whose inputs are each of a kind: "each", "same" or "step"."""

    def __init__(
        self, code: NativeCode, kinds: Sequence[str], width: int, features: Collection[str]
    ) -> None:
        self.code, self.kinds, self.width = code, kinds, width
        self.dtypes, self.bases = code.dtypes, code.bases
        self.inputs = {register: i for i, register in enumerate(code.inputs)}
        self.outs = {code.bases[one]: i for i, one in enumerate(code.results, len(kinds))}
        self.segments = segments_of(code, features)
        self.sums = [code.bases[register] for register in code.sums]
        stored = [one for one in self.sums if one not in self.outs and one not in self.inputs]
        self.summed = {base: len(kinds) + len(self.outs) + i for i, base in enumerate(dict.fromkeys(stored))}
        self.outs |= self.summed
        self.places = [*code.inputs, *self.outs]
        self.scratch = self._scratch()
        self.vectors = Vectors(width, features)
        room = sum(self.dtypes[base].itemsize for base in self.scratch) * (BLOCK + width)
        if room > _STACK:
            raise UnsupportedError(f"{len(self.scratch)} values between functions of NumPy")

    # -- what lies in memory

    def _scratch(self) -> dict[int, int]:
        """The values that are read in another segment than that which makes them, or by a loop."""
        made: dict[int, int] = {}
        found: dict[int, int] = {}
        for number, segment in enumerate(self.segments):
            for _, _, out, _ in segment.vectors:
                made[out] = number
            for one in segment.vectors:
                for base in map(self.bases.__getitem__, one[1]):
                    if made.get(base, number) != number:
                        self._keep(base, found)
            for one in segment.loops:
                made[one[2]] = -1
                self._keep(one[2], found)
                for base in map(self.bases.__getitem__, one[1]):
                    if not self._is_read_in_place(base, one[0]):
                        self._keep(base, found)
        return found

    def _keep(self, base: int, found: dict[int, int]) -> None:
        if base not in self.outs:
            found.setdefault(base, len(found))

    def _is_read_in_place(self, base: int, function: Any) -> bool:
        """Whether a loop reads an operand where it was given."""
        if base in self.code.constants:
            return function not in _WHOLE
        if base not in self.inputs:
            return False
        kind = self.kinds[self.inputs[base]]
        return kind == "each" or (kind == "same" and function not in _WHOLE)

    def _given(self, number: int) -> list[int]:
        """What is copied to scratch memory as it was given, for loops of a segment."""
        return [base for base in self.scratch if base in self.inputs or base in self.code.constants] if not number else []

    # -- the module

    def kernel(self) -> Kernel:
        """The whole of it."""
        body = [line for number in range(len(self.segments)) for line in self._segment(number)]
        context = tuple(self.vectors.context)
        lines = [*self._body(body, len(context)), *self._rows(), *sorted(self.vectors.declared)]
        return Kernel("\n".join(lines) + "\n", context)

    def _body(self, body: Sequence[str], pointers: int) -> Iterator[str]:
        """`body(args, strides, context, n)` for at least one whole vector."""
        loops = any(segment.loops for segment in self.segments)
        w, last = self.width, len(self.segments) - 1
        yield "define internal void @body(ptr %args, ptr %strides, ptr %context, i64 %n) {"
        yield "entry:"
        yield from _addresses("p", "%args", len(self.places))
        yield from _addresses("c", "%context", pointers)
        for base, k in self.scratch.items():
            yield f"%s{k} = alloca [{BLOCK + w} x {memory(self.dtypes[base])}], align 64"
        if loops:
            yield "%operands = alloca [8 x ptr], align 16"
            yield "%sizes = alloca [8 x i64], align 16"
            yield "%length = alloca i64, align 8"
            yield from self._stored_constants()
        yield from self._hoisted()
        yield f"%most = sub i64 %n, {w}"
        yield "br label %block"
        yield "block:"
        yield f"%begin = phi i64 [ 0, %entry ], [ %end, %done{last} ]"
        yield from _least("start", "%begin", "%most")
        yield "%rest = sub i64 %n, %start"
        yield from _least("count", str(BLOCK) if loops else "%rest", "%rest")
        yield f"%top = sub i64 %count, {w}"
        yield "%end = add i64 %start, %count"
        yield "br label %before0"
        yield from body
        yield "%more = icmp ult i64 %end, %n"
        yield "br i1 %more, label %block, label %exit"
        yield "exit:"
        yield "ret void"
        yield "}"

    def _hoisted(self) -> Iterator[str]:
        """What is the same for all elements."""
        w = self.width
        for i, base in enumerate(self.inputs):
            kind, dtype = self.kinds[i], self.dtypes[base]
            full = f"<{w} x {memory(dtype)}>"
            if kind == "same":
                yield f"%l{i} = load {memory(dtype)}, ptr %p{i}, align {_align(dtype)}"
                yield f"%i{i} = insertelement {full} poison, {memory(dtype)} %l{i}, i64 0"
                zeros = f"<{w} x i32> zeroinitializer"
                yield f"%x{i} = shufflevector {full} %i{i}, {full} poison, {zeros}"
            elif kind == "step":
                yield f"%gs{i} = getelementptr i64, ptr %strides, i64 {i}"
                yield f"%st{i} = load i64, ptr %gs{i}"
                yield f"%j{i} = insertelement <{w} x i64> poison, i64 %st{i}, i64 0"
                zeros = f"<{w} x i32> zeroinitializer"
                yield f"%k{i} = shufflevector <{w} x i64> %j{i}, <{w} x i64> poison, {zeros}"
                lanes = ", ".join(f"i64 {k}" for k in range(w))
                yield f"%o{i} = mul <{w} x i64> %k{i}, <{lanes}>"

    def _stored_constants(self) -> Iterator[str]:
        for base, value in self.code.constants.items():
            bits = f"i{8 * value.dtype.itemsize}"
            number = int.from_bytes(value.tobytes(), "little")
            yield f"%n{base} = alloca {bits}, align 16"
            yield f"store {bits} {number}, ptr %n{base}"

    # -- segments

    def _segment(self, number: int) -> Iterator[str]:
        """The labels before, vec and done, each with the number."""
        segment, given = self.segments[number], self._given(number)
        yield f"before{number}:"
        if segment.vectors or given:
            yield f"br label %vec{number}"
            yield f"vec{number}:"
            lines, end = self._vectors(number, segment.vectors, given)
            yield f"%rel{number} = phi i64 [ 0, %before{number} ], [ %next{number}, %{end} ]"
            yield from _least(f"in{number}", f"%rel{number}", "%top")
            yield f"%at{number} = add i64 %start, %in{number}"
            yield from lines
            yield f"%next{number} = add i64 %rel{number}, {self.width}"
            yield f"%go{number} = icmp ult i64 %next{number}, %count"
            yield f"br i1 %go{number}, label %vec{number}, label %done{number}"
        else:
            yield f"br label %done{number}"
        yield f"done{number}:"
        for one in segment.loops:
            yield from self._call(one)
        if number + 1 < len(self.segments):
            yield f"br label %before{number + 1}"

    def _vectors(
        self, number: int, instructions: Sequence[Instruction], given: Sequence[int]
    ) -> tuple[list[str], str]:
        """The lines for one vector, and the label of the block in which they end."""
        code, end = self.vectors, f"vec{number}"
        code.lines = []
        values: dict[int, str] = {}

        def value(register: int) -> str:
            base = self.bases[register]
            if base not in values:
                values[base] = self._loaded(base, number)
            return code.read_as(values[base], self.dtypes[base], self.dtypes[register])

        for base in given:
            self._store(base, value(base), number, scratch=True)
        split = 0
        for function, args, out, _ in instructions:
            dtypes = [self.dtypes[register] for register in (*args, out)]
            made = emitted(code, function, dtypes, [value(arg) for arg in args])
            assert made is not None
            values[out] = made
            if out in self.outs:
                self._store(out, made, number)
            elif out in self.scratch:
                self._store(out, made, number, scratch=True)
            if len(code.lines) - split > _LINES:
                split = len(code.lines)
                end = f"v{number}_{split}"
                code.lines += [f"br label %{end}", f"{end}:"]
        return code.lines, end

    def _loaded(self, base: int, number: int) -> str:
        code, dtype = self.vectors, self.dtypes[base]
        if base in self.code.constants:
            return code.splat(self.code.constants[base][()], dtype)
        place = self.inputs.get(base, -1)
        kind = self.kinds[place] if place >= 0 else ""
        if kind == "same":
            found = f"%x{place}"
        elif kind == "step":
            found = self._gathered(place, dtype, number)
        else:
            at = self._address(base, number, scratch=base in self.scratch and place < 0)
            found = code.op(f"load {code.of(memory(dtype))}, ptr {at}, align {_align(dtype)}")
        if memory(dtype) == lane(dtype):
            return found
        return code.op(f"icmp ne {code.of('i8')} {found}, zeroinitializer")

    def _gathered(self, place: int, dtype: Storage, number: int) -> str:
        code = self.vectors
        start = code.op(f"mul i64 %at{number}, %st{place}")
        base = code.op(f"getelementptr i8, ptr %p{place}, i64 {start}")
        return code.gathered(memory(dtype), "i8", base, "i64", f"%o{place}", _align(dtype))

    def _address(self, base: int, number: int, scratch: bool) -> str:
        kind = memory(self.dtypes[base])
        if scratch:
            source, at = f"%s{self.scratch[base]}", f"%in{number}"
        else:
            place = self.inputs.get(base, -1)
            place = place if place >= 0 else self.outs[base]
            source, at = f"%p{place}", f"%at{number}"
        return self.vectors.op(f"getelementptr {kind}, ptr {source}, i64 {at}")

    def _store(self, base: int, value: str, number: int, scratch: bool = False) -> None:
        code, dtype = self.vectors, self.dtypes[base]
        if memory(dtype) != lane(dtype):
            value = code.op(f"zext {code.type(dtype)} {value} to {code.of('i8')}")
        at = self._address(base, number, scratch)
        code.lines.append(
            f"store {code.of(memory(dtype))} {value}, ptr {at}, align {_align(dtype)}"
        )

    def _call(self, one: Instruction) -> Iterator[str]:
        """NumPy's loop over the block."""
        function, args, out, _ = one
        registers = (*args, out)
        loop = (function, tuple([self.dtypes[register] for register in registers]))
        call, data = self.vectors.pointer(("loop", *loop)), self.vectors.pointer(("data", *loop))
        for k, register in enumerate(registers):
            address, stride, lines = self._operand(self.bases[register], function)
            yield from lines
            name = self.vectors.name()
            yield f"{name} = getelementptr ptr, ptr %operands, i64 {k}"
            yield f"store ptr {address}, ptr {name}"
            name = self.vectors.name()
            yield f"{name} = getelementptr i64, ptr %sizes, i64 {k}"
            yield f"store i64 {stride}, ptr {name}"
        yield "store i64 %count, ptr %length"
        yield f"call void {call}(ptr %operands, ptr %length, ptr %sizes, ptr {data})"

    def _operand(self, base: int, function: Any) -> tuple[str, int, list[str]]:
        """The address and stride of an operand of a loop, and what computes it."""
        dtype = self.dtypes[base]
        if base in self.scratch and not (
            (base in self.inputs or base in self.code.constants)
            and self._is_read_in_place(base, function)
        ):
            return f"%s{self.scratch[base]}", dtype.itemsize, []
        if base in self.code.constants:
            return f"%n{base}", 0, []
        place = self.inputs.get(base, -1)
        if place >= 0 and self.kinds[place] == "same":
            return f"%p{place}", 0, []
        name = self.vectors.name()
        source = f"%p{place if place >= 0 else self.outs[base]}"
        return name, dtype.itemsize, [f"{name} = getelementptr {memory(dtype)}, ptr {source}, i64 %start"]

    # -- rows

    def _rows(self) -> Iterator[str]:
        """Row by row; `range` does those that are shorter than a vector by way of the stack."""
        count = len(self.places) - len(self.summed)
        yield from self._range()
        if self.sums:
            yield from self._tree()
            for dtype in {self.dtypes[base] for base in self.sums}:
                yield from pairwise(lane(dtype))
        yield (
            "define void @kernel(ptr %args, ptr %strides, ptr %steps, ptr %context, "
            "i64 %outer, i64 %inner, ptr %sums) {"
        )
        yield "entry:"
        yield f"%now = alloca [{len(self.places)} x ptr], align 16"
        yield from _addresses("p", "%args", count)
        yield from _addresses("st", "%steps", count, "i64")
        for i in range(count):
            yield f"%an{i} = getelementptr ptr, ptr %now, i64 {i}"
        yield "%none = icmp eq i64 %outer, 0"
        yield "br i1 %none, label %exit, label %row"
        yield "row:"
        yield "%r = phi i64 [ 0, %entry ], [ %r1, %row ]"
        for i in range(count):
            yield f"%off{i} = mul i64 %r, %st{i}"
            yield f"%q{i} = getelementptr i8, ptr %p{i}, i64 %off{i}"
            yield f"store ptr %q{i}, ptr %an{i}"
        if self.sums:
            yield f"%of = mul i64 %r, {8 * len(self.sums)}"
            yield "%into = getelementptr i8, ptr %sums, i64 %of"
            yield "call void @tree(ptr %now, ptr %strides, ptr %context, i64 %inner, ptr %into)"
            for k, base in enumerate(self.sums):  # NumPy begins with 0: no sum is -0.0
                kind = lane(self.dtypes[base])
                yield f"%z{k} = getelementptr i64, ptr %into, i64 {k}"
                yield f"%zv{k} = load {kind}, ptr %z{k}"
                zero = "fadd" if kind in ("float", "double") else "add"
                yield f"%zw{k} = {zero} {kind} %zv{k}, {'0.0' if zero == 'fadd' else '0'}"
                yield f"store {kind} %zw{k}, ptr %z{k}"
        else:
            yield "call void @range(ptr %now, ptr %strides, ptr %context, i64 %inner)"
        yield "%r1 = add i64 %r, 1"
        yield "%again = icmp ult i64 %r1, %outer"
        yield "br i1 %again, label %row, label %exit"
        yield "exit:"
        yield "ret void"
        yield "}"
        yield "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        yield "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"

    def _range(self) -> Iterator[str]:
        """Elements of one row, any number of them."""
        w, inputs = self.width, len(self.kinds)
        yield "define internal void @range(ptr %args, ptr %strides, ptr %context, i64 %n) {"
        yield "entry:"
        yield f"%copies = alloca [{len(self.places)} x ptr], align 16"
        for i, base in enumerate(self.places):
            yield f"%t{i} = alloca [{w} x {memory(self.dtypes[base])}], align 64"
        yield f"%short = icmp ult i64 %n, {w}"
        yield "br i1 %short, label %few, label %many"
        yield "many:"
        yield "call void @body(ptr %args, ptr %strides, ptr %context, i64 %n)"
        yield "ret void"
        yield "few:"
        yield from _addresses("p", "%args", len(self.places))
        for i, base in enumerate(self.places):
            size, kind = self.dtypes[base].itemsize, self.kinds[i] if i < inputs else "out"
            yield f"%ac{i} = getelementptr ptr, ptr %copies, i64 {i}"
            yield f"store ptr %{'p' if kind == 'same' else 't'}{i}, ptr %ac{i}"
            yield f"%b{i} = mul i64 %n, {size}"
            if kind == "each":
                yield f"call void @llvm.memset.p0.i64(ptr %t{i}, i8 0, i64 {w * size}, i1 false)"
                yield f"call void @llvm.memcpy.p0.p0.i64(ptr %t{i}, ptr %p{i}, i64 %b{i}, i1 false)"
        yield f"call void @body(ptr %copies, ptr %strides, ptr %context, i64 {w})"
        for i in range(inputs, len(self.places)):
            yield f"call void @llvm.memcpy.p0.p0.i64(ptr %p{i}, ptr %t{i}, i64 %b{i}, i1 false)"
        yield "ret void"
        yield "}"

    def _tree(self) -> Iterator[str]:
        """Sums as NumPy has them: of two halves, the first a multiple of 8, down to a block."""
        count = len(self.places)
        computed = bool(self.code.results or self.summed)
        yield "define internal void @tree(ptr %args, ptr %strides, ptr %context, i64 %n, ptr %sums) {"
        yield "entry:"
        yield f"%right = alloca [{count} x ptr], align 16"
        yield f"%other = alloca [{len(self.sums)} x i64], align 16"
        for base, i in self.summed.items():
            yield f"%t{i} = alloca [{BLOCK + self.width} x {memory(self.dtypes[base])}], align 64"
        yield from _addresses("p", "%args", count - len(self.summed))
        yield f"%whole = icmp ugt i64 %n, {BLOCK}"
        yield "br i1 %whole, label %halves, label %block"
        yield "block:"
        for i in self.summed.values():
            yield f"%ap{i} = getelementptr ptr, ptr %args, i64 {i}"
            yield f"store ptr %t{i}, ptr %ap{i}"
        if computed:
            yield "call void @range(ptr %args, ptr %strides, ptr %context, i64 %n)"
        for k, base in enumerate(self.sums):
            kind = lane(self.dtypes[base])
            place = self.summed.get(base)
            place = self.outs.get(base, self.inputs.get(base, -1)) if place is None else place
            source = f"%t{place}" if base in self.summed else f"%p{place}"
            yield f"%s{k} = call {kind} @pairwise_{kind}(ptr {source}, i64 %n)"
            yield f"%sp{k} = getelementptr i64, ptr %sums, i64 {k}"
            yield f"store {kind} %s{k}, ptr %sp{k}"
        yield "ret void"
        yield "halves:"
        yield "%h = lshr i64 %n, 1"
        yield "%left = and i64 %h, -8"
        yield "%rest = sub i64 %n, %left"
        for i in range(count - len(self.summed)):
            stride: Any = self.dtypes[self.places[i]].itemsize
            if i < len(self.kinds) and self.kinds[i] == "same":
                stride = 0
            if i < len(self.kinds) and self.kinds[i] == "step":
                yield f"%gs{i} = getelementptr i64, ptr %strides, i64 {i}"
                yield f"%gv{i} = load i64, ptr %gs{i}"
                stride = f"%gv{i}"
            yield f"%by{i} = mul i64 %left, {stride}"
            yield f"%q{i} = getelementptr i8, ptr %p{i}, i64 %by{i}"
            yield f"%rp{i} = getelementptr ptr, ptr %right, i64 {i}"
            yield f"store ptr %q{i}, ptr %rp{i}"
        yield "call void @tree(ptr %args, ptr %strides, ptr %context, i64 %left, ptr %sums)"
        yield "call void @tree(ptr %right, ptr %strides, ptr %context, i64 %rest, ptr %other)"
        for k, base in enumerate(self.sums):
            kind = lane(self.dtypes[base])
            add = "fadd" if kind in ("float", "double") else "add"
            yield f"%sq{k} = getelementptr i64, ptr %sums, i64 {k}"
            yield f"%sr{k} = getelementptr i64, ptr %other, i64 {k}"
            yield f"%x{k} = load {kind}, ptr %sq{k}"
            yield f"%y{k} = load {kind}, ptr %sr{k}"
            yield f"%w{k} = {add} {kind} %x{k}, %y{k}"
            yield f"store {kind} %w{k}, ptr %sq{k}"
        yield "ret void"
        yield "}"


def pairwise(kind: str) -> Iterator[str]:
    """`pairwise(x, n)` of numpy/_core/src/umath/loops_utils.h.src, the sum of n elements."""
    add, zero = ("fadd", "-0.0") if kind in ("float", "double") else ("add", "0")
    vector = f"<8 x {kind}>"
    size = {"float": 4, "double": 8}.get(kind) or int(kind[1:]) // 8
    yield f"define internal {kind} @pairwise_{kind}(ptr %x, i64 %n) {{"
    yield "entry:"
    yield "%few = icmp ult i64 %n, 8"
    yield "br i1 %few, label %rest, label %more"
    yield "more:"
    yield "%block = icmp ule i64 %n, 128"
    yield "br i1 %block, label %start, label %halves"
    yield "start:"
    yield f"%first = load {vector}, ptr %x, align {size}"
    yield "%end = and i64 %n, -8"
    yield "%any = icmp ugt i64 %end, 8"
    yield "br i1 %any, label %loop, label %joined"
    yield "loop:"
    yield "%i = phi i64 [ 8, %start ], [ %i1, %loop ]"
    yield f"%r = phi {vector} [ %first, %start ], [ %r1, %loop ]"
    yield f"%at = getelementptr {kind}, ptr %x, i64 %i"
    yield f"%next = load {vector}, ptr %at, align {size}"
    yield f"%r1 = {add} {vector} %r, %next"
    yield "%i1 = add i64 %i, 8"
    yield "%again = icmp ult i64 %i1, %end"
    yield "br i1 %again, label %loop, label %joined"
    yield "joined:"
    yield f"%all = phi {vector} [ %first, %start ], [ %r1, %loop ]"
    names = [f"%e{k}" for k in range(8)]
    for k, name in enumerate(names):
        yield f"{name} = extractelement {vector} %all, i64 {k}"
    level = 0
    while len(names) > 1:
        made = [f"%j{level}_{k}" for k in range(len(names) // 2)]
        for k, name in enumerate(made):
            yield f"{name} = {add} {kind} {names[2 * k]}, {names[2 * k + 1]}"
        names, level = made, level + 1
    yield "br label %rest"
    yield "rest:"
    yield f"%begin = phi i64 [ 0, %entry ], [ %end, %joined ]"
    yield f"%sum = phi {kind} [ {zero}, %entry ], [ {names[0]}, %joined ]"
    yield "%left = icmp ult i64 %begin, %n"
    yield "br i1 %left, label %one, label %done"
    yield "one:"
    yield "%k = phi i64 [ %begin, %rest ], [ %k1, %one ]"
    yield f"%s = phi {kind} [ %sum, %rest ], [ %s1, %one ]"
    yield f"%p = getelementptr {kind}, ptr %x, i64 %k"
    yield f"%v = load {kind}, ptr %p, align {size}"
    yield f"%s1 = {add} {kind} %s, %v"
    yield "%k1 = add i64 %k, 1"
    yield "%on = icmp ult i64 %k1, %n"
    yield "br i1 %on, label %one, label %done"
    yield "done:"
    yield f"%result = phi {kind} [ %sum, %rest ], [ %s1, %one ]"
    yield f"ret {kind} %result"
    yield "halves:"
    yield "%half = lshr i64 %n, 1"
    yield "%low = and i64 %half, -8"
    yield "%high = sub i64 %n, %low"
    yield f"%middle = getelementptr {kind}, ptr %x, i64 %low"
    yield f"%a = call {kind} @pairwise_{kind}(ptr %x, i64 %low)"
    yield f"%b = call {kind} @pairwise_{kind}(ptr %middle, i64 %high)"
    yield f"%ab = {add} {kind} %a, %b"
    yield f"ret {kind} %ab"
    yield "}"


def _addresses(name: str, array: str, count: int, kind: str = "ptr") -> Iterator[str]:
    for i in range(count):
        yield f"%{name}g{i} = getelementptr {kind}, ptr {array}, i64 {i}"
        yield f"%{name}{i} = load {kind}, ptr %{name}g{i}"


def _least(name: str, x: str, y: str) -> Iterator[str]:
    yield f"%{name}_less = icmp ult i64 {x}, {y}"
    yield f"%{name} = select i1 %{name}_less, i64 {x}, i64 {y}"


def _align(dtype: Storage) -> int:
    return dtype.alignment or 1
