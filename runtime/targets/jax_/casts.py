"""What each cast is in jax.numpy: rounded once, as graphir.conversions has it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (JAX is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import DType
from runtime.targets.emission import optional


def converted(x: Any, source: DType, target: DType, tf32: str) -> Any:
    """The values of an array in another dtype, rounded once, as graphir.conversions has it."""
    jnp, lax = jnp_(), lax_()
    if source.storage == target.storage and target is not DType.tensor_float32:
        return x
    if source.is_float and source.narrow:
        x, source = _widened(x, source), DType.float32
    if target.family == "bool":
        return x != jnp.zeros((), x.dtype)
    if target.is_complex and not source.is_complex:
        return converted(x, source, target.part, tf32).astype(target.storage)
    inexact = target.is_float and target.bits < 32
    if inexact and not source.exact_in(DType.float32):
        x = _to_odd(x)
    elif inexact:
        x = x.astype(jnp.float32)
    if target is DType.tensor_float32:
        return _tf32(x, tf32)
    if inexact:
        return lax.optimization_barrier(_settled(x, target).astype(target.storage))
    return x.astype(target.storage)


def _widened(x: Any, source: DType) -> Any:
    """A narrow float as float32; XLA folds the NaN of float8_e8m0fnu to infinity."""
    jnp = jnp_()
    wide = x.astype(jnp.float32)
    if source is not DType.float8_e8m0fnu:
        return wide
    return jnp.where(x.view(jnp.uint8) == np.uint8(0xFF), np.float32(np.nan), wide)


def _settled(x: Any, target: DType) -> Any:
    """Float32 values whose conversion XLA folds as it computes it.

    Its folding drops signs and zeros on the way to float8_e8m0fnu, and makes 0 of what is not
    finite on the way to float4_e2m1fn. Bits tell signs, as comparisons flush subnormal numbers.
    """
    jnp = jnp_()
    assert target.format is not None  # of a float
    if target.format.specials == "scale":
        return jnp.where(x.view(jnp.int32) > np.int32(0), x, np.float32(np.nan))
    if target.format.specials == "finite":
        most = np.float32(target.max)
        return jnp.where(jnp.isnan(x), np.float32(-0.0), jnp.clip(x, -most, most))
    return x


def _to_odd(x: Any) -> Any:
    """64-bit values as float32, cut off towards zero, the last bit set where anything was."""
    jnp, lax = jnp_(), lax_()
    if x.dtype in (jnp.int64, jnp.uint64):
        exact, low = x.astype(jnp.float64), x & x.dtype.type(0xFFF)
        kept = (jnp.abs(exact) < 2.0**53) | (low == 0)
        x = jnp.where(kept, exact, (x - low + x.dtype.type(0x800)).astype(jnp.float64))
    x = x.astype(jnp.float64)
    near = x.astype(jnp.float32)
    wide, bits = near.astype(jnp.float64), lax.bitcast_convert_type(near, jnp.uint32)
    bits = bits - (jnp.abs(wide) > jnp.abs(x)).astype(jnp.uint32)
    return lax.bitcast_convert_type(bits | (wide != x).astype(jnp.uint32), jnp.float32)


def _tf32(x: Any, tf32: str) -> Any:
    jnp, lax = jnp_(), lax_()
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    even = ((bits >> np.uint32(13)) & np.uint32(1)) + np.uint32(0xFFF)
    rounded = (bits + (np.uint32(0x1000) if tf32 == "away" else even)) & np.uint32(0xFFFFE000)
    return jnp.where(jnp.isnan(x), x, lax.bitcast_convert_type(rounded, jnp.float32))


def jnp_() -> Any:
    """jax.numpy; ImportError without jax."""
    return optional("jax.numpy", "jax", "the JAX target")


def lax_() -> Any:
    """jax.lax; ImportError without jax."""
    return optional("jax.lax", "jax", "the JAX target")
