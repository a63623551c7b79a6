"""Programs that use a Python number in each way that a program may, and their results."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SOME_OR_ALL = [
    pytest.param(slice(None, None, 4), id="some"),
    pytest.param(slice(None), id="all", marks=pytest.mark.exhaustive),
]
"""Parts of the uses as a parameter of a test."""

HEAD = """
import array, bisect, cmath, collections, copy, datetime, decimal, fractions, functools, heapq, io
import itertools, json, math, operator, pickle, random, statistics, string, struct, time
import numpy as np

def pair(s, y):
    return s, y

def setm(y, s):
    y[y > 1] = s
    return y

class Own:
    def __init__(self, s):
        self.s = s

    def __rmul__(self, other):
        return self.s * other

"""
USES = r"""
s * 1j * y ;; 1j * s * y ;; complex(s, 0) * y ;; complex(0, s) * y ;; c = 2j ; c *= s ; c * y ;;
c = 2j ; (c + s) * y ;; c = 2j ; (c / s) * y ;; c = 2j ; (c ** s) * y ;; c = 2j ; (s ** c) * y ;;
c = 2j ; (s - c) * y ;; cmath.exp(s) * y ;; s.real * y ;; s.imag + y * s ;; s.conjugate() * y ;;
s.__float__() * y ;; float.__float__(s) * y ;; float.__mul__(s, 2.0) * y ;;
float.__add__(1.0, s) * y ;; s.__mul__(2.0) * y ;; s.__rtruediv__(2.0) * y ;;
s.as_integer_ratio()[0] * y ;; float.fromhex(s.hex()) * y ;; (2 if s.is_integer() else 1.5) * y ;;
s.__repr__() and float(s.__repr__()) * y ;; float(s.__str__()) * y ;;
float(s.__format__('.17g')) * y ;; s.__hash__() % 7 * y ;; s.__trunc__() * y ;;
s.__floor__() * y ;; s.__ceil__() * y ;; s.__getnewargs__()[0] * y ;; s.__round__(9) * y ;;
s.__divmod__(2.0)[1] * y ;; divmod(s, 2.0)[1] * y ;; divmod(100.0, s)[1] * y ;; (s % 0.7) * y ;;
pow(s, 2) * y ;; pow(2, s) * y ;; abs(-s) * y ;; round(s, 5) * y ;; sum([s, 1.0]) * y ;;
sum([s, s], s) * y ;; sum([1j, s]) * y ;; max(s, 1.0) * y ;; min(s, 1e9) * y ;;
max([s, 1.0]) * y ;; sorted([s, 1.0])[1] * y ;; float(f"{s:.12g}") * y ;; float(f"{s}") * y ;;
float(str(s)) * y ;; float(repr(s)) * y ;; float(format(s, '.9e')) * y ;; float("%.12g" % s) * y ;;
float("{:.12g}".format(s)) * y ;; float("{0.real}".format(s)) * y ;;
float(string.Template("$s").substitute(s=s)) * y ;; float(" ".join(map(str, [s]))) * y ;;
float(np.float64(s)) * y ;; np.float64(s) * y ;; np.array(s) * y ;; np.array([[s], [1]]) * y ;;
np.asarray([s, 1.0])[0] * y ;; np.array([(s, 1)], dtype=[('a', 'f8'), ('b', 'f8')])['a'] * y ;;
np.sum(y, initial=s) ;; y.sum(initial=s) ;; y.prod(initial=s) ;; np.prod(y, initial=s) ;;
np.max(y, initial=s) ;; np.min(y, initial=-s) ;; y.max(initial=s) ;; np.add.reduce(y, initial=s) ;;
np.add.reduce(y, 0, None, None, False, s) ;; np.multiply.reduce(y, initial=s) ;;
np.maximum.reduce(y, initial=s) ;; np.logaddexp.reduce(y, initial=s) ;;
np.add.accumulate([s, 1.0, 2.0]) ;; np.add.outer(s, y) ;; np.add.at(y, [0], s) ; y ;;
np.add.reduceat([s, 1.0, 3.0], [0, 2]) ;; np.full(4, s) * y ;;
np.full((4,), s, dtype=np.float64) * y ;; np.full_like(y, fill_value=s) ;;
np.clip(y * 1e9, a_min=0, a_max=s) ;; np.clip(y * 1e9, min=0, max=s) ;; (y * 1e9).clip(0, s) ;;
(y * 1e9).clip(max=s) ;; np.fmin(s, y * 1e9) ;; np.add(s, y) ;; np.add(s, 1.0) * y ;;
np.sqrt(s) * y ;; np.hypot(s, y) ;; np.exp([s / 100]) * y[:1] ;; np.power(y, s / 100) ;;
np.isfinite(s) * y ;; np.frexp(s)[0] * y ;; np.arctan2(s, 1) * y ;; np.abs(s) * y ;;
np.maximum(s, 1.0) * y ;; np.where(s > 1, s, 0) * y ;; np.histogram([s, 1], bins=2)[1] ;;
np.histogram(y, bins=3, range=(0, s))[1] ;; np.histogram_bin_edges(y, bins=3, range=(0, s)) ;;
np.geomspace(1, s, 3) * 2 ;; np.logspace(0, 1, 4, base=s) ;; np.linspace(0, s, 4) * y ;;
np.linspace(0, stop=s, num=4) * y ;; np.interp(s, [0, 1e9], [0, 1]) * y ;;
np.interp(y, [0, 9], [0, s]) ;; np.interp(y, [0, 9], [0, 1], period=s) ;;
np.arange(0, s, s / 4)[1] * y ;; np.arange(stop=s + 3, start=s)[0] * y ;;
np.pad(y, 1, constant_values=s) ;; np.pad(y, (1, 1), mode='linear_ramp', end_values=s) ;;
np.nan_to_num(np.nan * y, True, s) ;; np.quantile(y, s / 1000) ;; np.percentile(y, [s / 10]) ;;
np.gradient(y, s) ;; np.diff(y, append=s) ;; np.insert(y, 0, s) ;; np.concatenate([y, [s]]) ;;
np.hstack([y, s]) ;; np.r_[y, s] ;; np.block([y, s]) ;; np.average(y, weights=[s, 1, 1, 1]) ;;
np.std(y, ddof=s / 100) ;; y.var(ddof=s / 100) ;; np.mean([s, 1.0]) * y ;; np.sum([s, 1.0]) * y ;;
np.sort([s, 1.0])[1] * y ;; np.dot([s, 1], [1, 2]) * y ;; np.inner(s, y) ;; np.outer([s], y) ;;
np.tensordot([s], [[2.0]], 1) * y[:1] ;; np.einsum('i,i', [s, 1, 1, 1], y) ;;
np.cross([s, 1, 1], y[:3]) ;; np.polyval([1, 2], s) * y ;; np.poly1d([s, 1])(y) ;;
np.polynomial.Polynomial([s, 1])(y) ;; np.convolve(y, [s, 1]) ;;
np.searchsorted([1, 2, s], y)  * s ;; np.select([y > 1], [s], 0) ;;
np.piecewise(y, [y > 1], [s, 0]) ;; np.put(y, [0], s) ; y ;; np.putmask(y, y > 1, s) ; y ;;
np.fill_diagonal(y.reshape(2, 2), s) ; y ;; y.fill(s) ; y ;; y[0] = s ; y ;; y[:] = s ; y ;;
y[y > 1] = s ; y ;; y[[0, 1]] = [s, 1] ; y ;; y.put([0], s) ; y ;; y.flat = [s] ; y ;;
y *= s ; y ;; y += s ; y ;; y /= s ; y ;; np.tile([s], 4) * y ;; np.broadcast_to(s, (4,)) * y ;;
np.meshgrid([s, 1.0], [2.0])[0] ;; np.fromiter((v for v in (s, s)), float) * 2 ;;
np.fromstring(str(s), sep=' ') * y[:1] ;; np.vectorize(lambda v: v * s)(y) ;;
np.frompyfunc(lambda v: v * s, 1, 1)(y).astype(float) ;; np.unwrap(y * s) ;;
np.angle(s + 1j) * y ;; np.real(s) * y ;; np.imag(s * 1j) * y ;; np.nextafter(s, 0) * y ;;
np.allclose(y, s)*y ;; np.sinc(s / 100) * y ;; np.kaiser(4, s / 100) ;;
np.linalg.norm([s, 1]) * y ;; np.linalg.solve([[s, 1], [1, 2]], y[:2]) ;;
np.linalg.det([[s, 1], [1, 2]]) * y ;; np.linalg.matrix_power([[s, 0], [1, 2]], 2) ;;
np.fft.fftfreq(4, d=s) ;; np.random.default_rng(0).normal(loc=s, size=4) ;;
np.random.default_rng(0).choice([s, 1.0], 4) ;; np.ma.array([s, 1.0]).data * 2 ;;
np.ma.filled(np.ma.array(y, mask=[1, 0, 0, 0]), s) ;; np.ones(4) * s ;; np.eye(2) * s ;;
np.diag([s, 1.0]) ;; np.vander([s, 1.0], 2) ;; np.unique([s, 1.0]) * 2 ;;
np.partition([s, 1.0], 1) ;; np.roll([s, 1.0], 1) ;; np.reshape([s, 1.0], 2) ;;
np.squeeze([[s, 1.0]]) ;; np.copy(s) * y ;; np.require(s, float) * y ;;
np.ndarray((4,), float, np.full(4, s)) * y ;; np.array(memoryview(array.array('d', [s])))[0] * y ;;
array.array('d', [s])[0] * y ;; a = array.array('d', [1]) ; a[0] = s ; a[0] * y ;;
a = array.array('d') ; a.append(s) ; a[0] * y ;; a = array.array('d') ; a.extend([s]) ; a[0] * y ;;
struct.unpack('d', struct.pack('d', s))[0] * y ;;
b = bytearray(8) ; struct.pack_into('d', b, 0, s) ; struct.unpack('d', b)[0] * y ;;
struct.Struct('d').unpack(struct.Struct('d').pack(s))[0] * y ;; float(decimal.Decimal(s)) * y ;;
float(decimal.Decimal.from_float(s)) * y ;; float(decimal.Decimal(str(s))) * y ;;
float(fractions.Fraction(s)) * y ;; float(fractions.Fraction.from_float(s)) * y ;;
float(fractions.Fraction(1, 3) * s) * y ;; float(s * fractions.Fraction(1, 3)) * y ;;
datetime.timedelta(seconds=s).total_seconds() * y ;; datetime.timedelta(s).total_seconds() * y ;;
(datetime.timedelta(1) * s).total_seconds() * y ;;
(s * datetime.timedelta(1)).total_seconds() * y ;;
(datetime.timedelta(1) / s).total_seconds() * y ;;
d = datetime.timedelta(1) ; d *= s ; d.total_seconds() * y ;;
datetime.datetime.fromtimestamp(s).timestamp() * y ;; random.seed(s) ; random.random() * y ;;
random.Random(s).random() * y ;; random.Random(0).gauss(s, 1) * y ;;
random.Random(0).uniform(0, s) * y ;; random.Random(0).choice([s, s]) * y ;;
random.Random(0).choices([1.0, 2.0], weights=[s, 1])[0] * y * s ;; statistics.mean([s, 1.0]) * y ;;
statistics.fmean([s, 1.0]) * y ;; statistics.median([s, 1.0]) * y ;;
statistics.stdev([s, 1.0]) * y ;; statistics.geometric_mean([s, 1.0]) * y ;;
statistics.NormalDist(s, 1).mean * y ;; statistics.NormalDist(s, 1).cdf(100) * y ;;
json.loads(json.dumps(s)) * y ;; json.loads(json.dumps({'s': [s]}))['s'][0] * y ;;
json.loads(json.dumps([s], indent=1))[0] * y ;; pickle.loads(pickle.dumps(s)) * y ;;
pickle.loads(pickle.dumps([s]))[0] * y ;; copy.copy(s) * y ;; copy.deepcopy([s])[0] * y ;;
eval('s') * y ;; eval('s * y') ;; exec('t = s', globals(), d := {'s': s}) or d['t'] * y ;;
locals()['s'] * y ;; vars()['s'] * y ;; math.sin(s) * y ;; math.log(s) * y ;; math.log(s, 3) * y ;;
math.log(1e9, s) * y ;; math.log2(s) * y ;; math.pow(2, s / 100) * y ;; math.atan2(1, s) * y ;;
math.hypot(s, s) * y ;; math.fsum([s, 1]) * y ;; math.prod([2], start=s) * y ;;
math.remainder(s, 2) * y ;; math.frexp(s)[0] * y ;; math.modf(s)[0] * y ;; math.ceil(s) * y ;;
math.isfinite(s) * y ;; math.nextafter(s, 0) * y ;; math.degrees(s) * y ;;
math.gamma(s / 100) * y ;; math.erf(s / 1000) * y ;; math.exp2(s / 100) * y ;; math.log1p(s) * y ;;
math.tanh(s / 1000) * y ;; cmath.sqrt(s) * y ;; cmath.phase(s * 1j) * y ;; cmath.polar(s)[0] * y ;;
cmath.rect(s, 1) * y ;; cmath.log(s).real * y ;; operator.mul(s, 2.0) * y ;; operator.mul(s, y) ;;
operator.mul(2j, s) * y ;; operator.add(2.0, s) * y ;; operator.neg(s) * y ;;
operator.attrgetter('real')(s) * y ;; operator.methodcaller('conjugate')(s) * y ;;
functools.reduce(lambda a, b: a * b, [s, 2.0]) * y ;;
functools.reduce(operator.mul, [s, 2.0]) * y ;; functools.partial(operator.mul, s)(y) ;;
list(itertools.accumulate([s, 1.0]))[1] * y ;; list(map(float, [s]))[0] * y ;;
list(map(complex, [s]))[0] * y ;; list(map(math.sqrt, [s]))[0] * y ;;
list(map(lambda v: v * 2, [s]))[0] * y ;; list(map(str, [s]))[0] and float(str(s)) * y ;;
[v * 2 for v in [s]][0] * y ;; {s: 1.0}.popitem()[0] * y ;; {'a': s}['a'] * y ;;
{**{'a': s}}['a'] * y ;; [s].index(s) * y + s ;; [*{s}][0] * y ;; collections.deque([s])[0] * y ;;
collections.Counter({'a': s})['a'] * y ;; collections.namedtuple('P', 'a')(s).a * y ;;
heapq.nlargest(1, [s, 1.0])[0] * y ;; bisect.bisect([1.0, 240.0, 260.0], s) * y * s ;;
pair(s, y)[0] * y ;; setm(y, s) ;; math.fsum(map(math.sqrt, [s])) * y ;;
np.fromiter(map(math.sqrt, [s]), float) * y[:1] ;;
Own(s).s * y ;; s * Own(2.0) * y ;; getattr(s, 'real') * y ;;
getattr(s, 'hex')() and float.fromhex(s.hex()) * y ;; type(s)(s) * y ;;
type(s).__mul__(s, 2.0) * y ;; s.__class__(s) * y ;; float(s) * y ;; (s if s > 1 else 0) * y ;;
(s > 246.1) * y + s ;; (s < 2j.real) * y + s ;; (s == 2j) * y + s ;; 2 * s * y ;;
2 ** s / 1e60 * y ;; s ** 0.5 * y ;; (-s) ** 0.5 * y ;; s ** 2 * y ;; -s * y ;; +s * y ;;
True * s * y ;; (s or 2.0) * y ;; (not s) * y + s ;; s.__eq__(3.0) * y + s ;;
s.__bool__() * y * s ;; s.__pos__() * y ;; s.__neg__() * y ;; s.__abs__() * y ;;
s.__pow__(2) * y ;; s.__rpow__(2) / 1e70 * y ;; float.hex(s) and float.fromhex(float.hex(s)) * y ;;
float.conjugate(s) * y ;; float.as_integer_ratio(s)[0] * y ;; float.real.__get__(s) * y ;;
float.__truediv__(s, 3.0) * y ;; float.__repr__(s) and float(float.__repr__(s)) * y ;;
complex(s) * y ;; complex(real=s) * y ;; complex(1, imag=s) * y ;; complex.__mul__(2j, s) * y ;;
int.__truediv__(3, 2) * s * y ;; float(io.StringIO(f'{s}').read()) * y ;;
y.astype(float) @ [s, 1, 1, 1] ;; y @ [s, 1, 1, 1] ;; [s, 1, 1, 1] @ y ;; [s, 1, 1, 1] * y ;;
[s, 1, 1, 1] + y ;; (s, 1, 1, 1) - y ;; y - [s, 1, 1, 1] ;; (y * 1e9 > s) * s ;; y ** (s / 100) ;;
s ** (y / 100) ;; y % s * s ;; divmod(y * 100, s)[1] ;; divmod(s, y)[1] ;; round(s) * y ;;
y.dot(s) ;; y.searchsorted([s]) * s ;; y.repeat(2) * s ;; y.take([0]) * s ;;
y.compress([True]) * s ;; y.round(2) * s ;; y.sum(where=y < s) * s ;;
y.mean(where=[True, False, True, True]) * s ;; s.x if hasattr(s, 'x') else s.real * y ;;
print(s) or s * y ;; float(s.__format__('')) * y ;; time.gmtime(s).tm_sec * y + s ;;
(lambda v=s: v * y)() ;; (lambda *a: a[0] * y)(s) ;; (lambda **a: a['v'] * y)(v=s) ;;
float(bytes(str(s), 'ascii')) * y ;; int(s * 1e6) * 1e-6 * y ;; hash(s) % 1000 * y ;;
slice(s).stop * y
"""
"""Expressions, or statements (`;`) that end in one; `;;` separates uses."""


def programs(uses: str, number: str, path: Path) -> list[tuple[str, Any]]:
    """Return the uses, with a function of a file that computes the number and uses it so."""
    statements = [use.strip().replace("\n", " ").split(" ; ") for use in uses.split(";;")]
    bodies = [
        "\n    ".join([f"def use{i}(x, y):", f"s = {number}", *lines[:-1], f"return {lines[-1]}"])
        for i, lines in enumerate(statements)
    ]
    path.write_text(HEAD + "\n\n".join(bodies) + "\n")
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [(" ; ".join(lines), getattr(module, f"use{i}")) for i, lines in enumerate(statements)]


def parts(result: Any) -> list[Any]:
    return [np.asarray(x, complex) for x in (result if type(result) is tuple else (result,))]
