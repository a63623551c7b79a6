"""The one door that opens upwards: `graphir` and `python -m graphir` run the command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line on sys.argv; its exit status."""
    from runtime.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
