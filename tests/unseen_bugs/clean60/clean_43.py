"""A residual MLP regressor in evaluation mode."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, p=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.fc1(self.norm(x)))
        return x + self.drop(self.fc2(h))


class Regressor(nn.Module):
    def __init__(self, n_in, dim=16, depth=2):
        super().__init__()
        self.stem = nn.Linear(n_in, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(-1)


torch.manual_seed(0)
model = Regressor(6).eval()


@torch.no_grad()
def main(x, y):
    pred = model(x)
    mse = torch.nn.functional.mse_loss(pred, y)
    r2 = 1.0 - torch.sum((y - pred) ** 2) / torch.sum((y - y.mean()) ** 2)
    return pred, mse, r2


def inputs():
    g = torch.Generator().manual_seed(1)
    x = torch.randn(10, 6, generator=g)
    return x, x.sum(dim=1)
