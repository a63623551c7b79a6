"""Random programs under each library's rules and in the library itself: dtypes and values.

Every intermediate has the same dtype and every value the same bits, but where the table of
deviations (tests/peers/table) says. Each of its rows is asserted by itself, on both sides, so a row
that is no longer true fails.

Each group needs its library: NumPy 2.4; torch 2.13, jax 0.10, dask 2026.8 and array-api-strict 2.6;
tensorflow-cpu 2.21 and MAX 26.7, each in an environment of its own, and NumPy 1.26 in one that the
variable NUMPY_1 names by its interpreter (tests/peers/numpy_legacy_client.py). Of MAX only dtypes
and refusals are compared, as its graph builder infers them: no program is compiled. CuPy needs a
GPU: it has no group, and the rule set "cupy" follows its documentation and its dispatch tables.
"""

from __future__ import annotations

import platform
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from graphir import DType
from tests.peers import deviations as at
from tests.peers.deviations import Deviation
from tests.peers.graphs import Library, Run, differences, program
from tests.peers.libraries import ENVIRONMENT, LIBRARIES, MODES
from tests.peers.table import DEVIATIONS
from tests.support.evaluator import same
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = {
    **dict.fromkeys(("numpy", "array_api", "torch", "numpy_legacy", "python"), 40),
    "dask": 8,
    "max_strict": 36,
    **dict.fromkeys(("tensorflow", "tf_all", "tf_safe", "tf_legacy"), 8),
    "jax": 0.6,
    "jax_x32": 0.4,
    "jax_strict": 0.3,
}
"""How many, for every example of the hypothesis profile: JAX compiles each op for each shape."""


@cache
def _library(name: str) -> Library:
    return LIBRARIES[name][1]()


def _needed(name: str) -> None:
    """Skip where the library is not there, saying what is missing."""
    module = LIBRARIES[name][0]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: nothing to compare with")
    missing = ENVIRONMENT.get(name, lambda: "")()
    if missing:
        pytest.skip(missing)


@cache
def _process(mode: str) -> ProcessPoolExecutor:
    """A process in which TensorFlow is in a mode for good."""
    from tests.peers.tensorflow_ import enable

    return ProcessPoolExecutor(1, get_context("spawn"), enable, (mode,))


def _asked(function: Any, name: str, *arguments: Any) -> Any:
    """What a function answers about a library, in the process that has it."""
    if name in MODES:
        return _process(MODES[name]).submit(function, name, *arguments).result()
    return function(name, *arguments)


def compared(name: str, count: int) -> tuple[list[str], int]:
    """The steps of random programs that differ unexplained, and the number of steps taken."""
    library, unexplained, steps = _library(name), [], 0
    for seed in range(count):
        with library.settings():
            run = Run(program(seed, library), library)
            jitted = run.jitted() if library.jit and not seed % 2 else ()
            found = differences([*run.cases, *jitted], at.explained(DEVIATIONS))
            unexplained += [f"{seed}: {case!r}" for case in found]
        steps += len(run.computed)
    return unexplained, steps


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LIBRARIES)
def test_random_programs(name: str):
    _needed(name)
    count = int(PROGRAMS[name] * settings().max_examples)
    unexplained, steps = _asked(compared, name, count)
    assert not unexplained, unexplained[:20]
    assert steps > 3 * count


def claimed(name: str, place: int) -> list[str]:
    """What is not as a row of the table claims: on our side, on the library's, or unexplained."""
    row, library = DEVIATIONS[place], _library(name)
    with library.settings():
        case = row.example(library)
        wrong = [
            f"{side}: {dtype} {value!r}, not {claim!r}"
            for side, claim, dtype, value in zip(
                ("graphir", name), (row.ours, row.theirs), case.dtypes, case.values, strict=True
            )
            if not agrees(claim, dtype, value)
        ]
        wrong += [f"not explained: {one!r}" for one in differences([case], at.explained([row]))]
    return wrong


def agrees(claim: Any, dtype: DType | None, value: Any) -> bool:
    """Whether a result has the dtype or the value that a row claims; None claims a refusal."""
    if isinstance(claim, (DType, type(None))):
        return dtype is claim
    return value is not None and same(value, np.array(claim).astype(value.dtype))


CLAIMS = [(place, name) for place, row in enumerate(DEVIATIONS) for name in row.names]


@every("place, name", CLAIMS)
def test_deviations_are_as_claimed(place: int, name: str):
    _needed(name)
    if not DEVIATIONS[place].here:
        pytest.skip(f"not on {platform.machine()}, or not in this version of {name}")
    assert _asked(claimed, name, place) == []


@every("place", range(len(DEVIATIONS)))
def test_graphir_computes_what_the_table_says_without_the_libraries(place: int):
    row: Deviation = DEVIATIONS[place]
    if row.libraries == "jitted":
        return  # compiled or not, graphir computes the same
    for name in row.names:
        assert agrees(row.ours, *row.ours_alone(name)), name
