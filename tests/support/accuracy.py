"""How far functions of floats are from the truth, in units in the last place: here and elsewhere.

The truth is mpmath's, to 240 bits, at a few thousand telling points. `BOUNDS` is what graphir
promises; `python -m tests.support.accuracy` prints the distances of graphir and of NumPy, JAX and
PyTorch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from graphir.ops import CATALOGUE
from graphir.semantics.kernels import KERNELS
from tests.support.op_rows import ROWS, Bound

Array: TypeAlias = np.ndarray[Any, Any]
BITS = 240


BOUNDS: dict[str, Bound] = {name: row.bound for name, row in ROWS.items() if row.bound}
"""Functions of floats; not softmax, logsoftmax, layer_norm, mean, var, std, which err with length.

All but rsqrt, erf, sigmoid, silu and gelu are NumPy's, which are those of the C library, or on x86
with AVX512 Intel's SVML, and are bounded for both. In float16 and bfloat16 they are computed in
float32 and rounded once more: half a unit, and what a float32 unit is of theirs (`of_half`).
"""


def of_half(name: str, mantissa: int) -> float:
    """The bound in a float of so many bits of mantissa, fewer than 23."""
    return 0.5 + BOUNDS[name].float32 * 2.0 ** (mantissa - 23)


# -- the truth


@cache
def truth(name: str, dtype: str) -> list[Any]:
    """The exact values at the points, as mpf: infinite at a pole, NaN where no number is real."""
    from mpmath import mp

    function = partial(ROWS[name].truth, mp) if ROWS[name].truth else getattr(mp, name)

    def value(*point: float) -> Any:
        try:
            found = function(*map(mp.mpf, point))
        except ZeroDivisionError:
            return mp.inf
        return mp.nan if isinstance(found, mp.mpc) else found

    with mp.workprec(BITS):
        return [value(*map(float, point)) for point in zip(*points(name, dtype), strict=True)]


def distances(found: Array, name: str) -> Array:
    """How far each value is from the truth, in units in the last place of its dtype."""
    from mpmath import mp

    dtype, near = found.dtype.name, BOUNDS[name].near
    each = zip(found.tolist(), truth(name, dtype), *points(name, dtype), strict=True)
    with mp.workprec(BITS):
        units = [
            _distance(got, true, float(near(*point)), np.finfo(dtype)) for got, true, *point in each
        ]
    return np.array(units)


def _distance(got: float, true: Any, near: float, format_: Any) -> float:
    """The distance of a value; of one that should not be finite, 0 or infinity."""
    from mpmath import mp

    if not mp.isfinite(true):
        return math.inf if math.isfinite(got) else 0.0
    if math.isnan(got):
        return math.inf
    top, digits = int(format_.maxexp), int(format_.nmant)
    size = max(abs(true), near)
    exponent = max(mp.mag(size) - 1, int(format_.minexp)) if size else int(format_.minexp)
    unit = mp.ldexp(1, min(exponent, top - 1) - digits)
    greatest = mp.ldexp(1, top)  # an infinity is what rounds to this or beyond
    reached, limited = (max(min(mp.mpf(x), greatest), -greatest) for x in (got, true))
    return float(abs(reached - limited) / unit)


# -- the points


@cache
def points(name: str, dtype: str) -> tuple[Array, ...]:
    """Operands: two arrays for a function of two."""
    values = _values(np.dtype(dtype))
    if len(CATALOGUE[name].operands) == 1:
        return (values,)
    random = np.random.default_rng(1)
    other = random.permutation(values)
    steps = random.integers(-4, 5, values.size).astype(dtype)
    close = values * (1 + steps * np.finfo(dtype).eps)
    small = random.normal(size=values.size).astype(dtype)
    pairs = [(values, other), (values, close), (small, other), (small, random.permutation(small))]
    return tuple(_finite(np.concatenate(x)[::3]) for x in zip(*pairs, strict=True))


def _finite(x: Array) -> Array:
    """Without infinities and NaN, and -0.0, which mpmath has not."""
    return np.where(np.isfinite(x), x, x.dtype.type(1)) + x.dtype.type(0)


def _values(dtype: np.dtype[Any]) -> Array:
    """Random bits, all magnitudes, and the neighbourhood of what is critical somewhere."""
    random, format_ = np.random.default_rng(0), np.finfo(dtype)
    bits = random.integers(0, 2 ** (8 * dtype.itemsize), 500, dtype=f"u{dtype.itemsize}")
    wide = [random.uniform(-size, size, 150) for size in (1.0, 2.0, 10.0, 100.0, 800.0)]
    tiny = random.uniform(-1, 1, 100) * 2.0 ** random.integers(-60, 0, 100)
    found = [bits.view(dtype), *wide, tiny, _near(_critical(format_), dtype)]
    found.append(random.integers(1, 2**20, 60).astype(bits.dtype).view(dtype))  # subnormal
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(np.concatenate([x.astype(dtype) for x in found]))


def _critical(format_: Any) -> list[float]:
    """Zeros, poles, turning points and ends of the functions; and arguments that are reduced."""
    ends = [math.log(float(format_.max)), math.log(float(format_.smallest_subnormal))]
    turns = [k * math.pi / 2 for k in (*range(1, 40), 1000, 12345, 2**20, 2**30 + 1)]
    huge = [float(format_.max) / 2**k for k in range(0, format_.maxexp, format_.maxexp // 30)]
    # The multiples of pi/2 that lie nearest to a number of the format (Muller, Elementary
    # Functions, 3rd edition, table 11.1).
    worst = 16367173.0 * 2.0**72 if format_.nmant < 50 else 6381956970095103.0 * 2.0**797
    rest = [0.0, 0.5, 1.0, math.e, math.sqrt(0.5), 6.0, 9.0, 20.0, *ends, ends[0] / 2]
    return [s * x for x in (*turns, *huge, worst, 2 * worst, *rest) for s in (1, -1)]


def _near(values: Sequence[float], dtype: np.dtype[Any]) -> Array:
    """The values in a dtype, and their neighbours."""
    x = np.array(values).astype(dtype)
    with np.errstate(over="ignore"):
        return np.concatenate([x, np.nextafter(x, dtype.type(0)), np.nextafter(x, x * 2)])


# -- the libraries


def graphir(name: str, *operands: Array) -> Array:
    attrs = {attr.name: attr.default for attr in CATALOGUE[name].attrs}
    with np.errstate(all="ignore"):
        return KERNELS[name](*operands, **attrs)


def _numpy(name: str, *operands: Array) -> Array:
    from tests.peers import numpy_ as peer

    with np.errstate(all="ignore"):
        return peer.OPS[name](*operands)


def _torch(name: str, *operands: Array) -> Array:
    import torch

    from tests.peers import torch_ as peer

    return peer.OPS[name](*map(torch.from_numpy, operands)).numpy()


def _jax(name: str, *operands: Array) -> Array:
    import jax

    from tests.peers import jax_ as peer

    with jax.enable_x64(True):
        return np.asarray(peer.OPS[name](*map(jax.numpy.asarray, operands)))


COLUMNS: dict[str, Callable[..., Array]] = {
    "graphir": graphir,
    "numpy": _numpy,
    "jax": _jax,
    "torch": _torch,
}


def measured(column: str, name: str, dtype: str) -> float | None:
    """The greatest distance; None where there is no such library or function.

    Of JAX without subnormals, which it flushes to zero.
    """
    operands = points(name, dtype)
    try:
        found = distances(COLUMNS[column](name, *operands), name)
    except (ImportError, KeyError):
        return None
    return float(found[_normal(name, dtype)].max() if column == "jax" else found.max())


@cache
def _normal(name: str, dtype: str) -> Array:
    """Which points have no subnormal operand or result."""
    least = np.finfo(dtype).smallest_normal
    normal = [x == 0 or abs(x) >= least for x in truth(name, dtype)]
    for operand in points(name, dtype):
        normal &= (operand == 0) | (abs(operand) >= least)
    return np.array(normal)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':20}" + "".join(f"{one:>10}" for one in ("bound", *COLUMNS)))
    for name in BOUNDS:
        for dtype in ("float32", "float64"):
            found = [getattr(BOUNDS[name], dtype), *(measured(one, name, dtype) for one in COLUMNS)]
            cells = ["-" if one is None else f"{one:.3g}" for one in found]
            print(f"{name:12}{dtype:8}" + "".join(f"{one:>10}" for one in cells), flush=True)


if __name__ == "__main__":
    main()
