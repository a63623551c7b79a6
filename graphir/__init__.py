"""graphir: graphs of typed symbols in which every implicit dtype conversion becomes explicit.

The import of this package alone imports no other module: pytest imports the plugin at each start,
in projects that may not ask for it. The first use of a public name loads all of them.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphir.public import *  # noqa: F403 the names of its __all__
    from graphir.public import __all__ as __all__


class _Package(ModuleType):
    """The type of this package: public names load at first use."""

    def __getattr__(self, name: str) -> Any:
        import importlib

        if name in ("control", "errors", "ops"):  # rooms, which other rooms import from here
            return importlib.import_module(f"{self.__name__}.{name}")
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        public = importlib.import_module(f"{self.__name__}.public")
        vars(self).update({key: getattr(public, key) for key in (*public.__all__, "__all__")})
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds each submodule here; `graphir.lattice` is the function.
        if name != "lattice":
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self.__all__)


sys.modules[__name__].__class__ = _Package


def load_ipython_extension(shell: Any) -> None:
    """Load the magics of notebooks: IPython calls this function for `%load_ext graphir`."""
    from graphir.runtime.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics of notebooks: IPython calls this function for `%unload_ext graphir`."""
    from graphir.runtime.notebook import unload

    unload(shell)
