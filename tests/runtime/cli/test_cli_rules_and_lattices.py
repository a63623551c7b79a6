"""The command line: laws of rule sets, what one says besides the join, what changes with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphir import DType, Graph, Lattice, PromotionRules, laws, register, rule_sets, rules
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.passes import diff
from graphir.rule_reports.facts import facts
from graphir.rule_reports.laws import LAWS
from tests.support.commands import cli, refused
from tests.support.tables import every, sampled

# -- laws of rule sets


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [each.name for each in rule_sets()])
def test_laws_of_a_rule_set_are_asked_of_the_rule_set(name: str):
    found = laws(rules(name))
    status, out, err = cli("laws", name)
    assert (status, err) == (1 if {one.law for one in found} & {*JOIN_LAWS} else 0, "")
    head, *lines = out.splitlines()
    assert head.startswith(f"rule set {name}: {len(rules(name).dtypes)} dtypes")
    assert [line.split(": ")[0] for line in lines] == list(LAWS)
    for line, law in zip(lines, LAWS, strict=True):
        broken = [one for one in found if one.law == law]
        assert line.split()[1] == (str(len(broken)) if broken else "holds")
        assert not broken or line.endswith(broken[0].finding)


def test_laws_of_max_strict_are_not_those_of_its_lattice():
    assert "existence: 77 pairs; the first: int8 and uint8" in cli("laws", "max_strict")[1]
    path = rules("max_strict").lattice
    assert path is not None and path.laws() == []


def test_weak_dtypes_are_said_not_to_be_asked():
    assert "4 dtypes, 3 of them weak and not asked about width and" in cli("laws", "python")[1]
    assert "weak" not in cli("laws", "max")[1]


def test_some_laws_alone_may_be_asked():
    assert cli("laws", "max")[0] == 0 and "exactness: 96 pairs" in cli("laws", "max")[1]
    assert cli("laws", "max", "--law", "exactness")[0] == 1
    assert cli("laws", "numpy")[0] == 1
    status, out, _ = cli("laws", "max", "--law", "join")
    assert status == 0 and [line.split(": ")[0] for line in out.splitlines()[1:]] == [*JOIN_LAWS]
    status, out, _ = cli("laws", "max", "--law", "width", "--law", "idempotence")
    assert status == 1 and [line.split(":")[0] for line in out.splitlines()[1:]] == [
        *("idempotence", "width"),
    ]
    assert cli("laws", "max", "--law", "idempotence")[0] == 0
    assert "invalid choice: 'beauty'" in refused(2, "laws", "max", "--law", "beauty")


def test_all_counterexamples_of_one_law():
    out = cli("laws", "max", "--law", "exactness", "--all")[1]
    expected = [one.finding for one in laws(rules("max")) if one.law == "exactness"]
    assert [line.strip() for line in out.splitlines() if line.startswith("  ")] == expected
    assert len(expected) > 50


def test_laws_of_a_rule_set_of_ones_own():
    register(PromotionRules.from_lattice(Lattice("own", {"int8": ["int16", "float16"]})))
    status, out, _ = cli("laws", "own", "--law", "join")
    assert status == 1 and "existence: 1 pair: int16 and float16 do not promote under 'own'" in out


# -- rules


@sampled(2)
@every("name", [each.name for each in rule_sets()])
def test_rules_tells_what_one_says_besides_the_join(name: str):
    status, out, err = cli("rules", name)
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    chosen = rules(name)
    assert head == f"{name}: {chosen.doc}"
    width = len(max((fact.subject for fact in facts(chosen)), key=len))
    told = {line[:width].rstrip(): line[width:].strip() for line in lines}
    assert told.pop("source") == (chosen.source or "-")
    assert told.pop("dtypes").split() == [str(d) for d in DType if d in chosen.dtypes]
    assert told == dict(facts(chosen))


def test_an_unknown_rule_set():
    assert "no rule set is named 'numpi'" in refused(2, "rules", "numpi")


# -- diff


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    g = Graph("saved")
    x, y = g.input("int8", ("n",), name="x"), g.input("uint64", ("n",), name="y")
    g.output((x + y) * 2, x / 3)
    path = tmp_path / "saved.gir"
    g.save(path)
    return path


def test_diff_of_two_rule_sets():
    assert cli("diff", "max", "jax") == (1, f"{diff('max', 'jax')}\n", "")
    assert cli("diff", "max", "jax", "--format", "json")[1] == f"{diff('max', 'jax').to_json()}\n"
    assert cli("diff", "max", "max")[0] == 0
    assert cli("diff", "numpy", "cupy")[0] == 1  # in ops, though in no pair


def test_diff_of_a_graph_in_a_script(tmp_path: Path, saved: Path):
    script = tmp_path / "script.py"
    script.write_text(f"from graphir import Graph\ng = Graph.load({str(saved)!r})\n", "utf-8")
    assert cli("diff", f"{script}:g", "jax")[:2] == cli("diff", saved, "jax")[:2]


def test_diff_of_a_graph_and_rules(saved: Path):
    expected = diff(Graph.load(saved), "jax")
    assert len(expected) == 3
    assert cli("diff", saved, "jax") == (1, f"{expected}\n", "")
    found = json.loads(cli("diff", saved, "jax", "--format", "json")[1])
    assert found == json.loads(expected.to_json())
    assert cli("diff", saved, "max")[0] == 0


def test_diff_of_a_graph_under_two_rule_sets(saved: Path):
    expected = diff(Graph.load(saved), "jax", "max_strict")
    assert cli("diff", saved, "jax", "max_strict") == (1, f"{expected}\n", "")


def test_what_diff_refuses(saved: Path, tmp_path: Path):
    assert "no rule set is named 'jacks'" in refused(2, "diff", saved, "jacks")
    assert "no rule set is named 'nope'" in refused(2, "diff", "nope", "jax")
    assert "nope.gir: No such file" in refused(3, "diff", tmp_path / "nope.gir", "jax")
    assert "got three" in refused(3, "diff", "max", "jax", "python")
    assert "required: RULES" in refused(2, "diff", "max")
    lowered = tmp_path / "lowered.gir"
    assert cli("lower", saved, "--output", lowered)[0] == 0
    assert "is explicit: what 'max' decided" in refused(3, "diff", lowered, "jax")
