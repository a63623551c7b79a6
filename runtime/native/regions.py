"""A region as an LLVM module: loops over vectors, and NumPy's own loops between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime.native.emitters import EMITTERS
from runtime.native.loops import Loop, loop_of
from runtime.native.vectors import Vectors, lane
from runtime.program.code import Code, Instruction
from runtime.program.tracing import Storage

BLOCK = 1024


def memory(dtype: Storage) -> str:
    """The type of an element in memory."""
    found = lane(dtype)
    return "i8" if found == "i1" else found


@dataclass
class Segment:
    """Instructions that are vectors, then loops of NumPy's over the block."""

    vectors: list[Instruction] = field(default_factory=list)
    loops: list[tuple[Loop, Instruction]] = field(default_factory=list)


class Unsupported(Exception):
    """A region has an instruction that is not machine code."""


class RegionModule:
    """`entry(ptr args, i64 n)` as text; args are the arrays of inputs, then of outs."""

    def __init__(self, code: Code, width: int, singles: frozenset[int] = frozenset()) -> None:
        self.code, self.width, self.singles = code, width, singles
        self.dtypes, self.bases = code.dtypes, code.bases
        self.inputs = list(code.inputs)
        self.outs = list(code.outs.values())
        self.segments = self._segments()
        self.declared: set[str] = set()

    def _segments(self) -> list[Segment]:
        """Every instruction as early as the loops that it waits for allow."""
        code = self.code
        stage: dict[int, int] = {}
        segments: list[Segment] = [Segment()]
        live = self._live()
        for one in live:
            function, args, out, symbol = one
            at = max([stage.get(self.bases[arg], 0) for arg in args], default=0)
            dtypes = [self.dtypes[arg] for arg in args] + [self.dtypes[out]]
            direct = self._is_direct(function, dtypes)
            if direct:
                segments[at].vectors.append(one)
                stage[out] = at
            else:
                loop = loop_of(function, dtypes)
                if loop is None:
                    raise Unsupported(f"{getattr(function, '__name__', function)} {dtypes}")
                segments[at].loops.append((loop, one))
                stage[out] = at + 1
            if stage[out] == len(segments):
                segments.append(Segment())
        return segments

    def _live(self) -> list[Instruction]:
        used = {self.bases[register] for register in self.outs}
        used |= {self.bases[register] for _, register in self.code.rows}
        found: list[Instruction] = []
        for one in reversed(self.code.instructions):
            if one[2] in used:
                used |= {self.bases[arg] for arg in one[1]}
                found.append(one)
        return found[::-1]

    def _is_direct(self, function: Any, dtypes: Sequence[Storage]) -> bool:
        emitter = EMITTERS.get(function)
        return emitter is not None and emitter(Vectors(self.width), dtypes, ["%x", "%y", "%z"][: len(dtypes) - 1]) is not None

    def text(self) -> str:
        produced: dict[int, int] = {}  # base register -> segment where it is made
        for k, segment in enumerate(self.segments):
            for one in segment.vectors:
                produced[one[2]] = k
        made_by_loop = {one[2] for segment in self.segments for _, one in segment.loops}
        needed_in_memory: set[int] = set(made_by_loop)
        for k, segment in enumerate(self.segments):
            for one in segment.vectors:
                for arg in one[1]:
                    base = self.bases[arg]
                    if base in produced and produced[base] != k:
                        needed_in_memory.add(base)
            for _, one in segment.loops:
                for arg in one[1]:
                    base = self.bases[arg]
                    if base not in self.code.constants:
                        needed_in_memory.add(base)
        out_of = {self.bases[register]: i for i, register in enumerate(self.outs)}
        self.scratch: dict[int, int] = {}
        for base in needed_in_memory:
            if base not in self.inputs and base not in out_of:
                self.scratch[base] = len(self.scratch)
            if base in self.inputs and self.inputs.index(base) in self.singles:
                raise Unsupported("single into a loop")  # later
        lines: list[str] = []
        whole = not any(segment.loops for segment in self.segments)
        step = "%n" if whole else str(BLOCK)
        lines.append("define internal void @body(ptr noalias %args, i64 %n) {")
        lines.append("entry:")
        ninputs = len(self.inputs)
        for i in range(ninputs + len(self.outs)):
            lines.append(f"  %g{i} = getelementptr ptr, ptr %args, i64 {i}")
            lines.append(f"  %p{i} = load ptr, ptr %g{i}")
        for base, k in self.scratch.items():
            lines.append(f"  %s{k} = alloca [{BLOCK} x {memory(self.dtypes[base])}], align 64")
        if not whole:
            lines.append("  %cargs = alloca [8 x ptr], align 16")
            lines.append("  %csteps = alloca [8 x i64], align 16")
            lines.append("  %cn = alloca i64, align 8")
        single_lines = Vectors(self.width)
        for i in self.singles:
            d = self.dtypes[self.inputs[i]]
            m = memory(d)
            lines.append(f"  %l{i} = load {m}, ptr %p{i}, align {d.itemsize}")
            lines.append(f"  %i{i} = insertelement <{self.width} x {m}> poison, {m} %l{i}, i64 0")
            lines.append(f"  %x{i} = shufflevector <{self.width} x {m}> %i{i}, <{self.width} x {m}> poison, <{self.width} x i32> zeroinitializer")
        lines.append("  br label %block")
        lines.append("block:")
        last = f"done{len(self.segments) - 1}"
        lines.append(f"  %start = phi i64 [ 0, %entry ], [ %stop, %{last} ]")
        lines.append(f"  %limit = add i64 %start, {step}")
        lines.append("  %less = icmp ult i64 %limit, %n")
        lines.append("  %stop = select i1 %less, i64 %limit, i64 %n")
        lines.append("  %count = sub i64 %stop, %start")
        lines.append("  br label %vec0")
        counter = 0
        for k, segment in enumerate(self.segments):
            lines += self._segment(k, segment, needed_in_memory, out_of)
        lines.append(f"  %more = icmp ult i64 %stop, %n")
        lines.append("  br i1 %more, label %block, label %exit")
        lines.append("exit:")
        lines.append("  ret void")
        lines.append("}")
        lines += self._entry()
        lines += sorted(self.declared)
        return "\n".join(lines) + "\n"

    def _pointer(self, base: int, index: str, lines: list[str], uniq: str, out_of: dict[int, int]) -> str:
        d = self.dtypes[base]
        if base in self.inputs:
            src = f"%p{self.inputs.index(base)}"
        elif base in out_of:
            src = f"%p{len(self.inputs) + out_of[base]}"
        else:
            src, index = f"%s{self.scratch[base]}", index.replace("at", "rel")
        name = f"%a{uniq}"
        lines.append(f"  {name} = getelementptr {memory(d)}, ptr {src}, i64 {index}")
        return name

    def _segment(self, k: int, segment: Segment, in_memory: set[int], out_of: dict[int, int]) -> list[str]:
        lines: list[str] = []
        pre = f"block" if k == 0 else f"done{k-1}"
        lines.append(f"vec{k}:")
        if not segment.vectors:
            lines.append(f"  br label %loops{k}")
        else:
            lines.append(f"  %rel{k} = phi i64 [ 0, %{pre} ], [ %next{k}, %vec{k} ]")
            lines.append(f"  %at{k} = add i64 %start, %rel{k}")
            code = Vectors(self.width)
            code._names = 100000 * (k + 1)
            values: dict[int, str] = {}
            def load(base: int) -> str:
                d = self.dtypes[base]
                if base in self.code.constants:
                    return code.splat(self.code.constants[base][()], d)
                if base in self.inputs and self.inputs.index(base) in self.singles:
                    v = f"%x{self.inputs.index(base)}"
                    if memory(d) != lane(d):
                        v = code.op(f"icmp ne {code.of('i8')} {v}, zeroinitializer")
                    return v
                p = self._pointer(base, f"%at{k}", code.lines, f"{k}_{base}", out_of)
                v = code.op(f"load {code.of(memory(d))}, ptr {p}, align {d.itemsize}")
                if memory(d) != lane(d):
                    v = code.op(f"icmp ne {code.of('i8')} {v}, zeroinitializer")
                return v
            def value(register: int) -> str:
                base = self.bases[register]
                if base not in values:
                    values[base] = load(base)
                return code.read_as(values[base], self.dtypes[base], self.dtypes[register])
            for function, args, out, symbol in segment.vectors:
                dtypes = [self.dtypes[arg] for arg in args] + [self.dtypes[out]]
                made = EMITTERS[function](code, dtypes, [value(arg) for arg in args])
                values[out] = made
                if out in in_memory or out in out_of:
                    d = self.dtypes[out]
                    if memory(d) != lane(d):
                        made = code.op(f"zext {code.type(d)} {made} to {code.of('i8')}")
                    p = self._pointer(out, f"%at{k}", code.lines, f"st{k}_{out}", out_of)
                    code.lines.append(f"store {code.of(memory(d))} {made}, ptr {p}, align {d.itemsize}")
            lines += ["  " + line for line in code.lines]
            self.declared |= code.declared
            lines.append(f"  %next{k} = add i64 %rel{k}, {self.width}")
            lines.append(f"  %go{k} = icmp ult i64 %next{k}, %count")
            lines.append(f"  br i1 %go{k}, label %vec{k}, label %loops{k}")
        lines.append(f"loops{k}:")
        for j, (loop, (function, args, out, symbol)) in enumerate(segment.loops):
            for q, reg in enumerate((*args, out)):
                base = self.bases[reg]
                u = f"{k}_{j}_{q}"
                d = self.dtypes[base]
                if base in self.code.constants:
                    v = self.code.constants[base]
                    bits = int.from_bytes(np.ascontiguousarray(v).tobytes(), "little")
                    lines.append(f"  %k{u} = alloca i{8*d.itemsize}")
                    lines.append(f"  store i{8*d.itemsize} {bits}, ptr %k{u}")
                    p, stride = f"%k{u}", 0
                else:
                    sub: list[str] = []
                    p = self._pointer(base, "%start" if base in self.inputs or base in out_of else "0", sub, f"c{u}", out_of)
                    lines += sub
                    stride = d.itemsize
                lines.append(f"  %ca{u} = getelementptr ptr, ptr %cargs, i64 {q}")
                lines.append(f"  store ptr {p}, ptr %ca{u}")
                lines.append(f"  %cs{u} = getelementptr i64, ptr %csteps, i64 {q}")
                lines.append(f"  store i64 {stride}, ptr %cs{u}")
            lines.append("  store i64 %count, ptr %cn")
            lines.append(f"  call void inttoptr (i64 {loop.function} to ptr)(ptr %cargs, ptr %cn, ptr %csteps, ptr inttoptr (i64 {loop.data} to ptr))")
        lines.append(f"  br label %done{k}")
        lines.append(f"done{k}:")
        if k + 1 < len(self.segments):
            lines.append(f"  br label %vec{k+1}")
        return lines

    def _entry(self) -> list[str]:
        """The whole vectors in place; the elements that are left by way of the stack."""
        w = self.width
        places = [*self.inputs, *self.outs]
        lines = ["define void @entry(ptr %args, i64 %n) {", "entry:",
                 f"  %main = and i64 %n, {-w}", "  %some = icmp ne i64 %main, 0"]
        lines.append(f"  %rest = alloca [{len(places)} x ptr], align 16")
        for i, base in enumerate(places):
            lines.append(f"  %t{i} = alloca [{w} x {memory(self.dtypes[base])}], align 64")
        lines += ["  br i1 %some, label %full, label %tail", "full:",
                  "  call void @body(ptr %args, i64 %main)", "  br label %tail", "tail:",
                  "  %left = sub i64 %n, %main", "  %any = icmp ne i64 %left, 0",
                  "  br i1 %any, label %copy, label %exit", "copy:"]
        for i, base in enumerate(places):
            d = self.dtypes[base]
            lines += [f"  %g{i} = getelementptr ptr, ptr %args, i64 {i}", f"  %p{i} = load ptr, ptr %g{i}"]
            lines += [f"  %r{i} = getelementptr ptr, ptr %rest, i64 {i}"]
            if i in self.singles:
                lines += [f"  store ptr %p{i}, ptr %r{i}"]
                continue
            lines += [f"  store ptr %t{i}, ptr %r{i}",
                      f"  %e{i} = getelementptr {memory(d)}, ptr %p{i}, i64 %main",
                      f"  %b{i} = mul i64 %left, {d.itemsize}"]
            if i < len(self.inputs):
                lines += [f"  call void @llvm.memset.p0.i64(ptr %t{i}, i8 0, i64 {w * d.itemsize}, i1 false)",
                          f"  call void @llvm.memcpy.p0.p0.i64(ptr %t{i}, ptr %e{i}, i64 %b{i}, i1 false)"]
        lines.append(f"  call void @body(ptr %rest, i64 {w})")
        for i, base in enumerate(places):
            if i >= len(self.inputs):
                lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr %e{i}, ptr %t{i}, i64 %b{i}, i1 false)")
        lines += ["  br label %exit", "exit:", "  ret void", "}",
                  "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                  "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
        return lines
