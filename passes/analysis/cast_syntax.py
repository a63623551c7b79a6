"""Cast syntax: how the library of a program writes a cast, a dtype, and a number of a dtype."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphir.passes.analysis.expressions import primary
from graphir.public import DType, Graph


class CastSyntax(NamedTuple):
    """Format strings: a cast of the operand `{x}` to `{dtype}`, the dtype alone, a number of it.

    `argument` is a dtype that a function takes, and `{name}` the dtype's name in ONNX.
    """

    cast: str = '{x}.astype("{dtype}")'
    dtype: str = "np.{dtype}"
    number: str = "np.{dtype}({x})"
    argument: str = '"{dtype}"'

    def cast_of(self, text: str, dtype: DType) -> str:
        """Return the cast of an operand that a text writes."""
        x = text if primary(text) or not self.cast.startswith("{x}") else f"({text})"
        name = _ONNX.get(dtype, str(dtype).upper().replace("_", ""))
        return self.cast.format(x=x, dtype=dtype, name=name)

    def dtype_of(self, dtype: DType) -> str:
        """Return the expression of a dtype."""
        return self.dtype.format(dtype=dtype)

    def argument_of(self, dtype: DType) -> str:
        """Return a dtype as an argument of a function."""
        return self.argument.format(dtype=dtype)

    def number_of(self, text: str, dtype: DType) -> str:
        """Return a number of a dtype; "" if the library has no such dtype."""
        is_numpy = hasattr(np, str(dtype)) or not self.number.startswith("np.")
        return self.number.format(x=text, dtype=dtype) if is_numpy else ""


_ONNX = {DType.float32: "FLOAT", DType.float64: "DOUBLE"}


NUMPY = CastSyntax()
LIBRARIES = {
    "jax": CastSyntax(dtype="jnp.{dtype}", number="jnp.{dtype}({x})"),
    "torch": CastSyntax(
        "{x}.to(torch.{dtype})",
        "torch.{dtype}",
        "torch.tensor({x}, dtype=torch.{dtype})",
        "torch.{dtype}",
    ),
    "onnx": CastSyntax("Cast({x}, to={name})"),
}


def syntax_of(graph: Graph) -> CastSyntax:
    """Return the syntax of the library whose program a graph is; NumPy's for other graphs."""
    return LIBRARIES.get(graph.provenance.library, NUMPY)
