"""The page docs/deviations.md: the table of deviations for people.

python -m tests.peers.table.page > docs/deviations.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir import DType
from tests.peers.deviations import Deviation
from tests.peers.steps import Value
from tests.peers.table import DEVIATIONS

HEAD = """# Where libraries compute something else

A rule set decides dtypes as its library does. What an op computes is the same under all rule
sets, also where a library computes something else. This page lists those differences: the op, the
rule sets whose library differs, an example, what graphir gives and what the library gives.
`refused` is an error; a dtype alone says that the value is not the point. Results are those of
the CPU, on x86-64 where C leaves them open.

Random programs in each library and in graphir search for differences
(`tests/peers/test_peer_graphs.py`); each one that they meet is a row here, or is mended. A test
runs every example on both sides, so a row that is no longer true fails, and another test compares
this page with the table that it is written from (`python -m tests.peers.table.page >
docs/deviations.md`).

Measured with NumPy 2.4.6 and 1.26.4 (`numpy_legacy`), Dask 2026.8, array-api-strict 2.6.1,
PyTorch 2.13, JAX 0.10.2, TensorFlow 2.21 and Python 3.11. CuPy needs a GPU: `cupy` follows its
documentation, and no value of it was measured. How MAX 26.7 decides dtypes is measured op by op
and in random programs (`max_strict`); its values are not. Powers of JAX are compiled ones: eager
JAX looks at the value of an exponent without axes, and decides the dtype by it. Beside uint64 no
negative int was put to TensorFlow, which makes 2**64 - 1 of any and raises an error at the first
op after, if at all; here it wraps.
"""

LIVE = "the live library: each op on its dtypes and literals, and random programs"
CHECKED = {
    **dict.fromkeys(("numpy", "array_api", "torch", "jax", "jax_x32", "jax_strict"), LIVE),
    **dict.fromkeys(("tensorflow", "tf_all", "tf_safe", "tf_legacy"), LIVE),
    "numpy_legacy": "NumPy 1.26: each op as it was measured, and random programs",
    "max_strict": "the live library: each op, and random programs, by their dtypes alone",
    "dask": "the live library: random programs",
    "python": "the live interpreter: random programs",
    "jax_lax": "the live library: each op on its dtypes and literals",
    "max": "MAX's published table, cell by cell; no library computes so today",
    "jax_2020": "JAX's published table of 2020, cell by cell; no library computes so today",
    **dict.fromkeys(
        ("jep_option_0", "jep_option_1", "jep_option_2", "jep_option_3"),
        "the lattices of JEP 9407, cell by cell; no library has them",
    ),
    "cupy": "CuPy's documentation",
    "explicit": "no library: it takes graphs whose casts are written down, and adds none",
}
"""What each rule set was checked against."""
NO_LIBRARY = "no library: its tests have its decisions"

MEASURED = {
    "numpy": "NumPy 2.4.6",
    "numpy_legacy": "NumPy 1.26.4",
    "dask": "Dask 2026.8",
    "array_api": "array-api-strict 2.6.1",
    "torch": "PyTorch 2.13",
    **dict.fromkeys(("jax", "jax_x32", "jax_strict", "jax_lax"), "JAX 0.10.2"),
    **dict.fromkeys(("tensorflow", "tf_all", "tf_safe", "tf_legacy"), "TensorFlow 2.21"),
    "python": "Python 3.11",
    "max_strict": "MAX 26.7",
}
"""The version of the library with which a rule set was measured."""

_SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "left_shift": "<<",
    "right_shift": ">>",
    "equal": "==",
    "less": "<",
    "less_equal": "<=",
}


def text() -> str:
    """The whole page."""
    lines = ["| op | rule sets | example | graphir | library | what the library does | source |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [_line(row) for row in sorted(DEVIATIONS, key=_order)]
    return "\n".join([HEAD, *_checked(), "", *lines, ""])


def _checked() -> list[str]:
    """The table of what rule sets were checked against, those alike in a row."""
    rows = ["| rule sets | checked against |", "|---|---|"]
    for what in dict.fromkeys(CHECKED.values()):
        names = ", ".join(f"`{name}`" for name in CHECKED if CHECKED[name] == what)
        rows.append(f"| {names} | {what} |")
    return rows


def _order(row: Deviation) -> tuple[str, str]:
    return row.steps[-1].op, row.libraries


def _line(row: Deviation) -> str:
    rules = ", ".join(f"`{name}`" for name in row.names)
    if row.libraries == "jitted":
        rules += ", compiled"
    dtype = _dtype(row)
    cells = (
        f"`{row.steps[-1].op}`",
        rules,
        f"`{example(row)}`",
        f"`{_claim(row.ours, dtype)}`",
        f"`{_claim(row.theirs, dtype)}`",
        row.what,
        row.source,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _dtype(row: Deviation) -> DType | None:
    """The dtype of the example's result, in which its values are written."""
    name = next(name for name in row.names)
    return row.ours_alone(name)[0]


def example(row: Deviation) -> str:
    """The example as an expression: `float32[300.7, -1.5, nan].cast(uint8)`."""
    known = [f"{dtype}{_values(np.array(x).tolist())}" for dtype, x in row.inputs]
    for step in row.steps:
        operands = [known[x.place] if isinstance(x, Value) else _number(x) for x in step.operands]
        known.append(_expression(step.op, operands, step.to))
    return known[-1][1:-1] if known[-1].startswith("(") else known[-1]


def _expression(op: str, operands: Sequence[str], to: DType | None) -> str:
    if to is not None:
        return f"{operands[0]}.cast({to})"
    if op in _SIGNS and len(operands) == 2:
        return f"({operands[0]} {_SIGNS[op]} {operands[1]})"
    return f"{op}({', '.join(operands)})"


def _claim(claim: Any, dtype: DType | None) -> str:
    if claim is None:
        return "refused"
    if isinstance(claim, DType):
        return str(claim)
    values = np.array(claim)
    if dtype is not None and dtype.storage.kind in "fc":
        values = values.astype(dtype.storage)
    return _listed(values.tolist()) if values.ndim else _number(values.item())


def _values(values: Any) -> str:
    """Elements in brackets, a 0-d value in parentheses, as after the name of a dtype."""
    return _listed(values) if isinstance(values, list) else f"({_number(values)})"


def _listed(values: list[Any]) -> str:
    return f"[{', '.join(_listed(x) if isinstance(x, list) else _number(x) for x in values)}]"


def _number(value: Any) -> str:
    if isinstance(value, np.generic):
        return f"np.{value.dtype}({_number(value.item())})"
    if isinstance(value, float) and math.isfinite(value) and value and not 1e-4 < abs(value) < 1e16:
        mantissa, exponent = math.frexp(value)
        return f"2.0**{exponent - 1}" if mantissa == 0.5 else repr(value)
    if isinstance(value, float) and not isinstance(value, np.generic):
        return repr(float(f"{value:.9g}")) if value == value else "nan"
    return repr(value).strip("()")


if __name__ == "__main__":
    print(text(), end="")
