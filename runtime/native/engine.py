"""llvmlite: assembly made into machine code, and the addresses that it needs.

Nothing here is called but under background.LOCK, unless it says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakSet

from runtime.native import PROCESSORS
from runtime.native import cache as disk
from runtime.native.abi.entry import built_in
from runtime.native.background import locks
from runtime.native.regions import Kernel
from runtime.program.cost_model import (
    KEPT_KERNELS,
    LINKED_PIECES,
    LLVM_LEVEL,
)

llvmlite: Any = import_module("llvmlite")
llvm: Any = import_module("llvmlite.binding")

call: Any = None
"""The code of entry.assembly, once it is known to do what it should."""

_FORMAT, _LLVM = "1", 20
_numbers = count()
_kernels: dict[tuple[Kernel, Processor], Compiled] = {}

if llvm.llvm_version_info[0] < _LLVM:
    raise ImportError(f"llvmlite {llvmlite.__version__} is too old; install llvmlite>=0.45")
lock = getattr(llvm.ffi.lib, "_lock", None)
if lock is not None:  # whoever frees memory of LLVM holds that one alone
    locks.append(lock)
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Processor(NamedTuple):
    """For what code is made: as LLVM calls it, and what it has, as +feature, or has not."""

    name: str
    flags: str

    @property
    def features(self) -> set[str]:
        """What it has of which emitters ask."""
        return {flag[1:] for flag in self.flags.split(",") if flag.startswith("+")}


def processor() -> Processor:
    """The one that there is; or what GRAPHIR_NATIVE_CPU names, one of PROCESSORS."""
    return _processor(os.environ.get("GRAPHIR_NATIVE_CPU", ""))


@cache
def _processor(name: str) -> Processor:
    host = llvm.get_host_cpu_features()
    if not name:
        return Processor(llvm.get_host_cpu_name(), host.flatten())
    if missing := [feature for feature in PROCESSORS[name] if not host.get(feature)]:
        raise RuntimeError(f"this processor is no {name}: it has no {', '.join(missing)}")
    return Processor(name, ",".join(f"+{feature}" for feature in PROCESSORS[name]))


@cache
def _machine(cpu: Processor, opt: int) -> Any:
    """LLVM's code generator."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu.name, features=cpu.flags, opt=opt, jit=True
    )


@lru_cache(1)
def _linker(session: int) -> Any:
    # RuntimeDyld says what is wrong where JITLink aborts the process; on ARM it does not reach far
    far = platform.machine().lower() in ("arm64", "aarch64")
    return llvm.create_lljit_compiler(use_jit_link=far, suppress_errors=True)


def object_code(text: str, opt: int) -> bytes:
    """The machine code of a module, from disk if it is there."""
    cpu = processor()
    machine = _machine(cpu, opt)

    def emit() -> bytes:
        return machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))

    versions = _FORMAT, llvmlite.__version__, llvm.llvm_version_info
    return disk.cached(emit, text, opt, machine.triple, cpu.name, cpu.flags, *versions)


class CompiledCode:
    """A function in memory that may be executed, for as long as this object is held."""

    def __init__(self, text: str, name: str, opt: int = LLVM_LEVEL) -> None:
        llvm.check_jit_execution()
        library = llvm.JITLibraryBuilder().add_object_img(object_code(text, opt))
        library.add_current_process().export_symbol(name)
        number = next(_numbers)
        self._library = library.link(_linker(number // LINKED_PIECES), f"graphir.{number}")
        self.address: int = self._library[name]


class Compiled(CompiledCode):
    """A kernel that can be called.

    It marks the word before its context: whether it ran since that was cleared.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.text, "kernel")
        p, n = ctypes.c_void_p, ctypes.c_int64
        self.function = ctypes.CFUNCTYPE(None, p, p, n, n)(self.address)
        self.words = (ctypes.c_void_p * (2 + len(kernel.context)))(1, *kernel.context)
        self.context = (ctypes.c_void_p * (1 + len(kernel.context))).from_buffer(self.words, 8)
        self.users: WeakSet[Any] = WeakSet()

    def entry(self, *layouts: Any) -> Callable[..., Any] | None:
        """A built-in function that calls it: see built_in; None where that would not be safe.

        It does without LLVM, and so without LOCK.
        """
        return built_in(call, self, *layouts) if call else None


def compile_kernel(kernel: Kernel, user: Any) -> Compiled:
    """The kernel as machine code: that which is there, where another user has the same.

    Beyond KEPT_KERNELS those that were used longest ago are let go: `user.let_go(it)` is called for
    each user, and when nobody holds it any more, a call that still runs included, it is freed.
    """
    key = kernel, processor()
    entry = _kernels.pop(key, None) or Compiled(kernel)
    entry.users.add(user)
    while len(_kernels) >= KEPT_KERNELS:
        oldest = next(iter(_kernels))
        old = _kernels.pop(oldest)
        if old.words[0]:  # the clock algorithm: one more round
            old.words[0], _kernels[oldest] = 0, old
            continue
        for each in list(old.users):
            each.let_go(old)
    _kernels[key] = entry
    return entry


def listing(text: str) -> tuple[str, str]:
    """A module as LLVM prints it, and as assembly."""
    module = llvm.parse_assembly(text)
    return str(module), _machine(processor(), LLVM_LEVEL).emit_assembly(module)
