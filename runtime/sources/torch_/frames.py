"""Where an op of PyTorch was called: the user's line, the layer, and the function of PyTorch."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.util import find_spec
from inspect import signature
from os import sep
from pathlib import Path
from sysconfig import get_path
from types import FrameType
from typing import Any, NamedTuple

from graphir.location import CompoundLocation, Location
from graphir.runtime.sources.torch_.tensors import Function, Module, Tensor, Torch
from graphir.runtime.user_code import INSTALLED, PROJECT, SITE_PACKAGES
from graphir.source_text import displayed_path


class FunctionCall(NamedTuple):
    """A call of a function of PyTorch: its name, arguments, and whether autocast was enabled.

    `names_dtype` says that an argument is a torch.dtype.
    """

    name: str
    arguments: tuple[Any, Mapping[str, Any]]
    autocast: bool
    names_dtype: bool
    function: Function

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters, if Python has them."""
        try:
            return list(signature(self.function).parameters)
        except (TypeError, ValueError):
            return []

    @property
    def is_conversion(self) -> bool:
        """Whether the user asks a dtype of the function: `x.to(...)`, `softmax(x, dtype=...)`."""
        return self.name in _CONVERSIONS or self.names_dtype


_CONVERSIONS = frozenset(
    {
        *("to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short"),
        *("char", "byte", "bool", "cfloat", "cdouble", "chalf", "tensor", "as_tensor", "asarray"),
        *("copy_", "__setitem__", "new_tensor"),
    }
)
"""The functions of PyTorch by which a user asks a conversion."""


PROMOTED = frozenset(
    {
        *("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler"),
        *("index_put", "tensordot", "scatter_add", "cat", "stack", "index_copy", "concat"),
        *("concatenate", "hstack", "vstack", "dstack", "column_stack"),
    }
)
"""The functions of autocast's list "promote", which casts operands to their widest dtype.

Source: aten/src/ATen/autocast_mode.h (cuda) and .cpp (cpu) of PyTorch 2.13, and functions made of
`cat`.
"""


class TorchSites:
    """The user's line, open layers and called function while a program runs. `torch` is PyTorch."""

    def __init__(self, torch: Torch) -> None:
        self._torch = torch
        self._layers: list[str] = []
        self._names: dict[int, str] = {}
        self._functions: list[FunctionCall] = []
        self._entered: Callable[[Any], None] = self.add_modules
        self.fixed: Location | None = None
        """The location of every op, while it is set."""

    @property
    def function(self) -> FunctionCall | None:
        """The innermost call of a function of PyTorch that the user made."""
        return self._functions[-1] if self._functions else None

    def follow(self, module: Module) -> None:
        """Take locations and layers from the nodes of an exported module while it runs."""
        interpreter = self._torch.fx.Interpreter(module)
        run_node = interpreter.run_node

        def run(node: Any) -> Any:
            self.fixed = _exported_location(node)
            return run_node(node)

        interpreter.run_node = run
        module.forward = interpreter.run

    def location(self, layer: str | None = None) -> Location:
        """Return the location of the user's line that runs, in a layer or in the open one."""
        if self.fixed is not None:
            return self.fixed
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if layer is None:
            layer = self._layers[-1] if self._layers else ""
        kind: type[Location] = Location
        while frame is not None and (file := frame.f_code.co_filename).startswith(INSTALLED):
            if file.startswith(SITE_PACKAGES) and not file.startswith(_WRAPPERS):
                kind = CompoundLocation  # a package's function, of several ops
            frame = frame.f_back
        if frame is None:  # an installed program that no line of a user calls
            frame, kind = _reading_frame((*PROJECT, f"{_PYTORCH}{sep}")), CompoundLocation
        if frame is None:
            return Location.at("", 1, layer=layer)
        return kind(frame.f_code, frame.f_lasti, layer)

    def reader(self) -> str:
        """Return the line of an installed package that reads a value; "" if the user's line does.

        The file is relative to the folder of installed packages.
        """
        frame = _reading_frame(PROJECT)
        file = "" if frame is None or self.fixed is not None else frame.f_code.co_filename
        folder = next((x for x in SITE_PACKAGES if file.startswith(x)), None)
        if frame is None or folder is None:
            return ""
        return f"{Path(file).relative_to(folder).as_posix()}:{frame.f_lineno}"

    def unused(self, is_text: bool) -> str:
        """Return what a line does with the value that it reads, if no result depends on it.

        That is "check" for an `assert`, an `if` whose body raises, and a function of PyTorch that
        checks, and "print" for a statement that calls `print` or a logger. `is_text` says that the
        value is read as text.
        """
        call = self.function
        if call is not None and call.name == "one_hot":
            args, keywords = call.arguments
            size = (args[1:] or (keywords.get("num_classes", -1),))[0]
            return "check" if size >= 0 else ""
        frame = _reading_frame(has_standard=True)
        while frame is not None:
            source = "".join(linecache.getlines(frame.f_code.co_filename))
            use = _unused_lines(source).get(frame.f_lineno, "")
            file = frame.f_code.co_filename
            if use or not (file.startswith(INSTALLED) if is_text else _is_standard(file)):
                return use
            frame = frame.f_back  # a handler of a logger, say
        return ""

    def add_modules(self, module: Module) -> None:
        """Record the names of a module's parts, its layers."""
        for name, part in module.named_modules():
            self._names.setdefault(id(part), name.replace(".", "/"))

    @contextmanager
    def calling(
        self, function: Function, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Generator[None]:
        """Record that the user calls a function of PyTorch."""
        name: str = getattr(function, "__name__", str(function)).partition(".")[0]
        dtypes = (isinstance(x, self._torch.dtype) for x in (*args, *keywords.values()))
        enabled = self._torch.is_autocast_enabled("cpu")
        self._functions.append(FunctionCall(name, (args, keywords), enabled, any(dtypes), function))
        try:
            yield
        finally:
            self._functions.pop()

    def lstm(self, function: Function, args: Sequence[Any]) -> Any:
        """Run the ops of an LSTM, which rows cover, and not the kernel of oneDNN.

        As the kernel under autocast, they run in the dtype of autocast.
        """
        torch, settings = self._torch, self._torch._C
        before = settings._get_mkldnn_enabled()
        settings._set_mkldnn_enabled(False)
        try:
            if not (before and self.function is not None and self.function.autocast):
                return function(*args)
            to = torch.get_autocast_dtype("cpu")
            with settings._DisableAutocast():
                lower = torch.utils._pytree.tree_map_only(torch.Tensor, partial(_lower, to), args)
                return function(*lower)
        finally:
            settings._set_mkldnn_enabled(before)

    @contextmanager
    def layers(self, entered: Callable[[Any], None]) -> Generator[None]:
        """Follow the calls of modules, so that locations have their layers.

        `entered` is called with each module that no other module calls.
        """
        self._entered = entered
        hooks = self._torch.nn.modules.module
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _enter(self, module: Module, args: Sequence[Any]) -> None:
        if not self._layers:
            self.add_modules(module)
            self._entered(module)
        outer = self._layers[-1] if self._layers else ""
        name = self._names.get(id(module))
        self._layers.append(f"{outer}/{type(module).__name__}" if name is None else name)

    def _leave(self, module: Module, args: Sequence[Any], result: Tensor) -> None:
        self._layers.pop()


def _lower(to: Any, tensor: Tensor) -> Any:
    return tensor.to(to) if tensor.is_floating_point() else tensor


def _reading_frame(others: tuple[str, ...] = (), has_standard: bool = False) -> FrameType | None:
    """Return the innermost frame outside of `_INNER` and `others`, the starts of files.

    With `has_standard`, it may be of the standard library.
    """
    outside = *_INNER, *others
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(outside) and (has_standard or not _is_standard(file)):
            break
        frame = frame.f_back
    return frame


def _is_standard(file: str) -> bool:
    """Whether a file is of the standard library, in whose folder packages may be installed."""
    return file.startswith((_STANDARD, "<frozen")) and not file.startswith(SITE_PACKAGES)


_STANDARD = f"{get_path('stdlib')}{sep}"


@lru_cache(maxsize=64)
def _unused_lines(source: str) -> dict[int, str]:
    """Return the lines of a source whose values decide no result, with what they do instead."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError):
        return {}
    lines, others = dict[int, str](), set[int]()
    for node in nodes:
        match node:
            case ast.Assert(test=part):
                use = "check"
            case ast.If(test=part, body=body) if all(isinstance(x, ast.Raise) for x in body):
                use = "check"
            case ast.Expr(ast.Call(func) as part) if re.fullmatch(_PRINTS, ast.unparse(func)):
                use = "print"
            case ast.stmt() if not hasattr(node, "body") and not isinstance(node, ast.Raise):
                part, use = node, ""
            case ast.NamedExpr() as part:
                use = ""
            case _:
                continue
        places = range(part.lineno, (part.end_lineno or 0) + 1)
        others.update(() if use else places)
        lines.update(dict.fromkeys(places, use))
    return {line: use for line, use in lines.items() if line not in others}


_PRINTS = r"print|(?i:(.*[._])?(log|logger|logging)\.\w+)"
"""The functions whose calls, as statements, only show a text: `print`, and those of loggers."""

_SPEC = find_spec("torch")
_PYTORCH = Path(_SPEC.origin if _SPEC is not None and _SPEC.origin else "torch").parent
_INNER = (
    str(Path(__file__).parent),
    *(str(_PYTORCH / name) for name in ("_tensor.py", "overrides.py", "utils", "_ops.py")),
    *(str(_PYTORCH / name) for name in ("_compile.py", "_dynamo", "nn/parameter.py")),
)
"""The files that run between a line and the value that it reads."""
_WRAPPERS = (*_INNER, *(str(_PYTORCH / name) for name in ("functional.py", "nn/functional.py")))
"""The files of functions whose arguments are the operands of their ops."""


def _exported_location(node: Any) -> Location:
    """Return the location that torch.export recorded for a node."""
    lines = re.findall(r'File "([^"]*)", line (\d+)', node.meta.get("stack_trace") or "")
    file, line = lines[-1] if lines else ("", "1")
    stack: list[Any] = [*(node.meta.get("nn_module_stack") or {}).values()]
    layer: str = stack[-1][0] if stack else ""
    layer = re.sub(r"^L\['self'\]\.?", "", layer).replace(".", "/")
    return Location.at(displayed_path(file), int(line), layer=layer, source=file)
