"""The layers and packages of the project, in the order of the map, and their imports.

The map, in docs/architecture.md, is the only list: a package or module that it lacks, or has in a
place where it imports from below, fails tests/test_structure.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.syntax import syntax

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {"graphir": "graphir", "passes": "graphir.passes", "runtime": "graphir.runtime"}
"""The package of each folder, the lowest layer first."""

SOURCES = sorted(path for folder in LAYERS for path in (ROOT / folder).rglob("*.py"))


def _map() -> Iterator[str]:
    """Yield the package or module of each entry of the map, in its order."""
    text = (
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("\n## The map\n")[1]
    )
    layer = ""
    for indent, names in re.findall(r"^ {4}( {0,2})((?:[\w/]+(?:\.py|/) ?)+)", text, re.M):
        if not indent:
            layer = LAYERS.get(names.strip().rstrip("/"), "")
        elif layer:
            yield from (f"{layer}.{name.removesuffix('.py').rstrip('/')}" for name in names.split())


PACKAGES = tuple(_map())
"""The packages and modules directly in a layer, in order: each imports from those before it."""


def module_of(path: Path) -> str:
    """Return the full name of the module in a file."""
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([LAYERS[folder], *(parts[:-1] if parts[-1] == "__init__" else parts)])


MODULES = {module_of(path): path for path in SOURCES}


def layer_of(module: str) -> str:
    """Return the package of the layer that has a module."""
    return max((x for x in LAYERS.values() if f"{module}.".startswith(f"{x}.")), key=len)


@cache
def place_of(module: str) -> int:
    """Return the place of a module's package; the namespace of a layer comes after the layer."""
    inside = [i for i, name in enumerate(PACKAGES) if f"{module}.".startswith(f"{name}.")]
    layer = [i for i, name in enumerate(PACKAGES) if layer_of(name) == layer_of(module)]
    return max(inside, default=layer[-1])


def imported(path: Path) -> Iterator[str]:
    """Yield the name of each module that a file imports."""
    for node in syntax(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module


def dependencies(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports when it runs, deferred imports included."""
    facts = syntax(path)
    for node in facts.imports:
        if node in facts.typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif node.module in MODULES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)
