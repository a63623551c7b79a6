"""The stub of the catalogue of ops is that which its generator writes."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

from graphir import ops

ROOT = Path(__file__).parents[3]


def test_the_stub_is_current() -> None:
    writer = runpy.run_path(str(ROOT / "docs" / "build_ops_stub.py"))
    command = "python docs/build_ops_stub.py"
    assert writer["STUB"].read_text(encoding="utf-8") == writer["stub"](), f"run {command}"


def test_the_stub_has_every_public_name() -> None:
    tree = ast.parse((ROOT / "graphir" / "ops" / "catalogue.pyi").read_text(encoding="utf-8"))
    names = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert names | {"split"} == {*ops.catalogue.NAMES, "NAMES", "CATALOGUE"}
