"""NumPy's functions, methods and universal functions, recorded."""
