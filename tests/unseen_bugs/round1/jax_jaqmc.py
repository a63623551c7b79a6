"""A small neural wavefunction: dense features of the electron positions, multiplied by an
envelope around the atoms, to the log of the determinant.

https://github.com/bytedance/jaqmc/pull/64
"""
import jax
import jax.numpy as jnp
from flax import linen as nn

jax.config.update("jax_enable_x64", True)

CONFIG = {"hidden": (16, 16), "ndets": 2, "envelope": "abs_isotropic"}
ATOMS = ((0.0, 0.0, 0.0), (0.0, 0.0, 1.4))


class AtomicFeatures(nn.Module):
    atoms: tuple

    def __call__(self, electrons):
        centres = jnp.asarray(self.atoms, dtype=electrons.dtype)
        ae = electrons[:, None, :] - centres[None]
        r_ae = jnp.sqrt(jnp.sum(ae ** 2, axis=-1))
        feats = jnp.concatenate([ae, r_ae[..., None]], axis=-1)
        return feats.reshape(electrons.shape[0], -1), ae, r_ae


class Backbone(nn.Module):
    hidden: tuple

    @nn.compact
    def __call__(self, h):
        for width in self.hidden:
            g = jnp.broadcast_to(jnp.mean(h, axis=0, keepdims=True), h.shape)
            h = nn.tanh(nn.Dense(width)(jnp.concatenate([h, g], axis=-1)))
        return h


class Envelope(nn.Module):
    n_orbitals: int
    ndets: int
    is_abs: bool = False

    @nn.compact
    def __call__(self, ae_vectors, r_ae):
        _, n_atoms = r_ae.shape
        shape = (self.n_orbitals, n_atoms, self.ndets)
        pi = self.param("pi", nn.initializers.ones, shape)
        sigma = self.param("sigma", nn.initializers.ones, shape)
        r = r_ae[:, None, :, None]
        exponent = -jnp.abs(sigma * r) if self.is_abs else sigma * -r
        envelope = jnp.sum(pi * jnp.exp(exponent), axis=2)
        return jnp.transpose(envelope, (2, 0, 1))


class Wavefunction(nn.Module):
    config: dict
    atoms: tuple

    @nn.compact
    def __call__(self, electrons):
        n = electrons.shape[0]
        ndets = self.config["ndets"]
        feats, ae, r_ae = AtomicFeatures(self.atoms)(electrons)
        h = Backbone(self.config["hidden"])(feats)
        orbitals = nn.Dense(n * ndets)(h).reshape(n, n, ndets).transpose(2, 0, 1)
        envelope = Envelope(n, ndets, self.config["envelope"].startswith("abs"))
        orbitals = orbitals * envelope(ae, r_ae)
        sign, logdet = jnp.linalg.slogdet(orbitals)
        top = jnp.max(logdet)
        return top + jnp.log(jnp.abs(jnp.sum(sign * jnp.exp(logdet - top))))


def main(electrons):
    wf = Wavefunction(CONFIG, ATOMS)
    params = wf.init(jax.random.key(0), electrons[0])
    return jax.vmap(lambda e: wf.apply(params, e))(electrons)


def inputs():
    return (jax.random.normal(jax.random.key(1), (3, 4, 3), jnp.float32),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
