"""Clips the gradients of a model whose parameters and optimiser state are sharded over ranks: each
rank has the norm of its own shard, and the norms are reduced.

https://github.com/facebookresearch/fairscale/pull/263
"""
import torch
from torch import nn

CONFIG = {"world_size": 2, "max_norm": 1.0, "norm_type": 2.0, "lr": 0.1, "scale": 400.0}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def all_reduce(values):
    return torch.stack(values).sum(dim=0)


class OSS:
    def __init__(self, params, world_size, lr):
        self.lr = lr
        self.partition_parameters = self.partition(list(params), world_size)

    @staticmethod
    def partition(params, world_size):
        shards, sizes = [[] for _ in range(world_size)], [0] * world_size
        for p in params:
            rank = sizes.index(min(sizes))
            shards[rank].append(p)
            sizes[rank] += p.numel()
        return shards

    def local_norm(self, rank, norm_type):
        grads = [p.grad.detach() for p in self.partition_parameters[rank] if p.grad is not None]
        norms = torch.stack([torch.norm(g, norm_type) for g in grads])
        return torch.norm(norms, norm_type)

    def clip_grad_norm(self, max_norm, norm_type=2.0):
        norm_type = float(norm_type)
        local = [self.local_norm(rank, norm_type) for rank in range(len(self.partition_parameters))]
        if norm_type == float("inf"):
            total_norm = torch.stack(local).max()
        else:
            total_norm = all_reduce([norm ** norm_type for norm in local])
            total_norm = total_norm ** (1.0 / norm_type)
        clip_coef = max_norm / (total_norm + 1e-6)
        if clip_coef < 1:
            for shard in self.partition_parameters:
                for p in shard:
                    p.grad.detach().mul_(clip_coef.to(p.grad.dtype))
        return total_norm

    def step(self):
        with torch.no_grad():
            for shard in self.partition_parameters:
                for p in shard:
                    p -= self.lr * p.grad


class GradScaler:
    def __init__(self, scale):
        self.scale = scale

    def backward(self, loss):
        (loss * self.scale).backward()


def main(x, target):
    torch.manual_seed(3)
    model = nn.Sequential(Block(x.shape[1]), nn.Linear(x.shape[1], 1)).half()
    optimizer = OSS(model.parameters(), CONFIG["world_size"], CONFIG["lr"])
    scaler = GradScaler(CONFIG["scale"])
    before = model[1].weight.detach().clone()
    loss = ((model(x.half()).float() - target) ** 2).mean()
    scaler.backward(loss)
    norm = optimizer.clip_grad_norm(CONFIG["max_norm"], CONFIG["norm_type"])
    optimizer.step()
    return norm, model[1].weight.detach() - before, model[1].weight.grad


def inputs():
    g = torch.Generator().manual_seed(5)
    x = torch.randn(16, 8, generator=g)
    return x, x.sum(dim=1, keepdim=True) + 2.0


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
