"""Ways out: a graph as a program of other engines and formats, a module for each."""

from runtime.targets.emission import TargetError
from runtime.targets.python import python

__all__ = ["TargetError", "python"]
