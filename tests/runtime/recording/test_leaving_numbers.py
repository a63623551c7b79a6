"""Every value that a program prints, writes, logs or returns as a number is an output.

A number by which the program may go on is a read, and what follows it has an unknown error.
"""

from __future__ import annotations

import io
import json
import logging
import math
import pickle
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from tests.support.tables import every

X = np.arange(40, 60).astype(np.uint8)


def computed(x: Any) -> tuple[Any, Any]:
    """Values that differ in all elements, and a total that wraps."""
    return x * np.float32(1.1) / np.float32(3), x.sum(dtype=np.uint8)


def printed(x: Any) -> None:
    values, total = computed(x)
    print(f"total {total}, most {values.max():.2f}")


def printed_in_a_loop(x: Any) -> None:
    for value in computed(x)[0]:
        print("value", value)


def logged(x: Any) -> None:
    logger = logging.getLogger("graphir.tests")
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    logger.warning("%s of %d", computed(x)[1], len(x))


def returned_in_a_list(x: Any) -> Any:
    return [float(value) for value in computed(x)[0]]


def returned_in_a_dict(x: Any) -> Any:
    values, total = computed(x)
    summary = {"n": int(total)}
    summary["values"] = values.tolist()
    return summary


def rounded(value: Any) -> Any:
    return round(100 * float(value), 3)


def returned_by_a_function(x: Any) -> Any:
    rows = []
    for value in computed(x)[0][:3]:
        rows.append((rounded(value), "%"))
    return rows


def show(name: str, number: float) -> None:
    print(f"{name}: {number}")


def given_to_a_function(x: Any) -> None:
    show("total", float(computed(x)[1]))


def as_json(x: Any) -> Any:
    text = json.dumps({"total": int(computed(x)[1])})
    return text + "\n"


def printed_bools(x: Any) -> Any:
    total = x.sum(dtype=np.uint8, keepdims=True)
    print((total > 900).any(), total[0] == 990)
    wrapped = total[0] < 300
    return {"wrapped": wrapped}


def printed_as_a_float(x: Any) -> None:
    print(float(x[:1].astype(int)[0] + 2**53 + 1))


LEAVING = {
    printed_bools: [("(total > 900).any()", 1), ("total[0] ==", 1), ("total[0] <", 1)],
    printed_as_a_float: [("x[:1].astype(int)[0] + 2 ** 53 +", 1)],
    printed: [("total", 1), ("values.max()", 1)],
    printed_in_a_loop: [("value", 20)],
    logged: [("text of line", 1)],
    returned_in_a_list: [("value", 20)],
    returned_in_a_dict: [("total", 1), ("values", 20)],
    returned_by_a_function: [("value", 3)],
    given_to_a_function: [("computed(x)[1]", 1)],
    as_json: [("computed(x)[1]", 1)],
}


@every("program", LEAVING)
def test_what_leaves_is_an_output_with_its_name_and_its_error(program: Any) -> None:
    recording = record(program, X)
    assert recording.result == program(X)
    report = recording.audit()
    names = [name.partition(" in line ")[0].rstrip(" 0123456789") for name in recording.names]
    assert [*zip(names, (x.elements for x in report.outputs), strict=True)] == LEAVING[program]
    assert all(x.differing for x in report.outputs) and not report.hidden


def test_a_file_has_what_was_written(tmp_path: Path) -> None:
    def program(x: Any) -> None:
        values, total = computed(x)
        np.save(tmp_path / "values.npy", values)
        np.savez(tmp_path / "all.npz", values[:2], total=total)
        np.savetxt(tmp_path / "values.txt", values[2:5])
        values[5:9].tofile(tmp_path / "values.bin")
        (tmp_path / "values.pickle").write_bytes(pickle.dumps({"values": values[9:]}))
        with wave.open(str(tmp_path / "values.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(values[9:].tobytes())

    report = record(program, X).audit()
    assert [x.elements for x in report.outputs] == [20, 2, 1, 3, 4, 11, 11]
    assert all(x.differing for x in report.outputs) and not report.hidden


def test_a_table_has_what_was_written() -> None:
    pandas = pytest.importorskip("pandas")

    def program(x: Any) -> None:
        pandas.DataFrame({"value": computed(x)[0]}).to_csv(io.StringIO())

    report = record(program, X).audit()
    assert report.outputs[0].differing == 18 and not report.hidden


def test_the_first_round_that_differs_is_named() -> None:
    def program(x: Any) -> None:
        for k in range(5):
            print(x[:k].sum(dtype=np.uint8))

    report = record(program, np.full(5, 100, np.uint8)).audit()
    assert (report.outputs[0].differing, report.outputs[0].first_round) == (2, 4)
    assert "first in round 4 of 5" in str(report)
    (output,) = json.loads(report.to_json())["outputs"]
    assert (output["rounds"], output["first_round"]) == (5, 4)


# -- numbers and texts that go on into the program


def scaled_by(x: Any) -> Any:
    total = float(computed(x)[1])
    print(total)
    return x * total


def parsed_text(x: Any) -> Any:
    return x * float(f"{computed(x)[1]:.1f}")


def compared_text(x: Any) -> Any:
    return x * (2.0 if str(computed(x)[1]) == "3" else 0.5)


def kept_in_an_object(x: Any) -> Any:
    def scale() -> Any:
        return scale.number  # type: ignore[attr-defined]

    scale.number = float(computed(x)[1])  # type: ignore[attr-defined]
    return x * scale()


def collected(x: Any) -> Any:
    numbers = [float(value) for value in computed(x)[0]]
    return x / sum(numbers)


def unpickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(computed(x)[0])) * 2


def chosen_element(x: Any) -> Any:
    return [*np.arange(7.0)][computed(x)[1] % 7] * x


def chosen_elements(x: Any) -> Any:
    return x[computed(x)[1] % 7 :]


class Settings:
    scale = 1.0


def setting(x: Any) -> Any:
    vars(Settings).get("scale")
    setattr(Settings, "scale", float(computed(x)[1]))  # noqa: B010 -- as programs write it
    return x * Settings.scale


def stored_in_an_array(x: Any) -> Any:
    values = x.astype(float)
    values[0] = float(computed(x)[1])
    return values


def added_to_an_array(x: Any) -> Any:
    values = x.astype(float)
    values += float(computed(x)[1])
    return values


def bool_in_an_array(x: Any) -> Any:
    x[0] = computed(x)[1] < 300
    return x


def bool_that_decides(x: Any) -> Any:
    return x * ((computed(x)[1] < 300) and x[0])


def collected_by_a_closure(x: Any) -> Any:
    rows = []

    def add(value: Any) -> None:
        rows.append(float(value))

    add(computed(x)[1])
    return x * np.array(rows)


def fill(rows: list[float], value: Any) -> None:
    rows.append(float(value))


def collected_by_a_function(x: Any) -> Any:
    rows: list[float] = []
    fill(rows, computed(x)[1])
    return x * np.array(rows)


ROWS: list[float] = []


def collected_in_a_global(x: Any) -> Any:
    ROWS.clear()
    ROWS.append(float(computed(x)[1]))
    return scaled_by_rows(x)


def scaled_by_rows(x: Any) -> Any:
    return x * np.array(ROWS)


GOING_ON = [
    *(bool_in_an_array, bool_that_decides),
    *(chosen_element, chosen_elements),
    *(parsed_text, compared_text, unpickled),
]


def of_a_function(x: Any) -> Any:
    return x * math.sqrt(float(computed(x)[0].sum())), math.exp(computed(x)[0][0] / 9) + x


def decided_by_a_float(x: Any) -> Any:
    total = float(computed(x)[0].sum())
    return x / total if total > 1 else x


def stored(x: Any) -> Any:
    values, total = np.zeros(4), computed(x)[0].max().item()
    values[0], values[1:] = total, 2 * total
    return values, np.full(2, total), np.array([total, 1 - total]), np.where(x > 50, total, 0.5)


def truncated(x: Any) -> Any:
    return x[: int(computed(x)[0][3])] * np.float32(1.1)


FOLLOWED = [setting, scaled_by, kept_in_an_object, collected]
FOLLOWED += [of_a_function, decided_by_a_float, stored, truncated]
FOLLOWED += [stored_in_an_array, added_to_an_array]
FOLLOWED += [collected_by_a_closure, collected_by_a_function, collected_in_a_global]


@every("program", FOLLOWED)
def test_python_floats_of_narrow_values_are_recorded(program: Any) -> None:
    """The exact results are those of the program on wide data, with factors in float32."""
    recording = record(program, X)
    with np.errstate(all="ignore"):
        results = program(X)
    assert repr(recording.result) == repr(results)
    outputs = recording.audit().outputs
    assert all(output.is_known for output in outputs) and outputs[0].differing
    factor = np.float64(np.float32(1.1)) / 3

    def exactly(_: Any) -> Any:
        return X * factor, X.sum(dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "computed", exactly)
        wide = program(X) if program is not truncated else X[:15] * np.float64(np.float32(1.1))
    pairs = zip(recording.outputs, wide if isinstance(wide, tuple) else (wide,), strict=False)
    for output, (real, exact) in zip(outputs, pairs, strict=False):
        assert output.largest == pytest.approx(np.abs(real - exact).max(), rel=1e-6, abs=1e-12)


def test_a_recorded_float_is_a_float_of_python() -> None:
    def program(x: Any) -> Any:
        number = float(computed(x)[0][1])
        assert type(number) is float and isinstance(number, float) and number == float(repr(number))
        assert {number: 1}[number] == 1 and hash(number) == hash(float(str(number)))
        with pytest.raises(ZeroDivisionError):
            number / 0
        assert (-8.0 * number) ** 0.5 == pytest.approx(0, abs=1e3) and divmod(number, 2)[0] == 7.0
        assert json.dumps([number]) == f"[{number!r}]" and min(number, 1.0) == 1.0
        return x * np.float32(2)

    assert record(program, X).result.tolist() == program(X).tolist()
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(float(computed(x)[0][1]))
        return x

    record(keep, X)
    assert type(kept[0]) is float


@every("program", GOING_ON)
def test_the_error_behind_a_number_that_goes_on_is_unknown(program: Any) -> None:
    recording = record(program, X)
    assert np.array_equal(recording.result, program(X))
    assert not recording.audit().outputs[0].is_known


def test_scalars_made_unseen_are_outputs_of_unknown_error() -> None:
    def program(x: Any, t: Any) -> Any:
        return x * 2, t[1].astype("i8").astype("f4"), (x > 0).all().astype("f4")

    report = record(program, np.arange(3.0), np.arange(3).astype("M8[s]")).audit()
    assert [x.differing for x in report.outputs] == [0, None, None]
