"""The engines that take text or nodes in place of calls: numexpr, onnxruntime, numba.

None computes in bfloat16: a user converts such arrays with NumPy first, and so is it done here.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tests.benchmarks.engine import BFLOAT16, Array, Engine, Function, Unable
from tests.benchmarks.recording import BOOL, Line, Record
from tests.benchmarks.workloads import Workload

_NARROW = ("bfloat16", "float16")


def widened(array: Array) -> Array:
    """What a user passes to a library that has no bfloat16."""
    return array.astype(np.float32) if array.dtype == BFLOAT16 else array


class Numexpr(Engine):
    name, module, chooses = "numexpr", "numexpr", True
    texts: Mapping[str, str] = (
        {"add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})"}
        | {"greater": "({} > {})", "negative": "(-{})", "square": "({0} * {0})"}
        | {name: name + "({})" for name in ("abs", "exp", "log", "sqrt", "tanh")}
        | {"relu": "where({0} > 0, {0}, zero)", "where": "where({}, {}, {})", "mean": "sum({})"}
    )

    def use(self, threads: int) -> None:
        importlib.import_module("numexpr").set_num_threads(threads)

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        run = self._evaluated(workload)
        if workload.name != "W7":
            return run
        return lambda *arrays: run(*arrays) / np.float32(arrays[0].size)

    def into(self, workload: Workload, n: int, threads: int) -> Function:
        if workload.name == "W7":
            raise Unable("no out=")
        return self._evaluated(workload)

    def _evaluated(self, workload: Workload) -> Function:
        import numexpr

        if workload.name == "W10":
            raise Unable("32 registers")
        record = Record(workload, _NARROW)
        # A number in the text would make the result float64.
        numbers: dict[str, Any] = {"zero": np.float32(0)}
        texts = {name: name for name in record.inputs}
        for line in record.lines:
            if line.op not in self.texts:
                raise Unable(f"no {line.op}")
            given: list[str] = []
            for arg in line.args:
                if isinstance(arg, str):
                    given.append(texts[arg])
                else:
                    given.append(f"c{len(numbers)}")
                    numbers[given[-1]] = np.float32(arg)
            texts[line.name] = self.texts[line.op].format(*given)
        text = texts[record.result]

        def run(*arrays: Array, out: Array | None = None) -> Any:
            local = dict(zip(record.inputs, map(widened, arrays), strict=True)) | numbers
            return numexpr.evaluate(text, local_dict=local, out=out)

        return run


class OnnxRuntime(Engine):
    name, module, chooses = "onnxruntime", "onnxruntime", True
    imports = ("onnx",)

    @property
    def installed(self) -> bool:
        return super().installed and importlib.util.find_spec("onnx") is not None

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        session, known = _session(workload, n > 0, threads)
        return lambda *arrays: session.run(
            None, dict(zip(known, map(widened, arrays), strict=True))
        )[0]

    def into(self, workload: Workload, n: int, threads: int) -> Function:
        session, known = _session(workload, n > 0, threads)

        def run(*arrays: Array, out: Array) -> Array:
            binding = session.io_binding()
            for name, array in zip(known, arrays, strict=True):
                binding.bind_cpu_input(name, widened(array))
            where = out.ctypes.data
            binding.bind_output("result", "cpu", 0, out.dtype, out.shape, where)
            session.run_with_iobinding(binding)
            return out

        return run


_NODES: Mapping[str, str] = (
    {"add": "Add", "subtract": "Sub", "multiply": "Mul", "matmul": "MatMul"}
    | {"greater": "Greater", "negative": "Neg", "relu": "Relu", "where": "Where"}
    | {"maximum": "Max", "minimum": "Min", "mean": "ReduceMean"}
    | {name: name.capitalize() for name in ("abs", "exp", "log", "sqrt", "tanh")}
)


@lru_cache(maxsize=2)  # W10 takes 15 s to load
def _session(workload: Workload, sized: bool, threads: int) -> tuple[Any, list[str]]:
    import onnxruntime
    from onnx import TensorProto, helper

    record = Record(workload, ("bfloat16",))
    types = {
        np.dtype(np.float32): TensorProto.FLOAT,
        np.dtype(np.float16): TensorProto.FLOAT16,
        np.dtype(np.int16): TensorProto.INT16,
        np.dtype(np.uint8): TensorProto.UINT8,
    }
    nodes: list[Any] = []
    constants: list[Any] = []
    dtypes = record.dtypes()

    def operand(arg: str | float, dtype: np.dtype[Any]) -> str:
        if not isinstance(arg, str):
            name = f"c{len(constants)}"
            constants.append(helper.make_tensor(name, types[dtype], (), [arg]))
            return name
        if dtypes[arg] in (dtype, BOOL):
            return arg
        nodes.append(helper.make_node("Cast", [arg], [f"{arg}c{len(nodes)}"], to=types[dtype]))
        return nodes[-1].output[0]

    for line in record.lines:
        if line.op not in _NODES and line.op != "square":
            raise Unable(f"no {line.op}")
        given = [operand(arg, record.operand_dtype(line)) for arg in line.args]
        op, extra = _NODES.get(line.op, "Mul"), {}
        if line.op == "square":
            given *= 2
        elif line.op == "mean":
            extra = {"keepdims": 0}
        nodes.append(helper.make_node(op, given, [line.name], **extra))
    nodes.append(helper.make_node("Identity", [record.result], ["result"]))
    ends = [
        helper.make_tensor_value_info(name, types[dtype], ("n",) * one.rank if sized else ())
        for (name, dtype), one in zip(record.inputs.items(), workload.inputs, strict=True)
    ]
    result = helper.make_tensor_value_info("result", types[dtypes[record.result]], None)
    graph = helper.make_graph(nodes, workload.name, ends, [result], constants)
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
    return made, list(record.inputs)


class Numba(Engine):
    """A loop as one writes it, on threads by prange; what it returns is allocated by NumPy."""

    name, module, chooses = "numba", "numba", True
    texts: Mapping[str, str] = (
        {"add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "greater": "{} > {}"}
        | {"negative": "-{}", "square": "{0} * {0}", "relu": "max({}, f32(0))", "tf32": "tf32({})"}
        | {name: f"np.{name}({{}})" for name in ("abs", "exp", "log", "sqrt", "tanh")}
        | {"maximum": "max({}, {})", "minimum": "min({}, {})"}
        | {"where": "{1} if {0} else {2}", "mean": "{}"}
    )

    def use(self, threads: int) -> None:
        importlib.import_module("numba").set_num_threads(threads)

    def into(self, workload: Workload, n: int, threads: int) -> Function:
        if workload.name == "W7":
            raise Unable("no out=")
        return self._loop(workload, threads)

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        run = self._loop(workload, threads)
        if workload.name == "W7":
            return lambda *arrays: np.float32(run(*arrays))

        def fresh(*arrays: Array) -> Array:
            return run(*arrays, out=np.empty(arrays[0].shape, np.float32))

        return fresh

    def _loop(self, workload: Workload, threads: int) -> Function:
        import numba

        if workload.name == "W10":
            raise Unable("100 s to compile")
        record = Record(workload, _NARROW)
        lines = [f"            {line.name} = {self._text(record, line)}" for line in record.lines]
        reads = [
            f"            {name} = {name}s[{'i' if one.rank else 0}]"
            for name, one in zip(record.inputs, workload.inputs, strict=True)
        ]
        mean = record.lines[-1].op == "mean"
        result = f"            {'total +=' if mean else 'out[i] ='} {record.result}"
        arguments = ", ".join(f"{name}s" for name in record.inputs)
        text = [
            f"def run({arguments}{'' if mean else ', out'}):",
            "        total = 0.0",
            "        for i in prange(x0s.size):",
            *reads,
            *lines,
            result,
            *(["        return f32(total / x0s.size)"] if mean else []),
        ]
        scope: dict[str, Any] = {
            "np": np,
            "f32": np.float32,
            "tf32": numba.njit(_tf32),
            "prange": numba.prange if threads > 1 else range,
        }
        exec("\n".join(text), scope)
        loop = numba.njit(scope["run"], parallel=threads > 1)

        def run(*arrays: Array, out: Array | None = None) -> Any:
            flat = [widened(array).reshape(-1) for array in arrays]
            if out is None:
                return loop(*flat)
            loop(*flat, out.reshape(-1))
            return out

        return run

    def _text(self, record: Record, line: Line) -> str:
        if line.op not in self.texts:
            raise Unable(f"no {line.op}")
        known, dtype = record.dtypes(), record.operand_dtype(line)
        given = [
            str(arg) if isinstance(arg, str) and known[arg] in (dtype, BOOL) else f"f32({arg})"
            for arg in line.args
        ]
        return self.texts[line.op].format(*given)


def _tf32(x: Any) -> Any:
    u = np.float32(x).view(np.uint32)
    up = np.uint32(u + np.uint32(((u >> np.uint32(13)) & np.uint32(1)) + np.uint32(0xFFF)))
    return np.uint32(up & np.uint32(0xFFFFE000)).view(np.float32)
