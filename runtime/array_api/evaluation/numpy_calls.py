"""Eager NumPy functions, with errors that name the function and its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import GraphError, GraphirError
from graphir.runtime.array_api.array import Array, eager


class LinAlgError(GraphirError, np.linalg.LinAlgError):
    """The error for a matrix without the requested decomposition, inverse or solution."""


def call_numpy(name: str, function: Callable[..., Any], *arrays: Array, **settings: Any) -> Any:
    """Apply a NumPy function to arrays; raise LinAlgError or another ValueError if it fails."""
    try:
        return eager(function, *arrays, **settings)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{_call_text(name, arrays)}: {error}") from None
    except (ValueError, IndexError) as error:
        raise GraphError(f"{_call_text(name, arrays)}: {error}") from None


def _call_text(name: str, arrays: tuple[Array, ...]) -> str:
    return f"{name} of {' and '.join(str(x.type) for x in arrays)}"
