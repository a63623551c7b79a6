"""Reports whose names and texts all come from outside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphir import Graph, rules
from graphir.passes import CastReport, cast_report
from graphir.passes.analysis.casts import OutputError
from graphir.promotion import registry
from tests.support.reports import program

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "end of a script": "</script></style></title><script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "comment": "<!-- --!> ]]> <![CDATA[",
    "entity": "&lt;b&gt; &amp; &#60;i&#62;",
    "markdown": "`` ` | [a](javascript:alert(1)) ![b](c) **d** <b>e</b> @someone #1 | ```",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m",
    "control": "a\x02b\x01c\x08d\x7fe\u2028f\u202eg\ufefeh",
    "newlines": "one\ntwo\r\nthree\rfour\n\n# five\n- six",
    "long": "y" * 10_000,
    "long ticks": "`" * 10_000,
    "surrogate": "\udc80\ud800",
    "percent": "100% %s {} %SRCROOT% a:b//c ../../d e?f#g",
    "empty": "",
    "template": "{{ 7 * 7 }} ${7 * 7}",
}


def name_rules(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rule set be found under a name."""
    monkeypatch.setitem(registry._REGISTRY, text, rules("max"))


def report_of(text: str) -> CastReport:
    """A report in which everything that has a name from outside has this one."""
    graph = Graph("g")
    graph.name = text
    file = f"dir/{text}.py"
    comment = "".join(c if c.isprintable() else "?" for c in text)
    source = f"def build(x, w):\n    y = x * w  # {comment}\n    return y + x\n"
    x, w = graph.input("int16", "n"), graph.input("float16", "n")
    built = program(source, file)["build"]
    with graph.layer("layer"):
        graph.output(built(x, w))
    report = cast_report(graph)
    for row in report:
        assert row.user is not None  # is found while the rule is known
        row.location.layer = text
        row.location.place  # noqa: B018 -- is read while the file is known
        row.conversion = replace(row.conversion, rule=text)
    outputs = [OutputError(text, text, 3, 1, 0, 0.5, 0.5, 0.5, {})]
    report = report.compared("max_strict")
    report.outputs = tuple(outputs)
    return report
