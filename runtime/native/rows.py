"""How a kernel goes over rows: the parts of its module that are the same for every region.

`kernel` finds where each row of each operand begins, `tree` halves a row that is summed, `range`
takes rows that are shorter than a vector by way of the stack, and `body`, which is the region's
own, computes. A record is what Layout.record says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

BLOCK = 1024
"""The elements of a block, for which what NumPy's loops and sums read is kept."""

HEAD = 3
"""The words of a record before the bases: see Layout.record."""

_ARGS = "ptr %now, ptr %strides, ptr %context"

_PAIRWISE = """
define internal {T} @pairwise_{T}(ptr %x, i64 %n) {{
entry:
  %few = icmp ult i64 %n, 8
  br i1 %few, label %rest, label %more
more:
  %block = icmp ule i64 %n, 128
  br i1 %block, label %start, label %halves
start:
  %first = load {V}, ptr %x, align 1
  %end = and i64 %n, -8
  %any = icmp ugt i64 %end, 8
  br i1 %any, label %loop, label %joined
loop:
  %i = phi i64 [ 8, %start ], [ %i1, %loop ]
  %r = phi {V} [ %first, %start ], [ %r1, %loop ]
  %at = getelementptr {T}, ptr %x, i64 %i
  %next = load {V}, ptr %at, align 1
  %r1 = {add} {V} %r, %next
  %i1 = add i64 %i, 8
  %again = icmp ult i64 %i1, %end
  br i1 %again, label %loop, label %joined
joined:
  %all = phi {V} [ %first, %start ], [ %r1, %loop ]
{joined}
  br label %rest
rest:
  %done = phi i64 [ 0, %entry ], [ %end, %joined ]
  %sum = phi {T} [ {zero}, %entry ], [ %j1, %joined ]
  %left = icmp ult i64 %done, %n
  br i1 %left, label %one, label %out
one:
  %k = phi i64 [ %done, %rest ], [ %k1, %one ]
  %s = phi {T} [ %sum, %rest ], [ %s1, %one ]
  %p = getelementptr {T}, ptr %x, i64 %k
  %v = load {T}, ptr %p, align 1
  %s1 = {add} {T} %s, %v
  %k1 = add i64 %k, 1
  %on = icmp ult i64 %k1, %n
  br i1 %on, label %one, label %out
out:
  %result = phi {T} [ %sum, %rest ], [ %s1, %one ]
  ret {T} %result
halves:
  %half = lshr i64 %n, 1
  %low = and i64 %half, -8
  %high = sub i64 %n, %low
  %middle = getelementptr {T}, ptr %x, i64 %low
  %a = call {T} @pairwise_{T}(ptr %x, i64 %low)
  %b = call {T} @pairwise_{T}(ptr %middle, i64 %high)
  %ab = {add} {T} %a, %b
  ret {T} %ab
}}"""

_TREE = """
define internal void @tree({args}, i64 %begin, i64 %n, ptr %sums) {{
entry:
  %others = alloca [{count} x i64], align 16
  %long = icmp ugt i64 %n, {block}
  br i1 %long, label %halves, label %leaf
leaf:
  call void @range({args}, i64 %begin, i64 %n, ptr %sums)
  ret void
halves:
  %half = lshr i64 %n, 1
  %left = and i64 %half, -8
  %right = sub i64 %n, %left
  %middle = add i64 %begin, %left
  call void @tree({args}, i64 %begin, i64 %left, ptr %sums)
  call void @tree({args}, i64 %middle, i64 %right, ptr %others)
{added}
  ret void
}}"""

_KERNEL = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  put i64 1, %context[-1]
  %now = alloca [{places} x i64], align 64
  %sums = alloca [{sums} x i64], align 16
  %unit = get i64, %record[0]
  %axes = get i64, %record[1]
  %divisor = get double, %record[2]
  %bases = get {P}, %record[{head}]
  %strides = getelementptr i64, ptr %record, i64 {strides}
  %by = get {P}, %strides[0]
  %outer = getelementptr i64, ptr %strides, i64 {places}
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
{finished}
  %next = add i64 %a, %n
  %again = icmp ult i64 %next, %end
  br i1 %again, label %row, label %exit
exit:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""


def rows(
    inputs: Sequence[tuple[int, int | None]],
    outs: Sequence[int],
    sums: Sequence[tuple[str, bool]],
    width: int,
) -> Iterator[str]:
    """The functions around `body`, for inputs and outs of such sizes in bytes and kinds.

    `sums` are types, and whether the sum of a whole row is divided by the divisor of the record.
    """
    places = len(inputs) + len(outs) + len(sums)
    full = f"<{places} x i64>"
    yield from _range(inputs, outs, width)
    for kind in dict.fromkeys(kind for kind, _ in sums):
        zero = "-0.0" if is_float(kind) else "0"
        yield _PAIRWISE.format(
            T=kind, V=f"<8 x {kind}>", add=adds(kind), zero=zero, joined=_joined(kind)
        )
    if sums:
        added = "\n".join(_added(k, kind) for k, (kind, _) in enumerate(sums))
        yield _TREE.format(args=_ARGS, count=len(sums), block=BLOCK, added=added)
    first = places - len(sums)
    yield _KERNEL.format(
        args=_ARGS,
        places=places,
        words=places + 1,
        sums=max(1, len(sums)),
        head=HEAD,
        strides=HEAD + places,
        P=full,
        columns="\n".join(splat("%columns", "%column", "i64", places)),
        indices="\n".join(splat("%indices", "%index", "i64", places)),
        of="tree" if sums else "range",
        finished="\n".join(_finished(k, first + k, *one) for k, one in enumerate(sums)),
    )


def _range(
    inputs: Sequence[tuple[int, int | None]], outs: Sequence[int], width: int
) -> Iterator[str]:
    """Elements of a row from `begin` on, which is 0 where they are fewer than a vector.

    Inputs of other strides than 0 and 1 are at least a vector.
    """
    args = f"{_ARGS}, i64 %begin, i64 %n"
    yield f"define internal void @range({args}, ptr %sums) {{\nentry:"
    copied = {i: size for i, (size, kind) in enumerate(inputs) if kind == 1}
    made = dict(enumerate(outs, len(inputs)))
    sizes = copied | made
    yield f"%copies = alloca [{len(inputs) + len(outs)} x ptr], align 16"
    for i, size in sizes.items():
        yield f"%t{i} = alloca [{width * size} x i8], align 64"
    yield f"%short = icmp ult i64 %n, {width}\nbr i1 %short, label %few, label %many\nmany:"
    yield f"call void @body({args}, i64 %n, ptr %sums)\nret void\nfew:"
    yield from addresses("p", "%now", len(inputs) + len(outs))
    for i in range(len(inputs) + len(outs)):
        size = sizes.get(i)
        yield f"put ptr %{'t' if size else 'p'}{i}, %copies[{i}]"
        if size:
            yield f"%b{i} = mul i64 %n, {size}"
        if i in copied:
            whole = width * copied[i]
            yield f"call void @llvm.memset.p0.i64(ptr %t{i}, i8 0, i64 {whole}, i1 false)"
            yield f"call void @llvm.memcpy.p0.p0.i64(ptr %t{i}, ptr %p{i}, i64 %b{i}, i1 false)"
    on_stack = f"ptr %copies, ptr %strides, ptr %context, i64 0, i64 {width}"
    yield f"call void @body({on_stack}, i64 %n, ptr %sums)"
    for i in made:
        yield f"call void @llvm.memcpy.p0.p0.i64(ptr %p{i}, ptr %t{i}, i64 %b{i}, i1 false)"
    yield "ret void\n}"


def _joined(kind: str) -> str:
    """Eight lanes added in pairs."""
    value, count = "%all", 8
    lines: list[str] = []
    while count > 1:
        count //= 2
        full = f"<{2 * count} x {kind}>"
        for name, first in (("x", 0), ("y", 1)):
            mask = ", ".join(f"i32 {2 * k + first}" for k in range(count))
            lines.append(
                f"  %{name}{count} = shufflevector {full} {value}, {full} poison, "
                f"<{count} x i32> <{mask}>"
            )
        value = f"%v{count}"
        lines.append(f"  {value} = {adds(kind)} <{count} x {kind}> %x{count}, %y{count}")
    return "\n".join([*lines, f"  %j1 = extractelement <1 x {kind}> %v1, i64 0"])


def _added(k: int, kind: str) -> str:
    return f"""\
  %x{k} = get {kind}, %sums[{k}]
  %y{k} = get {kind}, %others[{k}]
  %z{k} = {adds(kind)} {kind} %x{k}, %y{k}
  put {kind} %z{k}, %sums[{k}]"""


def _finished(k: int, place: int, kind: str, mean: bool) -> str:
    """A sum as NumPy has it: it begins with 0, so that none is -0.0; means divide in double."""
    lines = [
        f"%x{k} = get {kind}, %sums[{k}]",
        f"%s{k} = {adds(kind)} {kind} %x{k}, {'0.0' if is_float(kind) else '0'}",
    ]
    value = f"%s{k}"
    if mean and kind == "double":
        lines.append(f"%m{k} = fdiv double {value}, %divisor")
        value = f"%m{k}"
    elif mean:
        lines.append(f"%w{k} = fpext {kind} {value} to double")
        lines.append(f"%quotient{k} = fdiv double %w{k}, %divisor")
        lines.append(f"%m{k} = fptrunc double %quotient{k} to {kind}")
        value = f"%m{k}"
    lines.append(f"%u{k} = get ptr, %now[{place}]\nstore {kind} {value}, ptr %u{k}, align 1")
    return "\n".join(lines)


def is_float(kind: str) -> bool:
    """Whether a type is one of floats."""
    return kind in ("float", "double")


def adds(kind: str) -> str:
    """The instruction that adds."""
    return "fadd" if is_float(kind) else "add"


def addresses(name: str, array: str, count: int) -> Iterator[str]:
    """The pointers of an array, each as a value."""
    for i in range(count):
        yield f"%{name}{i} = get ptr, {array}[{i}]"


def splat(name: str, value: str, kind: str, width: int) -> Iterator[str]:
    """A value in every lane."""
    full = f"<{width} x {kind}>"
    yield f"{name}i = insertelement {full} poison, {kind} {value}, i64 0"
    yield f"{name} = shufflevector {full} {name}i, {full} poison, <{width} x i32> zeroinitializer"
