"""Data that a program loads: structured arrays by their fields, memory maps, buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from graphir.runtime import record
from tests.support.tables import every

HEADER = np.dtype([("lines", "<u2"), ("center", "<u2"), ("name", "S4")])
ROWS = np.array([(128, 128, b"a"), (5, 9, b"b")], HEADER)


def offsets(header: Any) -> Any:
    return header["lines"] - 2 * header["center"]


def of_bytes(blob: bytes) -> Any:
    return offsets(np.frombuffer(blob, HEADER))


def of_chosen(header: Any) -> Any:
    return offsets(header[header["center"] > 10])


def mean_of(path: Path, mode: str = "r") -> Any:
    table = np.memmap(path, np.float32, mode)
    assert isinstance(table, np.memmap) and table.mode == mode
    return table.reshape(-1, 2).sum(axis=0)


@every(
    ("function", "argument"),
    [(offsets, ROWS), (of_bytes, ROWS.tobytes()), (of_bytes, bytearray(ROWS.tobytes()))],
)
def test_fields_of_structured_arrays_are_data(function: Any, argument: Any) -> None:
    recording = record(function, argument)
    assert recording.result.tolist() == function(argument).tolist() == [65408, 65523]
    report = recording.audit()
    assert not report.hidden
    assert [(row.kind, row.op, row.measured.changed) for row in report.losses] == [
        ("wrap", "subtract", 2)
    ]
    assert report.sentences[0].startswith("the result is wrong ")


def test_bytes_of_texts_are_data() -> None:
    def sums(names: Any) -> Any:
        codes = names.astype("S4").view(np.uint8).reshape(len(names), 4)
        return codes.sum(axis=1, dtype=np.uint8)

    names = np.array(["spam", "eggs"])
    recording = record(sums, names)
    assert recording.result.tolist() == sums(names).tolist()
    report = recording.audit()
    assert report.outputs[0].differing == 2 and not report.hidden


def test_rows_of_a_structured_array_are_its_memory() -> None:
    def written(header: Any) -> Any:
        header["lines"][0] = 7
        header[1:]["lines"][:] = 9
        return header["lines"] + np.uint16(1), header[["lines", "center"]].dtype.names

    mine, theirs = ROWS.copy(), ROWS.copy()
    values, names = record(written, mine).result
    expected, expected_names = written(theirs)
    assert values.tolist() == expected.tolist() and names == expected_names
    assert mine.tobytes() == theirs.tobytes()


def test_rows_that_the_program_chooses_keep_their_fields() -> None:
    recording = record(of_chosen, ROWS)
    assert recording.result.tolist() == of_chosen(ROWS).tolist()
    report = recording.audit()
    assert any(row.kind == "wrap" for row in report.losses) and not report.hidden
    assert report.sentences[0].startswith("the result is wrong ")


def test_a_memory_map_is_data(tmp_path: Path) -> None:
    path = tmp_path / "table"
    np.full(20_000, 1000.1, np.float32).tofile(path)
    recording = record(mean_of, path)
    assert recording.result.tolist() == mean_of(path).tolist()
    report = recording.audit()
    assert not report.hidden
    assert [row.kind for row in report.losses] == ["accumulation"]
    assert isinstance(np.memmap, type) and type(np.memmap) is type


def test_a_write_to_a_memory_map_reaches_the_file(tmp_path: Path) -> None:
    def doubled(path: Path) -> Any:
        table = np.memmap(path, np.float32, "r+")
        table *= 2
        table.flush()
        return table.sum()

    path = tmp_path / "table"
    np.ones(4, np.float32).tofile(path)
    assert record(doubled, path).result == 8
    assert np.fromfile(path, np.float32).tolist() == [2] * 4
    with pytest.raises(AttributeError, match="no attribute 'flush'"):
        record(lambda x: x.flush(), np.ones(3))


RNG = np.random.default_rng(3)


class _Noise:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def step(self, x: Any) -> Any:
        return x + self.rng.normal(size=x.shape).astype(np.float32)


OLD_RNG = np.random.RandomState(3)


def _draws(x: Any, noise: Any) -> Any:
    a = RNG.random(4)
    RNG.shuffle(a)
    b = default_rng(5).integers(0, 9, 4) + np.random.RandomState(3).rand(4)
    c = np.random.Generator(np.random.PCG64(7)).normal(size=4) + RNG.spawn(1)[0].random(4)
    assert isinstance(RNG, np.random.Generator)
    assert isinstance(OLD_RNG, np.random.RandomState)  # also one from before the recording
    return a + b, c, RNG.permutation(x), noise.step(x), RNG.integers(5), RNG.normal()


def test_random_numbers_are_data_and_those_of_a_plain_run(monkeypatch: Any) -> None:
    x = np.arange(4, dtype=np.float32)
    monkeypatch.setitem(_draws.__globals__, "RNG", np.random.default_rng(3))
    expected = _draws(x, _Noise())
    monkeypatch.setitem(_draws.__globals__, "RNG", rng := np.random.default_rng(3))
    noise = _Noise()
    recording = record(_draws, x, noise)
    assert RNG is rng and type(noise.rng) is np.random.Generator
    for ours, theirs in zip(recording.result, expected, strict=True):
        assert type(ours) is type(theirs) and np.array_equal(ours, theirs)
    seen = [output.differing is not None for output in recording.audit().outputs]
    assert seen == [True, True, True, True, *seen[4:]]  # a permutation draws again


def test_a_file_that_the_program_writes_and_reads_is_not_data(tmp_path: Path) -> None:
    def saved(x: Any) -> Any:
        halves = x.astype(np.float16).astype(np.float64)
        halves.tofile(tmp_path / "halves")
        halves.dump(tmp_path / "dumped")
        return x * 2, np.fromfile(tmp_path / "halves") * 2

    recording = record(saved, np.array([0.1, 0.2]))
    report = recording.audit()
    assert report.outputs[0].differing == 0
    assert not report.outputs[1].is_known and report.unseen[0].what == "fromfile"
    assert [note.what for note in recording.notes] == ["tofile", "dump", "fromfile"]


ORDINARY = {
    "place": lambda x, path: x * np.float32(1.1) * np.unravel_index(x.argmax(), (5, 4))[1],
    "places": lambda x, path: x[np.where(x > 3)[0]] * np.float32(1.1),
    "archive": lambda x, path: np.load(path)["x"] * np.float32(1.1),
}
"""Programs whose exact results are those on float64, with a factor of float32."""


@every("name", ORDINARY)
def test_places_and_archives_have_known_errors(name: str, tmp_path: Path) -> None:
    x, path = default_rng(3).random(20).astype(np.float32) * 9, tmp_path / "x.npz"
    np.savez(path, x=x)
    recording = record(ORDINARY[name], x, path)
    real = ORDINARY[name](x, path)
    assert np.array_equal(recording.result, real)
    np.savez(path, x=x.astype(np.float64))
    exact = ORDINARY[name](x.astype(np.float64), path)
    (output,) = recording.audit().outputs
    assert output.differing and output.largest == pytest.approx(np.abs(exact - real).max())
