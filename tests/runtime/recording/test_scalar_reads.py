"""Recorded scalars that compiled code reads: followed as casts, or named as not seen."""

from __future__ import annotations

import array
import ctypes
import datetime
import decimal
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.runtime import record
from tests.support.commands import cli
from tests.support.tables import every

X = np.array([0.1, 0.2, 0.7])


def half(x: Any) -> Any:
    return x.astype(np.float16).astype(np.float64)


def float32_of(x: Any) -> Any:
    scale = np.float32(half(x).sum()) * 2
    return x * scale


def type_of_a_dtype(x: Any) -> Any:
    return x * x.dtype.type(half(x).max())


def type_in_a_variable(x: Any, dtype: Any = np.float32) -> Any:
    return x * dtype(half(x)[0])


def of_a_list(x: Any) -> Any:
    y = half(x)
    return x[:2] * np.float32([y[0], y[1]])


def array_of(x: Any) -> Any:
    y = half(x)
    return x[:2] * np.array([y[0], y[1]])


def inside_another(x: Any) -> Any:
    def scaled(value: Any) -> Any:
        return np.float32(value)

    return x * scaled(half(x)[0])


FOLLOWED = (float32_of, type_of_a_dtype, type_in_a_variable, of_a_list, array_of, inside_another)


@every("program", FOLLOWED)
def test_conversions_to_numpy_scalars_are_casts_of_the_graph(program: Callable[..., Any]) -> None:
    recording = record(program, X)
    expected = program(X)
    assert recording.result.tolist() == expected.tolist()
    assert len(recording.inputs) == 1 and not recording.notes
    report = recording.audit()
    assert not report.unseen and report.outputs[0].differing == expected.size
    assert any(row.share for row in report if str(row.target) == "float16")


NAMED: dict[str, Callable[[Any], Any]] = {
    "pack": lambda x: x * struct.unpack("d", struct.pack("d", half(x)[0]))[0],
    "Decimal": lambda x: x * float(decimal.Decimal(half(x)[0])),
    "timedelta": lambda x: x * datetime.timedelta(half(x)[0]).total_seconds(),
    "array": lambda x: x * array.array("d", [half(x)[0]])[0],
    "c_double": lambda x: x * ctypes.c_double(half(x)[0]).value,
    "dumps": lambda x: x * json.loads(json.dumps({"a": half(x)[0]}))["a"],
}


@every("name", NAMED)
def test_other_reads_are_named(name: str) -> None:
    recording = record(NAMED[name], X)
    assert recording.result.tolist() == NAMED[name](X).tolist()
    report = recording.audit()
    assert report.hidden and not report.outputs[0].is_known
    assert name in [step.what for step in report.unseen]


def as_text(x: Any) -> str:
    return "%.3f and %s" % (half(x)[0], half(x)[1])  # noqa: UP031 -- as programs write it


def test_texts_have_their_values_as_outputs() -> None:
    recording = record(as_text, X)
    assert recording.result == as_text(X)
    assert record(lambda x: "%.3f" % x[0], X).outputs[0] == X[0]  # noqa: UP031
    assert [output.differing for output in recording.audit().outputs] == [1, 1]
    assert [name.partition(" in ")[0] for name in recording.names] == ["half(x)[0]", "half(x)[1]"]


def failing(x: Any) -> None:
    raise ValueError(str(np.float32(x[0])))


def test_functions_have_their_own_code_again() -> None:
    codes = {function: function.__code__ for function in (*FOLLOWED, failing, half)}
    for function in (float32_of, failing):
        try:
            record(function, X)
        except ValueError as error:
            assert str(error) == "0.1"
    assert {function: function.__code__ for function in codes} == codes
    assert float32_of(X).dtype == np.float64


def test_lines_and_columns_are_those_of_the_source() -> None:
    report = record(float32_of, X).report()
    (row,) = [row for row in report if row.kind == "explicit" and str(row.target) == "float32"]
    assert row.expression is not None and row.expression.text == "np.float32(half(x).sum())"


def test_scripts_and_the_modules_that_they_import(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "scales_of_tests.py").write_text(
        "import numpy as np\ndef scaled(x):\n    return x * np.float32(x.sum())\n"
    )
    (tmp_path / "script.py").write_text(
        "import numpy as np\nfrom scales_of_tests import scaled\n"
        "x = np.array([0.1, 0.2])\ny = scaled(x)\nz = x * np.float32(y.max())\n"
    )
    monkeypatch.chdir(tmp_path)
    status, out, err = cli("audit", "script.py")
    assert (status, err) == (0, "") and "not seen" not in out
    assert "scales_of_tests.py:3:16" in out and "script.py:5:9" in out
