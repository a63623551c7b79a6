"""The entry point of the command line, for `graphir` and `python -m graphir`.

The command line lives in `runtime`, a higher layer. This module is the only module of graphir that
imports upwards in order to run it.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line on sys.argv and return its exit status; 130 for Ctrl-C at any time."""
    try:
        from graphir.runtime.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # from here on it ends the process, silently


if __name__ == "__main__":
    sys.exit(main())
