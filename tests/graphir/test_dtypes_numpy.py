"""DType beside NumPy's dtypes: programs that compare, look up and convert take NumPy's branch."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, trace
from graphir.runtime import jit
from tests.support.tables import every, sampled

OWN = tuple(
    map(DType, ("index", "address", "tensor_float32", "weak_int", "weak_float", "weak_complex"))
)
NUMPYS = tuple(dtype for dtype in DType if dtype not in OWN)
SCALAR_TYPES = [np.dtype(code).type for code in "?bBhHiIlLqQefdgFDGSUOmM"]
OTHERS: list[Any] = [
    *(dtype.storage for dtype in DType),
    *(np.dtype(code) for code in (">f4", "<f4", ">i8", "S3", "O", "f4,i4", "M8[s]", "g")),
    *SCALAR_TYPES,
    *(ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn),
    *(bool, int, float, complex, str, object, list, np.ndarray, Graph),
    *("float32", "f4", "f", "=f4", ">f4", "single", "float", "i8", "i4", "q", "b", "u1", "?", "B"),
    *("f32", "bf16", "bfloat16", "tf32", "", "what", "3f4", "half", "int", "complex64", "index"),
]
"""What NumPy compares a dtype with: dtypes, scalar types, other types, codes, names, other text."""


@every("dtype", NUMPYS)
def test_equality_is_that_of_the_dtype_of_numpy_in_both_orders(dtype: DType) -> None:
    for other in OTHERS:
        if isinstance(other, str) and other == str(dtype):
            continue  # its name, which NumPy knows of its own dtypes alone
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # codes that NumPy will drop
            equal = dtype.storage == other
            assert (dtype == other) is (other == dtype) is equal, other
            assert (dtype != other) is (other != dtype) is not equal, other


@every("dtype", DType)
def test_a_dtype_equals_its_name_and_neither_none_nor_what_is_no_dtype(dtype: DType) -> None:
    assert dtype == str(dtype)
    assert str(dtype) == dtype
    for other in (None, 1, 1.0, (), object(), [str(dtype)], b"float32"):
        assert dtype != other
        assert other != dtype
    assert dtype not in (None, 0, "")


@every("dtype", OWN)
def test_dtypes_that_numpy_lacks_equal_their_names_alone(dtype: DType) -> None:
    equal = [other for other in OTHERS if dtype == other]
    assert equal == [other for other in OTHERS if other == str(dtype)]
    assert np.dtype(dtype) == dtype.storage
    assert dtype.storage == dtype  # this order is NumPy's own comparison
    assert {dtype: 1, dtype.storage: 2}[dtype] == 1


@every("dtype", DType)
def test_equal_things_have_equal_hashes(dtype: DType) -> None:
    for other in (*DType, *(dtype.storage for dtype in DType)):
        if dtype == other:
            assert hash(dtype) == hash(other)
    if dtype in NUMPYS:
        assert {dtype.storage: "by NumPy's"}[dtype] == {dtype: "by NumPy's"}[dtype.storage]


@every("dtype", DType)
def test_facts_by_numpys_names_are_numpys(dtype: DType) -> None:
    known = dtype.storage
    assert (dtype.kind, dtype.char, dtype.itemsize) == (known.kind, known.char, known.itemsize)
    assert dtype.type is known.type
    assert dtype.name == str(dtype)
    assert dtype in OWN or dtype.name == known.name


@every("dtype", DType)
def test_numpy_takes_a_dtype(dtype: DType) -> None:
    storage = dtype.storage
    assert np.dtype(dtype) is np.dtype(storage)
    assert np.zeros(3, dtype).dtype == np.arange(3).astype(dtype).dtype == storage
    assert np.empty_like(np.zeros(2), dtype=dtype).dtype == storage
    assert np.can_cast(dtype, dtype)
    assert np.result_type(dtype, storage) == storage
    assert np.issubdtype(dtype, np.floating) == np.issubdtype(storage, np.floating)
    assert np.issubdtype(dtype, np.integer) == np.issubdtype(storage, np.integer)
    if storage.kind in "iu":
        assert np.iinfo(dtype).max == np.iinfo(storage).max  # pyright: ignore
    if issubclass(storage.type, np.inexact):
        assert np.finfo(dtype).eps == np.finfo(storage).eps  # pyright: ignore


BRANCHES: dict[str, Callable[[Any], Any]] = {
    "== np.float32": lambda x: x * 2 if x.dtype == np.float32 else x,
    "np.float32 ==": lambda x: x * 2 if np.float32 == x.dtype else x,
    "np.dtype ==": lambda x: x * 2 if np.dtype("f4") == x.dtype else x,
    "== a name": lambda x: x * 2 if x.dtype == "float32" else x,
    "== a code": lambda x: x * 2 if x.dtype == "f4" else x,
    "!=": lambda x: x if x.dtype != np.float32 else x * 2,
    "== float": lambda x: x * 2 if x.dtype == float else x,
    "in a tuple": lambda x: x * 2 if x.dtype in (np.float16, np.float32) else x,
    "in a list of names": lambda x: x * 2 if x.dtype in ["float16", "float32"] else x,
    "in a set": lambda x: x * 2 if x.dtype in {np.dtype("f2"), np.dtype("f4")} else x,
    "a dict": lambda x: x * {np.dtype("f4"): 2, np.dtype("f8"): 3}.get(x.dtype, 5),
    "a dict of types": lambda x: x * {np.float32: 2, np.float64: 3}.get(x.dtype.type, 5),
    "kind": lambda x: x * 2 if x.dtype.kind == "f" else x,
    "char": lambda x: x * 2 if x.dtype.char in "ef" else x,
    "itemsize": lambda x: x * x.dtype.itemsize,
    "name": lambda x: x * 2 if x.dtype.name.startswith("float") else x,
    "issubdtype": lambda x: x * 2 if np.issubdtype(x.dtype, np.floating) else x,
    "can_cast": lambda x: x * 2 if np.can_cast(x.dtype, np.float32) else x,
    "finfo": lambda x: x + np.finfo(x.dtype if x.dtype.kind == "f" else "f4").tiny,
    "zeros": lambda x: x + np.zeros(3, x.dtype),
    "ones_like": lambda x: x + np.ones(3, dtype=x.dtype),
    "array": lambda x: x + np.array([1, 2, 3], x.dtype),
    "type": lambda x: x + x.dtype.type(1),
    "result_type": lambda x: x + np.zeros(3, np.result_type(x.dtype, np.int8)),
    "promote_types": lambda x: x + np.zeros(3, np.promote_types(x.dtype, "i2")),
    "finds no None": lambda x: x if x.dtype == None else x * 2,  # noqa: E711
}


@sampled(2)
@every("name", [name for name in BRANCHES if name != "finds no None"])
@every("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8"])
def test_a_traced_program_takes_the_branch_of_numpy(name: str, dtype: str) -> None:
    program, x = BRANCHES[name], np.array([0, 1, 3]).astype(dtype)
    expected, found = program(x), jit(program, rules="numpy")(x)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    traced = trace(program, x, rules="numpy").graph
    assert traced.outputs[0].dtype == expected.dtype


def test_the_dtype_of_a_traced_array_is_numpys_for_which_none_is_float64() -> None:
    program = BRANCHES["finds no None"]
    assert (jit(program)(np.ones(3)) == program(np.ones(3))).all()


def test_a_symbol_combined_with_a_dtype_by_mistake_is_refused() -> None:
    x = Graph("g").input("float32", (3,))
    for combine in (operator.add, operator.mul, operator.lt):
        with pytest.raises(TypeError):
            combine(x, DType.float32)


CODES: list[Any] = ["f4", "f2", "i8", "i4", "i2", "u1", "?", "b", "float32", "float", "int"]
CODES += ["=f4", float, int, np.float32, np.dtype("f4")]
TAKE_DTYPES: dict[str, Callable[[Any, Any], Any]] = {
    "x.astype": lambda x, code: x.astype(code),
    "np.astype": lambda x, code: np.astype(x, code),
    "x.sum": lambda x, code: x.sum(dtype=code),
    "np.sum": lambda x, code: np.sum(x, dtype=code),
    "x.prod": lambda x, code: x.prod(dtype=code),
    "np.cumsum": lambda x, code: np.cumsum(x, dtype=code),
    "np.add.reduce": lambda x, code: np.add.reduce(x, dtype=code),
    "np.zeros_like": lambda x, code: np.zeros_like(x, dtype=code),
    "np.full_like": lambda x, code: np.full_like(x, 1, dtype=code),
}


@sampled(2)
@every("name", TAKE_DTYPES)
def test_numpys_functions_read_codes_as_numpy_does(name: str) -> None:
    x = np.arange(1.0, 4.0)
    for code in CODES:
        call: Any = lambda x, code=code: TAKE_DTYPES[name](x, code)  # noqa: E731
        assert jit(call, rules="numpy")(x).dtype == call(x).dtype, code
    # NumPy itself takes no byte order for most reductions; elsewhere graphir has no such dtype.
    if name == "np.cumsum":  # a call of NumPy, whose result has the machine's order
        assert jit(lambda x: np.cumsum(x, dtype=">f4"), rules="numpy")(x).dtype == np.float32
        return
    with pytest.raises(GraphirError, match=r"no dtype is named '>f4'|the byte order"):
        jit(lambda x: TAKE_DTYPES[name](x, ">f4"), rules="numpy")(x)


def test_names_of_our_own_stay_unambiguous() -> None:
    x = Graph("g").input("float64", (3,))
    for code in ("i8", "u4", "f4"):
        for take in (DType, x.cast, lambda code: Graph("h").input(code, (3,))):
            with pytest.raises(GraphirError, match=f"no dtype is named {code!r}"):
                take(code)


@every("dtype", [int, bool, "i4"])
def test_a_mean_in_integers_is_numpys_and_no_float(dtype: Any) -> None:
    result = jit(lambda x: np.mean(x, dtype=dtype), rules="numpy")(np.arange(3.0))
    expected = np.mean(np.arange(3.0), dtype=dtype)
    assert (type(result), result) == (type(expected), expected)
    with pytest.raises(GraphirError, match="leave dtype out"):
        np.mean(Graph("g").input("float64", (3,)), dtype=dtype)
