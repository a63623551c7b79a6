"""Training steps of a torch mixture of experts: top-k routing with integer counts, a
balance loss, and updates with decoupled weight decay."""
import torch
from torch import nn

CONFIG = {"width": 8, "experts": 4, "k": 2, "balance": 0.01}


class Router(nn.Module):
    def __init__(self, width, experts, k):
        super().__init__()
        self.gate, self.k = nn.Linear(width, experts, bias=False), k

    def forward(self, x):
        probability = torch.softmax(self.gate(x), dim=-1)
        weight, index = probability.topk(self.k, dim=-1)
        return probability, weight / weight.sum(dim=-1, keepdim=True), index


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.router = Router(config["width"], config["experts"], config["k"])
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(config["width"], 16), nn.GELU(), nn.Linear(16, config["width"]))
            for _ in range(config["experts"]))

    def forward(self, x):
        probability, weight, index = self.router(x)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token, slot = torch.nonzero(index == e, as_tuple=True)
            out.index_add_(0, token, expert(x[token]) * weight[token, slot, None])
        counts = torch.bincount(index.flatten(), minlength=len(self.experts))
        share = counts.to(x.dtype) / index.numel()
        return out, counts, len(self.experts) * (share * probability.mean(dim=0)).sum()


def main(x, target):
    torch.manual_seed(1)
    model = Mixture(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        out, counts, balance = model(x)
        loss = nn.functional.mse_loss(out, target) + CONFIG["balance"] * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), counts


def inputs():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(24, 8, generator=g)
    return x, torch.tanh(x.flip(-1))
