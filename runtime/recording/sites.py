"""Call sites: the user's source line of each op, found on the Python stack.

`CallSites.here` finds it; `is_escape` tells whether the line only prints or writes a value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from graphir.location import CompoundLocation, is_internal
from graphir.passes.analysis.value_flows import bool_leaves, expression_text, leaves, writes
from graphir.public import Location
from graphir.runtime.recording.captured import INSTALLED, UNDER_TEST, is_user

_THIN = frozenset({"numpy._core.fromnumeric", "numpy._core._methods"})
"""Modules of NumPy whose functions are thin wrappers of one op each."""
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_USER, _INTERNAL, _TOP, _IMPORT, _NUMPY, _LIBRARY, _COMPILER = 1, 2, 3, 4, 5, 6, 7
_COMPILERS = ("jax", "jaxlib")
"""Libraries whose own arrays of NumPy are facts of their programs, and no data of the user's."""


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _call(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    return function(*args, **kwargs)


def program_frame() -> FrameType:
    """Return the innermost frame outside of this project: of the program, or of a library."""
    frame: FrameType | None = _getframe(1)
    while frame is not None and is_internal(frame):
        frame = frame.f_back
    assert frame is not None  # a recording always runs below a user frame
    return frame


def is_call_site(code: CodeType) -> bool:
    """Whether a code object is the `call` of a site, which claims a line of the user as its own."""
    return code.co_qualname == _call.__name__ and code.co_code == _call.__code__.co_code


class Site(NamedTuple):
    """A call site in the program; `call(function, args, kwargs)` makes a call as if from its line.

    Warnings of the called function therefore name the user's line, and Python counts them there.
    """

    location: Location
    call: Callable[..., Any]


class CallSites:
    """A cache of call sites, with one object for each call path to a place.

    Frames of NumPy and of this project are not user frames, and those of installed packages and of
    Python's library are not if the user's code calls them. `top` is the code of the frame that
    calls the recorded function. The layer of a location names the functions on the path from the
    recorded function to the place, as in `solve/residual`. If Python code of NumPy or of an
    installed package runs in between, the location is compound.
    """

    def __init__(self, top: CodeType) -> None:
        # The key is the id, since the hash of a code object reads all of it; `_codes` keeps the
        # code objects alive.
        self._kinds: dict[int, int] = {id(top): _TOP}
        self._codes: dict[int, CodeType] = {id(top): top}
        self._sites: dict[tuple[int, ...], Site] = {}
        self._leaving: dict[tuple[int, ...], bool] = {}
        self._shown: dict[tuple[int, int], bool] = {}
        self._texts: dict[tuple[int, int, int], str] = {}
        self.unrecorded = Site(Location.at("", 0), _call)
        """The call site of what a library's module runs as it is imported, or a compiler inside."""
        self.compiler: tuple[str, Location] | None = None
        """The first library that compiles programs, and the line of the user that calls it."""

    def here(self, depth: int = 1) -> Site:
        """Return the call site of the innermost user frame.

        Without a user frame, it is the line that asked for the recording. `depth` is the number of
        frames to skip.
        """
        frame: FrameType | None = _getframe(depth)
        kinds, user, library, within = self._kinds, None, None, False
        path: list[int] = []
        library_path: list[int] = []
        while frame is not None:
            code = id(frame.f_code)
            kind = kinds.get(code) or self._classified(frame)
            if kind == _USER:
                user = user or frame
                path.append(code)
            elif kind == _TOP:
                if user is None and library is not None:
                    user, path = library, library_path
                user = user or self._caller(frame)
                break
            elif kind == _NUMPY:
                within = within or (user is None and library is None)
            elif kind == _LIBRARY:
                library = library or (frame if user is None else None)
                library_path.append(code)
            elif kind == _IMPORT:
                return self.unrecorded
            elif kind == _COMPILER and user is None:
                return self._compiling(frame)
            frame = frame.f_back
        assert user is not None  # a recording always runs below a user frame
        within = within or library not in (None, user)
        key = (within, user.f_lasti, *path)
        site = self._sites.get(key)
        if site is None:
            place = CompoundLocation if within else Location
            location = place(user.f_code, user.f_lasti, self._layer(path))
            site = self._sites[key] = Site(location, self._caller_at(user))
        return site

    def _compiling(self, frame: FrameType) -> Site:
        """Return the call site of what a compiler computes, and keep the user's line behind it."""
        if self.compiler is None:
            callers = ((x, kind) for x, kind in self._frames() if kind in (_USER, _IMPORT))
            user, kind = next(callers, (frame, _IMPORT))
            if kind == _USER:
                self.compiler = _package(frame), Location(user.f_code, user.f_lasti)
        return self.unrecorded

    def is_escape(self) -> bool:
        """Whether what the program does now only takes values out of it: it prints or writes them.

        The answer is that of the program's source (see passes.analysis.value_flows).
        """
        chain, is_inside = self._chain()
        # The key is the ids, since the hash of a code object reads all of it.
        key = (is_inside, *(x for code, at in chain for x in (id(code), at)))
        if key not in self._leaving:
            only_leaves = bool(chain) and not is_inside and leaves(chain)
            self._leaving[key] = only_leaves or (bool(chain) and writes(chain[0]))
        return self._leaving[key]

    def is_shown(self) -> bool:
        """Whether the line that asks an attribute of a value only shows the attribute.

        The caller of this method's caller is the attribute's function.
        """
        frame = _getframe(3)
        key = id(frame.f_code), frame.f_lasti
        if key not in self._shown:
            is_user = (self._kinds.get(key[0]) or self._classified(frame)) == _USER
            self._shown[key] = is_user and leaves(self._chain()[0])
        return self._shown[key]

    def is_bool_escape(self) -> bool:
        """Whether the bool that NumPy gives the program now only leaves it, as `is_escape` says."""
        if next((kind for _, kind in self._frames()), None) != _USER:
            return False
        chain, _ = self._chain()
        key = (-1, *(x for code, at in chain for x in (id(code), at)))
        if key not in self._leaving:
            self._leaving[key] = bool_leaves(chain)
        return self._leaving[key]

    def name_of(self, value: Any, location: Location, part: int = 0) -> str:
        """Return the name of a value that leaves at a location: `total in line 12`.

        The name is that of a variable, or the source of the value (see `expression_text`).
        """
        frame = next((frame for frame, kind in self._frames() if kind == _USER), None)
        if frame is None:
            return f"text of line {location.line}"
        text = next((name for name, x in frame.f_locals.items() if x is value), "")
        if not text:
            key = id(frame.f_code), frame.f_lasti, part
            if key not in self._texts:
                self._texts[key] = expression_text((frame.f_code, frame.f_lasti), part)
            text = self._texts[key]
        return f"{text} in line {location.line}" if text else f"text of line {location.line}"

    def _chain(self) -> tuple[list[tuple[CodeType, int]], bool]:
        """Return the call sites of the running user functions, innermost first.

        The frame of a comprehension stands for that of its function. The second value is whether
        a function of NumPy runs that the innermost of them called.
        """
        chain: list[tuple[CodeType, int]] = []
        is_inner = is_inside = False
        for place, (frame, kind) in enumerate(self._frames()):
            is_inside |= not place and kind == _NUMPY
            if kind == _USER:
                if not is_inner:
                    chain.append((frame.f_code, frame.f_lasti))
                is_inner = frame.f_code.co_name in _COMPREHENSIONS
        return chain, is_inside

    def _frames(self) -> Iterator[tuple[FrameType, int]]:
        """Yield the running frames outside of this project with their kinds, innermost first."""
        frame: FrameType | None = _getframe(2)
        while frame is not None:
            kind = self._kinds.get(id(frame.f_code)) or self._classified(frame)
            if kind == _TOP:
                return
            if kind != _INTERNAL:
                yield frame, kind
            frame = frame.f_back

    def _caller_at(self, frame: FrameType) -> Callable[..., Any]:
        """Return a copy of `_call` whose code claims the current line of a frame as its own."""
        code = _call.__code__.replace(
            co_filename=frame.f_code.co_filename,
            co_name=frame.f_code.co_name,
            co_firstlineno=frame.f_lineno - 1,
        )
        self._kinds[id(code)], self._codes[id(code)] = _INTERNAL, code
        return FunctionType(code, frame.f_globals)

    def _classified(self, frame: FrameType) -> int:
        kind = _INTERNAL if is_internal(frame) else _NUMPY if _package(frame) == "numpy" else _USER
        kind = _INTERNAL if frame.f_globals.get("__name__") in _THIN else kind
        is_installed = any(name in frame.f_code.co_filename for name in INSTALLED)
        is_installed &= _package(frame) not in UNDER_TEST
        if kind == _USER and (is_installed or _package(frame) in sys.stdlib_module_names):
            kind = _LIBRARY
        kind = _COMPILER if _package(frame) in _COMPILERS else kind
        if frame.f_code.co_name == "<module>" and not is_user(frame.f_globals.get("__name__")):
            kind = _IMPORT
        code = frame.f_code
        self._kinds[id(code)], self._codes[id(code)] = kind, code
        return kind

    def _caller(self, frame: FrameType) -> FrameType:
        """Return the user's frame that asked for the recording."""
        while frame.f_back is not None:
            frame = frame.f_back
            if (self._kinds.get(id(frame.f_code)) or self._classified(frame)) in (_USER, _IMPORT):
                break
        return frame

    def _layer(self, path: list[int]) -> str:
        inner = [self._codes[code].co_name for code in reversed(path[:-1])]
        return "/".join(name for name in inner if not name.startswith("<"))
