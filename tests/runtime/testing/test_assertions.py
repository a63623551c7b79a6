"""Assertions about the casts of one call."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from graphir.runtime.testing import assert_keeps_dtype, assert_no_lossy_casts, casts_of
from tests.support.tables import every


def doubled(x: Any) -> Any:
    return x * 2


def widened(x: Any) -> Any:
    return x * np.float64(2)


def summed_into(x: Any) -> Any:
    total = np.zeros((), np.float32)
    total += x.sum(dtype=np.float64)
    return total


@every("dtype", ["float16", "float32", "complex64", "int8", "int32"])
def test_a_kept_dtype_passes(dtype: str) -> None:
    assert_keeps_dtype(doubled, np.ones(3, dtype))


@every("dtype", ["float16", "float32", "complex64"])
def test_a_wider_result_is_told_with_its_line(dtype: str) -> None:
    with pytest.raises(AssertionError, match=r"np\.float64\(2\)") as error:
        assert_keeps_dtype(widened, np.ones(3, dtype))
    assert f"the arguments are {dtype}" in str(error.value)


def test_a_scalar_that_became_wide_is_told() -> None:
    with pytest.raises(AssertionError, match=r"\[1\] is np\.float64"):
        assert_keeps_dtype(lambda x: (x, x.sum(dtype=np.float64)), np.ones(3, np.float32))


def test_lossy_casts_are_told_with_their_line() -> None:
    assert_no_lossy_casts(widened, np.ones(3, np.float32))
    with pytest.raises(AssertionError, match="1 cast can lose something") as error:
        assert_no_lossy_casts(summed_into, np.ones(3, np.float32))
    assert "result of add" in str(error.value)


def test_the_fixture_gives_the_report() -> None:
    assert [str(row.target) for row in casts_of(widened, np.ones(3, np.float32))] == ["float64"]


@pytest.mark.skipif(find_spec("jax") is None, reason="not installed: jax")
def test_functions_of_jax() -> None:
    jnp: Any = pytest.importorskip("jax.numpy")
    assert_keeps_dtype(doubled, jnp.ones(3, "float32"))
    with pytest.raises(AssertionError, match="float32"):
        assert_keeps_dtype(lambda x: x * jnp.ones(3, "float32"), jnp.ones(3, "bfloat16"))


@pytest.mark.skipif(find_spec("torch") is None, reason="not installed: torch")
def test_functions_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    assert_keeps_dtype(doubled, torch.ones(3))
    with pytest.raises(AssertionError, match="1 cast can lose something"):
        assert_no_lossy_casts(lambda x, n: x * n, torch.ones(3), torch.ones(3, dtype=torch.int64))
