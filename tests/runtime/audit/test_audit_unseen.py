"""What an audit did not see: the first line says so in every format, and so does the status."""

from __future__ import annotations

import json
import math
import operator
import pickle

import numpy as np
import pytest

from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.json_ import schema
from graphir.runtime import record
from tests.support.commands import cli
from tests.support.tables import every

X = np.random.default_rng(0).normal(size=24)
DATA = np.arange(24.0)


def half(x):
    return x.astype("f2").astype("f8")


def spaced(x):
    return np.spacing(x.astype("f4"))  # no other dtype has the spacing of float32


def branch(x):
    return x * 2 if half(x)[0] == x[0] else x * 3


def looked_up(x):
    return x * {half(x)[0]: 2}.get(x[0], 3)


def in_place(x):
    y = half(x)
    np.add.at(y, [1, 2], 1.0)
    return y


def written_unseen(x):
    y = np.zeros(24)
    memoryview(y)[:] = memoryview(np.ascontiguousarray(half(x)))
    return y * 2


def kept_in_a_global(x):
    DATA[:] = half(x)
    return DATA * 2


def counted(x):
    return np.zeros(int(half(x)[0] * 10) + 99)


OPAQUE = {
    "rfft": lambda x: np.fft.rfft(half(x)).real,
    "inv": lambda x: np.linalg.inv(half(x)[:16].reshape(4, 4)),
    "eig": lambda x: np.linalg.eigvals(half(x)[:16].reshape(4, 4)).real,
    "interp": lambda x: np.interp(half(x), [-1.0, 1.0], [0.0, 1.0]),
    "apply_along_axis": lambda x: (
        np.apply_along_axis(np.linalg.norm, 0, half(x)) * np.fft.fft(half(x))
    ),
    "vectorize": lambda x: np.vectorize(lambda v: v * 2)(half(x)),
    "frompyfunc": lambda x: np.frompyfunc(lambda v: v + 1, 1, 1)(half(x)).astype("f8"),
    "piecewise": lambda x: np.piecewise(x, [half(x) == x], [1.0, 2.0]),
    "reduceat": lambda x: np.add.reduceat(half(x), [0, 3]),
    "at": in_place,
    "a branch": branch,
    "a key of a dict": looked_up,
    "a mask": lambda x: x[half(x) == x],
    "nonzero": lambda x: np.flatnonzero(half(x) == x) * 1.0,
    "where it is": lambda x: np.zeros(24)[np.argwhere(half(x) == x)],
    "an index": lambda x: x[int(half(x)[0] * 1000) % 7],
    "a size": counted,
    "item": lambda x: x * half(x)[3].item(),
    "tolist": lambda x: np.array(half(x).tolist()) * 2,
    "float": lambda x: x * float(half(x)[3]),
    "round": lambda x: x * round(half(x)[3] * 1000),
    "math": lambda x: x * math.exp(half(x)[3]),
    "fsum": lambda x: x * math.fsum(half(x)),
    "of an iterator": lambda x: x * math.fsum(v for v in half(x)),
    "index": lambda x: x[operator.index((half(x) * 1000).astype(int)[0]) % 7],
    "index that is off": lambda x: x[operator.index((half(x) * 1e9).astype(int)[0]) % 7],
    "hex": lambda x: x * float.fromhex(half(x)[3].hex()),
    "bytes": lambda x: np.frombuffer(half(x).tobytes()) * 2,
    "a buffer": lambda x: np.frombuffer(half(x)) * 2,
    "pickle": lambda x: pickle.loads(pickle.dumps(half(x))) * 2,
    "another dtype's bits": lambda x: half(x).view("i8") >> 3,
    "written by others": written_unseen,
    "a global": kept_in_a_global,
    "long double": lambda x: half(x).astype("g").astype("f8"),
    "an iterator's array": lambda x: np.nditer(half(x)).operands[0] * 2,
    "random numbers": lambda x: np.random.default_rng(0).normal(half(x), 1.0),
    "sorted keys": lambda x: np.lexsort((half(x), x)) * 1.0,
}
PAIR = np.dtype([("a", "f8"), ("b", "i4")])
WORDS = np.array(["a", "ccc", "bb"] * 8)
NOT_OPAQUE = {
    "round": lambda x: half(x).round(2) + np.round(x, 1),
    "indices": lambda x: half(x).reshape(4, 6)[np.argsort(half(x)[:4]), np.arange(4) + 1],
    "other indices": lambda x: x.reshape(4, 6)[(half(x) * 1e6).astype(int) % 4, np.arange(24) % 6],
    "scattered": lambda x: scattered(x, half(x)),
    "a list": lambda x: np.sqrt([half(x)[3], 2.0]) * np.deg2rad([40.0, 75.0]),
    "sums of a list": lambda x: np.cumsum([half(x)[1], half(x)[2]]) + np.repeat([1, 2], [1, 1]),
    "lists": lambda x: np.where([True, False], [half(x)[1], 1.0], [2.0, 3.0]),
    "cross": lambda x: np.cross([1, 0, 0], [0, half(x)[1], 0]),
    "joined lists": lambda x: np.concatenate([[1.0, 2.0], [half(x)[1]]]),
    "unique integers": lambda x: half(x)[np.unique([3, 1, 3])],
    "texts": lambda x: half(x) * (WORDS == "a") + np.char.str_len(WORDS),
    "order of texts": lambda x: half(x)[np.argsort(WORDS, kind="stable")],
    "unique texts": lambda x: np.bincount(np.unique(WORDS, return_inverse=True)[1], half(x)),
    "parsed texts": lambda x: half(x) * np.array(["1.5", "2.5"] * 12).astype(float),
    "dates of texts": lambda x: half(x) * np.array(["2024-03-01"], "M8[D]").astype(int),
    "a table": lambda x: np.array([(v, 1) for v in half(x)], PAIR)["a"],
    "a sorted table": lambda x: np.sort(np.array([(v, 1) for v in half(x)], PAIR), order="a")["a"],
    "masked": lambda x: np.ma.masked_where(x > 1, half(x) + 1).sum() * x,
    "masked arrays": lambda x: (np.ma.array(half(x), mask=x > 1) * x + 1).filled(0),
    "masked copies": lambda x: np.array(
        np.ma.masked_less(half(x), 0), copy=True, subok=True
    ).filled(0),
    "masked on the right": lambda x: x / np.ma.masked_equal(half(x), 0),
    "nanmean": lambda x: np.nanmean(half(x), dtype=np.float64) * x,
    "a polynomial": lambda x: np.polynomial.Polynomial.fit(x, half(x), 2).coef,
    "insert": lambda x: half(x)[np.insert([1, 2], 1, [5])],
}


def scattered(x, new):
    y = np.zeros((4, 6))
    y[np.argsort(new[:4]), np.arange(4)] = new[:4]
    return y


def audited(program):
    DATA[:] = np.arange(24)
    recording = record(program, X.copy())
    return recording, recording.audit()


FOLLOWED = {"a global", "piecewise", "index", "interp", "reduceat", "sorted keys"}
FOLLOWED |= {"an index", "a size", "float", "item", "math", "tolist"}
FOLLOWED |= {"frompyfunc", "vectorize"}
"""Those that are no opaque steps after all: their error is known."""
FOLLOWED |= {
    "apply_along_axis",
    "at",
    "eig",
    "inv",
    "random numbers",
    "rfft",
}  # by calls on wide operands


FOLLOWED |= NOT_OPAQUE.keys()
OPAQUE |= NOT_OPAQUE


@pytest.mark.parametrize("name", OPAQUE)
def test_the_error_before_what_is_not_seen_is_unknown(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, report = audited(OPAQUE[name])
    (output,) = report.outputs
    assert output.is_known == (name in FOLLOWED)
    if output.is_known:
        real = np.asarray(recording.result)
        monkeypatch.setattr("tests.runtime.audit.test_audit_unseen.half", lambda x: x)
        assert output.differing == np.count_nonzero(real != OPAQUE[name](X))
        return
    assert report.hidden
    first = str(report).splitlines()[0]
    assert "the error of 1 of 1 output is unknown" in first
    assert "test_audit_unseen.py:" in first


@every("form", REPORT_FORMATS)
def test_every_format_says_before_the_counts_what_was_not_seen(form: str) -> None:
    _, report = audited(spaced)
    text = REPORT_FORMATS[form](report)
    if form == "json":
        document = json.loads(text)
        (step,) = document["unseen"]
        assert (step["what"], step["hides"]) == ("spacing", True)
        assert document["outputs"][0]["differing"] is None
        return
    if form in ("concise", "github"):
        assert "audit/unseen" in text.splitlines()[0] and "spacing" in text.splitlines()[0]
        return
    if form == "sarif":
        result = json.loads(text)["runs"][0]["results"][0]
        assert (result["ruleId"], result["level"]) == ("audit/unseen", "warning")
        assert "spacing" in result["message"]["text"]
        return
    text = text.replace("\\", "")
    at = text.find("not seen (the error of 1 of 1 output is unknown): spacing")
    assert 0 <= at < text.find("1 use of a cast")
    assert "of 24 differ" not in text


def test_the_document_is_as_its_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for program in (spaced, OPAQUE["a branch"]):
        jsonschema.validate(json.loads(audited(program)[1].to_json()), schema())


def test_operands_without_error_hide_none() -> None:
    def program(x):
        y = np.linalg.inv(x[:16].reshape(4, 4)) @ np.ones(4)
        return (y if y[0] > 0 else -y).astype("f4")

    _, report = audited(program)
    (output,) = report.outputs
    assert output.differing == 4
    assert not report.unseen and [row.kind for row in report.losses] == []
    _, report = audited(lambda x: np.packbits(x > 0).astype("f4"))
    assert [(step.what, step.hides) for step in report.unseen] == [("numpy.packbits", False)]
    assert "no error is hidden" in str(report).splitlines()[0]


def test_outputs_that_do_not_depend_on_it_are_known() -> None:
    _, report = audited(lambda x: (half(x), spaced(x)))
    assert [output.is_known for output in report.outputs] == [True, False]
    assert report.outputs[0].differing == np.count_nonzero(half(X) != X)
    for row in report.only(exact=False):  # those of the operand of the step too
        assert row.measured.changed == np.count_nonzero(half(X) != X)


def test_data_of_the_program_is_data() -> None:
    held = np.arange(24.0)
    for program in (
        lambda x: (x * held).astype("f4"),
        lambda x: (x * DATA).astype("f4"),
        lambda x: (x * np.random.rand(24)).astype("f4"),
        lambda x: (x * np.frombuffer(b"\0" * 192)).astype("f4"),
    ):
        report = audited(program)[1]
        assert report.outputs[0].is_known, report


SCRIPT = """
import numpy as np
def hidden(x):
    return np.spacing(x.astype("f2"))
def seen(x):
    return x * 2
"""


def test_the_status_of_fail_on(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(SCRIPT, encoding="utf-8")
    np.save("x.npy", X)
    given = ("--input", "x.npy")
    for on in ("lossy", "any"):
        status, out, err = cli("audit", "program.py:hidden", *given, "--fail-on", on)
        assert (status, "is unknown" in out.splitlines()[0]) == (3, True)
        assert f"--fail-on {on}: status 3: a part of the program was not seen" in err
        assert "--unseen pass" in err
        allowed = ("--fail-on", on, "--unseen", "pass")
        assert cli("audit", "program.py:hidden", *given, *allowed)[0] == 0
        assert cli("audit", "program.py:seen", *given, "--fail-on", on)[0] == 0
    assert cli("audit", "program.py:hidden", *given)[0] == 0
