"""The user's line under which an op is recorded, found on the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from graphir import Location
from graphir.location import CompoundLocation

_OURS = frozenset({"graphir", "passes", "runtime"})
_THIN = frozenset({"numpy._core.fromnumeric", "numpy._core._methods"})
"""Modules of NumPy whose functions do one op each."""
_USER, _INTERNAL, _TOP, _IMPORT, _NUMPY = 1, 2, 3, 4, 5


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of this project."""
    return _package(frame) in _OURS


def _call(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    return function(*args, **kwargs)


class Site(NamedTuple):
    """A place in the program; `call(function, args, kwargs)` calls as if from that line.

    So warnings of what is called are those of the user's line, which they name, and count there.
    """

    location: Location
    call: Callable[..., Any]


class CallSites:
    """Locations of user frames, one object for each way to a place.

    Frames of NumPy and of this project are not the user's. The layer of a location names the
    functions on the way from the recorded one, which `top` calls, to the place: `solve/residual`.
    Where NumPy's own Python code is run in between, the location is compound.
    """

    def __init__(self, top: CodeType) -> None:
        # By id, since hashing a code object reads all of it; `_codes` keeps them alive.
        self._kinds: dict[int, int] = {id(top): _TOP}
        self._codes: dict[int, CodeType] = {id(top): top}
        self._sites: dict[tuple[int, ...], Site] = {}
        self.importing = Site(Location.at("", 0), _call)
        """The site of what a module does while the program imports it."""

    def here(self, depth: int = 1) -> Site:
        """The innermost user frame; where there is none, the line that asked for the recording."""
        frame: FrameType | None = _getframe(depth)
        kinds, user, within = self._kinds, None, False
        path: list[int] = []
        while frame is not None:
            code = id(frame.f_code)
            kind = kinds.get(code) or self._classified(frame)
            if kind == _USER:
                user = user or frame
                path.append(code)
            elif kind == _TOP:
                user = user or self._caller(frame)
                break
            elif kind == _NUMPY:
                within = within or user is None
            elif kind == _IMPORT:
                return self.importing
            frame = frame.f_back
        assert user is not None  # there is a program that runs
        key = (within, user.f_lasti, *path)
        site = self._sites.get(key)
        if site is None:
            place = CompoundLocation if within else Location
            location = place(user.f_code, user.f_lasti, self._layer(path))
            site = self._sites[key] = Site(location, self._caller_at(user))
        return site

    def _caller_at(self, frame: FrameType) -> Callable[..., Any]:
        """`_call`, as if it were written at the line where a frame is."""
        code = _call.__code__.replace(
            co_filename=frame.f_code.co_filename,
            co_name=frame.f_code.co_name,
            co_firstlineno=frame.f_lineno - 1,
        )
        self._kinds[id(code)], self._codes[id(code)] = _INTERNAL, code
        return FunctionType(code, frame.f_globals)

    def _classified(self, frame: FrameType) -> int:
        kind = _INTERNAL if is_ours(frame) else _NUMPY if _package(frame) == "numpy" else _USER
        kind = _INTERNAL if frame.f_globals.get("__name__") in _THIN else kind
        kind = _IMPORT if frame.f_code.co_name == "<module>" else kind
        code = frame.f_code
        self._kinds[id(code)], self._codes[id(code)] = kind, code
        return kind

    def _caller(self, frame: FrameType) -> FrameType:
        """The user's frame that asked for the recording."""
        while frame.f_back is not None:
            frame = frame.f_back
            if (self._kinds.get(id(frame.f_code)) or self._classified(frame)) in (_USER, _IMPORT):
                break
        return frame

    def _layer(self, path: list[int]) -> str:
        inner = [self._codes[code].co_name for code in reversed(path[:-1])]
        return "/".join(name for name in inner if not name.startswith("<"))
