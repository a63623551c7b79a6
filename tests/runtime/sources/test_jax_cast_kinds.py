"""Casts of known kind in JAX programs: those that the program writes, and those that JAX adds.

Each line of a program that ends in `# written` or `# implicit` has casts of that kind alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir.passes import cast_report
from graphir.runtime import from_jax

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.linspace(0.5, 2, 12, dtype="float32").reshape(3, 4)
H = X.astype("float16")
B = X.astype(jnp.bfloat16)
N = np.arange(12, dtype="int32").reshape(3, 4)
U = N.astype("uint8")
M = N > 4
Z = X.astype("complex64")


def conversions(x: Any, n: Any) -> Any:
    return [
        x.astype(jnp.bfloat16),  # written
        n.astype("float32"),  # written
        jnp.astype(n, jnp.float16),  # written
        jnp.asarray(n, jnp.float32),  # written
        jnp.asarray(n, dtype=jnp.float32),  # written
        jnp.array(x, dtype=jnp.float16),  # written
        jnp.float32(n),  # written
        jnp.int8(n),  # written
        jnp.bfloat16(x),  # written
        lax.convert_element_type(n, jnp.float32),  # written
        lax.reduce_precision(x, 5, 10),  # written
        jnp.array(n, float),  # written
    ]


def makers(x: Any, n: Any) -> Any:
    return [
        jnp.full(3, n[0, 0], dtype=jnp.float32),  # written
        jnp.full_like(x, n[0, 0], dtype=jnp.float16),  # written
        jnp.full((2, 2), x[0, 0], jnp.bfloat16),  # written
        jax.nn.one_hot(n[0], 4, dtype=jnp.bfloat16),  # written
        jnp.eye(3, dtype=jnp.float16) * H[0, 0],  # written
        jnp.tri(3, dtype=jnp.float32) + x[0, 0],  # written
        jnp.stack([x, x], dtype=jnp.float16),  # written
        jnp.concatenate([n, n], dtype=jnp.float32),  # written
    ]


def reductions(x: Any, n: Any, h: Any) -> Any:
    return [
        jnp.sum(n, dtype=jnp.float32),  # written
        n.sum(dtype=jnp.float32),  # written
        jnp.prod(n, dtype=jnp.float32),  # written
        jnp.mean(x, dtype=jnp.bfloat16),  # written
        jnp.cumsum(n, dtype=jnp.float32),  # written
        jnp.var(h, dtype=jnp.float32),  # written
        x.mean(dtype=jnp.float16),  # written
        jnp.einsum("ij,kj->ik", h, h, preferred_element_type=jnp.float32),  # written
        jnp.mean(n),  # implicit
        jnp.std(n),  # implicit
        n.mean(axis=0),  # implicit
        jnp.median(n),  # implicit
        jnp.linalg.norm(n),  # implicit
        jnp.average(n),  # implicit
        jnp.quantile(n, 0.5),  # implicit
    ]


def operators(x: Any, n: Any, h: Any, b: Any) -> Any:
    u, z, m = jnp.array(U), jnp.array(Z), jnp.array(M)
    return [
        x + n,  # implicit
        x - h,  # implicit
        b * x,  # implicit
        n / 3,  # implicit
        n / n,  # implicit
        h @ x.T,  # implicit
        n > x,  # implicit
        u + n,  # implicit
        z * x,  # implicit
        m * x,  # implicit
        h + b,  # implicit
        x**n,  # implicit
        n // x,  # implicit
        u % n,  # implicit
        n * 2.5,  # implicit
    ]


def functions(x: Any, n: Any, h: Any) -> Any:
    return [
        jnp.add(x, n),  # implicit
        jnp.maximum(x, n),  # implicit
        jnp.where(n > 3, x, n),  # implicit
        jnp.sqrt(n),  # implicit
        jnp.exp(n),  # implicit
        jnp.arctan2(x, h),  # implicit
        jnp.concatenate([x, h]),  # implicit
        jnp.stack([x, n]),  # implicit
        jnp.dot(x, n.T),  # implicit
        jnp.einsum("ij,kj->ik", x, h),  # implicit
        jnp.logaddexp(x, h),  # implicit
        jnp.hypot(x, n),  # implicit
        jnp.linspace(n[0, 0], n[0, 1], 4),  # implicit
        jnp.interp(n[0], x[0], x[1]),  # implicit
        jnp.clip(n, 0.5, 2.5),  # implicit
        jnp.outer(x[0], h[0]),  # implicit
    ]


def networks(x: Any, n: Any) -> Any:
    return [
        jax.nn.softmax(n),  # implicit
        jax.scipy.special.entr(n),  # implicit
        jax.scipy.special.gammaln(n),  # implicit
        jax.nn.softplus(n),  # implicit
        jax.scipy.special.logsumexp(n),  # implicit
        jax.scipy.stats.norm.logpdf(n),  # implicit
        jax.scipy.special.xlogy(n, x),  # implicit
    ]


@jax.jit
def helper(x: Any, n: Any) -> Any:
    y = x * n  # implicit
    return y.astype(jnp.float16)  # written


@jax.custom_jvp
def clipped(x: Any, n: Any) -> Any:
    return jnp.minimum(x, n)  # implicit


@clipped.defjvp
def clipped_jvp(primals: Any, tangents: Any) -> Any:
    x, n = primals
    slope = (x < 1).astype(x.dtype)  # written
    return clipped(x, n), slope * tangents[0]


class Dense:
    """A layer as flax has it: a dtype to compute in, parameters in another."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, kernel: Any, x: Any) -> Any:
        kernel = jnp.asarray(kernel, self.dtype)  # written
        return x @ kernel  # implicit


def transformed(x: Any, n: Any, h: Any) -> Any:
    def loss(x: Any) -> Any:
        y = jnp.tanh(x) * n  # implicit
        return jnp.mean(y).astype(jnp.float32)

    def row(r: Any, k: Any) -> Any:
        return r.astype(jnp.float16) + 1, r - k  # mixed

    def body(carry: Any, r: Any) -> Any:
        total = carry + r  # implicit
        return total, r.astype(jnp.float16)  # written

    def fall(x: Any) -> Any:
        return x + n[0, 0]  # implicit

    return [
        helper(x, n),
        jax.grad(loss)(x),
        jax.vmap(row)(x, n),
        lax.scan(body, jnp.zeros(4, jnp.float32), n),
        lax.cond(n[0, 0] > 0, fall, lambda x: x, x),
        clipped(x, n),
        jax.jvp(partial(clipped, n=n), (x,), (x,)),
        Dense(jnp.bfloat16)(x.T, x),
        optimiser(h, x),
    ]


def optimiser(parameters: Any, gradients: Any) -> Any:
    def moment(g: Any, m: Any) -> Any:
        return 0.1 * g + 0.9 * m  # implicit

    moments = jax.tree.map(moment, gradients, jnp.zeros_like(parameters))
    step = moments.astype(parameters.dtype)  # written
    return parameters - step


PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    conversions: (X, N),
    makers: (X, N),
    reductions: (X, N, H),
    operators: (X, N, H, B),
    functions: (X, N, H),
    networks: (X, N),
    transformed: (X, N, H),
}
KINDS = {
    number: line.rpartition("# ")[2]
    for number, line in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1)
    if line.endswith((") # written", "  # written", "  # implicit"))
}


def kinds_of(program: Callable[..., Any], args: tuple[Any, ...]) -> dict[int, set[str]]:
    names = {"explicit": "written", "implicit": "implicit", "literal": "implicit"}
    kinds: dict[int, set[str]] = {}
    for row in cast_report(from_jax(program, *args)):
        is_number = row.kind == "literal" and row.target.is_float
        if row.location.file.endswith("test_jax_cast_kinds.py") and not is_number:
            kinds.setdefault(row.location.line, set()).add(names[row.kind])
    return kinds


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_written_and_implicit_casts_are_told_apart() -> None:
    assert len(KINDS) >= 80
    kinds: dict[int, set[str]] = {}
    for program, args in PROGRAMS.items():
        kinds |= kinds_of(program, args)
    wrong = {
        line: (kind, kinds.get(line, set()))
        for line, kind in KINDS.items()
        if kinds.get(line) != {kind}
    }
    assert len(wrong) <= len(KINDS) * 3 // 80, wrong


def test_an_operand_that_is_broadcast_is_converted_by_the_rules() -> None:
    def layer(x: Any, weights: Any, bias: Any) -> Any:
        return x @ weights + bias

    graph = from_jax(layer, jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4, jnp.bfloat16))
    (row,) = cast_report(graph)
    assert (row.kind, row.op, row.operand) == ("implicit", "add", "rhs")
