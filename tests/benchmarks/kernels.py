"""Kernels that do not call the NumPy function of their name, beside that function.

    python -m tests.benchmarks.kernels [--only WORD] [--rounds N]

Prints the best time of the kernel and of NumPy's function, in nanoseconds per element, or
per term of a product, and the ratio of NumPy's time to the kernel's. Both are called in turn.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from graphir.runtime.native import is_installed
from graphir.runtime.native.integer_products import products as products_of
from graphir.semantics.integer_products import pays
from graphir.semantics.kernels import KERNELS

Call = Callable[[], Any]


def sorts() -> Iterator[tuple[str, int, Call, Call]]:
    """Sorts and stable argsorts of rows, beside NumPy's default sort and stable argsort."""
    random = np.random.default_rng(0)
    shapes = ((100_000, 8), (50_000, 16), (20_000, 32), (1000, 1000), (1, 1_000_000))
    for dtype in ("int8", "int16", "int32", "int64", "float32", "float64"):
        for rows, length in shapes:
            x = (random.standard_normal((rows, length)) * 1000).astype(dtype)
            what = f"{dtype}[{rows}, {length}]"
            yield (
                f"sort {what}",
                x.size,
                lambda x=x: KERNELS["sort"](x, axis=1, descending=False),
                lambda x=x: np.sort(x, axis=1),
            )
            yield (
                f"argsort {what}",
                x.size,
                lambda x=x: KERNELS["argsort"](x, axis=1, descending=False),
                lambda x=x: np.argsort(x, axis=1, kind="stable"),
            )


def products() -> Iterator[tuple[str, int, Call, Call]]:
    """Products of integers, of narrow values and of all, beside np.matmul.

    Those of machine code are named `native`; one thread computes them.
    """
    random = np.random.default_rng(0)
    square = [(n, n, n) for n in (8, 16, 24, 32, 64, 256, 512)]
    thin = [(1000, 4, 1000), (1000, 8, 1000), (1000, 300, 4), (4, 300, 1000), (100_000, 3, 3)]
    for dtype in ("int8", "int16", "int32", "int64"):
        limits = np.iinfo(dtype)
        for m, k, n in (*square, *thin):
            for what, low, high in (("narrow", -99, 99), ("any", limits.min, limits.max)):
                x, y = (random.integers(low, high, s, dtype) for s in ((m, k), (k, n)))
                name = f"{dtype}[{m}, {k}] @ [{k}, {n}] {what}"
                numpy = partial(np.matmul, x, y)
                yield f"product {name}", m * k * n, partial(KERNELS["matmul"], x, y), numpy
                if is_installed() and pays(x.shape, y.shape, x.dtype):
                    native = partial(products_of(True).product, np.matmul, x.dtype, 1, x, y)
                    yield f"native product {name}", m * k * n, native, numpy


def best(kernel: Call, numpy: Call, rounds: int) -> list[float]:
    """The best seconds of both calls, which take turns."""
    least = [math.inf, math.inf]
    for _ in range(rounds):
        for i, call in enumerate((kernel, numpy)):
            start = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def main() -> None:
    """Measure the kernels and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the lines whose names contain this word")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name, size, kernel, numpy in (*sorts(), *products()):
        if options.only in name:
            taken = best(kernel, numpy, options.rounds)
            ours, theirs = (1e9 * seconds / size for seconds in taken)
            print(f"{name:52}{ours:10.3f}{theirs:10.3f}{theirs / ours:10.2f}", flush=True)


if __name__ == "__main__":
    main()
