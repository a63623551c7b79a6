"""Recording ordinary NumPy programs: their graphs, with every promotion at its line."""

from runtime.recording.notes import Note
from runtime.recording.recording import Recording, record

__all__ = ["Note", "Recording", "record"]
