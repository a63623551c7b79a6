"""What other engines compute beside `interpret`: to the bit, or within what an op's row states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from graphir import DType, Graph, GraphirError, Symbol, ops
from graphir.passes import lower
from graphir.runtime.binding import sizes_of
from graphir.semantics.evaluation import Evaluation
from graphir.semantics.kernels import KERNELS
from tests.peers import CALLS
from tests.support.evaluator import same
from tests.support.op_rows import ROWS
from tests.support.strategies import pool

Array: TypeAlias = Any
RAISED = (TypeError, ValueError, IndexError, ZeroDivisionError)
INDEXING = ("gather", "take_along", "scatter", "index_update", "index_add")


# -- graphs of one op, and values for them


def graph_of(name: str, dtype: DType, rules: str = "max") -> Graph | None:
    """A graph of one op on operands of a dtype; None where the op does not take them."""
    graph, call, op = Graph(name, rules=rules), CALLS[name], ops.CATALOGUE[name]
    try:
        taken = call.operands(*([dtype] * len(call.free)))
        inputs = [graph.input(*one) for one in taken if isinstance(one, tuple)]
        graph.output(op(*([inputs] if op.variadic else inputs), **call.attrs))
    except GraphirError:
        return None
    return graph


def inputs_of(graph: Graph, seed: int) -> list[Array]:
    """Telling values for a graph of one op; what is not free to vary is small."""
    name = graph.outputs[0].op.name
    free = CALLS[name].free
    found = [arrays(x.dtype, x.shape, seed if i in free else 1) for i, x in enumerate(graph.inputs)]
    if name in INDEXING:
        found[-1] = np.asarray(found[-1] % 2)
    return found


@np.errstate(all="ignore")
def arrays(dtype: DType, shape: Any, seed: int) -> Array:
    """Telling values: complex ones finite and small, as no two libraries share specials."""
    values = settled(pool(dtype))
    if dtype.is_complex:
        values = values[np.isfinite(values) & (np.abs(values) < 50)]
        values = values + values.dtype.type(0)  # no -0.0, which says on which side of a cut it is
    if seed % 2:
        values = np.arange(4).astype(dtype.storage)
    return values.take(np.random.default_rng(seed).integers(0, len(values), shape))


@np.errstate(all="ignore")
def settled(array: Array) -> Array:
    """Zeros, of their sign, for subnormal numbers: XLA flushes those on the CPU."""
    array = np.array(array)
    if array.dtype.kind == "c":
        array.real, array.imag = settled(array.real), settled(array.imag)
    elif str(array.dtype) in ("bfloat16", "float32", "float64"):
        small = np.abs(array) < ml_dtypes.finfo(array.dtype).tiny
        array[small] = np.copysign(array.dtype.type(0), array[small])
    elif str(array.dtype) == "float8_e8m0fnu":  # whose least is subnormal in float32
        array[array.astype(np.float64) < 2.0**-126] = 1
    return array


def outcome(function: Any, *inputs: Any) -> Array | None:
    """The result; None where it is refused."""
    try:
        return np.asarray(function(*inputs))
    except RAISED:
        return None


# -- bounds


def _greatest(*operands: Array) -> Any:
    """The greatest finite magnitude among the operands."""
    sizes = [np.abs(np.asarray(x, np.complex128)) for x in operands if x.size]
    finite = [size[np.isfinite(size)].max(initial=0) for size in sizes]
    return np.float64(max(finite, default=0))


def _product(*operands: Array) -> Any:
    return np.prod([np.maximum(_greatest(x), 1) for x in operands])


class Bound(NamedTuple):
    """The ulps by which an engine may differ from `interpret`.

    Those of the greater number; or of `near` the operands, where terms are added in another order.
    """

    ulps: float
    near: Callable[..., Any] = lambda *operands: 0.0


_ONE, _FUNCTION = Bound(1), Bound(4)
BOUNDS: Mapping[str, Bound] = {
    **{name: _FUNCTION for name, row in ROWS.items() if row.ulps},
    **dict.fromkeys(("maximum", "minimum", "relu", "clip"), Bound(0)),  # zeros are equal
    **dict.fromkeys(("sinh", "cosh"), Bound(2, lambda x: np.abs(x) * np.cosh(np.abs(x)))),
    "gelu": Bound(4, lambda x: x * x * np.abs(KERNELS["gelu"](x, "none"))),  # by erfc
    "pow": Bound(16),
    "sum": Bound(16, _greatest),
    "numpy_sum": Bound(16, _greatest),
    "prod": Bound(16),
    "mean": Bound(16, _greatest),
    "var": Bound(64, lambda x: _greatest(x) ** 2),
    "std": Bound(64, _greatest),
    "cumulative_sum": Bound(16, _greatest),
    "cumulative_prod": Bound(16),
    "softmax": Bound(16, lambda x: 1.0),
    "logsoftmax": Bound(16, _greatest),
    "layer_norm": Bound(64, lambda x, scale, shift: 400 * _product(x, scale) + _greatest(shift)),
    "matmul": Bound(16, lambda *operands: _product(*operands)),
    "tensordot": Bound(16, lambda *operands: _product(*operands)),
}
"""Ops that are not here have the same bits."""
ADDED = Bound(2, _greatest)
"""Of a sum with a product that XLA does not round before it adds."""
COMPLEX: Mapping[str, Bound] = {
    **dict.fromkeys(("multiply", "square", "outer", "divide", "reciprocal", "sqrt", "abs"), _ONE),
    "rsqrt": Bound(4),
    "sign": Bound(2),
    "pow": Bound(32),
}
"""Of complex numbers as well; ulps are those of the magnitude, and zeros have no sign."""


def agree(name: str, dtype: DType, expected: Array, found: Array, *operands: Array) -> bool:
    """Whether a result of a dtype is what an op's row allows; else to the bit."""
    bound = BOUNDS.get(name)
    if dtype.is_complex or any(x.dtype.kind == "c" for x in operands):
        bound = COMPLEX.get(name, bound)
    if bound and any(x.dtype.kind == "c" and not _ordinary(x) for x in operands):
        return True  # no two libraries share the special values of complex functions
    if bound is None or dtype.format is None:
        return same(expected, found)
    return near(bound, dtype, expected, found, *operands)


def _ordinary(x: Array) -> bool:
    """Whether complex numbers are neither great nor on a cut."""
    sizes = np.abs(np.array([x.real, x.imag]))
    signs = np.signbit([x.real, x.imag]) & (sizes == 0)
    return bool(np.all((sizes == 0) | ((sizes > 2.0**-20) & (sizes < 50))) and not signs.any())


@np.errstate(all="ignore")
def near(bound: Bound, dtype: DType, expected: Array, found: Array, *operands: Array) -> bool:
    """Whether numbers of a dtype are within a bound; a narrow one is at most the next.

    Near the least normal number engines lose places on the way.
    """
    format_ = dtype.part.format
    assert format_
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    scale = bound.near(*operands)
    total = np.max(scale, initial=0) * max(x.size for x in (*operands, expected))
    if not np.ndim(scale) and total > format_.max / 16:
        return True  # whether anything overflows depends on the order
    wide = [x.astype(np.complex128 if dtype.is_complex else np.float64) for x in (expected, found)]
    equal = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
    least = np.maximum(np.nan_to_num(scale, nan=0, posinf=0), 2.0 ** (7 - format_.bias))
    size = np.maximum(np.maximum(*map(np.abs, wide)), least)
    ulps = bound.ulps if dtype.part.bits >= 32 and dtype is not DType.tensor_float32 else 1
    return bool(np.all(equal | (np.abs(wide[0] - wide[1]) <= ulps * 2.0**-format_.mantissa * size)))


# -- programs, one op after another


def every(graph: Graph) -> Graph:
    """The lowered graph with every symbol as an output, so that each op is seen."""
    new = Graph.parse(str(lower(graph)))
    new.outputs = tuple(new.symbols)
    return new


def steps(
    graph: Graph, inputs: Sequence[Array], found: Sequence[Array]
) -> Iterator[tuple[Symbol, Array, Array, list[Array]]]:
    """Each op of a graph of `every`: what `interpret` makes of the values found for its operands,
    the value found, and those operands."""
    sizes, values = sizes_of(graph, inputs), dict(zip(graph.symbols, found, strict=True))
    for symbol in graph.symbols:
        operands = [values[arg] for arg in symbol.args]
        if not symbol.args or _unsorted(symbol, operands):
            continue
        inferred = graph.infer(symbol.op, symbol.args, symbol.attrs)
        dtypes = [arg.dtype for arg in symbol.args]
        with np.errstate(all="ignore"):
            expected = Evaluation(symbol.op, inferred, dtypes, sizes, graph.tf32)(operands)
        yield symbol, expected, values[symbol], operands


def _unsorted(symbol: Symbol, operands: Sequence[Array]) -> bool:
    """Whether searchsorted is asked for what has no answer."""
    if symbol.op is not ops.searchsorted:
        return False
    return not same(np.sort(operands[0], kind="stable"), operands[0])
