"""Imports of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, package: str, what: str) -> Any:
    """Import a module of an optional package; the ImportError names the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what} needs the package {package!r}, which is not installed"
        ) from error
