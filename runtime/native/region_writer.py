"""Code generation: a region as an LLVM module.

The module tiles a row into blocks. On each block it alternates between loops over vectors, which
compute all instructions with emitters, and calls of NumPy's own inner loops for the other ufuncs.
Values between the two lie in scratch memory on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from graphir.runtime.native.abi import loop_of
from graphir.runtime.native.assembly import VectorWriter, lane, splat, stored_type, words_of
from graphir.runtime.native.emitters import LlvmValue, emitted, has_code
from graphir.runtime.native.instruction_selection import NativeCode
from graphir.runtime.native.row_loops import ARGS, SEVERAL, VectorCode, loops_of, rows
from graphir.runtime.native.row_reductions import Reduction, offsets
from graphir.runtime.program.codegen.instructions import Instruction
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import (
    COST,
    NATIVE_BLOCK_LEAST,
    NATIVE_SIDE,
    NATIVE_STACK,
    NATIVE_VECTOR,
)


class ShortAxis(NamedTuple):
    """The kind of an input broadcast to rows that merge a short last axis with axes before it.

    If the input has size 1 along the short axis, its elements are `repeated` `size` times each.
    Otherwise its `size` elements lie along the short axis, and follow each other again and again.
    """

    size: int
    repeated: bool


Kind: TypeAlias = int | ShortAxis | None
"""The kind of an input: its stride along rows in elements if that is small, or its short axis;
else None."""

_WHOLE = (np.power, np.arctan2, np.hypot, np.logaddexp)
"""The ufuncs whose results depend on strides: see graphir.semantics.kernels.whole."""

_BODY = """
define internal void @body{width}({args}, i64 %begin, i64 %n, ptr %sums) {probe} {{
entry:
  %operands = alloca [8 x ptr], align 16
  %sizes = alloca [8 x i64], align 16
  %length = alloca i64, align 8
  %limit = add i64 %begin, %n
  %most = sub i64 %limit, {width}"""
"""The function for elements of a row and their sums; the elements fill at least one vector."""

_BLOCK = """
  br label %block
block:
  %from = phi i64 [ %begin, %entry ], [ %end, %tail ]
  %start = call i64 @llvm.umin(i64 %from, i64 %most)
  %count = call i64 @llvm.umin(i64 $(sub i64 %limit, %start), i64 {most})
  %top = sub i64 %count, {width}
  %end = add i64 %start, %count"""

_VECTORS = """
  br label %vec{n}
vec{n}:
  %rel{n} = phi i64 [ 0, %{before} ], [ %next{n}, %last{n} ]
  %in{n} = call i64 @llvm.umin(i64 %rel{n}, i64 %top)
  %at{n} = add i64 %start, %in{n}"""
"""The loop over the vectors of a block; the last vector may overlap the vector before it."""

_NEXT = """
  br label %last{n}
last{n}:
  %next{n} = add i64 %rel{n}, {width}
  br i1 $(icmp ult i64 %next{n}, %count), label %vec{n}, label %done{n}
done{n}:"""

_TAIL = """
  br label %tail
tail:
  br i1 $(icmp ult i64 %end, %limit), label %block, label %exit
exit:"""


class UnsupportedError(Exception):
    """Raised if a region cannot be machine code as a whole; the message says why."""


class Kernel(NamedTuple):
    """The LLVM assembly of `kernel(record, context, first, end)`, and the words of its context.

    The kernel computes elements `first` to `end` of the result. `record` is the record of a
    StrideLayout; `context` are the addresses of tables and of NumPy's inner loops.
    """

    text: str
    context: tuple[int, ...]


class Segment(NamedTuple):
    """Vector instructions, followed by calls of NumPy's inner loops that read their results."""

    vectors: list[Instruction]
    loops: list[Instruction]


def segments_of(code: NativeCode, features: Collection[str]) -> list[Segment]:
    """Return the live instructions as segments.

    Each instruction is in the earliest segment after the inner loops whose results it reads. Raises
    UnsupportedError if there are too many instructions, or if an instruction has neither an emitter
    nor an inner loop.
    """
    stage: dict[int, int] = {}
    segments = [Segment([], [])]
    live = code.live([*code.results, *[register for register, _ in code.sums]])
    if len(live) > COST.INSTRUCTIONS:  # other threads wait while LLVM compiles
        raise UnsupportedError(
            f"{len(live)} instructions in one region, more than {COST.INSTRUCTIONS}"
        )
    for instruction in live:
        function, args, out, symbol = instruction
        at = max([stage.get(code.bases[arg], 0) for arg in args], default=0)
        dtypes = tuple([code.dtypes[register] for register in (*args, out)])
        if has_code(function, dtypes, frozenset(features)):
            segments[at].vectors.append(instruction)
        elif isinstance(function, np.ufunc) and loop_of(function, *dtypes):
            segments[at].loops.append(instruction)
            at += 1
        else:
            name = getattr(function, "__name__", symbol.op.name)
            raise UnsupportedError(f"{name} of {', '.join(map(str, dtypes[:-1]))}")
        stage[out] = at
        if at == len(segments):
            segments.append(Segment([], []))
    return segments


class ModuleWriter:
    """The generator of the LLVM assembly of a region for one stride signature of its inputs.

    `places` numbers the operands in memory: the inputs, then the results, then the sums. Raises
    UnsupportedError for a region that cannot be machine code.
    """

    def __init__(self, code: NativeCode, kinds: Sequence[Kind], features: Collection[str]) -> None:
        self.code, self.kinds = code, dict(zip(code.inputs, kinds, strict=True))
        self.dtypes, self.bases = code.dtypes, code.bases
        self.outs = [code.bases[register_] for register_ in code.results]
        self.places = {base: i for i, base in enumerate((*self.kinds, *self.outs))}
        self.sums = [
            (code.bases[register], Reduction(name, stored_type(code.dtypes[register])))
            for register, name in code.sums
        ]
        self.segments = segments_of(code, features)
        self.blocks = any(segment.loops for segment in self.segments)
        self.scratch = self._scratch()
        scratch_bytes = sum(self.dtypes[base].itemsize for base in self.scratch)
        self.block = min(COST.NATIVE_BLOCK, NATIVE_STACK // max(1, scratch_bytes) - NATIVE_VECTOR)
        if self.block < NATIVE_BLOCK_LEAST:
            raise UnsupportedError(f"{len(self.scratch)} values between functions of NumPy")
        self.text = VectorWriter(NATIVE_VECTOR, features)
        self.same: dict[int, LlvmValue] = {}
        self.row, self.side = "", 1

    def kernel(self) -> Kernel:
        """Return the whole module, with a body by vectors and a body by elements."""
        text = self.text
        for text.width, capacity in (
            (NATIVE_VECTOR, self.block + NATIVE_VECTOR),
            (1, NATIVE_VECTOR),
        ):
            self._body(capacity)
        if not self.blocks and rows_side_by_side(self.code, self.kinds.values()):
            self.side = NATIVE_SIDE
            self._body_of_several()
        reductions = [reduction for _, reduction in self.sums]
        lines = [*text.lines, *rows(len(self.places), reductions, self.block, self.side)]
        return Kernel(words_of("\n".join(lines)), tuple(text.context))

    # -- operands in memory

    def _scratch(self) -> dict[int, int]:
        """Return the slots of the values that another segment, an inner loop or a sum reads."""
        writers: dict[int, int] = {}
        bases = [base for base, _ in self.sums if not self._lies(base)]
        for number, segment in enumerate(self.segments):
            writers |= {out: number for _, _, out, _ in segment.vectors}
            bases_read = [self.bases[arg] for _, args, _, _ in segment.vectors for arg in args]
            bases += [base for base in bases_read if writers.get(base, number) != number]
            for function, args, out, _ in segment.loops:
                writers[out] = -1
                bases_read = [self.bases[arg] for arg in args]
                bases += [out, *[base for base in bases_read if not self._lies(base, function)]]
        bases = [base for base in dict.fromkeys(bases) if base not in self.outs]
        return {base: slot for slot, base in enumerate(bases)}

    def _lies(self, base: int, function: object = np.power) -> bool:
        """Whether a value is an input or constant that an inner loop can read in place."""
        kind = 0 if base in self.code.constants else self.kinds.get(base)
        return kind == 1 or (kind == 0 and function not in _WHOLE)

    def _operand(self, base: int, at: str, inside: str, original: bool = False) -> tuple[str, str]:
        """Return the address of an element, and the stride in bytes, both as assembly.

        `at` is the number of the element in the row, `inside` its number in the block. With
        `original`, the address is that of the input itself even if scratch memory holds a copy.
        """
        size = self.dtypes[base].itemsize
        if base in self.scratch and not original:
            pointer, stride, at = f"%s{self.scratch[base]}", f"{size}", inside
        elif base in self.code.constants:
            pointer, stride = f"%n{base}", "0"
        else:
            place, kind = self.places[base], self.kinds.get(base, 1)
            assert not isinstance(kind, ShortAxis)
            pointer = f"%p{place}{self.row}"
            stride = f"%st{place}" if kind is None else f"{kind * size}"
        unit = stride
        if not stride.isdigit():
            unit, at = "1", f"$(mul i64 {at}, {stride})"
        return self.text.op(f"getelementptr [{unit} x i8], ptr {pointer}, i64 {at}"), stride

    # -- the body: the function that differs by region

    def _body(self, capacity: int) -> None:
        lines, width = self.text.lines, self.text.width
        probe = '"probe-stack"="inline-asm"'
        lines.append(_BODY.format(width=width, args=ARGS, probe=probe))
        self._prologue(capacity)
        lines.append(_BLOCK.format(width=width, most=self.block if self.blocks else -1))
        before = "block"
        for number, segment in enumerate(self.segments):
            before = self._segment(number, segment, before)
        lines.append(_TAIL)
        words = offsets([reduction for _, reduction in self.sums])
        for word, (base, reduction) in zip(words, self.sums, strict=False):
            at, _ = self._operand(base, "%begin", "0")
            to = f"$(getelementptr i64, ptr %sums, i64 {word})"
            # A place counts from the start of the row, not of this part.
            begin = "%begin" if reduction.is_place else "0"
            call = f"@{reduction.function}(ptr {at}, i64 {begin}, i64 %n, ptr {to})"
            lines.append(f"call void {call}")
        lines.append("ret void\n}")

    def _prologue(self, capacity: int) -> None:
        """Write the code that runs once per call of the body.

        It allocates scratch memory, loads addresses and strides, and fills vectors with constants
        and with inputs of stride 0.
        """
        lines = self.text.lines
        for base, slot in self.scratch.items():
            size = capacity * self.dtypes[base].itemsize
            lines.append(f"%s{slot} = alloca [{size} x i8], align 64")
        self._addresses()
        self.same = self._uniform()
        for base, value in self.code.constants.items():
            bits = int.from_bytes(value.tobytes(), "little")
            lines.append(f"%n{base} = alloca i{8 * value.itemsize}, align 16")
            lines.append(f"store i{8 * value.itemsize} {bits}, ptr %n{base}")

    def _addresses(self) -> None:
        """Write the loads of the addresses of operands in each row, and of their strides."""
        count = len(self.places) + len(self.sums)
        for base, place in self.places.items():
            for k, row in enumerate(self._rows()):
                self.text.lines.append(f"%p{place}{row} = get ptr, %now[{k * count + place}]")
            if self.kinds.get(base, 1) is None:
                self.text.lines.append(f"%st{place} = get i64, %strides[{place}]")

    def _rows(self) -> Sequence[str]:
        """Return the suffixes of the addresses of the rows that the body computes."""
        return [f"r{k}" for k in range(self.side)] if self.side > 1 else [""]

    def _uniform(self) -> dict[int, LlvmValue]:
        """Return vectors of the operands whose elements are equal: constants, and stride 0."""
        text, same = self.text, dict[int, LlvmValue]()
        for base, place in self.places.items():
            if self.kinds.get(base, 1) != 0:
                continue
            dtype = stored_type(self.dtypes[base])
            kind = lane(dtype)
            x = [text.op(f"load <1 x {kind}>, ptr %p{place}{row}, align 1") for row in self._rows()]
            lanes = [k for k in range(self.side) for _ in range(text.width // self.side)]
            vector = text.concatenate(f"<1 x {kind}>", x)
            name = text.shuffled(f"<{self.side} x {kind}>", vector, "poison", lanes)
            same[base] = LlvmValue(text, name, dtype).view(self.dtypes[base])
        return same | self._constants()

    def _constants(self) -> dict[int, LlvmValue]:
        """Return vectors of the constants."""
        return {
            base: LlvmValue(self.text, splat(value, value.dtype), value.dtype, value)
            for base, value in self.code.constants.items()
        }

    def _body_of_several(self) -> None:
        """Write the body for rows side by side, whose vectors have the same lanes of each row."""
        text, lines = self.text, self.text.lines
        lines.append(f"define internal void @bodies({ARGS}, i64 %begin, i64 %n, ptr %sums) {{")
        lines.append("entry:")
        self._addresses()
        codes: list[VectorCode] = []
        for n in (8, 1):
            text.lines, text.width = lines, n * NATIVE_SIDE
            self.same, text.lines = self._uniform(), []
            value = self._vectors(n, self.segments[0].vectors, ())
            names = [value(base).view(reduction.dtype).name for base, reduction in self.sums]
            codes.append(VectorCode(text.lines, names))
        text.lines = lines
        lines += loops_of([reduction for _, reduction in self.sums], codes[0], codes[1], SEVERAL)
        lines.append("ret void\n}")

    def _segment(self, n: int, segment: Segment, before: str) -> str:
        """Write a segment after the basic block `before`, and return the label of its last block.

        The first segment also copies to scratch memory the inputs and constants that inner loops
        and sums cannot read in place.
        """
        is_given = {*self.same, *self.kinds}
        bases_given = [] if n else [base for base in self.scratch if base in is_given]
        if segment.vectors or bases_given:
            self.text.lines.append(_VECTORS.format(n=n, before=before))
            self._vectors(n, segment.vectors, bases_given)
            self.text.lines.append(_NEXT.format(n=n, width=self.text.width))
            before = f"done{n}"
        for instruction in segment.loops:
            self._call(instruction)
        return before

    def _vectors(
        self, n: int | str, instructions: Sequence[Instruction], bases_given: Sequence[int]
    ) -> Callable[[int], LlvmValue]:
        """Write instructions on vectors; return the function from registers to their vectors."""
        values = dict(self.same)

        def value(register: int) -> LlvmValue:
            base = self.bases[register]
            if base not in values:
                values[base] = self._load_vector(base, n)
            return values[base].view(self.dtypes[register])

        for base in bases_given:
            self._store(base, value(base), n)
        for function, args, out, _ in instructions:
            result = emitted(function, self.dtypes[out], [value(arg) for arg in args])
            assert result is not None
            values[out] = result
            if out in self.outs or (out in self.scratch and self.side == 1):
                self._store(out, result, n)
        return value

    def _load_vector(self, base: int, n: int | str) -> LlvmValue:
        """Return a vector of an input, or of a value that another segment computes."""
        text, dtype = self.text, stored_type(self.dtypes[base])
        parts: list[str] = []
        text.width //= self.side
        for row in self._rows():
            self.row = row
            parts.append(self._load(base, n))
        vector = text.concatenate(text.of(lane(dtype)), parts)
        text.width *= self.side
        return LlvmValue(text, vector, dtype).view(self.dtypes[base])

    def _load(self, base: int, n: int | str) -> str:
        """Return a vector of consecutive elements of a row."""
        text, dtype, kind = self.text, stored_type(self.dtypes[base]), self.kinds.get(base, 1)
        element, vector_type, w = lane(dtype), text.of(lane(dtype)), text.width
        if isinstance(kind, ShortAxis):
            return short_axis_vector(text, element, f"%p{self.places[base]}", f"%at{n}", kind)
        at, stride = self._operand(base, f"%at{n}", f"%in{n}", base in self.kinds)
        works_on_blocks = self.side == 1 and (self.blocks or self.sums)
        if works_on_blocks and base in self.kinds and kind is not None:
            self._prefetch(at, int(stride))

        def load(after: int) -> str:
            start = f"$(getelementptr {element}, ptr {at}, i64 {after})"
            return text.op(f"load {vector_type}, ptr {start}, align 1")

        if kind is None:
            vector = "poison"  # loads by element: the gather instructions of processors are slower
            for k in range(w):
                x = f"$(load {element}, ptr {at}, align 1)"
                vector = text.op(f"insertelement {vector_type} {vector}, {element} {x}, i64 {k}")
                at = text.op(f"getelementptr i8, ptr {at}, i64 {stride}")
            return vector
        if kind == 1:
            return load(0)
        return strided_vector(text, dtype, at, kind)

    def _prefetch(self, at: str, stride: int) -> None:
        """Prefetch the next block while inner loops and sums work on the current block."""
        for line in range(0, self.text.width * stride, 64):
            ahead = f"$(getelementptr i8, ptr {at}, i64 {self.block * stride + line})"
            self.text.lines.append(f"call void @llvm.prefetch(ptr {ahead}, i32 0, i32 3, i32 1)")

    def _store(self, base: int, value: LlvmValue, n: int | str) -> None:
        text, vector = self.text, value.view(stored_type(value.dtype))
        w = text.width // self.side
        for k, row in enumerate(self._rows()):
            self.row = row
            at, _ = self._operand(base, f"%at{n}", f"%in{n}")
            part = vector.name
            if self.side > 1:
                part = text.shuffled(vector.type, part, "poison", range(k * w, (k + 1) * w))
            text.lines.append(f"store <{w} x {vector.lane}> {part}, ptr {at}, align 1")

    def _call(self, instruction: Instruction) -> None:
        """Write the call of NumPy's inner loop over the block."""
        function, args, out, _ = instruction
        registers, lines = (*args, out), self.text.lines
        assert isinstance(function, np.ufunc)
        loop = loop_of(function, *[self.dtypes[register] for register in registers])
        assert loop
        for k, register in enumerate(registers):
            address, stride = self._operand(self.bases[register], "%start", "0")
            lines.append(f"put ptr {address}, %operands[{k}]\nput i64 {stride}, %sizes[{k}]")
        call, data = map(self.text.pointer, loop)
        lines.append("store i64 %count, ptr %length")
        lines.append(f"call void {call}(ptr %operands, ptr %length, ptr %sizes, ptr {data})")


def short_axis_vector(text: VectorWriter, element: str, row: str, at: str, axis: ShortAxis) -> str:
    """Return the vector of an input of a short axis that begins with element `at` of a row.

    `row` is the address of the row. The first lane may be any element along the short axis: the
    code shuffles the loaded elements for each of them, and selects the result.
    """
    width, size = text.width, axis.size
    first, place = text.op(f"udiv i64 {at}, {size}"), text.op(f"urem i64 {at}, {size}")

    def load(lanes: int, number: str) -> str:
        address = f"$(getelementptr {element}, ptr {row}, i64 {number})"
        return text.op(f"load <{lanes} x {element}>, ptr {address}, align 1")

    if width == 1:
        return load(1, first if axis.repeated else place)
    if axis.repeated:  # two loads inside of the row, which together have all elements
        least = (width - 1) // size + 1
        half = 1 << least.bit_length() - 1
        last = f"$(udiv i64 $(add i64 {at}, {width - 1}), {size})"
        halves = load(half, first), load(half, text.op(f"sub i64 {last}, {half - 1}"))
    else:
        half = 1 << (size - 1).bit_length()
        vector = "poison"
        for k in range(size):
            x = f"$(load {element}, ptr $(getelementptr {element}, ptr {row}, i64 {k}), align 1)"
            vector = text.op(f"insertelement <{half} x {element}> {vector}, {element} {x}, i64 {k}")
        halves = vector, "poison"

    def lanes(begin: int) -> Iterator[int]:
        count = (begin + width - 1) // size + 1
        for j in range(begin, begin + width):
            number = j // size if axis.repeated else j % size
            yield number if number < half else 2 * half - count + number

    vectors = [text.shuffled(f"<{half} x {element}>", *halves, lanes(k)) for k in range(size)]
    integers = text.of("i32")
    word = text.op(f"trunc i64 {place} to i32")
    words = text.op(f"insertelement {integers} poison, i32 {word}, i64 0")
    places = text.shuffled(integers, words, "poison", [0] * width)
    result, vector_type = vectors[0], text.of(element)
    for k, vector in enumerate(vectors[1:], 1):
        is_here = f"{text.of('i1')} $(icmp eq {integers} {places}, splat (i32 {k}))"
        result = text.op(f"select {is_here}, {vector_type} {vector}, {vector_type} {result}")
    return result


def strided_vector(text: VectorWriter, dtype: Storage, at: str, stride: int) -> str:
    """Return the vector of elements at a distance of `stride` elements, the first at address `at`.

    The code computes one register of the vector after the other: it loads all elements from the
    first to the last live one, and shuffles them. The last load ends with the last live element,
    so that no load goes beyond the input.
    """
    element, register = lane(dtype), (64 if text.has("avx512f") else 32) // dtype.itemsize
    lanes = max(1, min(text.width, register))
    span = abs(stride) * (lanes - 1) + 1
    size = max(1, min(1 << span.bit_length() - 1, register))
    kind, starts = f"<{size} x {element}>", [*range(0, span - size, size), span - size]
    places = [abs(stride) * k for k in range(lanes)] + [0] * (size - lanes)

    def register_from(first: int) -> str:
        parts: list[str] = []
        for start in starts:
            address = f"$(getelementptr {element}, ptr {at}, i64 {first + start})"
            parts.append(text.op(f"load {kind}, ptr {address}, align 1"))
        vector, current = parts[0], places
        for start, part in zip(starts[1:], parts[1:], strict=True):
            numbers = [
                min(size + place - start, 2 * size - 1) if place >= start else number
                for place, number in zip(places, current, strict=True)
            ]
            vector, current = text.shuffled(kind, vector, part, numbers), [*range(size)]
        order = current[:lanes] if stride > 0 else current[lanes - 1 :: -1]
        return text.shuffled(kind, vector, "poison", order)

    lowest = min(0, stride * (lanes - 1))
    registers = [register_from(stride * k + lowest) for k in range(0, text.width, lanes)]
    return text.concatenate(f"<{lanes} x {element}>", registers)


def rows_side_by_side(code: NativeCode, kinds: Iterable[Kind]) -> bool:
    """Whether a kernel without NumPy's inner loops computes rows side by side.

    It does so if it reduces rows. If it reduces none, it does so if an operand is not contiguous
    along rows, which then may be short; the rows of a short axis that is merged are long.
    """
    if code.sums or not code.has_several_rows:
        return code.has_several_rows
    both = [*zip(code.inputs.values(), kinds, strict=True)]
    is_merged = any(isinstance(kind, ShortAxis) for _, kind in both)
    return not is_merged and any(symbol.rank and kind != 1 for symbol, kind in both)
