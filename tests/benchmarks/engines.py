"""The libraries that run the workloads, each as a user calls it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from graphir import DType
from tests.benchmarks import workloads
from tests.benchmarks.engine import BFLOAT16, Array, Engine, Function, Unable
from tests.benchmarks.recorded import Numba, Numexpr, OnnxRuntime
from tests.benchmarks.workloads import Workload, names


class Graphir(Engine):
    name, module, chooses = "graphir", "graphir", True
    imports = ("graphir.runtime.program",)

    @property
    def version(self) -> str:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("graphir")
        except PackageNotFoundError:
            return "this tree"

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        from graphir.runtime.program import Program

        return Program(workload.graph(n), threads=threads)

    def into(self, workload: Workload, n: int, threads: int) -> Function:
        return self.function(workload, n, threads)


class Eager(Engine):
    """NumPy, which has no bfloat16 of its own: numbers beside it are given its dtype."""

    name, module = "numpy", "numpy"

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        return workload.make(
            names(
                np,
                relu=lambda x: np.maximum(x, 0),
                widen=lambda x: x.astype(np.float32),
                literal=lambda value, dtype: BFLOAT16.type(value) if dtype == "bfloat16" else value,
                tf32=workloads.tf32,
            )
        )


class Jax(Engine):
    name, module = "jax.jit", "jax"
    imports = ("jax.numpy",)

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        import jax
        import jax.numpy as jnp

        def tf32(x: Any) -> Any:
            u = jax.lax.bitcast_convert_type(x, jnp.uint32)
            u = (u + (((u >> 13) & 1) + 0xFFF)) & jnp.uint32(0xFFFFE000)
            return jax.lax.bitcast_convert_type(u, jnp.float32)

        run = jax.jit(workload.make(names(jnp, relu=jax.nn.relu, tf32=tf32)))
        return lambda *arrays: np.asarray(run(*map(jnp.asarray, arrays)))


class Torch(Engine):
    name, module, chooses = "torch", "torch", True

    def use(self, threads: int) -> None:
        importlib.import_module("torch").set_num_threads(threads)

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        import torch

        def tf32(x: Any) -> Any:
            u = x.view(torch.int32)
            return ((u + (((u >> 13) & 1) + 0xFFF)) & -0x2000).view(torch.float32)

        def tensor(array: Array) -> Any:
            if array.dtype == BFLOAT16:
                return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            return torch.from_numpy(array)

        body = self._compiled(workload.make(names(torch, tf32=tf32)), workload)
        if workload.dtype == "bfloat16":
            return lambda *arrays: (
                body(*map(tensor, arrays)).view(torch.int16).numpy().view(BFLOAT16)
            )
        return lambda *arrays: body(*map(tensor, arrays)).numpy()

    def _compiled(self, body: Function, workload: Workload) -> Function:
        return body


class TorchCompile(Torch):
    """With a C++ compiler; a bfloat16 it keeps in float32 within a loop, as it does unasked."""

    name = "torch.compile"

    def _compiled(self, body: Function, workload: Workload) -> Function:
        import torch
        import torch._dynamo

        if workload.name == "W10":
            raise Unable("200 s to compile")
        torch._dynamo.config.recompile_limit = 64  # sizes by threads, of programs that share code
        torch._dynamo.config.fail_on_recompile_limit_hit = True
        return torch.compile(body, dynamic=False)


class Max(Engine):
    """MAX, which compiles each graph for 10 s and more."""

    name, module = "MAX", "max"
    imports = ("max.driver", "max.engine", "max.graph")

    @property
    def installed(self) -> bool:
        # Another package may be called max.
        return super().installed and importlib.util.find_spec("max.engine") is not None

    @property
    def version(self) -> str:
        from importlib.metadata import version

        return version("max")

    def function(self, workload: Workload, n: int, threads: int) -> Function:
        from max.driver import CPU, Buffer  # pyright: ignore
        from max.dtype import DType as MaxDType  # pyright: ignore
        from max.engine import InferenceSession  # pyright: ignore
        from max.graph import DeviceRef, Graph, TensorType, ops  # pyright: ignore

        if workload.name == "W6":
            raise Unable("no bit casts")
        kinds = [
            TensorType(
                getattr(MaxDType, DType(one.dtype).name),
                ("n",) * one.rank if n else (),
                DeviceRef.CPU(),
            )
            for one in workload.inputs
        ]

        def mean(x: Any) -> Any:
            return ops.mean(x).reshape(())

        xp = names(ops, maximum=ops.max, minimum=ops.min, mean=mean, square=lambda x: x * x)
        with Graph(workload.name, input_types=kinds) as g:
            g.output(workload.make(xp)(*(one.tensor for one in g.inputs)))
        model = InferenceSession(devices=[CPU()]).load(g)
        narrow = MaxDType.bfloat16

        def given(array: Array) -> Any:
            if array.dtype == BFLOAT16:
                return Buffer.from_numpy(array.view(np.uint16)).view(narrow)
            return Buffer.from_numpy(array)

        def run(*arrays: Array) -> Array:
            found = model.execute(*map(given, arrays))[0]
            if workload.dtype == "bfloat16":
                return found.view(MaxDType.uint16).to_numpy().view(BFLOAT16)
            return found.to_numpy()

        return run


ENGINES: tuple[Engine, ...] = (
    Eager(),
    Graphir(),
    Numexpr(),
    Jax(),
    Torch(),
    TorchCompile(),
    OnnxRuntime(),
    Numba(),
    Max(),
)
BY_NAME = {engine.name: engine for engine in ENGINES}
