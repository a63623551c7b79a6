"""Annotations of variables are the types that the variables have in a plain run."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from graphir.passes import annotate, cast_report
from graphir.passes.analysis.annotation import annotated_files
from graphir.runtime import record
from tests.numpy_kernels.kernel import KERNELS
from tests.promotion_bugs.cases import CASES, PromotionBug
from tests.support.reports import program
from tests.support.tables import quick

Place = tuple[int, int, str]
"""The line and the column of a variable that is assigned, and its name."""


def assigned(file: str) -> dict[int, list[Place]]:
    """The variables that the statements of a file assign, by the first line of the statement."""
    places = defaultdict(list)
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (x for target in targets for x in ast.walk(target) if isinstance(x, ast.Name))
            stores = (x for x in names if isinstance(x.ctx, ast.Store))
            places[node.lineno] += [(x.lineno, x.col_offset + 1, x.id) for x in stores]
    return places


def seen(function: Callable[..., Any], arguments: Any, file: str) -> dict[Place, set[str]]:
    """The types of the arrays that a plain run assigns to the variables of a file."""
    places, types = assigned(file), defaultdict(set)
    lines: dict[FrameType, int] = {}

    def local(frame: FrameType, event: str, _: Any) -> Any:
        for place in places.get(lines.get(frame, 0), ()):
            value = frame.f_locals.get(place[2])
            if isinstance(value, (np.ndarray, np.generic)):
                types[place].add(f"{value.dtype}{list(value.shape)}")
        lines[frame] = frame.f_lineno if event == "line" else lines.get(frame, 0)
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename == file else None)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return types


def compared(function: Callable[..., Any], make: Callable[[], Any]) -> tuple[int, list[Place]]:
    """How many variables have the types of a plain run, and those that have others."""
    file = function.__code__.co_filename
    types = seen(function, make(), file)
    right, wrong = 0, list[Place]()
    for annotated in annotate(record(function, *make())).files:
        for annotation in annotated.annotations.values() if annotated.source == file else ():
            place = (*annotation.span[:2], annotation.name)
            if annotation.kind == "variable" and annotation.types and place in types:
                own = {str(type_) for type_ in annotation.types}
                right += own == types[place]
                wrong += [] if own <= types[place] else [place]
    return right, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "module",
    quick(["convolution", "fourier", "histograms", "k_means", "neural_layers", "stencils"], 3),
)
def test_variables_of_kernels_have_the_types_of_a_plain_run(module: str) -> None:
    counts = 0
    for kernel in KERNELS:
        if kernel.function.__module__ != f"tests.numpy_kernels.{module}":
            continue
        right, wrong = compared(kernel.function, kernel.arguments)
        assert not wrong, (kernel.name, wrong)
        counts += right
    assert counts > 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "cases", [CASES[::3], pytest.param(CASES, marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
def test_variables_of_programs_with_bugs_have_the_types_of_a_plain_run(
    cases: Sequence[PromotionBug], tmp_path: Path
) -> None:
    counts = 0
    for case in cases:
        right, wrong = compared(case.module.program, lambda case=case: case.module.inputs(tmp_path))
        assert not wrong, (case.name, wrong)
        counts += right
    assert counts > 2 * len(cases)


def test_annotations_without_a_source_have_the_places_of_symbols() -> None:
    source = (
        "from graphir import Graph\ng = Graph('g')\ny = g.input('int8', (2,)) * 2\ng.output(y)\n"
    )
    graph = program(source, "sourceless.py")["g"]
    parsed = type(graph).parse(str(graph))
    (file,) = annotated_files(cast_report(parsed))
    assert not file.lines and not file.values
    assert {span: [*map(str, x.types)] for (span, _), x in file.annotations.items()} == {
        (3, 5, 3, 30): ["int8[2]"]
    }
