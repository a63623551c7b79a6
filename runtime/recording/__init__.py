"""Recording of ordinary NumPy programs as graphs, with the source line of every promotion."""

from runtime.recording.notes import Note
from runtime.recording.recording import Recording, record

__all__ = ["Note", "Recording", "record"]
