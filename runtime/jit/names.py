"""The name under which pickle finds a jitted function, as it finds a decorated function."""

from __future__ import annotations

import sys
from functools import reduce
from typing import Any


def name_of(jitted: Any) -> str:
    """Return the qualified name that leads to an object in its module, or "" if none does.

    `cloudpickle`, with which joblib and dask send functions, carries the functions of the module
    `__main__` by value, since the `__main__` of a worker is another. It calls this function from
    the method of its pickler, by way of __reduce_ex__; so no name of `__main__` serves it.
    """
    module, name = getattr(jitted, "__module__", ""), getattr(jitted, "__qualname__", "")
    leads = reduce(_member, name.split("."), sys.modules.get(module)) is jitted
    frame: Any = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return name if leads and not (module == "__main__" and _is_cloudpickle(frame)) else ""


def _member(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


def _is_cloudpickle(frame: Any) -> bool:
    """Answer whether a frame is that of a method of cloudpickle's pickler, vendored or not."""
    kinds: Any = type(frame.f_locals.get("self")).__mro__
    return any("cloudpickle" in kind.__module__.split(".") for kind in kinds)
