"""Import names: this project's modules, the short names of two packages, optional packages.

The folders `passes` and `runtime` of the repository are the packages `graphir.passes` and
`graphir.runtime`. `import passes` and `import runtime` give the same modules, in a checkout and
wherever no other module has the name; pickles of older releases are read by them.
"""

import os
import sys
from importlib import import_module
from typing import Any

_SHORT = ("passes", "runtime")


def is_own_module(name: str) -> bool:
    """Whether a module of that full name is this project's."""
    return name.partition(".")[0] == "graphir"


def own_folders() -> tuple[str, ...]:
    """Return the starts of the paths of this project's files; two are links in a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    linked = (os.path.realpath(os.path.join(folder, name)) for name in _SHORT)
    return tuple(f"{path}{os.sep}" for path in (folder, *linked))


def give_short_name(name: str) -> None:
    """Make the module that is imported as `passes` or `runtime` the package of graphir."""
    if name in _SHORT:
        _share(name)


def _share(name: str) -> Any:
    """Import a package, whose modules get short names too, and return it.

    An import of one of them by its short name would else bind it to its name in the package, which
    may be a function's, as `audit` is in graphir.runtime.
    """
    package = import_module(f"graphir.{name}")
    modules = [x for x in sys.modules if x.startswith(f"graphir.{name}.")]
    sys.modules.update({x.removeprefix("graphir."): sys.modules[x] for x in modules})
    sys.modules[name] = package
    return package


class _ShortNames:
    """Finder and loader of modules by short names: `passes.pipeline` is graphir.passes.pipeline."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a spec of this loader, of another module that has the name, or None."""
        package, _, rest = name.partition(".")
        if package not in _SHORT:
            return None
        if rest:
            own = sys.modules.get(package)
            if own is not sys.modules.get(f"graphir.{package}"):
                return None
        else:
            others = (x for x in sys.meta_path if x is not self)
            specs = (finder.find_spec(name, path, target) for finder in others)
            if spec := next(filter(None, specs), None):
                return spec
        return type(sys.__spec__)(name, self)  # pyright: ignore

    def create_module(self, spec: Any) -> Any:
        """Return the module of the long name."""
        name = spec.name
        module = _share(name) if name in _SHORT else import_module(f"graphir.{name}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        """Restore the spec, which the import has replaced; the module has run."""
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Let the short names be imported."""
    if not any(type(x).__name__ == _ShortNames.__name__ for x in sys.meta_path):
        sys.meta_path.insert(0, _ShortNames())  # pyright: ignore


def optional(module: str, package: str, what: str) -> Any:
    """Import a module of an optional package; the ImportError names the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what} needs the package {package!r}, which is not installed"
        ) from error
