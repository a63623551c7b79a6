"""The loops that NumPy chooses, by the strides of operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.semantics.numpy_loops import has_contiguous_bits, inner_steps
from tests.support.tables import every

F8 = np.dtype("f8")


def test_steps_of_inner_loops() -> None:
    steps = {
        "C": np.zeros((4, 16)),
        "[::-1]": np.zeros(16)[::-1],
        "flip": np.flip(np.zeros((4, 16))),
        "short rows": np.zeros((4, 16))[:, ::-1],
        "long rows": np.zeros((4, 10_000))[:, ::-1],
        "columns": np.zeros((16, 4)).T,
    }
    found = {name: inner_steps(np.exp, [x], [F8, F8]) for name, x in steps.items()}
    assert found == {
        "C": {(1, 1)},
        "[::-1]": {(-1, 1)},
        "flip": {(-1, 1)},  # its axes become one
        "short rows": {(1, 1)},  # copied to a buffer
        "long rows": {(-1, 1)},
        "columns": {(1, 1)},
    }


def _same(a: Any, b: Any) -> bool:
    a, b = np.ascontiguousarray(a).ravel(), np.ascontiguousarray(b).ravel()
    return np.array_equal(a, b, equal_nan=True)


def _operands(dtype: str) -> dict[str, Any]:
    random = np.random.default_rng(1)
    x = (random.standard_normal((4, 10_000)) * 2).astype(dtype)
    if x.dtype.kind == "c":
        x = x + 1j * x[::-1]
    wide = np.repeat(x, 3, axis=1)
    return {
        "C": x,
        "F": np.asfortranarray(x),
        "reversed rows": x[:, ::-1],
        "flip": np.flip(x),
        "vector": x[0, ::-1],
        "step 2": x[0, ::2],
        "step -3": x[0, ::-3],
        "strided rows": wide[:, ::3],
        "short rows": x[:, :16][:, ::-1],
        "padded": x[:, :-3],
    }


UFUNCS = sorted(
    {u for u in vars(np).values() if isinstance(u, np.ufunc) and not u.signature},
    key=lambda ufunc: ufunc.__name__,
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_no_loop_with_other_bits_is_missed(dtype: str) -> None:
    for ufunc in UFUNCS:
        check_loops(ufunc, dtype)


@every("ufunc", [np.exp, np.cbrt, np.power, np.multiply, np.sqrt])
def test_some_loops(ufunc: np.ufunc) -> None:
    for dtype in ("f4", "f8"):
        check_loops(ufunc, dtype)


def check_loops(ufunc: np.ufunc, dtype: str) -> None:
    """Where the function is said to have the bits of contiguous copies, it has them.

    For float16 these are copies of float32, whose results are rounded.
    """
    of_copies = "f4" if dtype == "f2" else dtype
    for name, x in _operands(dtype).items():
        operands = [x] * ufunc.nin
        with np.errstate(all="ignore"):
            try:
                result = ufunc(*operands)
            except TypeError:
                return
            expected = ufunc(*[np.ascontiguousarray(y, of_copies) for y in operands])
            pairs = zip(result, expected, strict=True) if ufunc.nout > 1 else [(result, expected)]
            if has_contiguous_bits(ufunc, operands):
                assert all(_same(a, b.astype(a.dtype)) for a, b in pairs), (ufunc, dtype, name)
