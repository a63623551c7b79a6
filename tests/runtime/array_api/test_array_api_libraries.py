"""Libraries for any Array API namespace give on runtime.array_api what they give on NumPy."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.runtime.array_api.array_code import NAMES, ROOTS
from tests.support.tables import every


@functools.cache
def _outcomes(root):
    """Of one library, for each call what differs: run once, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tests.runtime.array_api.array_code",
        "graphir.runtime.array_api",
        root,
    ]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "SCIPY_ARRAY_API": "1"}
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@every(("root", "name"), [(root, name) for root in ROOTS for name in NAMES[root]])
def test_equals_numpy(root, name):
    if importlib.util.find_spec(root) is None:
        pytest.skip(f"{root} is not installed")
    assert _outcomes(root)[name] is None


def test_at_least_sixty_calls():
    assert sum(map(len, NAMES.values())) >= 60
