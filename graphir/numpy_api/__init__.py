"""NumPy's protocols and functions on symbols, in terms of ops; functions traced."""
