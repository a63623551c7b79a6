"""Scores of a segmentation: confusion counts in int64, kept over batches, and ratios of the counts
in float64."""
import torch

CONFIG = {"classes": 4, "ignore": 255, "batch_size": 2}


class ConfusionMatrix:
    def __init__(self, classes, ignore):
        self.classes, self.ignore = classes, ignore
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64)

    def update(self, logits, target):
        predicted = logits.argmax(dim=1)
        valid = target != self.ignore
        index = target[valid].long() * self.classes + predicted[valid]
        counts = torch.bincount(index, minlength=self.classes ** 2)
        self.matrix += counts.view(self.classes, self.classes)

    def compute(self):
        hits = self.matrix.diagonal().double()
        union = (self.matrix.sum(0) + self.matrix.sum(1) - self.matrix.diagonal()).double()
        seen = union > 0
        iou = torch.where(seen, hits / union.clamp(min=1), torch.zeros_like(hits))
        return iou, iou[seen].mean(), hits.sum() / self.matrix.sum()


def kappa(matrix):
    p = matrix.double() / matrix.sum()
    expected = (p.sum(0) * p.sum(1)).sum()
    return (p.diagonal().sum() - expected) / (1 - expected)


class Running:
    """The mean of a loss over all pixels."""

    def __init__(self):
        self.total, self.count = torch.zeros((), dtype=torch.float64), 0

    def update(self, mean, n):
        self.total += mean.double() * n
        self.count += n

    def compute(self):
        return self.total / self.count


def main(logits, target):
    confusion, running = ConfusionMatrix(CONFIG["classes"], CONFIG["ignore"]), Running()
    for i in range(0, len(logits), CONFIG["batch_size"]):
        rows = slice(i, i + CONFIG["batch_size"])
        labels = target[rows].long()
        loss = torch.nn.functional.cross_entropy(logits[rows], labels, ignore_index=CONFIG["ignore"])
        running.update(loss, int((labels != CONFIG["ignore"]).sum()))
        confusion.update(logits[rows], target[rows])
    iou, mean_iou, accuracy = confusion.compute()
    return confusion.matrix, iou, mean_iou, accuracy, kappa(confusion.matrix), running.compute()


def inputs():
    g = torch.Generator().manual_seed(2)
    target = torch.randint(0, 4, (5, 6, 6), generator=g)
    logits = torch.randn(5, 4, 6, 6, generator=g) + torch.nn.functional.one_hot(target, 4).permute(0, 3, 1, 2)
    target[:, 0] = 255
    return logits, target.to(torch.uint8)
