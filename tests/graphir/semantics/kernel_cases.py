"""What the tests of kernels share: which dtypes an op takes, values of each, and how to run one."""

import numpy as np

from graphir import ops
from graphir.ops import dtype_rules
from graphir.semantics.kernels import KERNELS
from tests.support.op_rows import ROWS

BOOL = [np.dtype(bool)]
SIGNED = [np.dtype(f"i{n}") for n in (1, 2, 4, 8)]
UNSIGNED = [np.dtype(f"u{n}") for n in (1, 2, 4, 8)]
INTEGERS = SIGNED + UNSIGNED
FLOATS = [np.dtype("f4"), np.dtype("f8")]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
REAL = INTEGERS + FLOATS
BY_LETTER = {"b": BOOL, "i": SIGNED, "u": UNSIGNED, "f": FLOATS, "c": COMPLEX}

PREDICATES = (
    *(dtype_rules.COMPARISON, dtype_rules.ORDER, dtype_rules.LOGICAL),
    *(dtype_rules.PREDICATE, dtype_rules.SIGN_PREDICATE),
)
PARTS = (dtype_rules.MAGNITUDE, dtype_rules.PART)
KINDS = {name: row.dtypes for name, row in ROWS.items()}
TRUTH = {name for name in ROWS if ops.CATALOGUE[name].signature in PREDICATES}
PART = {
    name
    for name in ROWS
    if ops.CATALOGUE[name].signature in (dtype_rules.MAGNITUDE, dtype_rules.PART)
}
ELEMENTWISE = {name: op for name, op in ops.CATALOGUE.items() if name in KINDS}
CASES = [(name, dtype) for name in KINDS for letter in KINDS[name] for dtype in BY_LETTER[letter]]


def run(name, *arrays, **attrs):
    """The kernel's result, new and contiguous, as an array; defaults of attributes filled in."""
    full = {a.name: a.default for a in ops.CATALOGUE[name].attrs if a.name != "dtype"} | attrs
    result = np.asarray(KERNELS[name](*arrays, **full))
    if ops.CATALOGUE[name].kind != "movement":
        assert result.flags.c_contiguous and result.flags.writeable
        assert not any(np.shares_memory(result, array) for array in arrays)
    return result


def result_dtype(name, dtype):
    if name in TRUTH:
        return np.dtype(bool)
    if name == "as_complex":
        return np.dtype("c8" if dtype == "f4" else "c16")
    return dtype.type(0).real.dtype if name in PART else dtype


def wrap(value, dtype):
    bits = 8 * dtype.itemsize
    value %= 2**bits
    return value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def sample(dtype, count, seed=0):
    """Values of a dtype: the edges first, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, 0, 1, 2, 3, 7, 8, info.max - 1, info.max]
        edges += [-1, -2, -8] if dtype.kind == "i" else []
        wide = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        values = np.concatenate([np.array(edges, dtype), wide >> rng.integers(0, 8, count, dtype)])
    elif dtype.kind == "f":
        edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 1e30]
        edges += [np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
        spread = rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, count)
        values = np.concatenate([np.array(edges, dtype), spread.astype(dtype)])
    else:
        values = (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
    return rng.permutation(values)[:count] if seed else values[:count]
