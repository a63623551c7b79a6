"""NumPy's own functions as calls of a graph: layouts of operands and results, errors, views."""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, GraphirError
from graphir.numpy_api.arrays.library_calls import handles_errors
from graphir.numpy_api.trace import trace
from graphir.runtime import audit, interpret, jit, targets
from tests.support.tables import every, sampled

RANDOM = np.random.default_rng(3)
MATRIX = RANDOM.normal(size=(6, 6))
LAYOUTS: dict[str, Any] = {
    "C": MATRIX.copy(),
    "F": np.asfortranarray(MATRIX),
    "reversed": MATRIX[::-1, ::-1],
    "strided": np.repeat(MATRIX, 2, axis=1)[:, ::2],
    "broadcast": np.broadcast_to(MATRIX[0], (6, 6)),
    "unaligned": np.ndarray((6, 6), np.float64, bytearray(b"0" + MATRIX.tobytes()), 1),
}
FUNCTIONS = {
    "pinv": np.linalg.pinv,
    "svd": np.linalg.svd,
    "qr": np.linalg.qr,
    "fft2": np.fft.fft2,
    "rfft": lambda x: np.fft.rfft(x, axis=0),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "modf": np.modf,
    "frexp": np.frexp,
    "order": lambda x: np.add(x, 1, order="F"),
    "dtype": lambda x: np.hypot(x, 2, dtype="f4", casting="same_kind"),
    "weibull": lambda x: np.percentile(x, 30, axis=0, method="weibull"),
    "searchsorted": lambda x: np.searchsorted(np.sort(x[0]), [0.5, 1.5]),
    "norm": lambda x: np.linalg.norm(x, 2),
    "rank": np.linalg.matrix_rank,
    "bits": lambda x: (x * 1).view("u8") ^ 1,
    "wider": lambda x: np.ascontiguousarray(x).view("u2")[:, ::3],
    "out": lambda x: np.linalg.multi_dot([x, x, x], out=np.zeros((6, 6))),
    "write": lambda x: np.modf(x, out=(np.zeros((6, 6), order="F"), None)),
}


def _facts(value: Any) -> Any:
    """The types, dtypes, shapes, strides and bits of results."""
    if isinstance(value, (tuple, list)):
        return type(value), [_facts(item) for item in value]
    array = np.asarray(value)
    bits = np.where(array == 0, 0, array).tobytes() if array.dtype.kind == "f" else array.tobytes()
    return type(value), array.dtype, array.shape, array.strides, bits


@sampled(2)
@every("name", FUNCTIONS)
def test_calls_have_numpys_types_strides_and_bits_in_all_layouts(name: str) -> None:
    function = FUNCTIONS[name]
    jitted = jit(lambda x: function(x))  # traced as the user's code
    for layout, x in LAYOUTS.items():
        for _ in range(2):
            assert _facts(jitted(x)) == _facts(function(x)), layout


def test_results_that_are_views_have_numpys_strides() -> None:
    for function in (
        lambda x: (np.hamming(4)[::2], x + 1),
        lambda x: np.argsort(x, axis=1)[..., 0].copy(),
        lambda x: (x + 1).reshape(36, 1)[::-1].copy(),
        lambda x: (x * 2)[:, ::2].ravel().reshape(3, 6),
    ):
        assert _facts(jit(function)(MATRIX)) == _facts(function(MATRIX))


def test_a_program_of_an_equal_graph_keeps_its_order_of_axes() -> None:
    def function(x: Any) -> Any:
        np.add(x, 2, out=x)
        return np.array(x, order="F")

    jitted = jit(function)
    for _ in range(3):
        assert _facts(jitted(MATRIX.copy())) == _facts(function(MATRIX.copy()))


def _inverse(x: Any) -> Any:
    return np.linalg.inv(x) + 1


def test_an_error_of_values_has_numpys_class_in_every_run() -> None:
    jitted = jit(_inverse)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
            jitted(np.zeros((3, 3)))
        assert isinstance(caught.value, ExecutionError)
        assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)
    assert _facts(jitted(MATRIX)) == _facts(_inverse(MATRIX))


def _unused(x: Any) -> Any:
    np.linalg.cholesky(x)
    return x + 1


def _under_errstate(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.linalg.inv(x)


def _in_a_generator(x: Any) -> Any:
    return sum(np.linalg.det(y) for y in (x, 2 * x))


def test_errors_leave_code_without_handlers() -> None:
    for function in (_unused, _under_errstate):
        with pytest.raises(np.linalg.LinAlgError):
            jit(function)(np.zeros((3, 3)))
    for function in (_under_errstate, _in_a_generator):
        assert np.array_equal(jit(function)(MATRIX), function(MATRIX))


def _except(x: Any) -> Any:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return x


def _finally(x: Any) -> Any:
    try:
        return _inverse(x)
    finally:
        x[0] = 1


def _suppress(x: Any) -> Any:
    with contextlib.suppress(ValueError):
        x = np.linalg.inv(x)
    return x


def _two_managers(x: Any) -> Any:
    with np.errstate(all="ignore"), contextlib.suppress(ValueError):
        x = np.linalg.inv(x)
    return x


@jit
def _jitted_inverse(x: Any) -> Any:
    return np.linalg.inv(x)


def _around_jit(x: Any) -> Any:
    try:
        return _jitted_inverse(x) + 1
    except ValueError:
        return x


def _around_errstate(x: Any) -> Any:
    try:
        return _under_errstate(x) + sum([_inverse(y) for y in (x, x)])
    except (KeyError, ValueError):
        return x


def _after_write(x: Any) -> Any:
    x[0] = 1
    return np.linalg.inv(x)


HANDLING = [
    _except,
    _finally,
    _suppress,
    _two_managers,
    _around_jit,
    _around_errstate,
    _after_write,
]


@every("function", HANDLING)
def test_errors_that_the_program_handles_are_followed_by_jit_and_refused_by_trace(
    function: Any,
) -> None:
    jitted = jit(function)
    for x in (MATRIX, np.zeros((6, 6)), MATRIX):
        plain, traced = x.copy(), x.copy()
        assert _outcome(jitted, traced) == _outcome(function, plain)
        assert np.array_equal(traced, plain)
    with pytest.raises(GraphirError, match=r"test_jit.*numpy\.linalg\.inv"):
        trace(function, ("float64", (6, 6)), rules="numpy")


def _outcome(function: Any, x: Any) -> Any:
    try:
        return _facts(function(x))
    except np.linalg.LinAlgError as error:
        return str(error)


def _fitted(x: Any) -> Any:
    return np.linalg.lstsq(x[:, :2], x[0], rcond=None)


def _not_square(x: Any) -> Any:
    try:
        return np.linalg.inv(x[:, :2])
    except np.linalg.LinAlgError:
        return x[:, :2]


def test_results_and_errors_of_other_shapes_are_numpys() -> None:
    for function in (_fitted, _not_square):
        jitted = jit(function)
        for x in (MATRIX, np.zeros((6, 6)), MATRIX):
            assert _facts(jitted(x)) == _facts(function(x))


def _counting(state: dict[str, int]) -> Any:
    def function(x: Any) -> Any:
        state["calls"] = state["calls"] + 1
        try:
            return np.linalg.inv(x) * state["calls"]
        except np.linalg.LinAlgError:
            return x

    return function


def test_a_function_that_cannot_run_twice_may_handle_no_error() -> None:
    with pytest.raises(GraphirError, match=r"changes state that it reads.* outside of"):
        jit(_counting({"calls": 0}))(MATRIX)


def test_instructions_outside_of_handlers_are_told_apart() -> None:
    code = _except.__code__
    offsets = range(0, len(code.co_code), 2)
    assert {handles_errors(code, offset) for offset in offsets} == {False, True}


def _bits(x: Any) -> Any:
    copy = x.copy()
    bits = copy.view("u8")
    bits[0] |= 1 << 63
    copy[1] = bits[2]
    bits += 1
    return copy, bits


def _sign_bits(x: Any) -> Any:
    x.view("i4")[:, ::2] = 0
    return x + 0


def test_views_of_bytes_share_memory() -> None:
    for function in (_bits, _sign_bits):
        plain, traced = MATRIX.copy(), MATRIX.copy()
        assert _facts(jit(function)(traced)) == _facts(function(plain))
        assert np.array_equal(traced, plain)
    x = MATRIX.copy()
    jit(lambda x: x.view("i8"))(x)[0] = 0
    assert not x[0].any()


def test_what_depends_on_values_or_users_is_refused() -> None:
    for function in (
        lambda x: np.linalg.eig(x),
        lambda x: np.roots(x[0]),
        lambda x: np.apply_along_axis(lambda row: row[::-1] * row.sum(), 0, x.astype(object)),
        lambda x: np.histogram(x, bins="auto"),
        lambda x: np.shares_memory(x, x[0]),
        lambda x: np.modf(x, where=x > 0),
    ):
        with pytest.raises(GraphirError):
            jit(function)(MATRIX)


def test_a_graph_with_a_call_runs_is_audited_and_refused_by_targets() -> None:
    graph = trace(_inverse, ("float64", (6, 6)), rules="numpy").graph
    assert 'callee="numpy.linalg.inv"' in str(graph)
    assert np.array_equal(interpret(graph, MATRIX), _inverse(MATRIX))
    assert audit(graph, MATRIX).outputs[0].differing == 0
    with pytest.raises(targets.TargetError, match=r"numpy\.linalg\.inv"):
        targets.python(graph)
    with pytest.raises(ExecutionError, match="make the graph from its source again"):
        interpret(pickle.loads(pickle.dumps(graph)), MATRIX)
