"""Fits the field of a set of planar coils to a target on axis, with the scalar parameters of each
coil (current, radius) as attributes of an object.

https://github.com/PlasmaControl/DESC/pull/1963
"""
import jax
import jax.numpy as jnp
import numpy as np

CONFIG = {"steps": 5, "learning_rate": 0.05, "current": 1.2, "r": 0.8, "shift": 0.1,
          "rotations": 2}


def optimizable(*names):
    def wrap(cls):
        cls.optimizable_params = names
        return cls
    return wrap


@optimizable("current", "r", "center")
class FourierPlanarCoil:
    def __init__(self, current=1.0, r=1.0, center=(0.0, 0.0, 0.0)):
        self.current = current
        self.r = r
        self.center = jnp.asarray(center, jnp.float32)

    @property
    def current(self):
        return self._current

    @current.setter
    def current(self, new):
        self._current = float(np.squeeze(new))

    @property
    def r(self):
        return self._r

    @r.setter
    def r(self, new):
        self._r = float(np.squeeze(new))

    @property
    def params_dict(self):
        return {name: getattr(self, name) for name in self.optimizable_params}


class CoilSet:
    def __init__(self, *coils):
        self.coils = coils

    @property
    def params(self):
        return tuple(c.params_dict for c in self.coils)

    @params.setter
    def params(self, new):
        for coil, values in zip(self.coils, new):
            for name, value in values.items():
                setattr(coil, name, value)


@jax.jit
def compute_scaled_error(params, z, target):
    field = jnp.zeros_like(z)
    for p in params:
        dz = z - p["center"][2]
        offset = jnp.sum(p["center"][:2] ** 2)
        field += 0.5 * p["current"] * p["r"] ** 2 / (p["r"] ** 2 + dz ** 2 + offset) ** 1.5
    return field - target


def pack_params(params):
    return jnp.concatenate([jnp.ravel(jnp.asarray(x)) for x in jax.tree.leaves(params)])


def unpack_params(x, like):
    leaves, tree = jax.tree.flatten(like)
    sizes = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = jnp.split(x, sizes)
    return tree.unflatten([p.reshape(np.shape(leaf)) for p, leaf in zip(parts, leaves)])


def minimize(coils, z, target, config):
    params = coils.params
    history = [0.5 * jnp.sum(compute_scaled_error(params, z, target) ** 2)]
    x = pack_params(params)
    for _ in range(config["steps"]):
        state = unpack_params(x, params)
        residual, pullback = jax.vjp(lambda p: compute_scaled_error(p, z, target), state)
        x = x - config["learning_rate"] * pack_params(pullback(residual)[0])
        history.append(0.5 * jnp.sum(compute_scaled_error(unpack_params(x, params), z, target) ** 2))
    coils.params = unpack_params(x, params)
    return jnp.stack(history)


def main(z, target):
    shift = CONFIG["shift"]
    coils = CoilSet(*(FourierPlanarCoil(CONFIG["current"], CONFIG["r"], (0.0, 0.0, s))
                      for s in np.linspace(-shift, shift, CONFIG["rotations"])))
    history = minimize(coils, z, target, CONFIG)
    return history, pack_params(coils.params)


def inputs():
    z = jnp.linspace(-1, 1, 21, dtype=jnp.float32)
    target = 1.1 / (1 + z ** 2) ** 1.5
    return z, target


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
