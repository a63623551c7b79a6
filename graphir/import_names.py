"""Import names: which modules are this project's, and where their files lie."""

import os

_LINKED = ("passes", "runtime")  # folders of the repository, which the package has as links


def is_own_module(name: str) -> bool:
    """Whether a module of that full name is this project's."""
    return name.partition(".")[0] == "graphir"


def own_folders() -> tuple[str, ...]:
    """Return the starts of the paths of this project's files; two are links in a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    linked = (os.path.realpath(os.path.join(folder, name)) for name in _LINKED)
    return tuple(f"{path}{os.sep}" for path in (folder, *linked))
