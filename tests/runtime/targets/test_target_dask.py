"""The Dask target: over odd chunks, what `interpret` gives."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import ROOT

pytest.importorskip("dask.array", reason="Dask is not installed, so nothing is run by it")

import dask
import dask.array as da
from dask.callbacks import Callback
from dask.diagnostics import ProgressBar
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, ops, trace
from graphir.runtime import Program as Compiled
from graphir.runtime import interpret, targets
from graphir.runtime.targets import TargetError
from graphir.runtime.targets.dask_.block_steps import LABELS, MOVES
from tests.runtime.targets.chunks import INEXACT, agree, compare, computed, cut
from tests.support.control_flow import flow_programs
from tests.support.drawing import Program, programs
from tests.support.evaluator import same
from tests.support.strategies import STRONG, arrays, pool
from tests.support.tables import every

EXACT = tuple(op for name, op in ops.CATALOGUE.items() if name not in (*INEXACT, "searchsorted"))


@pytest.mark.parametrize("name", sorted(op.name for op in EXACT))
@given(st.data())
@settings(max_examples=10)
def test_programs_of_every_op_give_the_same_bits(name: str, data: st.DataObject) -> None:
    agree(data.draw(programs(op=ops.CATALOGUE[name], steps=3, catalogue=EXACT)), data)


@given(st.data())
@settings(max_examples=20)
def test_control_flow_gives_the_same_bits(data: st.DataObject) -> None:
    agree(data.draw(flow_programs(catalogue=EXACT)), data)


@pytest.mark.parametrize("name", ["range", "eye", "full", "constant", "broadcast_to", "pad"])
@given(st.data())
@settings(max_examples=15)
def test_what_is_made_in_several_blocks_is_the_same(name: str, data: st.DataObject) -> None:
    program = data.draw(programs(op=ops.CATALOGUE[name], steps=1, catalogue=EXACT))
    with dask.config.set({"array.chunk-size": "8B"}):
        agree(program, data)


@every("dtype", ["int8", "uint64", "float32", "bfloat16", "complex64"])
def test_ranges_and_diagonals_over_several_blocks(dtype: str) -> None:
    graph = Graph("made")
    x = graph.input("int8", ("n",))
    (n,) = x.shape
    with graph:
        made = [ops.range(dtype, start, step, n + 0) for start, step in ((0, 1), (100, -3))]
        graph.output(*made, ops.eye(dtype, n, n + 2, -1), ops.full(dtype, 3, (n, 2)))
    given = np.zeros(30, np.int8)
    with dask.config.set({"array.chunk-size": "48B"}):
        found = targets.dask(graph)(given)
        assert all(max(one.numblocks) > 1 for one in found)
        compare(Program(graph, (given,)), [given])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bfloat16", "float32", "float64"])
@given(st.data())
@settings(max_examples=15)
def test_places_in_a_sorted_vector_are_the_same(dtype: str, data: st.DataObject) -> None:
    """In one that is not sorted NumPy's search depends on what it searched for before."""
    graph, (n, k, m) = Graph("searched"), data.draw(st.tuples(*[st.integers(0, 6)] * 3))
    x, values = graph.input(dtype, ("n",)), graph.input(dtype, ("k", "m"))
    graph.output(ops.searchsorted(x, values, side=data.draw(st.sampled_from(("left", "right")))))
    vector = data.draw(arrays(DType(dtype), (n,)))
    vector = vector[np.argsort(vector.astype(np.float64), kind="stable")]
    agree(Program(graph, (vector, data.draw(arrays(DType(dtype), (k, m))))), data)


# -- what it takes, and what it refuses


def doubled(dtype: str = "float32", shape: Any = ("n",)) -> Graph:
    graph = Graph("doubled")
    x = graph.input(dtype, shape, name="x")
    graph.output(ops.concat([x, x]))
    return graph


@every("dtype", STRONG)
def test_every_dtype_passes_through_what_moves_it(dtype: DType) -> None:
    graph, x = Graph("moved"), np.resize(pool(dtype), (2, 4))
    y = graph.input(dtype, ("n", 4)).T
    y = ops.pad(ops.roll(ops.flip(y), 1, axis=0), ((1, 0), (0, 2)), 1)
    graph.output(ops.tile(y, (2, 1)), ops.repeat(y, 2, axis=1), y.reshape(-1), ops.gather(y, 1))
    compare(Program(graph, (x,)), [cut(x, ((1, 1), (3, 1)))])


@every("source", STRONG)
def test_every_cast_has_the_same_bits(source: DType) -> None:
    graph, x = Graph("cast"), pool(source)
    symbol = graph.input(source, ("n",))
    to = [one for one in STRONG if not source.is_complex or one.is_complex or one is DType.bool]
    graph.output(*map(symbol.cast, to))
    compare(Program(graph, (x,)), [cut(x, [(len(x) - 3, 2, 1)])])


@every("tf32", ["even", "away"])
def test_given_tensor_float32_is_rounded(tf32: str) -> None:
    graph, x = Graph(tf32=tf32), np.float32([1 + 2**-11, 1 + 3 * 2**-11, np.pi])
    symbol = graph.input("tensor_float32", ("n",))
    graph.output(symbol, symbol.T)
    compare(Program(graph, (x,)), [cut(x, [(2, 1)])])


def test_chunks_of_unknown_size_are_refused_with_the_fix() -> None:
    x = da.from_array(np.arange(6, dtype=np.float32), chunks=4)
    unknown = x[x > 2]
    with pytest.raises(
        ExecutionError,
        match=r"input 'x' of graph 'doubled' .*unknown size.*"
        r"x\.compute_chunk_sizes\(\)",
    ):
        targets.dask(doubled())(unknown)
    unknown.compute_chunk_sizes()
    assert computed(targets.dask(doubled())(x=unknown))[0].tolist() == [3, 4, 5, 3, 4, 5]


@every("library", [np, da])
def test_other_dtypes_ranks_and_sizes_are_refused_by_name(library: Any) -> None:
    function = targets.dask(doubled(shape=(2, "n")))
    for wrong, words in (
        (library.ones((2, 3)), "float64"),
        (library.ones(2, dtype=np.float32), "axes"),
        (library.ones((3, 3), dtype=np.float32), "got 3"),
    ):
        with pytest.raises(ExecutionError, match=f"(?s)'x' of graph 'doubled'.*{words}"):
            function(wrong)
    with pytest.raises(ExecutionError, match="missing x"):
        function()


def test_blocks_that_are_masked_are_refused() -> None:
    masked = da.ma.masked_greater(da.ones(4, dtype=np.float32), 0)
    with pytest.raises(ExecutionError, match=r"'x' of graph 'doubled'.*MaskedArray.*filled"):
        targets.dask(doubled())(masked)


@every("rules", ["jax", "jax_x32", "numpy", "torch"])
def test_weak_inputs_are_committed(rules: str) -> None:
    graph = trace(lambda x, eps: (x * eps, eps), ("float16", ("n",)), float, rules=rules).graph
    x = np.ones(5, np.float16)
    compare(Program(graph, (x, 0.5)), [cut(x, [(2, 3)]), 0.5])


def test_without_dask_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match="the Dask target needs the package 'dask'"):
        targets.dask(doubled())


def test_an_op_that_it_lacks_is_named_when_the_function_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(MOVES, "concat")  # pyright: ignore
    with pytest.raises(TargetError, match=r"test_target_dask.py:\d+:.* concat\(.*Dask has no such"):
        targets.dask(doubled())


def test_every_op_has_a_way() -> None:
    elementwise = {name for name, op in ops.CATALOGUE.items() if op.kind == "elementwise"}
    others = {"input", "cast", "affine_view", "item", "numpy_sum"}  # the last are made of others
    assert set(ops.CATALOGUE) == elementwise | {*LABELS} | {*MOVES} | others
    assert not elementwise & ({*LABELS} | {*MOVES}) and not {*LABELS} & {*MOVES}


def test_what_a_task_refuses_names_the_line() -> None:
    graph = Graph("power")
    x = graph.input("int32", ("n",))
    graph.output(x**x)
    found = targets.dask(graph)(da.from_array(np.array([1, 2, -3, 4], np.int32), chunks=2))
    with pytest.raises(ExecutionError, match=r"test_target_dask.py:\d+:.*pow.*-3"):
        found.compute()


# -- tasks


def chain() -> Graph:
    """Two elementwise regions around a sum, and an elementwise op that is of neither."""
    graph = Graph("chain", rules="jax")
    x, w = graph.input("bfloat16", ("n", "m")), graph.input("float32", ("m",))
    y = ops.tanh(x * w) + 1
    graph.output((y - y.sum(axis=0)) * w, ops.exp(w), y.cast("float16"))
    return graph


def test_a_program_for_each_region_is_pickled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reduced: list[Compiled] = []
    pickled = Compiled.__reduce__

    def counted(self: Compiled) -> Any:
        reduced.append(self)
        return pickled(self)

    monkeypatch.setattr(Compiled, "__reduce__", counted)
    function = targets.dask(chain())
    x, w = da.ones((40, 60), chunks=3), da.ones(60, chunks=3, dtype=np.float32)
    found = function(x.astype(ml_dtypes.bfloat16), w)
    tasks = [task for one in found for task in dict(one.__dask_graph__()).values()]
    read = pickle.loads(pickle.dumps(tasks))
    assert len(read) > 1000 and len(reduced) == 4  # the sum of one block is a Program too


def test_tasks_are_named_and_progress_bars_see_them() -> None:
    names: list[str] = []
    told = io.StringIO()
    x = da.ones((4, 6), chunks=(2, 3)).astype(ml_dtypes.bfloat16)
    found = targets.dask(chain())(x, np.ones(6, np.float32))
    with ProgressBar(out=told, dt=0), Callback(posttask=lambda key, *_: names.append(str(key))):
        dask.compute(*found)
    assert "100% Completed" in told.getvalue()
    assert any("sum" in one for one in names) and any("exp" in one for one in names)


def test_threads_share_a_function() -> None:
    graph = chain()
    function, random = targets.dask(graph), np.random.default_rng(3)
    inputs = random.normal(size=(50, 40)).astype(ml_dtypes.bfloat16), np.ones(40, np.float32)
    expected = interpret(graph, *inputs)[2]
    found: list[Any] = []

    def run() -> None:
        chunks = da.from_array(inputs[0], chunks=(7, 11))
        found.append(function(chunks, inputs[1])[2].compute(scheduler="threads", num_workers=4))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 4 and all(same(one, expected) for one in found)


def test_one_output_does_not_compute_another() -> None:
    graph = Graph("two")
    x = graph.input("int32", ("n",), name="x")
    graph.output(x + 1, x**-x)
    found, _ = targets.dask(graph)(da.from_array(np.array([1, 2, 3], np.int32), chunks=2))
    assert found.compute().tolist() == [2, 3, 4]


def test_the_benchmark_finds_both_alike() -> None:
    few = ["--megabytes", "24", "--allowed", "1024", "--rounds", "1"]
    command = [sys.executable, "-m", "tests.benchmarks.dask_chunks", *few]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same bits") == 2


def test_a_signed_power_is_done_block_by_block() -> None:
    g = Graph("power")
    x, y = g.input("int32", ("n",), name="x"), g.input("int32", ("n",), name="y")
    g.output(x**y + 1)
    given = np.arange(10, dtype=np.int32), np.arange(10, dtype=np.int32) % 4
    blocks = [da.from_array(each, chunks=3) for each in given]
    assert same(targets.dask(g)(*blocks).compute(scheduler="sync"), interpret(g, *given))
    with pytest.raises(ExecutionError, match="is a fraction"):
        targets.dask(g)(blocks[0], -blocks[1]).compute(scheduler="sync")
