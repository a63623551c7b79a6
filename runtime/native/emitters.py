"""The table of emitters: EMITTERS has a line for each ufunc that becomes machine code of its own.

An emitter takes the dtype of the result and the operands, which are LlvmValues. It returns an
LlvmValue with the bits of NumPy's inner loop, except for the sign and payload of NaN. For dtypes
that it does not support it returns None, and the kernel then calls NumPy's inner loop.

A conversion, with the bits of graphir.conversions and of NumPy's own casts, is written as NumPy
functions on an `LlvmValue`, each of which emits instructions. A value lies in a register of its
machine dtype, as in runtime/program/codegen/casting.py, and the roundings are those of that module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import methodcaller
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from graphir.conversions import (
    Conversions,
    Step,
    has_range_of_float32,
    narrow_patterns,
    narrow_values,
    rounding,
    same_value,
    upper_half,
)
from graphir.hints import Number
from graphir.public import DType
from graphir.runtime.native.assembly import ConstantTable, Vector, VectorWriter, lane, splat, where
from graphir.runtime.native.functions import INLINE, inline
from graphir.runtime.native.instruction_selection import (
    NarrowFunction,
    NativeConversion,
    as_complex,
    fused_multiply_add,
)
from graphir.runtime.program.codegen.casting import (
    STORES,
    halves,
    register,
    rounded_in_register,
    rounds_in_register,
)
from graphir.runtime.program.codegen.tracing import Storage, assign, select

UnaryEmitter: TypeAlias = Callable[[Vector], Vector]
BinaryEmitter: TypeAlias = Callable[[Vector, Vector], Vector]
TernaryEmitter: TypeAlias = Callable[[Vector, Vector, Vector], Vector]
Emitter: TypeAlias = BinaryEmitter | TernaryEmitter | Callable[[Any, Any, Any, Any], Any]


def emitted(function: Any, result: Storage, args: Sequence[LlvmValue]) -> LlvmValue | None:
    """Emit an instruction on some operands and return its result; None if it has no emitter."""
    if isinstance(function, NativeConversion):
        return emit_conversion(function, *args)
    if isinstance(function, NarrowFunction):
        return emit_narrow(function, *args)
    if isinstance(function, ConstantTable):
        return args[0].gather_from(function)
    emitter: Any = EMITTERS.get(function)
    return emitter(result, *args) if emitter else None


@cache
def has_code(function: Any, dtypes: tuple[Storage, ...], features: frozenset[str]) -> bool:
    """Whether an instruction has an emitter for the dtypes of its operands and result.

    The last of `dtypes` is the dtype of the result.
    """
    code, (*operands, result) = VectorWriter(1, features), dtypes
    return (
        emitted(function, result, [LlvmValue(code, "%x", dtype) for dtype in operands]) is not None
    )


class LlvmValue(NDArrayOperatorsMixin):
    """A vector in the emitted code; a NumPy function of EMITTERS on it emits instructions.

    `number` is the constant in every lane, or None if the value is not constant. `str()` is the
    LLVM type followed by the name.
    """

    def __init__(self, code: VectorWriter, name: str, dtype: DTypeLike, number: Any = None) -> None:
        self.code, self.name, self.dtype, self.number = code, name, np.dtype(dtype), number
        self.lane = lane(self.dtype)
        self.type = code.of(self.lane)

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> Any:
        # `x += y` passes an out, which is ignored: the statement rebinds x to the new value.
        operand_dtypes: list[Any] = [
            type(x) if type(x) in (int, float) else x.dtype for x in inputs
        ]
        *target_dtypes, result = ufunc.resolve_dtypes((*operand_dtypes, None))
        emitter: Any = EMITTERS[ufunc]
        return emitter(result, *map(self._value, inputs, target_dtypes))

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> Any:
        """Emit np.where, the only such function that emitters use."""
        condition, *branches = args
        dtype = next(x.dtype for x in branches if hasattr(x, "dtype"))
        x, y = (self._value(branch, dtype) for branch in branches)
        return self.emit_value(f"select {condition}, {x}, {y}", dtype)

    def _value(self, x: LlvmValue | Number, dtype: Storage) -> LlvmValue:
        return x.astype(dtype) if isinstance(x, LlvmValue) else self.constant(x, dtype)

    def constant(self, value: Number, dtype: DTypeLike) -> LlvmValue:
        """Return the value that has a number in every lane."""
        return LlvmValue(self.code, splat(value, np.dtype(dtype)), dtype, value)

    def emit_value(self, text: str, dtype: DTypeLike) -> LlvmValue:
        """Emit an instruction, and return its value."""
        return LlvmValue(self.code, self.code.op(text), dtype)

    def cast(self, name: str, dtype: DTypeLike) -> LlvmValue:
        """Emit the LLVM conversion `name` to the lanes of a dtype, and return its value."""
        return self.emit_value(f"{name} {self} to {self.code.of(lane(np.dtype(dtype)))}", dtype)

    def view(self, dtype: DTypeLike) -> LlvmValue:
        """Return the same bits read as another dtype of the same width."""
        target_lane = lane(np.dtype(dtype))
        if target_lane == self.lane:
            number = self.number if np.dtype(dtype) == self.dtype else None
            return LlvmValue(self.code, self.name, dtype, number)
        if target_lane == "i1":
            return self.emit_value(f"icmp ne {self}, zeroinitializer", dtype)
        return self.cast("zext" if self.lane == "i1" else "bitcast", dtype)

    def astype(self, dtype: DTypeLike) -> Any:
        """Emit NumPy's cast between its own real dtypes; None for other dtypes.

        A float cast to an integer must be in the range of the integer dtype.
        """
        source, target = self.dtype, np.dtype(dtype)
        if source == target:
            return self
        if {source.kind, target.kind} - set("biuf"):
            return None
        if target.kind == "b":
            return self != 0
        wider, signed = source.itemsize < target.itemsize, source.kind == "i"
        if target.kind == "f":
            float_ = "fpext" if wider else "fptrunc"
            name = float_ if source.kind == "f" else "sitofp" if signed else "uitofp"
        elif source.kind == "f":
            name = "fptosi" if target.kind == "i" else "fptoui"
        elif self.lane == lane(target):
            return self.view(target)
        else:
            name = ("sext" if signed else "zext") if wider or source.kind == "b" else "trunc"
        return self.cast(name, target)

    def intrinsic(self, name: str, *others: LlvmValue) -> LlvmValue:
        """Emit a call of an LLVM intrinsic on this operand and others, all of one type."""
        arguments = ", ".join([*map(str, (self, *others)), *_FLAGS.get(name, [])])
        return self.emit_value(f"call {self.type} @llvm.{name}({arguments})", self.dtype)

    def gather_from(self, table: ConstantTable) -> LlvmValue:
        """Emit a gather: the elements of a table at the indices that this value has."""
        code, element = self.code, lane(table.dtype)
        at = f"$(getelementptr {element}, ptr {code.pointer(table.address)}, {self})"
        every, vector = f"{code.of('i1')} splat (i1 true)", code.of(element)
        arguments = f"{code.of('ptr')} {at}, i32 {table.dtype.itemsize}, {every}, {vector} poison"
        return self.emit_value(f"call {vector} @llvm.masked.gather({arguments})", table.dtype)

    def gather_pairs(self, table: ConstantTable) -> tuple[LlvmValue, LlvmValue]:
        """Emit a gather of the elements at the indices that this value has, and of the next ones.

        One load has both elements of a lane.
        """
        code, element = self.code, lane(table.dtype)
        base, pair = code.pointer(table.address), f"<2 x {element}>"
        pairs: list[str] = []
        for k in range(code.width):
            index = f"$(extractelement {self}, i64 {k})"
            at = f"$(getelementptr {element}, ptr {base}, i64 {index})"
            pairs.append(code.op(f"load {pair}, ptr {at}, align 8"))
        # In this order of the lanes, one instruction takes the same half of four pairs.
        order = [[k + i for i in (0, 2, 1, 3)] for k in range(0, code.width, 4)]
        lanes = [k for four in order for k in four if k < code.width]
        loaded = code.concatenate(pair, [pairs[k] for k in lanes])
        firsts = [2 * lanes.index(k) for k in range(code.width)]
        both = f"<{2 * code.width} x {element}>"
        first, second = (
            LlvmValue(
                code, code.shuffled(both, loaded, "poison", [at + i for at in firsts]), table.dtype
            )
            for i in (0, 1)
        )
        return first, second

    def in_parts(self, width: int, emit: UnaryEmitter) -> LlvmValue:
        """Emit a function on `width` lanes at a time, whose values fit the registers."""
        code = self.code
        if code.width <= width:
            return emit(self)
        narrow, results = code.narrowed(width), list[LlvmValue]()
        for k in range(0, code.width, width):
            part = code.shuffled(self.type, self.name, "poison", range(k, k + width))
            results.append(emit(LlvmValue(narrow, part, self.dtype)))
        first = results[0]
        vector = code.concatenate(first.type, [result.name for result in results])
        return LlvmValue(code, vector, first.dtype)

    def repeated(self, width: int, emit: UnaryEmitter) -> LlvmValue:
        """Emit a function of vectors of exactly `width` lanes; fewer lanes are repeated."""
        code = self.code
        if code.width == width:
            return emit(self)
        lanes = [k % code.width for k in range(width)]
        vector = code.shuffled(self.type, self.name, "poison", lanes)
        result = emit(LlvmValue(code.narrowed(width), vector, self.dtype))
        first = code.shuffled(result.type, result.name, "poison", range(code.width))
        return LlvmValue(code, first, result.dtype)

    def part(self, imaginary: bool) -> LlvmValue:
        """Emit the real or the imaginary parts of complex numbers."""
        code, part = self.code, np.dtype(f"f{self.dtype.itemsize // 2}")
        both = f"<{2 * code.width} x {lane(part)}>"
        x = code.op(f"bitcast {self} to {both}")
        lanes = range(imaginary, 2 * code.width, 2)
        return LlvmValue(code, code.shuffled(both, x, "poison", lanes), part)

    def with_imaginary(self, other: LlvmValue, dtype: Storage) -> LlvmValue:
        """Emit the complex numbers that have this value as real parts and `other` as imaginary."""
        code, w = self.code, self.code.width
        lanes = [k + i for k in range(w) for i in (0, w)]
        both = code.shuffled(self.type, self.name, other.name, lanes)
        return self.emit_value(
            f"bitcast <{2 * w} x {self.lane}> {both} to {code.of(lane(dtype))}", dtype
        )


_FLAGS = {"abs": ["i1 false"]}
"""Extra arguments of intrinsics. For abs: the least integer is its own absolute value, as in NumPy.
"""


# -- kinds of emitters


def of(**by_kinds: str | UnaryEmitter | BinaryEmitter | TernaryEmitter) -> Emitter:
    """Return an emitter that dispatches on the dtype kind of its operands.

    The operands must share a dtype; otherwise the emitter returns None. Each keyword is a string of
    kinds, such as "iu"; its value is the name of an LLVM instruction, or a function of LlvmValues.
    """
    by_kind = {kind: emitter for kinds, emitter in by_kinds.items() for kind in kinds}

    def emit(to: Storage, *args: LlvmValue) -> Any:
        x, emitter = args[0], by_kind.get(args[0].dtype.kind)
        if emitter is None or any(arg.dtype != x.dtype for arg in args):
            return None
        if isinstance(emitter, str):
            return x.emit_value(f"{emitter} {x.type} {', '.join(arg.name for arg in args)}", to)
        return emitter(*args)

    return emit


def intrinsic(name: str, *extensions: str) -> UnaryEmitter:
    """Return an emitter of an LLVM intrinsic.

    With `extensions`, the emitter requires one of these of the processor: without the extension
    LLVM would call libm.
    """

    def emit(x: LlvmValue, *others: LlvmValue) -> LlvmValue | None:
        return None if extensions and not x.code.has(*extensions) else x.intrinsic(name, *others)

    return emit


def integral_rounding(name: str) -> Emitter:
    """Return the emitter of a rounding of floats to integral values."""
    return of(f=intrinsic(name, "sse4.1", "neon"))


def comparison(name: str) -> Emitter:
    """Return the emitter of lt, le, gt or ge; a comparison with NaN is false."""
    return of(f=f"fcmp o{name}", i=f"icmp s{name}", bu=f"icmp u{name}")


def extreme(name: str, better: np.ufunc) -> Emitter:
    """Return the emitter of np.maximum or np.minimum.

    The result is NaN if an operand is NaN, and the second of equal floats, as in `maxps`.
    """

    def floats(x: Vector, y: Vector) -> Vector:
        return where(np.isnan(x), x, where(better(x, y), x, y))

    return of(f=floats, i=intrinsic(f"s{name}"), bu=intrinsic(f"u{name}"))


def shift(signed: str, unsigned: str, rest: UnaryEmitter) -> Emitter:
    """Return the emitter of a shift.

    If the distance is negative, or at least the width of the operand, the result is `rest` of a
    signed operand, and 0 for an unsigned operand.
    """

    def emit(x: Vector, by: Vector) -> Vector:
        width = 8 * x.dtype.itemsize
        name = signed if x.dtype.kind == "i" else unsigned
        result = x.emit_value(f"{name} {x.type} {x.name}, {by.name}", x.dtype)
        if by.number is not None and 0 <= by.number < width:
            return result
        within = np.less(by.view(f"u{x.dtype.itemsize}"), width)
        return where(within, result, rest(x) if x.dtype.kind == "i" else x.dtype.type(0))

    return of(iu=emit)


def _all_signs(x: Vector) -> Vector:
    return x >> (8 * x.dtype.itemsize - 1)


def _sign(x: Vector) -> Vector:
    unit = x.dtype.type(1)
    sign = where(x > 0, unit, where(x < 0, -unit, x.dtype.type(0)))
    return where(np.isnan(x), x, sign) if x.dtype.kind == "f" else sign


def _zero(x: Vector) -> Vector:
    return x.dtype.type(0)


def _multiply_add(x: Vector, y: Vector, z: Vector) -> Vector:
    return x.intrinsic("fma", y, z) if x.code.has("fma", "neon") else x * y + z


def always(value: bool) -> UnaryEmitter:
    """Return the emitter of a predicate that is constant: true of all numbers, or of none."""
    return lambda x: x.constant(value, bool)


def _same(x: LlvmValue) -> LlvmValue:
    return x


EMITTERS: dict[Any, Emitter] = {
    np.add: of(f="fadd", iu="add", b="or"),
    np.subtract: of(f="fsub", iu="sub"),
    np.multiply: of(f="fmul", iu="mul", b="and"),
    np.divide: of(f="fdiv"),
    np.negative: of(f="fneg", iu=lambda x: x.dtype.type(0) - x),
    np.absolute: of(f=intrinsic("fabs"), i=intrinsic("abs"), bu=_same),
    np.square: of(fiub=lambda x: x * x),
    np.reciprocal: of(f=lambda x: 1 / x),
    np.sign: of(fi=_sign, u=lambda x: np.minimum(x, 1)),
    np.maximum: extreme("max", np.greater),
    np.minimum: extreme("min", np.less),
    np.sqrt: of(f=intrinsic("sqrt")),
    np.floor: integral_rounding("floor"),
    np.ceil: integral_rounding("ceil"),
    np.trunc: integral_rounding("trunc"),
    np.rint: integral_rounding("rint"),
    np.copysign: of(f=intrinsic("copysign")),
    np.less: comparison("lt"),
    np.less_equal: comparison("le"),
    np.greater: comparison("gt"),
    np.greater_equal: comparison("ge"),
    np.equal: of(f="fcmp oeq", biu="icmp eq"),
    np.not_equal: of(f="fcmp une", biu="icmp ne"),
    np.isnan: of(f=lambda x: x != x, biu=always(False)),
    np.isinf: of(f=lambda x: np.absolute(x) == np.inf, biu=always(False)),
    np.isfinite: of(f=lambda x: np.absolute(x) < np.inf, biu=always(True)),
    np.signbit: of(f=lambda x: x.view(f"i{x.dtype.itemsize}") < 0),
    np.logical_and: of(b="and"),
    np.logical_or: of(b="or"),
    np.logical_xor: of(b="xor"),
    np.logical_not: of(b=lambda x: x ^ np.True_),
    np.bitwise_and: of(biu="and"),
    np.bitwise_or: of(biu="or"),
    np.bitwise_xor: of(biu="xor"),
    np.invert: of(b=lambda x: x ^ np.True_, iu=lambda x: x ^ ~x.dtype.type(0)),
    np.left_shift: shift("shl", "shl", _zero),
    np.right_shift: shift("ashr", "lshr", _all_signs),
    np.real: of(c=lambda x: x.part(False), biuf=_same),
    np.imag: of(c=lambda x: x.part(True), biuf=lambda x: x.constant(0, x.dtype)),
    fused_multiply_add: of(f=_multiply_add),
    as_complex: lambda to, x, y: x.with_imaginary(y, to),
    select: lambda to, condition, x, y: where(condition, x, y),
    assign: lambda to, x: x.astype(to),
    **{function: inline(function) for function, _ in INLINE},
}


# -- conversions

_F32 = np.dtype(np.float32)
_U16, _U32 = np.dtype(np.uint16), np.dtype(np.uint32)


def emit_conversion(conversion: NativeConversion, x: Vector) -> Vector:
    """Emit a conversion of `x`, and return its result."""
    if conversion.kind == "load":
        return _load(conversion.source, x)
    if conversion.kind == "store":
        return _store(conversion.target, x)
    return RegisterConversions(conversion).convert(
        x, conversion.source, conversion.target, conversion.tf32
    )


def emit_narrow(function: NarrowFunction, x: Vector) -> Vector:
    """Emit a function of float32 values that are exact in a narrower dtype, as a look-up."""
    if function.half:
        pattern = _store(DType.float16, x).view(_U16).astype(_U32)
    else:
        pattern = x.view(_U32) >> 16
    return pattern.gather_from(function.table)


# -- storage


def _load(dtype: DType, x: Vector) -> Vector:
    """Emit the exact conversion from storage to register."""
    if has_range_of_float32(dtype):
        return (x.view(_U16).astype(_U32) << 16).view(_F32)
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(_F32)
    if dtype.is_integer:
        return _last_bits(dtype, x)
    values = halves() if dtype is DType.float16 else narrow_values(dtype)
    values_loaded = (
        x.view(f"u{x.dtype.itemsize}").astype(_U32).gather_from(ConstantTable.of(values))
    )
    return values_loaded.astype(register(dtype))


def _store(dtype: DType, x: Vector) -> Vector:
    """Emit the exact conversion from register to storage."""
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(np.float16)
    if dtype in STORES:
        return STORES[dtype](x)
    if dtype.is_integer:
        return x & x.dtype.type((1 << dtype.bits) - 1)
    return upper_half(x.astype(_F32)).gather_from(ConstantTable.of(narrow_patterns(dtype)))


def _last_bits(dtype: DType, x: Vector) -> Vector:
    """Emit the value of the last `dtype.bits` bits of a byte, with sign extension if signed."""
    unused_bits = 8 - dtype.bits
    return (x.view(register(dtype)) << unused_bits) >> unused_bits


# -- casts


class RegisterConversions(Conversions):
    """The steps of a cast from register to register, where registers hold widened values."""

    natively = frozenset({DType.bool, DType.float32, DType.float64, DType.weak_float})

    def __init__(self, conversion: NativeConversion) -> None:
        self.quiet, self.exact = conversion.quiet, conversion.source.exact_in(conversion.target)

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of LLVM's own conversion; a complex number converts part by part."""
        if source.is_complex or target.is_complex:
            return partial(_complex, source, target)
        if target.is_integer and target.narrow:
            return partial(_last_bits, target)
        return methodcaller("astype", register(target))

    def widen(self, source: DType) -> Step:
        """Return the identity, because a register holds the widened value already."""
        return same_value

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step that rounds float32 to a narrower format, whose register it fills."""

        def round_value(x: Vector) -> Vector:
            if target is DType.float16 and x.code.has("f16c"):
                x = x.astype(np.float16).astype(_F32)
            elif rounds_in_register(target):
                if not self.quiet:  # the carry could turn a NaN into inf or -0.0
                    x = where(np.isnan(x), np.copysign(_NAN, x), x)
                x = rounded_in_register(target, x, tf32)
            elif target.emulated:
                x = rounding(target)(x)
            else:
                x = upper_half(x).gather_from(_rounded_values(target))
            return x.astype(register(target))

        return methodcaller("astype", register(target)) if self.exact else round_value


_NAN = np.float32(np.nan)


def _complex(source: DType, target: DType, x: Vector) -> Vector:
    """Emit a conversion of each part; the imaginary part of a real number is 0."""
    if not source.is_complex:
        return x.with_imaginary(x.constant(0, x.dtype), register(target))
    parts = [x.part(imaginary) for imaginary in (False, True)]
    if target is DType.bool:
        return (parts[0] != 0) | (parts[1] != 0)
    real, imaginary = (part.astype(register(target.part)) for part in parts)
    return real.with_imaginary(imaginary, register(target))


@cache
def _rounded_values(dtype: DType) -> ConstantTable:
    return ConstantTable.of(narrow_values(dtype).take(narrow_patterns(dtype)))
