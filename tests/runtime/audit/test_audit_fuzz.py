"""Of a thousand random functions what differs is what exact arithmetic says, or is unknown."""

from __future__ import annotations

import argparse
import json
import re

import numpy as np
import pytest

from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime import record
from graphir.runtime.cli.graphs_and_casts import status
from tests.runtime.audit.audited_programs import drawn_function, number

COUNT, PARTS = 1000, 10


def differing(real, exact):
    """How many elements of an array are not the exact numbers; NaN is NaN."""
    pairs = [(number(x), y) for x, y in zip(real, exact, strict=True)]
    return sum(x != y and not (x != x and y != y) for x, y in pairs)


def counts(form, text):
    """The elements that differ of each output as a format says it: None where unknown."""
    if form in ("json", "sarif"):
        document = json.loads(text)
        run = document if form == "json" else document["runs"][0]["properties"]
        return [output["differing"] for output in run["outputs"]]
    told = r"output\d+: [^,<]+, (?:(\d+) of \d+ differ|[\d,]+ elements?: error (unknown))"
    return [None if match[2] else int(match[1]) for match in re.finditer(told, text)]


def check(seed):
    function = drawn_function(seed)
    arrays = [array.copy() for array in function.inputs.values()]
    wanted = function.run(*arrays)
    exact = function.exact()
    arrays = [array.copy() for array in function.inputs.values()]
    recording = record(function.run, *arrays)
    for found, want in zip(recording.result, wanted, strict=True):
        assert found.dtype == want.dtype
        assert np.array_equal(found, want, equal_nan=want.dtype.kind == "f")
    report = recording.audit()
    true = [differing(array, numbers) for array, numbers in zip(wanted, exact, strict=True)]
    # Two names of one array are one output.
    true = true[: len(report.outputs)]
    told = [output.differing for output in report.outputs]
    assert all(one in (None, want) for one, want in zip(told, true, strict=True)), (told, true)
    for form, write in REPORT_FORMATS.items():
        text = write(report)
        if form in ("concise", "github"):  # a line a finding, and none for an output
            assert (None in told) <= ("audit/unseen" in text), form
            continue
        assert counts(form, text)[: len(told)] == told, form
        says = re.search(r"may hide an error|\"hides\": true|of \d+ outputs? is unknown", text)
        assert (None in told) <= (says is not None), form
    for on in ("lossy", "any"):
        asked = argparse.Namespace(fail_on=[on], unseen="fail")
        assert status(report, asked) >= (None in told)
    return told


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elements_that_differ_are_those_of_exact_arithmetic_or_unknown(part: int) -> None:
    told = [one for seed in range(part, COUNT, PARTS) for one in check(seed)]
    # Neither is everything unknown, nor does nothing differ.
    assert sum(one is None for one in told) < len(told) / 2
    assert sum(bool(one) for one in told) > len(told) / 6
