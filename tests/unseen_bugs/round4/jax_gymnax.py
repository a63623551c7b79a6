"""Steps an acrobot environment that resets itself at the end of an episode, in double precision.

https://github.com/RobertTLange/gymnax/issues/111
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


class EnvState(NamedTuple):
    joint_angles: jax.Array
    velocities: jax.Array
    time: jax.Array
    finished: jax.Array


class EnvParams(NamedTuple):
    dt: float = 0.2
    gravity: float = 9.8
    max_vel: float = 12.0
    max_steps_in_episode: int = 5
    height: float = 1.0


TORQUE = (-1.0, 0.0, 1.0)


def dsdt(s, torque, params):
    theta, dtheta = s[:2], s[2:]
    c = jnp.cos(theta[1])
    d1, d2 = 3.5 + c, 1.25 + 0.5 * c
    phi2 = 0.5 * params.gravity * jnp.sin(theta[0] + theta[1])
    phi1 = phi2 + 1.5 * params.gravity * jnp.sin(theta[0]) - dtheta[0] * dtheta[1] * jnp.sin(theta[1])
    acc2 = (torque + d2 / d1 * phi1 - phi2) / (1.25 - d2 ** 2 / d1)
    acc1 = -(d2 * acc2 + phi1) / d1
    return jnp.stack([dtheta[0], dtheta[1], acc1, acc2])


class Acrobot:
    default_params = EnvParams()

    def reset_env(self, key, params):
        start = jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)
        state = EnvState(start[:2], start[2:], jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        return self.get_obs(state), state

    def step_env(self, state, action, params):
        s = jnp.concatenate([state.joint_angles, state.velocities])
        torque = jnp.asarray(TORQUE)[action]
        middle = s + 0.5 * params.dt * dsdt(s, torque, params)
        s = s + params.dt * dsdt(middle, torque, params)
        time = state.time + 1
        ends = jnp.stack([self.height(s[:2]) > params.height, time >= params.max_steps_in_episode])
        state = EnvState(s[:2], jnp.clip(s[2:], -params.max_vel, params.max_vel), time, jnp.sum(ends))
        reward = jnp.where(ends[0], 0.0, -1.0)
        return self.get_obs(state), state, reward, state.finished > 0

    def height(self, angles):
        return -jnp.cos(angles[0]) - jnp.cos(angles[0] + angles[1])

    def get_obs(self, state):
        return jnp.concatenate([jnp.cos(state.joint_angles), jnp.sin(state.joint_angles), state.velocities])

    def step(self, key, state, action, params):
        obs_st, state_st, reward, done = self.step_env(state, action, params)
        obs_re, state_re = self.reset_env(key, params)
        state = jax.tree.map(
            lambda x, y: jax.lax.select(done, x, y), state_re, state_st
        )
        return jax.lax.select(done, obs_re, obs_st), state, reward, done


def main(key, actions):
    env, params = Acrobot(), Acrobot.default_params
    key, key_reset = jax.random.split(key)
    obs, state = env.reset_env(key_reset, params)
    observations, rewards, dones = [obs], [], []
    for t in range(actions.shape[0]):
        key, key_step = jax.random.split(key)
        obs, state, reward, done = env.step(key_step, state, actions[t], params)
        observations.append(obs)
        rewards.append(reward)
        dones.append(done)
    return jnp.stack(observations), jnp.stack(rewards), jnp.stack(dones), state.time


def inputs():
    return jax.random.PRNGKey(5), jnp.array([0, 2, 2, 0, 1, 2, 2], jnp.int32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
