"""Settings of the whole suite: the hypothesis profiles, chosen by HYPOTHESIS_PROFILE."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.evaluator", "tests.rewrites")

# The same examples on every machine and run, and no time limits that a busy machine would miss.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=50,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "long", parent=settings.get_profile("default"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
