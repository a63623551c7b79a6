"""`graphir demo`: the answer to the project's question, the same text every time."""

from __future__ import annotations

import inspect
import textwrap
from types import FunctionType

from graphir.passes import implicit_cast
from graphir.public import DType, Graph, GraphirError, PromotionRules, rule_sets, rules
from graphir.rule_reports.explanation import reason
from graphir.rule_reports.tables import aligned
from graphir.runtime.program.program import execute


def question() -> Graph:
    """Add an int16 and a float32."""
    g = Graph("question")
    x = g.scalar[DType.int16](1)
    y = g.scalar[DType.float32](1.0)
    g.output(x + y)  # what dtype does this have?!
    return g


def demo() -> str:
    """Return the output of `graphir demo`, at most 120 columns wide."""
    lines, first = inspect.getsourcelines(question)
    listing = "\n".join(f"  {first + i:3} | {line.rstrip()}" for i, line in enumerate(lines))
    code = question.__code__.replace(co_filename="demo.py")  # as if it were of a user's file
    graph = FunctionType(code, {**globals(), "__name__": "demo"})()
    result = execute(graph)
    verdicts = "\n".join(aligned([_verdict(each) for each in rule_sets()]))
    title = "The question: what dtype does int16 + float32 have?"
    return f"""\
{title}
{"=" * len(title)}

A program, of demo.py:

{listing}

The graph that it builds. The sum has its dtype at once, by the rules of MAX:

{_indent(str(graph))}

After implicit_cast. The conversion is an op now, and says where, why and by which rule:

{_indent(str(implicit_cast(graph)))}

Run: {result} ({result.dtype}). The cast explained:

{_indent(str(rules("max").explain("int16", "float32")))}

The path is the reason; the conversion itself is one step, rounded once if at all.
What every registered rule set says of int16 + float32:

{_indent(verdicts)}"""


def _verdict(each: PromotionRules) -> tuple[str, str]:
    try:
        return each.name, str(each.promote("int16", "float32"))
    except GraphirError as error:
        return each.name, textwrap.shorten(f"an error: {reason(error)}", 90, placeholder=" ...")


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
