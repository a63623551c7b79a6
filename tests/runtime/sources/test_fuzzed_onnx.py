"""Damaged ONNX models are read right or refused, in bounded memory, and open no file outside."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tables import every

pytest.importorskip("onnx")


@every("first", [0, 150])
def test_mutated_models_have_the_values_of_onnx_or_are_refused(first: int) -> None:
    command = ["-m", "tests.runtime.sources.fuzz_onnx", "--models=150", f"--seed={first}"]
    root = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, *command], cwd=root, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    counts = {kind: int(n) for kind, n in re.findall(r"'([\w ]+)': (\d+)", run.stdout)}
    assert counts["equal"] >= 10 and counts["refused"] >= 50
