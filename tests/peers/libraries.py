"""The libraries that random programs run in, each beside the rule set that speaks for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from graphir import DType, PromotionRules
from tests.peers.graphs import Array, Library
from tests.peers.steps import IN_PLACE, LITERALS, OPERATORS, REFUSALS, SCALARS


def _library(name: str, peer: Any, cast: Callable[[Any, Any], Any], **more: Any) -> Library:
    """A library by its adapter here; `cast` takes the library's own dtype."""
    which = PromotionRules.find(name)
    names = {theirs: ours for ours, theirs in peer.DTYPES.items()}
    settings: dict[str, Any] = {
        "rules": which.of_release(version(name.partition("_")[0])) if which.releases else which,
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
    return _library("numpy", peer, lambda x, to: x.astype(to), result=lambda x: np.asarray(x)[()])


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
        return x.resolve_conj().resolve_neg().numpy()

    return _library(
        "torch",
        peer,
        lambda x, to: x.to(to),
        make=make,
        read=read,
        refusals=(*REFUSALS, RuntimeError),
        lacks=lambda error: bool(peer.LACKS.search(str(error))),
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

    compiled = jax.jit(pow)

    def power(x: Any, y: Any) -> Any:
        """Compiled by a 0-d exponent, at whose value JAX looks where nothing is compiled."""
        return x**y if jnp.ndim(y) or not isinstance(y, jax.Array) else compiled(x, y)

    return _library(
        name,
        peer,
        lambda x, to: x.astype(to),
        operators={**OPERATORS, "pow": power, "ipow": power},
        dtypes=[dtype for dtype in peer.DTYPES if str(dtype) not in out],
        make=make,
        dtype=lambda x: peer.Answer(np.dtype(x.dtype), bool(x.weak_type)).ours,
        refusals=(*REFUSALS, jax.errors.JaxRuntimeError, NotImplementedError),
        lacks=lambda error: isinstance(error, (jax.errors.JaxRuntimeError, NotImplementedError)),
        settings=settings,
        jit=jax.jit,
    )


def dask_library() -> Library:
    """dask.array, in chunks of two elements along each axis."""
    from tests.peers import dask_ as peer

    return _library(
        "dask",
        peer,
        lambda x, to: x.astype(to),
        make=peer.made,
        read=lambda x: np.asarray(x.compute()),
        dtype=peer.dtype_of,
        result=peer.da.asanyarray,
        refusals=(*REFUSALS, NotImplementedError),
        lacks=lambda error: isinstance(error, NotImplementedError) or "Inferred" in str(error),
    )


def python_library() -> Library:
    """Python's numbers and their operators."""
    from tests.peers import python_ as peer

    return _library(
        "python",
        peer,
        lambda x, to: to(x),
        make=lambda x, dtype: x.item(),
        dtype=peer.dtype_of,
        refusals=(*REFUSALS, ZeroDivisionError),
        literals=LITERALS,
        operators=peer.OPERATORS,
        shapes=((),),
    )


def numpy_legacy_library() -> Library:
    """NumPy 1 in the interpreter that the environment variable NUMPY_1 names."""
    from tests.peers import numpy_legacy_client as peer

    def make(x: Array, dtype: DType) -> Any:
        made = peer.made(x)  # an array; a bool of rank 0 is a scalar in graphir
        return made if x.ndim or dtype is not DType.bool else peer.call("bitwise_or", made, made)

    return _library(
        "numpy_legacy",
        peer,
        lambda x, to: peer.call("cast", x, to),
        make=make,
        read=lambda x: x.values,
        operators=peer.OPERATORS,
        refusals=(peer.RefusedError,),
    )


def tensorflow_library(mode: str) -> Library:
    """TensorFlow in one of its modes; call it in a process that is in that mode (`enable`)."""
    from tests.peers import tensorflow_ as peer

    strong = tuple(dtype for dtype in peer.DTYPES if not dtype.weak)
    return _library(
        "tensorflow" if mode == "plain" else f"tf_{mode}",
        peer,
        lambda x, to: peer.tf.cast(x, to),
        functions=peer.functions(),
        dtypes=strong if mode == "plain" else tuple(d for d in strong if not d.narrow),
        asks=peer.asks,
        make=peer.made,
        read=lambda x: np.asarray(x.numpy()),
        dtype=peer.dtype_of,
        refusals=peer.REFUSALS,
        lacks=lambda error: isinstance(error, peer.LACKS),
        literals=LITERALS if mode in ("all", "safe") else (*LITERALS, *SCALARS),
        operators=peer.operators(OPERATORS),
    )


def max_library() -> Library:
    """MAX's graph builder, which types programs; none is compiled, so that no value is compared."""
    from tests.peers import max_ as peer

    return _library(
        "max_strict",
        peer,
        lambda x, to: x.cast(to),
        functions=peer.functions(),
        make=lambda x, dtype: peer.tensor(dtype, x.shape),
        read=None,
        dtype=peer.dtype_of,
        operators=peer.operators(IN_PLACE),
        refusals=peer.REFUSALS,
    )


LIBRARIES: dict[str, tuple[str, Callable[[], Library]]] = {
    "numpy": ("numpy", numpy_library),
    "array_api": ("array_api_strict", array_api_library),
    "torch": ("torch", torch_library),
    "jax": ("jax", partial(jax_library, "jax")),
    "jax_x32": ("jax", partial(jax_library, "jax_x32")),
    "jax_strict": ("jax", partial(jax_library, "jax_strict")),
    "dask": ("dask", dask_library),
    "python": ("math", python_library),
    "numpy_legacy": ("numpy", numpy_legacy_library),
    "tensorflow": ("tensorflow", partial(tensorflow_library, "plain")),
    "tf_all": ("tensorflow", partial(tensorflow_library, "all")),
    "tf_safe": ("tensorflow", partial(tensorflow_library, "safe")),
    "tf_legacy": ("tensorflow", partial(tensorflow_library, "legacy")),
    "max_strict": ("max", max_library),
}
"""By rule set: the module that must be there, and what makes the library of it."""
MODES = {"tf_all": "all", "tf_safe": "safe", "tf_legacy": "legacy"}
"""The modes of TensorFlow that a process enters for good."""


def _without_numpy_1() -> str:
    from tests.peers.numpy_legacy_client import interpreter

    return "" if interpreter() else "NUMPY_1 names no Python that has NumPy 1.26"


ENVIRONMENT: dict[str, Callable[[], str]] = {"numpy_legacy": _without_numpy_1}
"""What else must be there: a function that says what is missing, or nothing."""
