"""Notes on a model whose dtypes alone say that it computes other values than its author meant.

A model has no record of what its weights were before an exporter stored them. Some dtypes show it:
weights in double that float holds exactly, a table of large numbers that is widened after it was
rounded, an epsilon that float16 made 0, and a mean of integers that stays an integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from graphir.display import count_text
from graphir.ops.types import TensorType
from graphir.public import DType, Graph, Symbol, ops


def stored_type_notes(graph: Graph) -> list[str]:
    """Return a sentence for each constant or node whose dtype is evidence of a lost value."""
    users: dict[Symbol, list[Symbol]] = {}
    for x in graph.symbols:
        for arg in dict.fromkeys(x.args):
            users.setdefault(arg, []).append(x)
    notes = [*_double_throughout(graph)]
    for x in graph.symbols:
        if type(x.type) is TensorType:
            if x.op is ops.constant:
                notes += _rounded_table(x, users)
            elif x.op is ops.add:
                notes += _absent_epsilon(x, users)
            elif x.op is ops.mean:
                notes += _cut_fraction(x, users)
    return notes


def _double_throughout(graph: Graph) -> Iterator[str]:
    """Yield a sentence on a model that gives double because its weights are double."""
    outputs = [x for x in graph.outputs if type(x.type) is TensorType and x.dtype.is_float]
    weights = [x for x in graph.symbols if x.op is ops.constant and x.dtype is DType.float64]
    weights = [x for x in weights if x.attrs["value"].size > 1 and x.location.file]
    if not weights or not outputs or any(x.dtype is not DType.float64 for x in outputs):
        return
    exact = all(_is_exact(x.attrs["value"]) for x in weights)
    why = ", and float holds all their values exactly" if exact else ""
    inputs = [x for x in graph.inputs if x.dtype is DType.float64]
    names = _names([x.location.file for x in (*weights, *inputs)])
    yield f"the results are double because the model stores {names} as double{why}"


def _is_exact(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.array_equal(array.astype(np.float32), array, equal_nan=True))


def _names(names: Sequence[str]) -> str:
    left = len(names) - 3
    return ", ".join(names[:3]) + (f" and {count_text(left, 'other')}" if left > 0 else "")


def _rounded_table(table: Symbol, users: dict[Symbol, list[Symbol]]) -> Iterator[str]:
    """Yield a sentence on numbers that are too large for fractions in a float, and are widened."""
    name = table.location.file
    if not name or not table.dtype.is_float or table.dtype.bits >= 64:
        return
    values = np.abs(table.attrs["value"].astype(np.float64))
    limit = 2.0 ** (table.dtype.precision + 1)
    if values.size < 2 or not (limit <= values.min() < values.max() < float(table.dtype.max) / 2):
        return
    for x in _moved(table, users):
        if x.op is ops.cast and x.dtype.is_float and x.dtype.bits > table.dtype.bits:
            step = 2.0 ** (np.floor(np.log2(values.max())) - table.dtype.precision + 1)
            yield (
                f"{name} is {table.dtype}, where numbers near {values.max():.4g} are {step:.4g} "
                f"apart, and {x.location.file} makes it {x.dtype} after that: store {name} as "
                f"{x.dtype}"
            )
            return


def _moved(value: Symbol, users: dict[Symbol, list[Symbol]]) -> Iterator[Symbol]:
    """Yield the users of a value, and of what only moves its elements."""
    pending, seen = [value], {value}
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in seen:
                seen.add(user)
                yield user
                if user.op in _MOVES and user.args[0] in seen:
                    pending.append(user)


_MOVES = frozenset({ops.gather, ops.reshape, ops.transpose, ops.broadcast_to, ops.concat})


def _absent_epsilon(total: Symbol, users: dict[Symbol, list[Symbol]]) -> Iterator[str]:
    """Yield a sentence on a float16 zero that is added where an epsilon keeps a value from 0."""
    zero = next((x for x in total.args if x.op is ops.constant), None)
    if zero is None or not total.dtype.is_float or total.dtype.bits >= 32 or zero.rank > 1:
        return
    if zero.attrs["value"].size != 1 or zero.attrs["value"].any():
        return
    for user in users.get(total, ()):
        is_divisor = user.op is ops.divide and user.args[1] is total
        if is_divisor or user.op in (ops.sqrt, ops.log, ops.reciprocal):
            yield (
                f"{total.location.file} adds {zero.location.file} before {user.location.file}, and "
                f"its value is 0: {total.dtype} holds no epsilon this small; add it in float32"
            )
            return


def _cut_fraction(step: Symbol, users: dict[Symbol, list[Symbol]]) -> Iterator[str]:
    """Yield a sentence on a mean of integers that loses its fraction."""
    here = step.location
    for user in users.get(step, ()):
        if user.op is ops.cast and user.dtype.is_integer and user.location == here:
            yield (
                f"{here.file} averages {user.dtype} and cuts the fraction, as ONNX does for "
                "integers; insert Cast(to=float) of its operand before it"
            )
