"""The table of targets: which ops each refuses at which dtypes, of those that the op takes.

    python -m tests.runtime.targets.target_table

writes tests/golden/targets.json anew, for the targets whose packages are installed. A verdict is
what a target itself says of a graph of that one op. The table keeps refusals alone: a letter stands
for the reason under it, `.` for a dtype that is not refused. Rows without a refusal are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import chain
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Graph, GraphirError, Op, TensorType, ops
from graphir.ops.dtype_rules import COMPARISON, LOOKUP, ORDER, SCATTER
from graphir.runtime import targets
from graphir.runtime.targets import TargetError
from tests import GOLDEN
from tests.peers import CALLS, Call
from tests.support.strategies import STRONG

FILE = GOLDEN / "targets.json"


# -- the targets


def _traced(graph: Graph) -> None:
    """A function of JAX says what it lacks when it is traced."""
    import jax

    with jax.enable_x64(True):
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype.storage) for x in graph.inputs]
        jax.eval_shape(targets.jax(graph), *shapes)


class Target(NamedTuple):
    """A way out, and the package without which it says nothing."""

    emit: Callable[[Graph], Any]
    package: str = "numpy"


TARGETS: dict[str, Target] = {
    "python": Target(targets.python),
    "jax": Target(_traced, "jax"),
    "stablehlo": Target(targets.stablehlo),
    "onnx": Target(targets.onnx, "onnx"),
    "dask": Target(targets.dask, "dask"),
}


def installed(target: str) -> bool:
    """Whether the package that a target needs is there."""
    return find_spec(TARGETS[target].package) is not None


# -- the questions


class Row(NamedTuple):
    """An op, and how it is asked: which operands vary, what the others and the attributes are.

    Attributes may be functions of the dtype.
    """

    name: str
    op: Op
    call: Call

    def graph(self, dtype: DType) -> Graph | None:
        """A graph of the op at a dtype, all conversions explicit; None where it does not take it.

        Elementwise ops have an axis that is long enough for all that a dtype may be asked.
        """
        graph = Graph("asked", rules="explicit")
        operands: list[Any] = self.call.operands(*[dtype] * len(self.call.free))
        inputs = [graph.input(*one) for one in operands]
        attrs = {n: x(dtype) if callable(x) else x for n, x in self.call.attrs.items()}
        with suppress(GraphirError), graph:
            result = self.op(*([inputs] if self.op.variadic else inputs), **attrs)
            is_tuple = self.op.kind == "control"
            graph.output(ops.control.part(result, 0) if is_tuple else result)
            return graph
        return None


LONG = (7, 9)
_ASKED: dict[str, Any] = {"dtype": lambda dtype: dtype}


def _rows() -> Iterator[Row]:
    """Every op of the catalogue, in its order; some in more ways than one. Then control flow."""
    for name, op in ops.CATALOGUE.items():
        if op is ops.cast:
            yield from (Row(f"cast to {to}", op, Call((LONG,), {"to": to})) for to in STRONG)
        elif op is not ops.input:
            call = CALLS.get(name) or Call((), {**_ASKED, **_CREATED[name]})
            if op.kind == "elementwise" or op in (ops.where, ops.clip):
                call = call._replace(shapes=(LONG,) * len(call.shapes))
            yield Row(name, op, call)
            yield from _others(name, op, call)
    yield from (Row(name, ops.CONTROL[name], call) for name, call in _CONTROL.items())


def _others(name: str, op: Op, call: Call) -> Iterator[Row]:
    """The rows in which not the data vary, but indices, positions or one side."""
    first = (DType.float32, DType.uint64)
    if op.signature in (LOOKUP, SCATTER):
        fixed = dict.fromkeys(range(len(call.shapes) - 1), first[0])
        yield Row(f"{name} by", op, call._replace(fixed=fixed))
    elif op.signature in (COMPARISON, ORDER):
        yield Row(f"{name} uint64", op, call._replace(fixed={1: first[1]}))
    elif name in ("argmax", "argmin", "argsort", "searchsorted", "shape_of"):
        fixed = dict.fromkeys(range(len(call.shapes)), first[0])
        yield Row(f"{name} as", op, call._replace(fixed=fixed, attrs=_ASKED))


_CREATED: dict[str, dict[str, Any]] = {
    "constant": {"value": lambda dtype: np.ones(3, dtype.storage)},
    "full": {"value": 1, "shape": (2,)},
    "range": {"start": 1, "step": 0, "size": 3},
    "eye": {"rows": 2, "columns": 3, "offset": 1},
}


def _body(*types: TensorType, gives: Callable[..., Any]) -> Graph:
    graph = Graph("body", rules="explicit")
    results = gives(*map(graph.input, types))
    graph.output(*(results if isinstance(results, tuple) else [results]))
    return graph


def _choosing(dtype: DType) -> tuple[Graph, Graph]:
    whole = TensorType(dtype, LONG)
    return _body(whole, whole, gives=lambda x, y: x), _body(whole, whole, gives=lambda x, y: y)


def _going(dtype: DType) -> Graph:
    types = TensorType(dtype, LONG), TensorType(DType.bool)
    return _body(*types, gives=lambda x, going: going)


def _stopping(dtype: DType) -> Graph:
    types = TensorType(dtype, LONG), TensorType(DType.bool)
    return _body(*types, gives=lambda x, going: (x, ~going))


def _keeping(dtype: DType) -> Graph:
    return _body(TensorType(dtype, LONG[1:]), gives=lambda row: row)


_CONTROL: dict[str, Call] = {
    "cond": Call(((), LONG, LONG), {"branches": _choosing}, {0: DType.bool}),
    "while_loop": Call((LONG, ()), {"condition": _going, "body": _stopping}, {1: DType.bool}),
    "scan": Call((LONG,), {"body": _keeping, "carries": 0, "scanned": 1}),
}
"""Control flow that moves arrays alone; the result is the first of its parts."""


@cache
def rows() -> tuple[Row, ...]:
    """All rows of the table."""
    return tuple(_rows())


# -- the answers


def verdict(target: str, graph: Graph) -> str:
    """What a target says of a graph: why it is impossible, or `.`."""
    way = TARGETS[target]
    try:
        way.emit(graph)
    except TargetError as error:
        return re.sub(r"^.*? -> \w+\[.*?\]: (.*?); .*$", r"\1", str(error), flags=re.S)
    return "."


def verdicts(target: str) -> dict[str, list[str]]:
    """What a target says of every row, for each dtype; `.` where there is no such graph."""
    found: dict[str, list[str]] = {}
    for row in rows():
        graphs = [row.graph(dtype) for dtype in STRONG]
        found[row.name] = ["." if graph is None else verdict(target, graph) for graph in graphs]
    return found


def lettered(found: Mapping[str, list[str]]) -> dict[str, Any]:
    """The table of a target as it is kept: a letter for each reason, a line for each refusal."""
    reasons = dict.fromkeys(x for x in chain(*found.values()) if len(x) > 1)
    letters = dict(zip(reasons, ascii_uppercase, strict=False))
    assert len(letters) == len(reasons), [*reasons][:30]
    lines = {name: "".join(letters.get(x, x) for x in line) for name, line in found.items()}
    rows = {name: line for name, line in lines.items() if line.strip(".")}
    return {"impossible": {y: x for x, y in letters.items()}, "rows": rows}


def golden() -> dict[str, Any]:
    """The table as it is kept."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def main() -> None:
    """Write the table; what is not installed keeps what it has."""
    kept = golden() | {"dtypes": " ".join(map(str, STRONG))}
    kept |= {name: lettered(verdicts(name)) for name in TARGETS if installed(name)}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
