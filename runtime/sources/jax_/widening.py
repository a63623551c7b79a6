"""Primitives of JAX in wide arithmetic: bound again, with wide dtypes among their parameters.

A parameter may be a dtype (`preferred_element_type`, `new_dtype`), the precision of
`reduce_precision`, or a jaxpr, whose equations are bound again in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from graphir import DType, GraphirError
from graphir.runtime.audit.wide_arithmetic import WIDE
from graphir.runtime.optional import optional

KEYED = ("random_", "threefry", "rng_")
"""The beginnings of the names of primitives on keys, whose results are data of the run."""

MOVING = frozenset(
    ("bitcast_convert_type", "broadcast_in_dim", "concatenate", "copy", "dynamic_slice", "gather",
     "dynamic_update_slice", "expand_dims", "iota", "pad", "reshape", "rev", "scatter", "select_n",
     "slice", "split", "squeeze", "transpose")
)  # fmt: skip
"""The primitives that move integers, such as those of keys."""

ORDERS = frozenset(("approx_top_k", "sort", "top_k"))
"""The primitives whose results are an order and its places."""

UNMEASURED = frozenset(
    ("bitcast_convert_type", "custom_call", "debug_callback", "ffi_call", "infeed", "io_callback",
     "outfeed", "pure_callback")
)  # fmt: skip
"""The primitives of the bits of a dtype, and of functions that no wide call may call again."""


def bind(primitive: Any, parameters: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
    """Bind a primitive with the parameters of an equation."""
    params: Any = primitive.get_bind_params(parameters)
    functions: tuple[Any, ...] = ()
    if isinstance(params, tuple):  # before JAX 0.10
        functions, params = cast("tuple[Any, Any]", params)
    return primitive.bind(*functions, *arrays, **params)


class WidePrimitives:
    """Binding on wide operands, with the integers wide or in their own dtypes.

    Integers beside floats are positions and counts, for which JAX's own functions state dtypes.
    With `floats`, the floats inside of jaxprs are rounded to that dtype.
    """

    def __init__(self, jax: Any, integers: bool, floats: DType | None = None) -> None:
        core = optional("jax.extend.core", "jax", "from_jax")
        self._jax, self._kinds = jax, "fc" + "iu" * integers
        self._floats = floats and floats.storage
        self._closed, self._open, self._literal = core.ClosedJaxpr, core.Jaxpr, core.Literal

    def dtype(self, dtype: Any) -> Any:
        """Return the wide dtype of a dtype of NumPy or ml_dtypes, and others as they are."""
        try:
            wide = np.dtype(WIDE[DType.from_numpy(np.dtype(dtype)).family].storage)
        except (GraphirError, TypeError, KeyError):
            return dtype
        return wide if wide.kind in self._kinds else dtype

    def array(self, value: Any, like: Any) -> Any:
        """Return a value as an array of JAX, in the wide dtype of a dtype."""
        return self._jax.numpy.asarray(value, self.dtype(like))

    def bind(self, primitive: Any, parameters: Mapping[str, Any], arrays: Any) -> list[Any]:
        """Bind a primitive on wide operands, with wide parameters; return its results as a list.

        Raises NotImplementedError for a primitive of UNMEASURED, also in a jaxpr.
        """
        if primitive.name in UNMEASURED or primitive.name.startswith(KEYED):
            raise NotImplementedError(f"{primitive.name} has no wide form")
        if primitive.name == "reduce_precision":
            return [arrays[0]]
        wide = {name: self._parameter(value) for name, value in parameters.items()}
        results = bind(primitive, wide, arrays)
        return [*results] if primitive.multiple_results else [results]

    def _parameter(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            parts = [self._parameter(part) for part in cast("Sequence[Any]", value)]
            kind = cast("Any", type(cast("object", value)))
            return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
        if isinstance(value, self._closed):
            return self._jaxpr(value.jaxpr, value.consts)
        if isinstance(value, self._open):
            return self._jaxpr(value, ()).jaxpr
        return self.dtype(value) if isinstance(value, (np.dtype, type)) else value

    def _jaxpr(self, jaxpr: Any, constants: Sequence[Any]) -> Any:
        """Return a jaxpr, traced again on wide operands."""
        struct, avals = self._jax.ShapeDtypeStruct, [x.aval for x in jaxpr.invars]
        types = [struct(aval.shape, self.dtype(aval.dtype)) for aval in avals]
        return self._jax.make_jaxpr(partial(self._run, jaxpr, constants))(*types)

    def _round(self, x: Any) -> Any:
        """Round a value inside of a jaxpr; the barrier keeps XLA from taking out the casts."""
        if self._floats is None or x.dtype.kind != "f":
            return x
        return self._jax.lax.optimization_barrier(x.astype(self._floats)).astype(x.dtype)

    def _run(self, jaxpr: Any, constants: Sequence[Any], *arrays: Any) -> list[Any]:
        values = dict(zip(jaxpr.invars, arrays, strict=True))
        wide = [self._round(self.array(x, x.dtype)) for x in map(np.asarray, constants)]
        values.update(zip(jaxpr.constvars, wide, strict=True))

        def read(atom: Any) -> Any:
            if isinstance(atom, self._literal):
                return self._round(self.array(atom.val, atom.aval.dtype))
            return values[atom]

        for equation in jaxpr.eqns:
            operands = [read(x) for x in equation.invars]
            results = map(self._round, self.bind(equation.primitive, equation.params, operands))
            values.update(zip(equation.outvars, results, strict=True))
        return [read(x) for x in jaxpr.outvars]
