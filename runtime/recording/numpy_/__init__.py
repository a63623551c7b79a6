"""Recording of what the program calls: NumPy's functions, methods and ufuncs, Python's numbers.

The package `runtime.recording` says in which order to read the files.
"""
