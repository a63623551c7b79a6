"""Audits of one program in several dtypes: what each layer would lose, as text and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from graphir.escape import printable
from graphir.passes.reports import phrases
from graphir.passes.reports.json_ import report_json, text
from graphir.passes.reports.terminal import fitted, terminal_width, wrapped

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, OutputError
    from graphir.passes.analysis.casts.layers import LayerTotals

Reports: TypeAlias = "Mapping[str, CastReport]"
"""The audits of one program, by the name of the dtype of all its floats."""


def dtypes_text(reports: Reports) -> str:
    """Return a table of outputs and layers with a column a dtype, then the reports' sentences.

    The parts of the program that were not seen come first, then the notes about it.
    """
    width = terminal_width(sys.stdout)
    lines = fitted([("layer", *reports), *_outputs(reports), *_layers(reports)], width)
    unseen = (line for report in reports.values() for line in phrases.unseen(report)[1:])
    notes = (note for report in reports.values() for note in report.graph.notes)
    heads = dict.fromkeys([*unseen, *notes])
    for name, report in reports.items():
        texts = [f"{name}: {x}" for x in report.sentences if x not in heads]
        lines += [line for x in texts for line in wrapped(x, width)]
    return "\n".join([*(line for head in heads for line in wrapped(head, width)), *lines])


def dtypes_json(reports: Reports) -> str:
    """Return a JSON object with a report for each dtype (see report_json)."""
    fields = [f"{text(name)}: {report_json(report)}" for name, report in reports.items()]
    return "{" + ",\n".join(fields) + "}"


def _outputs(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Yield a row for each output."""
    for errors in zip(*(report.outputs for report in reports.values()), strict=True):
        yield printable(errors[0].name), *map(_error, errors)


def _error(error: OutputError) -> str:
    """Return the error of an output in the norm, or its elements that are not finite."""
    if not error.is_known:
        return phrases.UNKNOWN_ERROR
    if error.broken or error.norm is None:
        return phrases.wrongness(error)
    return f"relative error {error.norm:.2g}"


def _layers(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Yield a row for each layer: the part of the error that arises there, and what overflows."""
    totals = [{each.layer: each for each in report.layers} for report in reports.values()]
    for layer in dict.fromkeys(layer for layers in totals for layer in layers):
        name = printable(layer) or phrases.OUTSIDE
        yield name, *(_cell(layers.get(layer)) for layers in totals)


def _cell(layer: LayerTotals | None) -> str:
    """Return the loss of a layer: its part of the error, and the elements that overflow."""
    if layer is None:
        return ""
    percent = phrases.UNKNOWN_ERROR if layer.share is None else phrases.percent(layer.share)
    share = f"{percent} of the error"
    return f"overflows in {layer.overflowed:,}, {share}" if layer.overflowed else share


DTYPE_FORMATS: Mapping[str, Callable[[Reports], str]] = {"text": dtypes_text, "json": dtypes_json}
"""The writer of each format."""
