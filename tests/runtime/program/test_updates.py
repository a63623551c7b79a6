"""Updates: recorded writes are single ops, and a Program writes in place where nobody can tell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, ops
from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret, record
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.updates import UPDATES, Memory
from graphir.runtime.program.steps import CallStep
from tests.support.evaluator import same
from tests.support.native_runs import TIERS
from tests.support.scaled_thresholds import scaled
from tests.support.strategies import arrays, draws
from tests.support.tables import every, sampled

DTYPES = [dtype for dtype in DType if not dtype.weak]


def plans(program, *inputs):
    """The plans of a program after a call."""
    program(*inputs)
    return program.plans


def in_place(program, *inputs):
    """How many updates of the plan for some inputs write in place, and how many copy."""
    (plan,) = plans(program, *inputs)
    calls = [step for step in plan.bound if isinstance(step, CallStep)]
    marks = [step.in_place for step in calls if step.symbol.op in UPDATES]
    return marks.count(True), marks.count(False)


def agree(graph, *inputs):
    """Assert that both tiers give the values of `interpret` thrice, and that no input changes.

    Regions run in one block and in several.
    """
    before = [x.copy() for x in inputs]
    expected = interpret(graph, *inputs)
    for native, block in product(TIERS, (None, 3)):
        program = Program(graph, native=native, block=block)
        for _ in range(3):
            results = program(*inputs)
            assert type(results) is type(expected)
            pairs = zip(results, expected, strict=True) if isinstance(results, tuple) else ()
            for ours, theirs in pairs or [(results, expected)]:
                assert same(ours, theirs)
                assert not any(np.may_share_memory(ours, x) for x in inputs)
    assert all(same(x, y) for x, y in zip(inputs, before, strict=True))


@st.composite
def updated(draw):
    """A graph that updates, reads and views two arrays in turn, with values for its inputs."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    graph = Graph("updated")
    live = [graph.input(dtype, shape) for _ in range(2)]
    for _ in range(draw(st.integers(1, 6))):
        x, y = (draw(st.sampled_from(live)) for _ in range(2))
        start = tuple(draw(st.integers(0, n)) for n in shape)
        stop = tuple(draw(st.integers(a, n)) for a, n in zip(start, shape, strict=True))
        bounds = start, stop, tuple(draw(st.integers(1, 2)) for _ in shape)
        part = ops.slice(y, *bounds)
        kinds = ["part", "item", "flip", "flat", "negative", "stencil", "choice", "stencil"]
        kind = draw(st.sampled_from(kinds))
        if kind == "item" and 0 not in shape:
            part = ops.item(y, tuple(n - 1 for n in shape))
        elif kind == "flip":
            part = ops.flip(part)
        elif kind == "flat" and 0 not in shape:
            at = graph.constant([draw(st.integers(-x.size, x.size - 1)) for _ in range(3)], "int64")
            live.append(ops.index_update(x, ops.reshape(y, (y.size,))[:1], at))
            continue
        elif kind == "negative" and dtype.bits >= 8 and dtype.family in ("int", "float"):
            part = -part
        elif kind in ("stencil", "choice") and dtype.bits >= 8 and dtype.family in ("int", "float"):
            sizes = [b - a for a, b in zip(start, stop, strict=True)]
            near = tuple(draw(st.integers(0, n - k)) for n, k in zip(shape, sizes, strict=True))
            moved = near, tuple(a + k for a, k in zip(near, sizes, strict=True)), bounds[2]
            other = ops.slice(x, *moved)
            part = ops.where(part > other, other, part) if kind == "choice" else part * 2 - other
        live.append(ops.slice_update(x, part, *bounds))
    graph.output(*draw(st.lists(st.sampled_from(live), min_size=1, max_size=3)))
    return graph, [draw(arrays(dtype, shape)) for _ in range(2)]


@given(updated())
@settings(max_examples=3 * settings().max_examples)
def test_programs_of_updates_have_the_bits_of_interpret(drawn):
    graph, inputs = drawn
    agree(graph, *inputs)


@st.composite
def imperative(draw):
    """A graph of assignments to slices of two arrays, whose old values nothing else reads.

    Each statement computes one or two right sides and then assigns them, so that they may read
    what the assignments overwrite.
    """
    dtype = draw(st.sampled_from([DType.float32, DType.int16, DType.complex64]))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=2)))
    graph = Graph("imperative")
    arrays_now = [graph.input(dtype, shape) for _ in range(2)]
    for _ in range(draw(st.integers(1, 5))):
        steps = tuple(draw(st.integers(1, 2)) for _ in shape)
        sizes = tuple(draw(st.integers(1, n)) for n in shape)

        def place(steps=steps, sizes=sizes):
            last = [n - k for n, k in zip(shape, sizes, strict=True)]
            start = tuple(draw(st.integers(0, k)) for k in last)
            return start, tuple(a + k for a, k in zip(start, sizes, strict=True)), steps

        def term(own, place=place):
            x = draw(st.sampled_from(arrays_now))
            return ops.slice(x, *draw(st.sampled_from([own, place()])))

        writes = []
        for target in draw(st.lists(st.integers(0, 1), min_size=1, max_size=2)):
            own = place()
            x, y, z = (term(own) for _ in range(3))
            kind = draw(st.sampled_from(["sum", "where", "chain"]))
            if kind == "where":
                value = ops.where(ops.equal(x, y), y, z)
            else:
                value = x + y if kind == "sum" else (x - y) * z + x
            writes.append((target, value, own))
        for target, value, own in writes:
            arrays_now[target] = ops.slice_update(arrays_now[target], value, *own)
    graph.output(*arrays_now)
    return graph, [draw(arrays(dtype, shape)) for _ in range(2)]


@draws(20, 250, imperative())
def test_regions_that_write_into_slices_read_old_values(drawn):
    graph, inputs = drawn
    agree(graph, *inputs)


def test_only_values_that_die_are_written_to():
    graph = Graph("kept")
    x = graph.input("float64", (4,))
    first = ops.slice_update(x, 1.0, (0,), (1,), (1,))
    second = ops.slice_update(first, 2.0, (1,), (2,), (1,))
    third = ops.slice_update(second, 3.0, (2,), (3,), (1,))
    graph.output(third, first)
    values = np.arange(4.0)
    # The input and an output keep their values; the second array dies.
    assert in_place(Program(graph), values) == (1, 2)
    agree(graph, values)


def test_reductions_of_rows_are_written_to_where_they_die():
    graph = Graph("rows")
    x = graph.input("float64", (4, 40))
    sums = (x * 2.0).sum(-1)
    first = ops.slice_update(sums, 1.0, (0,), (1,), (1,))
    most = x.max(-1)
    graph.output(first, ops.slice_update(most, 1.0, (0,), (1,), (1,)), most)
    values = np.arange(160.0).reshape(4, 40)
    assert in_place(Program(graph), values) == (1, 1)
    agree(graph, values)


@every("view", [lambda x: x[::-1], lambda x: x.reshape(2, 2)[0], lambda x: x[1:]])
def test_a_view_that_is_read_later_keeps_its_values(view):
    graph = Graph("viewed")
    x = graph.input("float64", (4,))
    own = x + 1.0
    late = view(own)
    new = ops.slice_update(own, 9.0, (0,), (4,), (1,))
    graph.output(late * new.sum(), new)
    assert in_place(Program(graph), np.arange(4.0)) == (0, 1)
    agree(graph, np.arange(4.0))


def test_a_broadcast_value_is_copied_before_the_update():
    graph = Graph("wide")
    x = graph.input("float64", ())
    wide = ops.broadcast_to(x + 1.0, (3,))
    graph.output(ops.slice_update(wide, 5.0, (0,), (1,), (1,)))
    agree(graph, np.array(1.0))


@every("order", ["C", "F"])
def test_an_update_at_places_of_an_array_in_column_order(order):
    graph = Graph("columns")
    x, i = graph.input("float64", (3, 3)), graph.input("int64", (2,))
    both = ops.concat([x, x], axis=0)  # which NumPy lays out as its operands
    graph.output(ops.index_update(both, 2.0, i))
    agree(graph, np.asarray(np.arange(9.0).reshape(3, 3), order=order), np.array([0, -1]))


def shift(a, b):
    a[1:] = a[:-1]
    a[::-1][:2] = a[:2]
    b[...] = a[::-1]
    b[2] = a[0] * b[1]
    a[[0, 2, 0]] = b[:3]
    a[b > 3] = -1
    return a.sum()


def test_a_recorded_write_is_one_op():
    args = np.arange(6.0), np.zeros(6)
    recording = record(shift, *[x.copy() for x in args])
    names = [symbol.op.name for symbol in recording.graph]
    assert names.count("slice_update") == 3 and names.count("index_update") == 1
    assert "scatter" not in names
    agree(recording.graph, *recording.inputs)


def eliminate(a):
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def scale_columns(a):
    a[:, 1] *= 2
    a[2] = a[2]
    a[:, 1:2] = a[:, 1:2]


def test_an_assignment_of_an_array_to_itself_adds_no_update():
    for function, count in ((eliminate, 10), (scale_columns, 1)):
        recording = record(function, np.eye(6) + 1)
        names = [symbol.op.name for symbol in recording.graph]
        assert names.count("slice_update") == count
        agree(recording.graph, *recording.inputs)


def test_row_solvers_replay_without_copies_of_slices():
    recording = record(eliminate, np.eye(6) + 1)
    (plan,) = plans(Program(recording.graph), *recording.inputs)
    calls = [step.symbol.op.name for step in plan.bound if isinstance(step, CallStep)]
    assert {"reshape", "slice_update"}.isdisjoint(calls)
    stores = [step.stores for step in plan.bound if isinstance(step, RegionStep)]
    assert [len(each) for each in stores] == [1] * 10


def tridiagonal(a, b, d):
    for i in range(1, len(d)):
        w = a[i] / b[i - 1]
        b[i] -= w * a[i - 1]
        d[i] -= w * d[i - 1]
    return d


@sampled(3)
@every("dtype", ["float32", "float64", "complex64", "int32", "uint8", "float16"])
@pytest.mark.filterwarnings("ignore")
def test_loops_over_scalars_become_one_function(dtype):
    draw = np.random.default_rng(0)
    args = [(draw.random(40) * 9 + 1).astype(dtype) for _ in range(3)]
    if np.dtype(dtype).kind in "iu":
        args[1] = args[1] * 0 + 1
    recording = record(
        tridiagonal if np.dtype(dtype).kind in "fc" else shift_scalars, *[x.copy() for x in args]
    )
    agree(recording.graph, *recording.inputs)
    program = Program(recording.graph)
    done, copied = in_place(program, *recording.inputs)
    assert copied <= 3 < done  # each array once


def shift_scalars(a, b, d):
    for i in range(1, len(d)):
        d[i] += d[i - 1] * a[i] - b[i]
    return d


def strided(x, y):
    """A loop over strides, with index arithmetic by arrays."""
    for stride in (1, 2, 4):
        own = np.arange(stride, len(x) - stride, 2 * stride)
        near = np.where(own >= 4, own - stride, 0)
        x[own] = x[own] + y[near] * 2 - x[own + stride]
        y[own[::-1]] += x[[2, 0, 2]][0]
    return x[np.arange(3) - 3], y


def test_index_arithmetic_on_constants_is_done_while_planning():
    recording = record(strided, np.arange(20.0), np.arange(20.0) ** 2)
    program = Program(recording.graph)
    names = [symbol.op.name for symbol in program.lowered.symbols]
    assert names.count("range") == 0 < [each.op.name for each in recording.graph].count("range")
    # Gathers and updates at regular places are slices; irregular places, and places that count
    # backwards or from the end, stay.
    assert names.count("slice") == 8
    agree(recording.graph, *recording.inputs)


@every("places", [[0], [1, 3], [3, 1], [-1], [2, 2], [0, 1, 3], [4], [-5], []])
@every("axis", [0, 1, None])
def test_updates_at_constant_places(places, axis):
    graph = Graph("places")
    x = graph.input("float64", (4, 4) if axis is not None else (4,))
    indices = graph.constant(places, "int64")
    part = ops.gather(x, indices, axis=axis or 0)
    graph.output(part, ops.index_update(x, part * 2, indices, axis=axis))
    values = np.arange(16.0)[: x.size].reshape(x.shape)
    if set(places) <= set(range(-4, 4)):
        agree(graph, values)
        return
    with pytest.raises(ExecutionError, match="out of range"):
        Program(graph)(values)


def prefix(a, b):
    for i in range(1, len(a)):
        a[i] += a[i - 1] * b[i]
        b[i] = a[i] - b[0]
    return b.sum()


def test_a_copy_of_an_input_has_the_rows_that_a_step_reads_before_an_update():
    args = np.arange(24.0).reshape(8, 3), np.arange(24.0).reshape(8, 3) ** 2
    recording = record(prefix, *[x.copy() for x in args])
    (plan,) = plans(Program(recording.graph, native="off"), *recording.inputs)
    stores = [store for step in plan.bound for store in getattr(step, "stores", {}).values()]
    kept = [store.copied_rows for store in stores if not store.in_place]
    assert kept == [(slice(0, 1),)] * 2
    agree(recording.graph, *recording.inputs)


def rows_in_part(a):
    a[1:4] = a[:3] * 2  # row 4 on are never written, rows 0 to 2 are read before
    a[2, 1:] = a[5, 1:]
    a[6] = a[4] + a[2]
    return a[3:].copy()


def test_rows_that_are_read_first_or_written_in_part_are_copied():
    recording = record(rows_in_part, np.arange(24.0).reshape(8, 3))
    agree(recording.graph, *recording.inputs)


def test_long_plans_run_as_functions_of_many_steps(monkeypatch):
    monkeypatch.setattr(COST, "STRAIGHT_STEPS", 10)
    args = [np.arange(1.0, 31) * k for k in (1, 2, 3)]
    recording = record(tridiagonal, *[x.copy() for x in args])
    (plan,) = plans(Program(recording.graph, native="off"), *recording.inputs)
    assert len(plan.bound) > 10 * len(plan.steps) - 10 > 10
    agree(recording.graph, *recording.inputs)


def sweep(a, b):
    for i in range(1, len(a) - 1):
        a[i, 1:-1] = 0.5 * (b[i, :-2] + b[i, 2:]) - a[i - 1, 1:-1]
        b[:, i] -= a[:, i - 1] * 2


def test_machine_code_reads_views_and_serves_all_iterations_of_a_loop():
    args = np.arange(140.0).reshape(10, 14), np.ones((10, 14))
    recording = record(sweep, *[x.copy() for x in args])
    program = Program(recording.graph, native="now")
    if not program.native:
        pytest.skip("llvmlite is not installed")
    (plan,) = plans(program, *recording.inputs)
    regions = [step for step in plan.bound if isinstance(step, RegionStep)]
    assert len(regions) == 16 and plan.tier_up.entries.keys() == set(regions)
    kernels = {id(each) for step in regions for each in step.native.compiled_kernels.values()}
    assert len(kernels) <= 4
    agree(recording.graph, *recording.inputs)
    transposed = [np.asfortranarray(x) for x in recording.inputs]  # other strides than planned
    for ours, theirs in zip(
        program(*transposed), interpret(recording.graph, *transposed), strict=True
    ):
        assert same(ours, theirs)


def test_explain_tells_how_a_call_runs_updates():
    args = np.arange(24.0).reshape(8, 3), np.arange(24.0).reshape(8, 3) ** 2
    recording = record(prefix, *args)
    program = Program(recording.graph, native="off")
    told = program.explain(*recording.inputs).splitlines()[-1]
    assert "regions write 14 results into arrays, calls 0; 12 in place, 2 in a copy" in told
    assert "a call runs" not in program.explain()


WRITES = {
    1: ("u[::2] = 0", "u[0] = 3", "u[1:-1] = u[2:]"),
    2: ("u[:, :-1] = 3", "u[0] = 3", "u[1:-1] = u[2:] + u[:-2]"),
}
READS = (
    "np.where(u > 1, u, u.dtype.type(1)).astype(other)",
    "np.where(u > 1, u, u.dtype.type(1)).astype(other).sum()",
    "np.where(u > 1, u.astype(other), u.astype(other) + 1) * 2",
    "np.count_nonzero(np.where(u > 1, u, u.dtype.type(0)))",
    "(np.where(u > 1, u, u.dtype.type(2)), (u > 1).astype(other))",
    "np.where(u > 1, u.real, u.dtype.type(1)).astype(other)[..., 1:]",
    "(u > 1) & np.where(u > 0, u, u.dtype.type(1)).astype(bool)",
)
PAIRS = (("f8", "i8"), ("i8", "f8"), ("f4", "i4"), ("u1", "i1"), ("i1", "?"), ("u4", "f4"))


@pytest.mark.filterwarnings("ignore")
@sampled(3)
@every("read", READS)
@every(("own", "other"), PAIRS)
def test_the_memory_of_an_operand_that_dies_has_the_dtype_of_the_result(
    own: str, other: str, read: str
) -> None:
    """The bits of a value are read in another dtype, by a selection through masks."""
    rng = np.random.default_rng(0)
    shape = ((40,), (5, 9))[len(read) % 2]
    x = rng.normal(size=shape) * 20
    x = (np.abs(x) if own[0] == "u" else x).astype(own)
    for write in WRITES[len(shape)]:
        scope = {"np": np, "other": np.dtype(other)}
        source = f"def f(a):\n    u = a.copy()\n    {write}\n    return {read}\n"
        exec(source, scope)
        graph = trace(scope["f"], x, rules="numpy").graph
        expected = interpret(graph, x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for sizes, native in product((1, 512), ("off", "now")):
            with scaled(sizes):
                program = Program(graph, native=native, threads=1)
                outs = tuple([np.empty_like(each) for each in expected])
                given = outs if len(outs) > 1 else outs[0]
                for results in (program(x), program(x), program(x, out=given)):
                    results = results if isinstance(results, tuple) else (results,)
                    assert all(map(same, results, expected)), (source, own, sizes, native)


@pytest.mark.parametrize("native", ["off", "now"])
def test_a_plan_whose_results_have_another_dtype_or_shape_is_refused(native, monkeypatch) -> None:
    """As a mistake of the planner gives one: operands that die serve results of any dtype."""
    monkeypatch.setattr(Memory, "has_storage_of", lambda *_: True)
    x = np.linspace(-3, 3, 40)

    def f(a):
        u = a.copy()
        u[::2] = 0
        return np.where(u > 1, u, 1.0).astype(np.int64)

    graph = trace(f, x, rules="numpy").graph
    for threads, out in product((1, 2), (None, np.empty(40, np.int64))):
        with scaled(512):
            program = Program(graph, native=native, threads=threads)
            for _ in range(3):
                with pytest.raises(ExecutionError, match=r"must give an output of int64 and shape"):
                    program(x, out=out)
                assert program.machine_code is None and program.attempt(x) is None
    monkeypatch.undo()
    program = Program(graph, native=native)
    assert same(program(x), f(x))
