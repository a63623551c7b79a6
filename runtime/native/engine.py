"""llvmlite: assembly made into machine code, and the addresses that it needs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from runtime.native.entry import assembly, built_in, method
from runtime.native.loops import loop_of
from runtime.native.regions import Kernel
from runtime.native.vectors import Table

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Processor(NamedTuple):
    """For what code is made: as LLVM calls it, what it has beside, its features."""

    name: str
    flags: str
    features: frozenset[str]


def processor() -> Processor:
    """This one; or what GRAPHIR_NATIVE_CPU names: x86-64, haswell and the like."""
    return _processor(os.environ.get("GRAPHIR_NATIVE_CPU", ""))


@cache
def _processor(name: str) -> Processor:
    if name:
        return Processor(name, "", _FEATURES.get(name, frozenset()))
    found = llvm.get_host_cpu_features()
    there = frozenset(name for name, is_there in found.items() if is_there)
    return Processor(llvm.get_host_cpu_name(), found.flatten(), there)


_FEATURES = {"haswell": frozenset({"sse4.1", "f16c"})}
"""Of processors that are named those features for which emitters ask."""


def machine(opt: int = 2) -> Any:
    cpu = processor()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu.name, features=cpu.flags, opt=opt, jit=True, codemodel="jitdefault"
    )


def address(what: Any) -> int:
    if isinstance(what, Table):
        return what.address
    kind, *rest = what
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


@cache
def _call() -> Any:
    module = llvm.parse_assembly(assembly())
    engine = llvm.create_mcjit_compiler(module, machine())
    engine.finalize_object()
    return engine, method(engine.get_function_address("call"))


def entry(kernel: Compiled, *made: Any) -> Callable[..., Any]:
    """A built-in function that calls a kernel: see built_in."""
    return built_in(_call()[1], kernel, *made)
