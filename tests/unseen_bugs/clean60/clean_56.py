"""Top-k mixture-of-experts gate with scatter and a load-balancing loss."""
import torch
import torch.nn.functional as F

TOP_K = 2


def gate(logits):
    weights, index = logits.topk(TOP_K, dim=-1)
    weights = F.softmax(weights, dim=-1)
    dense = torch.zeros_like(logits).scatter(-1, index, weights)
    return dense, index


def balance_loss(logits, index):
    n_experts = logits.shape[-1]
    probs = F.softmax(logits, dim=-1).mean(dim=0)
    onehot = F.one_hot(index, n_experts).sum(dim=1)
    fraction = onehot.to(logits.dtype).mean(dim=0) / TOP_K
    return n_experts * torch.sum(fraction * probs)


def main(x, w_gate, w_up, w_down):
    logits = x @ w_gate
    combine, index = gate(logits)
    h = F.silu(torch.einsum("td,edf->tef", x, w_up))
    y = torch.einsum("tef,efd->ted", h, w_down)
    out = torch.einsum("te,ted->td", combine, y)
    load = torch.bincount(index.flatten(), minlength=logits.shape[-1])
    return out, balance_loss(logits, index), load


def inputs():
    g = torch.Generator().manual_seed(18)
    return (torch.randn(10, 6, generator=g), torch.randn(6, 4, generator=g),
            torch.randn(4, 6, 8, generator=g) / 6 ** 0.5,
            torch.randn(4, 8, 6, generator=g) / 8 ** 0.5)
