"""All programs of these tests verify their graph and their steps after each pass of the planner."""

from __future__ import annotations

import pytest

from graphir.runtime.program import plans
from graphir.runtime.program.planning import plan_for_native, plan_for_numpy
from tests.support.verified_steps import rewrite_verified


@pytest.fixture(autouse=True)
def verify_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for pipeline in (plan_for_numpy, plan_for_native):
        monkeypatch.setattr(pipeline, "verify_each", True)
    monkeypatch.setattr(plans, "rewrite_steps", rewrite_verified)
