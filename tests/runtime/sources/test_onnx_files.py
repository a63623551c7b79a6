"""ONNX files that are hostile, damaged or large: read right, or refused with the place."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from graphir import DType, GraphError
from graphir.passes import cast_report
from graphir.passes.reports import REPORT_FORMATS

onnx = pytest.importorskip("onnx")

from graphir.runtime import from_onnx  # noqa: E402
from graphir.runtime.sources.onnx_.model import DTYPES, OnnxModel, read_model  # noqa: E402
from tests.support.tables import every  # noqa: E402

SHAPES = [(), (0,), (3,), (5, 7), (2, 3, 4001)]


def model_of(*tensors: Any) -> Any:
    return onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], tensors))


def read_first(model: OnnxModel) -> tuple[DType, np.ndarray[Any, Any]]:
    return model.array(model.proto.graph.initializer[0])


def values_of(dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    bits = dtype.bits if dtype.narrow else 1 if dtype is DType.bool else 8
    raw = rng.integers(0, 2**bits, (*shape, dtype.storage.itemsize), dtype=np.uint8)
    return raw.view(dtype.storage).reshape(shape)


NUMBERS = [number for number in DTYPES if number in onnx.TensorProto.DataType.values()]
"""The numbers of the dtypes that this version of onnx has."""


@every("number", NUMBERS)
def test_initializers_have_the_values_of_the_onnx_package(number: int) -> None:
    dtype = DTYPES[number]
    for shape in SHAPES:
        values = values_of(dtype, shape)
        tensor = onnx.numpy_helper.from_array(values, "w")
        assert tensor.data_type == number
        proto = model_of(tensor)
        for source in (proto, proto.SerializeToString()):
            read_dtype, array = read_first(read_model(source))
            assert read_dtype is dtype and array.dtype == dtype.storage
            assert array.shape == shape and array.tobytes() == values.tobytes()


@every("number", NUMBERS)
def test_typed_data_has_the_values_of_the_onnx_package(number: int) -> None:
    dtype = DTYPES[number]
    values = np.array([0, 1, 1, 0, 1]).astype(dtype.storage)
    tensor = onnx.helper.make_tensor("w", number, (5,), values.tolist())
    _, array = read_model(model_of()).array(tensor)
    assert array.tobytes() == onnx.numpy_helper.to_array(tensor).tobytes()


EXTERNAL = {
    "/etc/passwd": {},
    "../beside.bin": {},
    "sub/../../beside.bin": {},
    "linked/beside.bin": {},
    "link.bin": {},
    "fifo": {},
    "sub": {},
    "sub/": {},
    "": {},
    "none.bin": {},
    "w.bin": {"offset": "4"},
    "w.bin#1": {"offset": "-4"},
    "w.bin#2": {"offset": "0", "length": "15"},
    "w.bin#3": {"offset": "9" * 19, "length": "16"},
    "w.bin#4": {"location": "w.bin"},
    "w.bin#5": {"length": "9" * 30},
}


@pytest.mark.parametrize("case", EXTERNAL)
def test_external_data_outside_the_folder_or_file_is_refused(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for path in (tmp_path / "beside.bin", folder / "w.bin"):
        path.write_bytes(bytes(16))
    (folder / "linked").symlink_to(tmp_path)
    (folder / "link.bin").symlink_to("w.bin")
    os.mkfifo(folder / "fifo")
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    for key, value in [("location", case.partition("#")[0]), *EXTERNAL[case].items()]:
        tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(model_of(tensor).SerializeToString())
    with pytest.raises(GraphError, match=r"^m\.onnx: tensor 'w': "):
        read_first(read_model(folder / "m.onnx"))


def test_external_data_below_the_folder_is_mapped_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with (tmp_path / "sub" / "w.bin").open("wb") as file:
        file.truncate(3 << 30)
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[3 << 10, 1 << 18], data_location=1)
    tensor.external_data.add(key="location", value="sub/w.bin")
    (tmp_path / "m.onnx").write_bytes(model_of(tensor).SerializeToString())
    dtype, array = read_first(read_model(tmp_path / "m.onnx"))
    assert dtype is DType.float32 and array.shape == (3 << 10, 1 << 18) and array[-1, -1] == 0
    assert not array.flags.owndata and not array.flags.writeable


TENSORS: dict[str, dict[str, Any]] = {
    "negative": {"dims": [-1], "raw_data": b""},
    "terabytes": {"dims": [1 << 40], "raw_data": bytes(4)},
    "overflow": {"dims": [1 << 62, 4, 0]},
    "axes": {"dims": [1] * 65, "raw_data": bytes(4)},
    "short": {"dims": [2], "raw_data": bytes(7)},
    "long": {"dims": [2], "raw_data": bytes(9)},
    "counts": {"dims": [2], "float_data": [1]},
    "empty": {"dims": [2]},
    "field": {"dims": [1], "double_data": [1]},
    "both": {"dims": [1], "float_data": [1], "raw_data": bytes(4)},
    "text": {"dims": [1], "data_type": 8, "string_data": [b"a"]},
    "unknown": {"dims": [1], "data_type": 99, "raw_data": b"a"},
    "bool": {"dims": [1], "data_type": 9, "raw_data": b"\2"},
    "int8": {"dims": [1], "data_type": 3, "int32_data": [200]},
    "float16": {"dims": [1], "data_type": 10, "int32_data": [1 << 16]},
    "uint32": {"dims": [1], "data_type": 12, "uint64_data": [1 << 32]},
    "int4": {"dims": [3], "data_type": 22, "int32_data": [1]},
}


@every("case", TENSORS)
def test_tensors_whose_data_is_not_of_their_type_are_refused(case: str) -> None:
    tensor = onnx.TensorProto(**{"name": "w", "data_type": 1, **TENSORS[case]})
    with pytest.raises(GraphError, match=r"^model: tensor 'w': "):
        read_first(read_model(model_of(tensor)))


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    whole = model_of(onnx.numpy_helper.from_array(np.ones(9999), "w")).SerializeToString()
    newer = model_of()
    newer.opset_import[0].version = 999
    for data in (b"", b"PK\3\4...", b"\x80\4\x95", b"some text", whole[:-9000], whole[:5000]):
        path = tmp_path / "m.onnx"
        path.write_bytes(data)
        with pytest.raises(GraphError, match=r"^m\.onnx: not an ONNX model"):
            read_model(path)
    with pytest.raises(GraphError, match="install a newer onnx"):
        read_model(newer)
    with pytest.raises(GraphError, match="not a regular file"):
        read_model(tmp_path)


def test_a_whole_node_has_the_data_of_its_tensors(tmp_path: Path) -> None:
    values = np.arange(9999.0)
    tensor = onnx.numpy_helper.from_array(values, "w")
    graph = onnx.helper.make_graph([], "branch", [], [], [tensor])
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], value=tensor),
        onnx.helper.make_node("If", ["x"], ["y"], then_branch=graph, else_branch=graph),
    ]
    proto = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], []))
    model = read_model(proto.SerializeToString())
    assert model.proto.ByteSize() < 2000
    assert [model.whole(node) for node in model.proto.graph.node] == nodes


def test_nodes_are_checked_against_their_op() -> None:
    def add(*inputs: str, **attributes: Any) -> Any:
        return onnx.helper.make_node("Add", inputs, ["y"], **attributes)

    model, opsets = read_model(model_of()), {"": 20}
    model.check_node(add("a", "b"), opsets)
    mistyped = onnx.helper.make_node("Softmax", ["a"], ["b"], axis=1)
    mistyped.attribute[0].type = onnx.AttributeProto.FLOAT
    for node, problem in (
        (add("a"), "input size 1"),
        (add("a", "b", axis=1), "axis"),
        (onnx.helper.make_node("Cast", ["a"], ["b"]), "'to' is missing"),
        (onnx.helper.make_node("None", ["a"], ["b"]), "No Op registered"),
        (mistyped, "mismatch"),
    ):
        with pytest.raises(GraphError, match=problem):
            model.check_node(node, opsets)


# -- graphs and functions


def neg(*names: str) -> Any:
    return onnx.helper.make_node("Neg", names[:1], names[1:])


def calling(name: str, *names: str) -> Any:
    return onnx.helper.make_node(name, names[:1], names[1:], domain="own")


def graph_of(nodes: Any, bodies: dict[str, Any], *initializers: Any) -> Any:
    """A model of x: float32[2] and y, with local functions of a, which give b."""
    info = onnx.helper.make_tensor_value_info
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("own", 1)]
    functions = [
        onnx.helper.make_function("own", name, ["a"], ["b"], body, opsets)
        for name, body in bodies.items()
    ]
    graph = onnx.helper.make_graph(
        nodes, "g", [info("x", 1, [2])], [info("y", 1, [2])], initializers
    )
    return onnx.helper.make_model(graph, functions=functions, opset_imports=opsets)


DOUBLING = {
    f"f{i}": [calling(f"f{i + 1}", "a", "c"), calling(f"f{i + 1}", "c", "b")] for i in range(20)
}
CHAIN = {f"f{i}": [calling(f"f{i + 1}", "a", "b")] for i in range(40)}
WRONG: dict[str, tuple[Any, str]] = {
    "itself": (([calling("f", "x", "y")], {"f": [calling("f", "a", "b")]}), "calls itself"),
    "doubling": (([calling("f0", "x", "y")], {**DOUBLING, "f20": [neg("a", "b")]}), "3145727"),
    "deep": (([calling("f0", "x", "y")], {**CHAIN, "f40": [neg("a", "b")]}), "32 deep"),
    "input": (([neg("x", "x")], {}), "two values have the name 'x'"),
    "twice": (([neg("x", "y"), neg("x", "y")], {}), "two values have the name 'y'"),
    "absent": (([neg("z", "y"), neg("x", "w")], {}), "named 'z'"),
    "cycle": (([neg("z", "y"), neg("y", "z")], {}), r"cycle; got node 2 \(Neg\) -> node 1 "),
    "own result": (([neg("y", "y")], {}), "form a cycle"),
    "unknown": (([onnx.helper.make_node("Foo", ["x"], ["y"])], {}), "onnx has no op Foo"),
}


@every("case", WRONG)
def test_graphs_that_are_not_sound_are_refused_with_the_node(case: str) -> None:
    parts, problem = WRONG[case]
    with pytest.raises(GraphError, match=rf"^model: node .*{problem}") as caught:
        from_onnx(graph_of(*parts))
    assert len(str(caught.value)) < 400


def test_functions_that_double_are_refused_before_any_is_expanded() -> None:
    parts, _ = WRONG["doubling"]
    start = perf_counter()
    with pytest.raises(GraphError):
        from_onnx(graph_of(*parts))
    assert perf_counter() - start < 1


@pytest.mark.parametrize("field", ["initializer", "input", "functions"])
def test_two_parts_of_one_name_are_refused(field: str) -> None:
    tensor = onnx.helper.make_tensor("w", 1, [], [2.0])
    model = graph_of([calling("f", "x", "y")], {"f": [neg("a", "b")]}, tensor)
    parts = getattr(model if field == "functions" else model.graph, field)
    parts.add().CopyFrom(parts[0])
    with pytest.raises(GraphError, match=r"^model: two \w+ have the name"):
        from_onnx(model)


def test_nodes_out_of_order_are_sorted() -> None:
    nodes = [neg("v", "y"), neg("x", "w"), neg("w", "v")]
    graph = from_onnx(graph_of(nodes, {"f": nodes}))
    assert [str(symbol.location) for symbol in graph][1:] == ["Neg_2", "Neg_3", "Neg_1"]
    bodies = {"f": [neg("c", "b"), neg("a", "c")]}
    assert len(from_onnx(graph_of([calling("f", "x", "y")], bodies)).symbols) == 3


def test_a_hard_link_to_a_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(bytes(16))
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    tensor.external_data.add(key="location", value="w.bin")
    (folder / "m.onnx").write_bytes(model_of(tensor).SerializeToString())
    os.link(folder / "w.bin", folder / "same.bin")  # inside
    assert read_first(read_model(folder / "m.onnx"))[1].shape == (4,)
    os.link(folder / "w.bin", tmp_path / "outside.bin")
    with pytest.raises(GraphError, match="hard links outside the model's folder"):
        read_first(read_model(folder / "m.onnx"))


@pytest.mark.parametrize("first", [False, True])
def test_large_data_may_say_that_its_location_is_the_default(first: bool) -> None:
    tensor = onnx.numpy_helper.from_array(np.arange(9999.0), "w")
    location = onnx.TensorProto(data_location=0).SerializeToString()
    content = (
        location + tensor.SerializeToString() if first else tensor.SerializeToString() + location
    )
    assert b"p\0" in content  # the field is there
    field = b"\x2a" + _length(content) + content  # GraphProto.initializer
    graph = model_of().graph.SerializeToString() + field
    data = b"\x3a" + _length(graph) + graph + model_of().SerializeToString()
    _, array = read_first(read_model(data))
    np.testing.assert_array_equal(array, np.arange(9999.0))


def _length(content: bytes) -> bytes:
    result, size = bytearray(), len(content)
    while size > 127:
        result.append(size & 127 | 128)
        size >>= 7
    return bytes((*result, size))


def test_typed_data_beside_empty_raw_data_is_read() -> None:
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2], float_data=[1, 2], raw_data=b"")
    np.testing.assert_array_equal(read_first(read_model(model_of(tensor)))[1], [1, 2])


def test_sparse_initializers_are_read() -> None:
    values = onnx.helper.make_tensor("w", 1, [2], [5.0, 7.0])
    for indices in ([1, 5], [[0, 1], [1, 2]]):
        places = onnx.numpy_helper.from_array(np.array(indices), "places")
        sparse = onnx.helper.make_sparse_tensor(values, places, [2, 3])
        _, array = read_model(model_of()).dense(sparse)
        np.testing.assert_array_equal(array, [[0, 5, 0], [0, 0, 7]])
        sparse.dims[0] = 1
        with pytest.raises(GraphError, match="indices of a sparse tensor"):
            read_model(model_of()).dense(sparse)


def test_names_in_a_model_reach_no_terminal_unescaped() -> None:
    evil = "\x1b[31m<script>\n\u202e|`"
    nodes = [
        onnx.helper.make_node("Cast", ["x"], [evil], evil, to=onnx.TensorProto.FLOAT16),
        onnx.helper.make_node("Mul", [evil, f"w{evil}"], ["y"], f"{evil}2"),
    ]
    graph = from_onnx(graph_of(nodes, {}, onnx.helper.make_tensor(f"w{evil}", 1, [], [2.0])))
    report = cast_report(graph)
    assert "Mul has one type" in "\n".join(report.sentences)
    for write in REPORT_FORMATS.values():
        text = write(report)
        assert all(c.isprintable() or c in "\n\t" for c in text) and "<script>\n" not in text
    with pytest.raises(GraphError) as caught:
        from_onnx(graph_of([neg(evil, "y")], {}))
    assert all(c.isprintable() or c == "\n" for c in str(caught.value))
