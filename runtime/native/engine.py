"""The interface to llvmlite: it compiles and links LLVM assembly, and caches kernels.

The caller must hold compilation.LOCK, unless a docstring says otherwise.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple

from graphir.runtime.native import disk_cache as disk
from graphir.runtime.native.abi import EntryCall, built_in
from graphir.runtime.native.compilation import locks
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.program.cost_model import COST, LINKED_PIECES, LLVM_LEVEL
from graphir.runtime.program.memory import lookup

llvmlite: Any = import_module("llvmlite")
llvm: Any = import_module("llvmlite.binding")

call: Any = None
"""The compiled code of `entry.assembly`, if the probe has verified it."""

FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
"""The type of a kernel in ctypes."""

_FORMAT, _LLVM = "1", 20
_numbers = count()
_kernels: dict[tuple[Kernel, Processor], Compiled] = {}

if llvm.llvm_version_info[0] < _LLVM:
    raise ImportError(f"llvmlite {llvmlite.__version__} is too old; install llvmlite>=0.45")
lock = getattr(llvm.ffi.lib, "_lock", None)
if lock is not None:  # a thread that frees LLVM's memory holds this lock without LOCK
    locks.append(lock)
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Processor(NamedTuple):
    """A compilation target: LLVM's name of the processor, and its features as +name or -name."""

    name: str
    flags: str

    @property
    def features(self) -> set[str]:
        """The features that the processor has; emitters query them."""
        return {flag[1:] for flag in self.flags.split(",") if flag.startswith("+")}


@cache
def processor() -> Processor:
    """Return the processor of this machine."""
    return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def _machine(cpu: Processor, opt: int) -> Any:
    """Return LLVM's code generator for a processor and an optimization level."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu.name, features=cpu.flags, opt=opt, jit=True
    )


@lru_cache(1)
def _linker(session: int) -> Any:
    # RuntimeDyld reports errors on which JITLink aborts the process. On ARM its relocations do not
    # reach far enough, so ARM uses JITLink.
    far = platform.machine().lower() in ("arm64", "aarch64")
    return llvm.create_lljit_compiler(use_jit_link=far, suppress_errors=True)


def object_code(text: str, opt: int) -> bytes:
    """Return the object code of a module, from the disk cache if it has an entry."""
    cpu = processor()
    machine = _machine(cpu, opt)

    def emit() -> bytes:
        return machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))

    versions = _FORMAT, llvmlite.__version__, llvm.llvm_version_info
    return disk.cached(emit, text, opt, machine.triple, cpu.name, cpu.flags, *versions)


class CompiledCode:
    """Functions in executable memory, which live as long as this object.

    `address` is that of the first function, `addresses` are those of all, by name.
    """

    def __init__(self, text: str, *names: str, opt: int = LLVM_LEVEL) -> None:
        llvm.check_jit_execution()
        library = llvm.JITLibraryBuilder().add_object_img(object_code(text, opt))
        library.add_current_process()
        for name in names:
            library.export_symbol(name)
        number = next(_numbers)
        self._library = library.link(_linker(number // LINKED_PIECES), f"graphir.{number}")
        self.addresses: dict[str, int] = {name: self._library[name] for name in names}
        self.address = self.addresses[names[0]]


class Compiled(CompiledCode):
    """A compiled kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.text, "kernel")
        self.function = FUNCTION(self.address)
        self.context = (ctypes.c_void_p * len(kernel.context))(*kernel.context)

    def entry(self, entry: EntryCall) -> Callable[..., Any] | None:
        """Return a built-in function that calls the kernel (see `built_in`).

        The answer is None if the probe did not verify such functions. The method does not use LLVM,
        so the caller need not hold LOCK.
        """
        return built_in(call.address, self, entry, call) if call else None


def compile_kernel(kernel: Kernel) -> Compiled:
    """Return a kernel as machine code; users of equal kernels share one.

    The cache has at most KEPT_KERNELS kernels. Python frees the memory of a kernel with its last
    reference, which a region, a plan or a call holds.
    """
    compiled = lookup(_kernels, (kernel, processor()), lambda: Compiled(kernel), COST.KEPT_KERNELS)
    assert compiled
    return compiled


def listing(text: str) -> tuple[str, str]:
    """Return a module as LLVM IR and as assembly of the processor."""
    module = llvm.parse_assembly(text)
    return str(module), _machine(processor(), LLVM_LEVEL).emit_assembly(module)
