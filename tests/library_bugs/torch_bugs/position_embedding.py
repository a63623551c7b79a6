"""Hidden states of bfloat16 become float32 by interpolated position embeddings.

https://github.com/huggingface/transformers/pull/41701
"""

import torch
from torch import nn


class VisionModel(nn.Module):
    def __init__(self, features=8, side=4):
        super().__init__()
        self.side = side
        self.patch_embed = nn.Linear(features, features, dtype=torch.bfloat16)
        self.pos_embed = nn.Embedding(side * side, features)  # born

    def interpolated_positions(self, height, width):
        rows = torch.linspace(0, self.side - 1, height)
        columns = torch.linspace(0, self.side - 1, width)
        corner = (rows.long()[:, None] * self.side + columns.long()[None]).flatten()
        weight = (rows % 1)[:, None, None] * (columns % 1)[None, :, None]
        embedding = self.pos_embed(corner).view(height, width, -1)
        return ((1 - weight) * embedding).flatten(0, 1)

    def forward(self, pixels, height, width):
        hidden_states = self.patch_embed(pixels)
        return hidden_states + self.interpolated_positions(height, width)  # guilty


def program(pixels):
    torch.manual_seed(0)
    return VisionModel()(pixels, 2, 3)


def inputs():
    return (torch.ones(6, 8, dtype=torch.bfloat16),)


def shows_fault(result):
    return result.dtype == torch.float32
