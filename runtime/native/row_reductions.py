"""Reductions of rows in LLVM assembly: the code that joins elements, lanes, and parts of a row.

Sums have NumPy's pairwise order: NumPy halves a row down to 128 elements, which it adds in eight
lanes (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum). The other reductions have the same
result in any order: maxima and minima are those of IEEE 754-2019, 9.6, with 0.0 above -0.0, and
`argmax` and `argmin` give the first NaN, or the first place of the greatest or least value, where
the zeros are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from graphir.runtime.native.assembly import lane
from graphir.runtime.program.codegen.tracing import Storage

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

PLACES = {"argmax": "max", "argmin": "min"}
"""The reductions to places, and those that find the elements there."""


def offsets(reductions: Sequence[Reduction]) -> list[int]:
    """Return the first word of each reduction in the results, and the number of words."""
    return [0, *accumulate(reduction.words for reduction in reductions)]


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
    def kind(self) -> str:
        """The LLVM type of an element."""
        return lane(self.dtype)

    @property
    def function(self) -> str:
        """The name of the function that reduces contiguous elements."""
        return f"sum_{self.kind}" if self.is_sum else f"{self.name}_{self.dtype.char}"

    @property
    def zero(self) -> str:
        """The neutral element of a sum, or of a maximum or minimum of integers."""
        if self.is_sum:
            return _adding(self.kind)[1]
        limits = np.iinfo(self.dtype)
        return str(limits.min if "max" in self._intrinsic else limits.max)

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
    def _intrinsic(self) -> str:
        """The name of LLVM's maximum or minimum of two elements."""
        if self.name in ("any", "all"):
            return "umax" if self.name == "any" else "umin"
        name = PLACES.get(self.name, self.name)
        prefix, suffix = {"f": ("", "imum"), "i": ("s", ""), "u": ("u", "")}[self.dtype.kind]
        return f"{prefix}{name}{suffix}"

    def leaf_of_sum(self) -> str:
        """Return the code of a sum for at most a block of elements."""
        add, zero = _adding(self.kind)
        pairs = "\n".join(_pairs(self.kind, add))
        return _EIGHTS.format(T=self.kind, add=add, zero=zero, pairs=pairs)

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
        x, y, of = f"%left{at}p", f"%right{at}p", self.keys
        kinds = of.kinds(side), "i64" if side == 1 else f"<{side} x i64>"
        words = at, at + side
        for half, name in (("%sums", x), ("%right", y)):
            for p, (kind, word) in enumerate(zip(kinds, words, strict=True)):
                yield f"  {name}{p} = get {kind}, {half}[{word}]"
        yield from of._first_of(f"%best{at}p", x, y, kinds)
        for p, (kind, word) in enumerate(zip(kinds, words, strict=True)):
            yield f"  put {kind} %best{at}p{p}, %sums[{word}]"

    def _is_better(self, x: str, y: str, kind: str) -> str:
        """Return the condition on which `argmax` or `argmin` prefers the key `y`."""
        order = "gt" if self.name == "argmax" else "lt"
        return f"icmp {'u' if self.dtype.kind == 'u' else 's'}{order} {kind} {y}, {x}"

    def _first_of(
        self, to: str, x: str, y: str, kinds: Sequence[str], is_later: bool = True
    ) -> Iterator[str]:
        """Yield the code that leaves the better of two keys, and its place, in registers `to`.

        Of equal keys it leaves the one with the lower place: `x` if every `y` is later.
        """
        value, place = kinds
        truth = value.replace(self.kind, "i1")
        yield f"  {to}b = {self._is_better(f'{x}0', f'{y}0', value)}"
        if not is_later:
            equal, first = f"$(icmp eq {value} {x}0, {y}0)", f"$(icmp ult {place} {y}1, {x}1)"
            yield f"  {to}c = or {truth} {to}b, $(and {truth} {equal}, {first})"
        for p, kind in enumerate(kinds):
            condition = f"{truth} {to}{'b' if is_later else 'c'}"
            yield f"  {to}{p} = select {condition}, {kind} {y}{p}, {kind} {x}{p}"

    # -- rows whose values and places are in registers

    @property
    def keys(self) -> Reduction:
        """The reduction of what a loop has in registers in place of elements.

        Maxima and minima of floats, and their places, are those of integers in the same order (see
        `_key`), since the code of llvm.maximum takes several times as long.
        """
        is_ordered = self.dtype.kind == "f" and not self.is_sum
        return Reduction(self.name, np.dtype(f"i{self.dtype.itemsize}")) if is_ordered else self

    def _key(self, to: str, y: str, lanes: int) -> Iterator[str]:
        """Yield the code for the keys of elements, integers of the same order.

        A key is the bits of a float; all but the sign are inverted if that is set. NaN has the key
        that is preferred to all others. Where places are sought, both zeros have one key.
        """
        kind, of = self.kinds(lanes), self.keys
        if of is self:
            yield f"{to} = freeze {kind} {y}"
            return
        keys, limits = of.kinds(lanes), np.iinfo(of.dtype)
        x = f"$(fadd {kind} {y}, splat ({self.kind} 0.0))" if self.is_place else y
        yield f"{to}b = bitcast {kind} {x} to {keys}"
        yield from self._inverted(f"{to}r", f"{to}b", lanes)
        least = limits.max if "max" in self.name else limits.min
        nan = f"<{lanes} x i1> $(fcmp uno {kind} {y}, {y}), {keys} splat ({of.kind} {least})"
        yield f"{to} = select {nan}, {keys} {to}r"

    def _inverted(self, to: str, bits: str, lanes: int) -> Iterator[str]:
        """Yield the code for keys of the bits of floats, or for the bits of keys."""
        of, keys = self.keys, self.keys.kinds(lanes)
        numbers = [str(8 * of.dtype.itemsize - 1), str(np.iinfo(of.dtype).max)]
        if lanes > 1:
            numbers = [f"splat ({of.kind} {number})" for number in numbers]
        sign = f"$(ashr {keys} {bits}, {numbers[0]})"
        yield f"{to} = xor {keys} {bits}, $(and {keys} {sign}, {numbers[1]})"

    def registers(self, lanes: int) -> Sequence[tuple[str, str]]:
        """Return the LLVM types of the registers that a loop reduces, and what they start from.

        They are the key of the best element of a lane, or the sum; and of places the number of the
        first element of its vector.
        """
        keys = self.keys
        value = keys.kinds(lanes), f"splat ({keys.kind} {keys.zero})"
        if not self.is_place:
            return [value]
        place = self._place if lanes == 1 else f"<{lanes} x {self._place}>"
        return value, (place, "zeroinitializer")

    def phis(self, state: str, following: str, lanes: int, entry: str, last: str) -> Iterator[str]:
        """Yield the registers `state` of a loop at the start of its block.

        They follow the block `entry` or, as registers `following`, the block `last`.
        """
        for p, (kind, start) in enumerate(self.registers(lanes)):
            yield f"{state}{p} = phi {kind} [ {start}, %{entry} ], [ {following}{p}, %{last} ]"

    @property
    def _place(self) -> str:
        """The LLVM type of a place in registers, as wide as an element."""
        return f"i{max(32, 8 * self.dtype.itemsize)}"

    def step(self, to: str, state: str, y: str, at: str, lanes: int) -> Iterator[str]:
        """Yield the code for registers `to`, of registers `state` and a vector of elements.

        `at` is the number of the first element in the row. The names of registers end with numbers.
        """
        yield from self._key(f"{to}y0", y, lanes)
        if not self.is_place:
            yield f"{to}0 = {self.keys.join(f'{state}0', f'{to}y0', lanes)}"
            return
        kinds = [kind for kind, _ in self.registers(lanes)]
        place = f"trunc i64 {at} to {self._place}" if self._place != "i64" else f"add i64 {at}, 0"
        start = f"$(insertelement {kinds[1]} poison, {self._place} $({place}), i64 0)"
        zeros = f"<{lanes} x i32> zeroinitializer"
        yield f"{to}y1 = shufflevector {kinds[1]} {start}, {kinds[1]} poison, {zeros}"
        yield from self.keys._first_of(to, state, f"{to}y", kinds)

    def across_lanes(self, to: str, state: str, lanes: int, side: int) -> Iterator[str]:
        """Yield the code that reduces registers of `lanes` lanes to the results of `side` rows."""
        if not self.is_place:
            of = self.keys
            yield f"{to}l{lanes} = freeze {of.kinds(lanes)} {state}0"
            while lanes > side:
                lanes //= 2
                even, odd = _neighbours(of.kinds(2 * lanes), f"{to}l{2 * lanes}", lanes)
                yield f"{to}l{lanes} = {of.join(even, odd, lanes)}"
            if of is not self:
                yield from self._inverted(f"{to}bits", f"{to}l{side}", side)
                yield f"{to}0 = bitcast {of.kinds(side)} {to}bits to {self.kinds(side)}"
            else:
                yield f"{to}0 = freeze {of.kinds(side)} {to}l{side}"
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
            wide, narrow = "i64" if side == 1 else f"<{side} x i64>", self.results(side)[1]
            widen = f"zext {narrow} {state}1 to {wide}" if wide != narrow else ""
            place, begin = f"$({widen})" if widen else f"{state}1", "%begin"
            if side > 1:
                start = f"{wide} $(insertelement {wide} poison, i64 %begin, i64 0)"
                mask = f"<{side} x i32> zeroinitializer"
                begin = f"$(shufflevector {start}, {wide} poison, {mask})"
            yield f"put {wide} $(add {wide} {place}, {begin}), %sums[{side * (at + 1)}]"


def _neighbours(kind: str, vector: str, n: int) -> Iterator[str]:
    """Yield the `n` lanes of a vector with even numbers, and then those with odd numbers."""
    for first in (0, 1):
        if n == 1:
            yield f"$(extractelement {kind} {vector}, i64 {first})"
            continue
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
