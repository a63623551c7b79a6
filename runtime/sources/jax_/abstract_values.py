"""The values of jaxprs: their abstract types, and the types that graphs have for them."""

from __future__ import annotations

from collections.abc import Mapping
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
