"""Processes for tests of the native tier, and what these tests need."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

needs_llvmlite = pytest.mark.skipif(
    find_spec("llvmlite") is None, reason="llvmlite is not installed"
)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")


def run(code: str, *options: str, ends: int = 0, **settings: str) -> str:
    """What a process of its own prints and logs, which must end with a code within a minute."""
    begin = (
        "from tests.runtime.native.soak_native import *\nimport logging; logging.basicConfig()\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *options, "-c", code.replace("BEGIN\n", begin)],
        env=os.environ | {"GRAPHIR_NATIVE": ""} | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ends, done.stderr
    return done.stdout + done.stderr


def fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError("as LLVM might")
