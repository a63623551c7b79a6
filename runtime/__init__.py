"""The machines that run graphs."""

from runtime.execution import execute
from runtime.interpreter import interpret
from runtime.program import Program

__all__ = ["Program", "execute", "interpret"]
