"""Tests, in folders that mirror the packages; `support` has what several share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
