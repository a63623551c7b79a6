"""The machines that run graphs."""

from runtime.execution import execute
from runtime.interpreter import interpret
from runtime.program import Program
from runtime.recording import Recording, record

__all__ = ["Program", "Recording", "execute", "interpret", "record"]
