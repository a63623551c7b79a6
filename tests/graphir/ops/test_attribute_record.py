"""Attribute records: frozen, one for equal attributes, compared to the bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, ops
from graphir.ops.attribute_record import AttributeRecord


def test_equal_attributes_share_one_record_across_graphs_and_pickles() -> None:
    x, y = (Graph(rules=r).input("float32", (3, 4)) for r in ("max", "jax"))
    assert ops.sum(x, axis=1).attrs is ops.sum(y, axis=-1).attrs
    assert ops.sum(x, axis=1).attrs is not ops.sum(x, axis=0).attrs
    assert (x + x).attrs is (y * y).attrs
    record = ops.sum(x, axis=1).attrs
    assert pickle.loads(pickle.dumps(record)) is record
    assert {record: 1}[ops.sum(y, axis=1).attrs] == 1
    assert record == {"axis": (1,), "keepdims": False, "dtype": None}


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (1, True), (1, 1.0), (2.0, 2 + 0j), (1, DType.int8)]
)
def test_attributes_that_differ_by_a_bit_or_a_type_are_apart(one: Any, other: Any) -> None:
    a, b = AttributeRecord.of({"value": one}), AttributeRecord.of({"value": other})
    assert a is not b and a != b and a.content != b.content


@pytest.mark.parametrize("size", [4, 100_000])
def test_constants_compare_by_content(size: int) -> None:
    g, values = Graph(), np.arange(size, dtype=np.float32)
    a, b = g.constant(values).attrs, g.constant(values.copy()).attrs
    changed = values.copy()
    changed[-1] = -1
    assert a != b and a.content == b.content != g.constant(changed).attrs.content
    assert a.content is a.content and len(a.content[1][1][2]) <= 4096


@pytest.mark.parametrize(
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
