"""`__array_namespace_info__`: the standard's inspection of capabilities, devices and dtypes."""

from __future__ import annotations

from typing import Any, cast

from graphir.public import DType
from graphir.runtime.array_api.array import CPU, device_of
from graphir.runtime.array_api.dtypes import ALL, DEFAULTS, kind_of


class Info:
    """The capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: boolean masks, value-dependent shapes, NumPy's 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the default device, the CPU."""
        return CPU

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """Return the default dtypes of Python numbers and of indices."""
        device_of(device)
        return dict(DEFAULTS)

    def devices(self) -> tuple[str, ...]:
        """Return the devices: the CPU alone."""
        return (CPU,)

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """Return the dtypes of a kind, or of a tuple of kinds, by name; None means all dtypes."""
        device_of(device)
        if kind is None:
            return {str(dtype): dtype for dtype in ALL}
        kinds = cast("tuple[str, ...]", kind) if isinstance(kind, tuple) else (kind,)
        return {str(dtype): dtype for name in kinds for dtype in kind_of(name)}


def __array_namespace_info__() -> Info:  # noqa: N807 -- the standard's name
    """Return the inspection object of the namespace."""
    return Info()
