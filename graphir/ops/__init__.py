"""The ops of graphs: `ops.add(x, y)` adds one; CATALOGUE has all, by name.

The catalogue is in catalogue.py, a line for each op; the Op record, attributes, types and the rules
for dtypes and shapes are the other modules. `ops.register` adds an op from outside of the project;
one that an installed distribution declares (graphir.entry_points) is found by its name.
"""

from typing import TYPE_CHECKING, Any

from graphir.errors import GraphError
from graphir.ops.catalogue import *  # noqa: F403
from graphir.ops.catalogue import NAMES
from graphir.ops.op import CATALOGUE as CATALOGUE
from graphir.ops.op import find as find
from graphir.ops.op import register as register

if not TYPE_CHECKING:  # for whom an unknown name is an error

    def __getattr__(name: str) -> Any:
        """The op of that name, registered or declared by another distribution."""
        if not name.startswith("_"):
            try:
                return find(name)
            except GraphError as error:
                raise AttributeError(str(error)) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*NAMES, *CATALOGUE, "CATALOGUE", "find", "register"})
