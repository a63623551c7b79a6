"""An epidemic in several regions by fourth order Runge-Kutta steps, and the sensitivity of the
peak to the rates."""
import jax
import jax.numpy as jnp

CONFIG = {"dt": 0.5, "steps": 60}


def derivative(state, rates, mixing):
    s, i, r = state
    pressure = mixing @ i
    new = rates["beta"] * s * pressure
    out = rates["gamma"] * i
    return -new, new - out, out


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: a * u + v, x, y)


def rk4(state, rates, mixing, dt):
    k1 = derivative(state, rates, mixing)
    k2 = derivative(axpy(0.5 * dt, k1, state), rates, mixing)
    k3 = derivative(axpy(0.5 * dt, k2, state), rates, mixing)
    k4 = derivative(axpy(dt, k3, state), rates, mixing)
    total = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
    return axpy(dt, total, state)


def simulate(rates, state, mixing):
    def step(state, _):
        state = rk4(state, rates, mixing, CONFIG["dt"])
        return state, state[1].sum()
    return jax.lax.scan(step, state, None, length=CONFIG["steps"])


def main(susceptible, infected, mixing):
    rates = {"beta": jnp.full(infected.shape, 0.4), "gamma": jnp.full(infected.shape, 0.1)}
    state = (susceptible, infected, jnp.zeros_like(infected))

    def peak(rates):
        _, curve = simulate(rates, state, mixing)
        return jax.nn.logsumexp(curve * 50) / 50, curve

    (height, curve), slope = jax.value_and_grad(peak, has_aux=True)(rates)
    return height, curve, slope["beta"], slope["gamma"]


def inputs():
    mixing = 0.8 * jnp.eye(3) + 0.1 * (1 - jnp.eye(3))
    return jnp.array([0.99, 1.0, 1.0]), jnp.array([0.01, 0.0, 0.0]), mixing
