"""What the engines have in common: libraries called with NumPy arrays, for NumPy arrays.

An engine's `function` compiles a workload, or leaves that to the first call for some shapes;
`into` does the same for a result that is written to memory of the caller. Both raise Unable.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.benchmarks.workloads import Workload

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
"""Of input arrays; of those and `out`, where it writes into memory of the caller."""
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Engine:
    """One library. `chooses` is whether its threads can be set; else it takes what it likes."""

    name = ""
    module = ""
    chooses = False
    imports: tuple[str, ...] = ()
    """What a user imports besides."""

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        return str(getattr(importlib.import_module(self.module), "__version__", "?"))

    def use(self, threads: int) -> None:
        """Have what is called next run on so many threads."""

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        raise NotImplementedError  # each engine has its own

    def into(self, workload: Workload, n: int, threads: int) -> Function:
        raise Unable("no out=")


class Unable(Exception):  # noqa: N818 -- no error: a line of the report
    """What a library cannot express, in a few words."""
