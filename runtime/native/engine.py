"""llvmlite: assembly made into machine code, and the addresses that it needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from graphir import conversions
from runtime.native.entry import assembly, built_in, method
from runtime.native.loops import loop_of
from runtime.native.regions import Kernel

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


@cache
def features() -> tuple[str, frozenset[str]]:
    found = llvm.get_host_cpu_features()
    return found.flatten(), frozenset(name for name, is_there in found.items() if is_there)


def machine(opt: int = 2) -> Any:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features()[0],
        opt=opt,
        jit=True,
        codemodel="jitdefault",
    )


@cache
def table(name: str, dtype: Any) -> np.ndarray[Any, Any]:
    values = conversions._values(dtype) if name != "patterns" else None
    patterns = conversions._patterns(dtype) if name != "values" else None
    if name == "values":
        return values
    if name == "patterns":
        return patterns
    return values.take(patterns)


def address(what: Any) -> int:
    kind, *rest = what
    if kind == "table":
        return table(*rest).ctypes.data
    found = loop_of(*rest)
    return found.function if kind == "loop" else found.data


class Compiled:
    """A kernel that can be called."""

    def __init__(self, kernel: Kernel, opt: int = 2) -> None:
        self.module = llvm.parse_assembly(kernel.text)
        self.engine = llvm.create_mcjit_compiler(self.module, machine(opt))
        self.engine.finalize_object()
        self.address = self.engine.get_function_address("kernel")
        p, n = ctypes.c_void_p, ctypes.c_int64
        self.function = ctypes.CFUNCTYPE(None, p, p, n, n)(self.address)
        self.context = (ctypes.c_void_p * max(1, len(kernel.context)))(
            *map(address, kernel.context)
        )


def listing(text: str) -> tuple[str, str]:
    """A module as LLVM prints it, and as assembly."""
    module = llvm.parse_assembly(text)
    return str(module), machine().emit_assembly(module)


@cache
def _call() -> Any:
    module = llvm.parse_assembly(assembly())
    engine = llvm.create_mcjit_compiler(module, machine())
    engine.finalize_object()
    return engine, method(engine.get_function_address("call"))


def entry(kernel: Compiled, *made: Any) -> Callable[..., Any]:
    """A built-in function that calls a kernel: see built_in."""
    return built_in(_call()[1], kernel, *made)
