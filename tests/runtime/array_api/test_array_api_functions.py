"""Functions of the namespace against NumPy's of the same names, and array-api-strict's if there.

Every line of CALLS is run in each namespace: dtype, shape and values are the same.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir import AxisError, DType, ShapeError
from graphir.runtime import array_api
from tests.support.tables import every

CALLS = """
xp.asarray([1, 2, 3])
xp.asarray([[1.5], [2]], dtype=xp.float32)
xp.asarray(True)
xp.asarray(2**63)
xp.asarray([1 + 2j])
xp.asarray([])
xp.asarray(F32, dtype=xp.float64)
xp.asarray(np.arange(6)[::-2])
xp.asarray([[F64[0, 0], 2.5], [1, F64[1, 1]]])
xp.asarray(memoryview(b"ab"))
xp.arange(5)
xp.arange(1, 10, 3, dtype=xp.float32)
xp.arange(0.0, 1, 0.3)
xp.arange(5, 0, -2)
xp.arange(3, 3)
xp.arange(10, dtype=xp.uint8)
xp.linspace(0, 1, 5)
xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float32)
xp.linspace(1, -1, 1)
xp.linspace(0, 1j, 3)
xp.full((2, 2), 3)
xp.full(2, True)
xp.full((), 1j)
xp.full((2, 0), 1.5, dtype=xp.float32)
xp.full_like(I8, 3)
xp.full_like(I8, 3, dtype=xp.float64)
xp.zeros(3)
xp.zeros((2, 3), dtype=xp.bool)
xp.ones((2,), dtype=xp.complex64)
xp.zeros_like(F32)
xp.ones_like(F32, dtype=xp.int8)
xp.eye(3)
xp.eye(3, 4, k=1)
xp.eye(2, 3, k=-5, dtype=xp.int8)
xp.tril(M)
xp.tril(M, k=-1)
xp.triu(STACK, k=1)
xp.tril(M > 2)
xp.meshgrid(V, xp.asarray([1, 2, 3]))
xp.meshgrid(V, xp.asarray([1, 2, 3]), V, indexing="ij")
xp.meshgrid(V)
xp.meshgrid()
xp.from_dlpack(np.arange(3))
xp.astype(F64, xp.int8)
xp.astype(F64, xp.complex64)
xp.astype(M, xp.bool)
xp.broadcast_to(V, (3, 2))
xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))
xp.broadcast_arrays()
xp.clip(M, 2, 4)
xp.clip(F32, 1, 2.5)
xp.clip(M, min=2)
xp.clip(F64, max=2)
xp.clip(F64, xp.asarray([[0.0], [1.0]]), 1.5)
xp.where(M > 2, M, -M)
xp.where(M > 2, 1, M)
xp.sum(I8)
xp.sum(xp.asarray([200, 100], dtype=xp.uint8))
xp.sum(M, axis=0)
xp.sum(M, axis=(0, 1), keepdims=True)
xp.sum(STACK, axis=(-1, 0))
xp.sum(F32, dtype=xp.float64)
xp.sum(xp.zeros((0, 3)), axis=0)
xp.prod(I8)
xp.prod(xp.zeros((0,)))
xp.mean(F64, axis=0, keepdims=True)
xp.mean(F32)
xp.std(F64, correction=1)
xp.std(F64, axis=1)
xp.var(F64, correction=1.0)
xp.var(F64, correction=0.5, keepdims=True)
xp.max(M, axis=-1)
xp.min(F32)
xp.all(M)
xp.any(xp.zeros((2, 0)), axis=1)
xp.all(STACK > 3, axis=(0, 2), keepdims=True)
xp.argmax(M, axis=-1, keepdims=True)
xp.argmin(M)
xp.count_nonzero(M - 1, axis=1)
xp.count_nonzero(F64)
xp.cumulative_sum(M, axis=-1, include_initial=True)
xp.cumulative_sum(I8)
xp.cumulative_sum(F32, axis=0, dtype=xp.float64)
xp.cumulative_prod(I8, include_initial=True)
xp.cumulative_prod(M, axis=0)
xp.diff(V)
xp.diff(M, axis=0)
xp.diff(STACK, n=2)
xp.diff(V, n=0)
xp.diff(V, n=5)
xp.diff(M, prepend=xp.asarray([[1], [2]]), append=xp.asarray([[9], [9]]))
xp.nonzero(M - 1)
xp.unique_all(xp.asarray([3, 1, 3, 2]))
xp.unique_counts(xp.asarray([[3.0, 1], [3, np.nan]]))
xp.unique_inverse(xp.asarray([[3, 1], [3, 2]]))
xp.isin(M, V)
xp.isin(M, 2)
xp.isin(2, M)
xp.isin(F64, F64[0, 0])
xp.isin(F64 * np.nan, F64 * np.nan)
xp.isin(I8, V)
xp.isin(M[:0, ...], V)
xp.isin(M, V[:0])
xp.sort(M, axis=0)
xp.argsort(xp.asarray([3.0, 1, 3, 2]))
xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([[2, 3]]), side="right")
xp.searchsorted(xp.asarray([1, 3, 5]), 3)
xp.searchsorted(F32[0, ...], 2, side="right")
xp.searchsorted(xp.asarray([5, 3, 1]), xp.asarray([2, 3, 9]), sorter=xp.asarray([2, 1, 0]))
xp.take(M, xp.asarray([1, 0, 1]), axis=1)
xp.take(M, xp.asarray([-1]), axis=0)
xp.take(V, xp.asarray([1, 1], dtype=xp.uint8))
xp.take_along_axis(M, xp.asarray([[1, 0, 1]]), axis=1)
xp.take_along_axis(M, xp.asarray([[1, 0], [0, 0]]))
xp.tile(V, (2, 2))
xp.tile(M, (2,))
xp.tile(STACK, (1, 2))
xp.tile(xp.asarray(3), (2, 0))
xp.repeat(M, 2, axis=1)
xp.repeat(M, 2)
xp.repeat(M, xp.asarray([1, 2]), axis=1)
xp.roll(M, 1)
xp.roll(M, (1, 1), axis=(0, 1))
xp.roll(M, 1, axis=(0, 1))
xp.roll(STACK, -1, axis=-1)
xp.roll(xp.zeros((0, 2)), 1)
xp.flip(M)
xp.flip(M, axis=-1)
xp.flip(STACK, axis=(0, 2))
xp.squeeze(xp.ones((1, 2, 1)), axis=(0, 2))
xp.squeeze(xp.ones((1, 2, 1)), axis=-1)
xp.squeeze(xp.ones((1, 2, 1)), axis=())
xp.expand_dims(V, axis=-1)
xp.expand_dims(V, axis=0)
xp.expand_dims(M, (0, -1))
xp.expand_dims(M, axis=(-2, 1))
xp.expand_dims(M, ())
xp.moveaxis(STACK, 0, -1)
xp.moveaxis(STACK, (0, 1), (-1, 0))
xp.permute_dims(STACK, (2, 0, 1))
xp.permute_dims(STACK, (-1, 0, -2))
xp.reshape(STACK, (3, -1))
xp.reshape(STACK, (-1,))
xp.reshape(xp.asarray(5), (1, 1))
xp.concat([M, M], axis=1)
xp.concat([M, V], axis=None)
xp.concat((F64, F64[:0, ...]))
xp.stack([V, V], axis=-1)
xp.unstack(M, axis=1)
xp.unstack(V)
xp.vecdot(C64, C64)
xp.vecdot(M, V)
xp.vecdot(M, M, axis=-2)
xp.matmul(M, V)
xp.matmul(STACK, xp.ones((3, 2), dtype=xp.int64))
M @ M
xp.tensordot(M, M, axes=1)
xp.tensordot(STACK, STACK, axes=((0, 2), (0, 2)))
xp.tensordot(STACK, STACK, axes=([-1], [2]))
xp.tensordot(V, V, axes=0)
xp.matrix_transpose(STACK)
xp.linalg.outer(V, V)
xp.linalg.cross(xp.asarray([1, 2, 3]), xp.asarray([3, 2, 1]))
xp.linalg.cross(xp.ones((2, 3)), xp.asarray([3.0, 2, 1]))
xp.linalg.trace(I8M)
xp.linalg.trace(STACK, offset=1)
xp.linalg.diagonal(STACK, offset=-1)
xp.linalg.inv(F64)
xp.linalg.det(F64)
xp.linalg.solve(F64, xp.asarray([1.0, 2]))
xp.linalg.solve(F64, F64)
xp.linalg.solve(xp.stack([F64, F64]), xp.asarray([1.0, 2]))
xp.linalg.matrix_rank(xp.asarray([[1.0, 2], [2, 4]]))
xp.linalg.pinv(xp.asarray([[1.0, 2], [2, 4], [0, 0]]))
xp.linalg.matrix_norm(xp.ones((2, 2, 3)))
xp.linalg.matrix_norm(F64, ord=1, keepdims=True)
xp.linalg.vector_norm(xp.ones((2, 2, 3)), axis=(0, 2), keepdims=True)
xp.linalg.vector_norm(xp.asarray([1.0, 2]), ord=3)
xp.linalg.vector_norm(F64)
xp.linalg.vector_norm(C64, ord=np.inf)
xp.linalg.slogdet(F64)
xp.linalg.eigh(SYMMETRIC)
xp.linalg.eigvalsh(SYMMETRIC)
xp.linalg.svdvals(F64)
xp.linalg.svd(xp.ones((2, 3)), full_matrices=False)
xp.linalg.qr(F64)
xp.linalg.qr(xp.ones((3, 2)), mode="complete")
xp.linalg.cholesky(SYMMETRIC)
xp.linalg.cholesky(SYMMETRIC, upper=True)
xp.linalg.matrix_power(F64, 3)
xp.linalg.matrix_power(F64, -1)
xp.fft.fft(C64)
xp.fft.fft(C64, n=5, norm="ortho")
xp.fft.ifft(C64)
xp.fft.fftn(xp.ones((2, 3), dtype=xp.complex64))
xp.fft.ifftn(xp.ones((2, 3), dtype=xp.complex128), s=(2, 2), axes=(0, 1))
xp.fft.rfft(F64)
xp.fft.rfft(F32)
xp.fft.irfft(C64, n=3)
xp.fft.rfftn(F64)
xp.fft.irfftn(xp.ones((2, 3), dtype=xp.complex64))
xp.fft.hfft(C64)
xp.fft.ihfft(F64)
xp.fft.fftfreq(4)
xp.fft.fftfreq(5, d=0.5)
xp.fft.rfftfreq(4)
xp.fft.fftshift(F64)
xp.fft.ifftshift(F64, axes=1)
-xp.abs(M) + M // 2 - M % 2
(M & 1) | (M ^ 3)
(M << 2) >> xp.asarray([[1], [2]])
~(M > 2)
~M
2 ** V
1 / F64
1 - F64
7 // M
7 % M
1 & M
True | (M > 2)
M == 2
M != V
2 < M
abs(C64)
xp.round(xp.asarray([0.5, 1.5, -0.5, 2.5]))
xp.floor(M)
xp.trunc(F64)
xp.signbit(xp.asarray([0.0, -0.0]))
xp.nextafter(F32, xp.zeros_like(F32))
xp.copysign(F64, -F64)
xp.hypot(F64, 3)
xp.logaddexp(F64, 1)
xp.conj(C64)
xp.imag(C64)
xp.real(F64)
xp.sign(C64)
xp.reciprocal(C64)
xp.square(I8)
xp.bitwise_invert(I8)
xp.pow(F64, 2)
xp.atan2(F64, -1.0)
xp.isnan(F64 - np.inf)
STACK[0, ...]
STACK[..., -1]
STACK[:, None, ::-1, 1:2]
STACK[1, 0, 2]
V[V > 1]
M[M > 1]
STACK[xp.asarray([True, False]), ...]
M[xp.asarray([0, 1]), xp.asarray([1, 0])]
M[0, xp.asarray([1, 0])]
M[xp.asarray([[0, 1], [1, 1]]), 1]
V[xp.asarray(1)]
""".strip().splitlines()

# NumPy has not these parameters, or other results
OTHERWISE = {
    "xp.sort(M, axis=0, descending=True)": [[4, 3], [1, 2]],
    "xp.argsort(xp.asarray([3.0, 1, 3, 2]), descending=True)": [0, 2, 3, 1],
    "xp.argsort(xp.asarray([1, 1, 2, 1]), descending=True, stable=True)": [2, 0, 1, 3],
    'xp.asarray(np.arange(3, dtype=">i4"))': [0, 1, 2],
    "xp.arange(2**25 + 1, 0, -(2**24) - 1, dtype=xp.float32)": [2**25, 2**24],
    "xp.asarray([V, [1, 2]], dtype=xp.float32)": [[1, 2], [1, 2]],
    "xp.unique_values(xp.asarray([3, 1, 3, 2]))": [1, 2, 3],
    "xp.clip(M)": [[1, 3], [4, 2]],
    "xp.unique_counts(xp.asarray([np.nan, np.nan]))[1]": [1, 1],
    "xp.linalg.matrix_rank(xp.eye(2), rtol=2.0)": 0,
    "xp.linalg.pinv(xp.eye(2), rtol=xp.asarray(2.0))": [[0, 0], [0, 0]],
    "xp.fft.fftn(xp.ones((2, 2), dtype=xp.complex64), s=(1,))": [[1], [1]],
    "xp.fft.fftfreq(2, dtype=xp.float32)": [0, -0.5],
    "xp.linalg.trace(xp.zeros((0, 0)))": 0,
}


def operands(xp: Any) -> dict[str, Any]:
    """What the calls name."""
    return {
        "xp": xp,
        "np": np,
        "V": xp.asarray([1, 2]),
        "M": xp.asarray([[1, 3], [4, 2]]),
        "STACK": xp.reshape(xp.arange(12), (2, 2, 3)),
        "I8": xp.asarray([1, -2, 100], dtype=xp.int8),
        "I8M": xp.asarray([[100, 3], [4, 100]], dtype=xp.int8),
        "F32": xp.asarray([[1.5, -2.5], [0.25, 1e10]], dtype=xp.float32),
        "F64": xp.asarray([[1.0, 2.0], [3.0, -4.5]]),
        "C64": xp.asarray([1 + 2j, -3j], dtype=xp.complex64),
        "SYMMETRIC": xp.asarray([[2.0, 1], [1, 3]]),
    }


def run(call: str, xp: Any) -> list[Any]:
    """The arrays that a call gives."""
    found = eval(call, operands(xp))
    return list(found) if isinstance(found, (tuple, list)) else [found]


def same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        wanted = np.asarray(other)
        assert type(mine) is array_api.Array
        assert mine.dtype is DType(wanted.dtype) and mine.shape == wanted.shape
        assert np.asarray(mine).dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(mine), wanted, rtol=1e-6, atol=1e-12)


# What NumPy 2.0 has not, or has otherwise.
LATER = ("xp.clip(", "xp.cumulative_", "xp.unstack(", "xp.take_along_axis(", "xp.floor(M)")


@every("call", CALLS)
def test_as_numpy(call: str):
    if np.lib.NumpyVersion(np.__version__) < "2.1.0" and call.startswith(LATER):
        pytest.skip("NumPy 2.0 does not follow the standard here")
    same(run(call, array_api), run(call, np))


def test_as_array_api_strict():
    strict: ModuleType = pytest.importorskip(
        "array_api_strict", reason="array-api-strict is not installed: no comparison"
    )
    beyond: list[str] = []
    for call in CALLS:
        try:
            theirs = run(call, strict)
        except (TypeError, ValueError, IndexError):
            beyond.append(call)
        else:
            same(run(call, array_api), theirs)
    assert beyond == [
        *("xp.isin(F64, F64[0, 0])", "xp.isin(F64 * np.nan, F64 * np.nan)"),
        "STACK[xp.asarray([True, False]), ...]",
    ]


@every("call", OTHERWISE)
def test_what_numpy_has_not(call: str):
    (found,) = run(call, array_api)
    np.testing.assert_allclose(np.asarray(found), OTHERWISE[call], rtol=1e-12)


def test_results_of_several_have_names():
    x = array_api.asarray([[2.0, 1], [1, 3]])
    names = {
        "linalg.eig": ("eigenvalues", "eigenvectors"),
        "linalg.eigh": ("eigenvalues", "eigenvectors"),
        "linalg.qr": ("Q", "R"),
        "linalg.slogdet": ("sign", "logabsdet"),
        "linalg.svd": ("U", "S", "Vh"),
        "unique_all": ("values", "indices", "inverse_indices", "counts"),
        "unique_counts": ("values", "counts"),
        "unique_inverse": ("values", "inverse_indices"),
    }
    for name, fields in names.items():
        owner: Any = array_api.linalg if "." in name else array_api
        assert getattr(owner, name.rpartition(".")[2])(x)._fields == fields


def test_several_arrays_are_a_tuple():
    x = array_api.asarray([1, 2])
    for name in ("meshgrid", "broadcast_arrays"):
        assert type(getattr(array_api, name)(x, x)) is type(getattr(array_api, name)()) is tuple


@every("axis", [-4, 3])
def test_a_place_that_is_none_is_an_index_error(axis: int):
    for call in (array_api.expand_dims, array_api.sum, array_api.flip, array_api.unstack):
        with pytest.raises(AxisError, match=f"axis {axis} is out of range") as caught:
            call(array_api.ones((2, 2)), axis=axis)
        assert isinstance(caught.value, IndexError) and isinstance(caught.value, ShapeError)
