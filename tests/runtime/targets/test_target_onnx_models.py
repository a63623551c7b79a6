"""ONNX models: what engines mean otherwise, what casts tell, what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed, so no model is made")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed, so no model is run")

import onnx

from graphir import DType, Graph, GraphError, ops
from graphir.runtime import interpret, targets
from graphir.runtime.targets import TargetError
from graphir.runtime.targets.onnx_.body import LACKS
from graphir.runtime.targets.onnx_.target import IR_VERSION, OPSET, model
from tests.peers import CALLS
from tests.runtime.targets.onnx_models import (
    DEVIATIONS,
    F32,
    NO_KERNEL,
    RAISED,
    REFUSED,
    Deviation,
    Run,
    checked,
    near,
    of,
    outcome,
    reference,
    session,
)
from tests.support.engines import graph_of
from tests.support.evaluator import same
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# -- what differs, and why


@every("one", DEVIATIONS)
def test_deviations_are_there_and_no_greater(one: Deviation) -> None:
    graph = of(one.op, *one.inputs, **one.attrs)
    (found,), expected = Run(targets.onnx(graph))(*one.inputs), interpret(graph, *one.inputs)
    assert not same(found, expected)
    with np.errstate(all="ignore"):
        assert np.max(np.abs(np.asarray(found, float) - expected)) <= one.within


def test_of_updates_to_one_place_the_last_wins() -> None:
    """Which the format leaves open; both engines have it so."""
    given = np.zeros(3, F32), F32([1, 2]), np.array([1, 1])
    graph = of("scatter", *given, axis=0)
    for engine in (Run(targets.onnx(graph)), reference(targets.onnx(graph))):
        assert engine(*given)[0].tolist() == [0, 2, 0]


def test_the_reference_evaluator_takes_indices_along_an_axis_as_they_come() -> None:
    given = np.arange(3.0), np.array([5])
    graph = of("take_along", *given, axis=0)
    assert outcome(partial(interpret, graph), *given) is None
    assert outcome(Run(targets.onnx(graph)), *given) is None
    assert outcome(reference(targets.onnx(graph)), *given) is not None


def test_the_reference_evaluator_broadcasts_complex_infinities_with_nan() -> None:
    """It multiplies by 1, and onnxruntime has no complex numbers."""
    given = np.array([complex(np.inf, 1)])
    graph = of("broadcast_to", given, shape=(2,))
    run = Run(targets.onnx(graph))
    assert run.engine == "reference"
    (found,) = run(given)
    assert np.isnan(found.imag).all()
    assert (interpret(graph, given).imag == 1).all()


# -- what onnxruntime lacks


@every("kind", LACKS)
def test_every_detour_is_needed(kind: str) -> None:
    assert session(checked(alone(kind, DType.float32)))
    for dtype in LACKS[kind]:
        if (kind, dtype) in (("MatMul", DType.uint32), ("MatMul", DType.uint64)):
            continue  # which fail where there are no elements
        with pytest.raises((*REFUSED, *NO_KERNEL)):
            session(checked(alone(kind, dtype)))


def test_matmul_of_no_unsigned_integers_fails_in_onnxruntime() -> None:
    made = alone("MatMul", DType.uint32)
    none = np.zeros((2, 0), np.uint32), np.zeros((0, 2), np.uint32)
    for info, x in zip(made.graph.input, none, strict=True):
        for dim, size in zip(info.type.tensor_type.shape.dim, x.shape, strict=True):
            dim.dim_value = size
    with pytest.raises(RAISED):
        Run(made)(*none)
    graph = of("matmul", *none)
    assert same(Run(targets.onnx(graph))(*none)[0], interpret(graph, *none))


def alone(kind: str, dtype: DType) -> Any:
    """A model of one node of ONNX on a dtype."""
    helper = onnx.helper
    element = helper.np_dtype_to_tensor_dtype(dtype.storage)
    inputs = [helper.make_tensor_value_info(name, element, [2, 2]) for name in ("x", "y")]
    known = {
        "shape": np.array([2, 2]),
        "pads": np.array([1, 0, 0, 0]),
        "axis": np.array(0),
        "condition": np.full((2, 2), True),
    }
    names = {
        "CumSum": ["x", "axis"],
        "CumProd": ["x", "axis"],
        "MatMul": ["x", "y"],
        "Expand": ["x", "shape"],
        "Tile": ["x", "shape"],
        "Pad": ["x", "pads"],
        "Where": ["condition", "x", "y"],
    }[kind]
    node = helper.make_node(kind, names, ["z"])
    output = helper.make_tensor_value_info("z", element, ["rows", "columns"])
    tensors = [onnx.numpy_helper.from_array(x, name) for name, x in known.items() if name in names]
    inputs = [info for info in inputs if info.name in names]
    graph = helper.make_graph([node], "alone", inputs, [output], tensors)
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)


def test_the_opset_is_the_first_that_has_what_is_written() -> None:
    names = [name for name in CALLS if name != "as_complex"]
    graphs = [graph_of(name, dtype) for name in names for dtype in (DType.int16, DType.float32)]
    models = [targets.onnx(graph) for graph in graphs if graph]
    written = {node.op_type for made in models for node in made.graph.node}
    versions: dict[str, int] = {}
    for one in onnx.defs.get_all_schemas_with_history():
        if not one.domain and one.name in written:
            versions[one.name] = min(one.since_version, versions.get(one.name, one.since_version))
    assert versions.keys() == written
    assert max(versions.values()) == OPSET
    assert Run(targets.onnx(of("exp", F32([1])))).engine == "onnxruntime"


def test_onnxruntime_errs_at_the_greatest_of_int64() -> None:
    """Why integers are chosen by comparison, and reduced an axis at a time by TopK."""
    x, y = np.array([2**31, 7]), np.array([0, 7])
    for name in ("maximum", "minimum"):
        graph = of(name, x, y)
        assert same(Run(targets.onnx(graph))(x, y)[0], interpret(graph, x, y))
    graph = of("max", x)
    made = targets.onnx(graph)
    assert "TopK" in {node.op_type for node in made.graph.node}
    assert Run(made)(x)[0] == 2**31


# -- the pass is what makes a model valid


MIXED = """add subtract multiply divide remainder maximum equal less where clip concat stack
    scatter matmul outer tensordot layer_norm pow floor_divide"""


@every("name", MIXED.split())
def test_without_our_casts_a_model_is_refused(name: str) -> None:
    call, op = CALLS[name], ops.CATALOGUE[name]
    dtypes = [(DType.int16, DType.float32)[place % 2] for place in range(len(call.free))]
    g = Graph(name)
    taken = [g.input(*one) for one in call.operands(*dtypes) if isinstance(one, tuple)]
    g.output(op(*([taken] if op.variadic else taken), **call.attrs))
    with pytest.raises((*REFUSED, GraphError)):
        checked(model(g))
    inputs = [np.ones(x.shape, x.dtype.storage) for x in g.inputs]
    inputs = [np.zeros_like(x) if x.dtype == np.int64 else x for x in inputs]
    assert near(Run(targets.onnx(g))(*inputs)[0], interpret(g, *inputs))


# -- what is told


def mixed() -> Graph:
    g = Graph("mixed")
    x, w = g.input("int16", ("n",), name="x"), g.input("bfloat16", ("n",), name="w")
    with g.layer("encoder"):
        y = x * w
    g.output(y, y.cast("float32"))
    return g


def told(node: Any) -> dict[str, str]:
    return {one.key.removeprefix("graphir."): one.value for one in node.metadata_props}


def test_casts_tell_reason_rule_path_loss_and_line() -> None:
    graph = mixed()
    location = graph.outputs[0].location
    made = targets.onnx(graph)
    casts = [told(node) for node in made.graph.node if node.op_type == "Cast" and told(node)]
    assert {
        "kind": "implicit",
        "reason": "lhs of multiply",
        "rule": "max",
        "path": "int16 -> int32 -> int64 -> float16 -> bfloat16",
        "loss": "257 becomes 256.0, 7 bits fewer",
        "location": str(location),
    } in casts
    assert {one["kind"] for one in casts if "kind" in one} == {
        *("implicit", "legalization", "explicit")
    }
    assert location.file == "tests/runtime/targets/test_target_onnx_models.py"


def test_every_node_tells_its_line_and_its_layer() -> None:
    made = targets.onnx(mixed())
    assert all("location" in told(node) for node in made.graph.node)
    (product,) = [node for node in made.graph.node if node.op_type == "Mul"]
    assert product.name.startswith("encoder/multiply")
    assert "lhs of multiply" in next(node.doc_string for node in made.graph.node if node.doc_string)


def test_a_cast_that_serves_several_uses_tells_all() -> None:
    g = Graph("shared", rules="numpy")
    x, w = g.input("int16", ("n",), name="x"), g.input("float32", ("n",), name="w")
    g.output(x * w, x + w)
    (cast,) = [
        node
        for node in targets.onnx(g).graph.node
        if node.op_type == "Cast" and "reason" in told(node)
    ]
    assert [told(cast)[key] for key in ("reason", "reason.2")] == ["lhs of multiply", "lhs of add"]
    assert len(cast.doc_string.splitlines()) == 2


def test_the_model_tells_what_is_legalized_and_what_dtypes_are_meant() -> None:
    g = Graph("dtypes")
    x, y = g.input("index", ("n",), name="x"), g.input("tensor_float32", ("n",), name="y")
    g.output(x + 1, y * 2, g.input("bfloat16", ("n",), name="z"))
    made = checked(targets.onnx(g))
    note = "computed in float32, rounded after each op"
    assert told(made)["legalized.bfloat16"] == told(made)["legalized.tensor_float32"] == note
    ends = [told(info).get("dtype") for info in (*made.graph.input, *made.graph.output)]
    assert ends == ["index", "tensor_float32", None] * 2


def test_names_and_sizes_are_kept() -> None:
    g = Graph("sizes")
    x = g.input("float32", ("n", 3), name="output0")
    g.output(x.reshape(-1), x[1:], x, x)
    made = checked(targets.onnx(g))
    shapes = [
        [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in (*made.graph.input, *made.graph.output)
    ]
    assert shapes == [["n", 3], ["3*n"], ["n-1", 3], ["n", 3], ["n", 3]]
    names = [info.name for info in (*made.graph.input, *made.graph.output)]
    assert names == ["output0", "output0_2", "output1", "output2", "output3"]
    bound = checked(targets.onnx(g, {"n": 4}))
    assert bound.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 12
    x = np.arange(12, dtype=F32).reshape(4, 3)
    for one in (made, bound):
        for found, expected in zip(Run(one)(x), interpret(g, x), strict=True):
            assert same(found, expected)


# -- what is refused


@every(
    ("shapes", "given"),
    [
        (("n", "n"), (3, 1)),
        (("n", "n"), (1, 3)),
        (("2*n",), (3,)),
        (("n", "n+1"), (3, 3)),
        (("n", "m", "n*m"), (2, 3, 5)),
    ],
)
def test_sizes_that_do_not_fit_fail(shapes: tuple[str, ...], given: tuple[int, ...]) -> None:
    """Rather than be broadcast."""
    g = Graph("sizes")
    inputs = [g.input("float32", (dim,)) for dim in shapes]
    g.output(*inputs, g.full["float32"](1.0, (inputs[0].shape[0],)))
    run, arrays = Run(targets.onnx(g)), [np.ones(size, F32) for size in given]
    assert outcome(partial(interpret, g), *arrays) is None
    assert run.engine == "onnxruntime"
    for engine in (run, reference(run.model)):
        assert outcome(engine, *arrays) is None


def failing() -> dict[str, tuple[Graph, tuple[Any, ...], tuple[Any, ...]]]:
    """Graphs, inputs that they take, and inputs with which a run fails."""
    found: dict[str, tuple[Graph, tuple[Any, ...], tuple[Any, ...]]] = {}

    def add(name: str, dtype: Any, function: Any, good: Any, bad: Any, dim: str = "n") -> None:
        g = Graph(name)
        g.output(function(g.input(dtype, (dim,))))
        storage = DType(dtype).storage
        found[name] = g, (np.array(good, storage),), (np.array(bad, storage),)

    add("rebind", "float32", lambda x: x.rebind((3,)), [1, 2, 3], [1, 2])
    add("slice", "float32", lambda x: x[:3], [1, 2, 3], [1, 2])
    add("max", "float32", lambda x: x.max(), [1, 2], [])
    add("argmin", "int64", lambda x: ops.argmin(x), [1, 2], [])
    add("pow", "int32", lambda x: x.graph.constant["int32"]([2]) ** x, [0, 5], [1, -1])
    add("gather", "int8", lambda x: ops.gather(x, x), [0, -1], [0, 2])
    add("range", "int8", lambda x: x.graph.range["int8"](0, x.shape[0] * 50, 50), [0] * 3, [0] * 4)
    return found


@every("name", failing())
def test_what_is_an_error_fails_in_the_run(name: str) -> None:
    graph, good, bad = failing()[name]
    run = Run(targets.onnx(graph))
    assert run.engine == "onnxruntime"
    for engine in (run, reference(run.model)):
        assert same(engine(*good)[0], interpret(graph, *good))
        assert outcome(engine, *bad) is None
    assert outcome(partial(interpret, graph), *bad) is None


def test_a_dim_that_nothing_binds_is_named() -> None:
    g = Graph("open")
    g.output(g.input("float32", ("n*m",)) + 1)
    with pytest.raises(TargetError, match="nothing binds"):
        targets.onnx(g)
