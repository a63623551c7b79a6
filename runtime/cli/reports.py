"""The report of the casts of what a command names: of its graph, or of a recording of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import Any, cast

from graphir.passes import CastReport, cast_report
from graphir.public import Graph, TensorType
from graphir.runtime.cli.graphs import BY_INPUT, ProgramCall, load_call, load_graph
from graphir.runtime.cli.inputs import Draws
from graphir.runtime.cli.programs import require_arguments
from graphir.runtime.recording import record
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.recording.recording import Recording


def load_report(
    args: argparse.Namespace, program: Graph | Script | ProgramCall | None = None
) -> CastReport:
    """Return the report of the casts of what a command names: of `program`, if it is loaded.

    A function of NumPy is recorded on the values of its inputs, as `audit` does; with types among
    them, it is traced. Where the trace refuses the function, or computes a part of it at once, the
    function is recorded on values that are drawn for the types, if it runs on them.
    """
    program = program or load_call(args)
    is_call = isinstance(program, ProgramCall) and program.library == "numpy"
    if not is_call or not args.inputs or args.rules is not None:
        return cast_report(load_graph(args, program))
    assert isinstance(program, ProgramCall)
    if not _has_types((program.positional, program.keywords)):
        return load_recording(args, program).report()
    graph: Graph | None = None
    refusal: Exception | None = None
    try:
        graph = load_graph(args, program)
    except Exception as error:  # the program's own errors too: it may run on values alone
        refusal = error
    if graph is None or graph.provenance.unseen:
        draws = Draws(getattr(args, "seed", 0))
        with suppress(Exception):  # named sizes, and the program's own errors on what was drawn
            return load_recording(args, draws.call(program), draws.notes).report()
    if graph is None:
        assert refusal is not None
        raise refusal
    return cast_report(graph)


def load_recording(
    args: argparse.Namespace, program: Script | ProgramCall, draw_notes: Sequence[str] = ()
) -> Recording:
    """Return the recording of a script, or of a call of a NumPy function.

    What the program prints is on stderr, and so are the notes of the recording. Notes about values
    that were drawn are those of its graph, for reports of it.
    """
    function: Any = program
    positional, keywords = list[Any](), dict[str, Any]()
    if isinstance(program, ProgramCall):
        function, _, positional, keywords = program
        require_arguments(args.program, function, positional, keywords, BY_INPUT)
    with redirect_stdout(sys.stderr):  # stdout has the report alone
        recording = record(function, *positional, rules=args.rules or "numpy", **keywords)
    recording.graph.describe(notes=[*recording.graph.notes, *draw_notes])
    for note in recording.notes:
        print(f"graphir: {note}", file=sys.stderr)
    return recording


def _has_types(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_types, cast("dict[str, Any]", value).values()))
    if isinstance(value, (tuple, list)):
        return any(map(_has_types, cast("Sequence[Any]", value)))
    return isinstance(value, TensorType)
