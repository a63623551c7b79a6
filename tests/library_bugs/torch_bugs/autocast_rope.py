"""All image positions get one embedding: autocast runs the product of positions in bfloat16.

https://github.com/huggingface/diffusers/issues/13920
"""

import torch
from torch import nn

IMAGE_POSITION_OFFSET = 65536


class MultiAxisRope(nn.Module):
    def __init__(self, dim, theta=10000.0):
        super().__init__()
        inv_freq = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, position_ids):
        positions = position_ids.permute(2, 0, 1).to(dtype=torch.float32)
        inv_freq = self.inv_freq[None, None, :, None].expand(3, positions.shape[1], -1, 1)
        angles = inv_freq @ positions.unsqueeze(2)  # guilty
        angles = angles.transpose(2, 3)
        return angles.cos(), angles.sin()


def image_positions(size):
    grid = torch.cartesian_prod(torch.arange(1), torch.arange(size), torch.arange(size))
    return IMAGE_POSITION_OFFSET + grid[None]


def program(position_ids):
    rope = MultiAxisRope(dim=8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return rope(position_ids)


def inputs():
    return (image_positions(4),)


def shows_fault(result):
    cos, _ = result
    return bool((cos == cos[:, :, :1]).all())
