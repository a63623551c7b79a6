"""graphir: graphs of typed symbols in which every implicit dtype conversion becomes explicit.

The import of this package alone imports little: pytest imports the plugin at each start, in
projects that may not ask for it. The first use of a public name imports the module that defines it;
those of graphir.passes and graphir.runtime are names of graphir too.
"""

import importlib
from typing import TYPE_CHECKING, Any

from graphir import import_names

if TYPE_CHECKING:
    from graphir.passes import *  # noqa: F403 -- the names of its __all__
    from graphir.public import *  # noqa: F403 -- the names of its __all__
    from graphir.runtime import *  # noqa: F403 -- the names of its __all__


_PUBLIC = "public", "passes", "runtime"
"""The modules whose public names are names of this package; the first that has a name gives it."""


def __getattr__(name: str) -> Any:
    """Return a public name, or a module that others import from here, at its first use."""
    if name in ("control", "errors", "ops"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__all__":  # a star import gives the names of this layer alone
        return importlib.import_module(f"{__name__}.public").__all__
    if not name.startswith("__"):
        for package in _PUBLIC:
            public = importlib.import_module(f"{__name__}.{package}")
            if name in public.__all__:
                return globals().setdefault(name, getattr(public, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    packages = (importlib.import_module(f"{__name__}.{package}") for package in _PUBLIC)
    return sorted({name for package in packages for name in package.__all__})


import_names.install()


def load_ipython_extension(shell: Any) -> None:
    """Load the magics of notebooks: IPython calls this function for `%load_ext graphir`."""
    from graphir.runtime.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics of notebooks: IPython calls this function for `%unload_ext graphir`."""
    from graphir.runtime.notebook import unload

    unload(shell)
