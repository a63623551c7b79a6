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
    """A fitted layer: float32 weights, and their int8 form with a float16 scale per column."""

    weights: Array
    bias: Array
    int8: Array
    scale: Array


@_program
def network(first_layer: Layer, last: Layer, rules: RulesLike) -> Graph:
    """Tell which digit each image shows."""
    g = Graph("digits", rules=rules)
    pixels = g.input("uint8", ("n", 64), name="pixels")
    with g.layer("hidden"):
        x = pixels * g.scalar[DType.bfloat16](1 / 256)
        weights = g.constant(first_layer.int8) * g.constant(first_layer.scale)
        activations = ops.relu(x @ weights + g.constant(first_layer.bias))
    with g.layer("last"):
        weights = g.constant(last.int8) * g.constant(last.scale)
        logits = activations.cast(DType.bfloat16) @ weights + g.constant(last.bias)
    g.output(logits.argmax(axis=1))
    return g


def _network_deployed() -> str:
    random = np.random.default_rng(0)
    first_layer, last = _fit(random, *_noisy_digits(random, 2000))
    graph = network(first_layer, last, "max")
    report = cast_report(graph).only(kind="implicit")
    lossy = report.only(exact=False)
    return f"""\
{_heading("A network in five dtypes: which casts does nobody see, and what do they cost?")}
A small float32 network is fitted to 2000 noisy 8x8 images of digits, then deployed with uint8
pixels, int8 weights with float16 scales, bfloat16 activations, float32 bias and logits:

{_LISTINGS["network"]}

{len(report)} casts that the program implies, by the rules of MAX:

{_indent(_table(report))}

{len(lossy)} of them can lose something (beside each the simplest value that does not survive):

{_indent(_losses(lossy))}

Under max_strict, which allows only what is exact, the same program is refused:

{_indent(_refusal(first_layer, last))}

Accuracy on 1000 other images:

{_indent(_accuracy(graph, first_layer, last, *_noisy_digits(random, 1000)))}"""


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


def _losses(lossy: CastReport) -> str:
    rows = [
        (
            f"{row.location.file}:{row.location.line}",
            f"{row.operand} of {row.op}: {row.source} has {row.witness}, {row.target} has not",
        )
        for row in lossy
    ]
    return "\n".join(aligned(rows))


def _refusal(first_layer: Layer, last: Layer) -> str:
    try:
        network(first_layer, last, "max_strict")
    except GraphirError as error:
        return textwrap.fill(str(error), WIDTH, break_long_words=False, break_on_hyphens=False)
    raise AssertionError("max_strict refuses float16 with bfloat16")


def _accuracy(graph: Graph, first_layer: Layer, last: Layer, images: Array, labels: Array) -> str:
    reference = _float32_labels(first_layer, last, images)
    labels_deployed = execute(graph, pixels=images)
    rows = [
        ("float32 network", f"{np.mean(reference == labels):6.1%}"),
        ("deployed graph", f"{np.mean(labels_deployed == labels):6.1%}"),
        ("the same label", f"{np.mean(labels_deployed == reference):6.1%}"),
    ]
    return "\n".join(aligned(rows))


# -- data, and a fit in closed form

# Each digit is 8 rows of 8 pixels, a byte a row.
_GLYPHS = (
    "3c666e7e76663c00",
    "1838181818187e00",
    "3c66060c18307e00",
    "3c66061c06663c00",
    "0c1c3c6c7e0c0c00",
    "7e607c0606663c00",
    "1c30607c66663c00",
    "7e060c1818303000",
    "3c66663c66663c00",
    "3c66663e060c3800",
)


def _noisy_digits(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return shifted, noisy uint8 images [count, 64] and their labels [count]."""
    glyphs = np.array([list(bytes.fromhex(glyph)) for glyph in _GLYPHS], np.uint8)
    templates = np.unpackbits(glyphs, axis=1).reshape(10, 8, 8).astype(np.float64)
    labels = random.integers(0, 10, count)
    shifts = random.integers(-1, 2, (count, 2))
    clean = np.stack(
        [np.roll(templates[k], s, (0, 1)) for k, s in zip(labels, shifts, strict=True)]
    )
    noisy = 150 * clean + random.normal(50, 32, clean.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8).reshape(count, 64), labels


def _fit(random: np.random.Generator, images: Array, labels: Array) -> tuple[Layer, Layer]:
    """Fit two layers: random features, then ridge regression on one-hot labels in closed form."""
    x = images / 256
    weights, bias = random.normal(0, 0.5, (64, 128)), random.normal(0, 0.5, 128)
    features = np.maximum((x - x.mean()) @ weights + bias, 0)
    first_layer = _layer(weights, bias - x.mean() * weights.sum(axis=0))
    inputs = np.hstack([features, np.ones((len(x), 1))])
    solution = np.linalg.solve(inputs.T @ inputs + 10 * np.eye(129), inputs.T @ np.eye(10)[labels])
    return first_layer, _layer(solution[:-1], solution[-1])


def _layer(weights: Array, bias: Array) -> Layer:
    scale = (np.abs(weights).max(axis=0) / 127).astype(np.float16)
    int8 = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return Layer(weights.astype(np.float32), bias.astype(np.float32), int8, scale)


def _float32_labels(first_layer: Layer, last: Layer, images: Array) -> Array:
    x = images.astype(np.float32) / np.float32(256)
    features = np.maximum(x @ first_layer.weights + first_layer.bias, np.float32(0))
    return np.argmax(features @ last.weights + last.bias, axis=1)


# -- layout


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
