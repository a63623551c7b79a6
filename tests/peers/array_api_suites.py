"""The Array API tests that SciPy and scikit-learn ship in their wheels, run on runtime.array_api.

`python -m tests.peers.array_api_suites scipy` prints JSON: for each function of the table the
number of tests that passed and were skipped, the refusals by their text, and the failures. A test
is refused if a GraphirError ends it. SciPy and scikit-learn take the namespace of the arrays
through their copies of array-api-compat.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphir import GraphirError
from graphir.runtime import array_api

Row = tuple[str, str]

SUITES: dict[str, dict[str, Row]] = {
    "scipy": {
        "constants.convert_temperature": ("constants/tests", "TestConvertTemperature"),
        "fft.fft": ("fft/tests/test_basic.py", "TestFFT::test_fft"),
        "integrate.cumulative_simpson": (
            "integrate/tests/test_quadrature.py",
            "TestCumulativeSimpson",
        ),
        "integrate.cumulative_trapezoid": (
            "integrate/tests/test_quadrature.py",
            "TestCumulative_trapezoid",
        ),
        "integrate.simpson": ("integrate/tests/test_quadrature.py", "TestSimpson"),
        "integrate.trapezoid": ("integrate/tests/test_quadrature.py", "TestTrapezoid"),
        "signal.windows.hann": ("signal/tests/test_windows.py", "TestHann"),
        "special.log_softmax": ("special/tests/test_logsumexp.py", "TestLogSoftmax"),
        "special.logsumexp": ("special/tests/test_logsumexp.py", "TestLogSumExp"),
        "special.softmax": ("special/tests/test_logsumexp.py", "TestSoftmax"),
        "stats.differential_entropy": ("stats/tests/test_entropy.py", "TestDifferentialEntropy"),
        "stats.entropy": ("stats/tests/test_entropy.py", "TestEntropy"),
        "stats.gmean": ("stats/tests/test_stats.py", "TestGMean"),
        "stats.hmean": ("stats/tests/test_stats.py", "TestHMean"),
        "stats.kurtosis": ("stats/tests/test_stats.py", "TestKurtosis"),
        "stats.skew": ("stats/tests/test_stats.py", "TestSkew"),
        "stats.zscore": ("stats/tests/test_stats.py", "TestZscore"),
    },
    "sklearn": {
        "decomposition.PCA": ("decomposition/tests/test_pca.py", "array_api_compliance"),
        "linear_model.Ridge": ("linear_model/tests/test_ridge.py", "test_ridge_array_api"),
        "metrics.accuracy_score": ("metrics/tests/test_common.py", "[accuracy_score"),
        "metrics.balanced_accuracy_score": (
            "metrics/tests/test_common.py",
            "[balanced_accuracy_score",
        ),
        "metrics.confusion_matrix": (
            "metrics/tests/test_classification.py",
            "test_confusion_matrix_array_api",
        ),
        "metrics.f1_score": ("metrics/tests/test_common.py", "[f1_score"),
        "metrics.mean_squared_error": ("metrics/tests/test_common.py", "[mean_squared_error"),
        "metrics.pairwise.pairwise_kernels": (
            "metrics/tests/test_pairwise.py",
            "test_pairwise_kernels_array_api",
        ),
        "metrics.r2_score": ("metrics/tests/test_common.py", "[r2_score"),
        "model_selection.train_test_split": (
            "model_selection/tests/test_split.py",
            "test_array_api_train_test_split",
        ),
        "naive_bayes.GaussianNB": ("tests/test_naive_bayes.py", "test_gnb_array_api"),
        "preprocessing.LabelEncoder": (
            "preprocessing/tests/test_label.py",
            "test_label_encoder_array_api",
        ),
        "preprocessing.StandardScaler": (
            "preprocessing/tests/test_data.py",
            "test_standard_scaler_array_api",
        ),
        "utils.extmath.randomized_range_finder": (
            "utils/tests/test_extmath.py",
            "test_randomized_range_finder_array_api",
        ),
    },
}
"""For each function the file of its tests, and a part of their names."""


class ScipyBackend:
    """The fixture `xp` of SciPy's tests with this namespace as its only backend."""

    name = array_api.__name__

    def __init__(self, conftest: Any) -> None:
        conftest.xp_known_backends.add(self.name)
        self.conftest = conftest

    @pytest.fixture(params=[pytest.param(array_api, id=array_api.__name__)])
    def xp(self, request: pytest.FixtureRequest) -> Iterator[Any]:
        for effect in ("skip", "xfail"):
            self.conftest.skip_or_xfail_xp_backends(request, effect)
        namespace = self.conftest.array_namespace(array_api.empty(0))
        with self.conftest.default_xp(namespace):
            yield namespace

    @pytest.fixture
    def devices(self) -> list[str | None]:
        """The devices; SciPy 1.17 appends to their list, which is a tuple since 2025.12."""
        return [*array_api.__array_namespace_info__().devices(), None]


class SklearnBackend:
    """The parameters of scikit-learn's tests with this namespace as their only backend."""

    name = array_api.__name__

    def __init__(self, conftest: Any) -> None:
        module: Any = importlib.import_module("sklearn.utils._array_api")
        module.yield_namespaces = lambda **_: iter([self.name])
        module.yield_namespace_device_dtype_combinations = lambda **_: [
            (self.name, None, dtype) for dtype in ("float64", "float32")
        ]


BACKENDS = {"scipy": ScipyBackend, "sklearn": SklearnBackend}


class Outcomes:
    """Plugin: keeps the tests of the table, and counts what becomes of them."""

    def __init__(self, table: dict[str, Row]) -> None:
        self.table = table
        self.found: dict[str, dict[str, Any]] = {
            function: {"passed": 0, "skipped": 0, "refused": Counter(), "failed": {}}
            for function in table
        }

    def function_of(self, test: str) -> str | None:
        for function, (file, part) in self.table.items():
            if array_api.__name__ in test and file in test and part in test:
                return function
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[Any]) -> None:
        del config
        items[:] = [item for item in items if self.function_of(path_of(item))]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if report.when == "call" or report.outcome != "passed":
            outcomes = self.found[self.function_of(path_of(item)) or ""]
            if report.outcome != "failed":
                outcomes[report.outcome] += 1
            elif isinstance(call.excinfo.value, GraphirError):
                outcomes["refused"][call.excinfo.value.summary] += 1
            else:
                outcomes["failed"][path_of(item)] = call.excinfo.exconly()
        return report


def path_of(item: Any) -> str:
    """Return the file of a test and its name with its parameters."""
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


def run(library: str, table: dict[str, Row]) -> dict[str, Any]:
    """Run the tests of a library's functions in this process, and return their outcomes."""
    os.environ["SCIPY_ARRAY_API"] = "1"  # read as SciPy is imported
    folder = Path(str(importlib.import_module(library).__file__)).parent
    conftest: Any = importlib.import_module(f"{library}.conftest")
    outcomes = Outcomes(table)
    files = sorted({str(folder / file) for file, _ in table.values()})
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-W", "ignore", "-c", os.devnull]
    options += ["--rootdir", str(folder), "--no-header", "--tb=no"]
    pytest.main([*options, *files], plugins=[conftest, BACKENDS[library](conftest), outcomes])
    return outcomes.found


if __name__ == "__main__":
    sys.stdout = sys.stderr  # pytest's own report
    found = run(sys.argv[1], SUITES[sys.argv[1]])
    print(json.dumps(found, indent=1), file=sys.__stdout__)
