"""Reductions of outer axes in machine code: of arrays, and of the values of a region."""
