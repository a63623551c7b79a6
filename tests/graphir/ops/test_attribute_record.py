"""Attribute records: frozen, one for equal attributes, compared to the bit."""

from __future__ import annotations

import mmap
import pickle
import resource
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, ops
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import FrozenFile, constant
from graphir.passes import common_subexpressions
from tests.support.tables import every


def test_equal_attributes_share_one_record_across_graphs_and_pickles() -> None:
    x, y = (Graph(rules=r).input("float32", (3, 4)) for r in ("max", "jax"))
    assert ops.sum(x, axis=1).attrs is ops.sum(y, axis=-1).attrs
    assert ops.sum(x, axis=1).attrs is not ops.sum(x, axis=0).attrs
    assert (x + x).attrs is (y * y).attrs
    record = ops.sum(x, axis=1).attrs
    assert pickle.loads(pickle.dumps(record)) is record
    assert {record: 1}[ops.sum(y, axis=1).attrs] == 1
    assert record == {"axis": (1,), "keepdims": False, "dtype": None}


@every(("one", "other"), [(0.0, -0.0), (1, True), (1, 1.0), (2.0, 2 + 0j), (1, DType.int8)])
def test_attributes_that_differ_by_a_bit_or_a_type_are_apart(one: Any, other: Any) -> None:
    a, b = AttributeRecord.of({"value": one}), AttributeRecord.of({"value": other})
    assert a is not b and a != b and a.content != b.content


@every("size", [4, 100_000])
def test_constants_compare_by_content(size: int) -> None:
    g, values = Graph(), np.arange(size, dtype=np.float32)
    a, b = g.constant(values).attrs, g.constant(values.copy()).attrs
    changed = values.copy()
    changed[-1] = -1
    assert a != b and a.content == b.content != g.constant(changed).attrs.content
    assert a.content is a.content and hash(a.content) == hash(b.content)


@every(
    "change",
    [
        lambda attrs: attrs.update(axis=0),
        lambda attrs: attrs.__setitem__("axis", 0),
        lambda attrs: attrs.pop("axis"),
        lambda attrs: attrs.clear(),
        lambda attrs: attrs.setdefault("new", 1),
        lambda attrs: attrs.__delitem__("axis"),
        lambda attrs: attrs.__ior__({"axis": 0}),
    ],
)
def test_attributes_never_change(change: Any) -> None:
    attrs = ops.sum(Graph().input("float32", (3,)), axis=0).attrs
    with pytest.raises(TypeError, match="never change"):
        change(attrs)
    assert attrs == {"axis": (0,), "keepdims": False, "dtype": None}


def test_constants_share_the_memory_that_nobody_writes_and_copy_all_other() -> None:
    g, data = Graph(), bytes(range(1, 65))
    frozen = np.frombuffer(data, np.float32)
    assert np.shares_memory(g.constant(frozen[4:]).attrs["value"], frozen)
    held = np.arange(4.0)
    view = held.view()
    view.setflags(write=False)
    odd = np.frombuffer(data, np.uint8)[1:5].view(np.float32)
    for array in (view, np.frombuffer(memoryview(bytearray(data)).toreadonly(), np.uint8), odd):
        value = g.constant(array).attrs["value"]
        assert not np.shares_memory(value, array) and not value.flags.writeable


def test_large_constants_that_begin_in_different_ways_are_compared_without_reading_them() -> None:
    g, size = Graph(), 1 << 30
    data = [FrozenFile(-1, size, access=mmap.ACCESS_WRITE) for _ in range(2)]
    for i, each in enumerate(data):
        each[0] = i
    a, b = (g.constant_of((DType.uint8, _read_only(each))) for each in data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert a.attrs.content != b.attrs.content == b.attrs.content
    g.output(a, b)
    assert common_subexpressions(g) is g
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < size >> 12


def _read_only(data: FrozenFile) -> np.ndarray[Any, Any]:
    array = np.frombuffer(data, np.uint8)
    array.setflags(write=False)
    return array


def test_a_large_constant_is_copied_once() -> None:
    g, values = Graph(), np.arange(10_000.0)
    array = g.constant(values).attrs["value"]
    assert not np.shares_memory(array, values) and type(array) is np.ndarray
    assert constant(array) is array
    assert np.shares_memory(constant(array[5:]), array)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
