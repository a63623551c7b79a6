"""NumPy's products of symbols: of vectors and matrices, and what is made of those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import ops
from graphir.literals import is_literal
from graphir.numpy_einsum import einsum
from graphir.numpy_movement import flat
from graphir.symbol import Symbol


def strong(x: Any) -> Any:
    """A number as the array that NumPy makes of it where no ufunc asks for its kind alone."""
    return np.asarray(x) if is_literal(x) else x


def _dot(a: Any, b: Any) -> Symbol:
    a, b = strong(a), strong(b)
    ranks = np.ndim(a), np.ndim(b)
    if 0 in ranks:
        return ops.multiply(a, b)
    if max(ranks) < 3:
        return ops.matmul(a, b)
    return ops.tensordot(a, b, axes=((ranks[0] - 1,), (max(ranks[1] - 2, 0),)))


def _inner(a: Any, b: Any) -> Symbol:
    a, b = strong(a), strong(b)
    ranks = np.ndim(a), np.ndim(b)
    if 0 in ranks:
        return ops.multiply(a, b)
    return ops.tensordot(a, b, axes=((ranks[0] - 1,), (ranks[1] - 1,)))


def _vdot(a: Any, b: Any) -> Symbol:
    return ops.matmul(np.conjugate(flat(a)) if np.iscomplexobj(a) else flat(a), flat(b))


def _outer(a: Any, b: Any) -> Symbol:
    return ops.outer(flat(a), flat(b))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Symbol:
    return ops.tensordot(a, b, axes=axes)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "dot": _dot,
    "inner": _inner,
    "vdot": _vdot,
    **dict.fromkeys(("outer", "linalg.outer"), _outer),
    **dict.fromkeys(("tensordot", "linalg.tensordot"), _tensordot),
    "linalg.matmul": ops.matmul,
    "einsum": einsum,
}
"""By the path in numpy."""
