"""Primitives of JAX without an op: calls that JAX computes, also in wide arithmetic.

For an audit a primitive is bound again, with wide dtypes among its parameters. A parameter may be a
dtype (`preferred_element_type`, `new_dtype`), the precision of `reduce_precision`, or a jaxpr,
whose equations are bound again in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from graphir.display import count_text
from graphir.import_names import optional
from graphir.public import DType, ExecutionError, GraphError, GraphirError, Location
from graphir.runtime.audit.library_calls import LibraryCall
from graphir.runtime.audit.wide_arithmetic import WIDE
from graphir.runtime.sources.jax_.abstract_values import (
    Jax,
    Jaxpr,
    JaxprEquation,
    Primitive,
    has_explicit_dtypes,
    has_keys,
)

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


def bind(primitive: Primitive, parameters: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
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

    def __init__(self, jax: Jax, integers: bool, floats: DType | None = None) -> None:
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

    def bind(self, primitive: Primitive, parameters: Mapping[str, Any], arrays: Any) -> list[Any]:
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

    def _jaxpr(self, jaxpr: Jaxpr, constants: Sequence[Any]) -> Any:
        """Return a jaxpr, traced again on wide operands."""
        struct, avals = self._jax.ShapeDtypeStruct, [x.aval for x in jaxpr.invars]
        types = [struct(aval.shape, self.dtype(aval.dtype)) for aval in avals]
        return self._jax.make_jaxpr(partial(self._run, jaxpr, constants))(*types)

    def _round(self, x: Any) -> Any:
        """Round a value inside of a jaxpr; the barrier keeps XLA from taking out the casts."""
        if self._floats is None or x.dtype.kind != "f":
            return x
        return self._jax.lax.optimization_barrier(x.astype(self._floats)).astype(x.dtype)

    def _run(self, jaxpr: Jaxpr, constants: Sequence[Any], *arrays: Any) -> list[Any]:
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


class BoundPrimitive(LibraryCall):
    """The primitive of an equation with its parameters, as a function of arrays.

    In wide arithmetic, the primitive is bound again on wide operands, with wide dtypes in place of
    those among its parameters, also in jaxprs.
    """

    def __init__(self, jax: Jax, equation: JaxprEquation) -> None:
        self._jax, self._primitive, self._params = jax, equation.primitive, equation.params
        self._avals = [variable.aval for variable in equation.invars]
        self._keys = [aval.dtype if has_keys(aval) else None for aval in self._avals]
        self._has_64_bits = jax.config.jax_enable_x64 or has_explicit_dtypes(jax)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Return the results as NumPy arrays; ExecutionError, with the name, where JAX fails."""
        name = f"jax.{self._primitive.name}"
        try:
            with _having_64_bits(self._jax, self._has_64_bits):
                return tuple([self._array(result) for result in self.run(*args)])
        except GraphirError:
            raise
        except Exception as error:  # XLA has exceptions of its own, and rules raise any
            text = str(error).partition("\n")[0] or type(error).__name__
            raise ExecutionError(f"{name}: JAX does not compute it; {text}") from error

    @property
    def inside(self) -> str:
        """What the primitive may cast inside: in its jaxprs, or in functions called back."""
        names = [*_primitives(self._params.values())]
        if self._primitive.name in _FOREIGN or not _FOREIGN.isdisjoint(names):
            return "runs code that JAX does not trace"
        count = names.count("convert_element_type")
        return f"holds {count_text(count, 'conversion')}" if count else ""

    def require_implementation(self, location: Location) -> None:
        """Raise GraphError, with the name, for a primitive that JAX cannot compute."""
        if self._runs_alone():
            return
        types = [self._jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in self._avals]
        try:
            self._jax.jit(self._bind).lower(*types)
        except Exception as error:  # JAX says so by NotImplementedError, and rules raise any
            raise GraphError(
                f"the primitive {self._primitive.name} has neither an op here nor an "
                "implementation in JAX",
                fix=f"define {self._primitive.name}.def_impl(...), or write it with jax.lax",
            ).at(location, f"jax.{self._primitive.name}") from error

    def _runs_alone(self) -> bool:
        """Whether the primitive has an implementation, or is of a class that binds by itself."""
        base = optional("jax.extend.core", "jax", "from_jax").Primitive
        return "impl" in vars(self._primitive) or cast("Any", type(self._primitive)) is not base

    def _bind(self, *arrays: Any) -> Any:
        return bind(self._primitive, self._params, arrays)

    def run(self, *args: Any) -> tuple[Any, ...]:
        """Return the results as arrays of JAX; keys come and go as their data."""
        asarray, random = self._jax.numpy.asarray, self._jax.random
        arrays = [x if isinstance(x, self._jax.Array) else asarray(x, x.dtype) for x in args]
        for i, dtype in enumerate(self._keys):
            if dtype is not None:
                arrays[i] = random.wrap_key_data(arrays[i], impl=dtype._impl.name)
        bind = self._bind if self._runs_alone() else self._jax.jit(self._bind)
        results = bind(*arrays)
        several = results if self._primitive.multiple_results else (results,)
        return tuple([random.key_data(x) if has_keys(x) else x for x in several])

    # -- in wide arithmetic

    @property
    def data_of(self) -> tuple[int, ...] | None:
        """The positions of all operands, for bits of keys and for movement of integers."""
        name = self._primitive.name
        is_data = name.startswith(KEYED) or (name in MOVING and self._has_integers_alone())
        return tuple(range(len(self._avals))) if is_data else None

    def _has_integers_alone(self) -> bool:
        return all(has_keys(aval) or aval.dtype.kind in "iub" for aval in self._avals)

    @property
    def keeps_order(self) -> bool:
        """Whether the results are an order and its places."""
        return self._primitive.name in ORDERS

    @property
    def precision(self) -> int | None:
        """The bits of the significand that `reduce_precision` keeps."""
        bits = self._params.get("mantissa_bits")
        return None if bits is None else bits + 1

    def widened(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results on wide operands; the integers beside floats keep their dtypes."""
        return self._results(self._wide_function, operands)

    def results_in(self, operands: Sequence[Any], dtype: DType) -> Sequence[Any]:
        """Return the results on wide operands; jaxprs inside round their floats to a dtype."""
        if not any(_primitives(self._params.values())):
            return self.widened(operands)
        if dtype is DType.tensor_float32:
            raise ExecutionError(f"has no form in {dtype}")
        widening = WidePrimitives(self._jax, self._has_integers_alone(), dtype)
        return self._results(
            lambda *arrays: widening.bind(self._primitive, self._params, arrays), operands
        )

    def _results(self, function: Callable[..., Any], operands: Sequence[Any]) -> Sequence[Any]:
        if any(x is not None for x in self._keys):
            raise ExecutionError("has keys among its operands")
        with _having_64_bits(self._jax, True):
            return [np.asarray(x) for x in function(*self._wide_operands(operands))]

    def adjoints(self, operands: Sequence[Any], place: int, adjoint: Any) -> Sequence[Any] | None:
        """Return the adjoints of wide operands by JAX; None without a rule of differentiation."""
        floats = [i for i, x in enumerate(operands) if x.dtype.kind in "fc"]
        with _having_64_bits(self._jax, True):
            arrays = self._wide_operands(operands)

            def of_floats(*values: Any) -> Any:
                full = [*arrays]
                for i, value in zip(floats, values, strict=True):
                    full[i] = value
                return self._wide_function(*full)[place]

            try:
                result, pull = self._jax.vjp(of_floats, *[arrays[i] for i in floats])
                parts = pull(self._jax.numpy.asarray(adjoint, result.dtype))
            except Exception:  # JAX has exceptions of its own
                return None
        by_place = dict(zip(floats, map(np.asarray, parts), strict=True))
        return [by_place.get(i) for i in range(len(operands))]

    def _wide_operands(self, operands: Sequence[Any]) -> list[Any]:
        pairs = zip(operands, self._avals, strict=True)
        return [self._widening.array(x, aval.dtype) for x, aval in pairs]

    @cached_property
    def _widening(self) -> WidePrimitives:
        return WidePrimitives(self._jax, self._has_integers_alone())

    @cached_property
    def _wide_function(self) -> Any:
        """The primitive on wide operands; call it while JAX has 64 bits."""
        return self._jax.jit(self._bind_wide)

    def _bind_wide(self, *arrays: Any) -> Sequence[Any]:
        return self._widening.bind(self._primitive, self._params, arrays)

    def _array(self, value: Any) -> Any:
        """Return a result as a NumPy array; an opaque value stays."""
        dtypes = self._jax.dtypes
        return value if dtypes.issubdtype(value.dtype, dtypes.extended) else np.asarray(value)


_FOREIGN = frozenset(("pure_callback", "io_callback", "ffi_call", "custom_call"))
"""Primitives that run what JAX does not trace."""


def _primitives(values: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the primitives of the jaxprs among parameters, and of those inside."""
    for value in values:
        block = getattr(value, "jaxpr", value)
        if isinstance(value, (tuple, list)):
            yield from _primitives(cast("Iterable[Any]", value))
        for equation in getattr(block, "eqns", ()):
            yield equation.primitive.name
            yield from _primitives(equation.params.values())


def _having_64_bits(jax: Jax, enabled: bool) -> AbstractContextManager[Any]:
    """Return a context in which JAX has 64 bits as it had when a program was imported."""
    if not enabled or jax.config.jax_enable_x64:
        return nullcontext()
    return (jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64)(True)
