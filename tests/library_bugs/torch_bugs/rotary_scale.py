"""Rotated queries of bfloat16 are float32: the scale of xPos is a float32 buffer.

https://github.com/lucidrains/rotary-embedding-torch/pull/9
"""

import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, scale_base=512):
        super().__init__()
        frequencies = 10000 ** -(torch.arange(0, dim, 2) / dim)
        self.register_buffer("frequencies", frequencies)
        scale = (torch.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale)  # born
        self.scale_base = scale_base

    def angles(self, length, dtype):
        angles = torch.outer(torch.arange(length), self.frequencies)
        return torch.cat((angles, angles), dim=-1).to(dtype)

    def scales(self, length):
        power = (torch.arange(length) - length // 2) / self.scale_base
        scale = self.scale ** power[:, None]
        return torch.cat((scale, scale), dim=-1)

    def forward(self, x):
        length, angles = x.shape[-2], self.angles(x.shape[-2], x.dtype)
        rotated = x * angles.cos() + rotate_half(x) * angles.sin()
        return rotated * self.scales(length)  # guilty


def program(queries):
    return RotaryEmbedding(queries.shape[-1])(queries)


def inputs():
    return (torch.ones(2, 5, 8, dtype=torch.bfloat16),)


def shows_fault(result):
    return result.dtype == torch.float32
