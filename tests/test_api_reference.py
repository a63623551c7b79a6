"""The API reference is made of the docstrings, where the tool for that is installed."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphir import ops
from tests import ROOT


@pytest.mark.exhaustive
def test_the_reference_has_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("pdoc", reason="pdoc, of the extra `docs`, is not installed")
    command = [sys.executable, str(ROOT / "docs" / "build_api.py"), str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, check=True)
    pages = {str(p.relative_to(tmp_path)): p.read_text("utf-8") for p in tmp_path.rglob("*.html")}
    inside = "ops", "passes", "runtime", "runtime/array_api", "runtime/targets"
    assert {*pages} == {"index.html", "graphir.html", *(f"graphir/{each}.html" for each in inside)}
    text = html.unescape(re.sub(r"<[^>]+>", "", pages["graphir/ops.html"]))
    for name, op in ops.CATALOGUE.items():
        assert f'id="{name}"' in pages["graphir/ops.html"], name
        assert op.doc.split("`")[0].strip() in text, name
    for name in ("Graph", "DType", "PromotionRules", "trace"):
        assert f'id="{name}"' in pages["graphir.html"]
    assert 'id="execute"' in pages["graphir/runtime.html"]
    assert 'id="Policy"' in pages["graphir/passes.html"]
