"""DType: facts against ml_dtypes and NumPy, losses against every value of the small dtypes."""

from __future__ import annotations

import copy
import math
import pickle
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from graphir import DType, GraphError
from tests.support.tables import every

_MEMBERS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 index address float16 bfloat16 float32 "
    "tensor_float32 float64 complex64 complex128 weak_int weak_float weak_complex int2 int4 uint2 "
    "uint4 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
)
MEMBERS = _MEMBERS.split()
SHORT = {
    "u16": "uint16",
    "i16": "int16",
    "bf16": "bfloat16",
    "tf32": "tensor_float32",
    "tensor_float_32": "tensor_float32",
    "f32": "float32",
    "c64": "complex64",
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "i*": "weak_int",
    "f*": "weak_float",
    "c*": "weak_complex",
}
OWN = ("index", "address", "tensor_float32", "weak_int", "weak_float", "weak_complex")
INTS = [d for d in DType if d.family in ("int", "uint")]
FLOATS = [d for d in DType if d.family == "float" and d is not DType.tensor_float32]
COMPLEX = [d for d in DType if d.family == "complex"]


def test_members_are_those_of_the_design_in_its_order():
    assert [str(d) for d in DType] == MEMBERS
    assert DType.tensor_float_32 is DType.tensor_float32  # as MAX's page spells it


@every("dtype", INTS)
def test_integer_facts_are_those_of_iinfo(dtype: DType):
    info = ml_dtypes.iinfo(dtype.storage)
    assert (dtype.bits, dtype.min, dtype.max) == (info.bits, info.min, info.max)
    assert dtype.family == ("int" if info.min < 0 else "uint")
    assert dtype.precision == int(info.max).bit_length()
    assert (dtype.exponent_bits, dtype.mantissa_bits) == (0, 0)
    assert dtype.is_integer and not dtype.is_float and not dtype.is_complex


@every("dtype", FLOATS)
def test_float_facts_are_those_of_finfo(dtype: DType):
    info = ml_dtypes.finfo(dtype.storage)
    assert dtype.bits == info.bits
    assert (dtype.exponent_bits, dtype.mantissa_bits) == (info.nexp, info.nmant)
    assert (dtype.min, dtype.max) == (float(info.min), float(info.max))
    assert dtype.format is not None and dtype.format.least == float(info.smallest_subnormal)
    assert dtype.precision == info.nmant + 1
    assert dtype.is_float and not dtype.is_integer and not dtype.is_complex


@every("dtype", COMPLEX)
def test_complex_facts_are_those_of_the_parts(dtype: DType):
    info = np.finfo(dtype.storage)
    assert dtype.is_complex and not dtype.is_float and not dtype.is_integer
    assert dtype.bits == 8 * dtype.storage.itemsize == 2 * info.bits
    assert (dtype.exponent_bits, dtype.mantissa_bits) == (info.nexp, info.nmant)
    assert dtype.max == float(info.max)
    assert dtype.part.storage == np.zeros((), dtype.storage).real.dtype


def test_tensor_float32_is_a_float32_whose_low_13_bits_are_zero():
    values = all_values(DType.tensor_float32)
    finite = values[np.isfinite(values)]
    tf32 = DType.tensor_float32
    assert (tf32.min, tf32.max) == (finite.min(), finite.max())
    assert tf32.format is not None and tf32.format.least == finite[finite > 0].min()
    assert tf32.bits == 1 + tf32.exponent_bits + tf32.mantissa_bits == 32 - 13
    assert tf32.storage == np.float32


@every("name", MEMBERS)
def test_storage(name: str):
    stored = {"index": np.uint64, "address": np.uint64, "tensor_float32": np.float32}
    stored |= {"weak_int": np.int64, "weak_float": np.float64, "weak_complex": np.complex128}
    wanted = np.dtype(stored.get(name) or getattr(ml_dtypes, name, None) or getattr(np, name))
    assert DType(name).storage == wanted
    assert DType(name).to_numpy() == wanted


@every("name", [n for n in MEMBERS if n not in OWN])
def test_numpy_dtypes_find_their_member(name: str):
    dtype = DType(name)
    assert DType(dtype.storage) is dtype
    assert DType(dtype.storage.type) is dtype
    assert DType.from_numpy(dtype.storage) is dtype


def test_a_storage_that_is_shared_means_the_plain_dtype():
    assert DType(np.uint64) is DType.uint64
    assert DType(np.float32) is DType.float32
    assert DType.from_numpy("<f8") is DType.float64
    assert DType(bool) is DType.bool


def test_byte_order_is_no_matter_of_the_dtype():
    assert DType.from_numpy(np.dtype(np.int32).newbyteorder()) is DType.int32


@every("wrong", ["bogus", "M8[s]", None])
def test_from_numpy_of_what_no_dtype_holds_is_an_error(wrong: object):
    with pytest.raises(GraphError, match="no dtype corresponds"):
        DType.from_numpy(wrong)


# Short names count bits; these NumPy reads in bytes: its i8 is int64, its f16 a long double.
NUMPYS = {"i8": "int8", "u8": "uint8", "f16": "float16", "i2": "int2", "i4": "int4"}
NUMPYS |= {"u2": "uint2", "u4": "uint4"}


@every(("alias", "name"), SHORT.items())
def test_aliases(alias: str, name: str):
    assert DType(alias) is DType(name) is getattr(DType, name)


@every("short", sorted(NUMPYS))
def test_short_names_that_numpy_reads_otherwise_find_no_dtype(short: str):
    with pytest.raises(GraphError, match=f"{short}.*near it are {NUMPYS[short]}"):
        DType(short)


@every("dtype", DType)
def test_every_name_finds_its_dtype(dtype: DType):
    for name in {str(dtype), dtype.short, *dtype.aliases} - set(NUMPYS):
        assert DType(name) is dtype
    assert DType(dtype) is dtype
    assert repr(dtype) == f"DType.{dtype}"


def test_short_names_are_distinct():
    assert len({d.short for d in DType}) == len(MEMBERS)


def test_weak_and_narrow():
    assert [str(d) for d in DType if d.weak] == ["weak_int", "weak_float", "weak_complex"]
    assert [str(d) for d in DType if d.narrow] == MEMBERS[MEMBERS.index("int2") :]


@every(
    ("wrong", "near"),
    [("flaot32", "float32"), ("bfloat", "bfloat16"), ("int_16", "int16"), ("tf_32", "tf32")],
)
def test_an_unknown_name_is_an_error_with_near_matches(wrong: str, near: str):
    with pytest.raises(GraphError, match=rf"{wrong}.*near.*{near}"):
        DType(wrong)


@every("wrong", [object(), None, np.dtype("M8[s]"), np.dtype(object), np.dtype("U3"), 3.5, [], str])
def test_what_is_no_dtype_is_an_error(wrong: object):
    with pytest.raises(GraphError, match="give a DType"):
        DType(wrong)


def test_a_long_double_has_no_dtype():
    if np.dtype(np.longdouble).itemsize == 8:
        pytest.skip("long double is float64 on this platform")
    with pytest.raises(GraphError, match="no dtype corresponds"):
        DType.from_numpy(np.longdouble)


@every("dtype", DType)
def test_copies_are_the_same_object(dtype: DType):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype
    assert copy.copy(dtype) is dtype
    assert copy.deepcopy({"d": [dtype]})["d"][0] is dtype


def test_members_are_hashable_and_equal_to_no_other():
    assert len(set(DType)) == len(MEMBERS)
    assert [(a, b) for a in DType for b in DType if (a == b) is not (a is b)] == []
    assert [(a, b) for a in DType for b in DType if (a != b) is (a is b)] == []


# -- what is lost: every value of every dtype of at most 19 bits


@cache
def all_values(dtype: DType) -> NDArray[np.float64]:
    """All values, as float64, which holds them exactly."""
    if dtype is DType.bool:
        return np.array([0.0, 1.0])
    if dtype is DType.tensor_float32:
        patterns = np.arange(2**19, dtype=np.uint32) << np.uint32(13)
    else:
        patterns = np.arange(2**dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        values = patterns.view(dtype.storage).astype(np.float64)
    values[np.isnan(values)] = np.nan  # one quiet NaN for all of them
    return values


def held(values: NDArray[np.float64], target: DType) -> NDArray[np.bool_]:
    """Which values the target has, -0.0 apart from 0.0 and all NaNs alike."""
    target = target.part
    if target.family in ("int", "uint") and target.bits > 16:
        whole = np.isfinite(values) & (np.trunc(values) == values)
        # 2.0**63 is a float64, int64's own maximum is not: hence the half-open interval.
        limits = np.iinfo(target.storage)
        inside = (values >= float(limits.min)) & (values < float(limits.max + 1))
        return whole & inside & ~((values == 0) & np.signbit(values))
    if target.storage == np.float64:
        return np.ones(values.shape, np.bool_)
    if target is DType.float32:
        with np.errstate(over="ignore"):
            return (values.astype(np.float32) == values) | np.isnan(values)
    known = all_values(target)
    return np.isin(values.view(np.int64), known.view(np.int64))


def simplest(lost: NDArray[np.float64]) -> float | None:
    """The witness as the design defines it, of a list of all values that are lost."""
    whole = lost[np.isfinite(lost) & (np.trunc(lost) == lost)]
    whole = whole[~((whole == 0) & np.signbit(whole))]
    if (natural := whole[whole >= 0]).size:
        return float(natural.min())
    if whole.size:
        return float(whole.max())
    finite = lost[np.isfinite(lost) & (lost != 0)]
    if finite.size:
        return float(np.abs(finite).min())
    for special in (-0.0, math.inf, math.nan):
        bits = np.isnan(lost) if math.isnan(special) else (lost == special)
        if bits.any():
            return special
    return None


SMALL = [d for d in DType if (d.bits <= 16 or d is DType.tensor_float32)]


def test_the_small_dtypes_are_23():
    assert len(SMALL) == 23


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", SMALL, ids=str)
def test_exact_in_and_witness_by_brute_force(source: DType):
    values = all_values(source)
    for target in DType:
        lost = values[~held(values, target)]
        witness = source.witness(target)
        assert source.exact_in(target) is (lost.size == 0), f"{source} in {target}"
        wanted = simplest(lost)
        shown = f"{source} -> {target}: {witness!r}, not {wanted!r}"
        if wanted is None or witness is None:
            assert witness is None and wanted is None, shown
        else:
            assert np.float64(witness).tobytes() == np.float64(wanted).tobytes(), shown


WIDE = [
    ("int32", "bfloat16", 257),
    ("int32", "float16", 2049),
    ("int64", "float16", 2049),
    ("int32", "float32", 2**24 + 1),
    ("int32", "tensor_float32", 2049),
    ("uint32", "float32", 2**24 + 1),
    ("int64", "float32", 2**24 + 1),
    ("int64", "float64", 2**53 + 1),
    ("uint64", "float64", 2**53 + 1),
    ("index", "float64", 2**53 + 1),
    ("int64", "weak_float", 2**53 + 1),
    ("int64", "int32", 2**31),
    ("uint64", "int64", 2**63),
    ("index", "int64", 2**63),
    ("int64", "uint64", -1),
    ("int32", "address", -1),
    ("uint32", "int32", 2**31),
    ("int64", "bool", 2),
    ("int64", "complex64", 2**24 + 1),
    ("float64", "float32", 2**24 + 1),
    ("float64", "bfloat16", 257),
    ("float64", "complex64", 2**24 + 1),
    ("float32", "bfloat16", 257),
    ("float32", "float16", 2049),
    ("float32", "tensor_float32", 2049),
    ("float32", "int32", 2**31),
    ("float32", "int64", 2**63),
    ("float32", "uint64", 2**64),
    ("float64", "int64", 2**63),
    ("float64", "bool", 2),
    ("complex64", "bfloat16", 257),
    ("complex64", "float32", complex(0, float(np.finfo(np.float32).smallest_subnormal))),
    ("complex64", "float64", complex(0, float(np.finfo(np.float32).smallest_subnormal))),
    ("complex128", "float64", complex(0, 5e-324)),
    ("complex128", "float32", 2**24 + 1),
    ("complex128", "complex64", 2**24 + 1),
    ("complex64", "int64", 2**63),
    ("complex64", "bool", 2),
    ("float32", "float8_e8m0fnu", 0),
]


@every(("source", "target", "witness"), WIDE)
def test_witness_of_wide_dtypes(source: str, target: str, witness: complex):
    found = DType(source).witness(DType(target))
    assert found == witness
    assert not DType(source).exact_in(DType(target))
    if isinstance(witness, int):
        assert isinstance(found, int), f"an integer is shown as one, not {found!r}"


EXACT = [
    ("int32", "int64"),
    ("uint32", "int64"),
    ("uint64", "index"),
    ("index", "address"),
    ("int32", "float64"),
    ("uint32", "float64"),
    ("float32", "float64"),
    ("float32", "complex64"),
    ("tensor_float32", "float32"),
    ("float64", "weak_float"),
    ("float64", "complex128"),
    ("complex64", "complex128"),
    ("int32", "complex128"),
    ("weak_int", "int64"),
]


@every(("source", "target"), EXACT)
def test_exact_wide_pairs(source: str, target: str):
    assert DType(source).exact_in(DType(target))
    assert DType(source).witness(DType(target)) is None


def test_exact_in_is_reflexive_and_transitive():
    for a in DType:
        assert a.exact_in(a)
        for b in DType:
            for c in DType:
                if a.exact_in(b) and b.exact_in(c):
                    assert a.exact_in(c), f"{a} in {b} in {c}"


def test_the_code_of_a_dtype_is_its_place_in_the_list():
    assert [d.code for d in DType] == list(range(len(MEMBERS)))
