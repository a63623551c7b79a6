"""What comes in and goes out: sequences, buffers, NumPy, DLPack, devices, Python's own numbers."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir.runtime import array_api as xp
from tests.support.tables import every

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


def values(dtype: str) -> np.ndarray[Any, Any]:
    return np.array([[0, 1, 2], [3, 100, 127]]).astype(dtype)


# -- in


@every("dtype", DTYPES)
def test_arrays_of_every_dtype_come_and_go(dtype: str):
    given = values(dtype)
    ways: list[Callable[[Any], Any]] = [xp.asarray, xp.from_dlpack, lambda x: xp.asarray(x.copy())]
    for way in ways:
        for layout in (given, given[:, ::-1], given.T):
            x = way(layout)
            assert x.dtype is getattr(xp, dtype) and x.shape == layout.shape
            np.testing.assert_array_equal(np.asarray(x), layout, strict=True)
    np.testing.assert_array_equal(np.from_dlpack(xp.asarray(given)), given, strict=True)


def test_python_numbers_have_the_default_dtypes():
    for number, dtype in ((True, "bool"), (1, "int64"), (1.5, "float64"), (1j, "complex128")):
        for given in (number, [number], ((number,),)):
            assert xp.asarray(given).dtype is getattr(xp, dtype)
            assert xp.full((2,), number).dtype is getattr(xp, dtype)
    assert xp.asarray([1, 2.5]).dtype is xp.float64
    assert xp.asarray([[1, 2j]]).dtype is xp.complex128


def test_buffers():
    assert np.asarray(xp.asarray(array.array("f", [1.0, 2.0]))).tolist() == [1.0, 2.0]
    assert xp.asarray(memoryview(b"\x01\x02")).dtype is xp.uint8
    assert xp.asarray(np.float32(2)).dtype is xp.float32


def test_copies_where_they_are_asked_for():
    given = np.array([1.0, 2.0])
    shared = xp.asarray(given, copy=False)
    given[0] = 5.0
    assert float(shared[0]) == 5.0
    for copy in (None, True):
        x = xp.asarray(given, copy=copy)
        given[1] = 7.0
        assert float(x[1]) != 7.0
        given[1] = 2.0
    x = xp.asarray([1.0])
    assert xp.asarray(x) is x is xp.asarray(x, copy=False) is xp.astype(x, xp.float64, copy=False)
    assert xp.asarray(x, copy=True) is not x is not xp.astype(x, xp.float64)
    for wrong in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(given, dtype=xp.float32, copy=False),
        lambda: xp.asarray(x, dtype=xp.float32, copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            wrong()


NO_ARRAYS = [
    ("a", TypeError),
    (["a"], TypeError),
    (None, (TypeError, OverflowError)),
    (object(), (TypeError, OverflowError)),
    ([[1], [2, 3]], ValueError),
    (2**64, OverflowError),
    ([-(2**63) - 1], OverflowError),
    (np.array(["2020"], "datetime64[D]"), TypeError),
    (np.float16(1), TypeError),
    (np.zeros(2, "f4,i4"), TypeError),
    ([xp.asarray(1), xp.asarray(1.0)], TypeError),
    ([xp.asarray([1]), 1], ValueError),
]


@every(("given", "error"), NO_ARRAYS)
def test_what_is_no_array_of_the_standard(given: Any, error: Any):
    with pytest.raises(error):
        xp.asarray(given)


def test_ints_that_do_not_fit_a_dtype_are_refused():
    for number in (-1, 256):
        with pytest.raises(OverflowError):
            xp.asarray([number], dtype=xp.uint8)
        with pytest.raises(OverflowError):
            xp.full((2,), number, dtype=xp.uint8)


NO_DTYPES = ["float16", "bfloat16", "int4", "weak_float", "no", object, None, 1.5]


@every("dtype", NO_DTYPES)
def test_dtypes_that_the_standard_has_not_are_refused(dtype: Any):
    ways: list[Callable[[Any], Any]] = [
        lambda d: xp.astype(xp.ones(2), d),
        lambda d: xp.isdtype(d, "numeric"),
        lambda d: xp.can_cast(xp.int8, d),
        lambda d: xp.result_type(xp.int8, d),
    ]
    if dtype is not None:
        ways += [lambda d: xp.zeros(2, dtype=d), lambda d: xp.sum(xp.ones(2), dtype=d)]
    for way in ways:
        with pytest.raises(TypeError):
            way(dtype)


def test_complex_numbers_become_real_by_name_only():
    x = xp.asarray([1 + 2j])
    for dtype in (xp.float64, xp.int8, xp.bool):
        with pytest.raises(TypeError, match="imaginary"):
            xp.astype(x, dtype)


# -- devices


def test_the_one_device():
    x = xp.ones(2, device="cpu")
    assert x.to_device("cpu") is x and x.device == xp.Device("cpu")
    for wrong, near in (
        (lambda: xp.ones(2, device="cuda"), "unknown device 'cuda'; use 'cpu'"),
        (lambda: xp.asarray(1, device="gpu"), "unknown device 'gpu'; use 'cpu'"),
        (lambda: x.to_device("cuda:0"), "unknown device 'cuda:0'; use 'cpu'"),
        (lambda: x.to_device("cpu", stream=1), "the CPU has no streams"),
        (lambda: xp.from_dlpack(x, device="tpu"), "unknown device 'tpu'; use 'cpu'"),
    ):
        with pytest.raises(ValueError, match=near):
            wrong()


# -- out


def test_numpy_takes_values_as_they_are_or_in_another_dtype():
    x = xp.asarray([1.5, 2.5])
    assert np.asarray(x, dtype=np.int8).tolist() == [1, 2]
    assert np.array(x, dtype="f4").dtype == np.float32
    np.testing.assert_allclose(np.asarray([x, x]), [[1.5, 2.5]] * 2)
    assert np.asarray(x, copy=False).flags.writeable is False
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.int8, copy=False)


def test_functions_of_numpy_do_not_take_arrays_by_accident():
    x = xp.asarray([1.5, 2.5])
    for way in (np.sin, lambda a: np.ones(2) + a, lambda a: a @ np.ones(2), lambda a: np.add(1, a)):
        with pytest.raises(TypeError):
            way(x)


def test_dlpack_of_other_versions_and_devices():
    x = xp.asarray([1.0, 2.0])
    cpu = x.__dlpack_device__()
    assert (int(cpu[0]), cpu[1]) == (1, 0)
    for version in (None, (0, 5), (1, 0), (2, 0)):
        for copy in (None, True):
            assert "dltensor" in repr(x.__dlpack__(max_version=version, copy=copy))
    assert x.__dlpack__(dl_device=cpu, stream=None)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        x.__dlpack__(stream=1)


def test_dlpack_marks_what_is_not_copied_as_read_only():
    x = xp.asarray([1.0, 2.0])
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        with pytest.raises(BufferError):
            x.__dlpack__(copy=False)
        return
    for version in (None, (0, 5), (1, 0), (2, 0)):
        assert "versioned" in repr(x.__dlpack__(max_version=version, copy=False))
    assert not np.from_dlpack(x, copy=False).flags.writeable


def test_from_dlpack_copies_unless_told_not_to():
    given = np.array([1.0, 2.0])
    x, shared = xp.from_dlpack(given), xp.from_dlpack(given, copy=False)
    given[0] = 9.0
    assert float(x[0]) == 1.0 and float(shared[0]) == 9.0
    assert xp.from_dlpack(x) is x and xp.from_dlpack(x, copy=True) is not x
    with pytest.raises((TypeError, AttributeError)):
        xp.from_dlpack([1.0])


def test_numbers():
    for x, types in (
        (xp.asarray(True), (bool, int, float, complex)),
        (xp.asarray(3, dtype=xp.uint8), (bool, int, float, complex)),
        (xp.asarray(-2.5), (bool, int, float, complex)),
        (xp.asarray(1 + 2j), (bool, complex)),
    ):
        item = np.asarray(x).item()
        for kind in (bool, int, float, complex):
            if kind in types:
                assert kind(x) == kind(item) and type(kind(x)) is kind
            else:
                with pytest.raises(TypeError, match="complex"):
                    kind(x)
    assert [0, 1, 2, 3][xp.asarray(3, dtype=xp.uint8)] == 3


@every("kind", [bool, int, float, complex])
def test_only_arrays_of_no_axis_are_numbers(kind: Any):
    for shape in ((1,), (2,), (0,), (1, 1)):
        with pytest.raises(TypeError, match="0-d"):
            kind(xp.ones(shape))


@every("x", [1.5, True, 1j, [1]])
def test_indices_are_integers_of_no_axis(x: Any):
    with pytest.raises(TypeError):
        [1, 2, 3][xp.asarray(x)]


def test_infinities_and_nan_are_no_ints():
    for value, error in ((np.inf, OverflowError), (-np.inf, OverflowError), (np.nan, ValueError)):
        with pytest.raises(error):
            int(xp.asarray(value))


def test_how_arrays_look():
    assert repr(xp.asarray([1, 2], dtype=xp.int8)) == "Array([1, 2], dtype=int8)"
    assert repr(xp.asarray(2.5)) == "Array(2.5, dtype=float64)"
    assert str(xp.asarray([True, False])) == "[ True False]"
    assert f"{xp.asarray(2.5):.3f} {xp.asarray(7):>3} {xp.asarray([1, 2])}" == "2.500   7 [1 2]"
    assert repr(xp.asarray([[1.0], [2.0]])).splitlines()[1] == "       [2.]], dtype=float64)"


def test_arrays_are_not_hashed():
    with pytest.raises(TypeError, match="unhashable"):
        hash(xp.asarray(1))


# -- other libraries


def test_arrays_of_torch_come_and_go():
    torch = pytest.importorskip("torch", reason="torch is not installed: no exchange with it")
    there = torch.from_dlpack(xp.asarray([1.0, 2.0]))
    assert there.tolist() == [1.0, 2.0]
    back = xp.from_dlpack(torch.tensor([[1, 2]], dtype=torch.int16))
    assert back.dtype is xp.int16 and np.asarray(back).tolist() == [[1, 2]]
    there[0] = 5.0
    assert xp.asarray(torch.tensor([1.5])).dtype is xp.float32
