"""Where an equation of a jaxpr arose: the user's line, and the function of JAX called there.

JAX keeps a traceback with each equation. The innermost frame outside of JAX, of other installed
packages and of the standard library is the user's; the frame inside of it runs the function of JAX
that the user called. A conversion is written if that function converts dtypes; any other
conversion is implicit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from inspect import signature
from os import sep
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from graphir.location import Location
from graphir.passes.analysis.expressions import expression, statement
from graphir.runtime.sources.folding import Folding
from graphir.runtime.sources.jax_.abstract_values import Jax, Jaxpr, JaxprEquation
from graphir.runtime.user_code import INSTALLED, SITE_PACKAGES


class EquationSite(NamedTuple):
    """The place of an equation: the user's location, and the function of JAX, such as `jnp.mean`.

    `is_conversion` says that the user asked for a dtype: `x.astype`, `jnp.int32(x)`, `dtype=`.
    `place` identifies the instruction outside of JAX, in the user's code or in another package.
    """

    location: Location
    function: str
    is_conversion: bool
    place: tuple[int, int] = (0, 0)


class Sites:
    """The sites of the equations of jaxprs. `jax` is the module."""

    def __init__(self, jax: Jax) -> None:
        self._jax = str(Path(jax.__file__).parent)
        self._libraries = (self._jax, *INSTALLED)
        self._locations: dict[tuple[int, int, str], Location] = {}
        self._verdicts: dict[int, tuple[CodeType, bool]] = {}
        self._modules = {
            "jnp.": jax.numpy,
            "lax.": jax.lax,
            "jax.nn.": jax.nn,
        }
        self._module_names: dict[str, str] = {}
        self._packages: dict[str, str] = {}
        self._dtype_verdicts: dict[tuple[int, int], bool] = {}

    def is_written(self, site: EquationSite) -> bool:
        """Whether the user asked for the dtype of a conversion: by its function, or by `dtype=`."""
        if site.is_conversion or "." not in site.function:
            return site.is_conversion
        verdict = self._dtype_verdicts.get(site.place)
        if verdict is None:
            verdict = self._dtype_verdicts[site.place] = self._names_dtype(site)
        return verdict

    def _names_dtype(self, site: EquationSite) -> bool:
        """Whether the source of a call has an argument for the `dtype` of the function."""
        module, _, name = site.function.rpartition(".")
        source = expression(site.location)
        node = statement(source.text) if source else None
        call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        if not isinstance(call, ast.Call):
            return False
        if any(keyword.arg in _DTYPES for keyword in call.keywords):
            return True
        function: Any = getattr(self._modules.get(f"{module}."), name, None)
        try:
            parameters = list(signature(function).parameters)
        except (TypeError, ValueError):  # no function that users call
            return False
        return bool(_DTYPES & {*parameters[: len(call.args)]})

    def of(
        self,
        equation: JaxprEquation,
        outer: EquationSite | None,
        within: tuple[str, str] | None = None,
    ) -> EquationSite:
        """Return the site of an equation.

        `outer` is the site of the equation whose jaxpr has this one, and `within` the library
        function of that jaxpr, if it is one (see `traced_function`). JAX traces such a function
        once for several callers, so that the frames outside of it may be those of another call.
        """
        info = equation.source_info
        if info.traceback is None:
            return outer or EquationSite(Location.at("", 1), "", False)
        library: list[CodeType] = []
        place: tuple[int, int] | None = None
        for code, offset in zip(*info.traceback.raw_frames(), strict=True):
            if Folding.is_watching(code):
                continue
            is_library = self._is_library(code)
            if place is None and (not is_library or self._package(code.co_filename)):
                place = id(code), offset
            if not is_library:
                function, is_conversion, package = self._function(library)
                layer = str(info.name_stack) or (function if package else "")
                location = self._location(code, offset, layer)
                return EquationSite(location, function, is_conversion, place or (0, 0))
            library.append(code)
            if outer is not None and (code.co_filename, code.co_name) == within:
                return outer
        return outer or EquationSite(Location.at("", 1), *self._function(library)[:2])

    def of_frames(self, frames: Iterable[tuple[CodeType, int]]) -> EquationSite:
        """Return the site of the user's innermost frame."""
        library: list[CodeType] = []
        for code, offset in frames:
            if Folding.is_watching(code):
                continue
            if not self._is_library(code):
                location = self._location(code, offset, "")
                return EquationSite(location, *self._function(library)[:2], (id(code), offset))
            library.append(code)
        return EquationSite(Location.at("", 1), "", False)

    def traced_function(self, jaxpr: Jaxpr) -> tuple[str, str] | None:
        """Return the file and the name of the function of a jaxpr if it is a library's."""
        info = jaxpr.debug_info
        file: str = getattr(info, "func_filename", None) or ""
        name: str = getattr(info, "func_name", None) or ""
        return (file, name) if file.startswith(self._libraries) else None

    def _location(self, code: CodeType, offset: int, layer: str) -> Location:
        key = id(code), offset, layer  # the Location keeps the code object, and so its id
        location = self._locations.get(key)
        if location is None:
            location = self._locations[key] = Location(code, offset, layer)
        return location

    def _function(self, frames: Sequence[CodeType]) -> tuple[str, bool, str]:
        """Return the name of the function that frames run, whether it converts, its package.

        The function is that of JAX which the user called, or the innermost of another package,
        such as `optax.scale_by_adam`; JAX is no package here.
        """
        for code in frames:
            package = self._package(code.co_filename)
            if package:
                return f"{package}.{code.co_qualname.split('.')[0]}", False, package
        for code in reversed(frames):
            if code.co_name not in _WRAPPERS:
                name = code.co_name.strip("_").removeprefix("operator_")
                name = f"{self._module(code.co_filename)}{name}"
                return name, code.co_qualname in _CONVERSIONS, ""
        return "", False, ""

    def _package(self, file: str) -> str:
        """Return the name of the installed package of a file; "" for JAX and other files."""
        name = self._packages.get(file)
        if name is None:
            folder = next((x for x in SITE_PACKAGES if file.startswith(x + sep)), None)
            is_other = folder is not None and not file.startswith(self._jax)
            name = Path(file[len(folder or "") + 1 :]).parts[0] if is_other else ""
            name = self._packages[file] = name.removesuffix(".py")
        return name

    def _module(self, file: str) -> str:
        """Return the public name of a module of JAX with a dot; "" for other files."""
        name = self._module_names.get(file)
        if name is None:
            parts = Path(file[len(self._jax) :]).parts if file.startswith(self._jax) else ()
            name = _MODULES.get(parts[2] if len(parts) > 2 else "", "jax.") if parts else ""
            self._module_names[file] = name
        return name

    def _is_library(self, code: CodeType) -> bool:
        """Whether code is of JAX, an installed package, the standard library or this project."""
        verdict = self._verdicts.get(id(code))
        if verdict is None:  # the table keeps the code object, and so its id
            is_library = code.co_filename.startswith(self._libraries)
            verdict = self._verdicts[id(code)] = code, is_library
        return verdict[1]


_WRAPPERS = frozenset(
    {
        *("op", "meth", "reraise_with_filtered_traceback", "cache_miss", "__call__", "wrapper"),
        *("fun", "<lambda>", "<listcomp>", "<genexpr>", "deferring_binary_op", "call"),
        *("_run_python_pjit", "_python_pjit_helper", "bind", "f_jitted", "wrapped_fun"),
    }
)
"""The functions of JAX through which calls pass to the function that a user names."""

_CONVERSIONS = frozenset(
    {
        *("astype", "_astype", "convert_element_type", "_convert_element_type", "asarray", "array"),
        *("_ScalarMeta.__call__", "reduce_precision", "bitcast_convert_type"),
    }
)
"""The functions of JAX, by qualified names, of which a user asks a conversion."""

_DTYPES = frozenset({"dtype", "preferred_element_type", "new_dtype"})
"""The parameters of functions that name a dtype."""

_MODULES = {"numpy": "jnp.", "lax": "lax.", "nn": "jax.nn.", "scipy": "jax.scipy."}
