"""Structured arrays in recordings: fields, rows, nested fields, and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphir.runtime import interpret, record
from graphir.runtime.recording.recording import Recording
from tests.support.tables import every

NESTED = np.dtype([("low", "f4"), ("high", "f8")])
ROW = np.dtype([("x", "f4"), ("y", "f8"), ("v", "f4", (3,)), ("n", "i2"), ("p", NESTED)])


def table(rows: int = 4) -> Any:
    data = np.zeros(rows, ROW)
    data["x"], data["y"] = np.linspace(0.1, 1, rows), np.linspace(1, 2, rows)
    data["v"] = np.arange(3 * rows).reshape(rows, 3) / 7
    data["n"] = range(rows)
    data["p"]["low"], data["p"]["high"] = data["x"] / 3, data["y"] / 3
    return data


def of_a_row(data: Any) -> Any:
    row = data[0]
    assert isinstance(row, np.void) and len(row) == len(data.dtype.names)
    return row["x"] * row["y"] + row[1]


def of_rows(data: Any) -> Any:
    total = np.float32(0)
    for row in data:
        total = total + row["x"] * row["n"]
    return total


def of_unpacked_rows(data: Any) -> Any:
    return sum(x * y + v[0] for x, y, v, _, _ in data)


def of_subarrays(data: Any) -> Any:
    return data["v"].sum(axis=0) + data[1]["v"] * data["v"][2, 1]


def of_nested_fields(data: Any) -> Any:
    return data["p"]["low"] * data[2]["p"]["high"] + data["p"][1]["low"]


def of_slices(data: Any) -> Any:
    return data[1:]["x"] * data["y"][::-1][:-1] + data[["y", "n"]][:3]["n"]


def of_chosen_rows(data: Any) -> Any:
    data["x"] *= np.float64(1.1)
    chosen = data[data["n"] > 1]
    return chosen["x"] * chosen["y"]


def of_copies(data: Any) -> Any:
    data["x"] += 1
    copy = data.copy()
    data["x"] += 1
    return copy["x"] * copy["y"] - data["x"]


def of_sorted_rows(data: Any) -> Any:
    return np.sort(data, order="y")["x"] * data["y"]


def of_python_numbers(data: Any) -> Any:
    return data["y"] * float(data[1]["x"]) + data[0].item()[1]


def of_written_rows(data: Any) -> Any:
    data[0]["x"] = 3
    data[1] = (1, 2, (3, 4, 5), 6, (7, 8))
    data[2:]["v"][:, 1] = data["y"][2:]
    data[3] = data[1]
    for row in data:
        row["n"] = row["x"] * 100
    return data["x"] * data["y"] + data["n"] + data["v"].sum(axis=1)


def of_a_new_table(data: Any) -> Any:
    new = np.zeros(len(data), [("a", "f4"), ("b", "f8")])
    new["a"] = data["y"]
    new["b"][1:] = data["x"][:-1]
    return new["a"] * new["b"]


def of_returned_tables(data: Any) -> Any:
    data["x"] = data["y"] * 0.1
    return data, data[1]


PROGRAMS = [x for name, x in list(globals().items()) if name.startswith("of_")]


def agree(got: Any, expected: Any) -> bool:
    if isinstance(expected, (list, tuple)):
        return all(agree(x, y) for x, y in zip(got, expected, strict=True))
    x, y = np.asarray(got), np.asarray(expected)
    return x.dtype == y.dtype and x.tobytes() == y.tobytes()


def followed(program: Callable[[Any], Any], data: Any) -> Recording:
    """The recording of a program, which has plain NumPy's results and a graph that gives them."""
    mine, theirs = data.copy(), data.copy()
    expected, recording = program(theirs), record(program, mine)
    assert agree(recording.result, expected) and mine.tobytes() == theirs.tobytes()
    assert type(recording.result) is type(expected)
    values = interpret(recording.graph, *recording.inputs)
    values = values if len(recording.outputs) > 1 else (values,)
    assert agree(values, recording.outputs)
    return recording


@every("program", PROGRAMS)
def test_programs_on_structured_arrays_are_followed(program: Callable[[Any], Any]) -> None:
    report = followed(program, table()).audit()
    assert not report.hidden, report


@dataclass
class Station:
    readings: Any

    def means(self, scale: Any) -> Any:
        return self.readings["x"].mean() * scale, self.readings[0]["n"] + self.readings["n"]


def test_captured_structured_arrays_are_followed() -> None:
    station = Station(table())
    recording = record(station.means, np.float64(2))
    assert agree(recording.result, station.means(np.float64(2)))
    assert type(station.readings) is np.ndarray and not recording.audit().hidden


def test_the_loss_of_a_row_names_its_line() -> None:
    def counted(data: Any) -> Any:
        total = np.int16(0)
        with np.errstate(over="ignore"):
            for row in data:
                total = total + row["n"] * np.int16(300)
        return total

    data = table(40)
    report = followed(counted, data).audit()
    assert {row.kind for row in report.losses} == {"wrap"}
    assert "wraps" in report.sentences[0]


def test_a_write_that_is_not_recorded_is_named() -> None:
    def filled(data: Any) -> Any:
        first = data["x"] * 2
        data[...] = np.zeros((), ROW)
        data.fill(0)
        return first + data["x"]

    recording = followed(filled, table())
    assert any("taken as given" in note.reason for note in recording.notes)


def test_a_write_to_a_row_of_a_large_table_is_noticed() -> None:
    def changed(data: Any) -> Any:
        before = data["x"].sum()
        data.put(1234, np.zeros(1, ROW))
        return before - data["x"].sum()

    followed(changed, table(5000))


def test_reads_of_whole_rows_are_reads() -> None:
    def compared(data: Any) -> Any:
        data["x"] = data["x"].astype(np.float16)
        return data["y"] * (2 if data[0] == data[1] else 3)

    report = followed(compared, table()).audit()
    assert report.hidden and "__eq__" in {step.what for step in report.unseen}


def test_a_conversion_of_fields_is_not_data() -> None:
    def halved(data: Any) -> Any:
        return data.astype([("low", "f2"), ("high", "f2")])["low"] * 2

    recording = followed(halved, np.ones(3, NESTED))
    assert recording.audit().hidden and recording.notes[0].what == "astype"
