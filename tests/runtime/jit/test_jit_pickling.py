"""Jitted functions, Programs and what they give are pickled, copied and sent to processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Lattice, PromotionRules, explain, lattice, laws, rule_sets, rules
from graphir.passes import Policy, cast_report, diff
from graphir.runtime import Program, audit, jit, record
from tests import ROOT
from tests.runtime.jit.jitted import X
from tests.support.tables import every

WEIGHTS = np.linspace(0.1, 0.4, X.size, dtype=np.float32).reshape(X.shape)


@jit
def decorated(x: Any) -> Any:
    return np.sin(x) * WEIGHTS + 1


def plain(x: Any, k: int = 2) -> Any:
    return (x * np.float64(0.1)).sum() ** k


configured = jit(plain, rules="jax", static="k")


class Model:
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    @jit
    def apply(self, x: Any) -> Any:
        return x * self.weights

    @staticmethod
    @jit
    def twice(x: Any) -> Any:
        return x * 2


def program() -> Program:
    graph = Graph("mean", rules="numpy")
    x = graph.input("float32", ("n",), name="x")
    graph.output((x * x).mean())
    return Program(graph, threads=1)


PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@every("protocol", PROTOCOLS)
def test_a_decorated_function_is_pickled_by_its_name(protocol: int) -> None:
    decorated(X)
    for jitted in (decorated, Model.apply, Model.twice):
        data = pickle.dumps(jitted, protocol)
        assert pickle.loads(data) is jitted and len(data) < 200
        assert copy.copy(jitted) is copy.deepcopy(jitted) is jitted  # as functions are


@every("protocol", PROTOCOLS)
def test_another_is_pickled_with_its_settings_and_traces_again(protocol: int) -> None:
    expected = configured(X, k=3)
    for again in (
        pickle.loads(pickle.dumps(configured, protocol)),
        copy.copy(configured),
        copy.deepcopy(configured),
    ):
        assert again is not configured and "0 signatures" in repr(again)
        result = again(X, k=3)
        assert result.dtype == expected.dtype and result.tobytes() == expected.tobytes()
        assert again.traced(X, k=3).graph.rules is rules("jax")
    of_partial = pickle.loads(pickle.dumps(jit(partial(plain, k=1)), protocol))
    assert of_partial(X) == plain(X, 1)


def test_methods_go_with_their_object() -> None:
    apply = pickle.loads(pickle.dumps(Model(WEIGHTS).apply))
    np.testing.assert_array_equal(apply(X), X * WEIGHTS)


def test_a_function_without_a_name_is_refused_as_pickle_refuses_it() -> None:
    def closure(x: Any) -> Any:
        return x * WEIGHTS

    for jitted, name in ((jit(lambda x: x), "<lambda>"), (jit(closure), "closure")):
        with pytest.raises((pickle.PicklingError, AttributeError), match=name):
            pickle.dumps(jitted)
        np.testing.assert_array_equal(copy.deepcopy(jitted)(X), jitted(X))


def assert_processes_agree(method: str) -> None:
    """Send functions to the processes of a pool, and compare the bits of their results."""
    functions: list[Any] = [decorated, configured, Model(WEIGHTS).apply, program()]
    expected = [function(X) for function in functions]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        results = [pool.submit(function, X).result() for function in functions]
    for result, value in zip(results, expected, strict=True):
        assert result.dtype == value.dtype and result.tobytes() == value.tobytes()


@every("method", ["spawn", "fork"])
def test_processes_give_the_same_bits(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this platform")
    # In an interpreter of its own: libraries that other tests import have threads, and do not fork.
    command = f"import {__name__} as this; this.assert_processes_agree({method!r})"
    subprocess.run([sys.executable, "-c", command], check=True, cwd=ROOT)


SCRIPT = """
import sys
import cloudpickle
import numpy as np
from graphir.runtime import jit

WEIGHTS = np.arange(3.0)

@jit
def scaled(x):
    return x * WEIGHTS + 1

class Model:
    @jit
    def apply(self, x):
        return x - WEIGHTS

if __name__ == "__main__":
    scaled(WEIGHTS)
    with open(sys.argv[1], "wb") as file:
        cloudpickle.dump((scaled, Model().apply, jit(lambda x: x + WEIGHTS)), file)
    if len(sys.argv) > 2:
        import joblib

        calls = (joblib.delayed(scaled)(WEIGHTS + i) for i in range(3))
        results = joblib.Parallel(n_jobs=2)(calls)
        assert [r.tolist() for r in results] == [scaled(WEIGHTS + i).tolist() for i in range(3)]
"""


def test_functions_of_a_script_go_to_the_workers_of_joblib_and_dask(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    try:
        import joblib
    except ImportError:
        with_joblib = []
    else:
        with_joblib = [joblib.__name__]
    script, data = tmp_path / "script.py", tmp_path / "functions.pickle"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(data), *with_joblib]
    environment = {"PYTHONPATH": str(ROOT), "GRAPHIR_NATIVE_CACHE": "0"}
    subprocess.run(command, env=environment, check=True, cwd=tmp_path)
    weights = np.arange(3.0)
    scaled, apply, shifted = pickle.loads(data.read_bytes())
    np.testing.assert_array_equal(scaled(X[:3]), X[:3] * weights + 1)
    np.testing.assert_array_equal(apply(X[:3]), X[:3] - weights)
    np.testing.assert_array_equal(shifted(X[:3]), X[:3] + weights)


def mixed() -> Graph:
    graph = Graph("mixed")
    x = graph.input("int16", ("n",), name="x")
    graph.output((x * graph.input("float16", ("n",), name="w")).sum() + 1)
    return graph


def own_rules() -> PromotionRules:
    return PromotionRules.from_lattice(Lattice("mine", {"int8": ["int16"], "int16": ["float16"]}))


OBJECTS: dict[str, Any] = {
    "graph": mixed,
    "report": lambda: cast_report(mixed()),
    "recording": lambda: record(plain, X),
    "audit": lambda: audit(plain, X),
    "trace": lambda: decorated.traced(X),
    "lattice": lambda: lattice("max"),
    "laws": lambda: laws("numpy"),
    "explanation": lambda: explain("int32", "float16"),
    "rules_diff": lambda: diff("max", "torch"),
    "graph_diff": lambda: diff(mixed(), "numpy"),
    "policy": lambda: Policy(forbid="lossy"),
    "own_rules": own_rules,
}


@every("name", OBJECTS)
def test_other_objects_are_pickled_and_copied(name: str) -> None:
    value = OBJECTS[name]()
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert type(again) is type(value)
        assert str(again) == str(value)


def test_rule_sets_are_themselves_after_pickling_and_copying() -> None:
    for each in rule_sets():
        assert pickle.loads(pickle.dumps(each)) is copy.deepcopy(each) is copy.copy(each) is each
    again = pickle.loads(pickle.dumps(own_rules()))
    assert again.table() == own_rules().table()
