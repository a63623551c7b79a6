"""llvmlite: assembly made into machine code, and the addresses that it needs.

Nothing here is called but under background.LOCK, unless it says so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any
from weakref import WeakSet

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from graphir import conversions
from runtime.native import cache as disk
from runtime.native.entry import Entry, assembly
from runtime.native.loops import loop_of
from runtime.native.regions import Kernel

MOST = 512
"""Kernels that are kept for those who ask again; one is about 50 KB."""

OPT = 1
"""LLVM's level of code generation; 2 and 3 give the same code and take longer."""

entries = False
"""Whether arrays in memory are as the entry of a program takes them to be."""

_FORMAT = "1"
_numbers = count()
_kernels: dict[tuple[str, Any], Compiled] = {}

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


@cache
def features() -> tuple[str, frozenset[str]]:
    """The features of this CPU, as LLVM takes them and by name."""
    found = llvm.get_host_cpu_features()
    return found.flatten(), frozenset(name for name, is_there in found.items() if is_there)


@cache
def machine() -> Any:
    """What code is made for."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features()[0], opt=OPT, jit=True
    )


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(machine(), use_jit_link=True, suppress_errors=True)


@cache
def _identity() -> tuple[str, ...]:
    """What object code depends on, besides its assembly."""
    versions = llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), np.__version__
    return _FORMAT, str(OPT), machine().triple, llvm.get_host_cpu_name(), features()[0], *versions


def object_code(text: str) -> bytes:
    """The machine code of a module, from disk if it is there."""
    key = disk.key_of(text, *_identity())
    found = disk.read(key)
    if found is None:
        module = llvm.parse_assembly(text, llvm.create_context())
        found = machine().emit_object(module)
        disk.write(key, found)
    return found


class Code:
    """A function in memory that may be executed, for as long as this object is held."""

    def __init__(self, text: str, name: str) -> None:
        library = llvm.JITLibraryBuilder().add_object_img(object_code(text))
        library.add_current_process().export_symbol(name)
        self._held = library.link(_linker(), f"graphir.{next(_numbers)}")
        self.address: int = self._held[name]


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


class Compiled(Code):
    """A kernel that can be called.

    It marks the word before its context, so that `used` says whether it ran since that was cleared.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.text, "kernel")
        p, n = ctypes.c_void_p, ctypes.c_int64
        self.function = ctypes.CFUNCTYPE(None, p, p, n, n)(self.address)
        addresses = [address(one) for one in kernel.context]
        self.words = (ctypes.c_void_p * (1 + max(1, len(addresses))))(1, *addresses)
        self.context = (ctypes.c_void_p * max(1, len(addresses))).from_buffer(self.words, 8)
        self.users: WeakSet[Any] = WeakSet()


def compiled(kernel: Kernel, user: Any) -> Compiled:
    """The kernel as machine code: that which is there, where another user has the same.

    Beyond MOST those that were used longest ago are let go: `user.let_go(it)` is called for each
    user, and when nobody holds it any more, a call that still runs included, it is freed.
    """
    key = disk.key_of(kernel.text), kernel.context
    found = _kernels.pop(key, None) or Compiled(kernel)
    found.users.add(user)
    while len(_kernels) >= MOST:
        oldest = next(iter(_kernels))
        old = _kernels.pop(oldest)
        if old.words[0]:  # the clock algorithm: one more round
            old.words[0], _kernels[oldest] = 0, old
            continue
        for one in list(old.users):
            one.let_go(old)
    _kernels[key] = found
    return found


@cache
def _call() -> Code:
    return Code(assembly(), "call")


def entry(
    kernel: Compiled, specs: Any, inputs: int, template: Any, size: int, kept: Any
) -> Callable[..., Any] | None:
    """The built-in function of a program; it lives as long as the kernel does."""
    if not entries:
        return None
    made = Entry(_call().address, kernel, specs, inputs, template, size)
    made.constants = kept
    return made.function
