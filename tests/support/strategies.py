"""Hypothesis strategies of dtypes, values and shapes; those of graphs are in drawing.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType
from graphir.ops.dims import Dim, Shape, evaluate

STRONG = [d for d in DType if not d.weak]
WEAK = [d for d in DType if d.weak]
MAX_DTYPES = [d for d in STRONG if not d.narrow and not d.is_complex]
NAMES = ("n", "m")


def draws(few: int, many: int, *strategies: st.SearchStrategy[Any]) -> Callable[..., Any]:
    """Decorator: a test draws few examples, and as an exhaustive test of the same name many."""

    def decorate(test: Callable[..., None]) -> Callable[[int], None]:
        def drawn(examples: int) -> None:
            settings(max_examples=examples)(given(*strategies)(test))()

        drawn.__name__, drawn.__doc__ = test.__name__, test.__doc__
        counts = [few, pytest.param(many, marks=pytest.mark.exhaustive)]
        return pytest.mark.parametrize("examples", counts)(drawn)

    return decorate


# -- values

_REALS = (
    *(1.0, 0.0, 2.0, -1.0, 0.5, 3.0, -2.75, 100.7, -0.0, np.nan, np.inf, -np.inf, 1 / 3, 257.0),
    *(2049.0, 65504.0, 65520.0, 1e-3, 1.5, 2.5, -3.5, 127.6, -129.0, 3e9, -1e19, 1e300, 1.0039),
)


@cache
def pool(dtype: DType) -> np.ndarray[Any, Any]:
    """Telling values of a dtype, in its storage: limits, subnormals, NaN, infinities."""
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            part = pool(dtype.part).astype(np.float64)
            pairs = [*zip(part, part[::-1], strict=True), *((x, 0.0) for x in part)]
            found = np.empty(len(pairs), dtype.storage)
            found.real, found.imag = np.array(pairs).T
            return found
        if dtype.format:
            ends = [
                dtype.format.max,
                dtype.format.least,
                -dtype.format.least,
                3 * dtype.format.least,
            ]
            found = np.array([*_REALS, *ends, -dtype.format.max]).astype(dtype.storage)
            return _tf32(found) if dtype is DType.tensor_float32 else found
    ends = [dtype.max, dtype.min, dtype.max - 1, dtype.min + 1, dtype.max // 2 + 1]
    small = [1, 0, 2, 3, 5, 7, -1, -2, 100]
    kept = [x for x in small + ends if dtype.min <= x <= dtype.max]
    return np.array(kept, np.uint64 if dtype.min == 0 else np.int64).astype(dtype.storage)


def _tf32(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (array.view(np.uint32) & 0xFFFFE000).view(np.float32)


def whole_bytes(dtype: DType) -> bool:
    """Whether every pattern of bytes is a value, so that arrays may be drawn as bytes."""
    return dtype.bits % 8 == 0 and dtype.family != "bool"


@st.composite
def arrays(draw: Any, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Values from the pool, or any patterns of bits at all."""
    size = int(np.prod(shape, dtype=int))
    if whole_bytes(dtype) and draw(st.integers(0, 3)) == 3:
        count = size * dtype.storage.itemsize
        raw = np.frombuffer(draw(st.binary(min_size=count, max_size=count)), np.uint8)
        return raw.view(dtype.storage).reshape(shape)
    places = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    values = pool(dtype)
    return values.take(places % len(values)).reshape(shape)


@st.composite
def literals(draw: Any, dtype: DType | None = None) -> Any:
    """Python scalars; beside a dtype, mostly those of its kind."""
    kind = dtype.family if dtype else draw(st.sampled_from(("int", "float", "bool", "complex")))
    if kind in ("int", "uint"):
        return draw(st.sampled_from((1, 0, 2, 3, 100, 300, 2**24 + 1, 2**63 - 1)))
    if kind == "bool":
        return draw(st.booleans())
    real = draw(st.sampled_from((1.0, 2, 0.1, -0.0, 0.0, float("nan"), float("inf"), 1e30)))
    return complex(real, 2.5) if kind == "complex" else real


# -- shapes

SIZES: dict[str, int] = dict.fromkeys(NAMES, 3)
DIMS = st.sampled_from((2, "n", 1, 3, "m", "n+1", 0, "2*n"))


def shapes_of(rank: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """Shapes of up to `rank` axes, ints and symbolic dims."""
    return st.lists(DIMS, max_size=rank).map(lambda dims: tuple(map(Dim.of, dims)))


def count(shape: Shape, sizes: dict[str, int] = SIZES) -> int:
    """The number of elements at some sizes."""
    return int(np.prod([evaluate(dim, sizes) for dim in shape], dtype=int))


def known(shape: Shape) -> bool:
    """Whether no dim is symbolic."""
    return all(isinstance(dim, int) for dim in shape)
