"""The engines that run what the targets write, and the data that they are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import interpret, targets
from graphir.runtime.targets.emission import dtypes_of
from tests.support.strategies import pool

Array = np.ndarray[Any, Any]
Run = Callable[..., list[Array]]


def listed(found: Any) -> list[Array]:
    """Results, one or a tuple, as arrays."""
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def meaning(graph: Graph) -> Run:
    """What a graph means."""
    return lambda *inputs: listed(interpret(graph, *inputs))


def _python(graph: Graph) -> Run:
    """The function that the source of a graph defines, in a namespace of its own."""
    space: dict[str, Any] = {}
    exec(compile(targets.python(graph), "<target>", "exec"), space)
    return lambda *inputs: listed([*space.values()][-1](*inputs))


def _jax(graph: Graph) -> Run:
    """The function of JAX, run op by op."""
    import jax

    function = targets.jax(graph)

    def run(*inputs: Array) -> list[Array]:
        with jax.enable_x64(True):
            return listed(function(*inputs))

    return run


def _stablehlo(graph: Graph) -> Run:
    """The module, compiled by XLA; what has floats of 6 bits, which XLA cannot, is interpreted."""
    import jax

    from tests.runtime.targets import hlo

    text, dtypes = targets.stablehlo(graph), [x.dtype.storage for x in graph.outputs]
    if any(dtype.bits == 6 for dtype in dtypes_of(graph)):
        return lambda *inputs: hlo.interpreted(text, inputs, dtypes)
    with jax.enable_x64(True):
        compiled = hlo.compiled(text)

    def run(*inputs: Array) -> list[Array]:
        with jax.enable_x64(True):
            return compiled(inputs)

    return run


def _onnx(graph: Graph) -> Run:
    """The model, checked, run by onnxruntime, or where that has no kernel by the reference."""
    from tests.runtime.targets import onnx_models

    run = onnx_models.Run(targets.onnx(graph))
    return lambda *inputs: run(*inputs)


def _dask(graph: Graph) -> Run:
    """The function of Dask, on arrays cut in two or three."""
    import dask
    import dask.array as da

    function = targets.dask(graph)

    def run(*inputs: Array) -> list[Array]:
        cut = [da.from_array(x, chunks=[max(1, (n + 1) // 2) for n in x.shape]) for x in inputs]
        results = function(*cut)
        return listed(dask.compute(*results) if type(results) is tuple else results.compute())

    return run


class Engine(NamedTuple):
    """What runs graphs that a target has written, and the package that it is in."""

    load: Callable[[Graph], Run]
    package: str

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


ENGINES: dict[str, Engine] = {
    "python": Engine(_python, "numpy"),
    "jax": Engine(_jax, "jax"),
    "stablehlo": Engine(_stablehlo, "jax"),
    "onnx": Engine(_onnx, "onnxruntime"),
    "dask": Engine(_dask, "dask"),
}
"""By the names of the targets."""


# -- data


def drawn(graph: Graph, seed: int) -> list[Array]:
    """Inputs of a graph of one op: telling values where the seed is even, else small ones."""
    (asked,) = graph.outputs
    asked = asked.args[0] if asked.op is ops.control.part else asked
    random = np.random.default_rng(seed)
    return [_drawn(asked, x, place, seed, random) for place, x in enumerate(graph.inputs)]


def _drawn(asked: Symbol, x: Symbol, place: int, seed: int, random: Any) -> Array:
    shape: tuple[Any, ...] = x.shape
    if asked.op.operand(place) == "indices":
        least = -2 if x.dtype.family == "int" else 0
        return random.integers(least, 2, shape).astype(x.dtype.storage)
    values = pool(x.dtype) if seed % 2 == 0 else small(x.dtype, random)
    count = int(np.prod(shape))
    chosen = np.resize(values, count) if len(values) <= count else random.choice(values, count)
    found = random.permutation(chosen).reshape(shape)
    return _sorted(found) if (asked.op.name, place) == ("searchsorted", 0) else found


def small(dtype: DType, random: Any) -> Array:
    """Numbers about as great as 2, not negative where an exponent may not be."""
    if dtype.family == "bool" or dtype.is_integer:
        return np.arange(min(4, dtype.max + 1)).astype(dtype.storage)
    values = random.normal(size=63) * 2 + (1j * random.normal(size=63) if dtype.is_complex else 0)
    rounded = values.astype(dtype.storage)
    if dtype is DType.tensor_float32:
        rounded = (rounded.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return rounded


def _sorted(x: Array) -> Array:
    kept = np.where(np.isnan(x), np.ones((), x.dtype), x) if x.dtype.kind not in "biu" else x
    return kept[np.lexsort((kept.imag, kept.real))] if x.dtype.kind == "c" else np.sort(kept)


def settled(inputs: Sequence[Array], run: Run) -> list[Array] | None:
    """The results; None where an operand is refused."""
    try:
        return run(*inputs)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return None
