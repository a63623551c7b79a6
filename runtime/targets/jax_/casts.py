"""The array protocol over arrays of JAX, and the casts that follow from it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (JAX is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphir import DType
from graphir.conversions import Step
from runtime.targets.casts import EngineConversions
from runtime.targets.emission import optional


class JaxValue(NDArrayOperatorsMixin):
    """An array of JAX on which NumPy's functions are those of jax.numpy; numbers take its dtype."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> JaxValue:
        return JaxValue(getattr(jnp_(), ufunc.__name__)(*map(self._lifted, inputs)))

    def __array_function__(self, function: Any, _: Any, args: Any, settings: Any) -> JaxValue:
        """np.where."""
        condition, *choose = args
        like = next(x for x in choose if isinstance(x, JaxValue))
        return JaxValue(jnp_().where(condition.array, *map(like._lifted, choose)))

    def _lifted(self, x: Any) -> Any:
        return x.array if isinstance(x, JaxValue) else np.asarray(x).astype(self.dtype)

    def view(self, dtype: Any) -> JaxValue:
        """The same bits as another dtype of the same width."""
        return JaxValue(lax_().bitcast_convert_type(self.array, np.dtype(dtype)))

    def astype(self, dtype: Any) -> JaxValue:
        """As XLA converts."""
        return JaxValue(self.array.astype(np.dtype(dtype)))


class JaxConversions(EngineConversions):
    """Casts in which XLA truncates floats to integers itself: it saturates, NaN being 0."""

    def saturate(self, target: DType) -> Step:
        """XLA's own conversion."""
        return lambda x: x.astype(target)

    def narrow(self, target: DType, tf32: str) -> Step:
        """Behind a barrier, as XLA would otherwise keep more than was asked for."""
        narrow = super().narrow(target, tf32)
        return lambda x: JaxValue(lax_().optimization_barrier(narrow(x).array))


def converted(x: Any, source: DType, target: DType, tf32: str) -> Any:
    """The values of an array in another dtype, rounded once, as graphir.conversions has it."""
    return JaxConversions().converted(JaxValue(x), source, target, tf32).array


def jnp_() -> Any:
    """jax.numpy; ImportError without jax."""
    return optional("jax.numpy", "jax", "the JAX target")


def lax_() -> Any:
    """jax.lax; ImportError without jax."""
    return optional("jax.lax", "jax", "the JAX target")
