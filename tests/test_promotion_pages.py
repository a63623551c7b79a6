"""The pages of the rule sets are as their command writes them, and say what golden tables say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.build_promotion import build
from graphir import DType, rule_sets
from tests import GOLDEN, ROOT
from tests.peers.table import page as deviations
from tests.support.tables import cells, every

FOLDER = ROOT / "docs" / "promotion"
SCHEMA = "rule-sets.schema.json"
DOCUMENT: dict[str, Any] = json.loads((FOLDER / "rule-sets.json").read_text(encoding="utf-8"))
RULES = {entry["name"]: entry for entry in DOCUMENT["rule_sets"]}
SHORT = {dtype.short: str(dtype) for dtype in DType}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def files(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != SCHEMA]
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in paths}


def test_the_pages_are_as_their_command_writes_them(tmp_path: Path) -> None:
    build(tmp_path)
    anew, here = files(tmp_path), files(FOLDER)
    assert anew.keys() == here.keys(), "python -m docs.build_promotion"
    assert not [path for path in anew if anew[path] != here[path]], "python -m docs.build_promotion"


def test_each_rule_set_has_a_page_and_a_picture() -> None:
    assert RULES.keys() == {each.name for each in rule_sets()}
    for each in rule_sets():
        text = (FOLDER / f"{each.name}.md").read_text(encoding="utf-8")
        assert f"(pictures/{each.name}.svg)" in text
        assert (f"(pictures/{each.name}-lattice.svg)" in text) == (each.lattice is not None)
    assert sum(len(text) for text in files(FOLDER).values()) < 1_600_000


# -- the data


def test_the_data_are_as_their_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((FOLDER / SCHEMA).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(DOCUMENT))
    broken = json.loads(json.dumps(DOCUMENT))
    broken["rule_sets"][0]["pairs"]["int8"]["int16"] = "int7"
    del broken["rule_sets"][1]["laws"]
    assert len(list(validator.iter_errors(broken))) == 2


PRINTED = {
    "jax": ("jax", "jax"),
    "jax_strict": ("jax", "strict"),
    "jax_lax": ("jax", "lax"),
    "jax_2020": ("jax", "2020"),
    "tensorflow": ("tensorflow", "add"),
    "tf_all": ("tensorflow", "all"),
    "tf_safe": ("tensorflow", "safe"),
}


@every("name", PRINTED)
def test_pairs_are_those_of_the_printed_table(name: str) -> None:
    file, table = PRINTED[name]
    printed = cells(golden(file)[table])
    assert len(printed) >= 15**2
    if name == "jax_lax":  # lax.add takes no bools, but two bools have a common dtype
        assert printed.pop(("bool", "bool")) == "-"
    for (row, column), cell in printed.items():
        assert RULES[name]["pairs"][SHORT[row]][SHORT[column]] == SHORT.get(cell), (row, column)


def unlike(name: str) -> dict[tuple[str, str], str | None]:
    """The measured cells of a golden table that the pages do not have."""
    measured, rows = golden(name)["promotion"], RULES[name]["pairs"]
    pairs = {(a, b): measured[a][b] for a in measured for b in measured if {a, b} <= {*rows}}
    assert len(pairs) >= 14**2
    return {(a, b): cell for (a, b), cell in pairs.items() if rows[a][b] != cell}


def test_pairs_are_those_measured() -> None:
    assert unlike("numpy") == {}
    # torch.add has no kernel of wide unsigned ints, and graphir no complex32; bfloat16 beside a
    # complex number has been no complex64 since 2.14.
    cells_unlike = unlike("torch")
    assert {*cells_unlike.values()} == {None, "complex32", "complex64"} and len(cells_unlike) == 13


def test_pairs_of_max_are_those_printed_and_measured() -> None:
    printed, today = golden("max")["table"], golden("max_today")["add"]
    for wrong in ("bool` | `index", "bool` | `address", "int8` | `index", "int8` | `address"):
        assert f"\n| `{wrong}` |" in (FOLDER / "max.md").read_text(encoding="utf-8")
    rows = RULES["max"]["pairs"]
    assert len([1 for a in rows for b in rows if rows[a][b] != printed[a][b]]) == 4  # misprints
    strict = RULES["max_strict"]["pairs"]
    for a, b in ((a, b) for a in strict for b in strict):
        answer = today[f"{a}|{b}"]
        assert strict[a][b] == (None if answer.startswith("ERROR") else answer)


def test_division_of_ints_is_as_jax_divides_them() -> None:
    printed = cells(golden("jax")["divide"])
    last, wide = RULES["jax"]["facts"]["int / int"].split("; else ")[::-1]
    for dtype in (x for x in DType if x.is_integer and not x.weak and (x.short,) * 2 in printed):
        answer = "float64" if str(dtype) in wide.removeprefix("float64 of ").split() else last
        assert answer == SHORT[printed[dtype.short, dtype.short]], dtype


def test_places_and_sums_are_as_max_was_measured() -> None:
    ops = golden("max_ops")
    letters = dict(zip("abcdefghijklmnopqrstu", ops["dtypes"].split(), strict=True))
    rows = {op: rows for names, rows in ops["alone"].items() for op in names.split()}
    facts = RULES["max_strict"]["facts"]
    assert rows["sum"] == ["".join(letters)] and facts["sum accumulates"] == "its own"
    assert {*rows["argmax"][0]} - {"-"} == {next(x for x in letters if letters[x] == "int64")}
    assert facts["places"].startswith("argmax int64,")


def test_a_value_that_is_lost_is_lost() -> None:
    for entry in RULES.values():
        for loss in entry["losses"]:
            dtype, to = DType(loss["from"]), DType(loss["to"])
            assert not dtype.exact_in(to) and loss["witness"] == str(dtype.witness(to))
            assert any(
                loss["to"] == cell and loss["from"] in (a, b)
                for a, row in entry["pairs"].items()
                for b, cell in row.items()
            )


def test_differences_are_counted_from_both_sides() -> None:
    for name, entry in RULES.items():
        others = RULES.keys() - {name, "explicit"} if name != "explicit" else set()
        assert entry["differences"].keys() == others
        for other, here in entry["differences"].items():
            there = RULES[other]["differences"][name]
            rows, columns = entry["pairs"], RULES[other]["pairs"]
            pairs = [
                (rows[a][b], columns[a][b])
                for a in rows
                if a in columns
                for b in rows
                if b in columns
            ]
            assert here["pairs"] == there["pairs"] == len(pairs)
            assert here["other_dtype"] == there["other_dtype"]
            assert here["refused_here"] == there["refused_there"]
            assert here["other_dtype"] + here["refused_here"] + here["refused_there"] == sum(
                x != y for x, y in pairs
            )


def test_versions_are_those_of_the_golden_tables() -> None:
    versions = {
        "numpy": golden("numpy")["versions"]["numpy"],
        "numpy_legacy": golden("numpy_legacy")["numpy"],
        "torch": golden("torch")["versions"]["torch"],
        "max_strict": golden("max_today")["versions"]["max"],
        "jax": re.findall(r"jax ([\d.]+\d)", golden("jax")["source"])[0],
        "tf_all": re.findall(r"TensorFlow ([\d.]+\d)", golden("tensorflow")["source"])[0],
        "array_api": re.findall(r"strict ([\d.]+\d)", golden("array_api")["source"])[0],
    }
    for name, version in versions.items():
        assert version.startswith(RULES[name]["measured_with"].split()[-1]), name
    for measured in deviations.MEASURED.values():
        assert measured.split()[-1] in deviations.HEAD, measured
    live = {name for name, what in deviations.CHECKED.items() if re.match("the live|NumPy", what)}
    assert deviations.MEASURED.keys() == live
