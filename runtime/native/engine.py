"""llvmlite: text made into machine code."""
from __future__ import annotations
import ctypes
from typing import Any
import llvmlite.binding as llvm
llvm.initialize_native_target(); llvm.initialize_native_asmprinter()

def machine(opt=2, cpu=None, features=None):
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu or llvm.get_host_cpu_name(), features=features if features is not None else llvm.get_host_cpu_features().flatten(), opt=opt, jit=True, codemodel="jitdefault")

class Compiled:
    def __init__(self, text, opt=2):
        self.module = llvm.parse_assembly(text)
        self.engine = llvm.create_mcjit_compiler(self.module, machine(opt))
        self.engine.finalize_object()
        self.address = self.engine.get_function_address("entry")
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self.address)
    def __call__(self, arrays, n):
        args = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        self.function(ctypes.addressof(args), n)
