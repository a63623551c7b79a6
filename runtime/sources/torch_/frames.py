"""Where an op of PyTorch was called: the user's line, the layer, and the function of PyTorch."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from graphir.location import CompoundLocation, Location
from graphir.source_text import displayed_path
from runtime.sources.libraries import INSTALLED, SITE_PACKAGES


class FunctionCall(NamedTuple):
    """A call of a function of PyTorch: its name, arguments, and whether autocast was enabled.

    `names_dtype` says that an argument is a torch.dtype.
    """

    name: str
    arguments: tuple[Any, Mapping[str, Any]]
    autocast: bool
    names_dtype: bool
    function: Any

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

    def __init__(self, torch: Any) -> None:
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

    def follow(self, module: Any) -> None:
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
        if frame is None:
            return Location.at("", 1, layer=layer)
        return kind(frame.f_code, frame.f_lasti, layer)

    def is_check(self) -> bool:
        """Whether the line that reads a value only raises an error by it.

        That is an `assert`, an `if` whose body raises, or a function of PyTorch that checks.
        """
        call = self.function
        if call is not None and call.name == "one_hot":
            args, keywords = call.arguments
            return (args[1:] or (keywords.get("num_classes", -1),))[0] >= 0
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_filename.startswith(_INNER):
            frame = frame.f_back
        if frame is None:
            return False
        source = "".join(linecache.getlines(frame.f_code.co_filename))
        return frame.f_lineno in _check_lines(source)

    def add_modules(self, module: Any) -> None:
        """Record the names of a module's parts, its layers."""
        for name, part in module.named_modules():
            self._names.setdefault(id(part), name.replace(".", "/"))

    @contextmanager
    def calling(self, function: Any, args: Any, keywords: Mapping[str, Any]) -> Generator[None]:
        """Record that the user calls a function of PyTorch."""
        name: str = getattr(function, "__name__", str(function)).partition(".")[0]
        dtypes = (isinstance(x, self._torch.dtype) for x in (*args, *keywords.values()))
        enabled = self._torch.is_autocast_enabled("cpu")
        self._functions.append(FunctionCall(name, (args, keywords), enabled, any(dtypes), function))
        try:
            yield
        finally:
            self._functions.pop()

    def lstm(self, function: Any, args: Any) -> Any:
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

    def _enter(self, module: Any, args: Any) -> None:
        if not self._layers:
            self.add_modules(module)
            self._entered(module)
        outer = self._layers[-1] if self._layers else ""
        name = self._names.get(id(module))
        self._layers.append(f"{outer}/{type(module).__name__}" if name is None else name)

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        self._layers.pop()


def _lower(to: Any, tensor: Any) -> Any:
    return tensor.to(to) if tensor.is_floating_point() else tensor


@lru_cache(maxsize=64)
def _check_lines(source: str) -> frozenset[int]:
    """Return the lines of a source that have conditions by which it only raises an error."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        line
        for node in nodes
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.If) and all(isinstance(x, ast.Raise) for x in node.body))
        for line in range(node.test.lineno, (node.test.end_lineno or 0) + 1)
    )


_SPEC = find_spec("torch")
_PYTORCH = Path(_SPEC.origin if _SPEC is not None and _SPEC.origin else "torch").parent
_INNER = (
    str(Path(__file__).parent),
    *(str(_PYTORCH / name) for name in ("_tensor.py", "overrides.py", "utils", "_ops.py")),
    *(str(_PYTORCH / name) for name in ("_compile.py", "_dynamo")),
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
