"""The Dask target on a cluster: two processes, one of which is killed in the middle of a run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed, so no cluster runs")

import dask
import dask.array as da
from distributed import Client, LocalCluster, progress, wait

from graphir import DType, ExecutionError, Graph, control, ops
from graphir.runtime import interpret, targets
from graphir.runtime.targets import TargetError
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool

pytestmark = pytest.mark.filterwarnings("ignore")  # of sockets, when workers die
PATIENCE = 60


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def network() -> Graph:
    """Elementwise regions, a reduction, a product, movement, and bfloat16 all along."""
    graph = Graph("network", rules="jax")
    x, w = graph.input("bfloat16", ("n", "m"), name="x"), graph.input("bfloat16", ("m", 5))
    y = ops.maximum(x, 0) * 0.5
    centred = y - y.max(axis=0)
    joined = ops.concat([centred.T, w @ (w.T @ w)], axis=1)
    graph.output(centred, joined, x.cast("int32").sum(axis=1))
    return graph


def inputs() -> list[Any]:
    random = np.random.default_rng(1)
    whole = random.integers(-4, 5, (40, 30)), random.integers(-2, 3, (30, 5))
    return [one.astype(ml_dtypes.bfloat16) for one in whole]


def agree(found: Any) -> None:
    for one, other in zip(found, interpret(network(), *inputs()), strict=True):
        assert same(one, other)


def test_the_same_code_runs_on_a_cluster(client: Any) -> None:
    x, w = inputs()
    found = targets.dask(network())(da.from_array(x, chunks=(7, 11)), w)
    agree(dask.compute(*found))
    assert len(client.scheduler_info()["workers"]) == 2


def block(values: Any, started: str, killed: str, block_id: Any = None) -> Any:
    """A block of an input, noted as begun; the last of them waits for the death of a worker."""
    Path(started, "-".join(map(str, block_id))).touch()
    while block_id == (5, 2) and not Path(killed).exists():
        time.sleep(0.01)
    return values


def test_a_worker_killed_in_the_middle_does_not_change_the_result(
    client: Any, tmp_path: Path
) -> None:
    started, killed = tmp_path / "started", tmp_path / "killed"
    started.mkdir()
    x, w = inputs()
    chunks = da.from_array(x, chunks=(7, 11))
    late = partial(block, started=str(started), killed=str(killed))
    function = targets.dask(network())
    found = client.compute(list(function(chunks.map_blocks(late, dtype=x.dtype), w)))
    waited = time.monotonic() + PATIENCE
    while len(list(started.iterdir())) < 9:  # some are done, and one is not
        assert time.monotonic() < waited
        time.sleep(0.01)
    workers = client.run(os.getpid)
    assert len(workers) == 2 and not all(one.done() for one in found)
    os.kill(next(iter(workers.values())), signal.SIGKILL)
    killed.touch()
    agree(client.gather(found, errors="raise"))
    client.wait_for_workers(2, timeout=PATIENCE)
    assert set(client.run(os.getpid).values()) != set(workers.values())


def test_its_progress_is_told(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x, w = inputs()
    found = dask.persist(*targets.dask(network())(da.from_array(x, chunks=(7, 11)), w))
    progress(found, notebook=False)
    wait(found)
    assert "Completed" in capsys.readouterr().out


def test_errors_come_back_with_their_line(client: Any) -> None:
    graph = Graph("power")
    x = graph.input("int32", ("n",))
    graph.output(x**x)
    found = targets.dask(graph)(da.from_array(np.array([1, 2, -3, 4], np.int32), chunks=2))
    with pytest.raises(ExecutionError, match=r"test_target_dask_distributed.py:\d+:.*pow.*-3"):
        found.compute()


@pytest.mark.parametrize("dtype", STRONG, ids=str)
def test_every_dtype_travels(client: Any, dtype: DType) -> None:
    graph, x = Graph("moved"), np.resize(pool(dtype), (2, 4))
    graph.output(ops.concat([graph.input(dtype, ("n", "m"))] * 2).T)
    function, chunks = targets.dask(graph), da.from_array(x, chunks=(1, 3))
    if dtype is DType.float8_e5m2:  # what distributed reads as another dtype, '<f1'
        with pytest.raises(
            TargetError, match=r"py:\d+:\d+: input.*cannot serialize.*float8_e4m3fn"
        ):
            function(chunks)
        with dask.config.set(scheduler="threads"):
            assert same(function(chunks).compute(), interpret(graph, x))
        return
    assert same(function(chunks).compute(), interpret(graph, x))


def test_control_flow_runs_on_a_cluster(client: Any) -> None:
    graph = Graph("rooted", rules="numpy")
    x = graph.input("float64", ("n",), name="x")
    halves = control.scan(lambda total, row: (total + row, total), x[0], x)
    graph.output(*halves, control.cond(x[0] > 0, lambda: x, lambda: -x))
    given = np.arange(5.0)
    results = dask.compute(*targets.dask(graph)(da.from_array(given, chunks=2)))
    for result, expected in zip(results, interpret(graph, given), strict=True):
        assert same(np.asarray(result), expected)
