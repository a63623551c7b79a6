"""Uses of a Python integer that has an error: no figure is 0 where the exact run differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir.runtime import audit, record
from tests.runtime.recording.number_uses import SOME_OR_ALL, USES, parts, programs
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.arange(1, 41, dtype=np.uint8)
Y = np.array([0.5, 1.25, 3.0, 7.0])
OF_INTEGERS = r"""
s * y ;; s // 7 * y ;; s % 7 * y ;; -s % 7 * y ;; (s << 3) * y ;; (s >> 3) * y ;; (s & 300) * y ;;
(s | 1) * y ;; (s ^ 5) * y ;; ~s * y ;; s ** 2 * y ;; 2 ** (s % 30) * y ;; s ** -1 * y ;;
s / 3 * y ;; 3 / s * y ;; 1000 // s * y ;; divmod(s, 7)[0] * y ;; divmod(1000, s)[1] * y ;;
pow(s, 2) * y ;; pow(s, 2, 7) * y ;; s ** 20 % 1009 * y ;; 2 ** s % 1009 * y ;; abs(-s) * y ;;
(s + 2 ** 63) % 1009 * y ;; 0.5 * s * y ;; (0.5 + s) * y ;; (7.5 - s) * y ;; (7.5 / s) * y ;;
7.5 // s * y ;; 1e3 % s * y ;; 1.01 ** s * y ;; s ** 0.5 * y ;; (s + 0.5) * y ;;
f = 0.5 ; f += s ; f * y ;; f = 0.5 ; (f * s) * y ;; d = {'f': 0.5} ; d['f'] += s ; d['f'] * y ;;
f = [0.5] ; f[0] *= s ; f[0] * y ;; (True + s) * y ;; (s if 20.5 < s else 1) * y ;;
(2 if 0.5 < s < 20.5 else 1) * y ;; (2 if s > 20 else 1) * y ;; (2 if s == 16 else 1) * y ;;
(2 if 16 == s else 1) * y ;; (2 if 16.0 == s else 1) * y ;; (2 if s in (16, 3) else 1) * y ;;
(2 if s in [16.0] else 1) * y ;; (2 if s in {16} else 1) * y ;; (2 if s in range(20) else 1) * y ;;
(2 if s not in (16,) else 1) * y ;; (2 if 0 < s < 20 else 1) * y ;; (2 if s - 16 else 1) * y ;;
(2 if not s - 16 else 1) * y ;; (s - 16 or 5) * y ;; bool(s - 16) * y ;;
[1.0, 2.0, 3.0][s % 3] * y ;; (1.0, 2.0, 3.0)[s % 3] * y ;; float('12345'[s % 3]) * y ;;
float('12345'[: s % 3 + 1]) * y ;; b'abc'[s % 3] * y ;; range(5)[s % 3] * y ;;
a = [0.0] * 3 ; a[s % 3] = 1.0 ; np.array(a) ;; a = [1.0, 2.0, 4.0] ; del a[s % 3] ; a[0] * y ;;
a = [1.0, 2.0, 4.0] ; a[s % 3] += 1 ; np.array(a) ;; a = [1.0, 2.0, 4.0] ; a.pop(s % 3) * y ;;
a = [1.0, 2.0, 4.0] ; a.insert(s % 3, 8.0) ; np.array(a) ;; sum([1.0, 2.0][: s % 2 + 1]) * y ;;
{16: 1.5, 272: 2.5}[s] * y ;; {16: 1.5}.get(s, 2.5) * y ;;
d = {} ; d[s] = 1.5 ; d.get(16, 2.5) * y ;; d = {s: 1.5} ; d.get(16, 2.5) * y ;; y[s % 4] * y ;;
y[s % 4 :].sum() * y ;; y[[s % 4, 0]] ;; a = y.copy() ; a[s % 3] = 9.0 ; a ;;
a = y.copy() ; a[s % 3] += 9.0 ; a ;; y.take(s % 4) * y ;; len(range(s)) * y ;; sum(range(s)) * y ;;
sum(v for v in range(s)) * y ;; len([0] * s) * y ;; len(s * [0]) * y ;; len('a' * s) * y ;;
len(bytes(s)) * y ;; len(bytearray(s)) * y ;; len((0,) * s) * y ;;
t = 0 ; t = [t := t + 1 for _ in range(s)][-1] ; t * y ;; np.zeros(s).size * y ;;
np.ones(s).sum() * y ;; np.arange(s)[-1] * y ;; np.arange(s).sum() * y ;; np.full(4, s) * y ;;
np.full(s, 2.0).sum() * y ;; np.eye(s).sum() * y ;; np.linspace(0, 1, s)[1] * y ;;
np.linspace(0, s, 4) ;; np.repeat(y, s)[:4] * s ;; np.tile(y, s).size * y ;; np.roll(y, s % 3) ;;
np.roll(y, shift=s % 3) ;; y.repeat(s).size * y ;; np.array([s, 1]) ;; np.array([s, 1.5]) ;;
np.array(s) * y ;; np.asarray([[s], [2]]) ;; np.int64(s) * y ;; np.float64(s) * y ;;
np.uint16(s) * y ;; float(s) * y ;; complex(s) * y ;; complex(0, s) * y ;; int(s) * y ;;
int(s + 0.5) * y ;; round(s) * y ;; round(s, -1) * y ;; round(s / 3) * y ;; np.add(s, y) ;;
np.maximum(s, y) ;; np.maximum(20, s) * y ;; max(s, 20) * y ;; min(s, 20) * y ;; max([s, 20]) * y ;;
sorted([20, s])[0] * y ;; sum([s, 1]) * y ;; sum([s, s], 0.5) * y ;; sum([0.5, s]) * y ;;
sum([[s], [1]], [])[0] * y ;; sum(v for v in [s, 2]) * y ;; math.sqrt(s) * y ;;
math.gcd(s, 24) * y ;; math.floor(s / 3) * y ;; math.ceil(s / 3) * y ;; math.trunc(s / 3) * y ;;
math.floor(s) * y ;; math.comb(s, 2) * y ;; math.factorial(s) % 1009 * y ;; math.isqrt(s) * y ;;
math.log(s) * y ;; s.bit_length() * y ;; s.bit_count() * y ;; s.real * y ;; s.imag + s * y ;;
s.numerator * y ;; s.denominator * s * y ;; s.conjugate() * y ;; s.to_bytes(2, 'big')[1] * y ;;
s.__index__() * y ;; s.__int__() * y ;; s.__add__(1) * y ;; s.__radd__(1) * y ;;
s.__float__() * y ;; s.__floor__() * y ;; s.as_integer_ratio()[0] * y ;; int.__add__(1, s) * y ;;
int.__add__(s, 1) * y ;; float.__mul__(0.5, s) * y ;; int.bit_length(s) * y ;;
operator.index(s) * y ;; operator.mul(0.5, s) * y ;; operator.add(1, s) * y ;;
operator.getitem([1.0, 2.0, 3.0], s % 3) * y ;; operator.itemgetter(s % 3)([1.0, 2.0, 3.0]) * y ;;
functools.reduce(operator.mul, [s, 2]) * y ;; functools.reduce(lambda a, b: a * b, [0.5, s]) * y ;;
list(itertools.accumulate([0.5, s]))[1] * y ;;
len(list(itertools.islice(itertools.count(), s))) * y ;; len(list(itertools.repeat(1, s))) * y ;;
len(collections.deque([1] * 400, maxlen=s)) * y ;; collections.Counter([s])[16] * y + y ;;
float(f"{s}") * y ;; float(f"{s:d}") * y ;; float(f"{0:.{s % 3}f}1") * y ;; float("%d" % s) * y ;;
float(str(s)) * y ;; float("{}".format(s)) * y ;; float(repr(s)) * y ;;
t = '%d' ; float(t % s) * y ;; float(hex(s)[2:]) * y ;; len(bin(s)) * y ;;
float(chr(s % 3 + 50)) * y ;; int(str(s)) * y ;; json.loads(json.dumps(s)) * y ;;
json.loads(json.dumps({'a': [s]}))['a'][0] * y ;; pickle.loads(pickle.dumps(s)) * y ;;
copy.copy(s) * y ;; copy.deepcopy([s])[0] * y ;; hash(s) % 7 * y ;;
struct.unpack('q', struct.pack('q', s))[0] * y ;; array.array('q', [s])[0] * y ;;
a = array.array('q', [1]) ; a[0] = s ; a[0] * y ;; random.Random(s).random() * y ;;
random.Random(0).randint(0, s) * y ;; float(decimal.Decimal(s)) * y ;;
float(fractions.Fraction(s, 3)) * y ;; float(fractions.Fraction(1, 3) * s) * y ;;
datetime.timedelta(s).days * y ;; (datetime.timedelta(1) * s).days * y ;;
(s * datetime.timedelta(1)).days * y ;; s * 1j * y ;; 1j * s * y ;; c = 2j ; c *= s ; c * y ;;
(lambda n: n * 2)(s) * y ;; (lambda n: [1.0, 2.0, 3.0][n % 3])(s) * y ;; (lambda *a: a[0])(s) * y ;;
Own(s).s * y ;; s * Own(2.0) * y ;; list(map(float, [s]))[0] * y ;;
list(map(lambda v: v * 2, [s]))[0] * y ;; [v * 2 for v in [s]][0] * y ;; [*range(s)][-1] * y ;;
list(zip([s], [2]))[0][0] * y ;; list(enumerate([s]))[0][1] * y ;;
list(enumerate([1], s))[0][0] * y ;; next(iter([s])) * y ;; heapq.nlargest(1, [s, 20])[0] * y ;;
bisect.bisect([10, 20, 300], s) * y ;; statistics.mean([s, 1]) * y ;;
statistics.median([s, 20]) * y ;; eval('s') * y ;; slice(s).stop * y ;;
y.reshape(s % 3 + 1, -1).size * s * y ;; np.pad(y, s % 3)[0] + s * y ;;
np.split(np.arange(8.0), [s % 5])[0] ;; np.insert(y, s % 3, 9.0) ;; np.delete(y, s % 3) ;;
np.vander([2.0], s % 5 + 1)[0] ;; np.power(y, s % 5) ;; np.left_shift(1, s % 5) * y ;;
np.bincount([1, 1], minlength=s).size * y ;; np.unravel_index(s % 4, (2, 2))[1] * y ;;
np.where(s > 20, 1, 2) * y ;; np.where([True, False, True, False], s, 2) ;;
np.clip(y * 100, 0, s) ;; np.searchsorted([10, 20, 300], s) * y ;; np.isin(s, [16]) * y ;;
np.fft.fftfreq(s)[1] * y ;; np.hanning(s)[1] * y ;; np.random.default_rng(s).random() * y ;;
np.random.default_rng(0).integers(0, s) * y ;; np.random.default_rng(0).random(s).size * y ;;
np.sum(y, initial=s) ;; y.sum(initial=s) ;; y.fill(s) ; y ;; y[:] = s ; y ;; y *= s ; y ;;
y[y > 1] = s ; y ;; np.put(y, [0], s) ; y ;; np.ma.array([s, 1.0]).data * 2 ;; y @ [s, 1, 1, 1] ;;
np.dot([s, 1], [1, 2]) * y ;; np.frompyfunc(lambda v: v * s, 1, 1)(y).astype(float) ;;
np.vectorize(lambda v: [1.0, 2.0, 3.0][int(v + s) % 3])(y) ;; np.vectorize(lambda v: v + s)(y)
"""
SOME = "s * y ;; 0.5 * s * y ;; [1.0, 2.0, 3.0][s % 3] * y ;; len(range(s)) * y ;; y[s % 4] * y"
MADE_BY = ("int(x[15] * x[16])", "(x[15] * x[16]).item()", "round(x[15] * x[16])")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("uses", "number"),
    [(OF_INTEGERS, MADE_BY[0]), (USES, MADE_BY[0]), *((SOME, number) for number in MADE_BY[1:])],
    ids=["integers", "floats", "item", "round"],
)
@pytest.mark.parametrize("part", SOME_OR_ALL)
def test_no_figure_is_clean_where_the_exact_run_differs(
    uses: str, number: str, part: slice, tmp_path: Path
) -> None:
    wrong: list[Any] = []
    for use, program in programs(uses, number, tmp_path / "integer_uses.py")[part]:
        try:
            real = program(X, Y.copy())
        except (AttributeError, TypeError):
            continue  # a use of floats alone
        try:
            exact = program(X.astype(np.int64), Y.copy())
        except Exception:
            exact = None  # which differs
        recording = record(program, X, Y.copy())
        first = recording.audit().outputs[0]
        if repr(recording.result) != repr(real):
            wrong.append((use, recording.result, real))
        if first.is_known and (exact is None or not _is_near(first, exact, real)):
            wrong.append((use, first.differing, first.largest, exact, real))
    assert not wrong


def _is_near(output: Any, exact: Any, real: Any) -> bool:
    """Whether an output differs in the elements in which the exact run does."""
    one, other = (parts(x)[0] for x in (exact, real))
    if one.shape != other.shape:
        return False
    with np.errstate(all="ignore"):
        is_equal = np.isclose(one, other, rtol=1e-12, atol=0)
    return bool(output.differing == np.count_nonzero(~is_equal))


def followed(x: Any) -> Any:
    n = int(x[15] * x[16])
    return np.array([n * n + 1, -n // 7, 2**40 * n]), 0.5 * n + n**2 - n / 3


def counted(x: Any) -> Any:
    total = 0
    for value in x[14:18]:
        total += int(value * 16)
    return total * np.ones(2), math_of(total)


def math_of(n: int) -> Any:
    return np.zeros(2) + round(n / 7) + abs(-n) % 1000


def rounded(x: Any) -> Any:
    half = (x[:4] * np.uint8(100)).astype(np.float32) / 3
    return np.ones(1) * round(half[3]) * round(float(half[2])) + int(half[1])


@every("program", [followed, counted, rounded])
def test_python_integers_of_narrow_values_are_recorded(program: Any) -> None:
    recording = record(program, X)
    assert repr(recording.result) == repr(program(X))
    wide = program(X.astype(np.int64))
    pairs = zip(recording.audit().outputs, parts(wide), parts(program(X)), strict=True)
    for output, exact, real in pairs:
        assert output.differing == np.count_nonzero(exact != real) > 0


def decided(x: Any) -> Any:
    n = int(x[15] * x[16])
    return x * np.uint8(2 if n > 10 else 3), [1.0, 2.0][n > 10] * np.ones(2)


def test_a_decision_that_the_exact_run_makes_too_hides_nothing() -> None:
    outputs = audit(decided, X).outputs
    assert [output.differing for output in outputs] == [0, 0]


def test_a_recorded_integer_is_an_integer_of_python() -> None:
    def program(x: Any) -> Any:
        n = int(x[15] * x[16])
        assert type(n) is int and isinstance(n, int) and n == 16 and str(n) == "16"
        assert {n: 1}[16] == 1 and hash(n) == hash(16) and [*range(3)][n - 15] == 1
        assert (n + 2**70, n**-1, n // -3, n % -3) == (2**70 + 16, 1 / 16, -6, -2)
        with pytest.raises(ZeroDivisionError):
            n // 0
        assert n > 15.5 and not n < 15.5 and n + 2**60 > 2.0**60 and n != "a"
        return n, {"n": n}, [n + 1]

    result = record(program, X).result
    assert result == (16, {"n": 16}, [17])
    assert [type(x) for x in (result[0], result[1]["n"], result[2][0])] == [int, int, int]


def chosen(x: Any) -> Any:
    y = x[10:20] * np.uint8(16)
    places = [np.argmax(y), np.argmin(y)]
    z = y.copy()
    z[[np.argmax(y)]] = 7
    return y[places], y.reshape(2, 5)[[int(np.argmax(y)) // 9], 1], z


def test_indices_in_a_list_are_operands() -> None:
    report = audit(chosen, X)
    wide = chosen(X.astype(np.int64))
    pairs = zip(report.outputs, parts(wide), parts(chosen(X)), strict=True)
    for output, exact, real in pairs:
        assert output.differing == np.count_nonzero(exact != real) > 0


def of_a_shape(x: Any) -> Any:
    total = (x * np.uint8(16)).sum(dtype=np.uint8)
    return np.ones(2) * (np.ndim(total) + np.size(total)), total.max() * np.ones(2)


def test_a_function_that_asks_for_a_type_reads_no_number() -> None:
    assert [output.differing for output in audit(of_a_shape, X).outputs] == [0, 2]


def test_isin_reads_no_range_of_integers() -> None:
    def program(x: Any) -> Any:
        y = x[:20] * np.uint8(16)
        return np.isin(y, y[:5]), np.isin(y, [16, 400], invert=True), y + 1.5

    (first, second, third), real = audit(program, X).outputs, program(X)
    wide = program(X.astype(np.int64))
    for output, x, y in zip((first, second, third), real, wide, strict=True):
        assert output.differing == np.count_nonzero(x != y) > 0
