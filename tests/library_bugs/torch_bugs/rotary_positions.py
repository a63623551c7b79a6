"""Positions 256 and 257 get the same embedding: the positions take the buffer's bfloat16.

https://github.com/EleutherAI/gpt-neox/pull/1016
"""

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, length):
        t = torch.arange(length).type_as(self.inv_freq)  # guilty
        frequencies = torch.outer(t, self.inv_freq)
        embedding = torch.cat((frequencies, frequencies), dim=-1)
        return embedding.cos(), embedding.sin()


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rotary = RotaryEmbedding(dim)

    def forward(self, keys):
        cos, sin = self.rotary(keys.shape[0])
        first, second = keys.chunk(2, dim=-1)
        return keys * cos + torch.cat((-second, first), dim=-1) * sin


def program(keys):
    return Attention(keys.shape[-1]).to(keys.dtype)(keys)


def inputs():
    return (torch.ones(260, 8, dtype=torch.bfloat16),)


def shows_fault(result):
    return bool((result[256] == result[257]).all())
