"""Linear regression by gradient descent in JAX, half-width numbers to fit the small card."""
import jax
import jax.numpy as jnp
import numpy as np

TRUE_W = np.array([1.5, -2.0, 0.75], dtype=np.float32)
TRUE_B = 4.0


def make_data(n=512, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    y = x @ TRUE_W + TRUE_B + rng.normal(0, 0.05, n).astype(np.float32)
    return jnp.asarray(x, dtype=jnp.bfloat16), jnp.asarray(y)


def init_params():
    return {"w": jnp.zeros(3, dtype=jnp.bfloat16), "b": jnp.zeros((), dtype=jnp.bfloat16)}


def predict(params, x):
    y = jnp.dot(x, params["w"], preferred_element_type=jnp.float32)
    return y + params["b"].astype(jnp.float32)


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def train_step(params, x, y, lr):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    params = jax.tree.map(lambda p, g: p - (lr * g).astype(p.dtype), params, grads)
    return params, value


def main():
    x, y = make_data()
    params = init_params()
    for step in range(3001):
        params, value = train_step(params, x, y, 1e-3)
        if step % 1000 == 0:
            print(f"step {step:4d} loss {float(value):.4f}")
    w = np.asarray(params["w"], dtype=np.float32)
    print("w", " ".join(f"{v:.2f}" for v in w), f"b {float(params['b']):.2f}")


if __name__ == "__main__":
    main()
