"""Class-weighted cross entropy with ignored tokens, checked against log_softmax."""
import torch
import torch.nn.functional as F

IGNORE = -100


def manual(logits, labels, weight):
    logp = F.log_softmax(logits, dim=-1)
    keep = labels != IGNORE
    safe = labels.masked_fill(~keep, 0)
    picked = logp.gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    w = weight[safe] * keep.to(weight.dtype)
    return -(w * picked).sum() / w.sum()


def inverse_frequency(labels, n):
    counts = torch.bincount(labels[labels != IGNORE], minlength=n)
    freq = counts.to(torch.float32) / counts.sum()
    return 1.0 / (freq * n).clamp(min=1e-3)


def main(logits, labels):
    n = logits.shape[-1]
    weight = inverse_frequency(labels, n)
    flat_logits, flat_labels = logits.reshape(-1, n), labels.reshape(-1)
    loss = F.cross_entropy(flat_logits, flat_labels, weight=weight, ignore_index=IGNORE)
    return loss, manual(flat_logits, flat_labels, weight), weight


def inputs():
    g = torch.Generator().manual_seed(7)
    logits = torch.randn(3, 8, 5, generator=g)
    labels = torch.randint(0, 5, (3, 8), generator=g)
    labels[0, 6:] = IGNORE
    labels[2, 3:] = IGNORE
    return logits, labels
