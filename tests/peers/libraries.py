"""The libraries that random programs run in, each beside the rule set that speaks for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from graphir import DType, rules
from tests.peers.graphs import LITERALS, REFUSALS, Array, Library


def _library(name: str, peer: Any, cast: Callable[[Any, Any], Any], **more: Any) -> Library:
    """A library by its adapter here; `cast` takes the library's own dtype."""
    names = {theirs: ours for ours, theirs in peer.DTYPES.items()}
    settings: dict[str, Any] = {
        "rules": getattr(import_module(f"graphir.promotion.{name}"), name.strip("_").upper()),
        "functions": {**peer.OPS, "cast": lambda x, to: cast(x, peer.DTYPES[to])},
        "dtypes": tuple(peer.DTYPES),
        "make": lambda x, dtype: x.copy()[()],
        "read": np.asarray,
        "dtype": lambda x: names.get(x.dtype),
    }
    return Library(**{**settings, **more})


def numpy_library() -> Library:
    from tests.peers import numpy_ as peer

    # A scalar stays one, but that NumPy has Python multiply it by 1j, which gives Python's complex.
    return _library("numpy_", peer, lambda x, to: x.astype(to), result=lambda x: np.asarray(x)[()])


def array_api_library() -> Library:
    import array_api_strict as xp

    from tests.peers import array_api as peer

    make = {"make": lambda x, dtype: xp.asarray(x), "literals": LITERALS}
    return _library("array_api", peer, xp.astype, **make)


def torch_library() -> Library:
    import torch

    from tests.peers import torch_ as peer

    def make(x: Array, dtype: DType) -> Any:
        if dtype is DType.bfloat16 or dtype.narrow:
            bits = x.view(np.int16 if x.itemsize == 2 else np.uint8).copy()
            return torch.from_numpy(bits).view(peer.DTYPES[dtype])
        return torch.from_numpy(x.copy())

    def read(x: Any) -> Array:
        storage = next(ours.storage for ours, theirs in peer.DTYPES.items() if theirs is x.dtype)
        if storage.isbuiltin == 2:  # one of ml_dtypes
            bits = torch.int16 if storage.itemsize == 2 else torch.uint8
            return x.contiguous().view(bits).numpy().view(storage)
        return x.resolve_neg().numpy()

    return _library(
        "torch",
        peer,
        lambda x, to: x.to(to),
        make=make,
        read=read,
        refusals=(*REFUSALS, RuntimeError),
        lacks=lambda error: bool(peer._NO_KERNEL.search(str(error))),
        literals=LITERALS,
    )


def jax_library(name: str) -> Library:
    """jax.numpy under the rule set of that name.

    Without the float6 dtypes, of which jaxlib makes no arrays, and those of 2 bits, on which XLA
    aborts the process.
    """
    import jax
    import jax.numpy as jnp

    from tests.peers import jax_ as peer

    wide, strict = name != "jax_x32", name == "jax_strict"
    out = {"int2", "uint2", "float6_e2m3fn", "float6_e3m2fn"}
    out |= set() if wide else {"int64", "uint64", "float64", "complex128"}

    @contextmanager
    def settings() -> Iterator[None]:
        promotion = jax.numpy_dtype_promotion("strict" if strict else "standard")
        with warnings.catch_warnings(), jax.enable_x64(wide), promotion:
            warnings.simplefilter("ignore")  # of complex numbers that become real
            yield

    def make(x: Array, dtype: DType) -> Any:
        if not dtype.weak:
            return jnp.asarray(x)
        return jnp.stack([jnp.asarray(one) for one in x.ravel().tolist()]).reshape(x.shape)

    return _library(
        "jax",
        peer,
        lambda x, to: x.astype(to),
        rules=rules(name),
        dtypes=[dtype for dtype in peer.DTYPES if str(dtype) not in out],
        make=make,
        dtype=lambda x: peer.Answer(np.dtype(x.dtype), bool(x.weak_type)).ours,
        refusals=(*REFUSALS, jax.errors.JaxRuntimeError),
        lacks=lambda error: isinstance(error, jax.errors.JaxRuntimeError),
        settings=settings,
        jit=jax.jit,
    )


LIBRARIES: dict[str, tuple[str, Callable[[], Library]]] = {
    "numpy": ("numpy", numpy_library),
    "array_api": ("array_api_strict", array_api_library),
    "torch": ("torch", torch_library),
    "jax": ("jax", partial(jax_library, "jax")),
    "jax_x32": ("jax", partial(jax_library, "jax_x32")),
    "jax_strict": ("jax", partial(jax_library, "jax_strict")),
}
"""By rule set: the module that must be there, and what makes the library of it."""
