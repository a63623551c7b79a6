"""Rule sets of measured releases: `jax@0.10`."""

from __future__ import annotations

import pickle

import pytest

from graphir import DType, Graph, GraphError, GraphirError, PromotionRules, ops, rule_sets, rules
from tests.support.tables import every

FIND = PromotionRules.find


@every(
    "name version release",
    [
        ("jax", "0.9.2", "0.10"),
        ("jax", "0.10.2", "0.10"),
        ("jax", "0.11.2", "0.11"),
        ("jax_x32", "0.12.0.1", "0.12"),
        ("jax_lax", "1.0", "0.12"),
        ("numpy", "2.0.0", "2.0"),
        ("numpy", "2.1.3", "2.4"),
        ("numpy", "2.5.5", "2.5"),
        ("torch", "2.13.0+cpu", "2.13"),
        ("torch", "2.15.0", "2.14"),
    ],
)
def test_a_version_has_the_rules_of_a_release(name: str, version: str, release: str) -> None:
    followed = FIND(name).of_release(version)
    assert followed is FIND(f"{name}@{release}") and followed.base_name == name


def test_released_rules_are_named_in_text_pickles_and_errors() -> None:
    old = FIND("jax@0.10")
    graph = Graph("g", rules=old)
    graph.output(graph.input("int8") + 1)
    assert 'rules="jax@0.10"' in str(graph)
    assert Graph.parse(str(graph)).rules is old and pickle.loads(pickle.dumps(graph)).rules is old
    assert pickle.loads(pickle.dumps(old)) is old and old not in rule_sets()
    with pytest.raises(GraphError, match=r"no rule set is named 'jax@0\.9'; use jax@0\.1"):
        FIND("jax@0.9")
    assert rules("max").of_release("26.7") is rules("max")


@every(
    "name op operands old new",
    [
        ("jax", "log2", "i*", "f64", "f*"),
        ("jax", "hypot", "f*,f*", "f64", "f*"),
        ("jax_x32", "log2", "f*", "f32", "f*"),
    ],
)
def test_jax_0_10(name: str, op: str, operands: str, old: str, new: str) -> None:
    def answer(which: PromotionRules) -> DType:
        graph = Graph(rules=which)
        args = [graph.input(DType(one), (2,)) for one in operands.split(",")]
        return ops.CATALOGUE[op](*args).dtype

    assert (answer(FIND(f"{name}@0.10")).short, answer(FIND(name)).short) == (old, new)


@every("release", ["2.0", "2.4", "2.5"])
def test_numpy_since_2_0(release: str) -> None:
    graph = Graph(rules=FIND(f"numpy@{release}"))
    chosen, x = graph.input("bool", (2,)), graph.input("int8", (2,))
    if release == "2.5":
        with pytest.raises(GraphirError, match="300"):
            ops.where(chosen, x, 300)
    else:
        assert ops.where(chosen, x, 300).args[2].attrs["value"] == 44
    assert ops.floor(x).dtype is (DType.float16 if release == "2.0" else DType.int8)
    if release == "2.0":
        with pytest.raises(GraphirError, match="300"):
            ops.clip(x, 0, 300)
    else:
        assert ops.clip(x, 0, 300).dtype is DType.int8


def test_bfloat16_beside_complex_numbers_of_torch() -> None:
    assert FIND("torch@2.13").answer("bfloat16", 1j) is DType.complex64
    assert FIND("torch").answer("bfloat16", 1j) is None
