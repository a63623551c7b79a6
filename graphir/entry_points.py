"""Ops and rule sets of other distributions, found through the entry points of each distribution.

A distribution names an object in its `pyproject.toml`:

    [project.entry-points."graphir.ops"]
    softsign = "my_package.my_ops:softsign"

graphir reads entry points at the first look-up of an unknown name, and imports the module behind a
name when a program asks for that name. Importing graphir reads no other distribution.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from graphir.errors import GraphError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Group: TypeAlias = Literal["graphir.ops", "graphir.rules"]


@cache
def _entry_points(group: Group) -> EntryPoints:
    # A deferred import, because this module takes longer to import than most graphs to build.
    from importlib.metadata import entry_points

    return entry_points(group=group)


def declared_names(group: Group) -> list[str]:
    """Return the names that installed distributions declare in a group, sorted."""
    return sorted(_entry_points(group).names)


def load_declared(group: Group, name: object) -> Any:
    """Import and return the object that an installed distribution declares by a name.

    The result is None where no distribution declares the name. Raises GraphError where the import
    fails, where the object's own name differs from `name`, and where two distributions declare
    different objects by the name.
    """
    declared = {entry.value: entry for entry in _entry_points(group) if entry.name == name}
    if not declared:
        return None
    place = f"entry point {name!r} of group {group!r}"
    if len(declared) > 1:
        raise GraphError(
            f"{place} is declared {len(declared)} times",
            got=" and ".join(sorted(declared)),
            fix="uninstall all distributions but one that declare it",
        )
    (entry,) = declared.values()
    try:
        target = entry.load()
    except Exception as error:  # the module of the other distribution may raise anything
        raise GraphError(
            f"{place} ({entry.value}) cannot be imported", reason=f"{type(error).__name__}: {error}"
        ) from error
    if getattr(target, "name", None) != name:
        raise GraphError(
            f"{place} ({entry.value}) names an object of another name",
            got=repr(getattr(target, "name", target)),
            fix="declare the object by the name that it has",
        )
    return target
