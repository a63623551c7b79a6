"""Long work of a command: how far it is, on a terminal, and what Ctrl-C left undone.

Inside of `long_work`, Ctrl-C ends the stage that runs, and the command goes on with what the stage
has found. Elsewhere, a stage raises KeyboardInterrupt as all code does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import NamedTuple, TextIO

AFTER, EVERY = 3.0, 0.5
"""The seconds until a terminal shows the progress of work, and between two updates."""
WIDTH = 79


class Progress(NamedTuple):
    """How far a stage is, and what nobody sees if it ends here."""

    done: str
    unseen: str


class WorkStage:
    """A part of long work; `interrupt` is the Ctrl-C that ended it, or None."""

    def __init__(self, progress: Callable[[], Progress]) -> None:
        self.progress = progress
        self.interrupt: KeyboardInterrupt | None = None


class LongWork:
    """The stages that run, the innermost last, and the progress of those that Ctrl-C ended."""

    def __init__(self) -> None:
        self.stages: list[WorkStage] = []
        self.interrupted: list[Progress] = []

    def show(self, terminal: TextIO, ended: Event) -> None:
        """Show the progress on one line of a terminal until the work has ended."""
        width = 0
        while not ended.wait(EVERY if width else AFTER):
            stages = self.stages[-1:]  # this thread sees the list while another one changes it
            line = f"graphir: {stages[0].progress().done}"[:WIDTH] if stages else ""
            terminal.write(f"\r{line:{width}}\r")
            terminal.flush()
            width = max(width, len(line))
        terminal.write(f"\r{'':{width}}\r" if width else "")
        terminal.flush()


_WORK: ContextVar[LongWork | None] = ContextVar("long work", default=None)


@contextmanager
def long_work(terminal: TextIO) -> Generator[LongWork]:
    """Context manager: a block whose stages show their progress, and end at Ctrl-C."""
    work, ended = LongWork(), Event()
    thread = Thread(target=work.show, args=(terminal, ended), daemon=True)
    token = _WORK.set(work)
    try:
        if terminal.isatty():
            thread.start()
        yield work
    finally:
        _WORK.reset(token)
        ended.set()
        if thread.is_alive():
            thread.join()


@contextmanager
def stage(progress: Callable[[], Progress]) -> Generator[WorkStage]:
    """Context manager: a stage of the long work around it."""
    current, work = WorkStage(progress), _WORK.get()
    if work is None:
        yield current
        return
    work.stages.append(current)
    try:
        yield current
    except KeyboardInterrupt as interrupt:
        current.interrupt = interrupt
        work.interrupted.append(progress())
    finally:
        work.stages.remove(current)
