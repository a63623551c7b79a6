"""Averages the weights of a bfloat16 model during training: master weights and the average are
float32, only the forward pass is bfloat16, and the loss is computed in float32."""
import copy

import torch
from torch import nn
import torch.nn.functional as F

CONFIG = {"lr": 0.05, "decay": 0.99, "warmup": 10, "steps": 6, "classes": 3}


class EMA(nn.Module):
    def __init__(self, model, decay, warmup):
        super().__init__()
        self.average = copy.deepcopy(model).requires_grad_(False)
        self.decay, self.warmup = decay, warmup
        self.register_buffer("num_updates", torch.zeros((), dtype=torch.int64))

    def rate(self):
        n = int(self.num_updates)
        return min(self.decay, (1 + n) / (self.warmup + n))

    @torch.no_grad()
    def update(self, model):
        self.num_updates += 1
        rate = self.rate()
        for mine, theirs in zip(self.average.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - rate)


class Classifier(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.hidden = nn.Linear(features, 16)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, classes)

    def forward(self, x):
        return self.out(self.norm(F.gelu(self.hidden(x))))


def train_step(master, x, y, lr):
    compute = copy.deepcopy(master).to(torch.bfloat16)
    logits = compute(x.to(torch.bfloat16))
    loss = F.cross_entropy(logits.float(), y)
    grads = torch.autograd.grad(loss, list(compute.parameters()))
    with torch.no_grad():
        for p, g in zip(master.parameters(), grads):
            p -= lr * g.to(p.dtype)
    return loss.detach()


def accuracy(model, x, y):
    with torch.no_grad():
        correct = (model(x).argmax(dim=1) == y).sum()
    return correct / len(y)


def main(x, y):
    torch.manual_seed(5)
    master = Classifier(x.shape[1], CONFIG["classes"])
    ema = EMA(master, CONFIG["decay"], CONFIG["warmup"])
    losses = []
    for _ in range(CONFIG["steps"]):
        losses.append(train_step(master, x, y, CONFIG["lr"]))
        ema.update(master)
    return (torch.stack(losses), ema.average.out.weight, ema.num_updates,
            accuracy(ema.average, x, y))


def inputs():
    g = torch.Generator().manual_seed(6)
    x = torch.randn(30, 5, generator=g)
    return x, torch.bucketize(x[:, 0], torch.tensor([-0.4, 0.4]))
