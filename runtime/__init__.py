"""The machines that run graphs."""

from runtime.execution import execute
from runtime.interpreter import interpret

__all__ = ["execute", "interpret"]
