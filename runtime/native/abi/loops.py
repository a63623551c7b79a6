"""The inner loops of NumPy's ufuncs, by their addresses."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from runtime.native.abi.structs import FUNCTIONS, LOOP_DATA, words
from runtime.program.codegen.tracing import Storage


class Loop(NamedTuple):
    """An inner loop `function(char **args, intp *n, intp *steps, void *data)`, by its addresses."""

    function: int
    data: int


@cache
def loop_of(function: np.ufunc, *dtypes: Storage) -> Loop | None:
    """Return the inner loop of a ufunc for operands and a result of exactly `dtypes`, or None."""
    for k, types in enumerate(function.types):
        if [np.dtype(code) for code in types.replace("->", "")] == [*dtypes]:
            fields = words(id(function))
            return Loop(words(fields[FUNCTIONS])[k], words(fields[LOOP_DATA])[k])
    return None
