"""One optimiser step of a small language model over many micro-batches.

https://github.com/mlnomadpy/flaxchat/issues/6
"""
import jax
import jax.numpy as jnp

CONFIG = {"vocab": 12, "width": 8, "param_dtype": jnp.bfloat16, "learning_rate": 0.05,
          "weight_decay": 0.01, "micro_batches": 1024}


def init_params(key, config):
    k1, k2 = jax.random.split(key)
    shape = (config["vocab"], config["width"])
    params = {"embed": jax.random.normal(k1, shape) * 0.5,
              "head": jax.random.normal(k2, shape[::-1]) * 0.5}
    return jax.tree.map(lambda p: p.astype(config["param_dtype"]), params)


def loss_fn(params, tokens):
    hidden = jnp.tanh(params["embed"][tokens[:, :-1]])
    logits = (hidden @ params["head"]).astype(jnp.float32)
    logprobs = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(logprobs, tokens[:, 1:, None], axis=-1)
    return -picked.mean()


def accumulate(params, batches):
    grads_init = jax.tree.map(jnp.zeros_like, params)

    def micro_step(carry, tokens):
        grads_acc, loss_acc = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        grads_acc = jax.tree.map(jnp.add, grads_acc, grads)
        return (grads_acc, loss_acc + loss), None

    (grads, loss), _ = jax.lax.scan(micro_step, (grads_init, jnp.zeros((), jnp.float32)), batches)
    n = batches.shape[0]
    return jax.tree.map(lambda g: g / n, grads), loss / n


def global_norm(tree):
    return jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(tree)))


def apply_update(params, grads, config):
    def update(p, g):
        p32 = p.astype(jnp.float32)
        step = g.astype(jnp.float32) + config["weight_decay"] * p32
        return (p32 - config["learning_rate"] * step).astype(p.dtype)

    return jax.tree.map(update, params, grads)


def train_step(params, batches, config):
    grads, loss = accumulate(params, batches)
    metrics = {"loss": loss, "grad_norm": global_norm(grads)}
    return apply_update(params, grads, config), grads, metrics


def main(key, batches):
    params = init_params(key, CONFIG)
    params, grads, metrics = train_step(params, batches, CONFIG)
    return metrics["loss"], metrics["grad_norm"], grads["head"], params["head"]


def inputs():
    tokens = jax.random.randint(jax.random.PRNGKey(1), (CONFIG["micro_batches"], 2, 9), 0, 4)
    return jax.random.PRNGKey(0), tokens


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
