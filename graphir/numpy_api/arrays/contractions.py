"""np.einsum with `optimize` by its Python body: NumPy itself decides which factors it multiplies.

The body takes the factors in the order of `np.einsum_path`, the later one on the left, and calls
compiled functions, whose stand-ins are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from graphir.numpy_api.arrays.operands import VALUES, is_known


def path_of(original: Any) -> Callable[..., Any]:
    """Return the stand-in of np.einsum_path, which looks at shapes alone."""

    def einsum_path(subscripts: Any, *operands: Any, **settings: Any) -> tuple[list[Any], Any]:
        shaped = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in map(_array, operands)]
        return [*operands], original(subscripts, *shaped, **settings)[1]

    return einsum_path


def compiled_einsum(original: Any) -> Callable[..., Any]:
    """Return the stand-in of NumPy's compiled einsum: a view of one factor, or np.einsum itself."""

    def c_einsum(subscripts: str, *operands: Any, **settings: Any) -> Any:
        if is_known(operands, settings):
            return original(subscripts, *operands, **settings)
        axes, _, kept_axes = subscripts.partition("->")
        if {*axes} != {*kept_axes} or settings:
            return np.einsum(subscripts, *operands, **settings)
        view = operands[0]
        for axis in [axis for k, axis in enumerate(axes) if axis in axes[:k]]:
            first = axes.index(axis)
            second = axes.index(axis, first + 1)
            view = np.diagonal(view, 0, first, second)
            axes = axes[:first] + axes[first + 1 : second] + axes[second + 1 :] + axis
        return np.transpose(view, [axes.index(axis) for axis in kept_axes])

    return c_einsum


def _array(value: Any) -> Any:
    return cast("Any", value) if isinstance(value, VALUES) else np.asanyarray(value)
