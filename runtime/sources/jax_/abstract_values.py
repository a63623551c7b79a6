"""The values of jaxprs and of traces: the types that graphs have for them, and their equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from graphir.import_names import optional
from graphir.ops.types import OpaqueType
from graphir.public import DType, TensorType

Jax: TypeAlias = Any
"""The module jax, of which the project's own environment has no types."""

Jaxpr: TypeAlias = Any
"""A jax.extend.core.Jaxpr or ClosedJaxpr."""

JaxprEquation: TypeAlias = Any
"""A jax.extend.core.JaxprEqn."""

Variable: TypeAlias = Any
"""A variable or a literal of a jaxpr, a jax.extend.core.Var or Literal."""

AbstractValue: TypeAlias = Any
"""The type of a variable, such as a jax.core.ShapedArray."""

Primitive: TypeAlias = Any
"""A jax.extend.core.Primitive."""


def array_type(aval: AbstractValue) -> TensorType:
    """Return the type of an abstract value; opaque for values that are no arrays of numbers.

    A typed PRNG key has the type of its data, so that graphs hold arrays of numbers alone. A
    tangent of integers, a float0, is False, as in XLA.
    """
    if has_keys(aval):
        jax = optional("jax", "jax", "from_jax")
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    if is_float0(aval):
        return TensorType(DType.bool, aval.shape)
    try:
        dtype = DType.from_numpy(np.dtype(aval.dtype))
    except (AttributeError, TypeError, ValueError):
        return OpaqueType(str(aval))
    if getattr(aval, "weak_type", False):
        dtype = _weak_dtypes(optional("jax", "jax", "from_jax")).get(dtype, dtype)
    return TensorType(dtype, aval.shape)


def _weak_dtypes(jax: Jax) -> Mapping[DType, DType]:
    """Return the weak dtypes of graphs by the dtypes that JAX has for their values.

    JAX holds other dtypes weak, too: the int32 indices of top_k with 64 bits on. A weak value of a
    graph has its default dtype alone.
    """
    if has_explicit_dtypes(jax):
        return {}
    wide = jax.config.jax_enable_x64
    return {
        DType.int64 if wide else DType.int32: DType.weak_int,
        DType.float64 if wide else DType.float32: DType.weak_float,
        DType.complex128 if wide else DType.complex64: DType.weak_complex,
    }


def has_explicit_dtypes(jax: Jax) -> bool:
    """Whether JAX has 64 bits where a program names them, and 32 by default.

    A weak dtype then has a default of 32 bits in graphs whose other dtypes may have 64, under the
    rules "jax"; so it is taken for its default.
    """
    mode = getattr(jax.config, "jax_explicit_x64_dtypes", "")
    is_allowed = getattr(mode, "name", mode).lower() == "allow"
    return is_allowed and not jax.config.jax_enable_x64


def has_keys(aval: AbstractValue) -> bool:
    """Whether an abstract value is an array of typed PRNG keys."""
    dtype = getattr(aval, "dtype", None)
    return not isinstance(dtype, np.dtype) and str(dtype).startswith("key<")


def is_float0(value: Any) -> bool:
    """Whether an abstract value or an array has the dtype float0."""
    return getattr(value, "dtype", None) == optional("jax", "jax", "from_jax").dtypes.float0


# -- the equations behind the values of a trace that an error ended


class _Variable:
    """The variable of a jaxpr for a tracer that has none."""

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval


class EquationsBehind:
    """The equations that make tracers; `tracer_of` returns the one that has the equation."""

    def __init__(self, tracer_of: Callable[[Any], Any]) -> None:
        self._tracer_of = tracer_of
        self._equations: dict[int, Any] = {}
        self._variables: dict[int, tuple[Any, Variable]] = {}
        self._inputs: dict[int, Variable] = {}

    def jaxpr(self, values: Sequence[Any]) -> Any:
        """Return what an importer reads of a jaxpr whose results are values."""
        stack = [(value, False) for value in values]
        while stack:
            value, is_after_operands = stack.pop()
            tracer = self._tracer_of(value)
            equation = None if tracer is None else _maker(tracer)
            if equation is None:
                variable = self._variable(value)
                if not hasattr(variable, "val"):  # a literal has one
                    self._inputs[id(variable)] = variable
            elif id(equation) not in self._equations:
                if is_after_operands:
                    self._equations[id(equation)] = equation
                else:
                    stack += [(value, True), *((x, False) for x in equation.in_tracers)]
        return SimpleNamespace(
            eqns=[*map(self._of_jaxpr, self._equations.values())],
            invars=[*self._inputs.values()],
            outvars=[*map(self._variable, values)],
            constvars=(),
            debug_info=None,
        )

    def _variable(self, value: Any) -> Variable:
        tracer = self._tracer_of(value)
        if hasattr(tracer, "parent"):
            return tracer.val
        kept = value if tracer is None else tracer  # so that its id is its own
        return self._variables.setdefault(id(kept), (kept, _Variable(kept.aval)))[1]

    def _of_jaxpr(self, equation: Any) -> JaxprEquation:
        """Return an equation of a trace as one of a jaxpr, whose operands are variables."""
        results = getattr(equation, "outvars", None)
        if results is None:
            tracers = [x() for x in equation.out_tracer_refs]
            pairs = zip(tracers, equation.out_avals, strict=True)
            results = [_Variable(aval) if x is None else self._variable(x) for x, aval in pairs]
        names = ("primitive", "params", "effects", "source_info", "ctx")
        parts = {name: getattr(equation, name) for name in names}
        operands = [*map(self._variable, equation.in_tracers)]
        return SimpleNamespace(invars=operands, outvars=results, **parts)


def _maker(tracer: Any) -> Any:
    """Return the equation that makes a tracer; None of an input."""
    if hasattr(tracer, "parent"):
        return tracer.parent
    return tracer.recipe if hasattr(tracer.recipe, "in_tracers") else None
