"""Import names: this project's modules, short names, optional packages, and entry points.

The folders `passes` and `runtime` of the repository are the packages `graphir.passes` and
`graphir.runtime`. `import passes` and `import runtime` give the same modules, in a checkout and
wherever no other module has the name; pickles of older releases are read by them.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoints

_SHORT = ("passes", "runtime")


def is_own_module(name: str) -> bool:
    """Whether a module of that full name is this project's."""
    return name.partition(".")[0] == "graphir"


def own_folders() -> tuple[str, ...]:
    """Return the starts of the paths of this project's files; two are links in a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    linked = (os.path.realpath(os.path.join(folder, name)) for name in _SHORT)
    return tuple(f"{path}{os.sep}" for path in (folder, *linked))


class LazyPackage(ModuleType):
    """A package, or a module of names, whose public names are imported at their first use."""

    _homes: dict[str, str]

    def _load(self, name: str) -> Any:
        if (home := self._homes.get(name)) is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = import_module(f"{home}.{name}" if home == self.__name__ else home)
        value = value if home == self.__name__ else getattr(value, name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, except that of a submodule called like a public name of the package.

        The import system binds each submodule to its name in the package, where the name may be a
        function's, as `audit` is in graphir.runtime.
        """
        is_submodule = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not is_submodule or self._homes.get(name, self.__name__) == self.__name__:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__all__, *self._homes})


def import_lazily(name: str, homes: Mapping[str, str], modules: str = "") -> None:
    """Let the public names of a package be imported at their first use.

    `homes` has the names that each module defines, by the module; `modules` are the names of public
    submodules. The package imports the names under `if TYPE_CHECKING` too, for static checkers.
    Sets `__all__`: all names but those of submodules that `homes` does not name.
    """
    package: Any = sys.modules[name]
    table = {public: home for home, names in homes.items() for public in names.split()}
    package.__dict__["_homes"] = dict.fromkeys(modules.split(), name) | table
    package.__dict__["__all__"] = sorted(table)
    package.__class__ = LazyPackage
    # In the module itself, not its class: without one, Python 3.13.0 looks for a file that shadows
    # the package, which is a SystemError where the working directory was removed.
    package.__dict__["__getattr__"] = package._load


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

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
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

    def create_module(self, spec: ModuleSpec) -> ModuleType:
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


# -- Ops, rule sets and dtypes of other distributions, found through their entry points
#
# A distribution names an object in its `pyproject.toml`:
#
#     [project.entry-points."graphir.ops"]
#     softsign = "my_package.my_ops:softsign"
#
# graphir reads entry points at the first look-up of an unknown name, and imports the module behind
# a name when a program asks for that name. Importing graphir reads no other distribution.

Group: TypeAlias = Literal["graphir.ops", "graphir.rules", "graphir.dtypes"]


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
    from graphir.errors import GraphError

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
