"""Values that leave a recording as bytes, numbers or files: a report names the line."""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import math
import pickle
import statistics
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphir.passes import CastReport
from graphir.runtime import record
from tests.support.tables import every


def of_a_memory_view(x: Any) -> Any:
    return x * memoryview(x).cast("B")[0]


def of_a_buffer(x: Any) -> Any:
    return x * np.asarray(x).data.cast("B")[0]


def of_its_bytes(x: Any) -> Any:
    return np.frombuffer(x.tobytes(), x.dtype) * 2


def of_joined_bytes(x: Any) -> Any:
    return x * b"".join([x])[0]


def of_a_hash(x: Any) -> Any:
    return x * (hash(x.tobytes()) % 7)


def of_a_digest(x: Any) -> Any:
    return x * hashlib.sha256(x).digest()[0]


def of_a_checksum(x: Any) -> Any:
    return x * (zlib.crc32(x) % 7) + len(base64.b64encode(x))


def of_a_list(x: Any) -> Any:
    return x * x.tolist()[0]


def of_a_pickle(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x)) * 2


def of_an_iterator(x: Any) -> Any:
    return x * sum(float(each) for each in np.nditer(x))


def of_a_saved_file(x: Any) -> Any:
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return np.load(file) * 2


def of_a_number(x: Any) -> Any:
    return x * math.sqrt(x[0])


def of_statistics(x: Any) -> Any:
    return x * statistics.mean(x)


def of_a_copy(x: Any) -> Any:
    return copy.deepcopy([x])[0] * type(x[0])(x[1])


LEAVING = [x for name, x in list(globals().items()) if name.startswith("of_")]
FOLLOWED = (of_a_copy, of_a_number, of_a_list)


def audited(program: Callable[[Any], Any], x: Any, dtype: str) -> CastReport:
    """The report of a program on `x` in a dtype; the recorded program has plain NumPy's result."""

    def on_rounded(x: Any) -> Any:
        return program(x.astype(dtype))

    recording = record(on_rounded, x.copy())
    assert np.asarray(recording.result).tobytes() == np.asarray(program(x.astype(dtype))).tobytes()
    return recording.audit()


@every("program", LEAVING)
def test_a_report_names_the_line_where_values_leave(program: Callable[[Any], Any]) -> None:
    x = np.linspace(0.1, 0.4, 4)
    report = audited(program, x, "float32")
    assert report.hidden == (program not in FOLLOWED)
    if report.hidden:
        first = str(report).splitlines()[0]
        line = program.__code__.co_firstlineno
        lines = [f"test_values_that_leave.py:{at}" for at in range(line, line + 7)]
        assert "not seen (" in first and any(place in first for place in lines), first
    if program is not of_a_pickle:  # which makes an array
        assert not audited(program, x, "float64").hidden  # nothing was lost before


def test_files_that_the_program_did_not_write_are_data(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(3, np.float32))

    def scaled(x: Any) -> Any:
        np.save(tmp_path / "y.npy", x * 2)
        return x * 3

    assert not record(lambda: np.load(path) * np.float64(0.1)).audit().hidden
    assert not record(scaled, np.ones(3, np.float32)).audit().unseen


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
