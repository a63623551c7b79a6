"""An evolution strategy with ask and tell: a base class keeps the best member, the strategy
moves its mean, and a scan runs the generations on a quadratic problem.

https://github.com/RobertTLange/evosax/issues/67
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


class EvoParams(NamedTuple):
    sigma_init: float = 0.4
    sigma_decay: float = 0.97
    lrate: float = 0.6
    init_min: float = -1.0
    init_max: float = 1.0
    clip: float = 3.0


class EvoState(NamedTuple):
    mean: jax.Array
    sigma: jax.Array
    best_member: jax.Array
    best_fitness: jax.Array
    gen_counter: jax.Array


def get_best_fitness_member(x, fitness, state):
    best_in_gen = jnp.argmin(fitness)
    best_in_gen_fitness, best_in_gen_member = fitness[best_in_gen], x[best_in_gen]
    replace_best = best_in_gen_fitness < state.best_fitness
    best_fitness = jax.lax.select(replace_best, best_in_gen_fitness, state.best_fitness)
    best_member = jax.lax.select(replace_best, best_in_gen_member, state.best_member)
    return best_member, best_fitness


class Strategy:
    def __init__(self, popsize, num_dims):
        self.popsize, self.num_dims = popsize, num_dims

    def initialize(self, rng, params):
        rng_mean, rng_best = jax.random.split(rng)
        shape, low, high = (self.num_dims,), params.init_min, params.init_max
        return EvoState(
            mean=jax.random.uniform(rng_mean, shape, minval=low, maxval=high),
            sigma=jnp.asarray(params.sigma_init),
            best_member=jax.random.uniform(rng_best, shape, minval=low, maxval=high),
            best_fitness=jnp.asarray(jnp.finfo(jnp.float32).max),
            gen_counter=jnp.asarray(0),
        )

    def ask(self, rng, state, params):
        x = self.ask_strategy(rng, state, params)
        return jnp.clip(x, -params.clip, params.clip)

    def tell(self, x, fitness, state, params):
        state = self.tell_strategy(x, fitness, state, params)
        best_member, best_fitness = get_best_fitness_member(x, fitness, state)
        return state._replace(best_member=best_member, best_fitness=best_fitness,
                              gen_counter=state.gen_counter + 1)


class SimpleES(Strategy):
    def __init__(self, popsize, num_dims, elite_ratio=0.25):
        super().__init__(popsize, num_dims)
        self.elite = max(1, int(popsize * elite_ratio))

    def ask_strategy(self, rng, state, params):
        noise = jax.random.normal(rng, (self.popsize, self.num_dims))
        return state.mean + state.sigma * noise

    def tell_strategy(self, x, fitness, state, params):
        order = jnp.argsort(fitness)[:self.elite]
        mean = state.mean + params.lrate * (x[order].mean(axis=0) - state.mean)
        return state._replace(mean=mean, sigma=state.sigma * params.sigma_decay)


def main(rng, target, scale):
    params = EvoParams()
    strategy = SimpleES(popsize=16, num_dims=target.shape[0])
    rng, rng_init = jax.random.split(rng)
    state = strategy.initialize(rng_init, params)

    def loss(x):
        return (scale * (x - target) ** 2).sum()

    def generation(carry, _):
        rng, state = carry
        rng, rng_ask = jax.random.split(rng)
        x = strategy.ask(rng_ask, state, params)
        state = strategy.tell(x, jax.vmap(loss)(x), state, params)
        return (rng, state), state.best_fitness

    (_, state), history = jax.lax.scan(generation, (rng, state), length=40)
    return state.best_member, history, loss(state.best_member)


def inputs():
    return jax.random.PRNGKey(0), jnp.array([0.3, -1.1, 0.7]), jnp.array([1.0, 2.5, 0.4])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
