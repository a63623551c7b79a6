"""Hashes of results: equal for equal results, and different for any other bit, dtype or order."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests import GOLDEN
from tests.result_hashes import BLOCK, KIND_NAMES, Digest, run
from tests.support.native_runs import TIERS
from tests.support.tables import every


def _hash(*values: object) -> str:
    digest = Digest()
    digest.add(*values)
    return digest.hex()


@every("kind", [*KIND_NAMES])
def test_a_program_has_the_same_hashes_again(kind: str) -> None:
    if kind == "native" and "now" not in TIERS:
        pytest.skip("llvmlite is not installed")
    for seed in range(6):
        assert run(kind, seed) == run(kind, seed)


def test_hashes_tell_results_apart() -> None:
    x = np.arange(6.0).reshape(2, 3)
    others = [x + 0.5, x.astype("f4"), x.reshape(3, 2), np.asfortranarray(x), [x], x.tolist()]
    others += [np.float64(0.0), np.float64(-0.0), 0.0, -0.0, 0, False, ValueError(), TypeError()]
    assert len({_hash(x), *map(_hash, others)}) == len(others) + 1
    assert _hash(np.nan * x) == _hash(-np.nan * x)


def test_the_file_has_as_many_hashes_of_each_kind_as_it_says() -> None:
    content = json.loads((GOLDEN / "result_hashes.json").read_text())
    assert content["block"] == BLOCK and set(content["kinds"]) == set(KIND_NAMES)
    assert all(len(hashes) * BLOCK >= 2000 for hashes in content["kinds"].values())
