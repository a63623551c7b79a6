"""The graph: symbols, operators on them, and how they are built, checked and kept."""
