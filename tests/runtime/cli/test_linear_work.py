"""Every command in every format does work in proportion to its input: counted, never timed."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from graphir.drawing.formats import GRAPH_FORMATS, LATTICE_FORMATS
from graphir.passes.reports import REPORT_FORMATS
from graphir.rule_reports.tables import FORMATS
from graphir.runtime.cli.main import main
from tests.support.scaling import PROGRAMS
from tests.support.work import Work, count_work

DOUBLING = 2.2
"""The most times as much work that an input of twice the size may need."""

INPUTS = "the inputs of the program"

COMMANDS: dict[str, list[str]] = {
    **{f"casts {name}": ["casts", "--format", name] for name in REPORT_FORMATS},
    # The other formats write an audit as they write the casts.
    **{f"audit {name}": ["audit", "--format", name, INPUTS] for name in ("text", "json")},
    **{f"draw {name}": ["draw", "--format", name] for name in GRAPH_FORMATS},
    "casts against": ["casts", "--against", "jax"],
    "audit --no-blame": ["audit", "--no-blame", INPUTS],
    "export python": ["export", "--to", "python"],
    "export stablehlo": ["export", "--to", "stablehlo"],
    "lower": ["lower"],
    "run": ["run", INPUTS],
    "plan": ["plan"],
    "plan of inputs": ["plan", INPUTS],
    "diff": ["diff", "jax"],
    "diff json": ["diff", "jax", "--format", "json"],
}


def arguments(command: str, program: str, n: int, folder: Path) -> list[str]:
    """The command line on a program of a size: in a script, or in a file for `diff`."""
    graph = PROGRAMS[program](n)
    name, *rest = COMMANDS[command]
    if name == "diff":
        path = str(folder / f"{program}_{n}.gir")
        graph.save(path)
    else:
        script = folder / f"{program}_{n}.py"
        script.write_text(f"from tests.support.scaling import {program}\nbuild = {program}({n})\n")
        path = f"{script}:build"
    inputs: list[str] = []
    for symbol in graph.inputs if INPUTS in rest else ():
        shape = tuple(dim if isinstance(dim, int) else 3 for dim in symbol.shape)
        file = folder / f"{symbol.dtype}_{len(shape)}_{shape[0]}.npy"
        np.save(file, np.full(shape, 257, symbol.dtype.to_numpy()))
        inputs += ["--input", str(file)]
    names = {
        name
        for x in graph.inputs
        for dim in x.shape
        if not isinstance(dim, int)
        for name in dim.names()
    }
    sizes = [part for name_ in sorted(names) for part in ("--size", f"{name_}=3")]
    options = [option for option in rest if option != INPUTS]
    return [name, path, *options, *inputs, *(sizes if name == "export" else ())]


def is_linear(works: list[Work]) -> bool:
    return all(
        after <= DOUBLING * before + 500
        for less, more in pairwise(works)
        for before, after in zip(less, more, strict=True)
    )


def check(measure: Callable[[], list[Work]], what: str) -> list[Work]:
    """Assert that work grows linearly; measured again if a cache that was full was emptied."""
    works = measure()
    if not is_linear(works):
        works = measure()
    assert is_linear(works), (what, works)
    return works


def work_of(argv: list[str]) -> Work:
    return count_work(lambda: main(argv))


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_on_graphs(command: str, program: str, tmp_path: Path) -> None:
    if COMMANDS[command][0] == "draw" or "html" in command:
        if program not in ("uses", "long_names"):
            pytest.skip("graphs that are folded alike are drawn in the same work")
        start = 450  # where pictures are folded: layouts of smaller graphs are not linear
    else:
        # A call of some thousand characters is quoted at each operand; a longer one is not.
        start = 1400 if program == "long_call" else 48
    main(arguments(command, program, 3, tmp_path))  # what is imported and cached is not counted
    sizes = (start, 2 * start)
    asked = [arguments(command, program, n, tmp_path) for n in sizes]
    works = check(lambda: list(map(work_of, asked)), f"{command} of {program}")
    assert works[-1].calls > 1000


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", [*LATTICE_FORMATS, "laws"])
def test_commands_on_lattices(command: str, tmp_path: Path) -> None:
    works: list[Work] = []
    for n in (4, 100, 200, 400):
        path = tmp_path / f"{n}.json"
        path.write_text(json.dumps({f"a{i}": [f"a{i + 1}"] for i in range(n)}), encoding="utf-8")
        argv = ["laws"] if command == "laws" else ["lattice", "--format", command]
        works.append(count_work(lambda argv=argv, path=path: main([*argv, str(path)])))
    if command == "laws":  # of all pairs
        works = [Work(*(int(count**0.5) for count in work)) for work in works]
    check(lambda: works[1:], command)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rules", ["max", "jax", "torch"])
def test_commands_on_operands(rules: str) -> None:
    def promote(n: int) -> Work:
        return count_work(lambda: main(["promote", *["int16", "float32"] * n, "--rules", rules]))

    promote(1)
    check(lambda: [promote(n) for n in (50, 100, 200)], "promote")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMATS)
def test_tables_do_the_same_work_each_time(name: str) -> None:
    main(["table", "--format", name])
    first, second = (count_work(lambda: main(["table", "--format", name])) for _ in range(2))
    assert first == second
