"""Loops over scalars as machine code."""
