"""The command line about lattices: laws, and pictures by name, by rule set and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphir import DType, Lattice, lattice, lattices, laws
from graphir.drawing.formats import LATTICE_FORMATS
from graphir.dtype_lattices.order import LAWS
from graphir.rule_reports.laws import LAWS as ALL_LAWS
from tests.support.commands import cli, refused
from tests.support.pictures import Picture
from tests.support.tables import every


def written(folder: Path, content: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# -- laws


@every("name", lattices())
def test_laws_gives_status_0_where_those_of_a_join_hold_and_1_where_not(name: str):
    found = laws(lattice(name))
    status, out, err = cli("laws", name)
    assert (status, err) == (1 if {one.law for one in found} & {*LAWS} else 0, "")
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    asked = ALL_LAWS if any(isinstance(node, DType) for node in lattice(name)) else LAWS
    assert list(lines) == [f"lattice {name}", "cycles", *asked]
    for law in asked:
        count = len([one for one in found if one.law == law])
        assert lines[law].split()[0] == (str(count) if count else "holds")
    assert lines["cycles"] == "none"


def test_the_lawful_ones_are_those_that_jep_9407_calls_lattices():
    lawful = {name for name in lattices() if cli("laws", name, "--law", "join")[0] == 0}
    assert lawful == {"jep_python", "jep_scalar_types_signed_int", "jep_jax_final", "jax_doc"}


def test_laws_gives_the_smallest_counterexample():
    out = cli("laws", "jep_not_lattice_right")[1]
    assert "existence: 1 pair: C and D have no upper bound" in out
    assert "uniqueness: 1 pair: A and B have several minimal upper bounds" in out
    assert "associativity: 8 triples; the first: (A v B) v C = undefined, A v (B v C) = C" in out


def test_laws_lists_all_violations_if_asked():
    out = cli("laws", "jep_option2", "--all")[1]
    found = laws(lattice("jep_option2"))
    assert len(found) > 1
    assert [line.strip() for line in out.splitlines() if line.startswith("  ")] == [
        one.finding for one in found
    ]


def test_laws_of_a_file(tmp_path: Path):
    path = written(tmp_path, {"name": "own", "edges": {"a": ["b", "c"], "b": ["c"], "d": []}})
    status, out, _ = cli("laws", path)
    assert status == 1
    assert out.startswith("lattice own: 4 nodes, 3 edges\ncycles: none\nexistence: 3 pairs; ")


def test_a_cycle_is_a_finding(tmp_path: Path):
    status, out, err = cli("laws", written(tmp_path, {"a": ["int8"], "int8": ["a"]}))
    assert (status, err) == (1, "")
    assert out in (
        "cycles: a < int8 < a, so it is no order\n",
        "cycles: int8 < a < int8, so it is no order\n",
    )


# -- what is refused


@pytest.mark.parametrize("command", ["laws", "lattice"])
def test_bad_names_and_bad_files(command: str, tmp_path: Path):
    assert "no lattice is named ''" in refused(2, command, "")
    assert "no lattice is named 'jep_option'; use jep_option" in refused(2, command, "jep_option")
    assert "nope.json: No such file" in refused(3, command, tmp_path / "nope.json")
    assert "mine.json: a: must be a list" in refused(3, command, written(tmp_path, {"a": 3}))
    (tmp_path / "bare").write_text("{", encoding="utf-8")
    assert "bare: not JSON" in refused(3, command, tmp_path / "bare")


def test_rules_without_a_lattice_have_no_picture_and_yet_laws():
    assert "rule set 'explicit' has no lattice" in refused(2, "lattice", "explicit")
    assert "rule set explicit: " in cli("laws", "explicit")[1]


def test_laws_needs_a_lattice():
    assert "LATTICE" in refused(2, "laws")


def test_a_lattice_with_a_cycle_has_no_picture(tmp_path: Path):
    path = written(tmp_path, {"a": ["b"], "b": ["a"]})
    assert "mine.json: lattice 'mine' has a cycle" in refused(3, "lattice", path)


def test_a_lattice_is_given_once():
    said = refused(2, "lattice", "jax_doc", "--rules", "max")
    assert "argument --rules: not allowed with argument LATTICE" in said


# -- pictures


@pytest.mark.parametrize("kind", LATTICE_FORMATS)
def test_a_lattice_in_every_format_by_name_by_rules_and_by_file(kind: str, tmp_path: Path):
    for name in lattices():
        expected = LATTICE_FORMATS[kind](lattice(name))
        assert cli("lattice", name, "--format", kind) == (0, expected + "\n", "")
    by_default, by_rules, by_name = (
        cli("lattice", *which, "--format", kind) for which in ((), ("--rules", "max"), ("max",))
    )
    assert by_default == by_rules == by_name
    path = written(tmp_path, {"int8": ["int16"], "uint8": ["int16"]})
    status, out, _ = cli("lattice", path, "--format", kind)
    assert status == 0 and out == LATTICE_FORMATS[kind](Lattice.load(path)) + "\n"


def test_rules_are_drawn_as_svg():
    found = Picture(cli("lattice", "--rules", "max_strict", "--format", "svg")[1])
    assert set(found.boxes) == {str(node) for node in lattice("max_strict")}
