"""NumPy's array protocol over JAX arrays, and the casts written with it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (JAX is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphir import DType
from graphir.conversions import Step
from graphir.runtime.optional import optional
from graphir.runtime.targets.casts import EngineConversions


class JaxValue(NDArrayOperatorsMixin):
    """A JAX array on which NumPy's functions dispatch to jax.numpy; numbers take its dtype."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> JaxValue:
        return JaxValue(getattr(jnp_(), ufunc.__name__)(*map(self._lifted, inputs)))

    def __array_function__(self, function: Any, _: Any, args: Any, settings: Any) -> JaxValue:
        """Return np.where by jax.numpy, the only function that casts use."""
        condition, *choose = args
        like = next(x for x in choose if isinstance(x, JaxValue))
        return JaxValue(jnp_().where(condition.array, *map(like._lifted, choose)))

    def _lifted(self, x: Any) -> Any:
        return x.array if isinstance(x, JaxValue) else np.asarray(x).astype(self.dtype)

    def view(self, dtype: Any) -> JaxValue:
        """Return the same bits read as another dtype of the same width."""
        return JaxValue(lax_().bitcast_convert_type(self.array, np.dtype(dtype)))

    def astype(self, dtype: Any) -> JaxValue:
        """Return the array in another dtype by XLA's conversion."""
        return JaxValue(self.array.astype(np.dtype(dtype)))


class JaxConversions(EngineConversions):
    """Casts of JAX arrays. XLA's truncation of floats to integers saturates, and maps NaN to 0."""

    def saturate(self, target: DType) -> Step:
        """Return the step of XLA's own conversion."""
        return lambda x: x.astype(target)

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the narrowing step with a barrier; without it XLA may keep excess precision."""
        narrow = super().narrow(target, tf32)
        return lambda x: JaxValue(lax_().optimization_barrier(narrow(x).array))


def cast_values(x: Any, source: DType, target: DType, tf32: str) -> Any:
    """Return the values of an array in another dtype, rounded once as in graphir.conversions."""
    return JaxConversions().convert(JaxValue(x), source, target, tf32).array


def jnp_() -> Any:
    """Return the module jax.numpy. Raises ImportError without jax."""
    return optional("jax.numpy", "jax", "the JAX target")


def lax_() -> Any:
    """Return the module jax.lax. Raises ImportError without jax."""
    return optional("jax.lax", "jax", "the JAX target")
