"""Control characters and bidirectional overrides in names reach no terminal, whatever prints them.

Trojan Source (Boucher and Anderson 2021, CVE-2021-42574) is the attack by bidirectional overrides.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphirError, Lattice, explain, laws, runtime
from graphir.passes import Policy, cast_report, diff, draw
from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime.cli.main import main

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\x08\x7f\x9b31m\u202e\u2066\u200f\u2028\ud800\0"
ESCAPED = json.dumps(HOSTILE)[1:-1].replace("\x7f", "\\u007f")
TEXT = f"""graph @"g{ESCAPED}" rules=RULES (%x: int16[n], %y: float32[n]) -> (float32[n]) {{
  %0 = add(%x, %y) : float32[n] loc("f{ESCAPED}.py":1:1 to :9, layer="l{ESCAPED}")
  %1 = divide(%0, %0) : float32[n] loc("f{ESCAPED}.py":2:1 to :9, layer="l{ESCAPED}")
  return %1
}}
"""


def clean(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text)


def hostile(rules: str = "max") -> Graph:
    return Graph.parse(TEXT.replace("RULES", rules))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.gir"
    path.write_text(TEXT.replace("RULES", "max"))
    np.save(tmp_path / "x.npy", np.ones(3, np.int16))
    np.save(tmp_path / "y.npy", np.ones(3, np.float32))
    np.save(tmp_path / "z.npy", np.ones(4, np.float64))
    return str(path)


def test_commands_on_graphs(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(file).parent)
    inputs = ["--input", "x=x.npy", "--input", "y=y.npy"]
    wrong = ["--input", "x=x.npy", "--input", "y=z.npy"]
    commands = [
        ["lower", file],
        ["run", file, *inputs],
        ["run", file, *wrong],
        ["run", file],
        ["plan", file],
        ["plan", file, *inputs],
        ["plan", file, "--ir", "7"],
        ["diff", file, "jax"],
        ["diff", file, "jax_strict"],
        ["diff", file, "jax", "--format", "json"],
        *(["export", file, "--to", to] for to in ("python", "stablehlo", "onnx")),
        *(["draw", file, "--format", form] for form in ("svg", "dot", "mermaid")),
        *(["casts", file, "--format", form] for form in REPORT_FORMATS),
        *(["audit", file, *inputs, "--format", form] for form in REPORT_FORMATS),
        ["audit", file, *wrong],
        ["casts", f"missing{HOSTILE[:-2]}.gir"],
        ["casts", f"missing{HOSTILE[:-2]}.py:f"],
        ["promote", f"int8{HOSTILE[:-1]}", "int8"],
        ["rules", f"r{HOSTILE[:-1]}"],
        ["laws", f"missing{HOSTILE[:-2]}.json"],
    ]
    for command in commands:
        main(command)
        told = capsys.readouterr()
        assert clean(told.out), (command, ascii(told.out))
        assert clean(told.err), (command, ascii(told.err))


def test_commands_on_lattices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c, d = (f"{name}{HOSTILE}" for name in "abcd")
    for number, edges in enumerate(
        [{a: [b, c], b: [d], c: [d]}, {a: [c, d], b: [c, d]}, {a: [b], b: [a]}, {a: []}]
    ):
        for name in ("plain", f"hostile{HOSTILE}"):
            path = tmp_path / f"{number}.json"
            path.write_text(json.dumps({"name": name, "edges": edges}))
            for command in (
                ["laws", str(path)],
                *(["lattice", str(path), "--format", f] for f in ("text", "dot", "mermaid", "svg")),
            ):
                main(command)
                told = capsys.readouterr()
                assert clean(told.out + told.err), (command, ascii(told.out + told.err))


def test_what_python_shows() -> None:
    graph = hostile()
    report, program = cast_report(graph), runtime.Program(graph)
    x, y = np.ones(3, np.int16), np.ones(3, np.float32)
    texts: list[Any] = [
        repr(graph),
        *map(repr, graph.symbols),
        *(f"{one.location} {one.location!r} {one.location.layered}" for one in graph.symbols),
        str(graph),
        graph._repr_html_(),
        str(report),
        repr(report),
        *map(repr, report),
        *(write(report) for write in REPORT_FORMATS.values()),
        *(draw(report, form) for form in ("svg", "dot", "mermaid")),
        repr(program),
        program.explain(x, y),
        str(runtime.audit(graph, x, y)),
        str(diff(graph, "jax")),
        str(diff(graph, "jax_strict")),
        str(explain("int8", "float32")),
    ]
    for text in texts:
        assert clean(str(text)), ascii(str(text))


def test_errors_and_warnings() -> None:
    graph = hostile()
    attempts = [
        lambda: runtime.execute(graph, np.ones(3, np.int16)),
        lambda: runtime.interpret(graph, np.ones(3, np.int16), np.ones(4, np.float32)),
        lambda: graph.output(graph[0]),
        lambda: graph.input("int8", name=HOSTILE),
        lambda: graph.input("int8", (HOSTILE,)),
        lambda: graph.input(f"int8{HOSTILE}"),
        lambda: Graph("g", rules=HOSTILE),
        lambda: bool(graph.outputs[0]),
        lambda: Graph.parse(TEXT.replace("RULES", "jax_strict")),
        lambda: Graph.parse(f'graph @"{HOSTILE}"'),
        lambda: Lattice(HOSTILE, {HOSTILE: [HOSTILE]}),
        lambda: Lattice("l", {"a": [HOSTILE], "b": []}).join("a", "b"),
        lambda: Lattice("l", {"a": [HOSTILE]}).join("a", f"b{HOSTILE}"),
        lambda: laws(HOSTILE),
        lambda: Graph(HOSTILE, policy=Policy(casts="forbid")).policy.check(graph, graph.outputs),
    ]
    for attempt in attempts:
        with pytest.raises((GraphirError, TypeError)) as caught:
            attempt()
        assert clean(str(caught.value)), ascii(str(caught.value))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        Graph("g", policy=Policy(casts="warn")).policy.check(graph, graph.outputs)
    assert warned
    for one in warned:
        assert clean(f"{one.message} {one.filename}")
