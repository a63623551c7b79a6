"""Ops and rule sets of other distributions, by the entry points that these declare.

A distribution names an object in its `pyproject.toml`:

    [project.entry-points."graphir.ops"]
    softsign = "my_package.my_ops:softsign"

Entry points are read when a name is unknown, and the module behind a name is imported when that
name is asked for: importing graphir looks at no other distribution.
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
    from importlib.metadata import entry_points  # takes longer to import than most graphs to build

    return entry_points(group=group)


def declared_names(group: Group) -> list[str]:
    """The names that installed distributions declare in a group."""
    return sorted(_entry_points(group).names)


def load_declared(group: Group, name: object) -> Any:
    """The object that an installed distribution declares by a name; None for none.

    Raises GraphError for an object that cannot be imported or has another name, and where two
    distributions declare different ones.
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
    except Exception as error:  # whatever the module of the other distribution raises
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
