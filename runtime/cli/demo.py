"""`graphir demo`: the answer to the project's question, then a small network in mixed dtypes.

The demo needs only the core dependencies, generates its data, and prints the same text every time.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Graph, GraphirError, PromotionRules, ops, rule_sets, rules
from graphir.passes import CastReport, cast_report, implicit_cast
from graphir.promotion import RulesLike
from graphir.rule_reports.explanation import reason
from graphir.rule_reports.tables import aligned
from graphir.runtime.execution import execute

Array = NDArray[Any]
Build = TypeVar("Build", bound=Callable[..., Graph])

WIDTH = 112
_LISTINGS: dict[str, str] = {}


def demo() -> str:
    """Return the output of `graphir demo`, at most 120 columns wide."""
    return f"{_question_answered()}\n\n{_network_deployed()}"


def _program(build: Build) -> Build:
    """Decorator: store a function's numbered source, and make it one of a user's file demo.py."""
    lines, first = inspect.getsourcelines(build)
    listing = [f"  {first + i:3} | {line.rstrip()}" for i, line in enumerate(lines)]
    _LISTINGS[build.__name__] = "\n".join(listing[1:])  # without the decorator
    code = cast(FunctionType, build).__code__.replace(co_filename="demo.py")
    return cast(Build, FunctionType(code, {**globals(), "__name__": "demo"}))


# -- the question


@_program
def question() -> Graph:
    """Add an int16 and a float32."""
    g = Graph("question")
    x = g.scalar[DType.int16](1)
    y = g.scalar[DType.float32](1.0)
    g.output(x + y)  # what dtype does this have?!
    return g


def _question_answered() -> str:
    graph = question()
    result = execute(graph)
    verdicts = "\n".join(aligned([_verdict(each) for each in rule_sets()]))
    return f"""\
{_heading("The question: what dtype does int16 + float32 have?")}
A program, of demo.py:

{_LISTINGS["question"]}

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


# -- the network


class Layer(NamedTuple):
    """A quantized layer: int8 weights, a float16 scale per column, and a float32 bias."""

    int8: Array
    scale: Array
    bias: Array


@_program
def network(hidden: Layer, last: Layer, rules: RulesLike) -> Graph:
    """Tell which digit each image shows."""
    g = Graph("digits", rules=rules)
    pixels = g.input("uint8", ("n", 64), name="pixels")
    with g.layer("hidden"):
        x = pixels * g.scalar[DType.bfloat16](1 / 256)
        weights = g.constant(hidden.int8) * g.constant(hidden.scale)
        activations = ops.relu(x @ weights + g.constant(hidden.bias))
    with g.layer("last"):
        weights = g.constant(last.int8) * g.constant(last.scale)
        logits = activations.cast(DType.bfloat16) @ weights + g.constant(last.bias)
    g.output(logits.argmax(axis=1))
    return g


def _network_deployed() -> str:
    random = np.random.default_rng(0)
    layers = _layer(random, 64, 32), _layer(random, 32, 10)
    report = cast_report(network(*layers, "max")).only(kind="implicit")
    lossy = sum(not row.exact for row in report)
    return f"""\
{_heading("A network in five dtypes: which casts does nobody see, and what do they cost?")}
A small network with uint8 pixels, int8 weights with float16 scales, bfloat16 activations, float32
bias and logits:

{_LISTINGS["network"]}

{len(report)} casts that the program implies, by the rules of MAX. {lossy} of them can lose
something, such as the simplest value that does not survive, which is beside each:

{_indent(_table(report))}

Under max_strict, which allows only what is exact, the same program is refused:

{_indent(_refusal(layers))}"""


def _layer(random: np.random.Generator, rows: int, columns: int) -> Layer:
    int8 = random.integers(-127, 128, (rows, columns)).astype(np.int8)
    scale, bias = random.random((2, columns)) / 128
    return Layer(int8, scale.astype(np.float16), bias.astype(np.float32))


def _table(report: CastReport) -> str:
    rows = [
        (
            f"{row.location.file}:{row.location.line}",
            row.location.layer,
            f"{row.operand} of {row.op}",
            str(row.source),
            str(row.target),
            " -> ".join(dtype.short for dtype in row.path),
            "exact" if row.exact else f"loses {row.witness}",
        )
        for row in report
    ]
    return "\n".join(aligned([("line", "layer", "operand", "from", "to", "path", "loss"), *rows]))


def _refusal(layers: tuple[Layer, Layer]) -> str:
    try:
        network(*layers, "max_strict")
    except GraphirError as error:
        return textwrap.fill(str(error), WIDTH, break_long_words=False, break_on_hyphens=False)
    raise AssertionError("max_strict refuses float16 with bfloat16")


# -- layout


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
