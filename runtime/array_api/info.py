"""__array_namespace_info__: what the namespace has, as the standard lets one ask."""

from __future__ import annotations

from typing import Any, cast

from graphir import DType
from runtime.array_api.devices import CPU, device_of
from runtime.array_api.dtypes import ALL, DEFAULTS, kind_of


class Info:
    """What the namespace has: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Values may decide shapes, by masks too; NumPy has at most 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The CPU."""
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that Python numbers and indices become."""
        device_of(device)
        return dict(DEFAULTS)

    def devices(self) -> list[str]:
        """The one there is."""
        return [CPU]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of a kind or of several, by name; all of them without one."""
        device_of(device)
        if kind is None:
            return {str(dtype): dtype for dtype in ALL}
        kinds = cast("tuple[str, ...]", kind) if isinstance(kind, tuple) else (kind,)
        return {str(dtype): dtype for name in kinds for dtype in kind_of(name)}


def __array_namespace_info__() -> Info:  # noqa: N807 -- the standard's name
    """What the namespace has, to be asked for."""
    return Info()
