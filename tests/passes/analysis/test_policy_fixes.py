"""The fixes that policies tell, typed: what they make is what the policy asks for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, Symbol, ops, rule_sets
from graphir.passes import Policy
from graphir.runtime import record

RULES = [one.name for one in rule_sets() if one.name != "explicit"]
DTYPES = [
    *(DType.bool, DType.int8, DType.uint8, DType.int32, DType.uint32, DType.int64, DType.uint64),
    *(DType.float16, DType.bfloat16, DType.float32, DType.float64, DType.complex64),
]
EXPRESSIONS = ("x * y", "x / y", "x < y", "ops.maximum(x, y)", "ops.sin(x)", "x[0] - y")
# No two dtypes mix under jax_lax, and here none do that python and array_api allow with a loss.
EXACT = ("jax_lax", "python", "array_api", "jep_option_0", "jep_option_1")
Build = Callable[[Symbol, Symbol], Symbol]


@pytest.fixture
def builders(tmp_path: Path) -> dict[str, Build]:
    """Each expression from a file of its own, so that its source is known."""

    def builder(number: int, text: str) -> Build:
        path = tmp_path / f"expression{number}.py"
        path.write_text(text, encoding="utf-8")
        code = compile(text, str(path), "eval")
        return lambda x, y: eval(code, {"ops": ops}, {"x": x, "y": y})

    return {text: builder(i, text) for i, text in enumerate(EXPRESSIONS)}


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", [{"casts": "forbid"}, {"forbid": {"lossy"}}], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_a_typed_fix_leaves_nothing_to_find(
    name: str, policy: dict[str, Any], builders: dict[str, Build]
) -> None:
    """Every pair of dtypes under every rule set that takes it."""
    found = 0
    for (text, build), (a, b) in itertools.product(
        builders.items(), itertools.product(DTYPES, DTYPES)
    ):
        g = Graph("fixed", rules=name, policy=Policy(**policy))
        try:
            x, y = g.input(a, ("n",), name="x"), g.input(b, ("n",), name="y")
            symbol = build(x, y)
            hits = g.policy.hits(g)
        except GraphirError:
            continue
        for hit in hits:
            if hit.symbol is symbol:
                found += 1
                made = eval(hit.fix, {"ops": ops}, {"x": x, "y": y})
                left = [one for one in g.policy.hits(g, [made]) if one.symbol is made]
                assert not left, (text, a, b, hit.fix)
    assert found or name == "jax_lax" or ("lossy" in policy.get("forbid", ()) and name in EXACT)


def in_place(out: Any, peak: Any) -> Any:
    offset = 3
    out += np.arange(4.0)
    return peak / offset


def test_an_array_that_is_written_keeps_its_name_and_a_number_has_no_astype() -> None:
    graph = record(in_place, np.ones(4, np.float32), np.ones(3, np.int16)).graph
    fixes = {hit.fix for hit in Policy(forbid="to:float64").hits(graph)}
    assert fixes == {'out += np.arange(4.0).astype("float32")', 'peak.astype("float32") / offset'}
    fixes = {hit.fix for hit in Policy(widest="float32").hits(graph)}
    assert 'peak.astype("float32") / offset' in fixes
