"""Recording of ordinary NumPy programs as graphs, with the source line of every promotion."""

from graphir.runtime.recording.builder import Note
from graphir.runtime.recording.recording import Recording, audit_function, record

__all__ = ["Note", "Recording", "audit_function", "record"]
