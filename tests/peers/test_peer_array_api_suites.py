"""SciPy's and scikit-learn's own Array API tests pass on runtime.array_api, or are refused."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

import pytest

from tests import ROOT
from tests.peers.array_api_suites import SUITES

REFUSED = {
    "integrate.simpson": "integers by floats",
    "metrics.balanced_accuracy_score": "division of integers",
    "special.log_softmax": "exp of integers",
    "special.logsumexp": "the test's own result_type of integers and floats",
    "special.softmax": "exp of integers",
    "stats.differential_entropy": "integers by floats",
    "utils.extmath.randomized_range_finder": "integers by floats",
}
"""The functions with a refused test, and what is refused: kinds that the standard does not mix."""


@pytest.mark.parametrize("library", SUITES)
def test_the_tests_of_a_library_pass_or_are_refused(library: str):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-m", "tests.peers.array_api_suites", library]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    for function, outcomes in found.items():
        assert not outcomes["failed"], (function, outcomes["failed"])
        assert bool(outcomes["refused"]) <= (function in REFUSED), (function, outcomes)
        for text in outcomes["refused"]:
            assert "the standard does not define this" in text, (function, text)
    assert sum(outcomes["passed"] > 0 for outcomes in found.values()) >= 10


def test_the_page_names_each_function_and_what_is_refused():
    page = (ROOT / "docs" / "array-api.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| \w[\w-]* \| .*\| (.*?) ?\|$", page, re.MULTILINE))
    functions = [function for table in SUITES.values() for function in table]
    assert rows == {function: REFUSED.get(function, "") for function in functions}
