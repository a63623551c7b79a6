"""A float format that nobody has is one line in graphir/dtypes.py: everything else follows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEFORE = '    float8_e8m0fnu = "float8_e8m0fnu"'
LINE = '    float8_e6m1 = "float8_e6m1", "f8e6m1", "float", 8, _float(6, 1)\n'

PROGRAM = '''
import math
from fractions import Fraction

import numpy as np

from graphir import DType, Graph, Lattice, ops
from graphir.conversions import convert
from graphir.passes import cast_report, lower
from graphir.runtime import Program, interpret, targets

E6M1 = DType("float8_e6m1")
values = [2.0**-31 * m for m in (0, 1)]
values += [2.0 ** (e - 31) * (1 + m / 2) for e in range(1, 63) for m in (0, 1)]


def nearest(x):
    """The value of the format nearest to x, found among all of them."""
    size = abs(x)
    if size >= 3.5 * 2.0**30:  # midway from the greatest to what would be the next
        return math.copysign(math.inf, x)
    off = [abs(Fraction(size) - Fraction(value)) for value in values]
    ties = [i for i, distance in enumerate(off) if distance == min(off)]
    return math.copysign(values[min(ties, key=lambda i: i % 2)], x)


def same(wanted, results):
    pairs = [(np.asarray(x, np.float64), np.asarray(y, np.float64))
             for x, y in zip(wanted, results, strict=True)]
    return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)


rng = np.random.default_rng(0)
between = np.ldexp(1 + rng.random(300), rng.integers(-36, 36, 300)) * rng.choice([-1, 1], 300)
middles = [(x + y) / 2 for x, y in zip(values, values[1:])]
x = np.array([*between, *values, *middles, *np.nextafter(middles, 0), 1e300, 0.0, -0.0])
rounded = convert(x, DType.float64, E6M1)
assert rounded.tobytes() == np.array([nearest(value) for value in x], np.float32).tobytes()

g = Graph("g")
a = g.input(E6M1, ("n",), name="a")
b = g.input("float64", ("n",), name="b")
c = b.cast(E6M1)
outputs = [a * c + g.scalar[E6M1](1.5), ops.exp(a), a.cast("int8"), c.cast("float8_e5m2")]
g.output(*outputs, ops.sum(a, axis=0), b.cast("int64").cast(E6M1), c.cast("float64"))
given = between.astype(np.float32), rng.standard_normal(300) * 1e3
wanted = interpret(g, *given)
assert same(wanted, interpret(g, convert(given[0], DType.float32, E6M1), given[1]))
for native in ("off", "now"):
    assert same(wanted, Program(g, native=native)(*given))
assert same(wanted, interpret(lower(g), *given))
assert str(Graph.parse(str(g))) == str(g)
assert "float8_e6m1" in str(cast_report(g))
names = {}
exec(targets.python(g), names)
assert same(wanted, names["g"](*given))
assert "f8E6M1" not in targets.stablehlo(g, {"n": 300})
above = {DType.float16: [DType.float32], DType.bfloat16: [DType.float32]}
lattice = Lattice("own", {E6M1: [DType.float16, DType.bfloat16], **above})
assert lattice.join(E6M1, DType.bfloat16) is DType.bfloat16
assert not lattice.laws()
'''


@pytest.mark.exhaustive
def test_a_float_of_six_exponent_bits_is_one_line(tmp_path: Path) -> None:
    """Its conversions against all its values; it computes, compiles, prints, reports, exports."""
    for package in ("graphir", "passes", "runtime"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored, symlinks=True)
    dtypes = tmp_path / "graphir" / "dtypes.py"
    source = dtypes.read_text(encoding="utf-8")
    assert source.count(BEFORE) == 1
    dtypes.write_text(source.replace(BEFORE, LINE + BEFORE), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
