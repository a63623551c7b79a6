"""Without `implicit_cast`, checkers refuse what targets write: the pass is what makes it valid."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from importlib.util import find_spec
from typing import Any

import pytest

from graphir import Graph, GraphirError
from graphir.runtime.targets import TargetError
from tests.runtime.targets.target_raw import ACCEPTED, CHECKERS, Accepted, joining, mixed, raw
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")


PACKAGES = {"jax": "jax", "stablehlo": "jax", "onnx": "onnxruntime"}
HERE = [name for name in CHECKERS if find_spec(PACKAGES[name])]


@every("target", CHECKERS)
def test_a_checker_is_here(target: str) -> None:
    package = PACKAGES[target]
    pytest.importorskip(package, reason=f"{package} is not installed: nothing checks {target}")
    assert target in HERE


def sixty_four(target: str) -> Any:
    if target == "onnx":
        return nullcontext()
    import jax

    return jax.enable_x64(True)


@every("target, name", [(one, name) for one in HERE for name in joining()])
def test_operands_of_mixed_dtypes_are_refused(target: str, name: str) -> None:
    ask, refused, written = CHECKERS[target], 0, 0
    for graph in mixed(name):
        dtypes = tuple(x.dtype for x in graph.inputs)
        with sixty_four(target), suppress(TargetError):
            assert not ask(graph), (dtypes, "is refused with all casts written")
        with sixty_four(target), raw(target):
            said = said_of(ask, graph)
        if said == "":
            assert explained(target, name, dtypes), (dtypes, "is accepted")
        refused += bool(said)
        written += said is not None
    rows = [x for x in ACCEPTED if target in x.target.split() and name in x.ops.split()]
    assert refused or rows or not written, "the checker refuses nothing"


def said_of(ask: Any, graph: Graph) -> str | None:
    """What the checker says of a graph; None where the target itself has no words for it."""
    try:
        return ask(graph)
    except (GraphirError, KeyError):
        return None


def explained(target: str, name: str, dtypes: Any) -> bool:
    rows = [x for x in ACCEPTED if target in x.target.split() and name in x.ops.split()]
    return any(row.where(dtypes) for row in rows)


CLAIMS = [(row, one) for row in ACCEPTED for one in row.target.split() if one in HERE]


@every("row, target", CLAIMS)
def test_what_is_said_to_be_accepted_is(row: Accepted, target: str) -> None:
    with sixty_four(target), raw(target):
        for name in row.ops.split():
            asked = [x for x in mixed(name) if row.where(tuple(y.dtype for y in x.inputs))]
            assert any(said_of(CHECKERS[target], graph) == "" for graph in asked), name
