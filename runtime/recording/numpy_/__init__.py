"""Recording of NumPy's functions, methods and universal functions."""
