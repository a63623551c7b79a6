"""Recorded blocks: `with record() as recording:` at module level and in functions."""

from __future__ import annotations

import linecache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir import GraphError
from graphir.runtime import Recording, record

PIXELS = np.array([200, 100], np.uint8)


def in_function(x: Any) -> tuple[Recording, Any, Any]:
    scale, unused = np.array([1.5, 2.5]), np.zeros(3)
    with record() as recording:
        y = x * scale
        brighter = PIXELS + np.uint8(100)
        x += 1
    assert type(scale) is type(unused) is type(x) is type(y) is np.ndarray
    return recording, y, brighter


def test_a_block_records_the_variables_and_globals_of_its_function() -> None:
    x = np.ones(2, np.float32)
    recording, y, brighter = in_function(x)
    assert recording.names == ("x", "y", "brighter")
    assert {name: type(value) for name, value in recording.result.items()} == dict.fromkeys(
        recording.names, np.ndarray
    )
    assert recording.result["y"] is y and recording.result["brighter"] is brighter
    assert y.tolist() == [1.5, 2.5] and x.tolist() == [2, 2] and type(PIXELS) is np.ndarray
    report = recording.audit()
    assert [output.name for output in report.outputs] == ["x", "y", "brighter"]
    (sentence,) = report.sentences
    assert sentence.startswith("brighter is wrong by ") and "(uint8 add: 200 + 100" in sentence


def test_variables_that_a_block_reads_are_its_data() -> None:
    x = np.ones(2, np.float32)
    with record() as recording:
        y = x * np.float64(0.5)
    assert y.dtype == np.float64
    (sentence,) = recording.audit().sentences
    assert sentence.startswith("the result is float64 because line ")
    assert recording.report().sentences == [sentence]


MODULE = """
import numpy as np
from graphir.runtime import record

pixels = np.array([200, 100], np.uint8)
with record() as recording:
    bright = pixels + np.uint8(100)
    half = bright * 0.5
after = type(bright), type(pixels)
"""


def test_a_block_at_module_level_records_its_globals() -> None:
    module = ModuleType("a_module_of_the_tests")
    exec(compile(MODULE, "block.py", "exec"), vars(module))
    recording = module.recording  # pyright: ignore[reportAttributeAccessIssue]
    assert recording.names == ("bright", "half") and module.after == (np.ndarray, np.ndarray)  # pyright: ignore
    assert recording.audit().sites[0].row.kind == "wrap"
    assert {row.location.line for row in recording.audit().losses} == {7}


def test_an_exception_ends_the_block_and_arrays_are_plain_again() -> None:
    x, y = PIXELS, None
    with pytest.raises(ValueError, match="the program's own"), record() as recording:
        y = x * 2
        raise ValueError("the program's own")
    assert type(x) is np.ndarray and type(y) is np.ndarray and x is PIXELS
    with pytest.raises(GraphError, match="read it after the with block"):
        _ = recording.graph
    assert record(lambda a: a + 1, x).result.tolist() == [201, 101]


def test_a_recording_inside_a_block_is_refused_and_fields_come_after_the_block() -> None:
    with record() as recording:
        with pytest.raises(GraphError, match="a recording within a recording"):
            record(lambda: PIXELS)
        with pytest.raises(GraphError, match="has no 'outputs' yet"):
            _ = recording.outputs
    assert recording.outputs == () and recording.result == {}


def test_a_recursive_function_and_a_closure_have_blocks() -> None:
    scale = np.array([0.1, 0.2])

    def inner(depth: int) -> Recording:
        if depth:
            return inner(depth - 1)
        with record() as recording:
            total = (scale * np.float32(2)).sum()
        assert total == (scale * 2).sum()
        return recording

    recording = inner(2)
    assert recording.names == ("total",) and type(scale) is np.ndarray
    assert len(recording.inputs) == 1


def test_values_that_a_program_writes_as_text_are_outputs() -> None:
    def program(x: Any) -> str:
        for scale in (1, 2, 3):
            text = f"{(x * scale).sum():.2f}"
        return text

    recording = record(program, np.ones(2, np.float32))
    assert recording.result == "6.00" and len(recording.outputs) == 1
    assert recording.outputs[0].tolist() == [2, 4, 6] and recording.rounds == (3,)
    assert recording.names[0].startswith("(x * scale).sum() in line ")
    assert not recording.audit().hidden


def test_a_block_names_the_calls_that_read_values_unseen() -> None:
    x = np.linspace(0.1, 0.4, 4)
    with record() as recording:
        rounded = x.astype(np.float32).astype(np.float64)
        size = np.float64(len(rounded)) + np.float64(rounded.shape[0]) + np.float32(0.5)
        scaled = x * np.float32(rounded[0])
    report = recording.audit()
    (step,) = report.unseen
    assert step.hides and step.what == "np.float32" and size == 8.5 and scaled.size == 4
    line = linecache.getline(step.location.source, step.location.line)
    assert line.strip() == "scaled = x * np.float32(rounded[0])"


def test_a_block_that_reads_no_recorded_value_is_seen() -> None:
    x, gain = np.linspace(0.1, 0.4, 4), 0.5
    with record() as recording:
        rounded = x.astype(np.float32)
        scaled = rounded * np.float32(gain) + np.float32(0.5)
    assert not recording.audit().unseen and scaled.dtype == np.float32
