"""NumPy's protocols and functions on symbols, defined by ops; `trace` of Python functions."""
