"""Arrays that a program brings along: swapped while it runs, put back after, in every place."""

from __future__ import annotations

import threading
from collections import namedtuple
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.recording import captured
from tests.support.tables import every

TABLE = np.array([200, 100], np.uint8)
NESTED = {"tables": [TABLE, (np.float32(1), np.array([250, 1], np.uint8))]}
TOOLS = ModuleType("tools_of_the_tests")
TOOLS.table = TABLE  # pyright: ignore[reportAttributeAccessIssue]
Pair = namedtuple("Pair", "left right")


def table() -> Any:
    return np.array([200, 100], np.uint8)


@dataclass(frozen=True)
class Config:
    weights: Any = field(default_factory=table)


class Slotted:
    __slots__ = ("weights",)

    def __init__(self) -> None:
        self.weights = table()


class Model:
    shared = table()

    def __init__(self) -> None:
        self.config = Config()
        self.layers = [{"weights": table()}]

    def doubled(self) -> Any:
        return self.config.weights + self.config.weights

    def of_layers(self) -> Any:
        return self.layers[0]["weights"] + self.layers[0]["weights"]

    @classmethod
    def of_class(cls) -> Any:
        return cls.shared + cls.shared

    @property
    def computed(self) -> Any:
        return TABLE + TABLE

    def of_property(self) -> Any:
        return self.computed


def closure() -> Any:
    inner = table()
    return lambda: inner + inner


def with_default(x: Any = table(), *, y: Any = table()) -> Any:  # noqa: B008
    return x + y


@lru_cache
def remembered() -> Any:
    return TABLE + TABLE


def doubled(x: Any) -> Any:
    return x + x


def doubled_left(pair: Any) -> Any:
    return pair.left + pair.left


def doubled_weights(config: Any) -> Any:
    return config.weights + config.weights


PLACES = {
    "a global": (lambda: TABLE + TABLE,),
    "a dict of lists": (lambda: NESTED["tables"][0] + NESTED["tables"][0],),
    "a tuple in them": (lambda: NESTED["tables"][1][1] + NESTED["tables"][1][1],),
    "a module": (lambda: TOOLS.table + TOOLS.table,),
    "a closure": (closure(),),
    "defaults": (with_default,),
    "a function in a cache": (remembered.__wrapped__,),
    "a partial": (partial(doubled, table()),),
    "an attribute": (Model().doubled,),
    "attributes of items": (Model().of_layers,),
    "a class": (Model.of_class,),
    "a property": (Model().of_property,),
    "a dataclass": (doubled_weights, Config()),
    "slots": (doubled_weights, Slotted()),
    "a namespace": (doubled_weights, SimpleNamespace(weights=table())),
    "a named tuple": (doubled_left, Pair(table(), 1)),
    "a list": (lambda values: values[0] + values[0], [table()]),
}


@every("name", PLACES)
def test_what_a_program_computes_of_arrays_that_it_brings_along_is_recorded(name: str) -> None:
    function, *arguments = PLACES[name]
    expected = function(*arguments)
    recording = record(function, *arguments)
    assert recording.result.tolist() == expected.tolist()
    report = recording.audit()
    assert not report.unseen
    (site,) = [site for site in report.sites if site.row.kind == "wrap"]
    assert site.measured is not None and site.measured.changed == 1
    assert type(recording.result) is type(TABLE) is type(Model.shared) is np.ndarray
    assert function(*arguments).tolist() == expected.tolist()


class Failing:
    def __init__(self) -> None:
        self.weights, self.left = table(), None

    def fail(self, values: list[Any]) -> None:
        self.left = self.weights * 2
        values.append(self.left)
        NESTED["left"] = self.left  # pyright: ignore
        raise ValueError("the program's own")


def test_arrays_are_put_back_after_an_error() -> None:
    model, values = Failing(), [table()]
    weights, first = model.weights, values[0]
    with pytest.raises(ValueError, match="the program's own"):
        record(model.fail, values)
    assert model.weights is weights and values[0] is first
    kinds = {type(x) for x in (model.left, values[1], NESTED.pop("left"), TABLE)}
    assert kinds == {np.ndarray}


def test_other_threads_compute_with_plain_results_meanwhile() -> None:
    def program(x: Any) -> Any:
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(TABLE + TABLE))
        thread.start()
        thread.join()
        return x + 1, [type(x) is np.ndarray for x in others]

    _, kinds = record(program, np.ones(2)).result
    assert kinds == [True] and type(TABLE) is np.ndarray


def test_a_captured_array_is_an_input_only_where_the_program_uses_it() -> None:
    recording = record(lambda x: x * (2 if TABLE.ndim else TABLE), np.ones(2))
    assert len(recording.inputs) == 1 and not recording.notes


def test_arrays_without_a_dtype_or_a_class_of_graphs_are_named() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    for array in (masked, np.ones(2, np.longdouble), np.ones(2, ml_dtypes.bfloat16)):
        report = record(lambda x, y: (x * 2, y + 1), np.ones(2), array).audit()
        assert report.hidden and "is not recorded" in report.unseen[0].reason


def test_the_globals_of_libraries_are_no_part_of_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(captured, "MOST", 20)  # their caches grow without bound
    table = {"np": np, "record": record, "array": np.ones(3)}
    assert [slot.name for slot in captured.slots(table)] == ["array"]
