"""Warnings that a policy gives, as if the lines of the program gave them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

from graphir.errors import CastWarning
from graphir.escape import printable
from graphir.location import user_frame
from passes.analysis.policies.hits import Hit


def warn_of(hits: Iterable[Hit]) -> None:
    """Warn of each hit at its line: filters by module, and once a line, hold as for any warning."""
    modules: dict[str, dict[str, Any]] = {}
    for hit in hits:
        place = hit.location
        path = place.source or f"<{printable(place.file)}>"  # Python reads no file of such a name
        names = modules.get(path)
        if names is None:
            names = modules[path] = _module(path)
        warnings.warn_explicit(
            f"{hit.told} [{printable(place.layer)}]" if place.layer else hit.told,
            CastWarning,
            path,
            place.line,
            module=names.get("__name__", "<string>"),
            registry=names.setdefault("__warningregistry__", {}),
        )


def _module(path: str) -> dict[str, Any]:
    """The names of the module whose code a path is, be it running or imported.

    Where neither is found, as of the cells of a notebook, those of the module that asks.
    """
    frame = asking = user_frame()
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_globals
        frame = frame.f_back
    for module in list(sys.modules.values()):
        names: dict[str, Any] = getattr(module, "__dict__", {})
        if names.get("__file__") == path:
            return names
    return asking.f_globals
