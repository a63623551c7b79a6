"""The iteration of a kernel over rows: the functions of its module that every region shares.

`kernel` computes the address of each row of each operand. `tree` halves a row that is reduced, and
calls the body of the region: the body by vectors, or the body by elements if there are fewer
elements than a vector has. `trees` does so for NATIVE_SIDE rows side by side, whose body reduces
its values in registers: a vector has eight lanes of each row. The rows may have any length. Sums
have NumPy's pairwise order: NumPy halves a row down to 128 elements, which it adds in eight lanes
(numpy/_core/src/umath/loops_utils.h.src, pairwise_sum). The other reductions have the same result
in any order: maxima and minima are those of IEEE 754-2019, 9.6, with 0.0 above -0.0, and `argmax`
and `argmin` give the first NaN, or the first place of the greatest or least value, where the zeros
are equal. `StrideLayout` defines the record of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, starmap
from typing import NamedTuple

import numpy as np

from graphir.runtime.native.vectors import lane
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import NATIVE_SIDE, NATIVE_VECTOR

ARGS = "ptr %now, ptr %strides, ptr %context"

_HALVES = """
define internal void @{of}({args}, i64 %begin, i64 %n, ptr %sums) {{
entry:
  %right = alloca [{count} x i64], align 16
  %lower = and i64 $(lshr i64 %n, 1), -8
  %upper = sub i64 %n, %lower
  %middle = add i64 %begin, %lower
  br i1 {long}, label %halves, label %leaf
leaf:
{leaf}
  ret void
halves:
  call void @{of}({args}, i64 %begin, i64 %lower, ptr %sums)
  call void @{of}({args}, i64 %middle, i64 %upper, ptr %right)
{added}
  ret void
}}"""

_BODY = f"""\
  %body = select i1 $(icmp uge i64 %n, {NATIVE_VECTOR}), ptr @body{NATIVE_VECTOR}, ptr @body1
  call void %body({ARGS}, i64 %begin, i64 %n, ptr %sums)"""
"""The leaf of `tree`."""

_EIGHTS = """\
  %two = icmp ugt i64 %n, 128
  %both = select i1 %two, i64 %lower, i64 0
  %first = getelementptr {T}, ptr %x, i64 %begin
  %second = getelementptr {T}, ptr %first, i64 %both
  %others = sub i64 %n, %both
  %end = and i64 %others, -8
  br i1 %two, label %pair, label %rest
pair:
  %i = phi i64 [ 0, %leaf ], [ %i1, %pair ]
  %r = phi <8 x {T}> [ splat ({T} {zero}), %leaf ], [ %r1, %pair ]
  %s = phi <8 x {T}> [ splat ({T} {zero}), %leaf ], [ %s1, %pair ]
  %r_next = load <8 x {T}>, ptr $(getelementptr {T}, ptr %first, i64 %i), align 1
  %s_next = load <8 x {T}>, ptr $(getelementptr {T}, ptr %second, i64 %i), align 1
  %r1 = {add} <8 x {T}> %r, %r_next
  %s1 = {add} <8 x {T}> %s, %s_next
  %i1 = add i64 %i, 8
  br i1 $(icmp ult i64 %i1, %both), label %pair, label %rest
rest:
  %j = phi i64 [ 0, %leaf ], [ %both, %pair ], [ %j1, %eight ]
  %a = phi <8 x {T}> [ splat ({T} {zero}), %leaf ], [ %r1, %pair ], [ %a, %eight ]
  %b = phi <8 x {T}> [ splat ({T} {zero}), %leaf ], [ %s1, %pair ], [ %b1, %eight ]
  br i1 $(icmp ult i64 %j, %end), label %eight, label %joined
eight:
  %next = load <8 x {T}>, ptr $(getelementptr {T}, ptr %second, i64 %j), align 1
  %b1 = {add} <8 x {T}> %b, %next
  %j1 = add i64 %j, 8
  br label %rest
joined:
{pairs}
  %left = extractelement <2 x {T}> %v2, i64 0
  %v1 = extractelement <2 x {T}> %v2, i64 1
  br label %one
one:
  %k = phi i64 [ %end, %joined ], [ %k1, %more ]
  %t = phi {T} [ %v1, %joined ], [ %t1, %more ]
  br i1 $(icmp ult i64 %k, %others), label %more, label %exit
more:
  %t1 = {add} {T} %t, $(load {T}, ptr $(getelementptr {T}, ptr %second, i64 %k), align 1)
  %k1 = add i64 %k, 1
  br label %one
exit:
  put {T} $({add} {T} %left, %t), %sums[0]"""
"""The leaf of a sum: one of NumPy's leaves, or two side by side. A leaf is added in eight lanes;
then the lanes are added in pairs, and then the remaining elements one by one."""

_LANES = """\
  %whole = and i64 %n, -64
  br i1 $(icmp ult i64 0, %whole), label %vector, label %joined
vector:
  %i = phi i64 [ 0, %leaf ], [ %i1, %vector ]
{before}
  %r_next = load <64 x {T}>, ptr $(getelementptr {T}, ptr %x, i64 %i), align 1
{joins}
  %i1 = add i64 %i, 64
  br i1 $(icmp ult i64 %i1, %whole), label %vector, label %joined
joined:
{after}
  %v1 = {result}
  br label %one
one:
  %k = phi i64 [ %whole, %joined ], [ %k1, %more ]
  %t = phi {T} [ %v1, %joined ], [ %t1, %more ]
  br i1 $(icmp ult i64 %k, %n), label %more, label %exit
more:
  %t_next = load {T}, ptr $(getelementptr {T}, ptr %x, i64 %k), align 1
  %t1 = {join}
  %k1 = add i64 %k, 1
  br label %one
exit:
  put {T} %t, %sums[0]"""
"""The leaf of a reduction whose result is the same in any order."""

_PLACES = """\
  call void @{extreme}(ptr %x, i64 0, i64 %n, ptr %sums)
  %value = get {T}, %sums[0]
  %one = insertelement <64 x {T}> poison, {T} %value, i64 0
  %values = shufflevector <64 x {T}> %one, <64 x {T}> poison, <64 x i32> zeroinitializer
  %whole = and i64 %n, -64
  br label %many
many:
  %i = phi i64 [ 0, %leaf ], [ %i1, %several ]
  br i1 $(icmp ult i64 %i, %whole), label %several, label %single
several:
  %y = load <64 x {T}>, ptr $(getelementptr {T}, ptr %x, i64 %i), align 1
  %equal = {equal} <64 x {T}> %y, %values
{nans}
  %bits = bitcast <64 x i1> %found to i64
  %i1 = add i64 %i, 64
  br i1 $(icmp eq i64 %bits, 0), label %many, label %here
here:
  %lane = call i64 @llvm.cttz(i64 %bits, i1 true)
  %at = add i64 %i, %lane
  br label %exit
single:
  %k = phi i64 [ %whole, %many ], [ %k1, %next ]
  %z = load {T}, ptr $(getelementptr {T}, ptr %x, i64 %k), align 1
  %k1 = add i64 %k, 1
  %is_equal = {equal} {T} %z, %value
{nan}
  br i1 %is_found, label %exit, label %next
next:
  br label %single
exit:
  %place = phi i64 [ %at, %here ], [ %k, %single ]
  put i64 $(add i64 %place, %begin), %sums[1]"""
"""The leaf of argmax and argmin: the first element that equals the maximum, or the first NaN."""

_ADDRESS = """
define internal void @address(ptr %record, i64 %a, ptr %now) {{
entry:
  %bases = get {P}, %record[0]
  %axes = get i64, %record[{places}]
  %outer = getelementptr i64, ptr %record, i64 {words}
  br label %axis
axis:
  %d = phi i64 [ 0, %entry ], [ %d1, %axis ]
  %q = phi i64 [ %a, %entry ], [ %q1, %axis ]
  %at = phi {P} [ %bases, %entry ], [ %at1, %axis ]
  %size = get i64, %outer[$(mul i64 %d, {words})]
  %steps = get {P}, %size_at[1]
  %q1 = udiv i64 %q, %size
  %index = bitcast i64 $(urem i64 %q, %size) to <1 x i64>
  %indices = shufflevector <1 x i64> %index, <1 x i64> poison, <{places} x i32> zeroinitializer
  %at1 = add {P} %at, $(mul {P} %steps, %indices)
  %d1 = add i64 %d, 1
  br i1 $(icmp ult i64 %d1, %axes), label %axis, label %exit
exit:
  store {P} %at1, ptr %now, align 8
  ret void
}}"""
"""The addresses of the operands at element %a."""

_KERNEL = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  put i64 1, %context[-1]
  %now = alloca [{now} x i64], align 64
  %sums = alloca [{sums} x i64], align 32
  %unit = get i64, %record[{words}]
  %strides = getelementptr i64, ptr %record, i64 {steps}
  br i1 $(icmp ult i64 %first, %end), label %row, label %exit
row:
  %a = phi i64 [ %first, %entry ], [ %next, %done ]
  %more = phi i64 [ 0, %entry ], [ %others, %done ]
  %left = sub i64 %end, %a
  %is_near = icmp ugt i64 %more, 0
  br i1 %is_near, label %start, label %divided
divided:
  %remainder = urem i64 %a, %unit
  br label %start
start:
  %part = phi i64 [ 0, %row ], [ %remainder, %divided ]
{choice}
single:
  br i1 %is_near, label %near, label %far
near:
  %at = load {P}, ptr %now, align 8
  %step = get {P}, %record[{step}]
  store {P} $(add {P} %at, %step), ptr %now, align 8
  %more_near = sub i64 %more, 1
  br label %placed
far:
  call void @address(ptr %record, i64 $(sub i64 %a, %part), ptr %now)
  %axes = get i64, %record[{places}]
  %has_rows = icmp ugt i64 %axes, 1
  br i1 $(and i1 %has_rows, $(icmp eq i64 %part, 0)), label %counted, label %placed
counted:
  %count = get i64, %record[{count}]
  %number = urem i64 $(udiv i64 %a, %unit), %count
  %more_far = sub i64 $(sub i64 %count, 1), %number
  br label %placed
placed:
  %others1 = phi i64 [ %more_near, %near ], [ 0, %far ], [ %more_far, %counted ]
  %n1 = call i64 @llvm.umin(i64 $(sub i64 %unit, %part), i64 %left)
  call void @tree({args}, i64 %part, i64 %n1, ptr %sums)
  %is_whole = icmp eq i64 %n1, %unit
  %divisor_i = select i1 %is_whole, i64 %unit, i64 1  ; parts of a row are divided when added up
  %divisor = sitofp i64 %divisor_i to double
{finished}
  br label %done
{several}
done:
  %n = phi i64 [ %n1, %placed ]{elements}
  %others = phi i64 [ %others1, %placed ]{no_others}
  %next = add i64 %a, %n
  br i1 $(icmp ult i64 %next, %end), label %row, label %exit
exit:
  ret void
}}"""
"""The loop over rows. The addresses of a row are those of the row before and the steps of the next
axis, `%more` times; else `@address` computes them, which takes as long as a row of 100 elements."""

_SEVERAL = """\
several:
  %elements = mul i64 %unit, {side}
  %by_row = get {P}, %record[{step}]
  br i1 $(icmp uge i64 %more, {side}), label %follow, label %begin
follow:
  %before = load {P}, ptr %now, align 8
  %row_near = add {P} %before, %by_row
  %rest_near = sub i64 %more, {side}
  br label %equally
begin:
  call void @address(ptr %record, i64 %a, ptr %now)
  %row_far = load {P}, ptr %now, align 8
  %rows_axes = get i64, %record[{places}]
  %rows_count = get i64, %record[{count}]
  %rows_number = urem i64 $(udiv i64 %a, %unit), %rows_count
  %rows_left = sub i64 %rows_count, %rows_number
  %rest_far = sub i64 %rows_left, {side}
  %fits = icmp uge i64 %rows_left, {side}
  br i1 $(and i1 $(icmp ugt i64 %rows_axes, 1), %fits), label %equally, label %apart
equally:
  %row0 = phi {P} [ %row_near, %follow ], [ %row_far, %begin ]
  %rest_equal = phi i64 [ %rest_near, %follow ], [ %rest_far, %begin ]
{equally}
  br label %together
apart:
{addresses}
  br label %together
together:
  %rest = phi i64 [ %rest_equal, %equally ], [ 0, %apart ]
  call void @trees({args}, i64 0, i64 %unit, ptr %sums)
  %length = insertelement <1 x double> poison, double $(sitofp i64 %unit to double), i64 0
  %lengths = shufflevector <1 x double> %length, <1 x double> poison, <{side} x i32> zeroinitializer
{finished}
  %last_row = load {P}, ptr $(getelementptr i64, ptr %now, i64 {last}), align 8
  store {P} %last_row, ptr %now, align 8
  br label %done"""
"""Rows side by side. Their addresses are equally far apart, or cross the end of an axis."""


PLACES = {"argmax": "max", "argmin": "min"}
"""The reductions to places, and those that find the elements there."""


def offsets(reductions: Sequence[Reduction]) -> list[int]:
    """Return the first word of each reduction in the results, and the number of words."""
    return [0, *accumulate(each.words for each in reductions)]


class VectorCode(NamedTuple):
    """Straight-line code, and the names of vectors that it computes."""

    lines: Sequence[str]
    names: Sequence[str]


class Reduction(NamedTuple):
    """A reduction and the dtype of its elements in memory.

    The reductions are `sum mean prod max min any all argmax argmin`. `mean` is the sum of a whole
    row, divided by its number of elements. `argmax` and `argmin` give the first place in a row.
    """

    name: str
    dtype: Storage

    @property
    def is_sum(self) -> bool:
        """Whether the result depends on the order of additions."""
        return self.name in ("sum", "mean")

    @property
    def is_place(self) -> bool:
        """Whether the result is the place of an element, which is next to the element in memory."""
        return self.name in PLACES

    @property
    def words(self) -> int:
        """The words of a result that is not finished: the element, and the place."""
        return 1 + self.is_place

    @property
    def extreme(self) -> Reduction:
        """The reduction that finds the element of which `argmax` or `argmin` gives the place."""
        return Reduction(PLACES[self.name], self.dtype)

    @property
    def kind(self) -> str:
        """The LLVM type of an element."""
        return lane(self.dtype)

    @property
    def function(self) -> str:
        """The name of the function that reduces contiguous elements."""
        return f"sum_{self.kind}" if self.is_sum else f"{self.name}_{self.dtype.char}"

    @property
    def across(self) -> str:
        """The name of LLVM's reduction, where the order does not matter."""
        if self.name in ("any", "all"):
            return "umax" if self.name == "any" else "umin"
        prefix = {"f": "f", "i": "s", "u": "u"}[self.dtype.kind]
        return f"{prefix}{PLACES.get(self.name, self.name)}{'imum' if prefix == 'f' else ''}"

    @property
    def zero(self) -> str:
        """The neutral element."""
        if self.is_sum:
            return _adding(self.kind)[1]
        least = self.across.endswith(("max", "maximum"))
        if self.dtype.kind == "f":
            infinity = np.array(-np.inf if least else np.inf, np.float64)
            return f"0x{int(infinity.view(np.uint64)):016X}"
        limits = np.iinfo(self.dtype)
        return str(limits.min if least else limits.max)

    def kinds(self, lanes: int) -> str:
        """Return the LLVM type of an element, or of a vector of several elements."""
        return self.kind if lanes == 1 else f"<{lanes} x {self.kind}>"

    def join(self, x: str, y: str, lanes: int = 1) -> str:
        """Return the instruction that combines two results, or two vectors of results."""
        kind = self.kinds(lanes)
        if self.is_sum:
            return f"{_adding(self.kind)[0]} {kind} {x}, {y}"
        if self.name == "prod":
            return f"{'f' if self.dtype.kind == 'f' else ''}mul {kind} {x}, {y}"
        return f"call {kind} @llvm.{self._intrinsic}({kind} {x}, {kind} {y})"

    @property
    def _is_extreme(self) -> bool:
        """Whether this is a maximum or a minimum of floats."""
        return self.dtype.kind == "f" and self.name in ("max", "min")

    @property
    def parts(self) -> Sequence[Reduction]:
        """The reductions that a loop has in registers, and of which `of_parts` makes the result.

        Those of a maximum or minimum of floats are of their bits as integers, since the code of
        llvm.maximum takes several times as long: the greatest signed, the greatest unsigned and the
        least unsigned number.
        """
        if not self._is_extreme:
            return (self,)
        signed, unsigned = (np.dtype(f"{kind}{self.dtype.itemsize}") for kind in "iu")
        return tuple(starmap(Reduction, [("max", signed), ("max", unsigned), ("min", unsigned)]))

    def bits(self, y: str, lanes: int = 1) -> str:
        """Return an element, or a vector of elements, as `parts` reduce it."""
        kinds = self.kinds(lanes), self.parts[0].kinds(lanes)
        return f"$(bitcast {kinds[0]} {y} to {kinds[1]})" if self._is_extreme else y

    def of_parts(self, parts: Sequence[str], lanes: int = 1) -> str:
        """Return the instruction for the result, of the results of `parts`.

        A maximum is the greatest signed number if that has no sign, else the least unsigned one. A
        minimum is the greatest unsigned number if that has the sign, else the least unsigned one.
        NaN are greater than an infinity of the same sign.
        """
        kind = self.kinds(lanes)
        if not self._is_extreme:
            return f"freeze {kind} {parts[0]}"
        integer, is_max = self.parts[0].kinds(lanes), self.name == "max"
        signed, unsigned, least = parts

        def number(value: float) -> str:
            word = int(np.array(value, self.dtype).view(self.parts[0].dtype))
            return f"{word}" if lanes == 1 else f"splat ({self.parts[0].kind} {word})"

        def select(condition: str, x: str, y: str) -> str:
            truth = "i1" if lanes == 1 else f"<{lanes} x i1>"
            return f"$(select {truth} {condition}, {integer} {x}, {integer} {y})"

        end = number(-np.inf if is_max else np.inf)  # of no elements
        least = select(f"$(icmp ult {integer} {least}, {end})", least, end)
        greatest, has = (signed, "sge") if is_max else (unsigned, "slt")
        best = select(f"$(icmp {has} {integer} {greatest}, {number(0)})", greatest, least)
        for order, part, infinity in (("sgt", signed, np.inf), ("ugt", unsigned, -np.inf)):
            is_nan = f"$(icmp {order} {integer} {part}, {number(infinity)})"
            best = select(is_nan, number(np.nan), best)
        return f"bitcast {integer} {best} to {kind}"

    @property
    def _intrinsic(self) -> str:
        return self.across.removeprefix("f") if self.dtype.kind == "f" else self.across

    def leaf(self) -> str:
        """Return the code of `function` for at most a block of elements."""
        if self.is_sum:
            add, zero = _adding(self.kind)
            pairs = "\n".join(_pairs(self.kind, add))
            return _EIGHTS.format(T=self.kind, add=add, zero=zero, pairs=pairs)
        if self.is_place:
            return self._leaf_of_places()
        before, joins, after = list[str](), list[str](), list[str]()
        for k, each in enumerate(self.parts):
            kinds = each.kinds(64)
            sources = f"[ splat ({each.kind} {each.zero}), %leaf ], [ %s{k}, %vector ]"
            before.append(f"  %r{k} = phi {kinds} {sources}")
            joins.append(f"  %s{k} = {each.join(f'%r{k}', self.bits('%r_next', 64), 64)}")
            after.append(f"  %l{k} = phi {kinds} {sources}")
        for k, each in enumerate(self.parts):
            across = f"call {each.kind} @llvm.vector.reduce.{each.across}({each.kinds(64)} %l{k})"
            after.append(f"  %p{k} = {across}")
        return _LANES.format(
            T=self.kind,
            before="\n".join(before),
            joins="\n".join(joins),
            after="\n".join(after),
            result=self.of_parts([f"%p{k}" for k, _ in enumerate(self.parts)]),
            join=self.join("%t", "%t_next"),
        )

    def _leaf_of_places(self) -> str:
        equals = ("%found", "<64 x i1>", self.kinds(64), "%y", "%equal")
        equal = ("%is_found", "i1", self.kind, "%z", "%is_equal")
        nans, nan = (
            f"  {name} = select i1 $(fcmp uno {self.kind} %value, %value), "
            f"{mask} $(fcmp uno {vector} {y}, {y}), {mask} {same}"
            if self.dtype.kind == "f"
            else f"  {name} = freeze {mask} {same}"
            for name, mask, vector, y, same in (equals, equal)
        )
        names = {"T": self.kind, "equal": "fcmp oeq" if self.dtype.kind == "f" else "icmp eq"}
        return _PLACES.format(**names, extreme=self.extreme.function, nans=nans, nan=nan)

    def joins(self, at: int, side: int) -> Iterator[str]:
        """Yield the code that combines the results of two halves of a row, or of rows side by side.

        The results are at word `at` of %sums, which has those of the left half, and of %right.
        """
        if self.is_place:
            yield from self._join_of_places(at, side)
            return
        kind = self.kinds(side)
        x, y = (f"$(get {kind}, {of_half}[{at}])" for of_half in ("%sums", "%right"))
        yield f"  put {kind} $({self.join(x, y, side)}), %sums[{at}]"

    def _join_of_places(self, at: int, side: int) -> Iterator[str]:
        x, y = (f"%x{at}p", f"%y{at}p")
        of = self if side == 1 else self.keys
        kinds = of.kinds(side), "i64" if side == 1 else f"<{side} x i64>"
        words = at, at + side
        for half, name in (("%sums", x), ("%right", y)):
            for p, (kind, word) in enumerate(zip(kinds, words, strict=True)):
                yield f"  {name}{p} = get {kind}, {half}[{word}]"
        yield from of._first_of(f"%z{at}p", x, y, kinds)
        for p, (kind, word) in enumerate(zip(kinds, words, strict=True)):
            yield f"  put {kind} %z{at}p{p}, %sums[{word}]"

    def _is_better(self, x: str, y: str, kind: str) -> str:
        """Return the condition on which `argmax` or `argmin` prefers `y`.

        It does if `y` is greater or less than `x`, or if `y` alone is NaN.
        """
        is_max = self.name == "argmax"
        if self.dtype.kind != "f":
            order = ("u" if self.dtype.kind == "u" else "s") + ("gt" if is_max else "lt")
            return f"icmp {order} {kind} {y}, {x}"
        truth = kind.replace(self.kind, "i1")
        better = f"$(fcmp {'ugt' if is_max else 'ult'} {kind} {y}, {x})"
        return f"and {truth} {better}, $(fcmp ord {kind} {x}, {x})"

    def _first_of(
        self, to: str, x: str, y: str, kinds: Sequence[str], is_later: bool = True
    ) -> Iterator[str]:
        """Yield the code that leaves the better of two elements, and its place, in registers `to`.

        Of equal elements it leaves the one with the lower place: `x` if every `y` is later.
        """
        value, place = kinds
        truth = value.replace(self.kind, "i1")
        yield f"  {to}b = {self._is_better(f'{x}0', f'{y}0', value)}"
        if not is_later:
            equal = f"$(xor {truth} $({self._is_better(f'{y}0', f'{x}0', value)}), {{}})"
            equal = equal.format("true" if truth == "i1" else "splat (i1 true)")
            first = f"$(icmp ult {place} {y}1, {x}1)"
            yield f"  {to}c = or {truth} {to}b, $(and {truth} {equal}, {first})"
        for p, kind in enumerate(kinds):
            condition = f"{truth} {to}{'b' if is_later else 'c'}"
            yield f"  {to}{p} = select {condition}, {kind} {y}{p}, {kind} {x}{p}"

    # -- rows side by side, whose values and places are in registers

    @property
    def keys(self) -> Reduction:
        """The reduction to places of integers whose order is that of the elements: see `_key`."""
        return Reduction(self.name, np.dtype(f"i{self.dtype.itemsize}")) if self._is_float else self

    @property
    def _is_float(self) -> bool:
        return self.dtype.kind == "f"

    def _key(self, to: str, y: str, lanes: int) -> Iterator[str]:
        """Yield the code for the keys of elements, integers of the same order.

        A key is the bits of a float; all but the sign are inverted if that is set. Both zeros have
        one key, and NaN the key that is preferred to all others. The loop then has one comparison
        for each element; of floats it would have a second one, because of NaN.
        """
        kind, of = self.kinds(lanes), self.keys
        if not self._is_float:
            yield f"{to} = freeze {kind} {y}"
            return
        keys, sign, first = of.kinds(lanes), 8 * of.dtype.itemsize - 1, np.iinfo(of.dtype)
        positive = f"$(fadd {kind} {y}, splat ({self.kind} 0.0))"
        yield f"{to}b = bitcast {kind} {positive} to {keys}"
        yield f"{to}s = ashr {keys} {to}b, splat ({of.kind} {sign})"
        yield f"{to}r = and {keys} {to}s, splat ({of.kind} {first.max})"
        least = first.max if self.name == "argmax" else first.min
        nan = f"<{lanes} x i1> $(fcmp uno {kind} {y}, {y}), {keys} splat ({of.kind} {least})"
        yield f"{to} = select {nan}, {keys} $(xor {keys} {to}b, {to}r)"

    def registers(self, lanes: int) -> Sequence[tuple[str, str]]:
        """Return the LLVM types of the registers that a loop reduces, and what they start from.

        They are those of `parts`. Of places they are the key of the best element of a lane, and the
        number of the first element of its vector.
        """
        if self.is_place:
            keys = self.keys
            start = f"splat ({keys.kind} {keys.zero})"
            return (keys.kinds(lanes), start), (f"<{lanes} x {self._place}>", "zeroinitializer")
        return [(each.kinds(lanes), f"splat ({each.kind} {each.zero})") for each in self.parts]

    @property
    def _place(self) -> str:
        """The LLVM type of a place in registers, as wide as an element."""
        return f"i{max(32, 8 * self.dtype.itemsize)}"

    def step(self, to: str, state: str, y: str, at: str, lanes: int) -> Iterator[str]:
        """Yield the code for registers `to`, of registers `state` and a vector of elements.

        `at` is the number of the first element in the row. The names of registers end with numbers.
        """
        if not self.is_place:
            bits = self.bits(y, lanes)
            for p, part in enumerate(self.parts):
                yield f"{to}{p} = {part.join(f'{state}{p}', bits, lanes)}"
            return
        kinds = [kind for kind, _ in self.registers(lanes)]
        place = f"trunc i64 {at} to {self._place}" if self._place != "i64" else f"add i64 {at}, 0"
        start = f"$(insertelement {kinds[1]} poison, {self._place} $({place}), i64 0)"
        zeros = f"<{lanes} x i32> zeroinitializer"
        yield from self._key(f"{to}y0", y, lanes)
        yield f"{to}y1 = shufflevector {kinds[1]} {start}, {kinds[1]} poison, {zeros}"
        yield from self.keys._first_of(to, state, f"{to}y", kinds)

    def across_lanes(self, to: str, state: str, lanes: int, side: int) -> Iterator[str]:
        """Yield the code that reduces registers of `lanes` lanes to the results of `side` rows."""
        if not self.is_place:
            names = [f"{state}{p}" for p, _ in enumerate(self.parts)]
            yield f"{to}l{lanes} = {self.of_parts(names, lanes)}"
            while lanes > side:
                lanes //= 2
                even, odd = _neighbours(self.kinds(2 * lanes), f"{to}l{2 * lanes}", lanes)
                yield f"{to}l{lanes} = {self.join(even, odd, lanes)}"
            yield f"{to}0 = freeze {self.kinds(side)} {to}l{side}"
            return
        (value, _), (place, _) = self.registers(lanes)
        numbers = ", ".join(f"{self._place} {lane % (lanes // side)}" for lane in range(lanes))
        yield f"{to}l{lanes}p0 = freeze {value} {state}0"
        yield f"{to}l{lanes}p1 = add {place} {state}1, <{numbers}>"
        while lanes > side:
            lanes //= 2
            kinds = [kind for kind, _ in self.registers(lanes)]
            for p, (kind, _) in enumerate(self.registers(2 * lanes)):
                halves = _neighbours(kind, f"{to}l{2 * lanes}p{p}", lanes)
                for name, half in zip("xy", halves, strict=True):
                    yield f"{to}{name}{lanes}p{p} = freeze {kinds[p]} {half}"
            x, y = f"{to}x{lanes}p", f"{to}y{lanes}p"
            yield from self.keys._first_of(f"{to}l{lanes}p", x, y, kinds, is_later=False)
        for p, (kind, _) in enumerate(self.registers(side)):
            yield f"{to}{p} = freeze {kind} {to}l{side}p{p}"

    def results(self, side: int) -> Sequence[str]:
        """Return the LLVM types of the registers that `across_lanes` leaves."""
        kinds = [kind for kind, _ in self.registers(side)]
        return kinds if self.is_place else [self.kinds(side)]

    def puts(self, at: int, state: str, side: int) -> Iterator[str]:
        """Yield the code that stores the results of rows side by side, from word `at` of %sums."""
        yield f"put {self.results(side)[0]} {state}0, %sums[{side * at}]"
        if self.is_place:
            wide, narrow = f"<{side} x i64>", f"<{side} x {self._place}>"
            widen = f"zext {narrow} {state}1 to {wide}" if wide != narrow else ""
            place = f"$({widen})" if widen else f"{state}1"
            start = f"$(insertelement {wide} poison, i64 %begin, i64 0)"
            begin = (
                f"$(shufflevector {wide} {start}, {wide} poison, <{side} x i32> zeroinitializer)"
            )
            yield f"put {wide} $(add {wide} {place}, {begin}), %sums[{side * (at + 1)}]"


def rows(first: int, reductions: Sequence[Reduction], block: int, side: int) -> Iterator[str]:
    """Yield the functions around the bodies of a region.

    `first` is the number of places before those of the reductions. `block` is the number of
    elements above which a reduced row is halved. `side` is the number of rows side by side.
    """
    places = first + len(reductions)
    names = {"args": ARGS, "places": places, "words": places + 1, "P": f"<{places} x i64>"}
    several = [each.extreme for each in reductions if each.is_place]
    for each in {each.function: each for each in (*several, *reductions)}.values():
        long = "$(icmp ugt i64 %upper, 128)" if each.is_sum else "false"
        yield _halves(each.function, "ptr %x", long, each.leaf(), [each])
    long = f"$(icmp ugt i64 %n, {block})" if reductions else "false"
    yield _halves("tree", ARGS, long, _BODY, reductions)
    yield _ADDRESS.format(**names)
    several = ""
    if side > 1:
        most = 128 if any(each.is_sum for each in reductions) else 1 << 30
        long = f"$(icmp ugt i64 %n, {most})"
        leaf = f"  call void @bodies({ARGS}, i64 %begin, i64 %n, ptr %sums)"
        yield _halves("trees", ARGS, long, leaf, reductions, side)
        several = _several(first, reductions, places, side)
    choice = "  br label %single"
    if several:
        fits = f"$(icmp ule i64 $(mul i64 %unit, {side}), %left)"
        if not reductions:
            fits = f"$(and i1 {fits}, $(icmp ult i64 %unit, {NATIVE_VECTOR}))"
        choice = (
            f"  %both = and i1 $(icmp eq i64 %part, 0), {fits}\n"
            "  br i1 %both, label %several, label %single"
        )
    yield _KERNEL.format(
        **names,
        steps=places + 2,
        count=2 * (places + 1),
        step=2 * (places + 1) + 1,
        now=side * places,
        sums=max(1, side * offsets(reductions)[-1]),
        choice=choice,
        several=several,
        elements=", [ %elements, %together ]" if several else "",
        no_others=", [ %rest, %together ]" if several else "",
        finished="\n".join(
            _finish(at, first + k, each)
            for k, (at, each) in enumerate(zip(offsets(reductions), reductions, strict=False))
        ),
    )


def _several(first: int, reductions: Sequence[Reduction], places: int, side: int) -> str:
    """Return the part of the kernel for rows side by side, whose addresses follow one another."""
    addresses: list[str] = []
    for k in range(side):
        element = f"$(add i64 %a, $(mul i64 %unit, {k}))"
        to = f"$(getelementptr i64, ptr %now, i64 {k * places})"
        addresses.append(f"  call void @address(ptr %record, i64 {element}, ptr {to})")
    lines: list[str] = []
    for k, (at, each) in enumerate(zip(offsets(reductions), reductions, strict=False)):
        kind, result_type = each.kinds(side), "i64" if each.is_place else each.kind
        if each.is_place:
            kind, total = f"<{side} x i64>", f"$(get <{side} x i64>, %sums[{side * (at + 1)}])"
        else:
            total = total_of(each, f"$(get {kind}, %sums[{side * at}])", "%lengths", side)
        lines.append(f"  %all{k} = freeze {kind} {total}")
        for row in range(side):
            result = f"$(extractelement {kind} %all{k}, i64 {row})"
            to = f"$(get ptr, %now[{row * places + first + k}])"
            lines.append(f"  store {result_type} {result}, ptr {to}, align 1")
    equally = ["  store {P} %row0, ptr %now, align 8"]
    for k in range(1, side):
        to = f"$(getelementptr i64, ptr %now, i64 {k * places})"
        equally.append(f"  %row{k} = add {{P}} %row{k - 1}, %by_row")
        equally.append(f"  store {{P}} %row{k}, ptr {to}, align 8")
    kind = f"<{places} x i64>"
    return _SEVERAL.format(
        args=ARGS,
        side=side,
        places=places,
        P=kind,
        count=2 * (places + 1),
        step=2 * (places + 1) + 1,
        last=(side - 1) * places,
        addresses="\n".join(addresses),
        equally="\n".join(equally).replace("{P}", kind),
        finished="\n".join(lines),
    )


def body_of_several(
    reductions: Sequence[Reduction], eights: VectorCode, ones: VectorCode
) -> Iterator[str]:
    """Yield the body for rows side by side, after its entry block.

    `eights` are the instructions on eight elements of each row, from element %at8 on, `ones` those
    on element %at1 of each row, both with the names of the vectors to reduce. They may branch, so
    the last block of a loop has a label of its own. The last eight elements of a row may overlap
    those before; a sum then adds one by one those that it has not added yet. Rows of fewer than
    eight elements are computed element by element.
    """
    both, side, lanes = list(enumerate(reductions)), NATIVE_SIDE, 8 * NATIVE_SIDE
    sums = [(k, each) for k, each in both if each.is_sum]
    yield "br i1 $(icmp ult i64 %n, 8), label %one, label %eight\neight:"
    yield "%i8 = phi i64 [ 0, %entry ], [ %next8, %last8 ]"
    yield from _phis(both, lanes, "%a", "%y", "entry", "last8")
    yield "%offset8 = call i64 @llvm.umin(i64 %i8, i64 $(sub i64 %n, 8))"
    yield from ("%at8 = add i64 %begin, %offset8", *eights.lines, "br label %last8\nlast8:")
    yield "%next8 = add i64 %i8, 8"
    for k, each in both:
        yield from each.step(f"%y{k}p", f"%a{k}p", eights.names[k], "%offset8", lanes)
    yield "br i1 $(icmp ult i64 %next8, %n), label %eight, label %lanes\nlanes:"
    if sums:
        yield "%rest = and i64 %n, 7"
        yield "%is_whole = icmp eq i64 %rest, 0"
    for k, each in sums:
        kind = each.kinds(lanes)
        yield f"%s{k}p0 = select i1 %is_whole, {kind} %y{k}p0, {kind} %a{k}p0"
    for k, each in both:
        state = f"%{'s' if each.is_sum else 'y'}{k}p"
        yield from each.across_lanes(f"%l{k}p", state, lanes, side)
    yield from _rest(sums, eights.names)
    yield "one:"
    yield "%i1 = phi i64 [ 0, %entry ], [ %next1, %last1 ]"
    yield from _phis(both, side, "%t", "%u", "entry", "last1")
    yield "br i1 $(icmp ult i64 %i1, %n), label %more, label %ones\nmore:"
    yield from ("%at1 = add i64 %begin, %i1", *ones.lines, "br label %last1\nlast1:")
    for k, each in both:
        yield from each.step(f"%u{k}p", f"%t{k}p", ones.names[k], "%i1", side)
    yield "%next1 = add i64 %i1, 1\nbr label %one\nones:"
    for k, each in both:
        yield from each.across_lanes(f"%o{k}p", f"%t{k}p", side, side)
    yield "br label %exit\nexit:"
    for k, each in both:
        for p, kind in enumerate(each.results(side)):
            sources = [f"[ %o{k}p{p}, %ones ]", f"[ %l{k}p{p}, %lanes ]"]
            if sums:
                sources.append(f"[ {f'%f{k}p7' if each.is_sum else f'%l{k}p{p}'}, %add7 ]")
            yield f"%e{k}p{p} = phi {kind} {', '.join(sources)}"
    for at, (k, each) in zip(offsets(reductions), both, strict=False):
        yield from each.puts(at, f"%e{k}p", side)
    yield "ret void\n}"


def _rest(sums: Sequence[tuple[int, Reduction]], names: Sequence[str]) -> Iterator[str]:
    """Yield the code after block `lanes` that adds the %rest last of eight elements, one by one.

    `names` are the vectors of the last eight elements of each row. The code jumps to the first of
    them that is not yet in the sums.
    """
    if not sums:
        yield "br label %exit"
        return
    side = NATIVE_SIDE
    starts = " ".join(f"i64 {8 - number}, label %add{number}" for number in range(1, 8))
    yield f"switch i64 %rest, label %exit [ {starts} ]"
    for number in range(1, 8):
        yield f"add{number}:"
        before = [f"%{'l' if number == 1 else 'b'}{k}p{number - 1}" for k, _ in sums]
        for (k, each), total in zip(sums, before, strict=True):
            if number > 1:
                sources = f"[ %l{k}p0, %lanes ], [ %f{k}p{number - 1}, %add{number - 1} ]"
                yield f"{total} = phi {each.kinds(side)} {sources}"
        places = ", ".join(f"i32 {8 * row + number}" for row in range(side))
        for (k, each), total in zip(sums, before, strict=True):
            kind = each.kinds(8 * side)
            vectors = f"{kind} {names[k]}, {kind} poison"
            element = f"$(shufflevector {vectors}, <{side} x i32> <{places}>)"
            yield f"%f{k}p{number} = {each.join(total, element, side)}"
        yield f"br label {f'%add{number + 1}' if number < 7 else '%exit'}"


def _phis(
    reductions: Sequence[tuple[int, Reduction]],
    lanes: int,
    state: str,
    following: str,
    entry: str,
    last: str,
) -> Iterator[str]:
    """Yield the registers of a loop at the start of its block."""
    for k, each in reductions:
        for p, (kind, start) in enumerate(each.registers(lanes)):
            sources = f"[ {start}, %{entry} ], [ {following}{k}p{p}, %{last} ]"
            yield f"{state}{k}p{p} = phi {kind} {sources}"


def _neighbours(kind: str, vector: str, n: int) -> Iterator[str]:
    """Yield the `n` lanes of a vector with even numbers, and then those with odd numbers."""
    for first in (0, 1):
        mask = ", ".join(f"i32 {number}" for number in range(first, 2 * n, 2))
        yield f"$(shufflevector {kind} {vector}, {kind} poison, <{n} x i32> <{mask}>)"


def _pairs(kind: str, add: str) -> Iterator[str]:
    """Yield the instructions that add neighbouring lanes of %a and %b until each has one lane."""
    x, y = "%a", "%b"
    for n in (8, 4, 2):
        both = f"<{min(8, 2 * n)} x {kind}>"
        masks = [", ".join(f"i32 {k}" for k in range(first, 2 * n, 2)) for first in (0, 1)]
        lanes = [f"$(shufflevector {both} {x}, {both} {y}, <{n} x i32> <{mask}>)" for mask in masks]
        yield f"  %v{n} = {add} <{n} x {kind}> {', '.join(lanes)}"
        x, y = f"%v{n}", "poison"


def _halves(
    of: str, args: str, long: str, leaf: str, reductions: Sequence[Reduction], side: int = 1
) -> str:
    """Return a recursive function that reduces: the results of two halves for long rows, or a leaf.

    `long` is the condition for halving, and `side` the number of rows that it reduces.
    """
    places = offsets(reductions)
    joins = [
        line
        for at, each in zip(places, reductions, strict=False)
        for line in each.joins(side * at, side)
    ]
    names = {"of": of, "args": args, "long": long, "leaf": leaf}
    return _HALVES.format(**names, count=side * places[-1], added="\n".join(joins))


def _finish(k: int, place: int, reduction: Reduction) -> str:
    """Return the code that finishes and stores a reduction."""
    if reduction.is_place:
        return f"  store i64 $(get i64, %sums[{k + 1}]), ptr $(get ptr, %now[{place}]), align 1"
    total = total_of(reduction, f"$(get {reduction.kind}, %sums[{k}])", "%divisor", 1)
    return f"  store {reduction.kind} {total}, ptr $(get ptr, %now[{place}]), align 1"


def total_of(reduction: Reduction, total: str, divisor: str, lanes: int) -> str:
    """Return the result of a reduction, or of several, from what `tree` leaves, as NumPy does.

    NumPy's sum starts from 0, so it is never -0.0.
    """
    if reduction.is_sum:
        zero = reduction.zero.strip("-")
        zero = zero if lanes == 1 else f"splat ({reduction.kind} {zero})"
        total = f"$({reduction.join(total, zero, lanes)})"
    return mean_of(reduction, total, divisor, lanes) if reduction.name == "mean" else total


def mean_of(reduction: Reduction, total: str, divisor: str, lanes: int = 1) -> str:
    """Return the quotient of a sum, or of several, and a number in double precision."""
    kind, double = reduction.kinds(lanes), "double" if lanes == 1 else f"<{lanes} x double>"
    if kind == double:
        return f"$(fdiv {double} {total}, {divisor})"
    wide = f"$(fdiv {double} $(fpext {kind} {total} to {double}), {divisor})"
    return f"$(fptrunc {double} {wide} to {kind})"


def _adding(kind: str) -> tuple[str, str]:
    """Return the addition instruction of an LLVM type, and its neutral element."""
    return ("fadd", "-0.0") if kind in ("float", "double") else ("add", "0")
