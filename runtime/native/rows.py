"""How a kernel goes over rows: the parts of its module that are the same for every region.

`kernel` finds where each row of each operand begins, `tree` halves a row that is summed, `range`
takes a body, which is the region's own: by vectors, or by elements where they are fewer. Sums are
NumPy's: of halves, of which those of 128 elements are added in eight lanes
(numpy/_core/src/umath/loops_utils.h.src, pairwise_sum). A record is what Layout says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIDTH = 32
"""The elements of a vector."""

BLOCKS = (1024, 512, 256, 128)
"""The elements of a block, for which what NumPy's loops and sums read is kept on the stack."""

_ARGS = "ptr %now, ptr %strides, ptr %context"

_HALVES = """
define internal void @{of}({args}, i64 %begin, i64 %n, ptr %sums) {{
entry:
  %others = alloca [{count} x i64], align 16
  %long = icmp ugt i64 %n, {most}
  br i1 %long, label %halves, label %leaf
leaf:
{leaf}
  ret void
halves:
  %half = lshr i64 %n, 1
  %left = and i64 %half, -8
  %right = sub i64 %n, %left
  %middle = add i64 %begin, %left
  call void @{of}({args}, i64 %begin, i64 %left, ptr %sums)
  call void @{of}({args}, i64 %middle, i64 %right, ptr %others)
{added}
  ret void
}}"""

_RANGE = f"  call void @range({_ARGS}, i64 %begin, i64 %n, ptr %sums)"
"""The leaf of `tree`."""

_BODIES = """
define internal void @range({args}, i64 %begin, i64 %n, ptr %sums) {{
  %whole = icmp uge i64 %n, {width}
  %body = select i1 %whole, ptr @body{width}, ptr @body1
  call void %body({args}, i64 %begin, i64 %n, ptr %sums)
  ret void
}}"""

_EIGHTS = """\
  %first = getelementptr {T}, ptr %x, i64 %begin
  %end = and i64 %n, -8
  %any = icmp ne i64 %end, 0
  br i1 %any, label %start, label %joined
start:
  %eight0 = load <8 x {T}>, ptr %first, align 1
  %twice = icmp ugt i64 %end, 8
  br i1 %twice, label %eight, label %joined
eight:
  %i = phi i64 [ 8, %start ], [ %i1, %eight ]
  %r = phi <8 x {T}> [ %eight0, %start ], [ %r1, %eight ]
  %at = getelementptr {T}, ptr %first, i64 %i
  %next = load <8 x {T}>, ptr %at, align 1
  %r1 = {add} <8 x {T}> %r, %next
  %i1 = add i64 %i, 8
  %again = icmp ult i64 %i1, %end
  br i1 %again, label %eight, label %joined
joined:
  %v8 = phi <8 x {T}> [ splat ({T} {zero}), %leaf ], [ %eight0, %start ], [ %r1, %eight ]
  %x4 = shufflevector <8 x {T}> %v8, <8 x {T}> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %y4 = shufflevector <8 x {T}> %v8, <8 x {T}> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %v4 = {add} <4 x {T}> %x4, %y4
  %x2 = shufflevector <4 x {T}> %v4, <4 x {T}> poison, <2 x i32> <i32 0, i32 2>
  %y2 = shufflevector <4 x {T}> %v4, <4 x {T}> poison, <2 x i32> <i32 1, i32 3>
  %v2 = {add} <2 x {T}> %x2, %y2
  %x1 = extractelement <2 x {T}> %v2, i64 0
  %y1 = extractelement <2 x {T}> %v2, i64 1
  %v1 = {add} {T} %x1, %y1
  %some = icmp ult i64 %end, %n
  br i1 %some, label %one, label %exit
one:
  %k = phi i64 [ %end, %joined ], [ %k1, %one ]
  %s = phi {T} [ %v1, %joined ], [ %s1, %one ]
  %p = getelementptr {T}, ptr %first, i64 %k
  %last = load {T}, ptr %p, align 1
  %s1 = {add} {T} %s, %last
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %one, label %exit
exit:
  %sum = phi {T} [ %v1, %joined ], [ %s1, %one ]
  put {T} %sum, %sums[0]"""
"""The leaf of a sum of what lies in memory: eight lanes, added in pairs, then the rest."""

_KERNEL = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  put i64 1, %context[-1]
  %now = alloca [{places} x i64], align 64
  %sums = alloca [{sums} x i64], align 16
  %bases = get {P}, %record[0]
  %strides = getelementptr i64, ptr %record, i64 {places}
  %by = get {P}, %strides[0]
  %sizes = getelementptr i64, ptr %strides, i64 {places}
  %unit = get i64, %sizes[0]
  %axes = get i64, %sizes[1]
  %outer = getelementptr i64, ptr %sizes, i64 2
  %some = icmp ult i64 %first, %end
  br i1 %some, label %row, label %exit
row:
  %a = phi i64 [ %first, %entry ], [ %next, %ready ]
  %r = udiv i64 %a, %unit
  %column = urem i64 %a, %unit
{columns}
  %inside = mul {P} %by, %columns
  %moved = add {P} %bases, %inside
  br label %axis
axis:
  %d = phi i64 [ 0, %row ], [ %d1, %step ]
  %q = phi i64 [ %r, %row ], [ %q1, %step ]
  %at = phi {P} [ %moved, %row ], [ %at1, %step ]
  %is_axis = icmp ult i64 %d, %axes
  br i1 %is_axis, label %step, label %ready
step:
  %word = mul i64 %d, {words}
  %size = get i64, %outer[%word]
  %steps = get {P}, %size_at[1]
  %index = urem i64 %q, %size
  %q1 = udiv i64 %q, %size
{indices}
  %by1 = mul {P} %steps, %indices
  %at1 = add {P} %at, %by1
  %d1 = add i64 %d, 1
  br label %axis
ready:
  store {P} %at, ptr %now, align 64
  %room = sub i64 %unit, %column
  %left = sub i64 %end, %a
  %n = call i64 @llvm.umin.i64(i64 %room, i64 %left)
  call void @{of}({args}, i64 0, i64 %n, ptr %sums)
  %is_whole = icmp eq i64 %n, %unit
  %divisor_i = select i1 %is_whole, i64 %unit, i64 1  ; parts of a row are divided when added up
  %divisor = sitofp i64 %divisor_i to double
{finished}
  %next = add i64 %a, %n
  %again = icmp ult i64 %next, %end
  br i1 %again, label %row, label %exit
exit:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)"""


def rows(first: int, sums: Sequence[tuple[str, bool]], block: int) -> Iterator[str]:
    """The functions around the bodies, for places of which the `first` are no sums.

    `sums` are types, and whether the sum of a whole row is divided by its elements.
    """
    places = first + len(sums)
    full = f"<{places} x i64>"
    yield _BODIES.format(args=_ARGS, width=WIDTH)
    kinds = [kind for kind, _ in sums]
    for kind in dict.fromkeys(kinds):
        add, zero = _adding(kind)
        leaf = _EIGHTS.format(T=kind, add=add, zero=zero)
        yield _halves(f"sum_{kind}", "ptr %x", 128, leaf, [kind])
    if sums:
        yield _halves("tree", _ARGS, block, _RANGE, kinds)
    yield _KERNEL.format(
        args=_ARGS,
        places=places,
        words=places + 1,
        sums=max(1, len(sums)),
        P=full,
        columns="\n".join(splat("%columns", "%column", "i64", places)),
        indices="\n".join(splat("%indices", "%index", "i64", places)),
        of="tree" if sums else "range",
        finished="\n".join(
            line for k, one in enumerate(sums) for line in _finished(k, first + k, *one)
        ),
    )


def _halves(of: str, args: str, most: int, leaf: str, kinds: Sequence[str]) -> str:
    """Sums, of these types, of more than so many elements as those of halves, else of a leaf."""
    added = [
        f"%x{k} = get {kind}, %sums[{k}]\n%y{k} = get {kind}, %others[{k}]\n"
        f"%z{k} = {_adding(kind)[0]} {kind} %x{k}, %y{k}\nput {kind} %z{k}, %sums[{k}]"
        for k, kind in enumerate(kinds)
    ]
    names = {"of": of, "args": args, "most": most, "leaf": leaf}
    return _HALVES.format(**names, count=len(kinds), added="\n".join(added))


def _finished(k: int, place: int, kind: str, mean: bool) -> Iterator[str]:
    """A sum as NumPy has it: it begins with 0, so that none is -0.0; means divide in double."""
    add, zero = _adding(kind)
    steps = [f"{add} {kind} {{}}, {zero.strip('-')}"]
    if mean and kind == "double":
        steps += ["fdiv double {}, %divisor"]
    elif mean:
        steps += [f"fpext {kind} {{}} to double", "fdiv double {}, %divisor"]
        steps += [f"fptrunc double {{}} to {kind}"]
    yield f"%s{k}_0 = get {kind}, %sums[{k}]"
    for i, step in enumerate(steps):
        yield f"%s{k}_{i + 1} = {step.format(f'%s{k}_{i}')}"
    yield f"%u{k} = get ptr, %now[{place}]\nstore {kind} %s{k}_{len(steps)}, ptr %u{k}, align 1"


def _adding(kind: str) -> tuple[str, str]:
    """The instruction that adds, and what changes nothing when it is added."""
    return ("fadd", "-0.0") if kind in ("float", "double") else ("add", "0")


def addresses(name: str, array: str, count: int) -> Iterator[str]:
    """The pointers of an array, each as a value."""
    for i in range(count):
        yield f"%{name}{i} = get ptr, {array}[{i}]"


def splat(name: str, value: str, kind: str, width: int) -> Iterator[str]:
    """A value in every lane."""
    full = f"<{width} x {kind}>"
    yield f"{name}i = insertelement {full} poison, {kind} {value}, i64 0"
    yield f"{name} = shufflevector {full} {name}i, {full} poison, <{width} x i32> zeroinitializer"
