"""A car in a valley that a continuous action drives up the hill: an environment with the spaces
of its observations and actions, a wrapper that ends episodes, and the rollout of a policy.

https://github.com/openai/gym/issues/2336
"""
import math

import numpy as np


class Box:
    def __init__(self, low, high, shape=None, dtype=np.float32):
        self.dtype = np.dtype(dtype)
        self.shape = tuple(shape) if shape is not None else np.shape(low)
        self.low = np.full(self.shape, low, dtype=self.dtype)
        self.high = np.full(self.shape, high, dtype=self.dtype)

    def contains(self, x):
        return x.shape == self.shape and bool(np.all(x >= self.low) and np.all(x <= self.high))


class ContinuousMountainCarEnv:
    def __init__(self, goal_velocity=0.0):
        self.min_action, self.max_action = -1.0, 1.0
        self.min_position, self.max_position = -1.2, 0.6
        self.max_speed, self.goal_position = 0.07, 0.45
        self.goal_velocity, self.power = goal_velocity, 0.0015
        self.low_state = np.array([self.min_position, -self.max_speed], dtype=np.float32)
        self.high_state = np.array([self.max_position, self.max_speed], dtype=np.float32)
        self.action_space = Box(self.min_action, self.max_action, shape=(1,))
        self.observation_space = Box(self.low_state, self.high_state)
        self.state = None

    def reset(self, start):
        self.state = np.array([start, 0])
        return self.state

    def step(self, action):
        position, velocity = self._move(*self.state, action[0])
        done = bool(position >= self.goal_position and velocity >= self.goal_velocity)
        reward = (100.0 if done else 0.0) - 0.1 * float(action[0]) ** 2
        self.state = np.array([position, velocity])
        return self.state, reward, done

    def _move(self, position, velocity, push):
        force = np.clip(push, self.min_action, self.max_action)
        slope = 0.0025 * math.cos(3 * position)
        velocity = np.clip(velocity + force * self.power - slope, -self.max_speed, self.max_speed)
        position = np.clip(position + velocity, self.min_position, self.max_position)
        at_wall = position == self.min_position and velocity < 0
        return position, velocity * (not at_wall)


class TimeLimit:
    def __init__(self, env, max_episode_steps):
        self.env, self.max_episode_steps = env, max_episode_steps
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.elapsed = 0

    def reset(self, start):
        self.elapsed = 0
        return self.env.reset(start)

    def step(self, action):
        observation, reward, done = self.env.step(action)
        self.elapsed += 1
        return observation, reward, done or self.elapsed >= self.max_episode_steps


def rollout(env, policy, start):
    observation = env.reset(start)
    observations, rewards, done = [observation], [], False
    while not done:
        action = np.clip(policy(observation), env.action_space.low, env.action_space.high)
        observation, reward, done = env.step(action.astype(env.action_space.dtype))
        observations.append(observation)
        rewards.append(reward)
    return np.stack(observations), np.array(rewards, dtype=np.float32)


def main(starts, gain):
    env = TimeLimit(ContinuousMountainCarEnv(), max_episode_steps=60)
    episodes = [rollout(env, lambda o: gain * o[1:], start) for start in starts]
    length = min(len(o) for o, _ in episodes)
    inside = np.array([all(env.observation_space.contains(x) for x in o) for o, _ in episodes])
    return (np.stack([o[:length] for o, _ in episodes]),
            np.stack([r[:length - 1] for _, r in episodes]), inside)


def inputs():
    rng = np.random.default_rng(4)
    return rng.uniform(-0.6, -0.4, size=3), np.float32(14.0)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
