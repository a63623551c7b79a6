"""What the array API namespace says to who takes it for NumPy, or for a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.runtime import array_api
from graphir.runtime.array_api import forcing
from graphir.runtime.array_api.forcing import pending
from tests.support.tables import every

xp: Any = array_api


def refused(call: Any, error: type[Exception] = TypeError) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_ways_out_are_functions_of_the_namespace() -> None:
    x, i, small = xp.ones(3, dtype=xp.float32), xp.asarray([1, 2]), xp.ones(1, dtype=xp.int8)
    said = {
        refused(lambda: i + 1.5),
        refused(lambda: xp.ones(2, dtype=xp.int32) + 1.5),
        refused(lambda: i / i),
        refused(lambda: xp.where(i, i, i)),
        refused(lambda: xp.concat([x, i])),
        refused(lambda: x + xp.ones(3, dtype=xp.int64)),
        refused(lambda: small + 1000),
        refused(lambda: ~x),
    }
    for one in said:
        assert "astype(x, " in one, one
        assert ".cast(" not in one and "graph" not in one and "g.scalar" not in one, one
    assert "for example astype(x, float64)" in refused(lambda: xp.sin(i))
    assert refused(lambda: small + 1000).endswith(
        "choose a wider dtype, or astype(x, int16) of the other operand, or write "
        "asarray(1000, dtype=int16)"
    )
    assert "choose what to lose by astype(x, ...)" in refused(lambda: x + xp.asarray([1, 2, 3]))


def test_ways_out_of_what_is_found_later() -> None:
    x, i = xp.ones(3, dtype=xp.float32), xp.asarray([2])
    text = refused(lambda: int((i**-1)[0]), ValueError)
    assert text.endswith("for example astype(x, float64)") and "test_array_api_wording" in text
    text = refused(lambda: xp.result_type(x, i))
    assert text.endswith("choose what to lose by astype(x, ...)")
    assert "int64 and a Python float do not promote" in refused(lambda: i + 1.5)


def test_what_is_no_item() -> None:
    i, small = xp.asarray([2]), xp.zeros(1, dtype=xp.uint8)

    def put(x: Any, value: Any) -> None:
        x[0] = value

    text = "x[...] = y: an array of uint8 takes no 1.5; int(y) first"
    assert refused(lambda: put(small, 1.5)) == text
    text = "x[...] = y: an array of uint8 takes no int64; astype(y, x.dtype) first"
    assert refused(lambda: put(small, i[0])) == text
    assert "not ndarray; asarray(...) makes" in refused(lambda: put(i, np.ones(1)))


def test_values_of_more_than_one_element() -> None:
    x = xp.ones(3)
    assert refused(lambda: bool(x > 0)).endswith("not 0-d; reduce it by any(x) or all(x)")
    assert refused(lambda: float(x)).endswith("not 0-d; take one element, x[i]")


METHODS = {
    "sum": "an Array has no 'sum'; call the namespace's sum(x, ...)",
    "astype": "an Array has no 'astype'; call the namespace's astype(x, ...)",
    "transpose": "an Array has no 'transpose'; call the namespace's permute_dims(x, ...)",
    "copy": "an Array has no 'copy'; call asarray(x, copy=True)",
    "item": "an Array has no 'item'; float(x), int(x) or np.asarray(x).item()",
    "colour": "an Array has no 'colour'",
    "__array_interface__": "an Array has no '__array_interface__'",
}


@every("name", METHODS)
def test_methods_of_numpy(name: str) -> None:
    x = xp.ones(3)
    assert not hasattr(x, name)
    assert refused(lambda: getattr(x, name), AttributeError) == METHODS[name]


NAMES = {
    "array": "the array API standard has no 'array'; asarray is the nearest",
    "absolute": "the array API standard has no 'absolute'; abs is the nearest",
    "arctan2": "the array API standard has no 'arctan2'; atan2 is the nearest",
    "concatenate": "the array API standard has no 'concatenate'; concat is the nearest",
    "quaternion": "the array API standard has no 'quaternion'",
    "__wrapped__": "the array API standard has no '__wrapped__'",
}


@every("name", NAMES)
def test_names_of_numpy(name: str) -> None:
    assert not hasattr(xp, name)
    assert refused(lambda: getattr(xp, name), AttributeError) == NAMES[name]


def test_operands_used_twice_do_not_slow_a_long_program(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def counting(symbol: Any) -> Any:
        todo = pending(symbol)
        counted.append(len(todo))
        return todo

    monkeypatch.setattr(forcing, "pending", counting)
    a, b = xp.zeros(3), xp.ones(3)
    for _ in range(1000):
        a, b = a * 0.5 + b * 0.5, b * 0.5 - a * 0.25
    assert np.isfinite(float(a[0]))
    assert sum(counted) < 20 * 7000  # the ops counted anew, beside those of the program
