"""The iteration of a kernel over rows: the functions of its module that every region shares.

`kernel` computes the address of each row of each operand. `tree` halves a row that is summed, and
calls the body of the region: the body by vectors, or the body by elements if there are fewer
elements than a vector has. Sums have NumPy's pairwise order: NumPy halves a row down to 128
elements, which it adds in eight lanes (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum).
`StrideLayout` defines the record of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.program.cost_model import NATIVE_VECTOR

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

_KERNEL = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  put i64 1, %context[-1]
  %now = alloca [{places} x i64], align 64
  %sums = alloca [{sums} x i64], align 16
  %bases = get {P}, %record[0]
  %axes = get i64, %record[{places}]
  %outer = getelementptr i64, ptr %record, i64 {words}
  %unit = get i64, %outer[0]
  %strides = getelementptr i64, ptr %outer, i64 1
  br i1 $(icmp ult i64 %first, %end), label %row, label %exit
row:
  %a = phi i64 [ %first, %entry ], [ %next, %ready ]
  br label %axis
axis:
  %d = phi i64 [ 0, %row ], [ %d1, %axis ]
  %q = phi i64 [ %a, %row ], [ %q1, %axis ]
  %at = phi {P} [ %bases, %row ], [ %at1, %axis ]
  %size = get i64, %outer[$(mul i64 %d, {words})]
  %steps = get {P}, %size_at[1]
  %q1 = udiv i64 %q, %size
  %index = bitcast i64 $(urem i64 %q, %size) to <1 x i64>
  %indices = shufflevector <1 x i64> %index, <1 x i64> poison, <{places} x i32> zeroinitializer
  %at1 = add {P} %at, $(mul {P} %steps, %indices)
  %d1 = add i64 %d, 1
  br i1 $(icmp ult i64 %d1, %axes), label %axis, label %ready
ready:
  store {P} %at1, ptr %now, align 64
  %room = sub i64 %unit, $(urem i64 %a, %unit)
  %left = sub i64 %end, %a
  %n = call i64 @llvm.umin(i64 %room, i64 %left)
  call void @tree({args}, i64 0, i64 %n, ptr %sums)
  %is_whole = icmp eq i64 %n, %unit
  %divisor_i = select i1 %is_whole, i64 %unit, i64 1  ; parts of a row are divided when added up
  %divisor = sitofp i64 %divisor_i to double
{finished}
  %next = add i64 %a, %n
  br i1 $(icmp ult i64 %next, %end), label %row, label %exit
exit:
  ret void
}}"""


def rows(first: int, sums: Sequence[tuple[str, bool]], block: int) -> Iterator[str]:
    """Yield the functions around the bodies of a region.

    `first` is the number of places before those of the sums. `sums` has, for each sum, the LLVM
    type and whether the sum of a whole row is divided by its number of elements. `block` is the
    number of elements above which a summed row is halved.
    """
    places = first + len(sums)
    full = f"<{places} x i64>"
    kinds = [kind for kind, _ in sums]
    for kind in dict.fromkeys(kinds):
        add, zero = _adding(kind)
        leaf = _EIGHTS.format(T=kind, add=add, zero=zero, pairs="\n".join(_pairs(kind, add)))
        yield _halves(f"sum_{kind}", "ptr %x", "$(icmp ugt i64 %upper, 128)", leaf, [kind])
    long = f"$(icmp ugt i64 %n, {block})" if sums else "false"
    yield _halves("tree", ARGS, long, _BODY, kinds)
    yield _KERNEL.format(
        args=ARGS,
        places=places,
        words=places + 1,
        sums=max(1, len(sums)),
        P=full,
        finished="\n".join(_finish_sum(k, first + k, *sum_) for k, sum_ in enumerate(sums)),
    )


def _pairs(kind: str, add: str) -> Iterator[str]:
    """Yield the instructions that add neighbouring lanes of %a and %b until each has one lane."""
    x, y = "%a", "%b"
    for n in (8, 4, 2):
        both = f"<{min(8, 2 * n)} x {kind}>"
        masks = [", ".join(f"i32 {k}" for k in range(first, 2 * n, 2)) for first in (0, 1)]
        lanes = [f"$(shufflevector {both} {x}, {both} {y}, <{n} x i32> <{mask}>)" for mask in masks]
        yield f"  %v{n} = {add} <{n} x {kind}> {', '.join(lanes)}"
        x, y = f"%v{n}", "poison"


def _halves(of: str, args: str, long: str, leaf: str, kinds: Sequence[str]) -> str:
    """Return a recursive function that sums: the sums of two halves for long rows, else a leaf.

    `kinds` are the LLVM types of the sums, and `long` is the condition for halving.
    """
    additions: list[str] = []
    for k, kind in enumerate(kinds):
        both = f"$(get {kind}, %sums[{k}]), $(get {kind}, %right[{k}])"
        additions.append(f"  put {kind} $({_adding(kind)[0]} {kind} {both}), %sums[{k}]")
    names = {"of": of, "args": args, "long": long, "leaf": leaf}
    return _HALVES.format(**names, count=len(kinds), added="\n".join(additions))


def _finish_sum(k: int, place: int, kind: str, mean: bool) -> str:
    """Return the code that finishes and stores a sum as NumPy does.

    NumPy's sum starts from 0, so it is never -0.0. A mean divides in double precision.
    """
    add, zero = _adding(kind)
    total = f"$({add} {kind} $(get {kind}, %sums[{k}]), {zero.strip('-')})"
    if mean and kind == "double":
        total = f"$(fdiv double {total}, %divisor)"
    elif mean:
        wide = f"$(fdiv double $(fpext {kind} {total} to double), %divisor)"
        total = f"$(fptrunc double {wide} to {kind})"
    return f"  store {kind} {total}, ptr $(get ptr, %now[{place}]), align 1"


def _adding(kind: str) -> tuple[str, str]:
    """Return the addition instruction of an LLVM type, and its neutral element."""
    return ("fadd", "-0.0") if kind in ("float", "double") else ("add", "0")
