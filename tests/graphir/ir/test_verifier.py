"""The verifier: a graph corrupted in one place is refused, with the symbol and what is wrong."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    Location,
    Origin,
    ParseError,
    ShapeError,
    Symbol,
    TensorType,
    ops,
    rules,
)
from graphir.ops.attribute_record import AttributeRecord
from graphir.passes import implicit_cast, lower
from tests.support.tables import every

HERE = Location.at("program.py", 1)


def good(under: str = "max") -> Graph:
    g = Graph("g", rules=under)
    x = g.input("int16", ("n", 3), name="x")
    y = g.input("float32", ("n", 3), name="y")
    z = x * 2 + y
    g.output(z.sum(axis=0), z[1:])
    return g


def of(g: Graph, op: str) -> Symbol:
    return next(s for s in g if s.op.name == op)


@every("change", [lambda g: g, implicit_cast, lower])
def test_good_graphs_pass_and_are_returned(change: Callable[[Graph], Graph]):
    g = change(good())
    assert g.verify() is g


def test_an_empty_graph_passes():
    Graph().verify()


def wrong_dtype(g: Graph) -> None:
    of(g, "add").type = TensorType("float64", ("n", 3))


def wrong_shape(g: Graph) -> None:
    of(g, "add").type = TensorType("float32", ("m", 3))


def wrong_reduction(g: Graph) -> None:
    of(g, "sum").attrs = AttributeRecord.of({**of(g, "sum").attrs, "axis": (1,)})


def argument_from_later(g: Graph) -> None:
    of(g, "multiply").args = (g[0], of(g, "sum"))


def argument_itself(g: Graph) -> None:
    add = of(g, "add")
    add.args = (add, g[1])


def swapped_places(g: Graph) -> None:
    a, b = of(g, "multiply").index, of(g, "add").index
    g.symbols[a], g.symbols[b] = g.symbols[b], g.symbols[a]


def swapped_places_renumbered(g: Graph) -> None:
    swapped_places(g)
    for i, s in enumerate(g.symbols):
        s.index = i


def foreign_argument(g: Graph) -> None:
    of(g, "add").args = (of(good(), "multiply"), g[1])


def foreign_argument_of_a_longer_graph(g: Graph) -> None:
    longer = good()
    of(g, "add").args = (longer.outputs[0] + longer.outputs[0], g[1])


def argument_past_the_end(g: Graph) -> None:
    other = good()
    argument = of(other, "multiply")
    argument.index = len(g)
    of(g, "add").args = (argument, g[1])


def foreign_symbol(g: Graph) -> None:
    at = of(g, "add").index
    g.symbols[at] = of(good(), "add")


def symbol_of_no_graph(g: Graph) -> None:
    of(g, "add").graph = Graph()


def removed_symbol(g: Graph) -> None:
    del g.symbols[of(g, "multiply").index]


def unknown_op(g: Graph) -> None:
    add = of(g, "add")
    add.op = dataclasses.replace(ops.add, name="plus")


def impostor_op(g: Graph) -> None:
    add = of(g, "add")
    add.op = dataclasses.replace(ops.add, doc="Another add.")


def too_few_operands(g: Graph) -> None:
    of(g, "add").args = (g[1],)


def too_many_operands(g: Graph) -> None:
    of(g, "sum").args = (g[1], g[1])


def attribute_not_normal(g: Graph) -> None:
    of(g, "sum").attrs = AttributeRecord.of({"axis": 0, "keepdims": False, "dtype": None})


def attribute_by_name(g: Graph) -> None:
    of(g, "sum").attrs = AttributeRecord.of({"axis": (0,), "keepdims": False, "dtype": "float32"})


def attribute_missing(g: Graph) -> None:
    of(g, "sum").attrs = AttributeRecord.of({"axis": (0,)})


def attribute_too_many(g: Graph) -> None:
    of(g, "add").attrs = AttributeRecord.of({"axis": 0})


def attribute_out_of_range(g: Graph) -> None:
    of(g, "sum").attrs = AttributeRecord.of({"axis": (7,), "keepdims": False, "dtype": None})


def origins_on_an_add(g: Graph) -> None:
    of(g, "add").source = (Origin("lhs", "add", HERE, "max", DType.int16, DType.float32),)


CORRUPTIONS: list[tuple[Callable[[Graph], None], str]] = [
    (wrong_dtype, r"\(add\).*its type is float64\[n, 3\], and float32\[n, 3\] by the rules 'max'"),
    (wrong_shape, r"\(add\).*its type is float32\[m, 3\], and float32\[n, 3\]"),
    (wrong_reduction, r"\(sum\).*its type is float32\[3\], and float32\[n\]"),
    (argument_from_later, r"\(multiply\).*operand 1 is used before it has been defined"),
    (argument_itself, r"\(add\).*operand 0 is used before"),
    (swapped_places, r"\(add\).*another graph or place"),
    (swapped_places_renumbered, r"\(add\).*operand 0 is used before"),
    (foreign_argument, r"\(add\).*operand 0"),
    (foreign_argument_of_a_longer_graph, r"\(add\).*operand 0"),
    (argument_past_the_end, r"\(add\).*operand 0"),
    (foreign_symbol, r"\(add\).*another graph"),
    (symbol_of_no_graph, r"\(add\).*another graph"),
    (removed_symbol, r"\(add\).*another graph or place"),
    (unknown_op, r"\(plus\).*not in the catalogue"),
    (impostor_op, r"\(add\).*not in the catalogue"),
    (too_few_operands, r"\(add\).*1 operands, not 2"),
    (too_many_operands, r"\(sum\).*2 operands, not 1"),
    (attribute_not_normal, r"\(sum\).*attributes .*not in normal form"),
    (attribute_by_name, r"\(sum\).*not in normal form"),
    (attribute_missing, r"\(sum\).*not in normal form"),
    (attribute_too_many, r"\(add\).*no attribute is named 'axis'"),
    (attribute_out_of_range, r"\(sum\).*axis 7 is out of range"),
    (origins_on_an_add, r"\(add\).*only a cast"),
]


@every(("corrupt", "near"), CORRUPTIONS)
def test_a_corrupt_symbol_is_refused_by_name(corrupt: Callable[[Graph], None], near: str):
    g = good()
    g.verify()
    corrupt(g)
    for _ in range(2):  # an error leaves nothing behind that the next check would trust
        with pytest.raises(GraphError, match=rf"symbol \d+ {near}") as error:
            g.verify()
        assert re.match(r"symbol \d+ \(\w+\) of graph 'g': ", str(error.value))


@every(
    ("field", "value", "near"),
    [
        ("type", TensorType("float64", ("n", 3)), "its type is float64"),
        ("attrs", AttributeRecord.of({"axis": 0}), "no attribute is named 'axis'"),
        ("op", dataclasses.replace(ops.add, doc="Another add."), "not in the catalogue"),
        ("source", (Origin("lhs", "add", HERE, "max", DType.int16, DType.float32),), "only a cast"),
        ("graph", Graph(), "another graph"),
        ("index", 2, "another graph or place"),
    ],
)
def test_a_symbol_like_one_that_is_right_is_checked_itself(field: str, value: Any, near: str):
    g = good()
    first, second = g[0] + g[1], g[0] + g[1]
    assert first.attrs is second.attrs
    setattr(second, field, value)
    with pytest.raises(GraphError, match=rf"symbol {len(g) - 1} \(add\).*{near}"):
        g.verify()


def test_an_operand_of_a_symbol_like_one_that_is_right_is_checked_too():
    g = good()
    second = [g[0] + g[1], g[0] + g[1]][1]
    for args in ((g[0], second), (g[0], good()[1])):
        second.args = args
        with pytest.raises(
            GraphError, match=rf"symbol {len(g) - 1} \(add\).*operand 1 is used before"
        ):
            g.verify()


def missing_input(g: Graph) -> None:
    g.inputs = g.inputs[:1]


def inputs_out_of_order(g: Graph) -> None:
    g.inputs.reverse()


def input_twice(g: Graph) -> None:
    g.inputs = [g.inputs[0], g.inputs[0]]


def names_too_few(g: Graph) -> None:
    g.input_names.pop()


def names_twice(g: Graph) -> None:
    g.input_names = ["x", "x"]


def name_of_no_identifier(g: Graph) -> None:
    g.input_names = ["x", "a b"]


def an_input_that_is_no_input(g: Graph) -> None:
    g.inputs[1] = of(g, "add")


@every(
    "corrupt",
    [
        *(missing_input, inputs_out_of_order, input_twice, names_too_few, names_twice),
        *(name_of_no_identifier, an_input_that_is_no_input),
    ],
)
def test_a_wrong_list_of_inputs_is_refused(corrupt: Callable[[Graph], None]):
    g = good()
    corrupt(g)
    with pytest.raises(GraphError, match=r"inputs? .*graph 'g'"):
        g.verify()


def test_outputs_are_of_the_graph():
    g = good()
    for foreign in (good().outputs[0], g.outputs[0].__class__(g, *_slots(g.outputs[0]), 3)):
        g.outputs = (foreign,)
        with pytest.raises(GraphError, match="an output of graph 'g' is not one of its symbols"):
            g.verify()


def _slots(s: Symbol) -> tuple[Any, ...]:
    return s.op, s.args, s.attrs, s.type, s.source


def test_outputs_are_what_was_promised():
    g = good()
    g.out_types = (TensorType("int8"),)
    with pytest.raises(GraphError, match="promises"):
        g.verify()


def test_weak_outputs_are_promised_as_what_they_are_committed_to():
    g = Graph("g", [TensorType("weak_int")], [TensorType("weak_float")], rules="python")
    g.output(g[0] / 2)
    low = lower(g, verify_each=True)
    assert low.out_types == (TensorType("float64"),) == tuple(y.type for y in low.outputs)


def test_an_implicit_conversion_in_an_explicit_graph_is_refused():
    g = pickle.loads(pickle.dumps(good()))  # without what was inferred under other rules
    g.rules = rules("explicit")
    with pytest.raises(GraphError, match=r"symbol \d+ \(add\).*'explicit'.*already"):
        g.verify()


def test_a_cast_that_was_dropped_is_noticed():
    g = implicit_cast(good())
    add = of(g, "add")
    cast = next(a for a in add.args if a.op is ops.cast)
    add.args = tuple(cast.args[0] if a is cast else a for a in add.args)
    with pytest.raises(GraphError, match=r"\(add\).*explicit"):
        g.verify()


@every("value", [np.array([1.5]), np.array([1], np.int16), np.array([True]), np.array([1], object)])
def test_a_constant_is_stored_as_its_dtype_demands(value: Any):
    g = good()
    attrs = {"dtype": DType.int8, "value": value}
    g.append(ops.constant, (), attrs, TensorType("int8", (1,)), HERE)
    with pytest.raises(GraphError, match=r"\(constant\)"):
        g.verify()


@every(
    ("dtype", "value"),
    [("int8", 128), ("int8", -129), ("uint8", -1), ("int8", 0.5), ("float32", 1j), ("bool", 2)],
)
def test_a_full_value_fits_its_dtype(dtype: str, value: Any):
    g = good()
    attrs = {"dtype": DType(dtype), "value": value, "shape": (2,), "literal": None}
    g.append(ops.full, (), attrs, TensorType(dtype, (2,)), HERE)
    with pytest.raises(GraphError, match=r"\(full\)"):
        g.verify()


@every(
    ("dtype", "value"),
    [("int8", 127), ("int8", -128), ("bool", 1), ("float32", 7), ("complex64", 1j)],
)
def test_a_full_value_at_the_edge_is_fine(dtype: str, value: Any):
    g = Graph()
    attrs = {"dtype": DType(dtype), "value": value, "shape": (2,), "literal": None}
    g.append(ops.full, (), attrs, TensorType(dtype, (2,)), HERE)
    g.verify()


def test_a_literal_is_a_scalar():
    attrs = {"dtype": DType.float32, "literal": 0.1, "value": np.array([0.1], np.float32)}
    with pytest.raises(ShapeError, match="an array has no literal"):
        Graph().emit(ops.constant, (), attrs)
    constant = "constant {dtype=float32, value=[0x1p+0], literal=0x1p+0} : float32[1]"
    text = f"graph @g rules=max () -> (float32[1]) {{\n  %0 = {constant}\n  return %0\n}}"
    with pytest.raises(ParseError, match="an array has no literal"):
        Graph.parse(text)
    Graph.parse(text.replace(", literal=0x1p+0", ""))


def test_values_in_attributes_are_compared_to_the_bit():
    for value, same in ((0.0, True), (-0.0, True), (0, True)):
        g = Graph()
        x = g.input("float32", (2,))
        padded = ops.pad(x, 1, value=value)
        g.output(padded)
        g.verify()
        assert (str(padded.attrs["value"]) == str(value)) is same


@every("op", list(ops.CATALOGUE))
def test_every_op_is_infered_with_bad_operands_without_a_crash(op: str):
    """Whatever the operands, the verifier answers with a GraphError."""
    each = ops.CATALOGUE[op]
    for count in range(4):
        for dtype, shape in (("int8", ()), ("complex64", ("n", 2)), ("bool", (0,))):
            g = Graph("g")
            args = tuple(g.input(dtype, shape) for _ in range(count))
            g.append(each, args, {}, TensorType("float4_e2m1fn", (99,)), HERE)
            with pytest.raises(GraphError, match=rf"symbol {count} \({op}\) of graph 'g': "):
                g.verify()
