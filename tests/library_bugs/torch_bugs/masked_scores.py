"""A padded row is NaN: the lowest float16 plus a negative score is minus infinity.

https://github.com/huggingface/transformers/pull/17306
"""

import torch
from torch import nn


def extended_mask(attention_mask, dtype):
    mask = attention_mask[:, None, :].to(dtype)
    return (1.0 - mask) * torch.finfo(dtype).min


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**-0.5

    def forward(self, queries, keys, values, mask):
        scores = torch.matmul(queries, keys.transpose(-1, -2)) * self.scale
        scores = scores + mask  # guilty
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        weights = shifted.exp()
        return torch.matmul(weights / weights.sum(dim=-1, keepdim=True), values)


def program(hidden, attention_mask):
    attention = SelfAttention(hidden.shape[-1])
    return attention(hidden, -hidden, hidden, extended_mask(attention_mask, hidden.dtype))


def inputs():
    hidden = torch.full((2, 3, 16), 4.0, dtype=torch.float16)
    return hidden, torch.tensor([[1, 1, 0], [0, 0, 0]])


def shows_fault(result):
    return bool(result.isnan().any())
