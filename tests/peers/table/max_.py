"""Deviations of MAX, in the dtypes that its graph builder infers."""

from __future__ import annotations

import numpy as np

from tests.peers import deviations as at
from tests.peers.deviations import COMPUTING, Deviation
from tests.peers.steps import Step
from tests.peers.table.operands import F32, X

ROWS = [
    Deviation(
        "a NumPy bool on the left is Python's, by NumPy's loop over objects; on the right refused",
        "numpy/_core/src/multiarray/scalartypes.c.src; max/graph/dtype_promotion.py",
        "max_strict",
        COMPUTING,
        at.given(lambda x: isinstance(x, np.bool_)),
        ((F32, [1.0]),),
        (Step("multiply", (np.bool_(True), X)),),
        None,
        F32,
    ),
]
