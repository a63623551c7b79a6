"""The loop of a kernel over rows: the functions of its module that every region shares.

`kernel` computes the address of each row of each operand. `tree` halves a row that is reduced, and
calls the body of the region: the body by vectors, or the body by elements if there are fewer
elements than a vector has. `trees` does so for NATIVE_SIDE rows side by side, whose body reduces
its values in registers: a vector has eight lanes of each row. The rows may have any length.
`StrideLayout` defines the record of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphir.runtime.native.row_reductions import Reduction, offsets, total_of
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


class VectorCode(NamedTuple):
    """Straight-line code, and the names of vectors that it computes."""

    lines: Sequence[str]
    names: Sequence[str]


def rows(first: int, reductions: Sequence[Reduction], block: int, side: int) -> Iterator[str]:
    """Yield the functions around the bodies of a region.

    `first` is the number of places before those of the reductions. `block` is the number of
    elements above which a reduced row is halved. `side` is the number of rows side by side.
    """
    places = first + len(reductions)
    names = {"args": ARGS, "places": places, "words": places + 1, "P": f"<{places} x i64>"}
    for reduction in {reduction.function: reduction for reduction in reductions}.values():
        long = "$(icmp ugt i64 %upper, 128)" if reduction.is_sum else "false"
        leaf = reduction.leaf_of_sum() if reduction.is_sum else "\n".join(_leaf(reduction))
        yield _halves(reduction.function, "ptr %x", long, leaf, [reduction])
    long = f"$(icmp ugt i64 %n, {block})" if reductions else "false"
    yield _halves("tree", ARGS, long, _BODY, reductions)
    yield _ADDRESS.format(**names)
    several = ""
    if side > 1:
        longest = 128 if any(reduction.is_sum for reduction in reductions) else 1 << 30
        long = f"$(icmp ugt i64 %n, {longest})"
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
            _finish(at, first + k, reduction)
            for k, (at, reduction) in enumerate(zip(offsets(reductions), reductions, strict=False))
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
    for k, (at, reduction) in enumerate(zip(offsets(reductions), reductions, strict=False)):
        kind, result_type = reduction.kinds(side), "i64" if reduction.is_place else reduction.kind
        if reduction.is_place:
            kind, total = f"<{side} x i64>", f"$(get <{side} x i64>, %sums[{side * (at + 1)}])"
        else:
            total = total_of(reduction, f"$(get {kind}, %sums[{side * at}])", "%lengths", side)
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


class LoopShape(NamedTuple):
    """The vectors of loops that reduce rows: `length` elements of each of `side` rows.

    Fewer elements come one by one, in vectors of `few` lanes. The loops follow the block `entry`.
    """

    entry: str
    length: int
    side: int
    few: int


SEVERAL = LoopShape("entry", 8, NATIVE_SIDE, NATIVE_SIDE)
"""The loops of rows side by side."""

_ALONE = LoopShape("leaf", 64, 1, 2)
"""The loops of contiguous elements, in any order."""


def _leaf(reduction: Reduction) -> Iterator[str]:
    """Yield the code of a reduction in any order for at most a block of elements."""
    kind, vector = reduction.kind, reduction.kinds(_ALONE.length)
    load = f"%y = load {vector}, ptr $(getelementptr {kind}, ptr %x, i64 %offset8), align 1"
    element = f"load <1 x {kind}>, ptr $(getelementptr {kind}, ptr %x, i64 %i1), align 1"
    mask = f"<{_ALONE.few} x i32> zeroinitializer"
    repeated = f"%z = shufflevector <1 x {kind}> $({element}), <1 x {kind}> poison, {mask}"
    yield from loops_of(
        [reduction], VectorCode([load], ["%y"]), VectorCode([repeated], ["%z"]), _ALONE
    )


def loops_of(
    reductions: Sequence[Reduction], eights: VectorCode, ones: VectorCode, shape: LoopShape
) -> Iterator[str]:
    """Yield the loops that reduce rows, and the stores of the results.

    `eights` are the instructions on `shape.length` elements of each row, from element %at8 on,
    `ones` those on element %at1 of each row, both with the names of the vectors to reduce. They may
    branch, so the last block of a loop has a label of its own. The last elements of a row may
    overlap those before; a sum, of eight elements, then adds one by one those that it has not added
    yet. Rows of fewer elements are computed element by element.
    """
    both, (entry, length, side, few) = list(enumerate(reductions)), shape
    lanes = length * side
    sums = [(k, reduction) for k, reduction in both if reduction.is_sum]
    yield f"br i1 $(icmp ult i64 %n, {length}), label %one, label %eight\neight:"
    yield f"%i8 = phi i64 [ 0, %{entry} ], [ %next8, %last8 ]"
    for k, reduction in both:
        yield from reduction.phis(f"%a{k}p", f"%y{k}p", lanes, entry, "last8")
    yield f"%offset8 = call i64 @llvm.umin(i64 %i8, i64 $(sub i64 %n, {length}))"
    yield from ("%at8 = add i64 %begin, %offset8", *eights.lines, "br label %last8\nlast8:")
    yield f"%next8 = add i64 %i8, {length}"
    for k, reduction in both:
        yield from reduction.step(f"%y{k}p", f"%a{k}p", eights.names[k], "%offset8", lanes)
    yield "br i1 $(icmp ult i64 %next8, %n), label %eight, label %lanes\nlanes:"
    if sums:
        yield "%rest = and i64 %n, 7"
        yield "%is_whole = icmp eq i64 %rest, 0"
    for k, reduction in sums:
        kind = reduction.kinds(lanes)
        yield f"%s{k}p0 = select i1 %is_whole, {kind} %y{k}p0, {kind} %a{k}p0"
    for k, reduction in both:
        state = f"%{'s' if reduction.is_sum else 'y'}{k}p"
        yield from reduction.across_lanes(f"%l{k}p", state, lanes, side)
    yield from _rest(sums, eights.names)
    yield "one:"
    yield f"%i1 = phi i64 [ 0, %{entry} ], [ %next1, %last1 ]"
    for k, reduction in both:
        yield from reduction.phis(f"%t{k}p", f"%u{k}p", few, entry, "last1")
    yield "br i1 $(icmp ult i64 %i1, %n), label %more, label %ones\nmore:"
    yield from ("%at1 = add i64 %begin, %i1", *ones.lines, "br label %last1\nlast1:")
    for k, reduction in both:
        yield from reduction.step(f"%u{k}p", f"%t{k}p", ones.names[k], "%i1", few)
    yield "%next1 = add i64 %i1, 1\nbr label %one\nones:"
    for k, reduction in both:
        yield from reduction.across_lanes(f"%o{k}p", f"%t{k}p", few, side)
    yield "br label %exit\nexit:"
    for k, reduction in both:
        for p, kind in enumerate(reduction.results(side)):
            sources = [f"[ %o{k}p{p}, %ones ]", f"[ %l{k}p{p}, %lanes ]"]
            if sums:
                sources.append(f"[ {f'%f{k}p7' if reduction.is_sum else f'%l{k}p{p}'}, %add7 ]")
            yield f"%e{k}p{p} = phi {kind} {', '.join(sources)}"
    for at, (k, reduction) in zip(offsets(reductions), both, strict=False):
        yield from reduction.puts(at, f"%e{k}p", side)


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
        for (k, reduction), total in zip(sums, before, strict=True):
            if number > 1:
                sources = f"[ %l{k}p0, %lanes ], [ %f{k}p{number - 1}, %add{number - 1} ]"
                yield f"{total} = phi {reduction.kinds(side)} {sources}"
        places = ", ".join(f"i32 {8 * row + number}" for row in range(side))
        for (k, reduction), total in zip(sums, before, strict=True):
            kind = reduction.kinds(8 * side)
            vectors = f"{kind} {names[k]}, {kind} poison"
            element = f"$(shufflevector {vectors}, <{side} x i32> <{places}>)"
            yield f"%f{k}p{number} = {reduction.join(total, element, side)}"
        yield f"br label {f'%add{number + 1}' if number < 7 else '%exit'}"


def _halves(
    of: str, args: str, long: str, leaf: str, reductions: Sequence[Reduction], side: int = 1
) -> str:
    """Return a recursive function that reduces: the results of two halves for long rows, or a leaf.

    `long` is the condition for halving, and `side` the number of rows that it reduces.
    """
    places = offsets(reductions)
    joins = [
        line
        for at, reduction in zip(places, reductions, strict=False)
        for line in reduction.joins(side * at, side)
    ]
    names = {"of": of, "args": args, "long": long, "leaf": leaf}
    return _HALVES.format(**names, count=side * places[-1], added="\n".join(joins))


def _finish(k: int, place: int, reduction: Reduction) -> str:
    """Return the code that finishes and stores a reduction."""
    if reduction.is_place:
        return f"  store i64 $(get i64, %sums[{k + 1}]), ptr $(get ptr, %now[{place}]), align 1"
    total = total_of(reduction, f"$(get {reduction.kind}, %sums[{k}])", "%divisor", 1)
    return f"  store {reduction.kind} {total}, ptr $(get ptr, %now[{place}]), align 1"
