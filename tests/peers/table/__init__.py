"""The table of deviations: what libraries compute otherwise than graphir, each row asserted."""

from __future__ import annotations

from tests.peers.deviations import Deviation
from tests.peers.table import jax_, max_, numpy_, python_, shared, tensorflow_, torch_

DEVIATIONS: list[Deviation] = [
    *shared.ROWS,
    *numpy_.ROWS,
    *torch_.ROWS,
    *jax_.ROWS,
    *tensorflow_.ROWS,
    *python_.ROWS,
    *max_.ROWS,
]
