"""Questions asked of a graph: its casts, and what other rules would make of it."""
