"""Graphs with operands of mixed dtypes, sent to the checkers of other engines as they are."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import permutations
from typing import Any, NamedTuple
from unittest.mock import patch

from graphir import DType, Graph, GraphirError, Op, ops
from graphir.passes import implicit_cast
from graphir.runtime import targets
from tests.peers import CALLS

# -- graphs

RULES = ("max", "jax", "numpy")
DTYPES = [
    DType(name)
    for name in (
        *("bool", "int8", "uint8", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "complex64"),
    )
]


def joining() -> dict[str, Op]:
    """The ops of which two operands or more promote together."""
    found = {}
    for name, call in CALLS.items():
        op = ops.CATALOGUE[name]
        promoted = op.signature.promoted
        if len(call.free) > 1 and (promoted is None or len(promoted) > 1):
            found[name] = op
    return found


def mixed(name: str) -> Iterator[Graph]:
    """The op on each two dtypes that some rules let it promote, by casts."""
    for one, other in permutations(DTYPES, 2):
        graphs = (_of(name, one, other, rules) for rules in RULES)
        if graph := next((graph for graph in graphs if graph), None):
            yield graph


def _of(name: str, one: DType, other: DType, rules: str) -> Graph | None:
    call, op, graph = CALLS[name], ops.CATALOGUE[name], Graph("mixed", rules=rules)
    operands: list[Any] = call.operands(one, *[other] * (len(call.free) - 1))
    try:
        inputs = [graph.input(*x) for x in operands]
        graph.output(op(*([inputs] if op.variadic else inputs), **call.attrs))
    except GraphirError:
        return None
    casts = any(x.op is ops.cast for x in implicit_cast(graph))
    return graph if casts and not graph.outputs[0].weak else None


# -- checkers

MODULES = {"jax": "jax_", "stablehlo": "emission", "onnx": "emission"}
"""The module of each target that has a checker, in which it lowers what it is given."""


@contextmanager
def raw(target: str) -> Iterator[None]:
    """Inside, a target writes graphs as they are, without lowering them first."""
    module = import_module(f"graphir.runtime.targets.{MODULES[target]}")
    with patch.object(module, "lower_to_ops", lambda graph: graph):
        yield


def _jax(graph: Graph) -> str:
    """What JAX says under strict promotion: an error that is raised in its own code."""
    import jax

    jax.config.update("jax_traceback_filtering", "off")  # the place of an error is asked for
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype.storage) for x in graph.inputs]
    try:
        jax.eval_shape(targets.jax(graph), *shapes)
    except (TypeError, jax.dtypes.TypePromotionError) as error:
        return _inside(error, "jax")
    return ""


def _stablehlo(graph: Graph) -> str:
    """What the verifier of MLIR says."""
    from tests.runtime.targets import hlo

    text = targets.stablehlo(graph)
    try:
        hlo.parsed(text)
    except hlo.REFUSED as error:
        return str(error) or "refused"
    return ""


def _onnx(graph: Graph) -> str:
    """What ONNX's checker says, which infers types; then onnxruntime, which asks those of ops."""
    from tests.runtime.targets import onnx_models

    model, state = targets.onnx(graph), onnx_models.state
    try:
        onnx_models.session(onnx_models.checked(model))
    except (*onnx_models.REFUSED, state.InvalidGraph, state.Fail) as error:
        return str(error) or "refused"
    except state.NotImplemented:  # it has no kernel, whatever the operands' dtypes are beside
        return ""
    return ""


def _inside(error: BaseException, package: str) -> str:
    """What an error says that comes from a package; it is raised again if it comes from here."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    if f"/{package}/" not in place.replace("\\", "/"):
        raise error
    return str(error)


CHECKERS: dict[str, Callable[[Graph], str]] = {
    "jax": _jax,
    "stablehlo": _stablehlo,
    "onnx": _onnx,
}
"""What each says of a graph as it is: the refusal, or nothing."""


class Accepted(NamedTuple):
    """Mixed operands that a checker accepts, of which ops, and why."""

    target: str
    ops: str
    why: str
    where: Callable[[tuple[DType, ...]], bool] = lambda dtypes: True


def _wide(dtypes: tuple[DType, ...]) -> bool:
    return {*dtypes} == {DType.int64, DType.uint64}


def _integers(dtypes: tuple[DType, ...]) -> bool:
    return all(x.is_integer for x in dtypes)


def _parts(dtypes: tuple[DType, ...]) -> bool:
    return {*dtypes} == {DType.complex64, DType.float32}


ORDER = "less less_equal greater greater_equal"
COMPARISONS = f"equal not_equal {ORDER}"
ACCEPTED = [
    Accepted(
        "jax stablehlo onnx",
        COMPARISONS,
        "int64 and uint64 compare exactly as they are, in a graph of explicit casts too",
        _wide,
    ),
    Accepted(
        "stablehlo",
        f"{ORDER} searchsorted",
        "complex numbers compare by their parts, which are float32",
        _parts,
    ),
    Accepted("stablehlo", "matmul tensordot", "dot_general takes operands of two dtypes"),
    Accepted("stablehlo", "copysign", "the sign of one is asked for, and the size of the other"),
    Accepted("stablehlo", "pow", "squares of one are chosen by bits of the other", _integers),
    Accepted("stablehlo", "index_add", "the region of a scatter has the dtype of x alone"),
    Accepted("onnx", "pow", "Pow takes an exponent of another dtype, whose bits choose squares"),
    Accepted("onnx", "copysign", "the sign of one is asked for, and the size of the other"),
    Accepted("onnx", "left_shift right_shift", "all integers are shifted as uint64"),
    Accepted("onnx", "searchsorted", "numbers are sorted by keys, which are integers"),
    Accepted(
        "onnx",
        f"{COMPARISONS} where heaviside matmul tensordot index_add",
        "what ONNX or onnxruntime computes in another dtype is cast to that, by the target",
        lambda dtypes: DType.bool in dtypes or DType.uint64 in dtypes or DType.bfloat16 in dtypes,
    ),
]
