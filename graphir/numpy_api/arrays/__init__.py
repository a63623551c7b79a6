"""Symbolic arrays: the mutable ndarrays of a traced NumPy program, with views and writes."""
