"""What machine code and ctypes read of CPython's and NumPy's own structures; nothing else does.

`structs` says where fields lie and tries that; runtime/native/probe.py asks it before anything here
is used, and computes with each part. GRAPHIR_NATIVE=0 in the environment, or `native="off"`, switch
the tier off, and this room with it.
"""
