"""The ops of graphs: `ops.add(x, y)` adds an op to a graph; CATALOGUE holds all ops by name.

catalogue.py defines the ops, one op a line. The other modules define the Op record, attributes,
types, and the rules for dtypes and shapes. control.py defines the ops of control flow, in CONTROL.
`ops.register` adds an op from outside of the project. An op that an installed distribution declares
(graphir.import_names) is available by its name.
"""

from typing import TYPE_CHECKING, Any

from graphir.errors import GraphError
from graphir.ops import control as control
from graphir.ops.catalogue import *  # noqa: F403
from graphir.ops.catalogue import NAMES
from graphir.ops.op import CATALOGUE as CATALOGUE
from graphir.ops.op import CONTROL as CONTROL
from graphir.ops.op import find as find
from graphir.ops.op import register as register

if not TYPE_CHECKING:  # a type checker should still report unknown names

    def __getattr__(name: str) -> Any:
        """Return the op of that name, registered or declared by another distribution.

        AttributeError names similar ops if none has the name.
        """
        if not name.startswith("_"):
            try:
                return find(name)
            except GraphError as error:
                raise AttributeError(str(error)) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*NAMES, *CATALOGUE, *CONTROL, "CATALOGUE", "CONTROL", "find", "register"})
