"""graphir: graphs of typed symbols in which every implicit dtype conversion becomes explicit.

The import of this package alone imports little: pytest imports the plugin at each start, in
projects that may not ask for it. The first use of a public name loads all of its package's; those
of graphir.passes and graphir.runtime are names of graphir too.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphir import import_names

if TYPE_CHECKING:
    from graphir.passes import *  # noqa: F403 the names of its __all__
    from graphir.public import *  # noqa: F403 the names of its __all__
    from graphir.public import __all__ as __all__
    from graphir.runtime import *  # noqa: F403


_PUBLIC = "public", "passes", "runtime"
"""The modules whose public names are names of this package; the first that has a name gives it."""


class _Package(ModuleType):
    """The type of this package: public names load at first use."""

    def __getattr__(self, name: str) -> Any:
        if name in ("control", "errors", "ops"):  # rooms, which other rooms import from here
            return importlib.import_module(f"{self.__name__}.{name}")
        if not name.startswith("__") or name == "__all__":
            for package in _PUBLIC:
                public = importlib.import_module(f"{self.__name__}.{package}")
                names = {key: getattr(public, key) for key in (*public.__all__, "__all__")}
                vars(self).update({**names, **vars(self)})
                if name in names:
                    return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds each submodule here; `graphir.lattice` is the function.
        if name != "lattice":
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        names = (importlib.import_module(f"{self.__name__}.{x}").__all__ for x in _PUBLIC)
        return sorted({name for each in names for name in each})


sys.modules[__name__].__class__ = _Package
import_names.install()


def load_ipython_extension(shell: Any) -> None:
    """Load the magics of notebooks: IPython calls this function for `%load_ext graphir`."""
    from graphir.runtime.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics of notebooks: IPython calls this function for `%unload_ext graphir`."""
    from graphir.runtime.notebook import unload

    unload(shell)
