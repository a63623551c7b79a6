"""One training step of a small sequence model; everything is meant to be bfloat16."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

DTYPE = jnp.bfloat16
VOCAB, LENGTH, WIDTH, HIDDEN = 64, 16, 32, 64


def init(key):
    keys = jax.random.split(key, 4)
    return {
        "embed": jax.random.normal(keys[0], (VOCAB, WIDTH), dtype=DTYPE),
        "scale": jnp.ones((WIDTH,), dtype=DTYPE),
        "up": jax.random.normal(keys[1], (WIDTH, HIDDEN), dtype=DTYPE) * 0.1,
        "down": jax.random.normal(keys[2], (HIDDEN, WIDTH), dtype=DTYPE) * 0.1,
        "out": jax.random.normal(keys[3], (WIDTH, VOCAB), dtype=DTYPE) * 0.1,
    }


def position_table(length, width):
    pos = np.arange(length)[:, None]
    rate = 10000 ** (-np.arange(0, width, 2) / width)
    angle = pos * rate
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


POSITIONS = jnp.asarray(position_table(LENGTH, WIDTH))


def rms_norm(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def forward(params, tokens):
    h = params["embed"][tokens]
    h = h + POSITIONS[None, : tokens.shape[1]]
    n = rms_norm(h, params["scale"])
    h = h + jax.nn.gelu(n @ params["up"]) @ params["down"]
    return rms_norm(h, params["scale"]) @ params["out"]


def loss_fn(params, tokens):
    logits = forward(params, tokens[:, :-1])
    logp = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(logp, tokens[:, 1:, None], axis=-1)
    return -picked.mean()


OPT = optax.sgd(0.1)


@jax.jit
def train_step(params, state, tokens):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
    updates, state = OPT.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    params = init(jax.random.key(0))
    state = OPT.init(params)
    tokens = jax.random.randint(jax.random.key(1), (8, LENGTH), 0, VOCAB)
    for step in range(3):
        params, state, loss = train_step(params, state, tokens)
        print(f"step {step} loss {float(loss):.3f} ({loss.dtype})")
    print("logits", forward(params, tokens).dtype, "| weights", params["up"].dtype)


if __name__ == "__main__":
    main()
