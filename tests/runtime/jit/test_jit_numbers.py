"""jit with Python numbers as arguments: the values and dtypes of plain NumPy, number by number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, GraphirError, PromotionRules, TensorType, ops, rules
from graphir.numpy_api.traced_numbers import NumberUse, Reference
from graphir.promotion.numpy_ import Numpy
from graphir.promotion.scalars import INT_EDGES, Interval, cell_of
from graphir.runtime import jit
from tests.support.tables import every

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdFD"]
INTS = sorted(
    {
        *(0, 1, -1, 2, -2, 3, 7, 63, 64, 126, -127),
        *(300, -300, 2049, 65505, 2**53 + 1, 2**70, -(2**70)),
        *(10**400, -(10**400)),
        *(edge for bits in (7, 8, 15, 16, 31, 32, 63, 64)
          for edge in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1)),
    }
)  # fmt: skip
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 0.1, -1.5, 65519.0, 65520.0, 1e39, -1e300]
FLOATS += [math.inf, -math.inf, math.nan]
COMPLEX = [1j, 1 + 2j, 1e39j, complex("nan"), -0.0j]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "arctan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "logical_and": np.logical_and,
    "less": np.less,
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{f"x {name} k": lambda x, k, f=f: f(x, k) for name, f in OPERATORS.items()},
    **{f"k {name} x": lambda x, k, f=f: f(k, x) for name, f in OPERATORS.items()},
    "where(x, k)": lambda x, k: np.where(np.array([True, False, True, False]), x, k),
    "clip(k, None)": lambda x, k: np.clip(x, k, None),
    "clip(None, k)": lambda x, k: np.clip(x, None, k),
    "clip(k, k)": lambda x, k: np.clip(x, k, k),
    "clip(-k, k)": lambda x, k: np.clip(x, -abs(k), abs(k)),
    "clip(200.0, k)": lambda x, k: np.clip(x, 200.0, k),
    "clip(k, -200.0)": lambda x, k: np.clip(x, k, -200.0),
    "full_like": lambda x, k: x + np.full_like(x, k),
    "(k + 1) * x": lambda x, k: (k + 1) * x,
    "k * k + x": lambda x, k: k * k + x,
    "k // 3 * x": lambda x, k: k // 3 * x,
    "-k + x": lambda x, k: -k + x,
    "k % 7 | x": lambda x, k: k % 7 | x,
    "k ** 2 >= x": lambda x, k: k**2 >= x,
    "k / 3 < x": lambda x, k: k / 3 < x,
    "abs(k) < x": lambda x, k: abs(k) < x,
    "round(k) * x": lambda x, k: round(k) * x,
    "int(k) + x": lambda x, k: int(k) + x,
    "float(k) + x": lambda x, k: float(k) + x,
    "min(k, 5) + x": lambda x, k: min(k, 5) + x,
    "max(k, 5) + x": lambda x, k: max(k, 5) + x,
    "x if k > 2": lambda x, k: x if k > 2 else x - x,
    "x if k": lambda x, k: x * 2 if k else x,
    "k < 3": lambda x, k: (k < 3) | (x > 3),
    "isinstance": lambda x, k: x + 1 if isinstance(k, int) else x + 2,
    "divmod": lambda x, k: sum(divmod(k, 7)) + x,
    "try": lambda x, k: x + _inverse(k),
    "sqrt": lambda x, k: x + math.sqrt(abs(k)),
    "x[:k]": lambda x, k: x[: k % 3],
    "text": lambda x, k: x + len(f"{k}"),
    "np.add(k, 1)": lambda x, k: np.add(k, 1) + x,
    "np.sin(k)": lambda x, k: np.sin(k) * x,
    "linspace": lambda x, k: x + np.linspace(0, k, 4),
    "k in": lambda x, k: x + 1 if k in (0, 1, 2.0, 300) else x,
    "sum": lambda x, k: x + sum([k, 1, k]),
    "k + x[0]": lambda x, k: k + x[0],
    "return k": lambda x, k: (x, k),
}


def _inverse(k: Any) -> Any:
    try:
        return 1 / k
    except ZeroDivisionError:
        return 0


def _arrays(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, 1, 3, info.max], dtype)
    return np.array([0, 1, 3, 100]).astype(dtype)


def _plain(function: Callable[..., Any], x: Any, k: Any) -> Any:
    """What NumPy gives, None where it refuses or gives objects."""
    try:
        found = function(x.copy(), k)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
    found = [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]
    return None if any(one.dtype == object for one in found) else found


def _alike(a: Any, b: Any) -> bool:
    """Whether two arrays are the same, floats but for the last bits of powers and functions."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    return np.allclose(a, b, rtol=4 * np.finfo(a.dtype).eps, atol=0, equal_nan=True)


REFUSED = {
    "where(x, k)": "np.where wraps an int that does not fit; since NumPy 2.5 it refuses it",
    "full_like": "np.full_like truncates floats, and takes any number for bool",
}
"""The functions that NumPy computes with numbers that graphir refuses, and why."""


def _ours(jitted: Callable[..., Any], x: Any, k: Any) -> Any:
    """What a jitted function gives, or the error that it raises."""
    try:
        found = jitted(x, k)
    except (GraphirError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        return error
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def _difference(name: str, ours: Any, theirs: Any) -> str:
    if isinstance(ours, Exception):
        return "" if theirs is None or name in REFUSED else f"{ours!r}, not {theirs}"
    if theirs is None:
        return f"{ours}, which NumPy refuses"
    alike = all(_alike(a, b) for a, b in zip(ours, theirs, strict=True))
    return "" if alike else f"{ours}, not {theirs}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_numbers_give_what_plain_numpy_gives(name: str) -> None:
    """Each is met after those less than it, and again when all have been met."""
    function, wrong = FUNCTIONS[name], []
    for dtype in DTYPES:
        x, jitted = _arrays(dtype), jit(function, rules="numpy")
        expected = [(k, _plain(function, x, k)) for k in (*INTS, *FLOATS, *COMPLEX)]
        for k, theirs in (*expected, *reversed(expected)):
            if found := _difference(name, _ours(jitted, x, k), theirs):
                wrong.append(f"{dtype}, {k!r}: {found}")
    assert not wrong, "\n".join(wrong[:10])


# -- as few graphs as there are answers


def traces(function: Callable[..., Any], x: Any, numbers: Any, rules: str = "numpy") -> int:
    """How often a jitted function is traced for some numbers, in turn and then back."""
    count = 0

    def counted(x: Any, k: Any) -> Any:
        nonlocal count
        count += 1
        return function(x, k)

    jitted = jit(counted, rules=rules)
    for k in (*numbers, *reversed(numbers)):
        jitted(x, k)
    return count


X8, XU8, X32 = (np.array([1, 2, 3], dtype) for dtype in ("i1", "u1", "f4"))
COUNTS: list[tuple[str, Callable[..., Any], Any, Any, int]] = [
    ("one dtype", lambda x, k: x + k, X8, range(-128, 128), 1),
    ("below, within and above", lambda x, k: x >= k, XU8, range(-500, 500), 2),
    ("64 bits and beyond", lambda x, k: x >= k, XU8, [5, 2**63, 2**64, -1, -(2**65), 9], 4),
    ("floats", lambda x, k: x * k + k, X32, [1.5, -0.0, math.inf, math.nan, 1e300], 1),
    ("computed of", lambda x, k: (k + 1) * x + k // 3, X32, range(-99, 99), 1),
    ("a branch", lambda x, k: x if k > 2 else -x, X32, range(-99, 99), 2),
    ("int or float", lambda x, k: x * 2**k, X32, range(-9, 9), 2),
    ("index", lambda x, k: x[k], X32, [0, 1, 2, -1], 1),
    ("a length", lambda x, k: x[:k], X32, [0, 1, 2, 1, 0], 3),
    ("the text", lambda x, k: x + len(str(k)), X32, [1, 2, 3], 3),
    ("int(k)", lambda x, k: x + int(k), X32, [0.0, 0.5, 0.9, 1.1], 2),
]


@every("case", COUNTS)
def test_as_few_graphs_as_answers(case: Any) -> None:
    _, function, x, numbers, expected = case
    assert traces(function, x, list(numbers)) == expected


def test_the_graph_shows_what_numbers_are() -> None:
    @jit(rules="numpy")
    def f(x: Any, k: Any) -> Any:
        return (k + 1) * x + k

    assert str(f.traced(X8, 5).graph).splitlines()[0] == (
        "graph @f rules=numpy (%x: int8[3], %add_k: weak_int[], %k: weak_int[]) -> (int8[3]) {"
    )
    assert [one.tolist() for one in f.traced(X8, 5).inputs(X8, 7)] == [[1, 2, 3], 8, 7]
    with pytest.raises(GraphirError, match="with the numbers 300 the function makes another graph"):
        f.traced(X8, 5).inputs(X8, 300)
    assert f.program(X8, 5) is f.program(X8, 6)


def test_refusals_say_the_line_and_the_number() -> None:
    for k in (300, 10**5000):
        with pytest.raises(
            GraphirError, match=r"test_jit_numbers\.py:\d+:\d+: add\(lhs: int8\[3\]"
        ):
            jit(lambda x, k: x + k, rules="numpy")(X8, k)
    with pytest.raises(ZeroDivisionError):
        jit(lambda x, k: x + 1 // k, rules="numpy")(X8, 0)


def test_inputs_are_of_the_line_that_calls() -> None:
    f = jit(lambda x, k: x * k, rules="numpy")
    for k in (1, 2, 3):
        f(X8, k)
    with pytest.raises(GraphirError, match=r"lhs: int8\[3\] \(tests/.*/test_jit_numbers\.py:\d+"):
        f(X8, 300)


def test_a_result_that_python_refuses_is_refused_though_nothing_needs_it() -> None:
    @jit(rules="numpy")
    def f(x: Any, k: Any) -> Any:
        _ = 1 / k
        return x

    assert f(X8, 1).tolist() == [1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        f(X8, 0)
    assert f(X8, 2).tolist() == [1, 2, 3]


def test_numbers_end_with_their_trace() -> None:
    kept: list[Any] = []

    @jit(rules="numpy")
    def f(x: Any, k: Any) -> Any:
        kept.append(k)
        return x + k

    f(X8, 1)
    with pytest.raises(GraphirError, match="after the trace ended"):
        _ = kept[0] + 1
    assert repr(kept[0]) == "<number 'k' of a trace that ended>"


def test_structures_of_numbers_and_names() -> None:
    @jit(rules="numpy")
    def f(params: Any, *, scale: Any) -> Any:
        return {"a": params["x"] * params["k"][0], "n": params["k"][1] + scale, scale > 2: scale}

    for i in (1, 5):
        found = f({"x": X8, "k": (i, 2.5)}, scale=i)
        assert found["a"].tolist() == [i, 2 * i, 3 * i] and found["n"] == 2.5 + i
        assert found[i > 2] == i and found["a"].dtype == np.int8


def test_arrays_of_numbers_are_refused_where_numpy_would_lose_the_kind() -> None:
    f = jit(lambda x, k: x + np.asarray(k), rules="numpy")
    with pytest.raises(GraphirError, match=r"got 'k', an? int; use .*int\(k\)"):
        f(X8, 3)
    g = jit(lambda x, k: x + np.array([k, 1, 2], np.int8), rules="numpy")
    assert [g(X8, k).tolist() for k in (1, 5)] == [[2, 3, 5], [6, 3, 5]]


SHIFTS = np.array([10, 20, 30], np.int8)
LIMIT = 5


def test_numbers_among_arrays_and_globals_that_a_function_reads(monkeypatch: Any) -> None:
    factors = np.array([1, 2, 3], np.int8)

    @jit(rules="numpy")
    def f(x: Any, k: Any, m: Any = 1) -> Any:
        y = x * factors + SHIFTS
        return y * m + k if k > LIMIT else y - k

    for limit in (5, 50, 5):
        monkeypatch.setitem(globals(), "LIMIT", limit)
        for k, m in ((1, 1), (9, 2), (60, 1), (9, -1)):
            assert f(X8, k, m).tolist() == f.__wrapped__(X8, k, m).tolist()
            traced = f.traced(X8, k, m)
            assert len(traced.inputs(X8, k, m)) == len(traced.graph.inputs)
        factors += 1


def test_threads_take_the_graph_of_their_numbers() -> None:
    f = jit(lambda x, k: x + k if k % 3 else x - k, rules="numpy")
    numbers = [i * 37 % 200 - 100 for i in range(600)]
    with ThreadPoolExecutor(8) as pool:
        for k, found in zip(numbers, pool.map(lambda k: f(X32, k), numbers), strict=True):
            assert found.tolist() == (X32 + k if k % 3 else X32 - k).tolist()


def test_inner_functions_take_numbers_as_they_are() -> None:
    inner = jit(lambda x, k: x >= k, rules="numpy")
    power = jit(lambda k: k**2, rules="numpy")
    outer = jit(lambda x, k: inner(x, power(k)), rules="numpy")
    assert [outer(XU8, k).tolist() for k in (0, 2, 99)] == [[True] * 3, [False] * 3, [False] * 3]


# -- cells


def _outcome(rules: PromotionRules, op: Any, types: list[Any], place: int, value: Any) -> Any:
    operands = [*types[:place], Reference(0), *types[place:]]
    return NumberUse(rules, op, tuple(operands), False, ()).answer([value])


def _members(cell: Interval) -> list[int]:
    """The ends of a cell of ints, and one between them."""
    low = 2 * int(cell.high) - 2 if cell.low == -math.inf else int(cell.low)
    high = 2 * int(cell.low) + 2 if cell.high == math.inf else int(cell.high)
    return [low, (low + high) // 2, high - 1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["numpy", "cupy", "torch", "array_api", "jax_2020"])
def test_numbers_of_a_cell_are_taken_alike(name: str) -> None:
    """In every op, beside every dtype; so a function need not be traced for each of them."""
    found = rules(name)
    cells = {cell for edge in INT_EDGES for one in (edge - 1, edge) for cell in [cell_of(one)]}
    for op, dtype in product(("add", "divide", "pow", "less", "clip", "where", "atan2"), DTYPES):
        types = [TensorType(DType(dtype), (2,))] * (len(ops.CATALOGUE[op].operands) - 1)
        for place in range(op == "where", len(types) + 1):
            for cell in cells:
                answers: dict[Any, set[Any]] = {}
                for one in _members(cell):
                    answer = _outcome(found, ops.CATALOGUE[op], types, place, one)
                    answers.setdefault(found.cell(one, op), set()).add(answer)
                assert all(len(alike) == 1 for alike in answers.values()), (op, dtype, place, cell)
                assert (op, name) == ("pow", "jax_2020") or len(answers) == 1
            for value in (1.5, 1e5, 1e39, 1e300):
                near = [value, value * (1 + 2**-50), -value]
                keys = {one: found.cell(one, op) for one in near}
                by_key = {key: set() for key in keys.values()}
                for one, key in keys.items():
                    by_key[key].add(_outcome(found, ops.CATALOGUE[op], types, place, one))
                assert all(len(one) == 1 for one in by_key.values())


def test_rules_of_ones_own_are_asked_for_every_number() -> None:
    class Odd(Numpy):
        def literal_value(self, value: Any, place: Any) -> Any:
            return value + 1 if type(value) is int and value % 2 else value

    mine = Odd("test_odd", "Odd ints are one more.", dtypes=rules("numpy").dtypes)
    f = jit(lambda x, k: x + k, rules=mine)
    assert [f(X8, k).tolist() for k in (2, 3, 4, 5)] == [[3, 4, 5], [5, 6, 7], [5, 6, 7], [7, 8, 9]]
