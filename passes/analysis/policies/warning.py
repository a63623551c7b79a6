"""Warnings of a policy, issued at the user's lines so that Python's warning filters apply."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

from graphir.errors import CastWarning
from graphir.escape import printable
from graphir.location import user_frame
from graphir.passes.analysis.policies.hits import Hit
from graphir.source_text import is_cell


def warn_of(hits: Iterable[Hit]) -> None:
    """Warn of each hit at its line; filters by module and the once-per-line default apply."""
    modules: dict[str, dict[str, Any]] = {}
    for hit in hits:
        place = hit.location
        path = (
            place.source or f"<{printable(place.file)}>"
        )  # warnings look for no file with a name in <>
        names = modules.get(path)
        if names is None:
            names = modules[path] = _module(path)
        warnings.warn_explicit(
            f"{hit.message} [{printable(place.layer)}]" if place.layer else hit.message,
            CastWarning,
            place.file if is_cell(place.file) else path,
            place.line,
            module=names.get("__name__", "<string>"),
            registry=names.setdefault("__warningregistry__", {}),
        )


def _module(path: str) -> dict[str, Any]:
    """Return the globals of the module at a path, from a running frame or an imported module.

    Without such a module, as for another cell of a notebook, returns the globals of the caller.
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
