"""The fast path: a graph planned once, then run block by block in the cache."""

from runtime.program.program import Program

__all__ = ["Program"]
