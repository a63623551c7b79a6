"""The report as JSON and as SARIF: by their schemas, and the same as the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from graphir import Graph, Location
from graphir.passes import CastReport, cast_report
from graphir.passes.analysis.policies.ignores import CODES
from graphir.passes.reports import REPORT_FORMATS, phrases
from graphir.passes.reports.json_ import report_json, schema
from graphir.passes.reports.sarif import SEVERITIES, report_sarif
from tests.pages import ROOT
from tests.support.reports import REPORTS, program, source_of
from tests.support.sarif import checked_results, concise_lines


@pytest.fixture(params=list(REPORTS))
def report(request: pytest.FixtureRequest) -> CastReport:
    return REPORTS[request.param]()


# -- JSON


def walked(value: Any, described: Any, defs: Any, path: str = "") -> None:
    """A small reading of a schema: types, properties, consts, enums, references and items."""
    if "$ref" in described:
        described = defs[described["$ref"].rpartition("/")[2]]
    if "oneOf" in described:
        described = described["oneOf"][value is None]
        return walked(value, described, defs, path)
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    kinds |= {"number": (int, float), "null": type(None)}
    if "type" in described:
        named = described["type"]
        allowed = [named] if isinstance(named, str) else named
        assert any(isinstance(value, kinds[one]) for one in allowed), (path, value)
    assert "const" not in described or value == described["const"], path
    assert "enum" not in described or value in described["enum"], path
    if isinstance(value, dict) and "properties" in described:
        assert set(described["required"]) <= set(value) <= set(described["properties"]), path
        for name, one in value.items():
            walked(one, described["properties"][name], defs, f"{path}/{name}")
    for one in value if isinstance(value, list) else ():
        walked(one, described["items"], defs, f"{path}[]")
    return None


def test_json_is_as_its_schema_says(report: CastReport) -> None:
    document = json.loads(report_json(report))
    walked(document, schema(), schema()["$defs"])
    assert len(document["casts"]) == len(report.sites)
    assert document["version"] == 3


def test_json_has_what_the_rows_have(report: CastReport) -> None:
    document = json.loads(report_json(report))
    sites = report.sites
    assert document["casts"] == [json.loads(json.dumps(site.to_json())) for site in sites]
    for entry, site in zip(document["casts"], sites, strict=True):
        own = json.loads(json.dumps(site.row.to_json()))
        assert {name for name in own if own[name] != entry[name]} <= {"times", "uses"}
    assert document["outputs"] == [json.loads(json.dumps(one.to_json())) for one in report.outputs]


def test_json_validates(report: CastReport) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    document = json.loads(report_json(report))
    assert not list(validator.iter_errors(document))
    if document["casts"]:
        document["casts"][0]["loss"]["kinds"] = ["everything"]
        assert list(validator.iter_errors(document))


def described(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.get("properties", {}).items():
            yield name, one
        for one in value.values():
            yield from described(one)


def test_every_field_of_the_schema_is_described() -> None:
    found = list(described(schema()))
    assert len(found) > 40
    for name, one in found:
        assert "$ref" in one or one["description"].endswith("."), name
    assert all("description" in one for one in schema()["$defs"].values())


# -- SARIF


def results(report: CastReport) -> list[Any]:
    return json.loads(report_sarif(report))["runs"][0]["results"]


def test_sarif_validates_against_the_official_schema(report: CastReport) -> None:
    assert len(checked_results(report_sarif(report))) == len(report.only(exact=False).sites)
    assert len(checked_results(report_sarif(report.gated(["any"])))) >= len(results(report))
    log = json.loads(report_sarif(report))
    log["runs"][0]["results"] = [{"level": "bad"}]
    with pytest.raises(AssertionError):
        checked_results(json.dumps(log))


def test_sarif_has_a_result_for_each_lossy_row(report: CastReport) -> None:
    log = json.loads(report_sarif(report))
    (run,) = log["runs"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    lossy = [site for site in report.sites if not site.row.exact]
    for result, site in zip(run["results"], lossy, strict=True):
        row = site.row
        assert ids[result["ruleIndex"]] == result["ruleId"] == row.code
        implicit = row.kind in ("implicit", "literal", "assignment")
        assert result["level"] == (SEVERITIES[phrases.level(row)] if implicit else "note")
        assert ("it follows from" in result["message"]["text"]) == (row.cause is not None)
        assert ("also at" in result["message"]["text"]) == (len(site.places) > 1)
    prints = [result["partialFingerprints"]["cast/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_lines_and_commands_of_workflows_are_the_results(report: CastReport) -> None:
    lines = concise_lines(REPORT_FORMATS["concise"](report))
    commands = REPORT_FORMATS["github"](report).splitlines()
    for result, line, command in zip(results(report), lines, commands, strict=True):
        text = re.sub(r"\\([\\\[\]])", r"\1", result["message"]["text"])
        file, row, column, code, message = line
        assert (code, message) == (result["ruleId"], text)
        head, _, said = command.partition("::")[2].partition("::")
        facts = dict(pair.split("=") for pair in head.partition(" ")[2].split(","))
        assert facts == {"file": file, "line": str(row), "col": str(column), "title": code}
        assert said.replace("%25", "%") == text


def test_commands_of_workflows_escape_as_github_does() -> None:
    graph = Graph("escaped", rules="jax")
    with graph.at(Location.at("a,b:c%.py", 3)):
        graph.output(graph.input("int32", "n") * graph.input("bfloat16", "n"))
    (command,) = REPORT_FORMATS["github"](cast_report(graph)).splitlines()
    assert command.startswith("::warning file=a%2Cb%3Ac%25.py,line=3,col=1,title=cast/precision::")


def test_each_rule_has_its_place_on_the_page() -> None:
    (run,) = json.loads(report_sarif(REPORTS["image"]()))["runs"]
    rules = {rule["id"]: rule["helpUri"] for rule in run["tool"]["driver"]["rules"]}
    page = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")
    codes = re.findall(r"^## (\w+/\w+)$", page, re.M)
    assert sorted(rules) == sorted(codes) == sorted((*CODES, "ignore/unused"))
    for code, uri in rules.items():
        assert uri == f"graphir:docs/codes.md#{code.replace('/', '')}"


def test_sarif_marks_the_operand() -> None:
    report = REPORTS["image"]().gated(["any"])
    silent = [row for row in report if row.conversion.is_silent or not row.exact]
    for result, row in zip(results(report), silent, strict=True):
        lines = source_of(row)
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"] == {
            "uri": "examples/image_pipeline.py",
            "uriBaseId": "%SRCROOT%",
        }
        assert " ".join(cut(lines, physical["region"]).split()).strip("()") == row.text.strip("()")


def cut(lines: list[str], place: dict[str, int]) -> str:
    assert place["startLine"] == place["endLine"]
    return lines[place["startLine"] - 1][place["startColumn"] - 1 : place["endColumn"] - 1]


def test_fingerprints_stay_while_lines_move() -> None:
    text = "def build(g, x, y):\n    g.output(x * y)\n"
    moved = "# a line more\n\n" + text
    found: list[str] = []
    for version in (text, moved):
        graph = Graph("moving")
        x, y = graph.input("int16", "n"), graph.input("float16", "n")
        program(version, "moving.py")["build"](graph, x, y)
        (result,) = results(cast_report(graph))
        found.append(result["partialFingerprints"]["cast/v1"])
        found.append(str(result["locations"][0]["physicalLocation"]["region"]["startLine"]))
    assert found[0] == found[2] and (found[1], found[3]) == ("2", "4")
