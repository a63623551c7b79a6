"""An additive mask is minus infinity: two planes of the lowest bfloat16 are summed.

https://github.com/NVIDIA-NeMo/Automodel/pull/2658
"""

import torch


def causal_plane(length, dtype):
    lowest = torch.finfo(dtype).min
    return torch.full((length, length), lowest, dtype=dtype).triu(1)


def padding_plane(attention_mask, dtype):
    plane = torch.zeros(attention_mask.shape, dtype=dtype)
    return plane.masked_fill(attention_mask == 0, torch.finfo(dtype).min)[:, None, :]


def causal_padding_mask(attention_mask, dtype):
    causal = causal_plane(attention_mask.shape[-1], dtype)
    padding = padding_plane(attention_mask, dtype)
    return causal[None] + padding  # guilty


class Layer(torch.nn.Module):
    def forward(self, scores, attention_mask):
        mask = causal_padding_mask(attention_mask, scores.dtype)
        return scores + mask


def program(scores, attention_mask):
    return Layer()(scores, attention_mask)


def inputs():
    return torch.zeros(1, 4, 4, dtype=torch.bfloat16), torch.tensor([[1, 1, 0, 0]])


def shows_fault(result):
    return bool(result.isinf().any())
