"""Calls of all of NumPy's public functions, generated from their signatures."""
