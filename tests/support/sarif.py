"""Checks of findings as editors read them, and of SARIF logs: the schema, and GitHub's limits."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SCHEMA = Path(__file__).parents[1] / "golden" / "sarif-2.1.0.json"


@cache
def _validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def checked_results(text: str) -> list[Any]:
    """Return the results of a log after checking it.

    The limits are those of GitHub's pages "SARIF support for code scanning" and "SARIF results
    exceed limits": 20 runs, 25,000 results and rules a run, 1,024 characters of a description, 255
    of a name, 10 MB of a compressed file. Each result has a message and a physical location with a
    path and a first line.
    """
    log = json.loads(text)
    assert not [error.message for error in _validator().iter_errors(log)][:3]
    (run,) = log["runs"]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert len(rules) <= 25_000 and len(results) <= 25_000
    assert len(gzip.compress(text.encode())) <= 10 * 1000**2
    for rule in rules:
        assert rule["id"] and len(rule["name"]) <= 255 and rule["help"]["text"]
        for name in ("shortDescription", "fullDescription"):
            assert 0 < len(rule[name]["text"]) <= 1024
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (place,) = result["locations"]
        physical = place["physicalLocation"]
        assert result["message"]["text"] and physical["artifactLocation"]["uri"]
        assert physical["region"]["startLine"] >= 1
    return results


EDITORS = Path(__file__).parents[2] / "docs" / "editors.md"


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """The patterns of the page on editors: VS Code's, that of Vim's errorformat, and Emacs's."""
    page = EDITORS.read_text(encoding="utf-8")
    tasks = json.loads(page.split("```json tasks.json\n")[1].partition("```")[0])
    (task,) = tasks["tasks"]
    (vim,) = re.findall(r"^set errorformat=(.+)$", page, re.M)
    for item, pattern in {"%f": "(.+?)", "%l": r"(\d+)", "%c": r"(\d+)", r"\ %m": " (.+)"}.items():
        vim = vim.replace(item, pattern)
    (emacs,) = re.findall(r'\(graphir "(.+)" 1 2 3 1\)', page)
    emacs = emacs.replace(r"\\(", "(").replace(r"\\)", ")")
    code = task["problemMatcher"]["pattern"]["regexp"]
    return re.compile(code), re.compile(vim), re.compile(emacs)


def concise_lines(text: str) -> list[tuple[str, int, int, str, str]]:
    """Return the file, line, column, code and message of each line, as editors read it."""
    found: list[tuple[str, int, int, str, str]] = []
    for line in text.splitlines():
        code, vim, emacs = (pattern.match(line) for pattern in _patterns())
        assert code and vim and emacs, line
        assert code.groups()[:3] == vim.groups()[:3] == emacs.groups()[:3], line
        file, row, column, rule, message = code.groups()
        assert vim[4] == f"{rule} {message}" and emacs[4] == rule
        found.append((file, int(row), int(column), rule, message))
    return found
