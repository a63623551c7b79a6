"""Python's operators and indexing on symbols, in terms of ops."""
