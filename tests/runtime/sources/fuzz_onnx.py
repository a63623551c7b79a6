"""Damaged and hostile ONNX models: python -m tests.runtime.sources.fuzz_onnx --models 1000.

A mutated model is imported, with the reference evaluator's values where the checker accepts it, or
refused by a GraphirError that names the file. No file outside its folder is opened, and memory and
time are bounded.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from graphir import GraphirError
from graphir.passes import cast_report
from graphir.runtime import from_onnx, interpret
from tests.runtime.sources.onnx_node_tests import generated_cases

MEMORY, SECONDS = 4 << 30, 10
"""The bounds of the address space, and of the time that an import may take."""

OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


# -- models that are valid


def _model(rank: int, nodes: list[Any], initializers: dict[str, Any], **more: Any) -> Any:
    """A model of x: float32[n, 4] and y, of a rank."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "net",
        [info("x", FLOAT, ["n", 4])],
        [info("y", FLOAT, [f"y{axis}" for axis in range(rank)])],
        [
            each if isinstance(each, TensorProto) else numpy_helper.from_array(each, name)
            for name, each in initializers.items()
        ],
    )
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10, **more)


def _layers() -> Any:
    rng = np.random.default_rng(0)
    external = TensorProto(name="w", data_type=FLOAT, dims=[4, 3], data_location=1)
    for key, value in {"location": "w.bin", "offset": "16", "length": "48"}.items():
        external.external_data.add(key=key, value=value)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], "gemm", alpha=0.5),
        helper.make_node("LayerNormalization", ["h", "scale"], ["n"], "norm", axis=-1),
        helper.make_node("Cast", ["n"], ["half"], "cast", to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["half"], ["back"], "cast_back", to=FLOAT),
        helper.make_node("Softmax", ["back"], ["p"], "softmax", axis=1),
        helper.make_node("TopK", ["p", "k"], ["y", "places"], "topk", axis=1),
    ]
    bias = helper.make_tensor("b", TensorProto.FLOAT, [3], [0.5, -1.0, 2.0])
    scale = rng.normal(size=3).astype(np.float32)
    return _model(2, nodes, {"w": external, "b": bias, "scale": scale, "k": np.array([2])})


def _shapes() -> Any:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], "shape"),
        helper.make_node("Gather", ["s", "zero"], ["n"], "gather", axis=0),
        helper.make_node("Concat", ["n", "rest"], ["to"], "concat", axis=0),
        helper.make_node("Reshape", ["x", "to"], ["r"], "reshape"),
        helper.make_node("Tile", ["r", "times"], ["t"], "tile"),
        helper.make_node("ConstantOfShape", ["size"], ["z"], "fill"),
        helper.make_node("Concat", ["t", "z"], ["c"], "join", axis=1),
        helper.make_node("Pad", ["c", "pads"], ["q"], "pad", mode="reflect"),
        helper.make_node("Slice", ["q", "one", "last", "one"], ["v"], "slice"),
        helper.make_node("Transpose", ["v"], ["y"], "transpose", perm=[2, 0, 1]),
    ]
    ints = {"zero": [0], "rest": [2, -1], "times": [1, 2, 1], "size": [2, 1, 2], "one": [1]}
    arrays = {name: np.array(value) for name, value in ints.items()}
    arrays |= {"pads": np.array([0, 0, 1, 0, 0, 0]), "last": np.array([99])}
    return _model(3, nodes, arrays)


def _control() -> Any:
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["carry", "x"], ["next"], "times"),
            helper.make_node("Identity", ["go"], ["on"], "same"),
        ],
        "body",
        [info("i", INT, []), info("go", TensorProto.BOOL, []), info("carry", FLOAT, ["n", 4])],
        [info("on", TensorProto.BOOL, []), info("next", FLOAT, ["n", 4])],
    )
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["x"], ["o"])], op, [], [info("o", FLOAT, ["n", 4])]
        )
        for op in ("Exp", "Neg")
    ]
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], "most", keepdims=0),
        helper.make_node("Greater", ["m", "limit"], ["is"], "greater"),
        helper.make_node(
            "If", ["is"], ["f"], "if", then_branch=branches[0], else_branch=branches[1]
        ),
        helper.make_node("Loop", ["count", "start", "f"], ["l"], "loop", body=body),
        helper.make_node("Twice", ["l"], ["y"], "twice", domain="own", factor=3.0),
    ]
    factor = helper.make_node("Constant", [], ["k"])
    factor.attribute.add(name="value_float", type=1, ref_attr_name="factor")
    twice = [factor, helper.make_node("Mul", ["a", "k"], ["b"], "mul")]
    function = helper.make_function("own", "Twice", ["a"], ["b"], twice, OPSETS, ["factor"])
    limit, count = np.array(1, np.float32), np.array(3)
    return _model(
        2, nodes, {"limit": limit, "count": count, "start": np.array(True)}, functions=[function]
    )


def _quantized() -> Any:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "dequantize"),
        helper.make_node("DequantizeLinear", ["w", "scale"], ["v"], "weights"),
        helper.make_node("MatMul", ["d", "v"], ["m"], "matmul"),
        helper.make_node("Conv", ["r", "kernel"], ["c"], "conv", pads=[1, 1]),
        helper.make_node("Unsqueeze", ["m", "axis"], ["r"], "unsqueeze"),
        helper.make_node("Clip", ["c", "low"], ["y"], "clip"),
    ]
    nodes[4], nodes[5] = nodes[5], nodes[4]
    weights = helper.make_tensor(
        "w", TensorProto.INT4, [4, 3], [1, 2, -3, 4, 5, 6, 7, -8, 0, 1, 1, 1]
    )
    arrays = {"scale": np.array(0.1, np.float32), "zero": np.array(3, np.uint8), "w": weights}
    kernel = np.linspace(-1, 1, 3, dtype=np.float32).reshape(1, 1, 3)
    arrays |= {"kernel": kernel, "axis": np.array([1]), "low": np.array(-1, np.float32)}
    return _model(3, nodes, arrays)


MODELS: tuple[Callable[[], Any], ...] = _layers, _shapes, _control, _quantized


# -- mutations


_NUMBERS = (-1, 0, 1, 2, 3, 7, 8, 255, 1 << 20, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))
_TEXTS = ("", "x", "y", "h", "w", "Add", "Loop", "own", "ai.onnx", "n", "axis", "\0", "é" * 9)
_PATHS = ("../secret.bin", "/etc/passwd", "link", "w.bin", "sub", ".", "w.bin/..", "a" * 300)


def mutated(model: Any, pick: Random) -> bytes:
    """Return the file of a model with a few mutations, of fields or of bytes."""
    model = type(model).FromString(model.SerializeToString())
    kind = pick.random()
    if kind < 0.75:
        for _ in range(pick.choice((1, 1, 1, 2, 4))):
            _mutate_field(model, pick)
    data = bytearray(model.SerializeToString())
    if kind > 0.7:
        for _ in range(pick.choice((1, 1, 2, 8))):
            _mutate_bytes(data, pick)
    return bytes(data)


def _mutate_bytes(data: bytearray, pick: Random) -> None:
    at = pick.randrange(len(data) + 1)
    match pick.randrange(5):
        case 0:
            data[at : at + 1] = bytes([pick.randrange(256)])
        case 1:
            data[at:at] = pick.randbytes(pick.choice((1, 2, 9)))
        case 2:
            del data[at : at + pick.choice((1, 2, 30))]
        case 3:
            data[at : at + 1] = bytes([data[at - 1] ^ 1 << pick.randrange(8)])
        case _:
            start = pick.randrange(len(data) + 1)
            data[at:at] = data[start : start + pick.randrange(60)]


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from _messages(part)


def _mutate_field(model: Any, pick: Random) -> None:
    """Change, add, remove, repeat or reorder a value of some message."""
    message = pick.choice([*_messages(model)])
    present = [field for field, _ in message.ListFields()]
    field = pick.choice(
        present if present and pick.random() < 0.8 else [*message.DESCRIPTOR.fields]
    )
    value = getattr(message, field.name)
    is_message = field.message_type is not None
    if hasattr(value, "append") or hasattr(value, "add"):
        if len(value) and pick.random() < 0.7:
            at = pick.randrange(len(value))
            match pick.randrange(3):
                case 0:
                    del value[at]
                case 1 if is_message:
                    value.add().CopyFrom(value[at])
                case 1:
                    value.append(value[at])
                case _ if is_message:
                    other = pick.randrange(len(value))
                    copy = type(value[at])()
                    copy.CopyFrom(value[at])
                    value[at].CopyFrom(value[other])
                    value[other].CopyFrom(copy)
                case _:
                    value[at] = _drawn(model, field, pick)
        elif is_message:
            value.add()
        else:
            value.extend(_drawn(model, field, pick) for _ in range(pick.choice((1, 3))))
    elif pick.random() < 0.2:
        message.ClearField(field.name)
    elif is_message:
        others = [each for each in _messages(model) if each.DESCRIPTOR is field.message_type]
        copy = field.message_type._concrete_class()
        if others:
            copy.CopyFrom(pick.choice(others))
        value.CopyFrom(copy)
    else:
        setattr(message, field.name, _drawn(model, field, pick))


def _drawn(model: Any, field: Any, pick: Random) -> Any:
    """Return a value for a field: one of the model, or an unusual one."""
    match field.cpp_type:
        case field.CPPTYPE_STRING:
            names = [name for node in model.graph.node for name in (*node.input, *node.output)]
            paths = _PATHS if field.containing_type.name == "StringStringEntryProto" else ()
            text = pick.choice((*names, *_TEXTS, *paths, *paths))
            if field.type == field.TYPE_BYTES:
                return pick.choice((text.encode(), pick.randbytes(pick.choice((1, 4, 16)))))
            return text
        case field.CPPTYPE_FLOAT | field.CPPTYPE_DOUBLE:
            return pick.choice((0.0, -1.5, 1e30, float("inf"), float("nan")))
        case field.CPPTYPE_ENUM:
            return pick.choice([value.number for value in field.enum_type.values])
    number = pick.choice((*_NUMBERS, *range(30)))
    if field.cpp_type in (field.CPPTYPE_UINT64, field.CPPTYPE_UINT32):
        number = abs(number)
    return (
        number if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64) else number % 2**31
    )


# -- the judge


class Guard:
    """An audit hook: what code opens or starts while an import is watched."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.is_on = str(folder), False
        self.problems: list[str] = []
        self.roots = (
            self.folder,
            sys.prefix,
            sys.base_prefix,
            str(Path(onnx.__file__).parent.parent),
        )
        self.roots = (*self.roots, str(Path(__file__).parents[3]))

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Note the event if it is none of an import."""
        if not self.is_on:
            return
        if event == "open" and isinstance(args[0], (str, bytes)):
            path = os.fsdecode(args[0])
            is_ours = path.startswith(self.roots) if path.startswith("/") else "/" not in path
            if not is_ours or path == "..":
                self.problems.append(f"opens {path}")
        if event.split(".")[0] in ("subprocess", "socket", "pickle") or event == "os.system":
            self.problems.append(event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch a block, and bound its time."""
        self.problems.clear()
        signal.alarm(SECONDS)
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False
            signal.alarm(0)


def verdict(data: bytes, folder: Path, guard: Guard) -> tuple[str, str]:
    """Return what is wrong with the import of a file, if anything, and how it went."""
    path = folder / "m.onnx"
    path.write_bytes(data)
    graph = None
    with guard.watching():
        try:
            graph = from_onnx(path)
            str(cast_report(graph)), str(graph)
        except GraphirError as error:
            if not str(error).startswith("m.onnx: "):
                return f"no place: {error}", ""
        except BaseException as error:
            return f"{type(error).__name__}: {str(error)[:300]}", ""
    if guard.problems:
        return ", ".join(guard.problems), ""
    return ("", "refused") if graph is None else _compared(graph, path, guard)


def _compared(graph: Any, path: Path, guard: Guard) -> tuple[str, str]:
    """Compare the values with those of the reference evaluator."""
    sizes: dict[str, int] = {}
    inputs = [_array(symbol.type, sizes) for symbol in graph.inputs]
    if any(array is None for array in inputs):
        return "", "no input"
    try:
        signal.alarm(SECONDS)
        onnx.checker.check_model(str(path), full_check=True)
        model = onnx.load(path)
        feeds = dict(zip([each.name for each in model.graph.input], inputs, strict=True))
        expected = ReferenceEvaluator(model).run(None, feeds)
    except (Exception, TimeoutError):
        return "", "not accepted by ONNX"
    finally:
        signal.alarm(0)
    try:
        with guard.watching():
            results = interpret(graph, *inputs)
        if guard.problems:
            return f"the run {', '.join(guard.problems)}", ""
    except GraphirError as error:
        return "", f"refused by the run: {str(error)[-60:]}"
    except Exception as error:
        return f"the run raises {type(error).__name__}: {str(error)[:300]}", ""
    results = results if isinstance(results, tuple) else (results,)
    for result, array in zip(results, expected, strict=True):
        if not isinstance(array, (np.ndarray, np.generic)):
            return "", "no arrays"
        if result.dtype != array.dtype or result.shape != array.shape:
            return f"{result.dtype}{result.shape} is {array.dtype}{array.shape}", ""
        if not np.allclose(result, array, 1e-3, 1e-5, equal_nan=True):
            return f"values {result.ravel()[:5]} are {np.asarray(array).ravel()[:5]}", ""
    return "", "equal"


def _array(type_: Any, sizes: dict[str, int]) -> Any:
    """Return an array of a type, None for a type of too many elements."""
    shape: list[int] = []
    for dim in type_.shape:
        size = dim if isinstance(dim, int) else sizes.setdefault(str(dim), 2 + len(sizes))
        shape.append(size)
    if np.prod(np.array(shape, float)) > 1e5:
        return None
    values = np.linspace(-2, 2, int(np.prod(shape))).reshape(shape)
    return values.astype(type_.dtype.storage)


def folder_of_models(parent: Path) -> Path:
    """Make the folder of the models, with external data, and files outside that models may name."""
    folder = parent / "models"
    (folder / "sub").mkdir(parents=True)
    (parent / "secret.bin").write_bytes(bytes(64))
    (folder / "w.bin").write_bytes(np.linspace(-1, 1, 16, dtype=np.float32).tobytes())
    (folder / "link").symlink_to("../secret.bin")
    return folder


def run(seeds: range, models: list[Any], folder: Path) -> tuple[Counter[str], list[str]]:
    """Judge the models of some seeds; return how their imports went, and what is wrong."""
    guard = Guard(folder)
    sys.addaudithook(guard)
    signal.signal(signal.SIGALRM, _too_late)
    counts, problems = Counter[str](), list[str]()
    for seed in seeds:
        pick = random.Random(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong, kind = verdict(mutated(pick.choice(models), pick), folder, guard)
        counts[kind or "wrong"] += 1
        if wrong:
            problems.append(f"seed {seed}: {wrong}")
            print(problems[-1], flush=True)
    return counts, problems


def _too_late(*_: Any) -> None:
    raise TimeoutError


def main() -> int:
    """Judge some models in bounded memory, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--nodes",
        action="store_true",
        help="node tests of onnx, also on inputs that ONNX leaves undefined",
    )
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.modules["onnxruntime"] = None  # type: ignore[assignment]  # it may crash on such models
    seeds = range(options.seed, options.seed + options.models)
    models = [model() for model in MODELS]
    if options.nodes:
        models = [case.model for case in generated_cases() if len(case.model.graph.node) < 50]
    with tempfile.TemporaryDirectory() as parent:
        counts, problems = run(seeds, models, folder_of_models(Path(parent)))
    print(dict(counts))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
