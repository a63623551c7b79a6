"""The audit of graphs whose answers are known by hand."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import ExecutionError, Graph, Symbol, TensorType, ops
from graphir.passes import CastReport, lower
from graphir.runtime import audit, interpret
from tests.support.tables import every

BF16 = ml_dtypes.bfloat16


def measured(report: CastReport) -> list[Any]:
    """What each cast did, in the order of the graph."""
    return [row.measured for row in sorted(report, key=lambda row: row.symbol.index)]


def shares(report: CastReport, output: int = 0) -> list[float]:
    """The share of each cast in an output's error, in the order of the graph."""
    return [share for _, share in sorted((report.outputs[output].shares or {}).items())]


def unary(make: Any, dtype: Any, **settings: Any) -> Graph:
    graph = Graph("unary", **settings)
    made = make(graph.input(dtype, ("n",), name="x"))
    graph.output(*made) if isinstance(made, tuple) else graph.output(made)
    return graph


# -- what casts do


def test_an_integer_that_bfloat16_lacks() -> None:
    graph = Graph("question")
    x, y = graph.input("int32", "n"), graph.input("bfloat16", "n")
    graph.output(x + y)
    report = audit(graph, np.array([257, 3], np.int32), np.zeros(2, BF16))
    (found,) = measured(report)
    assert (found.elements, found.changed, found.worst) == (2, 1, (257, 256.0))
    assert (found.relative, found.ulps) == (1 / 257, 0.5)
    (output,) = report.outputs
    assert (output.dtype, output.elements, output.differing, output.broken) == ("bfloat16", 2, 1, 0)
    assert (output.largest, output.rms, output.relative) == (1.0, 0.5**0.5, 1 / 257)
    assert shares(report) == [1.0]
    assert report.results[0].tolist() == [256.0, 3.0]


def test_overflow_breaks_an_output_and_underflow_does_not() -> None:
    graph = unary(lambda x: x.cast("float16").cast("float32") * 2, "float32")
    report = audit(graph, np.array([1e5, 1e-9, 1.0, np.inf], np.float32))
    first, second = measured(report)
    assert (first.changed, first.overflowed, first.underflowed, first.nan_made) == (2, 1, 1, 0)
    assert (first.relative, first.worst[1]) == (1.0, 0.0)
    assert (second.elements, second.changed) == (4, 0)
    (output,) = report.outputs
    assert (output.differing, output.broken, output.relative) == (2, 1, 1.0)
    assert shares(report) == [pytest.approx(1), 0.0]


def test_what_is_infinite_already_is_not_broken_by_the_next_cast() -> None:
    graph = unary(lambda x: x.cast("float16").cast("float32").cast("bfloat16"), "float32")
    report = audit(graph, np.array([1e5, 1 + 2**-10], np.float32))
    assert [found.changed for found in measured(report)] == [1, 0, 1]
    assert shares(report) == [1.0, 0.0, 0.0]


def test_integers_that_wrap() -> None:
    report = audit(unary(lambda x: x.cast("int8"), "int32"), np.array([300, -1], np.int32))
    assert (measured(report)[0].overflowed, measured(report)[0].worst) == (1, (300, 44))
    assert (report.outputs[0].largest, shares(report)) == (256.0, [1.0])
    # Where an op wraps there is an error, and the op has it.
    report = audit(unary(lambda x: x + x, "int8"), np.array([100], np.int8))
    assert (report.outputs[0].largest, shares(report)) == (256.0, [1.0])
    (row,) = report.losses
    assert (row.kind, row.measured.operands, row.measured.worst) == ("wrap", (100, 100), (200, -56))
    report = audit(unary(lambda x: x * x, "int64"), np.array([2**33, -(2**40)]))
    assert report.outputs[0].largest == 2.0**80
    assert report.outputs[0].differing == 2


def test_what_the_user_truncates_is_no_error() -> None:
    graph = unary(lambda x: (x.cast("int32") + 1, x.cast("bool")), "float32")
    report = audit(graph, np.array([2.7, -2.7, 0.3], np.float32))
    assert [found.changed for found in measured(report)] == [3, 3]
    assert [output.differing for output in report.outputs] == [0, 0]
    assert shares(report) == shares(report, 1) == [0.0, 0.0]
    # NaN is no integer.
    report = audit(graph, np.array([np.nan, 0.3], np.float32))
    assert [output.differing for output in report.outputs] == [1, 0]
    # What does not fit is one.
    report = audit(graph, np.array([2.5**40, 2.5], np.float32))
    assert report.outputs[0].largest == float(np.float32(2.5**40)) - (2**31 - 1) + 2**32
    assert shares(report) == [pytest.approx(1), pytest.approx(0, abs=1e-6), 0.0]
    assert [row.kind for row in report.losses] == ["wrap"]  # of the greatest int32 + 1


# -- whose error it is


def test_of_a_chain_the_cast_that_rounds() -> None:
    def make(x: Symbol) -> Symbol:
        return x.cast("float32").cast("float16").cast("float64") * 3.0

    values = 1 + np.arange(64) * 2.0**-14
    report = audit(unary(make, "float64"), values)
    assert [found.changed for found in measured(report)] == [0, 60, 0]
    assert shares(report) == [0.0, 1.0, 0.0]


def test_shares_of_a_linear_graph_sum_to_one() -> None:
    names = ("float16", "bfloat16", "float8_e4m3fn", "float32")

    def make(x: Symbol) -> Symbol:
        terms = [x.cast(name).cast("float64") * (i + 1.0) for i, name in enumerate(names)]
        return terms[0] + terms[1] + terms[2] + terms[3]

    values = np.random.default_rng(0).standard_normal(10**5)
    found = shares(audit(unary(make, "float64"), values))
    assert sum(found) == pytest.approx(1, abs=1e-12)
    lossy = [share for share in found if share]
    assert len(lossy) == 4
    # Errors of casts to formats of p bits go as 2**-p, their squares as 2**-2p.
    assert lossy[2] > 0.9 > 0.1 > lossy[1] > max(abs(lossy[0]), abs(lossy[3]))


def test_a_share_is_what_one_loss_makes_of_the_exact_result() -> None:
    graph = Graph("shares")
    x, y = graph.input("float64", "n"), graph.input("float64", "n")
    short, shorter = (
        one.cast(name).cast("float64") for one, name in ((x, "float16"), (y, "bfloat16"))
    )
    graph.output(ops.exp(short) * shorter + short)
    random = np.random.default_rng(1)
    # Of float32, since to bfloat16 ml_dtypes rounds float64 twice.
    a, b = random.standard_normal((2, 10**5)).astype(np.float32).astype(np.float64)

    def result(x: Any, y: Any) -> Any:
        return np.exp(x) * y + x

    rounded, rougher = a.astype(np.float16).astype(float), b.astype(BF16).astype(float)
    exact = result(a, b)
    error = result(rounded, rougher) - exact
    want = [
        error @ (one - exact) / (error @ error) for one in (result(rounded, b), result(a, rougher))
    ]
    report = audit(graph, a, b)
    assert sorted(share for share in shares(report) if share) == pytest.approx(sorted(want))
    assert sum(want) == pytest.approx(1, abs=0.01)


def test_errors_that_cancel() -> None:
    values = np.array([1 + 2**-12, 3 + 2**-9])

    def weighed(a: float, b: float) -> CastReport:
        def make(x: Symbol) -> Symbol:
            first, second = (x.cast("float16").cast("float64") for _ in range(2))
            return first * a + second * b

        return audit(unary(make, "float64"), values)

    report = weighed(1.0, -1.0)
    assert report.outputs[0].differing == 0 and shares(report) == [0.0] * 4
    assert sorted(shares(weighed(2.0, -1.0))) == [-1.0, 0.0, 0.0, 2.0]


def test_another_branch_and_another_place_are_errors_by_count() -> None:
    def make(x: Symbol) -> tuple[Symbol, ...]:
        short = x.cast("bfloat16")
        return short > 1.0, short.argmax(), ops.where(short > 1.0, short, -short)

    values = np.array([1 + 2**-10, 0.5, 2 + 2**-9, 2 + 2**-8], np.float32)
    report = audit(unary(make, "float32"), values)
    assert [output.differing for output in report.outputs] == [1, 1, 3]
    assert shares(report) == shares(report, 1) == shares(report, 2) == [1.0]
    assert report.outputs[1].largest == 1.0
    assert report.outputs[2].largest == 2 + 2**-10


def test_complex_numbers() -> None:
    graph = unary(lambda x: x.cast("complex64") * (1 + 1j), "complex128", rules="numpy")
    z = complex(1 + 2**-30, 2.0)
    report = audit(graph, np.array([z]))
    worst = measured(report)[0]
    assert (worst.worst, worst.ulps) == ((z, 1 + 2j), 2**-7)
    assert report.outputs[0].largest == pytest.approx(2**-30 * 2**0.5)
    assert shares(report) == [pytest.approx(1), 0.0]


def test_the_size_and_the_sign_of_a_complex_number_round() -> None:
    z = np.array([4 + 4.5j, 3 + 7.25j, 3 + 4j], np.complex64)
    for function in (np.abs, np.sign):
        (output,) = audit(lambda z, f=function: f(z), z).outputs
        exact = function(z.astype(np.complex128))
        assert output.differing == np.count_nonzero(function(z) != exact) > 0


def test_a_scalar_whose_imaginary_part_is_zero_stays_a_scalar() -> None:
    def program(z):
        values, result = np.zeros(2), np.zeros(2, np.float32)
        values[:] = z
        for k in range(2):
            result[k] = values[k]
        return np.clip(result, 0.1, 2)

    with pytest.warns(np.exceptions.ComplexWarning):
        (output,) = audit(program, np.array([5 + 0j, 1 + 1j])).outputs
    assert output.differing == 1


def test_a_number_that_its_dtype_rounds() -> None:
    graph = unary(lambda x: x * 0.1, "bfloat16")
    report = audit(graph, np.array([1, 2], BF16))
    (row,) = report
    rounded = float(BF16(0.1))
    assert (row.kind, row.measured.worst) == ("literal", (0.1, rounded))
    assert report.outputs[0].largest == pytest.approx(2 * (rounded - 0.1))
    assert row.shares == pytest.approx((1.0,))


def test_weak_numbers() -> None:
    graph = unary(lambda x: x * 0.1 + 3, "float16", rules="jax")
    report = audit(graph, np.array([1.0, 100.0], np.float16))
    assert [found.changed for found in measured(report)] == [1, 0]
    assert 0 < shares(report)[0] < 2


# -- what wide arithmetic is


@every("dtype", ["bfloat16", "float16", "tensor_float32", "float32"])
def test_the_error_is_that_beside_numpy_in_float64(dtype: str) -> None:
    graph = Graph("attention")
    q, k, v = (graph.input("float32", ("n", 8), name=name) for name in "qkv")
    short = [x.cast(dtype) for x in (q, k, v)]
    scores = ops.softmax(short[0] @ short[1].mT * 0.25, axis=-1)
    graph.output(scores @ short[2])
    random = np.random.default_rng(0)
    given = [random.standard_normal((40, 8)).astype(np.float32) for _ in range(3)]
    report = audit(graph, *given)

    x, y, z = (array.astype(np.float64) for array in given)
    powers = np.exp(x @ y.T * 0.25)
    want = powers / powers.sum(axis=-1, keepdims=True) @ z
    error = abs(report.results[0].astype(np.float64) - want)
    (output,) = report.outputs
    assert output.largest == pytest.approx(error.max(), rel=1e-6, abs=1e-14)
    assert output.rms == pytest.approx(np.sqrt((error**2).mean()), rel=1e-6)
    assert output.relative == pytest.approx((error / abs(want)).max(), rel=1e-6)


def test_bits_are_those_of_the_dtype() -> None:
    graph = unary(lambda x: (~x, x << 6, (x & 15) >> 1), "uint8")
    report = audit(graph, np.arange(256).astype(np.uint8))
    assert [output.differing for output in report.outputs] == [0, 0, 0]
    graph = unary(lambda x: ops.nextafter(x, x + 1), "float32")
    assert audit(graph, np.ones(3, np.float32)).outputs[0].differing == 0


def test_an_index_that_is_in_range_because_it_wrapped() -> None:
    graph = Graph("index")
    x, at = graph.input("float32", (20,)), graph.input("uint8", "n")
    graph.output(ops.gather(x, at + 10, axis=0), at + 10)
    report = audit(graph, np.arange(20, dtype=np.float32), np.array([250, 3], np.uint8))
    assert report.results[0].tolist() == [4.0, 13.0]
    # In wide arithmetic the index is out of range, so that nobody knows what would be there.
    assert [output.differing for output in report.outputs] == [None, 1]
    assert [(step.what, step.hides) for step in report.unseen] == [("gather", True)]


def test_large_integers() -> None:
    graph = unary(lambda x: (x + 0, x.cast("int64"), x.cast("float64")), "uint64")
    values = np.array([2**63 + 2**60, 2**64 - 2**20, 5], np.uint64)
    report = audit(graph, values)
    assert [output.differing for output in report.outputs] == [0, 2, 0]
    assert report.outputs[1].largest == 2.0**64
    graph = unary(lambda x: x - 1, "int64")
    assert audit(graph, np.array([2**62 + 1, -(2**63) + 1])).outputs[0].differing == 0


def test_integer_division_by_zero_is_zero() -> None:
    graph = unary(lambda x: (7 // x, 7 % x), "int32")
    report = audit(graph, np.array([0, 2], np.int32))
    assert [output.differing for output in report.outputs] == [0, 0]


# -- graphs of every form


def test_outputs_of_every_form() -> None:
    graph = Graph("forms", in_types=[TensorType("float32", ("n", "2*n")), TensorType("int16")])
    x, k = graph.inputs
    graph.output(x, x.cast("float16"), k, graph.constant([1.5, 2.5], "float16"), x, (x + k).sum())
    for n in (0, 1, 3):
        given = np.full((n, 2 * n), 1 / 3, np.float32), np.array(7, np.int16)
        report = audit(graph, *given)
        for got, want in zip(report.results, interpret(graph, *given), strict=True):
            assert got.tobytes() == want.tobytes() and got.shape == want.shape
            assert not any(np.shares_memory(got, array) for array in given)
        assert [output.elements for output in report.outputs] == [
            2 * n * n,
            2 * n * n,
            1,
            2,
            2 * n * n,
            1,
        ]
        assert report.outputs[1].differing == 2 * n * n


def test_a_graph_without_casts() -> None:
    report = audit(unary(lambda x: x + x, "float64"), np.ones(3))
    assert len(report) == 0
    assert (report.outputs[0].differing, report.outputs[0].shares) == (0, {})


def test_a_lowered_graph_is_taken_as_it_is() -> None:
    graph = lower(unary(lambda x: ops.exp(x) * x, "bfloat16"))
    report = audit(graph, np.linspace(0, 1, 50).astype(BF16))
    assert report.explicit is graph
    kinds = {row.kind for row in report if row.measured and row.measured.changed}
    assert kinds == {"legalization"}
    assert sum(shares(report)) == pytest.approx(1, abs=0.1)


def test_inputs_are_refused_as_interpret_refuses_them() -> None:
    graph = unary(lambda x: x.cast("float16"), "float32")
    for given, named in [
        ((), {}),
        ((np.ones(3),), {}),
        ((np.ones((3, 3), np.float32),), {}),
        ((), {"y": np.ones(3, np.float32)}),
    ]:
        with pytest.raises(ExecutionError) as one:
            interpret(graph, *given, **named)
        with pytest.raises(ExecutionError) as other:
            audit(graph, *given, **named)
        assert str(one.value) == str(other.value)
    with pytest.raises(ExecutionError, match="no outputs"):
        audit(Graph("none"))
    with pytest.raises(ExecutionError, match="a Graph is needed"):
        audit("graph")  # pyright: ignore
    assert audit(graph, x=np.ones(3, np.float32)).outputs[0].differing == 0


def test_an_op_that_cannot_compute_names_its_line() -> None:
    graph = unary(lambda x: x**x, "int32")
    with pytest.raises(ExecutionError, match=r"test_audit\.py"):
        audit(graph, np.array([-1], np.int32))


# -- how it runs


def casts_and_casts() -> Graph:
    def make(x: Symbol) -> Any:
        y = x.cast("float16").cast("float32") * x
        return y.cast("bfloat16") + 1, (y - x.cast("bfloat16").cast("float32")).sum()

    return unary(make, "float32")


def test_without_blame_there_are_no_shares() -> None:
    report = audit(casts_and_casts(), np.linspace(0, 9, 100).astype(np.float32), blame=False)
    assert [output.shares for output in report.outputs] == [None, None]
    assert report.outputs[0].differing > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("settings", [{"blame": False}, {"memory": 0}], ids=str)
def test_memory_is_that_of_values_alone(settings: Any) -> None:
    n = 10**6
    graph = unary(chain, "float32")
    audit(graph, np.ones(9, np.float32))
    tracemalloc.start()
    audit(graph, np.linspace(-9, 9, n, dtype=np.float32), **settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * n  # ten float64 an element, of a chain of eighteen values


def test_what_is_kept_is_kept_where_it_fits() -> None:
    graph, n = unary(chain, "float32"), 6 * 10**4  # too few elements for blocks
    peaks: list[int] = []
    for memory in (1 << 30, 0):
        tracemalloc.start()
        audit(graph, np.linspace(-9, 9, n, dtype=np.float32), memory=memory)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] > 1.5 * peaks[1]


def chain(x: Symbol) -> Symbol:
    for _ in range(6):
        x = x.cast("bfloat16").cast("float32") * 1.5
    return x
