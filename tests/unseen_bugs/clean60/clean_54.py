"""Count correct predictions over mini-batches: top-1, top-3 and per-class accuracy."""
import torch

CLASSES = 5
BATCH = 16


def topk_correct(logits, labels, k):
    top = logits.topk(k, dim=1).indices
    return (top == labels.unsqueeze(1)).any(dim=1).sum()


@torch.no_grad()
def main(logits, labels):
    correct1 = torch.zeros((), dtype=torch.int64)
    correct3 = torch.zeros((), dtype=torch.int64)
    hits = torch.zeros(CLASSES, dtype=torch.int64)
    for lo, y in zip(logits.split(BATCH), labels.split(BATCH)):
        pred = lo.argmax(dim=1)
        correct1 = correct1 + (pred == y).sum()
        correct3 = correct3 + topk_correct(lo, y, 3)
        hits = hits + torch.bincount(y[pred == y], minlength=CLASSES)
    total = labels.numel()
    support = torch.bincount(labels, minlength=CLASSES)
    per_class = hits / support.clamp(min=1)
    return correct1 / total, correct3 / total, per_class, hits


def inputs():
    g = torch.Generator().manual_seed(16)
    labels = torch.randint(0, CLASSES, (70,), generator=g)
    logits = torch.randn(70, CLASSES, generator=g)
    logits[torch.arange(70), labels] += 1.0
    return logits, labels
