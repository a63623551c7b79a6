"""What each ufunc is in machine code: EMITTERS, a line for each that needs no function of NumPy.

An emitter is called with the code being written, the dtypes of its operands and of its result, and
its operands, which are vectors of one lane for each element; it gives the vector of results. That
is what NumPy's own loop gives, to the bit, but for the sign and payload of NaN. An emitter gives
None for dtypes that it does not know: then NumPy's own loop is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from runtime.native.casts import assigned, converted
from runtime.native.code import Conversion, as_complex
from runtime.native.vectors import Table, Vectors
from runtime.program.tracing import Storage, assign, select

Dtypes: TypeAlias = Sequence[Storage]
Emitter: TypeAlias = Callable[[Vectors, Dtypes, Sequence[str]], str | None]


def by_kind(**instructions: str) -> Emitter:
    """An instruction for each kind of operand, b, i, u or f, all of one dtype."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        found = instructions.get(dtypes[0].kind)
        if found is None or any(one != dtypes[0] for one in dtypes[: len(args)]):
            return None
        return code.op(f"{found} {code.type(dtypes[0])} {', '.join(args)}")

    return emit


def intrinsic(name: str, kinds: str, suffix: str = "") -> Emitter:
    """An LLVM intrinsic for some kinds of operands."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        if dtypes[0].kind not in kinds:
            return None
        return code.intrinsic(name, dtypes[0], args, suffix)

    return emit


def rounding(name: str) -> Emitter:
    """A rounding to integers, where the processor has an instruction: LLVM would call libm."""
    emit = intrinsic(name, "f")
    return lambda code, dtypes, args: emit(code, dtypes, args) if code.has(*_ROUNDS) else None


_ROUNDS = ("sse4.1", "neon")


def first(*emitters: Emitter) -> Emitter:
    """The first of some that knows the dtypes."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        return next((found for one in emitters if (found := one(code, dtypes, args))), None)

    return emit


def comparison(ordered: str, signed: str, unsigned: str) -> Emitter:
    """A comparison, of floats, of signed and of unsigned integers."""
    return by_kind(
        f=f"fcmp {ordered}", i=f"icmp {signed}", u=f"icmp {unsigned}", b=f"icmp {unsigned}"
    )


def extreme(name: str, above: str) -> Emitter:
    """np.maximum or np.minimum: NaN if either is; of equal floats the second, as `maxps` has it."""

    def floats(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        if dtypes[0].kind != "f":
            return None
        full, (x, y) = code.type(dtypes[0]), args
        better = code.op(f"fcmp {above} {full} {x}, {y}")
        chosen = code.choose(dtypes[0], better, x, y)
        nan = code.op(f"fcmp uno {full} {x}, {x}")
        return code.choose(dtypes[0], nan, x, chosen)

    return first(floats, intrinsic(f"s{name}", "i"), intrinsic(f"u{name}", "ub"))


def _select(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return code.choose(dtypes[1], *args)


def shift(instruction: str, beyond: str) -> Emitter:
    """A shift: by its width or more all bits are shifted out, `beyond` for signed operands."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        dtype, (x, by) = dtypes[0], args
        if dtype.kind not in "iu":
            return None
        full = code.type(dtype)
        within = code.op(f"icmp ult {full} {by}, {code.splat(8 * dtype.itemsize, dtype)}")
        name = instruction.format("a" if dtype.kind == "i" else "l")
        shifted = code.op(f"{name} {full} {x}, {by}")
        rest = "zeroinitializer"
        if beyond and dtype.kind == "i":
            rest = code.op(f"{beyond} {full} {x}, {code.splat(8 * dtype.itemsize - 1, dtype)}")
        return code.choose(dtype, within, shifted, rest)

    return emit


def with_constant(instruction: str, value: Any, kinds: str, before: bool = False) -> Emitter:
    """An instruction of the operand and a constant, which stands after it or `before`."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        if dtypes[0].kind not in kinds:
            return None
        constant = code.splat(value, dtypes[0])
        pair = (constant, *args) if before else (*args, constant)
        return code.op(f"{instruction} {code.type(dtypes[0])} {', '.join(pair)}")

    return emit


def _square(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return EMITTERS[np.multiply](code, dtypes, [args[0], args[0]])


def _same(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return args[0] if dtypes[0].kind in "bu" else None


def _sign(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    """-1, 0 or 1; NaN of NaN."""
    dtype, x = dtypes[0], args[0]
    if dtype.kind not in "iuf":
        return None
    full = code.type(dtype)
    zero, one = (code.splat(value, dtype) for value in (0, 1))
    compare = {"f": "fcmp ogt", "i": "icmp sgt", "u": "icmp ugt"}[dtype.kind]
    below = {"f": "fcmp olt", "i": "icmp slt", "u": "icmp ult"}[dtype.kind]
    up = code.op(f"{compare} {full} {x}, {zero}")
    found = code.choose(dtype, up, one, zero)
    if dtype.kind == "u":
        return found
    down = code.op(f"{below} {full} {x}, {zero}")
    found = code.choose(dtype, down, code.splat(-1, dtype), found)
    if dtype.kind == "i":
        return found
    nan = code.op(f"fcmp uno {full} {x}, {x}")
    return code.choose(dtype, nan, x, found)


def magnitude(compare: str) -> Emitter:
    """A comparison of |x| with infinity, or with itself; false of what is no float."""

    def emit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
        dtype = dtypes[0]
        if dtype.kind != "f":
            return None
        size = code.intrinsic("fabs", dtype, args)
        infinity = code.splat(np.inf, dtype)
        return code.op(f"fcmp {compare} {code.type(dtype)} {size}, {infinity}")

    return emit


def always(value: bool) -> Emitter:
    """A predicate that holds of every number that is no float, or of none."""
    splat = f"splat (i1 {str(value).lower()})"
    return lambda code, dtypes, args: splat if dtypes[0].kind in "biu" else None


def _isnan(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    if dtypes[0].kind != "f":
        return None
    return code.op(f"fcmp uno {code.type(dtypes[0])} {args[0]}, {args[0]}")


def _signbit(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    dtype = dtypes[0]
    if dtype.kind != "f":
        return None
    whole = np.dtype(f"i{dtype.itemsize}")
    bits = code.read_as(args[0], dtype, whole)
    return code.op(f"icmp slt {code.type(whole)} {bits}, zeroinitializer")


def _copysign(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return code.intrinsic("copysign", dtypes[0], args)


def _negative(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    if dtypes[0].kind == "f":
        return code.op(f"fneg {code.type(dtypes[0])} {args[0]}")
    return with_constant("sub", 0, "iu", before=True)(code, dtypes, args)


def _invert(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    dtype = dtypes[0]
    ones = code.splat(~np.zeros((), dtype), dtype)
    return code.op(f"xor {code.type(dtype)} {args[0]}, {ones}")


def _real(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return code.part(dtypes[0], args[0], 0) if dtypes[0].kind == "c" else args[0]


def _imag(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return code.part(dtypes[0], args[0], 1) if dtypes[0].kind == "c" else "zeroinitializer"


def _joined(code: Vectors, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    return code.joined(dtypes[2], *args)


def emitted(code: Vectors, function: Any, dtypes: Dtypes, args: Sequence[str]) -> str | None:
    """The results of an instruction; None where it has no code of its own."""
    if isinstance(function, Conversion):
        return converted(code, function, args[0])
    if isinstance(function, Table):
        return code.looked_up(function, args[0], dtypes[0])
    emitter = EMITTERS.get(function)
    return emitter(code, dtypes, args) if emitter else None


EMITTERS: dict[Any, Emitter] = {
    np.add: by_kind(f="fadd", i="add", u="add", b="or"),
    np.subtract: by_kind(f="fsub", i="sub", u="sub"),
    np.multiply: by_kind(f="fmul", i="mul", u="mul", b="and"),
    np.divide: by_kind(f="fdiv"),
    np.negative: _negative,
    np.absolute: first(intrinsic("fabs", "f"), intrinsic("abs", "i", ", i1 false"), _same),
    np.square: _square,
    np.reciprocal: with_constant("fdiv", 1, "f", before=True),
    np.sign: _sign,
    np.maximum: extreme("max", "ogt"),
    np.minimum: extreme("min", "olt"),
    np.sqrt: intrinsic("sqrt", "f"),
    np.floor: rounding("floor"),
    np.ceil: rounding("ceil"),
    np.trunc: rounding("trunc"),
    np.rint: rounding("rint"),
    np.copysign: _copysign,
    np.less: comparison("olt", "slt", "ult"),
    np.less_equal: comparison("ole", "sle", "ule"),
    np.greater: comparison("ogt", "sgt", "ugt"),
    np.greater_equal: comparison("oge", "sge", "uge"),
    np.equal: comparison("oeq", "eq", "eq"),
    np.not_equal: comparison("une", "ne", "ne"),
    np.isnan: first(_isnan, always(False)),
    np.isinf: first(magnitude("oeq"), always(False)),
    np.isfinite: first(magnitude("olt"), always(True)),
    np.signbit: _signbit,
    np.logical_and: by_kind(b="and"),
    np.logical_or: by_kind(b="or"),
    np.logical_xor: by_kind(b="xor"),
    np.logical_not: with_constant("xor", 1, "b"),
    np.bitwise_and: by_kind(i="and", u="and", b="and"),
    np.bitwise_or: by_kind(i="or", u="or", b="or"),
    np.bitwise_xor: by_kind(i="xor", u="xor", b="xor"),
    np.invert: _invert,
    np.left_shift: shift("shl", ""),
    np.right_shift: shift("{}shr", "ashr"),
    select: _select,
    np.real: _real,
    np.imag: _imag,
    as_complex: _joined,
    assign: assigned,
}
