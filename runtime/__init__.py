"""The machines that run graphs."""

from runtime.audit import audit
from runtime.execution import execute
from runtime.interpreter import interpret
from runtime.program import Program

__all__ = ["Program", "audit", "execute", "interpret"]
