"""Symbolic dims in their normal form, shape texts, and interned types."""

from __future__ import annotations

import copy
import gc
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import Dim, DType, GraphError, GraphirError, ShapeError, TensorType
from graphir.numpy_api.trace import trace
from graphir.ops.dims import evaluate, product, quotient, shape_of, shape_text
from tests.support.tables import every

NAMES = ("n", "m", "k")


def expressions(depth: int = 4) -> st.SearchStrategy[str]:
    """Texts that are both dims and Python, whose meaning Python's own evaluation gives."""
    leaves = st.sampled_from(NAMES) | st.integers(0, 9).map(str)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(inner, st.integers(1, 7)).map(lambda t: f"(({t[0]}) // {t[1]})"),
            inner.map(lambda text: f"(-{text})"),
        ),
        max_leaves=2**depth,
    )


def by_python(text: str, sizes: dict[str, int]) -> int:
    return eval(text, {"__builtins__": {}}, dict(sizes))


SIZES = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


def value(dim: int | Dim, sizes: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else dim.evaluate(sizes)


def built(text: str) -> Any:
    """The dim that the operators of Dim make of an expression: an int where nothing is symbolic."""
    return eval(text, {"__builtins__": {}}, {name: Dim.of(name) for name in NAMES})


@given(expressions(), SIZES)
def test_a_dim_means_what_its_text_means(text: str, sizes: dict[str, int]):
    dim = built(text)
    assert value(dim, sizes) == by_python(text, sizes)
    if isinstance(dim, int) and dim < 0:
        with pytest.raises(ShapeError, match="a dim is at least 0"):
            Dim.of(text)
    else:
        assert Dim.of(text) == dim and str(Dim.of(text)) == str(dim)


@given(expressions(), SIZES)
def test_the_text_of_a_dim_parses_to_the_same_dim(text: str, sizes: dict[str, int]):
    dim = built(f"n+m*k*({text})")
    again = Dim.of(str(dim))
    assert again == dim and hash(again) == hash(dim) and str(again) == str(dim)
    assert type(again) is type(dim)
    assert by_python(str(dim), sizes) == value(dim, sizes)


@given(expressions(), expressions(), st.integers(1, 6), SIZES)
def test_arithmetic_of_dims_is_that_of_their_values(
    a: str, b: str, divisor: int, sizes: dict[str, int]
):
    x, y = built(a), built(b)
    assert value(x + y, sizes) == value(x, sizes) + value(y, sizes)
    assert value(x - y, sizes) == value(x, sizes) - value(y, sizes)
    assert value(x * y, sizes) == value(x, sizes) * value(y, sizes)
    assert value(x // divisor, sizes) == value(x, sizes) // divisor
    assert value(-x, sizes) == -value(x, sizes)
    assert x + y == y + x and x * y == y * x
    assert str((x + y) * 2) == str(x * 2 + y * 2)
    assert (x + y) - y == x and x - x == 0


@given(st.lists(st.tuples(st.lists(st.sampled_from(NAMES), max_size=3), st.integers(-5, 5))))
def test_a_polynomial_has_one_form_however_it_is_written(terms: list[tuple[list[str], int]]):
    def total(order: list[tuple[list[str], int]]) -> int | Dim:
        found: int | Dim = 0
        for names, coefficient in order:
            found = found + product([Dim.of(n) for n in names]) * coefficient
        return found

    one, other = total(terms), total([(names[::-1], c) for names, c in reversed(terms)])
    assert one == other and hash(one) == hash(other) and str(one) == str(other)
    assert isinstance(one, int) == (not any(char.isalpha() for char in str(one)))


@every(
    ("text", "shown"),
    [
        ("n", "n"),
        (" n + 1 ", "n+1"),
        ("1+n", "n+1"),
        ("n-1", "n-1"),
        ("-n+2", "-n+2"),
        ("m+n", "m+n"),
        ("n+m", "m+n"),
        ("n+n", "2*n"),
        ("n*2", "2*n"),
        ("n*m*n", "m*n*n"),
        ("(n+1)*(n-1)", "n*n-1"),
        ("n//2", "((n)//2)"),
        ("(4*n+2)//2", "2*n+1"),
        ("2*n//2", "n"),
        ("n-n", "0"),
        ("3*4-2", "10"),
        ("n//1", "n"),
        ("batch_size*3", "3*batch_size"),
    ],
)
def test_normal_form(text: str, shown: str):
    assert str(Dim.of(text)) == shown


@every(
    ("text", "near"),
    [
        ("", "the end of the text"),
        ("n+", "the end of the text"),
        ("(n", "the end of the text"),
        ("n)", r"'\)'"),
        ("n m", "'m'"),
        ("2n", "'n'"),
        ("n//0", ""),
        ("n//m", ""),
        ("n/2", "'/'"),
        ("n**2", r"'\*'"),
        ("n@2", "'@'"),
        ("__import__('os')", r"'\('"),
        ("n.size", r"'\.'"),
        ("*", r"'\*'"),
        ("n--", ""),
    ],
)
def test_malformed_text_is_an_error_that_says_where(text: str, near: str):
    with pytest.raises(GraphError, match=rf"is not a dim.*{near}.*write names, ints"):
        Dim.of(text)


@every("text", ["1.5", "²", "٣*n", "n²", "1_000", "0x10", "é+1"])
def test_odd_characters_are_a_dim_or_an_error_but_nothing_else(text: str):
    try:
        dim = Dim.of(text)
    except GraphirError:
        return
    assert Dim.of(str(dim)) == dim


def test_deeply_nested_text_is_an_error_and_no_crash():
    for text in ("(" * 100_000, "(" * 5000 + "n" + ")" * 5000, "-" * 100_000 + "n"):
        with pytest.raises(GraphirError):
            Dim.of(text)


def test_a_very_long_number_is_an_error_and_no_crash():
    with pytest.raises(GraphirError):
        Dim.of("9" * 10_000)


@every("wrong", [1.5, None, True, np.bool_(True), object(), [1], 1j])
def test_what_is_no_dim_is_an_error(wrong: Any):
    with pytest.raises(ShapeError, match="a dim is an int, a name"):
        Dim.of(wrong)


@every("wrong", [-1, np.int64(-3), "0-1", "-5"])
def test_a_known_size_cannot_be_negative(wrong: Any):
    with pytest.raises(ShapeError, match="a dim is at least 0"):
        shape_of((wrong,))


def test_ints_of_numpy_are_ints():
    assert Dim.of(np.int64(3)) == 3 and type(Dim.of(np.int64(3))) is int
    assert shape_of(np.uint8(2)) == (2,)


@every("divisor", [0, -2])
def test_division_by_what_is_not_positive_is_an_error(divisor: int):
    with pytest.raises(ShapeError, match="positive ints only"):
        _ = Dim.of("n") // divisor


def test_floor_of_a_floor():
    dim = Dim.of("(n+1)//2") // 3
    for n in range(20):
        assert value(dim, {"n": n}) == ((n + 1) // 2) // 3
    assert list(dim.names()) == ["n"]


def test_floor_division_counts_whole_strides():
    # NumPy's own count of x[1:n:3] is the oracle.
    span = (Dim.of("n") - 1 + 2) // 3
    for n in range(1, 20):
        assert value(span, {"n": n}) == len(np.arange(n)[1:n:3])


@every(
    ("dim", "divisor", "result"),
    [
        (12, 4, 3),
        (12, 5, None),
        (0, 3, 0),
        (5, 0, None),
        ("n", "n", 1),
        ("n*m", "n", "m"),
        ("6*n", 2, "3*n"),
        ("6*n", 4, None),
        ("n+m", "n", None),
        ("n*m+2*n", "n", "m+2"),
        ("n*n", "n*n", 1),
        ("n", "m", None),
        ("2*n", "n", 2),
        ("n", 2, None),
        (4, "n", None),
        ("4*n+2*m", 2, "2*n+m"),
    ],
)
def test_quotient_is_known_or_none(dim: Any, divisor: Any, result: Any):
    found = quotient(Dim.of(dim), Dim.of(divisor))
    assert found == (None if result is None else Dim.of(result))


@given(expressions(3), st.sampled_from(["n", "m*n", "3", "2*k"]), SIZES)
def test_a_quotient_times_its_divisor_is_the_dim(a: str, b: str, sizes: dict[str, int]):
    dim, divisor = built(a), built(b)
    if dim != 0:  # 0 / n is not known, since n may be 0
        assert quotient(dim * divisor, divisor) == dim
    if (part := quotient(dim, divisor)) is not None:
        assert part * divisor == dim


def test_evaluate():
    assert evaluate(7, {}) == 7
    assert evaluate(Dim.of("2*n-m"), {"n": 4, "m": 3}) == 5  # type: ignore[arg-type]


def test_evaluate_names_the_unbound_and_the_negative():
    with pytest.raises(ShapeError, match=r"nothing binds 'm', which dim m\+n needs"):
        evaluate(Dim.of("n+m"), {"n": 1})
    with pytest.raises(ShapeError, match="dim n-5 is -2 for n=3"):
        evaluate(Dim.of("n-5"), {"n": 3})


def test_product_of_dims():
    assert product(()) == 1
    assert product((2, 3)) == 6
    assert str(product((2, Dim.of("n"), Dim.of("n+1")))) == "2*n*n+2*n"
    assert product((0, Dim.of("n"))) == 0


@given(expressions())
def test_dims_pickle_and_copy(text: str):
    dim = built(text)
    for same in (pickle.loads(pickle.dumps(dim)), copy.deepcopy(dim), copy.copy(dim)):
        assert same == dim and hash(same) == hash(dim) and str(same) == str(dim)


def test_a_dim_is_no_string_and_no_int():
    assert Dim.of("n") != "n" and Dim.of("n") != 1
    assert Dim.of("n") == Dim.of("n") != Dim.of("m")
    assert repr(Dim.of("n-1")) == "Dim.of('n-1')"


# -- types


def test_types_are_interned():
    one = TensorType("float32", ("n", 3))
    assert one is TensorType(np.float32, ["n", np.int64(3)]) is TensorType("f32", (Dim.of("n"), 3))
    assert TensorType("int8", ("n+1",)) is TensorType("int8", ("1+n",))
    assert one is not TensorType("float32", ("n", 4)) is not TensorType("float64", ("n", 4))
    assert TensorType("int8") is TensorType("int8", ())
    assert TensorType("int8", 3) is TensorType("int8", (3,))
    assert TensorType("int8", "n") is TensorType("int8", ("n",))


@every("shape", [(), (2,), ("n", "n-1"), ("(n+1)//2", 0)])
def test_types_survive_pickling_as_themselves(shape: Any):
    one = TensorType("bfloat16", shape)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one, protocol)) is one
    assert copy.deepcopy(one) is one and copy.copy(one) is one


def test_types_that_nobody_holds_are_let_go():
    from graphir.ops import types

    TensorType("int4", (987654,))
    gc.collect()
    assert not any((987654,) in key for key in types._TYPES)


def test_facts_of_a_type():
    one = TensorType("float32", ("n", 3))
    assert (one.dtype, one.rank, one.size) == (DType.float32, 2, Dim.of("3*n"))
    assert TensorType("int8").size == 1 and TensorType("int8", (0, 3)).size == 0
    assert one.cast(DType.int8) is TensorType("int8", ("n", 3))
    assert one.cast(DType.float32) is one


def test_the_text_of_a_type():
    assert str(TensorType("float32", ("n", 3))) == "float32[n, 3]"
    assert str(TensorType("int8")) == "int8[]"
    assert shape_text((2, Dim.of("n"))) == "[2, n]"
    assert eval(repr(TensorType("int8", (2, 3)))) is TensorType("int8", (2, 3))


@every("shape", [(-1,), (1.5,), ("n+",), (None,), 2.5])
def test_a_wrong_shape_is_an_error(shape: Any):
    with pytest.raises(GraphirError):
        TensorType("float32", shape)


def test_an_unknown_dtype_is_an_error():
    with pytest.raises(GraphError, match="float32"):
        TensorType("flot32", (2,))


@every("wrong", ["n", 3])
def test_a_dim_is_made_by_of(wrong: object):
    with pytest.raises(GraphError, match=r"Dim\.of"):
        Dim(wrong)  # type: ignore[arg-type]


# -- sizes without a value


N = Dim.of("n")
VALUELESS = {
    "n / 2": lambda: N / 2,
    "3 / n": lambda: 3 / N,
    "n % 2": lambda: N % 2,
    "n ** 0.5": lambda: N**0.5,
    "2 ** n": lambda: 2**N,
    "n * 0.5": lambda: N * 0.5,
    "n + 0.5": lambda: 0.5 + N,
    "n - 0.5": lambda: N - 0.5,
    "n / n": lambda: N / N,
    "7 // n": lambda: 7 // N,
    "n < 3": lambda: N < 3,
    "n >= n+1": lambda: N >= N + 1,
    "float(n)": lambda: math.sqrt(N),
    "int(n)": lambda: int(N),
    "index(n)": lambda: range(N),
    "np.sqrt(n)": lambda: np.sqrt(N),
    "np.log2(n)": lambda: np.log2(N),
}


@every("text", VALUELESS)
def test_what_needs_the_value_of_a_named_size_says_the_line_and_what_to_write(text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        VALUELESS[text]()
    error = caught.value
    assert isinstance(error, TypeError)
    assert error.problem.startswith(f"{text}: the size n has a name")
    assert error.location is not None and error.location.file.endswith("test_dims_types.py")
    assert ("write n // 2 for a whole size" in error.fixes) == (text == "n / 2")
    assert error.fixes[-1] == "write the size as a number, as in float32[8]"


def test_sizes_beside_other_objects_leave_the_operator_to_these() -> None:
    class Other:
        def __rtruediv__(self, other: object) -> str:
            return "other"

        __radd__ = __rmul__ = __rsub__ = __rtruediv__

    other = Other()
    assert {N / other, N * other, N + other, N - other} == {"other"}
    assert not hasattr(N, "dtype") and not hasattr(N, "shape")


@every("divide", (lambda x: x * (x.shape[0] / 2), lambda x: np.ones(3) * (x.shape[0] / 2)))
def test_a_trace_says_the_line_that_needs_a_size(divide: Any) -> None:
    with pytest.raises(ShapeError, match=r"test_dims_types.py:\d+:\d+: n / 2: the size n"):
        trace(divide, TensorType("float32", ("n",)))
