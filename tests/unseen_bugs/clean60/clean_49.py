"""Causal attention with key padding: masked_fill with -inf, then softmax."""
import torch


def build_mask(lengths, t):
    steps = torch.arange(t, device=lengths.device)
    causal = steps[None, :] <= steps[:, None]
    valid = steps[None, :] < lengths[:, None]
    return causal[None] & valid[:, None, :], valid


def attention(q, k, v, mask):
    scores = torch.einsum("bqd,bkd->bqk", q, k) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    # the first key is always valid, so no row is all -inf
    probs = scores.softmax(dim=-1)
    return torch.einsum("bqk,bkd->bqd", probs, v), probs


def main(x, wq, wk, wv, lengths):
    mask, valid = build_mask(lengths, x.shape[1])
    out, probs = attention(x @ wq, x @ wk, x @ wv, mask)
    out = out.masked_fill(~valid.unsqueeze(-1), 0.0)
    entropy = torch.special.entr(probs).sum(dim=-1)
    mean_entropy = entropy[valid].mean()
    return out, mean_entropy


def inputs():
    g = torch.Generator().manual_seed(8)
    x = torch.randn(3, 6, 8, generator=g)
    ws = [torch.randn(8, 8, generator=g) / 8 ** 0.5 for _ in range(3)]
    return (x, *ws, torch.tensor([6, 4, 1]))
