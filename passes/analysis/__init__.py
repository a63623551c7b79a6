"""Analyses of a graph: its casts, its policies, and its dtypes under other rule sets."""
