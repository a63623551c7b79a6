"""The exit statuses of all commands."""

from enum import IntEnum


class Status(IntEnum):
    """The exit status of a command; docs/commands.md has the table that users read."""

    FINE = 0
    FINDINGS = 1
    """What the command was asked to check does not hold: a difference, a broken law, a cast."""
    USAGE = 2
    """The arguments do not parse."""
    REFUSED = 3
    """No answer: graphir refused the input, or the user's program raised."""
    UNSEEN = 3
    """No answer to --fail-on: nothing was found, and a part of the program was not seen."""
    DEFECT = 4
    """An error of graphir itself, with its traceback."""
    INTERRUPTED = 130
    """The status that shells give for SIGINT."""
