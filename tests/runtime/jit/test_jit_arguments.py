"""jit: arrays of other libraries and values of user classes as arguments."""

from __future__ import annotations

from array import array as typed_array
from typing import Any

import numpy as np
import pytest

from graphir import GraphError, TensorType, trace
from graphir.runtime import array_api, jit
from tests.runtime.jit.jitted import Converts, Interface, Lends, X, counted
from tests.support.tables import every

# -- arguments


FOREIGN: list[Any] = [Interface, Converts, Lends, memoryview, array_api.asarray]


@every("kind", [*FOREIGN, lambda x: typed_array("f", x)])
def test_foreign_arrays_are_inputs(kind: Any) -> None:
    f, traces = counted(lambda x, y: x * 2 + y)
    values = X.copy()
    foreign = kind(values)
    for _ in range(3):
        values += 1
        if kind is FOREIGN[-1] or isinstance(foreign, typed_array):  # have a copy
            foreign = kind(values)
        np.testing.assert_array_equal(f(foreign, X), values * 2 + X)
        np.testing.assert_array_equal(f(X, foreign), X * 2 + values)
    assert len(traces) == 1


def test_foreign_arrays_have_the_dtype_of_asarray() -> None:
    wide, small = Converts(X.astype(np.int64)), Converts(X.astype(np.int8))
    f = jit(lambda x: x * x)
    assert f(wide).dtype == np.int64 and f(small).dtype == np.int8
    assert f.traced(wide).graph.inputs[0].type == TensorType("int64", (4,))
    assert str(trace(lambda x: x, small).graph.inputs[0].type) == "int8[4]"


def test_foreign_arrays_of_objects_are_refused() -> None:
    with pytest.raises(GraphError, match="Converts is an array of Python objects"):
        jit(lambda x: x * 2)(Converts(np.array([1, "a"], object)))


def test_foreign_arrays_that_cannot_be_read_are_refused() -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("on another device")

    for call in (lambda: jit(lambda x: x * 2)(Broken()), lambda: jit(lambda x: x * Broken())(X)):
        with pytest.raises(GraphError, match="Broken fails: on another device"):
            call()


def test_subclasses_with_other_operators_are_refused() -> None:
    class Scaled(np.ndarray):
        def __mul__(self, other: Any) -> Any:
            return np.asarray(self) + other

    with pytest.raises(GraphError, match=r"Scaled.*np\.asarray"):
        jit(lambda x: x * 2)(X.view(Scaled))
    f = jit(lambda x: x * 2)
    np.testing.assert_array_equal(f(np.lib.stride_tricks.as_strided(X, (2,), (8,))), X[::2] * 2)
