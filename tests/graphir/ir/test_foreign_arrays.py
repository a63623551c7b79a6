"""Arrays that other libraries lend by DLPack: with and without versions, of the CPU and others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphirError
from graphir.runtime import array_api, execute, jit
from tests.support.tables import every

CPU, CUDA = 1, 2


class Lent:
    """An array that has DLPack alone."""

    device = CPU

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **settings: Any) -> Any:
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class LentOfOld(Lent):
    """As before DLPack had versions."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()


class OnCuda(Lent):
    device = CUDA

    def __dlpack__(self, **settings: Any) -> Any:
        raise BufferError("the array is on another device")


def doubled(value: Any) -> list[Any]:
    """What each way in makes of an array of float64, times two."""
    graph, other = Graph("doubled", rules="numpy"), Graph("constant", rules="numpy")
    graph.output(graph.input("float64", ("n",), name="x") * 2)
    other.output(other.constant(value) * 2)
    return [execute(graph, value), jit(lambda x: x * 2)(value), execute(other)]


@every("kind", [Lent, LentOfOld, array_api.asarray])
def test_arrays_of_the_cpu_enter(kind: Any) -> None:
    values = np.array([1.0, 2.5])
    for result in doubled(kind(values)):
        np.testing.assert_array_equal(result, values * 2, strict=True)
        assert result.flags.writeable and not np.may_share_memory(result, values)


def test_arrays_of_other_devices_are_refused() -> None:
    for call in (lambda x: doubled(x), jit(lambda x: x), array_api.asarray):
        with pytest.raises(GraphirError, match=r"OnCuda fails: .*device"):
            call(OnCuda(np.ones(2)))


def test_memory_that_is_read_only_enters() -> None:
    values = np.arange(3.0)
    values.flags.writeable = False
    for result in doubled(values):
        assert result.flags.writeable and result.tolist() == [0.0, 2.0, 4.0]


def test_an_input_of_another_dtype_is_refused_by_its_name() -> None:
    graph = Graph("g")
    graph.output(graph.input("float32", ("n",), name="x"))
    with pytest.raises(GraphirError, match=r"input 'x' of graph 'g' .*got an array of float64"):
        execute(graph, Lent(np.ones(2)))
