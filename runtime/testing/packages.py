"""The package under test: found by the name of the project, and the folders beside it."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path
from typing import Any

from graphir import GraphError


def package_under_test(root: Path) -> str:
    """Return the name of the package under test of a project in a folder.

    It is the package that has the name of the project in pyproject.toml or setup.cfg, else the only
    package of the folder, or of its `src`. Raises GraphError without one.
    """
    packages = [
        path.parent.name
        for folder in (root / "src", root)
        for path in sorted(folder.glob("*/__init__.py"))
        if path.parent.name not in _OTHERS
    ]
    name = _project_name(root).replace("-", "_").replace(".", "_")
    for package in packages:
        if package.lower() == name.lower():
            return package
    if len(packages) == 1:
        return packages[0]
    if name and not packages:
        return name
    raise GraphError(
        f"--casts found no package under test in {root}",
        got=", ".join(packages) or "no packages",
        fix="name it: --casts=PACKAGE, or `casts = PACKAGE` in the settings",
    )


_OTHERS = {"tests", "test", "testing", "docs", "doc", "examples", "benchmarks", "tools", "scripts"}


def _project_name(root: Path) -> str:
    try:
        project: Any = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        name = project.get("project", {}).get("name") or project.get("tool", {}).get(
            "poetry", {}
        ).get("name")
    except (OSError, ValueError):
        name = None
    if name:
        return str(name)
    settings = configparser.ConfigParser()
    try:
        settings.read(root / "setup.cfg", encoding="utf-8")
        return settings.get("metadata", "name", fallback="")
    except configparser.Error:
        return ""
