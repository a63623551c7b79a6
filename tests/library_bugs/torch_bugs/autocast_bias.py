"""Under autocast a layer gives float32: its bias is added outside the matrix product.

https://github.com/rwth-i6/returnn/issues/1828
"""

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features_in, features_out) / features_in**0.5)
        self.bias = nn.Parameter(torch.zeros(features_out))

    def forward(self, x):
        out = torch.matmul(x, self.weight)
        return out + self.bias  # guilty


class FeedForward(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.inner, self.outer = Linear(features, hidden), Linear(hidden, features)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


def program(x):
    torch.manual_seed(0)
    module = FeedForward(x.shape[-1], 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return module(x)


def inputs():
    return (torch.ones(3, 8),)


def shows_fault(result):
    return result.dtype == torch.float32
