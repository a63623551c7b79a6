"""The native tier: regions as machine code, if llvmlite is installed and passes its probe."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from graphir import ExecutionError
from runtime.program.tier import CompiledRegion, Mode, Tier, provide

if TYPE_CHECKING:
    import numpy as np

    from runtime.program.cutting import Region

PROCESSORS: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "haswell": ("sse4.1", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
}
"""Older processors as compilation targets, with the extensions that LLVM assumes for each.

The list is closed, because LLVM aborts the process on an unknown processor name.
"""


def tier(mode: Mode) -> tuple[Tier | None, str]:
    """Return the compiler of regions for a mode; or None and the reason for NumPy alone.

    In the environment, GRAPHIR_NATIVE=0 switches the tier off, and GRAPHIR_NATIVE=1 compiles at
    once. GRAPHIR_NATIVE_CPU names a processor of PROCESSORS as the compilation target. Raises
    ExecutionError for other values of the mode or of these variables.
    """
    if mode not in ("auto", "now", "off"):
        raise ExecutionError('native is "auto", "now" or "off"', got=f"{mode!r}")
    setting = os.environ.get("GRAPHIR_NATIVE", "")
    if setting not in ("", "0", "1"):
        raise ExecutionError('GRAPHIR_NATIVE in the environment is "0" or "1"', got=f"{setting!r}")
    cpu_name = os.environ.get("GRAPHIR_NATIVE_CPU", "")
    if cpu_name and cpu_name not in PROCESSORS:
        cpu_names = " or ".join(f'"{name}"' for name in PROCESSORS)
        raise ExecutionError(
            f"GRAPHIR_NATIVE_CPU in the environment is {cpu_names}", got=f"{cpu_name!r}"
        )
    if mode == "off" or setting == "0":
        return None, 'native="off"' if mode == "off" else "GRAPHIR_NATIVE=0"
    if not is_installed():
        return None, "llvmlite is not installed"
    return NativeTier(mode == "now" or setting == "1"), ""


class NativeTier:
    """The compiler of regions and of integer products; with `now` the first use compiles them."""

    def __init__(self, now: bool) -> None:
        self.now = now

    def __call__(
        self,
        region: Region,
        materialized: Collection[int],
        on_eviction: Callable[[], Callable[[], None] | None],
        shared: dict[Any, Any],
        /,
    ) -> CompiledRegion:
        """Return a region as a compiled region (see `Tier`)."""
        from runtime.native.kernels import Kernels

        return Kernels(region, materialized, on_eviction, shared, self.now)

    def product(
        self, multiply: Callable[[Any, Any], Any], dtype: np.dtype[Any], threads: int, /
    ) -> Callable[[Any, Any], Any]:
        """Return the product of matrices of integers by machine code (see `Tier`)."""
        from runtime.native.products import products

        return functools.partial(products(self.now).product, multiply, dtype, threads)


@functools.cache
def is_installed() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


provide(tier)
