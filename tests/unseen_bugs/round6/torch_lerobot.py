"""Evaluates a policy in vectorised environments: observations are normalised, the policy gives
chunks of actions that are queued, and the actions go back to the environments as arrays.

https://github.com/huggingface/lerobot/pull/3062
"""
from collections import deque

import numpy as np
import torch
from torch import nn

CONFIG = {"dtype": "bfloat16", "hidden": 16, "chunk_size": 4, "state_dim": 6, "action_dim": 3}


class PointEnv:
    """Points that are pushed towards a goal, several at once."""

    def __init__(self, starts, goals):
        self.position, self.goal = starts.astype(np.float32), goals.astype(np.float32)
        self.velocity = np.zeros_like(self.position)

    def observe(self):
        return {"agent_pos": np.concatenate([self.position - self.goal, self.velocity], axis=1)}

    def step(self, action):
        assert action.ndim == 2, "Action dimensions should be (batch, action_dim)"
        self.velocity = np.float32(0.8) * self.velocity + np.float32(0.1) * action
        self.position = self.position + self.velocity
        return self.observe(), -np.linalg.norm(self.position - self.goal, axis=1)


class Normalizer:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean), torch.tensor(std)

    def forward(self, x):
        return (x - self.mean) / self.std

    def inverse(self, x):
        return x * self.std.to(x.dtype) + self.mean.to(x.dtype)


class ChunkPolicy(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.encoder = nn.Linear(config["state_dim"], config["hidden"])
        self.head = nn.Linear(config["hidden"], config["chunk_size"] * config["action_dim"])
        self.to(getattr(torch, config["dtype"]))
        self.queue = deque(maxlen=config["chunk_size"])

    def reset(self):
        self.queue.clear()

    def predict_action_chunk(self, batch):
        state = batch["observation.state"].to(self.encoder.weight.dtype)
        actions = self.head(torch.tanh(self.encoder(state)))
        return actions.unflatten(-1, (self.config["chunk_size"], self.config["action_dim"]))

    @torch.no_grad()
    def select_action(self, batch):
        if not self.queue:
            self.queue.extend(self.predict_action_chunk(batch).transpose(0, 1))
        return self.queue.popleft()


def preprocess_observation(observation, normalizer):
    state = torch.from_numpy(observation["agent_pos"]).float()
    return {"observation.state": normalizer.forward(state)}


def rollout(env, policy, state_stats, action_stats, steps):
    policy.reset()
    observation = env.observe()
    actions, rewards = [], []
    for _ in range(steps):
        batch = preprocess_observation(observation, state_stats)
        with torch.inference_mode():
            action = policy.select_action(batch)
        action = action_stats.inverse(action)
        action_numpy = action.to("cpu").numpy()
        observation, reward = env.step(action_numpy)
        actions.append(action_numpy)
        rewards.append(reward)
    return torch.from_numpy(np.stack(actions)), torch.from_numpy(np.stack(rewards))


def main(starts, goals):
    torch.manual_seed(0)
    policy = ChunkPolicy(CONFIG).eval()
    state_stats = Normalizer([0.0] * CONFIG["state_dim"], [1.5] * 3 + [0.5] * 3)
    action_stats = Normalizer([0.1, 0.0, -0.1], [0.6, 0.8, 0.7])
    return rollout(PointEnv(starts, goals), policy, state_stats, action_stats, steps=9)


def inputs():
    rng = np.random.default_rng(1)
    return rng.uniform(-1, 1, size=(4, 3)), rng.uniform(-1, 1, size=(4, 3))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
