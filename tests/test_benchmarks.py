"""Benchmarks run; the programs of execution are the same ones, and it can tell a miss."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.benchmarks.control_flow import LOOPS
from tests.benchmarks.engines import ENGINES
from tests.benchmarks.execution import equal
from tests.benchmarks.recording import Record
from tests.benchmarks.targets import Target, missed
from tests.benchmarks.workloads import BY_NAME, WORKLOADS, dag, names
from tests.support.native_runs import needs_llvmlite
from tests.support.tables import every

ROOT = Path(__file__).resolve().parent.parent
SLOW = ("torch.compile", "MAX", "numba", "jax.jit")  # to compile
FEW = ["--sizes", "100", "--rounds", "1", "--peak", "0"]


@pytest.mark.exhaustive
def test_it_runs_and_its_programs_are_exact(tmp_path: Path) -> None:
    rows, drawn = tmp_path / "rows.json", tmp_path / "rows.svg"
    quick = [one.name for one in ENGINES if one.name not in SLOW]
    few = ["--only", *(f"W{i}" for i in range(1, 9)), "--engines", *quick, *FEW]
    command = [sys.executable, "-m", "tests.benchmarks.execution", *few]
    files = ["--json", str(rows), "--svg", str(drawn)]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(rows.read_text())
    exact = [row for row in report["rows"] if row["engine"] in ("numpy", "graphir")]
    assert {(row["workload"], row["engine"]) for row in exact} == {
        (f"W{i}", engine) for i in range(1, 9) for engine in ("numpy", "graphir")
    }
    assert all(row["exact"] == 1 and row["seconds"] > 0 for row in exact)
    assert all(row["ratio"] == 1 for row in exact if row["engine"] == "numpy")
    bars = ElementTree.parse(drawn).getroot().findall(".//{*}title")
    assert sum((bar.text or "").startswith("graphir") for bar in bars) == 8 * 2


@pytest.mark.exhaustive
def test_the_one_of_policies_measures_each_policy() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.policies", "--nodes", "300", "--rounds", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('casts="warn", a hit at each cast') == 2
    assert done.stdout.count("without") == 2 and "1,000 lines warned of" in done.stdout


@pytest.mark.exhaustive
def test_the_one_of_onnx_models_compares_their_values() -> None:
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name)
    command = [sys.executable, "-m", "tests.benchmarks.onnx_models", "--seconds", "0.1"]
    done = subprocess.run(
        [*command, "--most", "50"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5


@pytest.mark.exhaustive
def test_the_one_of_control_flow_measures_each_loop() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.control_flow", "--turns", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = [part.splitlines() for part in done.stdout.split("\n\n")]
    assert len(first) == 9 and "writes into" in done.stdout
    assert len(second) == 1 + len(LOOPS)


@needs_llvmlite
def test_the_one_of_machine_code_tells_what_is_held() -> None:
    few = ["--engines", "numpy,native,copy", "--threads", "1", "--sizes", "100", "--rounds", "1"]
    command = [sys.executable, "-m", "tests.benchmarks.native", "--workloads", "W1,W8", "--check"]
    done = subprocess.run([*command, *few], cwd=ROOT, capture_output=True, text=True, check=False)
    told = [line[6:] for line in done.stdout.splitlines() if line.startswith(("pass", "FAIL"))]
    assert len(told) == 2 + 5, done.stderr  # microseconds, and the grids
    assert not any("nan" in line for line in told)
    assert done.returncode == int("\nFAIL" in done.stdout)


def test_equal_is_to_the_bit() -> None:
    wanted = np.array([0.0, 1.0, np.nan, 2.0], np.float32)
    assert equal(wanted.copy(), wanted) == 1
    assert equal(np.array([-0.0, 1.0, -np.nan, 2.0], np.float32), wanted) == 0.75
    assert equal(wanted.astype(np.float64), wanted) == 0


def test_a_target_is_of_one_thread_and_of_two_beside_itself() -> None:
    rows = [
        {"engine": "numpy", "threads": None, "seconds": 2.0},
        {"engine": "graphir", "threads": 1, "seconds": 1.0, "exact": 1},
        {"engine": "graphir", "threads": 2, "seconds": 0.25, "exact": 1},
        {"engine": "torch", "threads": 2, "seconds": 0.5},
    ]
    assert Target("W1", 100, 1.0).value(rows) == 0.5
    assert Target("W1", 100, 1.0, "graphir").value(rows) == 0.25
    assert Target("W1", 100, 1.0, "torch").value(rows) == 0.5
    assert math.isnan(Target("W1", 100, 1.0, "MAX").value(rows))
    wrong = [row | {"exact": 0.999} for row in rows]
    assert math.isnan(Target("W1", 100, 1.0).value(wrong))
    assert [missed("", value, 0.5) for value in (0.5, 0.51, math.nan)] == [False, True, True]


def test_the_dag_has_its_nodes_all_alive_and_within_bounds() -> None:
    record = Record(BY_NAME["W10"])
    used, at = set[str | float](), {line.name: line for line in record.lines}
    pending = [record.result]
    while pending:
        line = at.get(pending.pop())
        if line and line.name not in used:
            used.add(line.name)
            pending += [arg for arg in line.args if isinstance(arg, str)]
    assert len(record.lines) == len(used) == 10_000
    (x,) = BY_NAME["W10"].arrays(1000)
    found = dag(names(np, relu=None))(x)
    assert np.unique(found).size > 900
    assert 0 < np.abs(found).max() < 0.5


@every("workload", WORKLOADS)
def test_inputs_are_the_same_each_time_and_of_their_dtypes(workload) -> None:  # pyright: ignore
    graph = workload.graph(100)
    for symbol, one, again in zip(
        graph.inputs, workload.arrays(10), workload.arrays(10), strict=True
    ):
        assert one.dtype == symbol.dtype.storage
        assert one.tobytes() == again.tobytes()


@pytest.mark.exhaustive
def test_the_one_of_reports_writes_each_form() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.reports", "--nodes", "300", "--rounds", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("times") == 2 and done.stdout.count("MiB") == 8
