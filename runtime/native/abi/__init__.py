"""Access of machine code and ctypes to the C structures of CPython and NumPy.

All such access is in this package. `numpy_structs` declares the offsets of fields and verifies
them. runtime/native/probe.py runs this verification, and a computation with each part, before any
other use of this package. GRAPHIR_NATIVE=0 in the environment, or `native="off"`, switches off the
tier and this package.
"""
