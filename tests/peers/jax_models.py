"""Programs of JAX as users write them, compared with JAX itself.

    python -m tests.peers.jax_models
    python -m tests.peers.jax_models --front-end none --only flow

A transformer of flax with a step of optax (in JAX alone where flax and optax are not installed), a
GRU by scan under grad, a neural ODE, a normalising flow, an embedding with cross entropy, a
diffusion step with random keys; each with 64 bits off and on. Results have JAX's dtypes and shapes,
and are off by at most a bound of each result's largest magnitude: 1e-5 in float32, 6e-2 where a
program computes in bfloat16. The dtypes of the graph's values are among those of the jaxpr.
`--front-end none` compares jax.jit with the run op by op.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint

from .drawn_programs import compare_leaves

FRONT_ENDS = ("graphir", "none")
BOUNDS = {"float32": 1e-5, "bfloat16": 6e-2}  # second moments have twice the error of gradients
Program = tuple[Callable[..., Any], tuple[Any, ...], str]  # function, arguments, narrowest dtype
HAS_FLAX = all(importlib.util.find_spec(name) for name in ("flax", "optax"))


def _normal(seed: int, *shape: int, scale: float = 0.3) -> Any:
    return np.random.default_rng(seed).normal(0, scale, shape).astype("float32")


def flax_transformer(dtype: Any) -> Program:
    """A training step of two layers, with clipped AdamW and a schedule."""
    import flax.linen as nn
    import optax

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
            y = nn.LayerNorm(dtype=dtype)(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=2, use_bias=False, dtype=dtype)(
                y, mask=mask
            )
            y = nn.Dense(32, dtype=dtype)(nn.LayerNorm(dtype=dtype)(x))
            return x + nn.Dense(16, dtype=dtype)(nn.gelu(y))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(20, 16, dtype=dtype)(tokens)
            x = x + self.param("positions", nn.initializers.normal(0.02), (7, 16)).astype(dtype)
            for _ in range(2):
                x = Block()(x)
            return nn.Dense(20, dtype=dtype)(nn.LayerNorm(dtype=dtype)(x))

    model = Transformer()
    tokens = np.random.default_rng(0).integers(0, 20, (3, 8), "int32")
    params = model.init(jax.random.key(0), tokens[:, :-1])
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, eps=1e-2))

    def loss(params: Any, tokens: Any) -> Any:
        logits = model.apply(params, tokens[:, :-1])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return losses.mean()

    def step(params: Any, state: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    params, state, _ = jax.jit(step)(params, state, tokens)
    return step, (params, state, tokens), jnp.dtype(dtype).name


def plain_transformer(dtype: Any) -> Program:
    """A layer of attention and a step of Adam, without other packages."""
    names = ("query", "key", "value", "out")
    params = {name: _normal(index, 16, 16) for index, name in enumerate(names)}
    params |= {"embed": _normal(5, 20, 16), "up": _normal(6, 16, 32), "down": _normal(7, 32, 16)}

    def normalize(x: Any) -> Any:
        x = x.astype(jnp.float32)
        centered = x - x.mean(-1, keepdims=True)
        return (centered * lax.rsqrt(centered.var(-1, keepdims=True) + 1e-6)).astype(dtype)

    def forward(params: Any, tokens: Any) -> Any:
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        x = params["embed"][tokens]
        y = normalize(x)
        query, key, value = (y @ params[name] for name in names[:3])
        scores = jnp.einsum("bid,bjd->bij", query, key) / 4.0
        scores = jnp.where(jnp.tri(scores.shape[-1], dtype=bool), scores, -1e9)
        x = x + jax.nn.softmax(scores.astype(jnp.float32)).astype(dtype) @ value @ params["out"]
        x = x + jax.nn.gelu(normalize(x) @ params["up"]) @ params["down"]
        return normalize(x) @ params["embed"].T

    def loss(params: Any, tokens: Any) -> Any:
        logits = forward(params, tokens[:, :-1]).astype(jnp.float32)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)
        return -picked.mean()

    def step(params: Any, moments: Any, count: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
        second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], gradients)
        count = count + 1
        steps = count.astype(jnp.float32)

        def update(p: Any, m: Any, v: Any) -> Any:
            return p - 1e-3 * (m / (1 - 0.9**steps)) / (jnp.sqrt(v / (1 - 0.99**steps)) + 1e-8)

        return jax.tree.map(update, params, first, second), (first, second), count, value

    tokens = np.random.default_rng(0).integers(0, 20, (3, 8), "int32")
    zeros = jax.tree.map(np.zeros_like, params)
    ones = jax.tree.map(lambda leaf: np.full_like(leaf, 0.01), params)
    arguments = (params, (zeros, ones), np.int32(3), tokens)
    return step, arguments, jnp.dtype(dtype).name


def gru_gradient() -> Program:
    """Loss and gradients of a GRU by lax.scan, whose carry starts from a Python number."""
    params = {"w": _normal(0, 4, 24), "u": _normal(1, 8, 24), "b": _normal(2, 24)}
    params["out"] = _normal(3, 8, 1)
    xs, ys = _normal(4, 6, 3, 4, scale=1.0), _normal(5, 3, 1)

    def cell(params: Any, h: Any, x: Any) -> Any:
        gates = x @ params["w"] + params["b"]
        hidden = h @ params["u"]
        reset, update = jnp.split(jax.nn.sigmoid(gates[..., :16] + hidden[..., :16]), 2, -1)
        new = jnp.tanh(gates[..., 16:] + reset * hidden[..., 16:])
        return (1 - update) * new + update * h

    def loss(params: Any, xs: Any, ys: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            h, energy = carry
            h = cell(params, h, x)
            return (h, 0.9 * energy + jnp.mean(h**2)), h.astype(jnp.bfloat16)

        start = (jnp.zeros((xs.shape[1], 8)), 0.0)
        (h, energy), trace = lax.scan(jax.checkpoint(body), start, xs)
        error = jnp.mean((h @ params["out"] - ys) ** 2)
        return error + 1e-2 * energy, trace[-1]

    return jax.value_and_grad(loss, has_aux=True), (params, xs, ys), "float32"


def neural_ode() -> Program:
    """Gradients through Runge-Kutta steps in a fori_loop, and through odeint's adjoint."""
    params = (_normal(0, 2, 8), _normal(1, 8), _normal(2, 8, 2))
    start, times = _normal(3, 5, 2, scale=1.0), np.linspace(0, 1, 5).astype("float32")

    def field(y: Any, t: Any, params: Any) -> Any:
        first, bias, last = params
        return jnp.tanh(y @ first + bias + 0.1 * jnp.sin(t)) @ last

    def runge_kutta(params: Any, y: Any) -> Any:
        def body(index: Any, y: Any) -> Any:
            t, h = index * 0.25, 0.25
            a = field(y, t, params)
            b = field(y + h / 2 * a, t + h / 2, params)
            c = field(y + h / 2 * b, t + h / 2, params)
            d = field(y + h * c, t + h, params)
            return y + h / 6 * (a + 2 * b + 2 * c + d)

        return lax.fori_loop(0, 4, body, y)

    def loss(params: Any, y: Any, times: Any) -> Any:
        adjoint = odeint(field, y, times, params, rtol=1e-4, atol=1e-4)
        return jnp.mean(adjoint[-1] ** 2) + jnp.mean(runge_kutta(params, y) ** 2)

    return jax.value_and_grad(loss), (params, start, times), "float32"


def normalizing_flow() -> Program:
    """Log likelihood of couplings, its gradients, and samples by the inverse."""
    layers = [(_normal(i, 2, 16), _normal(9 + i, 16), _normal(20 + i, 16, 4)) for i in range(3)]
    data = _normal(7, 10, 4, scale=1.0)

    def split(layer: Any, x: Any, flip: bool) -> Any:
        fixed, moved = (x[:, 2:], x[:, :2]) if flip else (x[:, :2], x[:, 2:])
        scale, shift = jnp.split(jax.nn.relu(fixed @ layer[0] + layer[1]) @ layer[2], 2, -1)
        return fixed, moved, 2.0 * jnp.tanh(scale), shift

    def join(fixed: Any, moved: Any, flip: bool) -> Any:
        return jnp.concatenate([moved, fixed] if flip else [fixed, moved], -1)

    def log_likelihood(layers: Any, x: Any) -> Any:
        total = 0.0
        for index, layer in enumerate(layers):
            fixed, moved, scale, shift = split(layer, x, index % 2 == 1)
            x, total = (
                join(fixed, moved * jnp.exp(scale) + shift, index % 2 == 1),
                total + scale.sum(-1),
            )
        return jnp.mean(total + jax.scipy.stats.norm.logpdf(x).sum(-1))

    def sample(layers: Any, key: Any) -> Any:
        x = jax.random.normal(key, (5, 4))
        for index, layer in reversed(list(enumerate(layers))):
            fixed, moved, scale, shift = split(layer, x, index % 2 == 1)
            x = join(fixed, (moved - shift) * jnp.exp(-scale), index % 2 == 1)
        return x

    def both(layers: Any, x: Any, seed: Any) -> Any:
        value, gradients = jax.value_and_grad(log_likelihood)(layers, x)
        return value, gradients, sample(layers, jax.random.key(seed))

    return both, (layers, data, np.int32(3)), "float32"


def embedding_cross_entropy() -> Program:
    """Gradients of a table in float32 that is read in bfloat16, with padding and smoothing."""
    table, weights = _normal(0, 30, 12), _normal(1, 12, 30)
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 30, (4, 9), "int32")
    lengths = np.array([9, 4, 6, 2], "int32")

    def loss(params: Any, tokens: Any, lengths: Any) -> Any:
        table, weights = params
        x = jnp.take(table.astype(jnp.bfloat16), tokens, axis=0)
        x = jnp.cumsum(x.astype(jnp.float32), 1) / (1 + jnp.arange(tokens.shape[1]))[:, None]
        logits = (x.astype(jnp.bfloat16) @ weights.astype(jnp.bfloat16)).astype(jnp.float32)
        labels = jax.nn.one_hot(jnp.roll(tokens, -1, 1), 30) * 0.9 + 0.1 / 30
        losses = -jnp.sum(labels * jax.nn.log_softmax(logits), -1)
        mask = jnp.arange(tokens.shape[1]) < lengths[:, None] - 1
        correct = (logits.argmax(-1) == jnp.roll(tokens, -1, 1)) & mask
        return jnp.sum(losses * mask) / mask.sum(), correct.mean()

    return jax.value_and_grad(loss, has_aux=True), ((table, weights), tokens, lengths), "bfloat16"


def diffusion_step() -> Program:
    """A training loss with drawn noise and times, and four sampling steps by lax.scan."""
    params = {"in": _normal(0, 6, 16), "time": _normal(1, 8, 16), "out": _normal(2, 16, 6)}
    data = _normal(3, 5, 6, scale=1.0)
    betas = np.linspace(1e-4, 0.2, 10).astype("float32")

    def predict(params: Any, x: Any, t: Any) -> Any:
        frequencies = jnp.exp(-jnp.arange(4) * (jnp.log(100.0) / 4))
        angles = t[:, None] * frequencies
        clock = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
        hidden = jax.nn.silu(x @ params["in"] + clock @ params["time"])
        return hidden @ params["out"]

    def loss(params: Any, key: Any, x: Any, betas: Any) -> Any:
        kept = jnp.cumprod(1.0 - betas)
        key_time, key_noise = jax.random.split(key)
        t = jax.random.randint(key_time, (x.shape[0],), 0, betas.shape[0])
        noise = jax.random.normal(key_noise, x.shape)
        level = kept[t][:, None]
        noisy = jnp.sqrt(level) * x + jnp.sqrt(1 - level) * noise
        return jnp.mean((predict(params, noisy, t.astype(x.dtype)) - noise) ** 2)

    def sample(params: Any, key: Any, betas: Any) -> Any:
        kept = jnp.cumprod(1.0 - betas)

        def body(carry: Any, index: Any) -> Any:
            x, key = carry
            key, drawn = jax.random.split(key)
            noise = predict(params, x, jnp.full(x.shape[0], index, x.dtype))
            x = (x - betas[index] / jnp.sqrt(1 - kept[index]) * noise) / jnp.sqrt(1 - betas[index])
            x = x + jnp.where(index > 0, jnp.sqrt(betas[index]), 0) * jax.random.normal(
                drawn, x.shape
            )
            return (x, key), jnp.abs(x).max()

        key, first = jax.random.split(key)
        start = (jax.random.normal(first, (3, 6)), key)
        (x, _), sizes = lax.scan(body, start, jnp.arange(3, -1, -1))
        return x, sizes

    def step(params: Any, seed: Any, x: Any, betas: Any) -> Any:
        key = jax.random.fold_in(jax.random.PRNGKey(0), seed)
        value, gradients = jax.value_and_grad(loss)(params, key, x, betas)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return params, value, sample(params, key, betas)

    return step, (params, np.int32(7), data, betas), "float32"


_transformer = flax_transformer if HAS_FLAX else plain_transformer
PROGRAMS: dict[str, Callable[[], Program]] = {
    "transformer float32": partial(_transformer, jnp.float32),
    "transformer bfloat16": partial(_transformer, jnp.bfloat16),
    "plain transformer bfloat16": partial(plain_transformer, jnp.bfloat16),
    "gru": gru_gradient,
    "neural ode": neural_ode,
    "normalising flow": normalizing_flow,
    "embedding cross entropy": embedding_cross_entropy,
    "diffusion": diffusion_step,
}


def jaxpr_dtypes(jaxpr: Any) -> Iterator[str]:
    """The dtypes of all values of a jaxpr and of those inside it; of keys that of their data."""
    results = (variable for equation in jaxpr.eqns for variable in equation.outvars)
    for variable in (*jaxpr.invars, *jaxpr.constvars, *results):
        dtype = variable.aval.dtype
        yield "uint32" if jnp.issubdtype(dtype, jax.dtypes.prng_key) else str(dtype)
    for equation in jaxpr.eqns:
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda one: hasattr(one, "eqns")
        ):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from jaxpr_dtypes(inner)


def graph_dtypes(graph: Any) -> Iterator[str]:
    """The dtypes of all values of a graph and of those inside it; of opaque values none."""
    from graphir import TensorType
    from graphir.passes.rewriter import bodies_of

    for symbol in graph:
        parts = getattr(symbol.type, "parts", (symbol.type,))
        yield from (str(part.dtype) for part in parts if isinstance(part, TensorType))
        for body in bodies_of(symbol):
            yield from graph_dtypes(body)


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(value)]


def run_graphir(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str]:
    """Results of the graph, and dtypes of its values that the jaxpr does not have."""
    from graphir.passes import implicit_cast
    from graphir.passes.legalize import weak_types
    from graphir.runtime import from_jax, interpret

    graph = from_jax(function, *arguments)
    known = set(jaxpr_dtypes(jax.make_jaxpr(function)(*arguments).jaxpr))
    extra = set(graph_dtypes(weak_types(implicit_cast(graph)))) - known
    try:
        value = interpret(graph, *arguments)
    except Exception as error:
        try:  # the inputs are the leaves of the arguments
            value = interpret(graph, *jax.tree.leaves(arguments))
        except Exception:
            raise error from None
    return leaves(value), ", ".join(sorted(extra))


def check_program(name: str, front_end: str) -> str:
    """What is off in a program, or nothing."""
    function, arguments, narrowest = PROGRAMS[name]()
    compiled = leaves(jax.jit(function)(*arguments))
    if front_end == "none":
        got, extra = leaves(function(*jax.tree.map(jnp.asarray, arguments))), ""
    else:
        got, extra = run_graphir(function, arguments)
    problem = compare_leaves(got, compiled, BOUNDS[narrowest])
    return problem or (f"values of {extra}, which the jaxpr does not have" if extra else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--front-end", choices=FRONT_ENDS, default="graphir")
    parser.add_argument("--only", default="", help="a pattern of the programs' names")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for name in PROGRAMS:
        for wide in (False, True):
            if not re.search(options.only, name):
                continue
            jax.config.update("jax_enable_x64", wide)
            began = time.perf_counter()
            try:
                problem = check_program(name, options.front_end)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"[:400]
            failed += bool(problem)
            seconds = time.perf_counter() - began
            mode = "x64" if wide else "x32"
            print(f"{name} {mode}: {problem or 'equal'} ({seconds:.1f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
