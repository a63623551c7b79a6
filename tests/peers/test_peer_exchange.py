"""Arrays of pandas, PyTorch and JAX enter with their values or are refused, and results leave."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import Graph, GraphirError
from graphir.runtime import Program, array_api, execute, interpret, jit

F32 = np.array([1.5, -0.0, np.nan, 2.0**-149], np.float32)


def identity(array: Any) -> Graph:
    """A graph whose output is its input, of an array's dtype."""
    graph = Graph("identity", rules="explicit")
    graph.output(graph.input(np.asarray(array).dtype, np.shape(array), name="x"))
    return graph


def constant(value: Any) -> Any:
    graph = Graph("constant")
    graph.output(graph.constant(value))
    return execute(graph)


def ways(value: Any, array: Any) -> dict[str, Callable[[], Any]]:
    """The ways in that take arrays of any dtype."""
    return {
        "execute": lambda: execute(identity(array), value),
        "by name": lambda: execute(identity(array), x=value),
        "Program": lambda: Program(identity(array))(value),
        "interpret": lambda: interpret(identity(array), value),
        "jit": lambda: jit(lambda x: x, rules="jax")(value),
        "constant": lambda: constant(value),
    }


def assert_enters(value: Any, array: Any) -> None:
    """Each way in has the bits of `array`, in memory of its own that may be written."""
    array = np.asarray(array)
    for name, way in ways(value, array).items():
        result = way()
        assert (result.dtype, result.shape) == (array.dtype, array.shape), name
        assert result.tobytes() == array.tobytes(), name
        assert result.flags.writeable and not np.may_share_memory(result, array), name


def assert_refused(value: Any, array: Any, match: str) -> None:
    for way in (*ways(value, array).values(), lambda: array_api.asarray(value)):
        with pytest.raises(GraphirError, match=match):
            way()


# -- pandas


@pytest.fixture(name="pd")
def _pandas() -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed")


def test_series_frames_and_indexes_enter(pd: Any) -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "complex64"):
        array = np.array([0, 1, 1, 0]).astype(dtype)
        assert_enters(pd.Series(array), array)
        assert_enters(pd.Series(array)[::-1], array[::-1])
    assert_enters(pd.Index([3, 1]), np.array([3, 1]))
    frame = pd.DataFrame({"a": F32, "b": F32[::-1]})
    assert_enters(frame, np.stack([F32, F32[::-1]], 1))
    assert_enters(frame["b"], F32[::-1])
    empty = pd.DataFrame(index=range(2))
    assert execute(identity(np.zeros((2, 0))), empty).shape == (2, 0)


def test_nullable_columns_enter_without_missing_values(pd: Any) -> None:
    for dtype, plain in (("Int16", "int16"), ("UInt8", "uint8"), ("Float32", "float32")):
        assert_enters(pd.Series([1, 2], dtype=dtype), np.array([1, 2], plain))
        assert_enters(pd.array([1, 2], dtype=dtype), np.array([1, 2], plain))
        missing = pd.Series([1, None], dtype=dtype)
        match = rf"Series of {dtype} has missing values; .*x.fillna\(0\)"
        assert_refused(missing, np.array([1, 2], plain), match)
    assert_enters(pd.Series([True, False], dtype="boolean"), np.array([True, False]))
    frame = pd.DataFrame({"a": [1, 2], "b": [3, None]}, dtype="Int64")
    assert_enters(frame[["a"]], np.array([[1], [2]]))
    assert_refused(frame, np.zeros((2, 2), np.int64), "DataFrame of Int64 has missing values")


def test_columns_without_an_array_of_numbers_are_refused(pd: Any) -> None:
    wide = 2**53 + 1  # which a float64 does not hold
    mixed = pd.DataFrame({"a": [wide], "b": [1.5]})
    assert_refused(mixed, np.zeros((1, 2)), "columns of int64, float64.*pass its columns")
    assert constant(mixed["a"]).tolist() == [wide]
    for values, dtype in (
        (pd.Series([1, 2]).astype("category"), "category"),
        (pd.to_datetime(pd.Series(["2020-01-01"])), "datetime64"),
        (pd.Series(["a"], dtype="string"), "string"),
        (pd.Series(pd.arrays.SparseArray([0, 1])), "Sparse"),
    ):
        assert_refused(values, np.zeros(len(values)), f"Series of {dtype}.* is no array of numbers")
    assert_refused(pd.Series([1, "a"], dtype=object), np.zeros(2), "array of Python objects")


def test_results_are_columns(pd: Any) -> None:
    series = pd.Series(F32)
    result = jit(lambda x: x * 2)(series)
    column = pd.Series(result, index=series.index)
    assert column.dtype == np.float32 and column[0] == 3.0
    lazy = array_api.asarray(series)
    assert pd.Series(lazy).dtype == np.float32
    assert pd.DataFrame({"a": lazy + lazy})["a"].tolist()[0] == 3.0


def test_a_later_write_to_a_column_does_not_reach_a_constant(pd: Any) -> None:
    series = pd.Series([1.0, 2.0])
    graph = Graph("constant")
    graph.output(graph.constant(series))
    lazy = array_api.asarray(series)
    series.iloc[0] = 9.0
    assert execute(graph).tolist() == np.asarray(lazy).tolist() == [1.0, 2.0]


# -- PyTorch


@pytest.fixture(name="torch")
def _torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed")


def test_tensors_enter(torch: Any) -> None:
    for dtype in ("bool", "uint8", "int8", "int64", "float16", "float32", "complex64"):
        array = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
        assert_enters(torch.tensor(array), array)
        assert_enters(torch.tensor(array).T[:, ::2], array.T[:, ::2])
        assert_enters(torch.tensor(array)[0, 1], array[0, 1])
    assert_enters(torch.tensor([1 + 2j]).conj(), np.array([1 - 2j], np.complex64))
    assert_enters(torch.tensor([1 + 2j]).conj().imag, np.array([-2], np.float32))
    assert_enters(torch.nn.Parameter(torch.tensor(F32)).detach(), F32)


NARROW = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@pytest.mark.parametrize("name", [*NARROW, "float8_e8m0fnu"])
def test_all_bits_of_narrow_floats_enter_from_torch(torch: Any, name: str) -> None:
    words = np.uint16 if name == "bfloat16" else np.uint8
    bits = np.arange(np.iinfo(words).max + 1).astype(words)
    tensor = torch.from_numpy(bits.copy()).view(getattr(torch, name))
    array = bits.view(getattr(ml_dtypes, name))
    assert_enters(tensor, array)
    assert_enters(tensor[::3], array[::3])
    assert_enters(tensor[5], array[5])


def test_tensors_without_plain_values_are_refused(torch: Any) -> None:
    ones, array = torch.ones(2, 2), np.ones((2, 2), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # quantized tensors are deprecated
        quantized = torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8)
    for tensor, match in (
        (torch.ones(2, 2, requires_grad=True), r"Tensor requires grad.*; pass x.detach\(\)"),
        (torch.nn.Parameter(ones), r"Parameter requires grad.*; pass x.detach\(\)"),
        (torch.ones(2, 2, device="meta"), "can't convert meta device type tensor"),
        (ones.to_sparse(), r"can't convert Sparse layout tensor .*Tensor.to_dense\(\)"),
        (quantized, "unsupported ScalarType QInt8"),
    ):
        assert_refused(tensor, array, match)


def test_results_become_tensors(torch: Any) -> None:
    result = jit(lambda x: x * 2)(torch.tensor(F32))
    tensor = torch.from_numpy(result)
    tensor += 1  # which shares the result's memory
    assert result[0] == 4.0
    narrow = execute(identity(np.zeros(2, ml_dtypes.bfloat16)), torch.ones(2, dtype=torch.bfloat16))
    again = torch.from_numpy(narrow.view(np.int16)).view(torch.bfloat16)
    assert again.tolist() == [1.0, 1.0]
    lazy = array_api.asarray(torch.tensor([1.0, 2.0])) * 2
    for way in (torch.asarray, torch.from_dlpack, torch.tensor):
        assert way(lazy).tolist() == [2.0, 4.0]
    own = torch.from_dlpack(lazy)
    own += 1
    assert np.asarray(lazy).tolist() == [2.0, 4.0]  # the tensor has a copy


def test_memory_is_shared_where_it_is_asked_for(torch: Any) -> None:
    tensor = torch.ones(2)
    shared = array_api.asarray(tensor, copy=False)
    own = array_api.asarray(tensor)
    tensor[0] = 5.0
    assert (float(shared[0]), float(own[0])) == (5.0, 1.0)
    with pytest.raises(ValueError, match="copy=False"):
        array_api.asarray(torch.tensor([1j]).conj(), copy=False)


# -- JAX


@pytest.fixture(name="jnp")
def _jax() -> Any:
    return pytest.importorskip("jax.numpy", reason="jax is not installed")


def test_arrays_of_jax_enter(jnp: Any) -> None:
    for dtype in ("bool", "int8", "uint32", "float16", "float32", "complex64"):
        array = np.array([[0, 1], [1, 0]]).astype(dtype)
        assert_enters(jnp.array(array), array)
        assert_enters(jnp.array(array)[0, 1], array[0, 1])
    for name in (*NARROW, "int4", "uint4"):
        array = np.arange(8).astype(getattr(ml_dtypes, name))
        assert_enters(jnp.array(array), array)


def test_results_become_arrays_of_jax(jnp: Any) -> None:
    result = jit(lambda x: x * 2)(jnp.array(F32))
    assert jnp.asarray(result).dtype == np.float32
    narrow = execute(identity(np.zeros(2, ml_dtypes.bfloat16)), jnp.ones(2, jnp.bfloat16))
    assert jnp.asarray(narrow).dtype == jnp.bfloat16
    lazy = array_api.asarray(jnp.array([1.0, 2.0])) * 2
    assert jnp.from_dlpack(lazy).tolist() == jnp.asarray(np.asarray(lazy)).tolist() == [2.0, 4.0]


# -- writes


def test_a_jitted_function_that_writes_to_a_foreign_argument_is_refused(
    torch: Any, pd: Any
) -> None:
    @jit
    def add_one(x: Any) -> Any:
        x += 1
        return x

    values = [torch.ones(2), pd.Series([1.0, 1.0])]
    for value in values:
        with pytest.raises(GraphirError, match=r"it is read-only; write to x.copy\(\)"):
            add_one(value)
        assert value.sum() == 2
