"""Fills the replay buffer of an off-policy agent and takes one step of the twin critics.

https://github.com/DLR-RM/stable-baselines3/issues/675
"""
from collections import namedtuple

import numpy as np
import torch as th
from torch import nn
from torch.nn import functional as F

Box = namedtuple("Box", ["low", "high", "shape", "dtype"])
ReplayBufferSamples = namedtuple(
    "ReplayBufferSamples", ["observations", "actions", "next_observations", "dones", "rewards"])


class ReplayBuffer:
    def __init__(self, buffer_size, observation_space, action_space):
        self.buffer_size, self.pos = buffer_size, 0
        self.observations = np.zeros((buffer_size,) + observation_space.shape,
                                     dtype=observation_space.dtype)
        self.next_observations = np.zeros_like(self.observations)
        self.actions = np.zeros((buffer_size,) + action_space.shape, dtype=action_space.dtype)
        self.rewards = np.zeros((buffer_size, 1), dtype=np.float32)
        self.dones = np.zeros((buffer_size, 1), dtype=np.float32)

    def add(self, obs, next_obs, action, reward, done):
        self.observations[self.pos] = np.array(obs)
        self.next_observations[self.pos] = np.array(next_obs)
        self.actions[self.pos] = np.array(action)
        self.rewards[self.pos] = np.array(reward)
        self.dones[self.pos] = np.array(done)
        self.pos = (self.pos + 1) % self.buffer_size

    def to_torch(self, array):
        return th.as_tensor(array)

    def sample(self, batch_inds):
        data = (self.observations[batch_inds], self.actions[batch_inds],
                self.next_observations[batch_inds], self.dones[batch_inds],
                self.rewards[batch_inds])
        return ReplayBufferSamples(*tuple(map(self.to_torch, data)))


def preprocess_obs(obs):
    return obs.float()


class ContinuousCritic(nn.Module):
    def __init__(self, observation_space, action_space, n_critics=2, width=16):
        super().__init__()
        size = observation_space.shape[0] + action_space.shape[0]
        self.q_networks = nn.ModuleList(
            nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, 1))
            for _ in range(n_critics))

    def forward(self, obs, actions):
        features = preprocess_obs(obs).flatten(1)
        qvalue_input = th.cat([features, actions], dim=1)
        return tuple(q_net(qvalue_input) for q_net in self.q_networks)


def main(observations, actions, rewards):
    th.manual_seed(0)
    observation_space = Box(-10, 10, (observations.shape[1],), np.float64)
    action_space = Box(-1, 1, (actions.shape[1],), np.float64)
    buffer = ReplayBuffer(64, observation_space, action_space)
    for t in range(len(rewards) - 1):
        buffer.add(observations[t], observations[t + 1], actions[t], rewards[t], t % 9 == 8)
    critic = ContinuousCritic(observation_space, action_space)
    optimizer = th.optim.Adam(critic.parameters(), lr=3e-4)
    replay_data = buffer.sample(np.arange(0, buffer.pos, 2))
    with th.no_grad():
        next_q = th.cat(critic(replay_data.next_observations, replay_data.actions), dim=1)
        next_q, _ = th.min(next_q, dim=1, keepdim=True)
        target = replay_data.rewards + (1 - replay_data.dones) * 0.99 * next_q
    current = critic(replay_data.observations, replay_data.actions)
    loss = 0.5 * sum(F.mse_loss(q, target) for q in current)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach(), target


def inputs():
    g = th.Generator().manual_seed(3)
    obs = th.randn(20, 5, generator=g, dtype=th.float64)
    return obs, th.rand(20, 2, generator=g, dtype=th.float64) * 2 - 1, th.rand(20, generator=g)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
