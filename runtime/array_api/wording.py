"""Wording of errors for users of the namespace: fixes, and counterparts of NumPy's names."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from graphir.errors import Vocabulary

ARRAYS = Vocabulary("astype(x, {dtype})", "asarray({value}, dtype={dtype})")
"""The spelling of fixes in error messages of the namespace."""


def no_method(name: str) -> str:
    """Return the error text for an attribute that Array lacks, with the namespace's counterpart."""
    message = f"an Array has no {name!r}"
    if name in ("item", "tolist"):
        return f"{message}; float(x), int(x) or np.asarray(x).{name}()"
    if name == "copy":
        return f"{message}; call asarray(x, copy=True)"
    ours = None if name.startswith("_") else _ours(name)
    return f"{message}; call the namespace's {ours}(x, ...)" if ours else message


def no_name(name: str) -> str:
    """Return the error text for a name that the standard lacks, with its nearest counterpart."""
    message = f"the array API standard has no {name!r}"
    ours = None if name.startswith("_") else _ours(name)
    return f"{message}; {ours} is the nearest" if ours else message


_OTHERS = {
    "array": "asarray",
    "asanyarray": "asarray",
    "dot": "matmul",
    "transpose": "permute_dims",
}


@lru_cache  # libraries call hasattr(...) often
def _ours(name: str) -> str | None:
    """Return the standard's name of a NumPy function, or the nearest name, or None."""
    from graphir.runtime import array_api

    names = array_api.__all__
    if name in names or name in _OTHERS:
        return _OTHERS.get(name, name)
    function = getattr(np, name, None)
    for candidate in names:
        if function is not None and function is getattr(np, candidate, None):
            return candidate
    return next(iter(get_close_matches(name, names, 1, 0.8)), None)
