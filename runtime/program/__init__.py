"""The fast path: `Program` plans a graph once, and runs the plan in blocks that fit the cache."""

from graphir.runtime.program.program import Program

__all__ = ["Program"]
